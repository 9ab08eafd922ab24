"""The pieces into which a survey divides a large capture, and the summary that each passes on.

A piece begins at the start of a file, or at a block within a file. The place of such a block is a
guess (`flexwire.capture.files.blocks`). The survey of the piece depends on this guess, and on
guesses about connections. `flexwire.survey.fold` verifies all guesses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.files.blocks import guess_boundary, read_file_head
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
    from flexwire.survey.bodies import TopicName
    from flexwire.survey.client_instances import GivenInstance
    from flexwire.survey.speculation import StepLog
    from flexwire.survey.state import KeyClocks
    from flexwire.tables.frames import Software


COMPRESSED: Final = ".gz"


@dataclass(frozen=True, slots=True)
class Piece:
    """Adjacent files of a capture, or a part of one file.

    The piece begins at the first block at or after ``start`` in its first file. The piece ends
    before the first block at or after ``stop`` in its last file. If ``stop`` is None, the piece
    ends with its last file.
    """

    files: tuple[InputFile, ...]
    start: int = 0
    stop: int | None = None

    @property
    def until(self) -> FilePosition | None:
        """The position at which a reader of the files must stop, or None for their end."""
        return None if self.stop is None else FilePosition(self.files[-1].name, self.stop)

    @property
    def size(self) -> int:
        """The size of the piece in the files, in bytes."""
        end = self.files[-1].size if self.stop is None else self.stop
        return sum(file.size for file in self.files[:-1]) + end - self.start

    def begin(self) -> FilePosition | None:
        """Return where the piece begins (a guess within a file), or None if there is no guess.

        Raises `CaptureError` if the file cannot be opened or is not a capture.
        """
        first = self.files[0]
        if not self.start:
            return FilePosition(first.name)
        opener = make_opener(self.files)
        head = read_file_head(first.name, opener)
        if head is None:
            return None
        at = guess_boundary(first.name, head, self.start, opener)
        return None if at is None else FilePosition(first.name, at, head=head.head)


def cut_into_pieces(files: list[InputFile], size: int) -> list[Piece]:
    """Cut a capture into pieces of about ``size`` bytes. A gzip-compressed file is never cut."""
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
    """A part of a piece that is read in one step: where it begins and ends, and its keys."""

    start: FilePosition | None
    stop: FilePosition | None
    keys: NumpyArray


@dataclass(slots=True)
class PieceFrames:
    """The frames that a piece passes on, one row each.

    ``connection`` is an index into ``names``. Only some rows have a payload, ``data[start:stop]``,
    including every row that is not preset (`HeaderColumns.is_preset`). ``software``, ``instances``
    and ``topics`` come from preset rows. If several requests of a connection name its software,
    only the first one is kept. ``ordinal`` is the position of a row among all rows of its key.
    ``left_out`` contains, for each step, ranges of the correlation ids of rows that are not passed
    on (`flexwire.survey.piece_survey`).
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
    headers: HeaderColumns
    ordinal: NumpyArray
    left_out: NumpyArray
    error: dict[int, str]
    unplaced: set[int]
    software: dict[int, Software] = field(default_factory=dict)
    instances: dict[int, GivenInstance] = field(default_factory=dict)
    topics: dict[int, frozenset[TopicName]] = field(default_factory=dict)


@dataclass(slots=True)
class PieceSummary:
    """The survey of a piece, which is valid only if the piece begins at ``start``.

    ``logs`` contains the steps of every key. ``fresh`` contains the assemblers of keys about which
    nothing was guessed. ``ended`` contains the ended connections of those keys. ``keys`` contains
    all keys, in the order in which they first appeared.
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
