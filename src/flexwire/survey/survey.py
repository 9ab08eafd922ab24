"""The survey of a capture: one pass over all its frames, which decodes next to nothing.

Frames are understood in order, and what a frame means may be known only at the end: whether its
connection is Kafka, which software its client is, whether its request was answered. So all of a
capture is read twice. The survey reads it from the first packet to the last, keeps in a file what
the state of all connections is at every cut, and says in the end what only the whole capture says.
Then each range between two cuts is decoded by itself, with nothing to guess and nothing to join.

It saves a survey in pieces that comes to nothing: files that overlap in time and show the same
connections have to be merged. What is not noticed here, the fold notices.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from flexwire.capture.reassembly.segments import FileNotes, SegmentColumns
from flexwire.survey.piece_merger import OverlapError
from flexwire.survey.pieces import COMPRESSED, Piece
from flexwire.survey.request import (
    LOOK_BYTES,
    NAMES,
    NO_MARKS,
    RANGE_BYTES,
    AnalysisRequest,
    RangeContext,
    RangeStart,
    Survey,
    known_name,
    look_at_files,
    make_reader,
    start_name,
)
from flexwire.survey.state import MergedFiles, SequentialFiles, SurveyState, clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.capture.reassembly.merging import MergedReader
    from flexwire.capture.reassembly.segments import SegmentReader
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.request import FileLook
    from flexwire.survey.state import CaptureFiles, CutPosition, SegmentOrder


__all__ = [
    "NAMES",
    "RANGE_BYTES",
    "AnalysisRequest",
    "RangeContext",
    "RangeStart",
    "Survey",
    "Surveyor",
    "in_order",
    "known_name",
    "start_name",
]


def in_order(
    asked: AnalysisRequest, survey: Survey, found: Sequence[FileLook] | None = None
) -> list[InputFile] | None:
    """Give the files that can be read, in the order of the capture; tell the survey of the others.

    ``found`` is what was seen of each file, in their order, if somebody has looked. None where one
    cannot be read that is not to be skipped. Raises `StorageError` for a file that is gone or
    another since it was listed.
    """
    found = looked_at(asked, survey, found)
    return None if found is None else [one.source for one in found]


def looked_at(
    asked: AnalysisRequest, survey: Survey, found: Sequence[FileLook] | None = None
) -> list[FileLook] | None:
    """Give the files that can be read as `in_order` does, and when each begins."""
    found = look_at_files(asked.files) if found is None else found
    survey.unreadable = [one.error for one in found if one.error is not None]
    if survey.unreadable and not asked.skip_unreadable:
        return None
    survey.notes += [
        FileNotes(one.source.name, error=one.error) for one in found if one.error is not None
    ]
    survey.marks = [(one.source.name, one.marks) for one in found if one.marks != NO_MARKS]
    readable = [one for one in found if one.error is None]
    readable.sort(key=lambda one: (one.first_us, one.source.name))
    return readable


class Surveyor:
    """Makes the survey of a capture, and gives ``keep`` what the ranges need, by its name.

    Files are read one after the other. Where that is not the order of a connection's segments, as
    with captures of several hosts, all begins anew, and files are merged by time; at once if it is
    known before that they are ``overlapping``. ``found`` is what `in_order` takes.
    """

    def __init__(
        self,
        asked: AnalysisRequest,
        keep: Callable[[str, bytes], None],
        found: Sequence[FileLook] | None = None,
        *,
        overlapping: bool = False,
    ) -> None:
        self._asked = asked
        self._keep = keep
        self._found = found
        self._is_overlapping = overlapping

    def run(self) -> Survey:
        """Read all files.

        Raises `StorageError` for one that is gone or another since it was listed, and where a
        store or a disk gives only a part of it.
        """
        asked, survey = self._asked, Survey()
        found = looked_at(asked, survey, self._found)
        if found is None:
            return survey
        try:
            if not self._is_overlapping:
                return self._in_turn([one.source for one in found], survey)
        except OverlapError:
            pass
        return self._merged(MergedFiles(asked, found), survey)

    def _in_turn(self, files: list[InputFile], known: Survey) -> Survey:
        """Read file after file. Raises `OverlapError`."""
        findings = self._findings(known)
        return self._read(
            findings, make_reader(self._asked, files), SequentialFiles(files), findings.order
        )

    def _merged(self, files: MergedFiles, known: Survey) -> Survey:
        """Merge files by time."""
        findings = self._findings(known)
        findings.survey.is_merged = True
        return self._read(findings, files.reader(), files)

    def _findings(self, known: Survey) -> SurveyState:
        findings = SurveyState(self._asked, self._keep)
        findings.survey = replace(known, notes=list(known.notes), connections=[])
        return findings

    def _read(
        self,
        findings: SurveyState,
        reader: SegmentReader | MergedReader,
        files: CaptureFiles,
        order: SegmentOrder | None = None,
    ) -> Survey:
        findings.begin_range(None)
        stop: CutPosition = None
        for item in reader:
            if isinstance(item, FileNotes):
                if item.error is not None:
                    # A moment ago it could be read.
                    raise item.error
                findings.survey.notes.append(item)
                continue
            if order is not None and not order.keeps(item):
                raise OverlapError
            if findings.size >= self._asked.range_bytes and stop is not None:
                findings.begin_range(stop)
            findings.see(findings.flows.push(item))
            findings.end_connections()
            stop = reader.position
            findings.add(item.weight, stop, len(item))
        return findings.finish(files)


LOOKED_AT: Final = 4
"""So many files, the first of the capture, are looked at: as many hosts begin with one each."""
INFLATED_BYTES: Final = 64 << 20
"""Of a gzip'd file, whose end is nowhere but after all of it, so many bytes are read at most."""


def likely_overlap(asked: AnalysisRequest, files: list[InputFile]) -> bool:
    """Whether one of the first files ends with a connection later than another begins with it.

    A gzip'd file is read until its clock is where the last of the others begins, if that is soon.
    """
    asked = replace(asked, chunk_bytes=min(asked.chunk_bytes, LOOK_BYTES))
    begun = [_begins(asked, file) for file in files[:LOOKED_AT]]
    last_us = max((first_us for its in begun for first_us in its.values()), default=0)
    ended: dict[str, int] = {}
    for file, its in zip(files, begun, strict=False):
        if any(ended.get(key, first_us) > first_us for key, first_us in its.items()):
            return True
        for key, ends in _ends(asked, file, last_us).items():
            ended[key] = max(ends, ended.get(key, ends))
    return False


def _begins(asked: AnalysisRequest, file: InputFile) -> dict[str, int]:
    """When connections were first seen in the first bytes of a file."""
    with closing(make_reader(asked, [file]).chunks()) as chunks:
        first = next(chunks)
    if not isinstance(first, SegmentColumns):
        return {}
    return {key: begins for key, begins, _ in clocks(first)[0]}


def _ends(asked: AnalysisRequest, file: InputFile, last_us: int) -> dict[str, int]:
    """When connections were last seen in the last bytes of a file, or in its first if gzip'd."""
    is_inflated = file.name.endswith(COMPRESSED)
    start = Piece((file,), 0 if is_inflated else max(0, file.size - LOOK_BYTES)).begin()
    found: dict[str, int] = {}
    if start is None:
        return found
    size = 0
    with closing(make_reader(asked, [file], start).chunks()) as chunks:
        for item in chunks:
            if isinstance(item, SegmentColumns):
                told, clock = clocks(item)
                found |= {key: ends for key, _, ends in told}
                size += item.weight
                if is_inflated and (clock > last_us or size >= INFLATED_BYTES):
                    break
    return found
