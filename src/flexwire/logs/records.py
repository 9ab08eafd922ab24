"""The records in a piece of a log segment as columns, or counts and sums of these records.

A reader reads a few MiB at a time into a single buffer, which is reused. Only
`read_control_records` returns the records of control batches. Damaged bytes raise an error, or are
reported in their place.

The columns have the same order and types as in Spark's Kafka source. `RecordReader` returns most of
them. This module adds the place in the file, the number of the timestamp type, and the record
headers in that source's form: keys are strings, and a record without headers has null.

Passing a record through Spark takes many times longer than decoding it. Queries that only count and
add are therefore answered here. The sums cover one piece; a caller that reads several pieces adds
them up.
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
from flexwire.errors import LOG_DAMAGED, CaptureError, RecordError
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


# The number of bytes that are read at once and returned in approximately one batch. With four times
# as many bytes, every memory page would be new, and no data would still be in a cache when Spark
# sends the batch.
_ROOM: Final = 4 << 20


class TransactionAbort(NamedTuple):
    """An aborted transaction of a producer, from its first offset to the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A range of complete batches in a segment, and the selection of their records.

    Attributes:
        replica: the directory in which the log was found.
        is_end: true if the piece ends with the log, whose last batch may be torn.
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
    """A place in a file that does not contain a valid record batch, and the reason.

    ``is_torn`` marks bytes that a broker removes when it starts: an incomplete batch at the end, or
    zeros that were allocated in advance.
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
    """Yield the records of a piece, with columns from `RECORD_COLUMNS` and `BATCH_COLUMNS`.

    With ``sums``, most records are only counted in these sums (see `RecordReader.count_into`). With
    ``of_transactions``, batches outside transactions are skipped once their header has been read.
    ``inflation`` limits the decompressed size of each batch. A larger batch counts as damaged.

    In both modes, a torn end is yielded as `BatchDamage`. Other damage is yielded as `BatchDamage`
    in the mode ``PERMISSIVE``, and raises `CaptureError` otherwise. Raises `StorageError` if the
    file is not the one that was listed.
    """
    request = RecordSelection(
        tuple(columns),
        piece.offsets.ends,
        piece.timestamps.ends,
        max_inflated=inflation.max_inflated,
        max_ratio=inflation.ratio,
    )
    hidden = _HiddenBatches(piece.aborted, of_transactions=of_transactions)
    yield from _PieceReader(piece, request, hidden, mode, sums)


def read_headers(piece: LogPiece, hear: Callable[[int, BatchHeaders], None]) -> None:
    """Read the headers of all batches in a piece, and skip damaged bytes.

    ``hear`` is called with several headers at a time, and with the file position from which the
    headers' positions are counted.
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
    """Yield only the control records in a piece; the arguments are those of `read_piece`."""

    def skip_others(headers: BatchHeaders) -> Words:
        skipped: Words = headers.attributes & CONTROL_MASK == 0
        return skipped

    yield from _PieceReader(
        piece, RecordSelection(tuple(columns), piece.offsets.ends), skip_others, mode
    )


def digest_piece(
    piece: LogPiece, digests: BatchDigests, inflation: Inflation = INFLATION
) -> Iterator[pa.RecordBatch | BatchDamage]:
    """Digest all batches of a piece, including control batches, and skip damaged bytes.

    Yields the result of `BatchDigests.take` whenever there is no room for more digests. All
    positions, including those of damaged bytes, are counted from the start of the file. A batch
    whose decompressed size exceeds ``inflation`` counts as damaged.
    """

    def skip_none(headers: BatchHeaders) -> Words:
        # Damage is found before any batch is read.
        digests.at = reading.at
        return np.zeros(len(headers.positions), bool)

    request = RecordSelection(
        ("magic",),
        piece.offsets.ends,
        max_inflated=inflation.max_inflated,
        max_ratio=inflation.ratio,
    )
    reading = _PieceReader(piece, request, skip_none, "PERMISSIVE", digests)
    yield from reading


class _HiddenBatches:
    """Decide which batches consumers do not see: control batches and aborted transactions.

    With ``of_transactions``, batches outside transactions are also hidden.
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
    aborts: dict[int, list[TransactionAbort]] = {}
    for abort in sorted(aborted):
        aborts.setdefault(abort.producer_id, []).append(abort)
    return aborts


def in_aborted(
    producers: Words, base_offsets: Words, aborted: Mapping[int, Sequence[TransactionAbort]]
) -> Words:
    """Return which batches are in an aborted transaction of their producer.

    ``aborted`` contains each producer's transactions in order. For a batch outside transactions,
    the producer is -1.
    """
    is_aborted: Words = np.zeros(len(producers), bool)
    for producer in np.unique(producers).tolist():
        own = aborted.get(producer)
        if own is not None:
            rows = np.flatnonzero(producers == producer)
            is_aborted[rows] = _within(base_offsets[rows], own)
    return is_aborted


def _within(offsets: Words, aborted: Sequence[TransactionAbort]) -> Words:
    """Return whether offsets lie in one of a producer's aborted transactions."""
    firsts = np.array([abort.first_offset for abort in aborted], np.int64)
    lasts = np.array([abort.last_offset for abort in aborted], np.int64)
    rows = np.searchsorted(firsts, offsets, side="right") - 1
    is_within: Words = (rows >= 0) & (offsets <= lasts[rows])
    return is_within


class _PieceReader:
    """Fill a buffer from a piece, and pass the buffer to a `RecordReader` whenever it is full.

    Attributes:
        at: the file position at which the buffer begins.
    """

    def __init__(
        self,
        piece: LogPiece,
        request: RecordSelection,
        skips: Skips,
        mode: Mode,
        sums: RecordCounter | None = None,
    ) -> None:
        self.at = piece.start
        self._piece = piece
        self._wanted = request
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
            # The buffer is too small to hold even one batch.
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
                ).under(LOG_DAMAGED) from None
            yield self._zeros(error.offset)
            return
        self._hints = reader.hints
        yield from self._damage(reader)

    def _damage(self, reader: RecordReader) -> Iterator[BatchDamage]:
        """Yield the damage. Keep the bytes in the buffer that could not be read yet."""
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
        """Return whether only zeros follow in the file; no batch begins with zeros."""
        rest = self._room[offset : self._used]
        if len(rest) < LENGTH_END or rest.any() or self._piece.stop < self._piece.log.size:
            return False
        with open_file(self._piece.log) as file:
            return file.is_zero(self.at + self._used)

    def _zeros(self, offset: int) -> BatchDamage:
        position = self.at + offset
        size = self._piece.stop - position
        self._used = self._left = 0
        reason = f"{size} zero bytes up to the end of the file: preallocated, or lost in a crash"
        if not self._piece.is_end and self._mode == "FAILFAST":
            damage = CaptureError(reason, source=self._piece.log.name, offset=position)
            raise damage.under(LOG_DAMAGED)
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
"""The columns of Spark's Kafka source. Record headers are present only if they are requested."""
# Control batches contain no records for consumers.
FACT_COLUMNS: Final = {name: kind for name, kind in BATCH_COLUMNS.items() if name != "is_control"}
"""Columns of a record that describe its batch."""
FILE, REPLICA, CORRUPT = "file", "replica", "_corrupt_record"
LOG_COLUMNS: Final = {
    **KAFKA_COLUMNS,
    **FACT_COLUMNS,
    FILE: pa.string(),
    REPLICA: pa.string(),
    CORRUPT: pa.string(),
}
"""All columns. ``_corrupt_record`` explains why some bytes are not a record batch. In such a row,
only the columns that describe the place also have values.
"""

_TIMESTAMP_TYPE = "timestampType"
_LAST_ASCII: Final = 0x7F
# The timestamp types, by the length of their names.
_TYPE_NUMBERS = np.zeros(1 + max(map(len, TimestampType)), np.int32)
_TYPE_NUMBERS[len(TimestampType.NO_TIMESTAMP_TYPE)] = -1
_TYPE_NUMBERS[len(TimestampType.LOG_APPEND_TIME)] = 1
_FROM = {_TIMESTAMP_TYPE: "timestamp_type"}
# If only the number of records is requested, this small column is read.
_LEAST = "magic"


class LogRows:
    """Build rows for a schema that contains some `LOG_COLUMNS` with their types, in any order."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        readable = RECORD_COLUMNS | BATCH_COLUMNS
        names = [_FROM.get(name, name) for name in schema.names]
        self.read = tuple(name for name in names if name in readable) or (_LEAST,)
        """The columns to read."""
        self._repeated: dict[tuple[str, object], pa.Array] = {}

    def records(self, piece: LogPiece, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows for records that were read."""
        place = place_of(piece)
        columns = [
            self._repeat(name, place[name], batch.num_rows)
            if name in place
            else _column(name, batch)
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _repeat(self, name: str, value: object, count: int) -> pa.Array:
        """Return one value for each row. All batches of a piece share the array."""
        repeated = self._repeated.get((name, value))
        if repeated is None or len(repeated) < count:
            repeated = pa.repeat(pa.scalar(value, LOG_COLUMNS[name]), count)
            self._repeated = {
                key: column for key, column in self._repeated.items() if key[0] != name
            }
            self._repeated[name, value] = repeated
        return repeated.slice(0, count)


def place_of(piece: LogPiece) -> dict[str, object]:
    """Return the columns whose value is the same in all rows of a piece."""
    return {
        "topic": piece.partition.topic,
        "partition": piece.partition.partition,
        FILE: piece.log.name,
        REPLICA: piece.replica,
        CORRUPT: None,
    }


def damaged_row(schema: pa.Schema, piece: LogPiece, damage: BatchDamage) -> pa.RecordBatch:
    """Return a single row that contains the place of the damage and the reason."""
    where = f"{piece.log.name}, byte {damage.position}: {damage.reason}"
    place = {**place_of(piece), CORRUPT: where}
    columns = [pa.array([place.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(name: str, batch: pa.RecordBatch) -> pa.Array:
    if name == _TIMESTAMP_TYPE:
        return _type_numbers(batch.column(_FROM[name]))
    column = batch.column(name)
    return _with_texts(column) if name == HEADERS else column


def _type_numbers(types: pa.Array) -> pa.Array:
    """Return timestamp types as the numbers in Kafka's Java code: -1 for none, 0, 1."""
    # The names have different lengths, and comparing lengths is many times faster.
    ends = np.frombuffer(types.buffers()[1], np.int32)[types.offset :][: len(types) + 1]
    numbers = _TYPE_NUMBERS[np.diff(ends)]
    return pa.Array.from_buffers(pa.int32(), len(types), [None, pa.py_buffer(numbers)])


def _with_texts(headers: pa.Array) -> pa.Array:
    """Return record headers with strings as keys, or null if a record has no headers."""
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
        # Java replaces invalid UTF-8 in the same way.
        texts: list[Any] = [key.decode("utf-8", "replace") for key in keys.to_pylist()]
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
"""The columns by which records can be counted. Sizes are the sizes of keys or values in bytes."""
SUM_COLUMNS: Final = {
    **{name: LOG_COLUMNS.get(name, pa.int32()) for name in GROUPS},
    RECORDS: pa.int64(),
    **dict.fromkeys(_SUMS, pa.int64()),
    CORRUPT: pa.string(),
}
"""All columns of sums."""


# After this many rows, the sums are returned.
_MOST: Final = 1 << 16


class LogSums:
    """Count records by some of the `GROUPS`, and return the sums as rows of a schema."""

    def __init__(self, schema: pa.Schema, groups: tuple[str, ...]) -> None:
        self.schema = schema
        # The columns that describe the place have the same value in the whole piece. At least one
        # column must remain.
        self._keys = [group for group in groups if group not in _OF_PLACE] or ["magic"]
        self._sums = {name: size for name, size in _SUMS.items() if name in schema.names}
        self._sizes = {
            name: _SIZES[name] for name in (*self._keys, *self._sums.values()) if name in _SIZES
        }
        self._facts = [name for name in self._keys if name in _OF_BATCH]
        self.read = (*self._sizes.values(), *self._facts)
        """The columns to read."""
        self.counted = RecordSizeSums(self._keys)
        """The kernels' counts, for `read_piece`."""
        self._counted: list[pa.Table] = []
        self._rows = 0

    @property
    def is_full(self) -> bool:
        """True if the sums must be taken before any more records are added."""
        return self._rows > _MOST

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the records of a batch, or add the sums that a reader has returned."""
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
        """Return the sums for one piece, from everything that was added since the last call."""
        counted = self.counted.take()
        if counted.num_rows:
            self.add(counted)
        columns: dict[str, pa.Array] = {}
        if self._counted:
            sums = (*self._sums, RECORDS)
            grouped = pa.concat_tables(self._counted).group_by(self._keys, use_threads=False)
            table = grouped.aggregate([(name, "sum") for name in sums])
            table = _renamed(table, {f"{name}_sum": name for name in sums}).combine_chunks()
            columns = {name: table[name].combine_chunks() for name in table.column_names}
            # The sum of nulls alone is null.
            columns |= {name: pc.fill_null(columns[name], 0) for name in sums}
        self._counted.clear()
        self._rows = 0
        count = len(columns[RECORDS]) if columns else 0
        place = place_of(piece)
        arrays = [
            columns.get(field.name, pa.repeat(pa.scalar(place.get(field.name), field.type), count))
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _renamed(table: pa.Table, names: dict[str, str]) -> pa.Table:
    return table.rename_columns([names.get(name, name) for name in table.column_names])
