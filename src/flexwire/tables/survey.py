"""The survey of a capture: one pass over all its frames, which decodes next to nothing.

Frames are understood in order, and what a frame means may be known only at the end: whether its
connection is Kafka, which software its client is, whether its request was answered. So all of a
capture is read twice. The survey reads it from the first packet to the last, keeps in a file what
the state of all connections is at every cut, and says in the end what only the whole capture says.
Then each range between two cuts is decoded by itself, with nothing to guess and nothing to join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.capture.columns.segments import FileNotes
from flexwire.tables.findings import Findings
from flexwire.tables.inputs import looks, reader_of
from flexwire.tables.survey_parts import (
    NAMES,
    RANGE_BYTES,
    Asked,
    Known,
    Snapshot,
    Survey,
    known_name,
    start_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.storage.source import Source
    from flexwire.tables.inputs import Look

__all__ = [
    "NAMES",
    "RANGE_BYTES",
    "Asked",
    "Known",
    "Snapshot",
    "Survey",
    "Surveyor",
    "in_order",
    "known_name",
    "start_name",
]


def in_order(
    asked: Asked, survey: Survey, found: Sequence[Look] | None = None
) -> list[Source] | None:
    """Give the files that can be read, in the order of the capture; tell the survey of the others.

    ``found`` is what was seen of each file, in their order, if somebody has looked. None where one
    cannot be read that is not to be skipped. Raises `StorageError` for a file that is gone or
    another since it was listed.
    """
    found = looks(asked.files) if found is None else found
    survey.unreadable = [one.error for one in found if one.error is not None]
    if survey.unreadable and not asked.skip_unreadable:
        return None
    survey.notes += [
        FileNotes(one.source.name, error=one.error) for one in found if one.error is not None
    ]
    readable = [one for one in found if one.error is None]
    readable.sort(key=lambda one: (one.first_us, one.source.name))
    return [one.source for one in readable]


class Surveyor:
    """Makes the survey of a capture, and gives ``keep`` what the ranges need, by its name."""

    def __init__(
        self,
        asked: Asked,
        keep: Callable[[str, bytes], None],
        found: Sequence[Look] | None = None,
    ) -> None:
        self._asked = asked
        self._found = found
        self._findings = Findings(asked, keep)

    def run(self) -> Survey:
        """Read all files.

        Raises `StorageError` for one that is gone or another since it was listed, and where a
        store or a disk gives only a part of it.
        """
        asked, findings = self._asked, self._findings
        survey = findings.survey
        files = in_order(asked, survey, self._found)
        if files is None:
            return survey
        reader = reader_of(asked, files)
        findings.begin_range(None)
        stop = None
        for item in reader:
            if isinstance(item, FileNotes):
                if item.error is not None:
                    # A moment ago it could be read.
                    raise item.error
                survey.notes.append(item)
                continue
            if not findings.order.keeps(item):
                survey.is_ordered = False
                return survey
            if findings.size >= asked.range_bytes and stop is not None:
                findings.begin_range(stop)
            findings.see(findings.flows.push(item))
            findings.end_connections()
            stop = reader.position
            findings.add(item.weight, stop)
        return findings.finish(files)
