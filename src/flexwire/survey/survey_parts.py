"""What is asked of a survey, what it keeps for the ranges, and what it found out in the end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.pairing.pairing import Told
from flexwire.capture.reassembly.connections import Brokers
from flexwire.capture.reassembly.segments import CHUNK_BYTES, FileNotes
from flexwire.records.inflation import INFLATION, Inflation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.pairing.pairing import Turns
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.flows import Flows
    from flexwire.capture.reassembly.merging import Front, Waiting
    from flexwire.capture.reassembly.segments import Position
    from flexwire.errors import CaptureError
    from flexwire.storage.source import Source
    from flexwire.survey.inputs import Marks

NAMES = "names"
"""The name of what is kept for all ranges: the names of topics by their ids."""

Software = tuple[str | None, str | None]

RANGE_BYTES = 1 << 30
"""About so many bytes of segments are decoded by one task."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be analyzed, and how: the same for the survey and for every range.

    ``release`` is that of the captured brokers, where it is known. A file that cannot be opened, or
    is not a capture, ends the survey unless such are to be skipped. ``takes_sampled`` is whether
    whoever follows files takes those that hold a part of all connections. ``inflation`` bounds what
    record batches inflate to.
    """

    files: tuple[Source, ...]
    brokers: Brokers = field(default_factory=Brokers)
    release: str | None = None
    show_credentials: bool = False
    record_bytes: bool = False
    range_bytes: int = RANGE_BYTES
    chunk_bytes: int = CHUNK_BYTES
    skip_unreadable: bool = False
    takes_sampled: bool = True
    inflation: Inflation = INFLATION

    @property
    def digest(self) -> str:
        """A name for the input, in hexadecimal: it is the same where all files are the same."""
        told = hashlib.sha256()
        for one in self.files:
            told.update(f"{one.url}\0{one.size}\0{one.version}\n".encode())
        return told.hexdigest()


@dataclass(slots=True)
class Snapshot:
    """Where a range begins: the place in the files, and the state of all connections there."""

    position: Position | Front | None
    flows: Flows
    turns: Turns


class AtOnce(NamedTuple):
    """How the files of a range are merged: which are to be begun, and how many segments it has.

    The last range has all that are left, None.
    """

    waiting: tuple[Waiting, ...]
    rows: int | None


@dataclass(slots=True)
class Known:
    """What a range has to be told: where it ends, and what the whole capture says.

    ``files`` are those that it lies in, ``software`` is the name and version of each connection's
    client. Files are read one after the other, unless they are to be read ``at_once``.
    """

    files: tuple[Source, ...]
    stop: Position | Front | None
    told: Told
    software: dict[str, Software]
    at_once: AtOnce | None = None

    @classmethod
    def joined(cls, some: Sequence[Known]) -> Known:
        """What a range has to be told that is some which follow one another."""
        files = dict.fromkeys(file for one in some for file in one.files)
        tolds = [one.told for one in some]
        told = Told(
            {name: said for one in tolds for name, said in one.judgements.items()},
            {name: said for one in tolds for name, said in one.unanswered.items()},
            {name: said for one in tolds for name, said in one.early.items()},
        )
        software = {name: said for one in some for name, said in one.software.items()}
        return cls(tuple(files), some[-1].stop, told, software, _joined(some))


def _joined(some: Sequence[Known]) -> AtOnce | None:
    parts = [one.at_once for one in some if one.at_once is not None]
    if not parts:
        return None
    waiting = tuple(waiting for one in parts for waiting in one.waiting)
    is_last = parts[-1].rows is None
    return AtOnce(waiting, None if is_last else sum(one.rows or 0 for one in parts))


@dataclass(slots=True)
class Survey:
    """What a survey found out; ``ranges`` of it are to be decoded.

    ``notes`` are those of the files, in order, and ``unreadable`` says why files give nothing, in
    the order of those that were asked for. With such a file that is not to be skipped, nothing else
    was found out. Files that overlap in time and show the same connections are merged by time: the
    capture ``is_merged``. Where it ``is_crowded`` these are too many, and nothing was found out.
    ``span_us`` is the time from the first frame of Kafka's to the last. ``redone`` segments were
    read once more, because what had been supposed of them was not so. ``marks`` are what files say
    of themselves, by their names.
    """

    ranges: int = 0
    is_crowded: bool = False
    is_merged: bool = False
    notes: list[FileNotes] = field(default_factory=list)
    connections: list[CapturedConnection] = field(default_factory=list)
    span_us: int = 0
    unreadable: list[CaptureError] = field(default_factory=list)
    marks: list[tuple[str, Marks]] = field(default_factory=list)
    redone: int = field(default=0, compare=False)


def start_name(number: int) -> str:
    """The name of what is kept of the start of a range."""
    return f"start-{number:06d}"


def known_name(number: int) -> str:
    """The name of what is kept for a range from the end of the capture."""
    return f"known-{number:06d}"
