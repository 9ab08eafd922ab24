"""The columns of records: which there are, and how they are filled and made Arrow arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.buffers import MOST, allocate, bits, buffer
from flexwire.columnar.program import address
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - a word in front of some fifty
from flexwire.records.attributes import COMPRESSIONS, TimestampType
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    RECORD_BATCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from flexwire.records import Record, RecordBatch

    Words = np.ndarray[Any, Any]

_HEADER = pa.struct([pa.field("key", pa.binary(), nullable=False), ("value", pa.binary())])
_NAMES = pa.dictionary(pa.int8(), pa.string())
MOMENT = pa.timestamp("ms", tz="UTC")
RECORD_COLUMNS = {
    "offset": pa.int64(),
    "timestamp": MOMENT,
    "timestamp_type": _NAMES,
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.field("item", _HEADER, nullable=False)),
}
"""What a record has. A timestamp is null where there is none: -1, and all of magic 0."""
BATCH_COLUMNS = {
    "batch_position": pa.int64(),
    "batch_size": pa.int64(),
    "magic": pa.int8(),
    "compression": _NAMES,
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
"""What a record has of its batch, where it is asked for; as `RecordBatch` says, -1 included."""


def _strings(names: Iterable[str]) -> pa.Array:
    # `pyarrow.array` imports pandas where there is one, which takes longer than a first batch.
    data = [one.encode() for one in names]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(pa.string(), len(data), buffers)


_COMPRESSIONS, _TIMESTAMP_TYPES = _strings(COMPRESSIONS), _strings(TimestampType)
_CREATE_TIME = list(TimestampType).index(TimestampType.CREATE_TIME)
_APPEND_TIME = list(TimestampType).index(TimestampType.LOG_APPEND_TIME)
_NO_TIMESTAMP = -1
_WORD = 8
_NUMBERS = {
    "batch_position": L.B_POSITION,
    "batch_size": L.B_SIZE,
    "base_offset": L.B_BASE_OFFSET,
    "partition_leader_epoch": L.B_EPOCH,
    "max_timestamp": L.B_MAX_TIMESTAMP,
    "producer_id": L.B_PRODUCER,
    "producer_epoch": L.B_PRODUCER_EPOCH,
    "base_sequence": L.B_SEQUENCE,
}
_FLAGS = {
    "is_transactional": TRANSACTIONAL_MASK,
    "is_control": CONTROL_MASK,
    "has_delete_horizon": DELETE_HORIZON_MASK,
}
_BYTES = {"key": L.R_KEY, "value": L.R_VALUE}
# Columns of bytes, and what counts their rows.
_COUNTERS = {
    L.R_KEY: L.R_ROWS,
    L.R_VALUE: L.R_ROWS,
    L.R_HEADER_KEY: L.R_HEADERS,
    L.R_HEADER_VALUE: L.R_HEADERS,
}
_MARGIN = 1.2


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """Give the schema of the columns named, in their order; `KeyError` for one there is not."""
    known = RECORD_COLUMNS | BATCH_COLUMNS
    return pa.schema([(name, known[name]) for name in columns])


class Hints:
    """What the records of earlier batches took, for each byte that they had on the wire."""

    def __init__(self) -> None:
        # Before anything is known, each column could take it all.
        self.share = dict.fromkeys((*_COUNTERS, L.R_HEADERS), 1.0)

    def room(self, column: int, size: int, largest: int) -> int:
        """Give how much room to make: what is likely, and for one batch more whatever it holds."""
        return min(MOST, int(self.share[column] * _MARGIN * size) + largest, size + largest)


class Columns:
    """Room for the records of some batches, at least for one of them; a kernel fills it.

    ``rows`` is how many records they have, ``size`` how many bytes, ``largest`` how many of these
    one batch has.
    """

    def __init__(
        self, columns: Collection[str], rows: int, size: int, largest: int, hints: Hints
    ) -> None:
        self.words = np.zeros(L.READ // _WORD, np.int64)
        self._kept: dict[int, Words] = {}
        self._hints = hints
        self._set(L.R_ROWS_CAPACITY, rows)
        if "offset" in columns:
            self._room(L.R_OFFSETS, 8 * rows)
        if "timestamp" in columns:
            self._room(L.R_TIMESTAMPS, 8 * rows)
        for name, column in _BYTES.items():
            if name in columns:
                self._bytes(column, rows, hints.room(column, size, largest))
        # A record header has a byte at least for its key's length and one for its value's.
        headers = hints.room(L.R_HEADERS, size, largest) // 2
        self._set(L.R_HEADERS_CAPACITY, headers)
        if "headers" in columns:
            self._room(L.R_HEADER_OFFSETS, 4 * rows + 4)
            for column in (L.R_HEADER_KEY, L.R_HEADER_VALUE):
                self._bytes(column, headers, hints.room(column, size, largest))

    def _set(self, word: int, value: int) -> None:
        self.words[word // _WORD] = value

    def get(self, word: int) -> int:
        """Give a word of the run."""
        return int(self.words[word // _WORD])

    def _room(self, word: int, size: int) -> None:
        room = self._kept[word] = allocate(max(size, _WORD))
        # Where there are offsets, this is the first.
        room[:_WORD] = 0
        self._set(word, address(room))

    def _bytes(self, column: int, rows: int, size: int) -> None:
        self._room(column + L.K_DATA, size + L.SPARE)
        self._set(column + L.K_CAPACITY, size)
        self._room(column + L.K_OFFSETS, 4 * rows + 4)
        self._room(column + L.K_VALID, rows)

    @property
    def rows(self) -> int:
        """How many records there are so far."""
        return self.get(L.R_ROWS)

    def to_arrow(self, columns: Sequence[str], batches: Words) -> pa.RecordBatch:
        """Give the records so far, which are those of the batches given."""
        self._learn(int((batches[:, L.B_END // _WORD] - batches[:, L.B_START // _WORD]).sum()))
        counts = batches[:, L.B_ROWS // _WORD]
        made = [self._column(name, batches, counts) for name in columns]
        return pa.RecordBatch.from_arrays(made, schema=schema_of(columns))

    def _learn(self, size: int) -> None:
        share = self._hints.share
        share[L.R_HEADERS] = 2 * self.get(L.R_HEADERS) / max(size, 1)
        for column, counter in _COUNTERS.items():
            if (offsets := self._kept.get(column + L.K_OFFSETS)) is not None:
                share[column] = _end(offsets, self.get(counter)) / max(size, 1)

    def _column(self, name: str, batches: Words, counts: Words) -> pa.Array:
        rows = self.rows
        if name == "offset":
            data = self._buffer(L.R_OFFSETS, 8 * rows)
            return pa.Array.from_buffers(pa.int64(), rows, [None, data])
        if name == "timestamp":
            valid = None
            if self.get(L.R_NO_TIMESTAMPS):
                stamps = self._kept[L.R_TIMESTAMPS][: 8 * rows].view(np.int64)
                valid = bits(stamps != _NO_TIMESTAMP)
            data = self._buffer(L.R_TIMESTAMPS, 8 * rows)
            return pa.Array.from_buffers(MOMENT, rows, [valid, data])
        if name in _BYTES:
            return self._binary(_BYTES[name], rows)
        if name == "headers":
            count = self.get(L.R_HEADERS)
            inner = [self._binary(one, count) for one in (L.R_HEADER_KEY, L.R_HEADER_VALUE)]
            items = pa.StructArray.from_arrays(inner, fields=list(_HEADER))
            offsets = self._buffer(L.R_HEADER_OFFSETS, 4 * rows + 4)
            kind = RECORD_COLUMNS[name]
            return pa.Array.from_buffers(kind, rows, [None, offsets], children=[items])
        return _batch_column(name, batches, counts)

    def _binary(self, column: int, rows: int) -> pa.Array:
        offsets = self._kept[column + L.K_OFFSETS]
        used = _end(offsets, rows)
        valid = None
        if self.get(column + L.K_NULLS):
            valid = bits(self._kept[column + L.K_VALID][:rows])
        ends = self._buffer(column + L.K_OFFSETS, 4 * rows + 4)
        data = self._buffer(column + L.K_DATA, used)
        return pa.Array.from_buffers(pa.binary(), rows, [valid, ends, data])

    def _buffer(self, word: int, size: int) -> pa.Buffer:
        return buffer(self._kept[word], size)


def _end(offsets: Words, rows: int) -> int:
    return int(offsets[4 * rows : 4 * rows + 4].view(np.int32)[0])


def _moments(milliseconds: Words) -> pa.Array:
    missing = milliseconds == _NO_TIMESTAMP
    valid = bits(~missing) if missing.any() else None
    data = pa.py_buffer(milliseconds)
    return pa.Array.from_buffers(MOMENT, len(milliseconds), [valid, data])


def _batch_column(name: str, batches: Words, counts: Words) -> pa.Array:
    """Give a fact of the batches for each of their records."""
    attributes = batches[:, L.B_ATTRIBUTES // _WORD]
    if name == "timestamp_type":
        is_append = attributes & TIMESTAMP_TYPE_MASK != 0
        return _named(np.where(is_append, _APPEND_TIME, _CREATE_TIME), counts, _TIMESTAMP_TYPES)
    if name == "compression":
        return _named(attributes & COMPRESSION_MASK, counts, _COMPRESSIONS)
    if name in _FLAGS:
        facts = attributes & _FLAGS[name] != 0
    elif name == "magic":
        facts = np.full(len(batches), RECORD_BATCH)
    elif name == "last_offset":
        facts = batches[:, L.B_BASE_OFFSET // _WORD] + batches[:, L.B_LAST_DELTA // _WORD]
    else:
        facts = batches[:, _NUMBERS[name] // _WORD]
    repeated = np.repeat(facts, counts)
    return (
        _moments(repeated) if name == "max_timestamp" else pa.array(repeated, BATCH_COLUMNS[name])
    )


def _named(codes: Words, counts: Words, names: pa.Array) -> pa.Array:
    codes = codes.astype(np.int8)
    if len(codes) and (codes == codes[0]).all():
        repeated = np.full(counts.sum(), codes[0])
    else:
        repeated = np.repeat(codes, counts)
    shared = pa.Array.from_buffers(pa.int8(), len(repeated), [None, pa.py_buffer(repeated)])
    # Codes stand for names: that they do need not be looked at again.
    return pa.DictionaryArray.from_arrays(shared, names, safe=False)


def from_batch(
    batch: RecordBatch, records: Sequence[Record], columns: Sequence[str]
) -> pa.RecordBatch:
    """Give the columns of records that were read into objects, all of one batch."""
    made = []
    for name, kind in zip(columns, schema_of(columns).types, strict=True):
        if name in {"offset", "key", "value"}:
            made.append(pa.array([getattr(one, name) for one in records], kind))
        elif name == "timestamp":
            made.append(_moments(np.array([one.timestamp for one in records], np.int64)))
        elif name == "headers":
            items = [[{"key": k, "value": v} for k, v in one.headers] for one in records]
            made.append(pa.array(items, kind))
        else:
            made.append(_of_batch(name, kind, batch, len(records)))
    return pa.RecordBatch.from_arrays(made, schema=schema_of(columns))


def _of_batch(name: str, kind: pa.DataType, batch: RecordBatch, rows: int) -> pa.Array:
    names = {"timestamp_type": _TIMESTAMP_TYPES, "compression": _COMPRESSIONS}.get(name)
    counts = np.array([rows])
    if names is not None:
        code = names.index(str(getattr(batch, name))).as_py()
        return _named(np.array([code]), counts, names)
    value = getattr(batch, {"batch_position": "position", "batch_size": "size"}.get(name, name))
    if name == "max_timestamp":
        return _moments(np.full(rows, value, np.int64))
    return pa.array([value] * rows, kind)
