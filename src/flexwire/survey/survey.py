"""The survey of a capture: one pass over all frames, which decodes almost nothing.

Frames can be understood only in order. Some facts about a frame are known only at the end of the
capture: whether its connection carries Kafka, which software its client uses, and whether its
request was answered. A capture is therefore read twice. The survey reads it from the first packet
to the last. At every cut it keeps the state of all connections in a file. At the end it keeps the
facts about the whole capture. Afterwards each range between two cuts is decoded separately, without
guesses and without joins.

`is_overlap_likely` finds captures that must be merged, to avoid a useless survey in pieces. If it
misses an overlap, the fold finds the overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from flexwire.capture.reassembly.segments import FileNotes, SegmentColumns
from flexwire.errors import StorageError
from flexwire.facts.units import human_bytes
from flexwire.survey.capture_files import MergedFiles, SequentialFiles
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
    look_at_files,
    make_reader,
    range_context_name,
    range_origins_name,
    range_start_name,
)
from flexwire.survey.saved_state import SavedState, SavedStateError
from flexwire.survey.state import (
    LateError,
    SurveyState,
    load_state,
    read_clocks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.reassembly.merging import MergedReader
    from flexwire.capture.reassembly.segments import SegmentReader
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.capture_files import CutPosition
    from flexwire.survey.request import FileLook
    from flexwire.survey.state import SegmentOrder


__all__ = [
    "NAMES",
    "RANGE_BYTES",
    "AnalysisRequest",
    "RangeContext",
    "RangeStart",
    "Survey",
    "Surveyor",
    "list_readable_files",
    "range_context_name",
    "range_origins_name",
    "range_start_name",
]


def list_readable_files(
    request: AnalysisRequest, survey: Survey, looks: Sequence[FileLook] | None = None
) -> list[InputFile] | None:
    """Return the readable files in the capture's order, and add the others to the survey.

    If the caller has already examined the files, ``looks`` contains the results, in the same order.
    Returns None if a file cannot be read and must not be skipped. Raises `StorageError` for a file
    that is gone, or that has changed since it was listed.
    """
    looks = look_at_readable_files(request, survey, looks)
    return None if looks is None else [look.source for look in looks]


def look_at_readable_files(
    request: AnalysisRequest, survey: Survey, looks: Sequence[FileLook] | None = None
) -> list[FileLook] | None:
    """Return the results for the files that `list_readable_files` returns, in the same order."""
    looks = look_at_files(request.files) if looks is None else looks
    survey.unreadable = [look.error for look in looks if look.error is not None]
    if survey.unreadable and not request.skip_unreadable:
        return None
    survey.notes += [
        FileNotes(look.source.name, error=look.error) for look in looks if look.error is not None
    ]
    survey.marks = [(look.source.name, look.marks) for look in looks if look.marks != NO_MARKS]
    readable = [look for look in looks if look.error is None]
    readable.sort(key=lambda look: (look.first_us, look.source.name))
    return readable


class Surveyor:
    """Make the survey of a capture, and pass the entries for ranges to ``keep``, by name.

    Files are read one after the other. If a connection's segments are not in that order, as can
    happen in captures of several hosts, the survey starts again and merges the files by time. If
    the files are known to be ``overlapping``, the survey merges them immediately. ``looks`` is
    passed to `list_readable_files`. ``before`` is the saved state of an earlier analysis that this
    capture continues.
    """

    def __init__(
        self,
        request: AnalysisRequest,
        keep: Callable[[str, bytes], None],
        looks: Sequence[FileLook] | None = None,
        *,
        overlapping: bool = False,
        before: bytes | None = None,
    ) -> None:
        self._request = request
        self._keep = keep
        self._looks = looks
        self._is_overlapping = overlapping
        self._before = before

    def run(self) -> Survey:
        """Read all files.

        Raises `StorageError` for a file that is gone or has changed since it was listed, and if a
        store or a disk returns only a part of a file. Raises `LateError` and `SavedStateError` if
        the state of the earlier analysis cannot be used.
        """
        request, survey = self._request, Survey()
        looks = look_at_readable_files(request, survey, self._looks)
        if looks is None:
            return survey
        try:
            if not self._is_overlapping:
                return self._in_turn([look.source for look in looks], survey)
        except OverlapError:
            pass
        return self._merged(MergedFiles(request, looks), survey)

    def _in_turn(self, files: list[InputFile], survey: Survey) -> Survey:
        """Read one file after another. Raises `OverlapError`."""
        state = self._new_state(survey)
        read_capture(self._request, state, make_reader(self._request, files), state.order)
        return state.finish(SequentialFiles(files))

    def _merged(self, files: MergedFiles, survey: Survey) -> Survey:
        """Merge the files by time and read the result."""
        state = self._new_state(survey)
        state.survey.is_merged = True
        read_capture(self._request, state, files.reader())
        return state.finish(files)

    def _new_state(self, survey: Survey) -> SurveyState:
        state = SurveyState(self._request, self._keep, load_state(self._request, self._before))
        state.survey = replace(survey, notes=list(survey.notes), connections=[])
        return state


def read_capture(
    request: AnalysisRequest,
    state: SurveyState,
    reader: SegmentReader | MergedReader,
    order: SegmentOrder | None = None,
) -> None:
    """Read all segments into a state, and begin a range at each cut.

    Raises `OverlapError` if the segments are not in order, provided that there is an ``order``.
    """
    state.begin_range(None)
    stop: CutPosition = None
    for item in reader:
        if isinstance(item, FileNotes):
            if item.error is not None:
                # The file was readable a moment ago.
                raise item.error
            state.survey.notes.append(item)
            continue
        if order is None:
            state.order.check_late(item)
        elif not order.keeps(item):
            raise OverlapError
        if state.size >= request.range_bytes and stop is not None:
            state.begin_range(stop)
        state.push(item)
        stop = reader.position
        state.add(item.weight, stop, item.totals.rows)


STATE: Final = "state"
"""The name of the saved state in the directory of a run."""
_LATE: Final = (
    "the new captures contain packets from before the end of the previous analysis, so the new "
    "captures were analyzed separately"
)
_LOST: Final = (
    "the state of the previous analysis cannot be used ({}), so connections that were open at its "
    "end are not continued"
)


Make = Callable[["AnalysisRequest", bytes | None], Survey]
"""A function that makes a survey for a request, from the saved state with which it begins."""


def read_state(request: AnalysisRequest) -> bytes | None:
    """Return the saved state with which a survey begins, or None if it continues no analysis.

    Raises `StorageError` if the state cannot be read.
    """
    continuation = request.continuation
    if continuation is None or continuation.before is None:
        return None
    return continuation.before.read(STATE)


def survey_after(request: AnalysisRequest, make: Make) -> Survey:
    """Make a survey that continues an earlier analysis, or begins without it if this fails.

    The result contains the reason why the earlier state is not used. If the capture is older than
    the end of the earlier analysis, that analysis's state does not change, and the connections of
    the capture end with the capture.
    """
    continuation = request.continuation
    try:
        before = read_state(request)
    except StorageError as error:
        return _anew(make(request, None), _LOST.format(error.reason))
    if continuation is None or before is None:
        return make(request, None)
    try:
        return make(request, before)
    except SavedStateError as error:
        return _anew(make(request, None), _LOST.format(error))
    except LateError:
        result = make(request, None)
    saved = SavedState.from_bytes(before)
    if saved.end_us >= result.end_us:
        ends = replace(request, continuation=continuation._replace(pauses=False))
        result = make(ends, None)
        result.state = before
        return _anew(result, _LATE)
    held = saved.count_held()
    lost = f"; {human_bytes(held)} of unfinished frames are left out" if held else ""
    return _anew(result, _LATE + lost)


def _anew(survey: Survey, reason: str) -> Survey:
    survey.begins_anew = reason
    return survey


LOOKED_AT: Final = 4
"""The number of files at the start of a capture that are examined.

If there are several hosts, these files include the first file of each.
"""
INFLATED_BYTES: Final = 64 << 20
"""The largest number of bytes to read from a gzip-compressed file, whose end is found only by
reading it.
"""


def is_overlap_likely(request: AnalysisRequest, files: list[InputFile]) -> bool:
    """Return whether two of the first files seem to overlap in time, in the same connection.

    A gzip-compressed file is read until its clock passes the beginning of the last of these files,
    or up to a limit.
    """
    request = replace(request, chunk_bytes=min(request.chunk_bytes, LOOK_BYTES))
    begins = [_begins(request, file) for file in files[:LOOKED_AT]]
    last_us = max((first_us for first in begins for first_us in first.values()), default=0)
    ended: dict[str, int] = {}
    for file, first in zip(files, begins, strict=False):
        if any(ended.get(key, first_us) > first_us for key, first_us in first.items()):
            return True
        for key, ends in _ends(request, file, last_us).items():
            ended[key] = max(ends, ended.get(key, ends))
    return False


def _begins(request: AnalysisRequest, file: InputFile) -> dict[str, int]:
    """Return when each connection was first seen in the first bytes of a file."""
    with closing(make_reader(request, [file]).chunks()) as chunks:
        first = next(chunks)
    if not isinstance(first, SegmentColumns):
        return {}
    return {key: begins for key, begins, _ in read_clocks(first)[0]}


def _ends(request: AnalysisRequest, file: InputFile, last_us: int) -> dict[str, int]:
    """Return when each connection was last seen at a file's end (its start if it is gzipped)."""
    is_inflated = file.name.endswith(COMPRESSED)
    start = Piece((file,), 0 if is_inflated else max(0, file.size - LOOK_BYTES)).begin()
    ended: dict[str, int] = {}
    if start is None:
        return ended
    size = 0
    with closing(make_reader(request, [file], start).chunks()) as chunks:
        for item in chunks:
            if isinstance(item, SegmentColumns):
                key_clocks, clock = read_clocks(item)
                ended |= {key: ends for key, _, ends in key_clocks}
                size += item.weight
                if is_inflated and (clock > last_us or size >= INFLATED_BYTES):
                    break
    return ended
