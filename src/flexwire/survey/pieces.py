"""The pieces that a capture is surveyed in, and what the survey of one piece hands over.

A piece begins where a file does, or at a block in its middle, whose place is a guess
(`flexwire.capture.files.blocks`). What its survey says depends on that, and on more that is
supposed; `flexwire.survey.fold` proves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.files.blocks import file_head, guessed_boundary
from flexwire.capture.reassembly.segments import FilePosition
from flexwire.survey.request import make_opener

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.pairing.pairing import HeaderColumns
    from flexwire.capture.reassembly.assembly import FrameAssembler
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.packet_scan import FileNotes
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.speculation import StepLog
    from flexwire.survey.state import KeyClocks, TopicName
    from flexwire.tables.frames import Software


COMPRESSED: Final = ".gz"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some files that follow one another, or a part of one.

    It begins at the block that does not begin before ``start`` in its first file, and goes on up to
    the one that does not begin before ``stop`` in its last: None for the end.
    """

    files: tuple[InputFile, ...]
    start: int = 0
    stop: int | None = None

    @property
    def until(self) -> FilePosition | None:
        """Where a reader of its files is to stop; None for their end."""
        return None if self.stop is None else FilePosition(self.files[-1].name, self.stop)

    @property
    def size(self) -> int:
        """How many bytes of files it has."""
        end = self.files[-1].size if self.stop is None else self.stop
        return sum(one.size for one in self.files[:-1]) + end - self.start

    def begin(self) -> FilePosition | None:
        """Where it begins; a guess within a file, and None if there is none.

        Raises `CaptureError` where the file cannot be opened or is not a capture.
        """
        first = self.files[0]
        if not self.start:
            return FilePosition(first.name)
        opens = make_opener(self.files)
        known = file_head(first.name, opens)
        if known is None:
            return None
        at = guessed_boundary(first.name, known, self.start, opens)
        return None if at is None else FilePosition(first.name, at, head=known.head)


def pieces_of(files: list[InputFile], size: int) -> list[Piece]:
    """Cut a capture into pieces of about ``size`` bytes; a file that is gzip'd stays whole."""
    return list(_pieces(files, max(size, 1)))


def _pieces(files: list[InputFile], size: int) -> Iterator[Piece]:
    group: list[InputFile] = []
    total = 0
    for file in files:
        count = 1 if file.name.endswith(COMPRESSED) else max(1, round(file.size / size))
        if group and (count > 1 or total + file.size > size):
            yield Piece(tuple(group))
            group, total = [], 0
        if count == 1:
            group.append(file)
            total += file.size
            continue
        cuts = [file.size * number // count for number in range(count)]
        for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
            yield Piece((file,), start, stop)
    if group:
        yield Piece(tuple(group))


class PieceChunk(NamedTuple):
    """A part of a piece that is read at once: where it begins and ends, and the keys in it."""

    start: FilePosition | None
    stop: FilePosition | None
    keys: NumpyArray


@dataclass(slots=True)
class PieceFrames:
    """The frames of a piece that are handed over, a row each.

    ``connection`` counts in ``names``. Only some have a payload, ``data[start:stop]``; those that
    are not given (`Facts.is_given`) have theirs. ``software`` and ``topics`` are what bodies of
    given rows say; of a connection's requests only the first that says it. ``ordinal`` is the place
    of a row among all of its key, and ``left_out`` has spans of the correlation ids of those that
    are not handed over, by step (`flexwire.survey.piece_survey`).
    """

    names: list[str]
    connection: NumpyArray
    is_response: NumpyArray
    index: NumpyArray
    time_us: NumpyArray
    first_us: NumpyArray
    start: NumpyArray
    stop: NumpyArray
    data: NumpyArray
    facts: HeaderColumns
    ordinal: NumpyArray
    left_out: NumpyArray
    error: dict[int, str]
    unplaced: set[int]
    software: dict[int, Software] = field(default_factory=dict)
    topics: dict[int, frozenset[TopicName]] = field(default_factory=dict)


@dataclass(slots=True)
class PieceSummary:
    """What the survey of a piece found out, if it began at ``start``.

    ``logs`` are of all keys, ``fresh`` the assemblers of those that were not supposed to go on, and
    ``ended`` the connections that ended on them. ``keys`` are all, as they appeared.
    """

    start: FilePosition
    stop: FilePosition | None
    size: int
    notes: list[FileNotes]
    clocks: list[tuple[str, list[KeyClocks], int]]
    chunks: list[PieceChunk]
    keys: list[str]
    files: dict[str, str]
    logs: dict[str, StepLog]
    fresh: dict[str, FrameAssembler]
    ended: dict[str, list[CapturedConnection]]
    frames: PieceFrames
