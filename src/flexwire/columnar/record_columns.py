"""The columns of records: while a kernel fills them, and as Arrow arrays.

`RECORD_COLUMNS` and `BATCH_COLUMNS` list the names and types of the columns.

Copying a string to every row takes as long as copying a key, and Spark does not accept
dictionaries. Nearly always, however, all rows contain the same string. The column of strings is
then a slice of a column that was created earlier.

These columns are used for columnar decoding, and for the ``records`` table of an analysis. Spark
does not accept dictionaries, unsigned integers or timestamps in milliseconds, so none of these are
used.
"""

from __future__ import annotations

from functools import cache, cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.program import MOST, bits
from flexwire.kernels import load_kernel
from flexwire.records.record import COMPRESSIONS, TimestampType
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    NO_VALUE,
    RECORD_BATCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from flexwire.wire.limits import FIRST_MILLISECOND, LAST_MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from flexwire.columnar.arrays import NumpyArray
    from flexwire.records import Record, RecordBatch


# The largest number of rows in a column that is kept. A group of 64-byte records has fewer rows.
_KEPT = 1 << 18


_TEXT = pa.string()
MOST_OF_TEXTS = MOST
"""The largest size, in bytes, of a column of repeated strings. Longer columns are divided into
chunks.
"""


class RepeatedTexts:
    """The strings that a column can contain, with a number for each."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [text.encode() for text in texts]
        self._longest = max(map(len, self._texts))
        self._columns: dict[int, tuple[int, pa.Buffer, pa.Buffer]] = {}

    def repeated(self, numbers: NumpyArray, counts: NumpyArray) -> pa.StringArray | pa.ChunkedArray:
        """Return a column that repeats each string by its count, in chunks if necessary.

        >>> RepeatedTexts(["none", "zstd"]).repeated(np.array([1, 0]), np.array([2, 1])).to_pylist()
        ['zstd', 'zstd', 'none']
        """
        if len(numbers) == 1 and counts[0] <= MOST_OF_TEXTS // self._longest:
            return self.same(int(numbers[0]), int(counts[0]))
        rows, most = int(counts.sum()), MOST_OF_TEXTS // self._longest
        if rows > most:
            each = np.repeat(numbers.astype(np.int8), counts)
            parts = (each[start : start + most] for start in range(0, rows, most))
            return pa.chunked_array(
                [self.repeated(part, np.ones_like(part, int)) for part in parts]
            )
        if not rows or (numbers == numbers[0]).all():
            return self.same(int(numbers[0]) if rows else 0, rows)
        return self._each.take(pa.array(np.repeat(numbers, counts)))

    @cached_property
    def _each(self) -> pa.StringArray:
        # If pandas is installed, `pyarrow.array` imports it. That import takes longer than reading
        # a first batch.
        ends = np.cumsum([0, *map(len, self._texts)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(self._texts))]
        return pa.Array.from_buffers(pa.string(), len(self._texts), buffers)

    def same(self, number: int, rows: int) -> pa.StringArray:
        """Return a column that contains the same string in each row."""
        size = len(self._texts[number])
        kept_rows, ends, data = self._columns.get(number, (-1, None, None))
        if kept_rows < rows:
            # The column has twice as many rows as requested, because the next batch may have
            # slightly more rows.
            kept_rows = max(rows, min(2 * rows, _KEPT))
            ends = pa.py_buffer(np.arange(kept_rows + 1, dtype=np.int32) * np.int32(size))
            data = pa.py_buffer(self._texts[number] * kept_rows)
            if kept_rows <= _KEPT:
                self._columns[number] = kept_rows, ends, data
        buffers = [None, ends.slice(0, 4 * rows + 4), data.slice(0, rows * size)]
        return pa.Array.from_buffers(_TEXT, rows, buffers, 0)


MOMENT = pa.timestamp("us", tz="UTC")
_HEADER = pa.struct([pa.field("key", pa.binary(), nullable=False), ("value", pa.binary())])
RECORD_COLUMNS = {
    "offset": pa.int64(),
    "timestamp": MOMENT,
    "timestamp_type": pa.string(),
    "key": pa.binary(),
    "value": pa.binary(),
    # Keys are bytes, because the format does not require UTF-8. You can cast the keys to string.
    "headers": pa.list_(pa.field("item", _HEADER, nullable=False)),
}
"""The columns of a record. A timestamp is null if it is missing or outside the years 1 to 9999,
which are the limits of Spark's timestamps and Python's dates.
"""
BATCH_COLUMNS = {
    "batch_position": pa.int64(),
    "batch_size": pa.int64(),
    "magic": pa.int8(),
    "compression": pa.string(),
    "base_offset": pa.int64(),
    "last_offset": pa.int64(),
    "partition_leader_epoch": pa.int32(),
    "max_timestamp": MOMENT,
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "base_sequence": pa.int32(),
    "is_transactional": pa.bool_(),
    "is_control": pa.bool_(),
    "has_delete_horizon": pa.bool_(),
}
"""Optional columns that contain facts about a record's batch. As in `RecordBatch`, a missing value
is -1.
"""


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """Return the schema of the named columns, in order. Raises `KeyError` for an unknown name."""
    return _schema_of(tuple(columns))


@cache
def _schema_of(columns: tuple[str, ...]) -> pa.Schema:
    types = RECORD_COLUMNS | BATCH_COLUMNS
    return pa.schema([(name, types[name]) for name in columns])


def moment(milliseconds: int) -> int | None:
    """Return a record's timestamp as a value of `MOMENT`.

    >>> moment(1700000000000), moment(-1), moment(2**62)
    (1700000000000000, None, None)
    """
    is_moment = FIRST_MILLISECOND <= milliseconds <= LAST_MILLISECOND and milliseconds != NO_VALUE
    return milliseconds * 1000 if is_moment else None


def to_moments(milliseconds: NumpyArray) -> NumpyArray | None:
    """Convert record timestamps to values of `MOMENT` in place, as `moment` does.

    Returns the validity of the values, or None if there are no nulls.
    """
    valid = None
    if milliseconds.min(initial=0) < 0 or milliseconds.max(initial=0) > LAST_MILLISECOND:
        valid = (milliseconds >= FIRST_MILLISECOND) & (milliseconds <= LAST_MILLISECOND)
        valid &= milliseconds != NO_VALUE
        milliseconds[~valid] = 0
    np.multiply(milliseconds, 1000, out=milliseconds)
    return valid


def _headers(record: Record) -> list[dict[str, bytes | None]]:
    return [{"key": key, "value": value} for key, value in record.headers]


OF_RECORD: dict[str, Callable[[Record], Any]] = {
    "offset": attrgetter("offset"),
    "timestamp": lambda record: moment(record.timestamp),
    "key": attrgetter("key"),
    "value": attrgetter("value"),
    "headers": _headers,
}
"""For each column, the function that returns its value for a record object."""
OF_BATCH: dict[str, Callable[[RecordBatch], Any]] = {
    **{name: attrgetter(name) for name in BATCH_COLUMNS},
    "timestamp_type": lambda batch: batch.timestamp_type.value,
    "compression": lambda batch: batch.compression.value,
    "batch_position": attrgetter("position"),
    "batch_size": attrgetter("size"),
    "max_timestamp": lambda batch: moment(batch.max_timestamp),
}
"""For each column that contains a fact about the batch, the function that returns this fact."""

_TYPES = list(TimestampType)
_CREATE_TIME = _TYPES.index(TimestampType.CREATE_TIME)
_APPEND_TIME = _TYPES.index(TimestampType.LOG_APPEND_TIME)
# String columns: the strings, the bits of the batch's attributes that select a string, and the
# number of the string for each value of these bits.
_TEXTS = {
    "compression": (RepeatedTexts(COMPRESSIONS), COMPRESSION_MASK, np.arange(COMPRESSION_MASK + 1)),
    "timestamp_type": (
        RepeatedTexts(_TYPES),
        TIMESTAMP_TYPE_MASK,
        np.repeat([_CREATE_TIME, _APPEND_TIME], [TIMESTAMP_TYPE_MASK, 1]),
    ),
}
_NUMBERS = {
    "batch_position": "position",
    "batch_size": "size",
    "base_offset": "base_offset",
    "partition_leader_epoch": "partition_leader_epoch",
    "max_timestamp": "max_timestamp",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "base_sequence": "base_sequence",
}
_FLAGS = {
    "is_transactional": TRANSACTIONAL_MASK,
    "is_control": CONTROL_MASK,
    "has_delete_horizon": DELETE_HORIZON_MASK,
}
# The columns whose size depends on the contents of the records.
_WHOLE = dict.fromkeys(("key", "value", "headers", "header key", "header value"), 1.0)
# The function that allocates buffers for columns.
allocate_room = pa.allocate_buffer
# If a batch has at most this many bytes, all of its columns remain in memory while any of them is
# used. Passing them on separately would increase the reading time by a third.
_SMALL = 1 << 16
# Arrow's functions that import columns from C.
_BATCH_FROM_C, _ARRAY_FROM_C = pa.RecordBatch._import_from_c, pa.Array._import_from_c  # noqa: SLF001 - Arrow's own documentation uses these names


class SizeHints:
    """The room that the records of earlier batches needed, per byte of these batches."""

    __slots__ = ("share",)

    def __init__(self) -> None:
        # At first, any column might need all of the bytes.
        self.share = _WHOLE.copy()


class RecordColumnBuilder:
    """Memory for the records of at least one batch, which a kernel fills.

    ``limits`` contains the lowest and highest wanted offsets, and the lowest and highest wanted
    timestamps. ``bounds`` contains the largest possible number of records in the batches, the bytes
    of the batches, and the bytes of the largest batch.
    """

    def __init__(
        self,
        columns: Sequence[str],
        limits: tuple[int, int, int, int],
        bounds: tuple[int, int, int],
        hints: SizeHints,
        *,
        check_crc: bool,
    ) -> None:
        self._columns = columns
        self._hints = hints
        self._check_crc = check_crc
        self._is_small = bounds[1] <= _SMALL
        allocate = None if self._is_small else allocate_room
        make = load_kernel("records_read").RecordColumns
        self._run = make(allocate, columns, limits, bounds, hints.share)

    def read(self, batches: NumpyArray, first: int, data: NumpyArray) -> tuple[int, bool]:
        """Read the batches of a table, starting at ``first``. Positions are counted from ``data``.

        Returns the row of the batch at which reading stopped, and whether that batch was refused.
        If it was not refused, there is no room for it, or the table has ended.
        """
        stopped: tuple[int, bool] = self._run.read(batches, first, data, self._check_crc)
        return stopped

    @property
    def rows(self) -> int:
        """The number of records so far."""
        rows: int = self._run.rows
        return rows

    def to_arrow(self, batches: NumpyArray) -> list[pa.RecordBatch]:
        """Return the records of the given batches so far, nearly always as a single Arrow batch."""
        size = load_kernel("batches").bounds(batches)[1]
        self._hints.share.update(self._run.shares(size))
        columns = [
            name if name in OF_RECORD else _batch_column(name, batches, batches["rows"])
            for name in self._columns
        ]
        schema = schema_of(self._columns)
        # A small column contains its strings in one piece rather than in chunks.
        if self._is_small:
            return [self._run.take_batch(columns, _BATCH_FROM_C, schema)]
        arrays = [
            self._run.take_column(one, _ARRAY_FROM_C, kind) if isinstance(one, str) else one
            for one, kind in zip(columns, schema.types, strict=True)
        ]
        batches_made: list[pa.RecordBatch] = pa.Table.from_arrays(
            arrays, schema=schema
        ).to_batches()
        return batches_made


def _moments(data: pa.Buffer, rows: int, valid: NumpyArray | None) -> pa.Array:
    return pa.Array.from_buffers(MOMENT, rows, [None if valid is None else bits(valid), data])


def _batch_column(name: str, batches: NumpyArray, counts: NumpyArray) -> pa.Array:
    """Return a column in which a fact about each batch is repeated for the batch's records."""
    attributes = batches["attributes"]
    if name in _TEXTS:
        texts, mask, numbers = _TEXTS[name]
        # For a single batch, NumPy would take longer than building the column.
        if len(batches) == 1 and (rows := counts.item()) <= _KEPT:
            return texts.same(numbers.item(attributes.item() & mask), rows)
        return texts.repeated(numbers[attributes & mask], counts)
    if name in _FLAGS:
        facts = attributes & _FLAGS[name] != 0
    elif name == "magic":
        facts = np.full(len(batches), RECORD_BATCH)
    elif name == "last_offset":
        facts = batches["base_offset"] + batches["last_offset_delta"]
    else:
        facts = batches[_NUMBERS[name]]
    repeated = np.repeat(facts, counts)
    if name == "max_timestamp":
        valid = to_moments(repeated)
        return _moments(pa.py_buffer(repeated), len(repeated), valid)
    return pa.array(repeated, BATCH_COLUMNS[name])


def batch_fact(name: str, batches: NumpyArray) -> pa.Array:
    """Return a column of `BATCH_COLUMNS`, or of the timestamp types, with one value per batch."""
    return _batch_column(name, batches, np.ones(len(batches), np.int64))


def from_batch(
    batch: RecordBatch, records: Sequence[Record], columns: Sequence[str]
) -> pa.RecordBatch:
    """Return the columns of records that were read as objects, all from the same batch."""
    schema = schema_of(columns)
    arrays = [
        pa.array([OF_RECORD[name](record) for record in records], kind)
        if name in OF_RECORD
        else pa.repeat(pa.scalar(OF_BATCH[name](batch), kind), len(records))
        for name, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
