"""The records of a piece of a log segment in columns, by a reader that needs nothing but the piece.

The file is read a few MiB at a time into one room that is used again. Control batches are never
records. What is damaged is an error, or is told in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flexwire.columnar.records import Mode, RecordReader, Wanted
from flexwire.errors import CaptureError, RecordError
from flexwire.logs.files import open_file
from flexwire.logs.query import EVERY, Bounds
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.wire.batch_layout import CONTROL_MASK, LENGTH_END, TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from io import BufferedReader

    import pyarrow as pa

    from flexwire.columnar.batch_digests import BatchDigests
    from flexwire.columnar.record_columns import Hints
    from flexwire.columnar.record_sums import Counting, RecordSums
    from flexwire.columnar.records import BatchHeaders
    from flexwire.logs.names import Partition
    from flexwire.storage.source import Source

    Words = np.ndarray[Any, Any]
    Skips = Callable[[BatchHeaders], Words]

# What is read at once, and given in about one batch: of four times as much every page is new memory
# when it is written, and none is in a cache any more when Spark sends it.
_ROOM: Final = 4 << 20


class Aborted(NamedTuple):
    """An aborted transaction: whose, from its first offset to that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Bytes of a segment that begin and end with a batch, and what of them is wanted.

    Attributes:
        replica: the directory that the log was found in.
        is_end: whether it ends with the log, which a broker that stopped may have torn.
        aborted: the transactions whose records are left out.
    """

    partition: Partition
    replica: str
    log: Source
    start: int
    stop: int
    is_end: bool
    offsets: Bounds = EVERY
    timestamps: Bounds = EVERY
    aborted: tuple[Aborted, ...] = ()


class Damaged(NamedTuple):
    """Where in its file something is not a record batch, and why.

    ``is_torn`` is what a broker cuts off when it starts: the log ends within a batch, or with zeros
    that were set aside.
    """

    position: int
    reason: str
    is_torn: bool


def read_piece(
    piece: LogPiece,
    columns: Sequence[str],
    *,
    mode: Mode = "FAILFAST",
    sums: RecordSums | None = None,
    of_transactions: bool = False,
    inflation: Inflation = INFLATION,
) -> Iterator[pa.RecordBatch | Damaged]:
    """Give the records of a piece, with columns of `RECORD_COLUMNS` and `BATCH_COLUMNS`.

    With ``sums`` most are counted there, and not given, as `RecordReader.count_into` says. With
    ``of_transactions`` other batches than those of transactions are passed over by their header.
    ``inflation`` bounds what each batch inflates to; one that inflates to more is damaged.

    A torn end is `Damaged` in both modes, anything else only in ``PERMISSIVE``; otherwise it is a
    `CaptureError`. Raises `StorageError` where the file is not the one that was listed.
    """
    wanted = Wanted(
        tuple(columns),
        piece.offsets.ends,
        piece.timestamps.ends,
        max_inflated=inflation.max_inflated,
        max_ratio=inflation.ratio,
    )
    hidden = _Hidden(piece.aborted, of_transactions=of_transactions)
    yield from _Reading(piece, wanted, hidden, mode, sums)


def read_headers(piece: LogPiece, hear: Callable[[int, BatchHeaders], None]) -> None:
    """Read the headers of all batches in a piece, past any damage.

    ``hear`` is given some at a time, and the byte of the file that their positions count from.
    """

    def skip_all(headers: BatchHeaders) -> Words:
        hear(reading.at, headers)
        return np.ones(len(headers.positions), bool)

    reading = _Reading(piece, Wanted(("magic",)), skip_all, "PERMISSIVE")
    for _ in reading:
        pass


def read_control_records(
    piece: LogPiece, columns: Sequence[str], *, mode: Mode = "FAILFAST"
) -> Iterator[pa.RecordBatch | Damaged]:
    """Give only the control records of a piece; columns, mode and errors as in `read_piece`."""

    def skip_others(headers: BatchHeaders) -> Words:
        skipped: Words = headers.attributes & CONTROL_MASK == 0
        return skipped

    yield from _Reading(piece, Wanted(tuple(columns), piece.offsets.ends), skip_others, mode)


def digest_piece(
    piece: LogPiece, digests: BatchDigests, inflation: Inflation = INFLATION
) -> Iterator[pa.RecordBatch | Damaged]:
    """Digest all batches of a piece, control batches too, past any damage.

    Gives what `BatchDigests.take` gives where there is no room for more; its positions, as those of
    damage, are in the file. A batch that inflates beyond ``inflation`` is damage.
    """

    def skip_none(headers: BatchHeaders) -> Words:
        # Which are found before any of them is read.
        digests.at = reading.at
        return np.zeros(len(headers.positions), bool)

    wanted = Wanted(
        ("magic",),
        piece.offsets.ends,
        max_inflated=inflation.max_inflated,
        max_ratio=inflation.ratio,
    )
    reading = _Reading(piece, wanted, skip_none, "PERMISSIVE", digests)
    yield from reading


class _Hidden:
    """Says which batches no consumer sees: control batches, and those of aborted transactions.

    With ``of_transactions`` those of no transaction are hidden as well.
    """

    def __init__(self, aborted: Iterable[Aborted], *, of_transactions: bool) -> None:
        self._kinds = CONTROL_MASK | (TRANSACTIONAL_MASK if of_transactions else 0)
        self._shown = TRANSACTIONAL_MASK if of_transactions else 0
        self._by_producer = by_producer(aborted)

    def __call__(self, headers: BatchHeaders) -> Words:
        hidden: Words = headers.attributes & self._kinds != self._shown
        if self._by_producer:
            is_of_transaction = headers.attributes & TRANSACTIONAL_MASK != 0
            producers = np.where(is_of_transaction, headers.producer_ids, -1)
            hidden |= in_aborted(producers, headers.base_offsets, self._by_producer)
        return hidden


def by_producer(aborted: Iterable[Aborted]) -> dict[int, list[Aborted]]:
    """Return the aborted transactions of each producer, in order."""
    found: dict[int, list[Aborted]] = {}
    for one in sorted(aborted):
        found.setdefault(one.producer_id, []).append(one)
    return found


def in_aborted(
    producers: Words, base_offsets: Words, aborted: Mapping[int, Sequence[Aborted]]
) -> Words:
    """Return which batches are in an aborted transaction of their producer.

    ``aborted`` has the transactions of each producer in order. A batch of no transaction has the
    producer -1.
    """
    found: Words = np.zeros(len(producers), bool)
    for producer in np.unique(producers).tolist():
        own = aborted.get(producer)
        if own is not None:
            rows = np.flatnonzero(producers == producer)
            found[rows] = _within(base_offsets[rows], own)
    return found


def _within(offsets: Words, aborted: Sequence[Aborted]) -> Words:
    """Give whether offsets are in one of a producer's aborted transactions."""
    firsts = np.array([one.first_offset for one in aborted], np.int64)
    lasts = np.array([one.last_offset for one in aborted], np.int64)
    rows = np.searchsorted(firsts, offsets, side="right") - 1
    is_within: Words = (rows >= 0) & (offsets <= lasts[rows])
    return is_within


class _Reading:
    """Reads a piece into its room, and gives the room to a `RecordReader` as often as it is full.

    Attributes:
        at: the byte of the file that the room begins with.
    """

    def __init__(
        self,
        piece: LogPiece,
        wanted: Wanted,
        skips: Skips,
        mode: Mode,
        sums: Counting | None = None,
    ) -> None:
        self.at = piece.start
        self._piece = piece
        self._wanted = wanted
        self._skips = skips
        self._mode: Mode = mode
        self._sums = sums
        self._hints: Hints | None = None
        self._left = piece.stop - piece.start
        self._room = np.empty(min(_ROOM, self._left), np.uint8)
        self._used = 0

    def __iter__(self) -> Iterator[pa.RecordBatch | Damaged]:
        with self._piece.log.open(self._piece.start, self._piece.stop) as file:
            while self._used or self._left:
                self._fill(file)
                yield from self._read()

    def _fill(self, file: BufferedReader) -> None:
        if self._used == len(self._room):
            # Not even one batch fits.
            grown = np.empty(min(2 * self._used, self._used + self._left), np.uint8)
            grown[: self._used] = self._room
            self._room = grown
        while self._left and self._used < len(self._room):
            stop = min(len(self._room), self._used + self._left)
            size = file.readinto(self._room[self._used : stop].data)
            self._used += size
            self._left -= size

    def _read(self) -> Iterator[pa.RecordBatch | Damaged]:
        is_cut = self._left > 0
        reader = RecordReader(
            self._room[: self._used],
            self._wanted,
            mode=self._mode,
            partial=self._piece.is_end and not is_cut,
            cut=is_cut,
            skips=self._skips,
            hints=self._hints,
        )
        if self._sums is not None:
            reader.count_into(self._sums)
        try:
            yield from reader
        except RecordError as error:
            if not self._is_zero(error.offset):
                raise CaptureError(
                    error.reason, source=self._piece.log.name, offset=self.at + error.offset
                ) from None
            yield self._zeros(error.offset)
            return
        self._hints = reader.hints
        yield from self._damage(reader)

    def _damage(self, reader: RecordReader) -> Iterator[Damaged]:
        """Tell what is damaged, and keep in the room what could not be read yet."""
        for error in reader.errors:
            if self._is_zero(error.offset):
                yield self._zeros(error.offset)
                return
            yield Damaged(self.at + error.offset, error.reason, is_torn=False)
        done = self._used
        if reader.partial is not None:
            done = reader.partial.position
            if self._is_zero(done):
                yield self._zeros(done)
                return
            if not self._left:
                remaining, size = reader.partial.size, reader.partial.declared_size
                reason = f"the log ends after {remaining} bytes of a batch"
                reason += "" if size is None else f" of {size}"
                yield Damaged(self.at + done, reason, is_torn=True)
                done = self._used
        self._room[: self._used - done] = self._room[done : self._used].copy()
        self.at += done
        self._used -= done

    def _is_zero(self, offset: int) -> bool:
        """Whether zeros fill the file from here on, which no batch begins with."""
        rest = self._room[offset : self._used]
        if len(rest) < LENGTH_END or rest.any() or self._piece.stop < self._piece.log.size:
            return False
        with open_file(self._piece.log) as file:
            return file.is_zero(self.at + self._used)

    def _zeros(self, offset: int) -> Damaged:
        position = self.at + offset
        size = self._piece.stop - position
        self._used = self._left = 0
        reason = f"{size} zeros to the end of the file: preallocated, or lost in a crash"
        if not self._piece.is_end and self._mode == "FAILFAST":
            raise CaptureError(reason, source=self._piece.log.name, offset=position)
        return Damaged(position, reason, is_torn=self._piece.is_end)
