"""The records of a piece of a log segment in columns, or counted where they are read.

The file is read a few MiB at a time into one room that is used again. Control batches are never
records. What is damaged is an error, or is told in its place.

The order and types are that source's. `RecordReader` gives most of them; what is made here is what
the file's place says, the type of timestamps as a number, and record headers as that source has
them: with texts for keys, and null where there are none.

A record on its way through Spark costs many times what its decoding does, so a question that only
counts and adds is answered before. The rows are those of one piece: a caller that reads several
adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.columnar.program import bits
from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.columnar.record_sums import (
    KEY_BYTES,
    KEY_SIZE,
    RECORDS,
    VALUE_BYTES,
    VALUE_SIZE,
    RecordSizeSums,
    is_sums,
)
from flexwire.columnar.records import Mode, RecordReader, RecordSelection
from flexwire.errors import CaptureError, RecordError
from flexwire.logs.files import EVERY, Bounds, open_file
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.records.record import TimestampType
from flexwire.wire.batch_layout import CONTROL_MASK, LENGTH_END, TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from io import BufferedReader

    from flexwire.columnar.batch_digests import BatchDigests
    from flexwire.columnar.batch_table import BatchHeaders
    from flexwire.columnar.record_columns import SizeHints
    from flexwire.columnar.record_sums import RecordCounter
    from flexwire.logs.files import Partition
    from flexwire.storage.input_file import InputFile

    Words = np.ndarray[Any, Any]
    Skips = Callable[[BatchHeaders], Words]


# What is read at once, and given in about one batch: of four times as much every page is new memory
# when it is written, and none is in a cache any more when Spark sends it.
_ROOM: Final = 4 << 20


class TransactionAbort(NamedTuple):
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
    log: InputFile
    start: int
    stop: int
    is_end: bool
    offsets: Bounds = EVERY
    timestamps: Bounds = EVERY
    aborted: tuple[TransactionAbort, ...] = ()


class BatchDamage(NamedTuple):
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
    sums: RecordSizeSums | None = None,
    of_transactions: bool = False,
    inflation: Inflation = INFLATION,
) -> Iterator[pa.RecordBatch | BatchDamage]:
    """Give the records of a piece, with columns of `RECORD_COLUMNS` and `BATCH_COLUMNS`.

    With ``sums`` most are counted there, and not given, as `RecordReader.count_into` says. With
    ``of_transactions`` other batches than those of transactions are passed over by their header.
    ``inflation`` bounds what each batch inflates to; one that inflates to more is damaged.

    A torn end is `BatchDamage` in both modes, anything else only in ``PERMISSIVE``; otherwise it is
    a `CaptureError`. Raises `StorageError` where the file is not the one that was listed.
    """
    wanted = RecordSelection(
        tuple(columns),
        piece.offsets.ends,
        piece.timestamps.ends,
        max_inflated=inflation.max_inflated,
        max_ratio=inflation.ratio,
    )
    hidden = _HiddenBatches(piece.aborted, of_transactions=of_transactions)
    yield from _PieceReader(piece, wanted, hidden, mode, sums)


def read_headers(piece: LogPiece, hear: Callable[[int, BatchHeaders], None]) -> None:
    """Read the headers of all batches in a piece, past any damage.

    ``hear`` is given some at a time, and the byte of the file that their positions count from.
    """

    def skip_all(headers: BatchHeaders) -> Words:
        hear(reading.at, headers)
        return np.ones(len(headers.positions), bool)

    reading = _PieceReader(piece, RecordSelection(("magic",)), skip_all, "PERMISSIVE")
    for _ in reading:
        pass


def read_control_records(
    piece: LogPiece, columns: Sequence[str], *, mode: Mode = "FAILFAST"
) -> Iterator[pa.RecordBatch | BatchDamage]:
    """Give only the control records of a piece; columns, mode and errors as in `read_piece`."""

    def skip_others(headers: BatchHeaders) -> Words:
        skipped: Words = headers.attributes & CONTROL_MASK == 0
        return skipped

    yield from _PieceReader(
        piece, RecordSelection(tuple(columns), piece.offsets.ends), skip_others, mode
    )


def digest_piece(
    piece: LogPiece, digests: BatchDigests, inflation: Inflation = INFLATION
) -> Iterator[pa.RecordBatch | BatchDamage]:
    """Digest all batches of a piece, control batches too, past any damage.

    Gives what `BatchDigests.take` gives where there is no room for more; its positions, as those of
    damage, are in the file. A batch that inflates beyond ``inflation`` is damage.
    """

    def skip_none(headers: BatchHeaders) -> Words:
        # Which are found before any of them is read.
        digests.at = reading.at
        return np.zeros(len(headers.positions), bool)

    wanted = RecordSelection(
        ("magic",),
        piece.offsets.ends,
        max_inflated=inflation.max_inflated,
        max_ratio=inflation.ratio,
    )
    reading = _PieceReader(piece, wanted, skip_none, "PERMISSIVE", digests)
    yield from reading


class _HiddenBatches:
    """Says which batches no consumer sees: control batches, and those of aborted transactions.

    With ``of_transactions`` those of no transaction are hidden as well.
    """

    def __init__(self, aborted: Iterable[TransactionAbort], *, of_transactions: bool) -> None:
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


def by_producer(aborted: Iterable[TransactionAbort]) -> dict[int, list[TransactionAbort]]:
    """Return the aborted transactions of each producer, in order."""
    found: dict[int, list[TransactionAbort]] = {}
    for one in sorted(aborted):
        found.setdefault(one.producer_id, []).append(one)
    return found


def in_aborted(
    producers: Words, base_offsets: Words, aborted: Mapping[int, Sequence[TransactionAbort]]
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


def _within(offsets: Words, aborted: Sequence[TransactionAbort]) -> Words:
    """Give whether offsets are in one of a producer's aborted transactions."""
    firsts = np.array([one.first_offset for one in aborted], np.int64)
    lasts = np.array([one.last_offset for one in aborted], np.int64)
    rows = np.searchsorted(firsts, offsets, side="right") - 1
    is_within: Words = (rows >= 0) & (offsets <= lasts[rows])
    return is_within


class _PieceReader:
    """Reads a piece into its room, and gives the room to a `RecordReader` as often as it is full.

    Attributes:
        at: the byte of the file that the room begins with.
    """

    def __init__(
        self,
        piece: LogPiece,
        wanted: RecordSelection,
        skips: Skips,
        mode: Mode,
        sums: RecordCounter | None = None,
    ) -> None:
        self.at = piece.start
        self._piece = piece
        self._wanted = wanted
        self._skips = skips
        self._mode: Mode = mode
        self._sums = sums
        self._hints: SizeHints | None = None
        self._left = piece.stop - piece.start
        self._room = np.empty(min(_ROOM, self._left), np.uint8)
        self._used = 0

    def __iter__(self) -> Iterator[pa.RecordBatch | BatchDamage]:
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

    def _read(self) -> Iterator[pa.RecordBatch | BatchDamage]:
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

    def _damage(self, reader: RecordReader) -> Iterator[BatchDamage]:
        """Tell what is damaged, and keep in the room what could not be read yet."""
        for error in reader.errors:
            if self._is_zero(error.offset):
                yield self._zeros(error.offset)
                return
            yield BatchDamage(self.at + error.offset, error.reason, is_torn=False)
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
                yield BatchDamage(self.at + done, reason, is_torn=True)
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

    def _zeros(self, offset: int) -> BatchDamage:
        position = self.at + offset
        size = self._piece.stop - position
        self._used = self._left = 0
        reason = f"{size} zeros to the end of the file: preallocated, or lost in a crash"
        if not self._piece.is_end and self._mode == "FAILFAST":
            raise CaptureError(reason, source=self._piece.log.name, offset=position)
        return BatchDamage(position, reason, is_torn=self._piece.is_end)


HEADERS: Final = "headers"
KAFKA_COLUMNS: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": RECORD_COLUMNS["timestamp"],
    "timestampType": pa.int32(),
    HEADERS: pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
}
"""The columns of Spark's Kafka source; it has record headers where they are asked for."""
# No record that is given is one of a control batch.
FACT_COLUMNS: Final = {name: kind for name, kind in BATCH_COLUMNS.items() if name != "is_control"}
"""What a record has of its batch."""
FILE, REPLICA, CORRUPT = "file", "replica", "_corrupt_record"
LOG_COLUMNS: Final = {
    **KAFKA_COLUMNS,
    **FACT_COLUMNS,
    FILE: pa.string(),
    REPLICA: pa.string(),
    CORRUPT: pa.string(),
}
"""All columns that there are. ``_corrupt_record`` says why something is not a record batch; a row
that has it has only the columns of its place."""

_TIMESTAMP_TYPE = "timestampType"
_LAST_ASCII: Final = 0x7F
# By the lengths of their names.
_TYPE_NUMBERS = np.zeros(1 + max(map(len, TimestampType)), np.int32)
_TYPE_NUMBERS[len(TimestampType.NO_TIMESTAMP_TYPE)] = -1
_TYPE_NUMBERS[len(TimestampType.LOG_APPEND_TIME)] = 1
_FROM = {_TIMESTAMP_TYPE: "timestamp_type"}
# A column of something, where nothing is asked for of the records but how many they are.
_LEAST = "magic"


class LogRows:
    """Makes rows of a schema: names of `LOG_COLUMNS`, with their types, in any order."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        known = RECORD_COLUMNS | BATCH_COLUMNS
        names = [_FROM.get(name, name) for name in schema.names]
        self.read = tuple(name for name in names if name in known) or (_LEAST,)
        """The columns to read."""
        self._repeated: dict[tuple[str, object], pa.Array] = {}

    def records(self, piece: LogPiece, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Give the rows of records that were read."""
        place = place_of(piece)
        made = [
            self._repeat(name, place[name], batch.num_rows)
            if name in place
            else _column(name, batch)
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def _repeat(self, name: str, value: object, count: int) -> pa.Array:
        """Give a value for each row, of which one piece's batches all have the same."""
        known = self._repeated.get((name, value))
        if known is None or len(known) < count:
            known = pa.repeat(pa.scalar(value, LOG_COLUMNS[name]), count)
            self._repeated = {key: one for key, one in self._repeated.items() if key[0] != name}
            self._repeated[name, value] = known
        return known.slice(0, count)


def place_of(piece: LogPiece) -> dict[str, object]:
    """Give the columns that all rows of a piece have alike."""
    return {
        "topic": piece.partition.topic,
        "partition": piece.partition.partition,
        FILE: piece.log.name,
        REPLICA: piece.replica,
        CORRUPT: None,
    }


def damaged_row(schema: pa.Schema, piece: LogPiece, found: BatchDamage) -> pa.RecordBatch:
    """Give the one row that says what is damaged, and where."""
    where = f"{piece.log.name}, byte {found.position}: {found.reason}"
    place = {**place_of(piece), CORRUPT: where}
    made = [pa.array([place.get(one.name)], one.type) for one in schema]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _column(name: str, batch: pa.RecordBatch) -> pa.Array:
    if name == _TIMESTAMP_TYPE:
        return _type_numbers(batch.column(_FROM[name]))
    column = batch.column(name)
    return _with_texts(column) if name == HEADERS else column


def _type_numbers(types: pa.Array) -> pa.Array:
    """Give types of timestamps as Kafka's Java numbers them: -1 for none, 0, 1."""
    # No two have names of one length, and lengths are compared many times as soon.
    ends = np.frombuffer(types.buffers()[1], np.int32)[types.offset :][: len(types) + 1]
    numbers = _TYPE_NUMBERS[np.diff(ends)]
    return pa.Array.from_buffers(pa.int32(), len(types), [None, pa.py_buffer(numbers)])


def _with_texts(headers: pa.Array) -> pa.Array:
    """Give record headers with texts for keys, and null where a record has none."""
    offsets = headers.offsets
    numbers = offsets.to_numpy(zero_copy_only=True)
    items = headers.values
    keys, values = items.field(0), items.field(1)
    inner = pa.StructArray.from_arrays([_texts(keys), values], ["key", "value"])
    kind = KAFKA_COLUMNS[HEADERS]
    valid = bits(np.diff(numbers) != 0)
    buffers = [valid, offsets.buffers()[1]]
    return pa.Array.from_buffers(kind, len(headers), buffers, children=[inner], offset=0)


def _texts(keys: pa.Array) -> pa.Array:
    data = keys.buffers()[2]
    if data is None or np.frombuffer(data, np.uint8).max(initial=0) <= _LAST_ASCII:
        return pa.Array.from_buffers(pa.string(), len(keys), keys.buffers(), offset=keys.offset)
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        # As Java reads text that is not.
        texts: list[Any] = [one.decode("utf-8", "replace") for one in keys.to_pylist()]
        return pa.array(texts, pa.string())


_SIZES: Final = {KEY_SIZE: "key", VALUE_SIZE: "value"}
_SUMS: Final = {KEY_BYTES: KEY_SIZE, VALUE_BYTES: VALUE_SIZE}
_OF_PLACE: Final = ("topic", "partition", FILE, REPLICA)
_OF_BATCH: Final = (
    "magic",
    "compression",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
)
GROUPS: Final = (*_OF_PLACE, *_SIZES, *_OF_BATCH)
"""The columns by which records can be counted; a size is that of a key or value in bytes."""
SUM_COLUMNS: Final = {
    **{name: LOG_COLUMNS.get(name, pa.int32()) for name in GROUPS},
    RECORDS: pa.int64(),
    **dict.fromkeys(_SUMS, pa.int64()),
    CORRUPT: pa.string(),
}
"""All columns of sums."""


# So many rows of sums are held, and then given.
_MOST: Final = 1 << 16


class LogSums:
    """Counts records by some `GROUPS`, and gives the sums as rows of a schema."""

    def __init__(self, schema: pa.Schema, groups: tuple[str, ...]) -> None:
        self.schema = schema
        # What a place says is the same for all of a piece. There must be something to group by.
        self._keys = [one for one in groups if one not in _OF_PLACE] or ["magic"]
        self._sums = {name: size for name, size in _SUMS.items() if name in schema.names}
        self._sizes = {
            one: _SIZES[one] for one in (*self._keys, *self._sums.values()) if one in _SIZES
        }
        self._facts = [one for one in self._keys if one in _OF_BATCH]
        self.read = (*self._sizes.values(), *self._facts)
        """The columns to read."""
        self.counted = RecordSizeSums(self._keys)
        """What kernels count, for `read_piece`."""
        self._counted: list[pa.Table] = []
        self._rows = 0

    @property
    def is_full(self) -> bool:
        """Whether the sums are to be taken before more are added: a piece may have any number."""
        return self._rows > _MOST

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the records of a batch, or add sums, whichever a reader gave."""
        if is_sums(batch):
            counted = pa.Table.from_batches([batch]).select([*self._keys, *self._sums, RECORDS])
        else:
            counted = self._count(batch)
        self._counted.append(counted)
        self._rows += len(counted)

    def _count(self, batch: pa.RecordBatch) -> pa.Table:
        columns = {name: pc.binary_length(batch.column(of)) for name, of in self._sizes.items()}
        columns |= {name: batch.column(name) for name in self._facts}
        sums = [(size, "sum") for size in self._sums.values()]
        grouped = pa.table(columns).group_by(self._keys, use_threads=False)
        counted = grouped.aggregate([*sums, ([], "count_all")])
        names = {f"{size}_sum": name for name, size in self._sums.items()}
        names["count_all"] = RECORDS
        return _renamed(counted, names)

    def take(self, piece: LogPiece) -> pa.RecordBatch:
        """Give the sums of what was added since the last time, all of one piece."""
        counted = self.counted.take()
        if counted.num_rows:
            self.add(counted)
        made: dict[str, pa.Array] = {}
        if self._counted:
            sums = (*self._sums, RECORDS)
            grouped = pa.concat_tables(self._counted).group_by(self._keys, use_threads=False)
            table = grouped.aggregate([(one, "sum") for one in sums])
            table = _renamed(table, {f"{one}_sum": one for one in sums}).combine_chunks()
            made = {name: table[name].combine_chunks() for name in table.column_names}
            # Of nulls alone there is no sum.
            made |= {one: pc.fill_null(made[one], 0) for one in sums}
        self._counted.clear()
        self._rows = 0
        count = len(made[RECORDS]) if made else 0
        place = place_of(piece)
        arrays = [
            made.get(one.name, pa.repeat(pa.scalar(place.get(one.name), one.type), count))
            for one in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _renamed(table: pa.Table, names: dict[str, str]) -> pa.Table:
    return table.rename_columns([names.get(one, one) for one in table.column_names])
