"""Write columns as record batches: the reverse of `decode_records`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.arguments import refuse, to_int
from flexwire.columnar.program import allocate
from flexwire.columnar.record_columns import MOMENT
from flexwire.columnar.types import as_list, cast, validate, validate_nulls
from flexwire.errors import EncodeError
from flexwire.kernels import load_kernel
from flexwire.records import Record
from flexwire.records.body import write_records
from flexwire.records.compression import checked_level
from flexwire.records.encode import seal_batch
from flexwire.records.record import (
    Compression,
    TimestampType,
    compression_of,
    pack_attributes,
)
from flexwire.wire.batch_layout import (
    CRC_AT,
    CRC_SIZE,
    CRC_START,
    ENTRY,
    HEADER_FIELDS,
    HEADER_SIZE,
    NO_VALUE,
    RECORD_BATCH,
    crc32c,
)
from flexwire.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.columnar.arrays import NumpyArray


# The time unit in record batches.
_MILLISECONDS = pa.timestamp("ms", tz="UTC")
_PAIR = pa.struct([("key", pa.binary()), ("value", pa.binary())])
_HEADERS = "headers[]"
# The largest number of bytes that a record has in addition to its key, value and headers: its
# length, its attributes, both deltas, both lengths and the number of headers. Each record header
# adds two lengths of its own.
_RECORD, _HEADER = 5 + 1 + 10 + 5 + 5 + 5 + 5, 5 + 5
# The number of rows that are written at once.
_GROUP = 20_000
_HEADER_FIELDS = np.dtype([(name, f">{code}") for name, code in HEADER_FIELDS.items()])
MOST_RECORDS = 1000
"""The default number of records per batch."""


def encode_records(
    rows: pa.RecordBatch | pa.Table,
    *,
    records_per_batch: int = MOST_RECORDS,
    compression: Compression | str = Compression.NONE,
    level: int | None = None,
    timestamp_type: TimestampType | str = TimestampType.CREATE_TIME,
) -> bytes:
    """Encode rows as record batches of magic 2, one after another.

    ``rows`` contains columns with the names that `decode_records` uses: ``key``, ``value``,
    ``headers``, ``timestamp`` (timestamps of whole milliseconds, or milliseconds as int64) and
    ``offset``. If a column is missing, keys and values are null, there are no headers, timestamps
    are -1, and offsets are 0, 1, 2 and so on. Other columns are ignored. A batch contains at most
    ``records_per_batch`` records, all from the same chunk of a table.

    Raises `EncodeError`, with the rows, for values that a record cannot have and for a column of an
    invalid type. Raises `CodecError` for an array whose buffers do not match its type. The function
    refuses the same values as `encode_messages`, with the same error messages. For example, it
    refuses a null in a record's list of headers.
    """
    return b"".join(
        encode_record_pieces(
            rows,
            records_per_batch=records_per_batch,
            compression=compression,
            level=level,
            timestamp_type=timestamp_type,
        )
    )


def encode_record_pieces(
    rows: pa.RecordBatch | pa.Table,
    *,
    records_per_batch: int = MOST_RECORDS,
    compression: Compression | str = Compression.NONE,
    level: int | None = None,
    timestamp_type: TimestampType | str = TimestampType.CREATE_TIME,
) -> Iterator[bytes | memoryview]:
    """Encode rows as `encode_records` does, but yield the bytes in pieces of several batches each.

    If the caller releases each piece before requesting the next, for example after writing it to a
    file, memory use does not grow. Raises the `EncodeError` of `encode_records` when it reaches the
    row with the error.
    """
    records_per_batch = to_int(records_per_batch, "records_per_batch")
    if not isinstance(rows, pa.RecordBatch | pa.Table):
        raise refuse("rows", "an Arrow RecordBatch or Table", rows)
    if records_per_batch < 1:
        raise EncodeError(f"a batch must contain at least one record, got {records_per_batch}")
    attributes = pack_attributes(RECORD_BATCH, compression, timestamp_type, {})
    # A compression level that the codec does not support is refused even if there are no rows.
    level = checked_level(compression_of(attributes), level)
    done = 0
    for chunk in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        source = _ChunkColumns(chunk, done, records_per_batch)
        for group in source.groups():
            sealed = None if compression_of(attributes) != "none" else group.sealed(attributes)
            if sealed is not None:
                yield sealed
            else:
                yield from group.compressed(attributes, level)
        done += len(chunk)


@dataclass(frozen=True, slots=True)
class _BatchGroup:
    """Several batches that have been written with a gap in place of each header.

    Batch i contains the rows from ``firsts[i]`` to ``lasts[i]``. The bytes of batch i, with the
    gap, are from ``starts[i]`` to ``ends[i]``.
    """

    out: NumpyArray
    starts: NumpyArray
    ends: NumpyArray
    firsts: NumpyArray
    lasts: NumpyArray
    offsets: NumpyArray
    timestamps: NumpyArray

    def _fields(self) -> dict[str, NumpyArray]:
        newest = np.maximum.reduceat(self.timestamps[: self.lasts[-1]], self.firsts)
        return {
            "base_offset": self.offsets[self.firsts],
            "last_offset": self.offsets[self.lasts - 1],
            "base_timestamp": self.timestamps[self.firsts],
            "max_timestamp": newest,
        }

    def sealed(self, attributes: int) -> memoryview | None:
        """Write all headers into their gaps. Return None if any header does not fit."""
        fields = self._fields()
        deltas = fields["last_offset"] - fields["base_offset"]
        sizes = self.ends - self.starts - ENTRY.size
        if min(deltas) < 0 or max(deltas) > INT32_MAX or max(sizes) > INT32_MAX:
            return None
        headers = np.full(len(self.starts), NO_VALUE).astype(_HEADER_FIELDS)
        header_fields = {
            "base_offset": fields["base_offset"],
            "batch_length": sizes,
            "magic": RECORD_BATCH,
            "crc": 0,
            "attributes": attributes,
            "last_offset_delta": deltas,
            "base_timestamp": fields["base_timestamp"],
            "max_timestamp": fields["max_timestamp"],
            "record_count": self.lasts - self.firsts,
        }
        for name, value in header_fields.items():
            headers[name] = value
        gaps = self.starts[:, None] + np.arange(HEADER_SIZE)
        self.out[gaps] = headers.view(np.uint8).reshape(-1, HEADER_SIZE)
        if not self._seal():
            self._put_crcs()
        return self.out.data[: self.ends[-1]]

    def _seal(self) -> bool:
        """Have the kernel write the CRCs into the headers. Return False if there is no kernel."""
        if (room := load_kernel("records_write")) is None:
            return False
        room.seal(self.out, np.stack([self.starts, self.ends], axis=1))
        return True

    def _put_crcs(self) -> None:
        crcs = [
            crc32c(self.out[start:end].tobytes())
            for start, end in zip(
                (self.starts + CRC_START).tolist(), self.ends.tolist(), strict=True
            )
        ]
        places = (self.starts + CRC_AT)[:, None] + np.arange(CRC_SIZE)
        self.out[places] = np.array(crcs, ">u4").view(np.uint8).reshape(-1, CRC_SIZE)

    def compressed(self, attributes: int, level: int | None) -> Iterator[bytes]:
        """Yield the batches one by one, compressed as their attributes specify.

        Raises `EncodeError` for a batch that cannot be written.
        """
        fields = self._fields()
        for row, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            body = self.out[start + HEADER_SIZE : end].tobytes()
            facts = {name: int(values[row]) for name, values in fields.items()}
            count = int(self.lasts[row] - self.firsts[row])
            yield seal_batch(body, count, attributes, facts, level=level)


class _ChunkColumns:
    """The columns of a chunk. ``before`` is the number of rows before the chunk."""

    def __init__(self, chunk: pa.RecordBatch, before: int, each: int) -> None:
        self.before = before
        self.each = each
        rows = len(chunk)
        self._is_valid = False
        self.key, self.value = _binary(chunk, "key"), _binary(chunk, "value")
        self.headers = _headers(chunk)
        self._header_parts = [] if self.headers is None else _parts(self.headers.values)
        paths = ("key", "value", f"{_HEADERS}.key", f"{_HEADERS}.value")
        for column, path in zip((self.key, self.value, *self._header_parts), paths, strict=False):
            validate_nulls(column, path)
        self.offsets = _offsets(chunk, before, rows)
        self.timestamps = _timestamps(chunk, rows)
        room = load_kernel("records_write")
        columns = (self.offsets, self.timestamps, self.key, self.value)
        headers = () if self.headers is None else (self.headers, *self._header_parts)
        self._writer = room and room.RecordWriter(*columns, *headers)

    def groups(self) -> Iterator[_BatchGroup]:
        """Write all rows, several batches at a time."""
        first, rows = 0, len(self.offsets)
        while first < rows:
            last = min(rows, first + max(self.each, _GROUP // self.each * self.each))
            group = self._run(first, last) if self._writer else None
            if group is None:
                last = min(first + self.each, rows)
                group = self._ask(first, last)
            yield group
            first = int(group.lasts[-1])

    def _group(self, out: NumpyArray, extents: NumpyArray, first: int, last: int) -> _BatchGroup:
        firsts = np.arange(first, last, self.each)[: len(extents)]
        lasts = np.minimum(firsts + self.each, last)
        return _BatchGroup(
            out, extents[:, 0], extents[:, 1], firsts, lasts, self.offsets, self.timestamps
        )

    def _run(self, first: int, last: int) -> _BatchGroup | None:
        """Write batches with the kernel. Return None if the kernel refuses the first one."""
        batches = -(-(last - first) // self.each)
        if (most := self._most(first, last)) is None:
            return None
        room = allocate(most + HEADER_SIZE * batches)
        extents = np.empty((batches, 2), np.int64)
        written = self._writer.write(first, last, self.each, HEADER_SIZE, room, extents)
        return self._group(room, extents[:written], first, last) if written else None

    def _most(self, first: int, last: int) -> int | None:
        """Return the largest possible number of bytes of the records in some rows.

        Returns None if any offsets are invalid.
        """
        size = _RECORD * (last - first)
        size += _size(self.key, first, last) + _size(self.value, first, last)
        if self.headers is not None:
            start, end = (self.headers.offsets[row].as_py() for row in (first, last))
            if not 0 <= start <= end <= len(self.headers.values):
                return None
            size += _HEADER * (end - start)
            size += sum(_size(part, start, end) for part in self._header_parts)
        return size

    def _validate(self) -> None:
        """Check all offsets, but only once.

        The kernel checks an offset before using it. The code after the kernel does not check it
        again.
        """
        if not self._is_valid:
            for name in ("key", "value", "headers"):
                if (array := getattr(self, name)) is not None:
                    validate(array, name, full=True)
        self._is_valid = True

    def _ask(self, first: int, last: int) -> _BatchGroup:
        """Use objects to write a batch that the kernel refuses, so that errors are raised."""
        self._validate()
        headers: list[Any] = [[]] * (last - first)
        if self.headers is not None:
            items = self.headers[first:last].to_pylist()
            headers = [
                [header and (header["key"], header["value"]) for header in each] for each in items
            ]
        records = [
            Record(int(offset), int(timestamp), key, value, pairs)
            for offset, timestamp, key, value, pairs in zip(
                self.offsets[first:last],
                self.timestamps[first:last],
                self.key[first:last].to_pylist(),
                self.value[first:last].to_pylist(),
                headers,
                strict=True,
            )
        ]
        try:
            body, _ = write_records(records, records[0].offset, records[0].timestamp)
        except EncodeError as error:
            reason = f"{error.reason} (rows {self.before + first} to {self.before + last - 1})"
            raise EncodeError(reason, path=error.path) from None
        out = np.frombuffer(bytes(HEADER_SIZE) + body, np.uint8).copy()
        return self._group(out, np.array([[0, len(out)]]), first, last)


def _size(array: pa.Array, first: int, last: int) -> int:
    offsets = array.buffers()[1]
    if offsets is None or first == last:
        return 0
    ends = np.frombuffer(offsets, np.int32)
    size = int(ends[array.offset + last]) - int(ends[array.offset + first])
    # Decreasing offsets are refused later.
    return max(size, 0)


def _column(chunk: pa.RecordBatch, name: str) -> pa.Array | None:
    """Return a column by its name, or None if there is no such column."""
    places = chunk.schema.get_all_field_indices(name)
    if len(places) > 1:
        raise EncodeError(f"{len(places)} columns have this name", path=name)
    if not places:
        return None
    array = chunk.column(places[0])
    validate(array, name)
    return array


def _binary(chunk: pa.RecordBatch, name: str) -> pa.Array:
    array = _column(chunk, name)
    return pa.nulls(len(chunk), pa.binary()) if array is None else cast(array, pa.binary(), name)


def _headers(chunk: pa.RecordBatch) -> pa.ListArray | None:
    """Return the record headers as lists without nulls, or None if no record has any headers."""
    array = _column(chunk, "headers")
    if array is None or pa.types.is_null(array.type):
        return None
    if pa.types.is_map(array.type):
        array = cast(array, pa.list_(_PAIR), "headers")
    array = as_list(array, "headers")
    kind = array.type.value_type
    if not (pa.types.is_struct(kind) or pa.types.is_null(kind)):
        raise EncodeError(f"expected structs, got {kind}", path=_HEADERS)
    if pa.types.is_struct(kind):
        _check_fields([field.name for field in kind])
    if not (pa.types.is_struct(kind) and {field.type for field in kind} == {pa.binary()}):
        array = cast(array, pa.list_(_PAIR), "headers")
    if not array.null_count:
        return array
    validate_nulls(array, "headers")
    ends = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    if (np.diff(ends)[np.asarray(array.is_null())] > 0).any():
        # Null means no headers. Elements of null rows are left out.
        validate(array, "headers", full=True)
        return pc.fill_null(array, [])
    return pa.ListArray.from_arrays(array.offsets, array.values)


def _check_fields(names: list[str]) -> None:
    expected = [field.name for field in _PAIR]
    for name in names:
        if name not in expected or names.count(name) > 1:
            raise EncodeError(
                "record headers do not have this field, or the field is repeated",
                path=f"{_HEADERS}.{name}",
            )
    for name in expected:
        if name not in names:
            raise EncodeError("the column is missing", path=f"{_HEADERS}.{name}")


def _parts(items: pa.StructArray) -> list[pa.Array]:
    """Return the keys and values of record headers, which are null if the header is null."""
    if items.null_count:
        parts = dict(zip([field.name for field in items.type], items.flatten(), strict=True))
        return [parts[field.name] for field in _PAIR]
    return [items.field(field.name) for field in _PAIR]


def _offsets(chunk: pa.RecordBatch, before: int, rows: int) -> NumpyArray:
    array = _column(chunk, "offset")
    if array is None:
        return np.arange(before, before + rows, dtype=np.int64)
    array = cast(array, pa.int64(), "offset")
    if array.null_count:
        row = before + pc.index(array.is_null(), value=True).as_py()
        raise EncodeError(f"row {row} is null, but every record must have an offset", path="offset")
    return _numbers(array)


def _timestamps(chunk: pa.RecordBatch, rows: int) -> NumpyArray:
    array = _column(chunk, "timestamp")
    if array is None:
        return np.full(rows, NO_VALUE, np.int64)
    if array.type == MOMENT and (timestamps := _whole_milliseconds(array)) is not None:
        return timestamps
    is_moment = pa.types.is_timestamp(array.type)
    array = cast(array, _MILLISECONDS if is_moment else pa.int64(), "timestamp")
    return _numbers(array.view(pa.int64()), NO_VALUE)


def _whole_milliseconds(array: pa.TimestampArray) -> NumpyArray | None:
    """Cast microseconds to milliseconds in less than half of Arrow's time, or return None.

    None means that Arrow's cast would fail.
    """
    microseconds = _numbers(array.view(pa.int64()), 0)
    milliseconds = allocate(microseconds.nbytes).view(np.int64)
    np.floor_divide(microseconds, 1000, out=milliseconds)
    # No remainder is negative, so if the sum is 0, every remainder is 0. Sums wrap around at 64
    # bits.
    if (int(microseconds.sum()) - 1000 * int(milliseconds.sum())) % 2**64:
        return None
    if array.null_count:
        milliseconds[np.asarray(array.is_null())] = NO_VALUE
    return milliseconds


def _numbers(array: pa.Array, instead: int = 0) -> NumpyArray:
    """Return the numbers in a column, with a given number in place of each null."""
    # Arrow copies a column even if it has no nulls.
    array = pc.fill_null(array, instead) if array.null_count else array
    return np.ascontiguousarray(array.to_numpy(zero_copy_only=False))
