"""The columns of records while a kernel fills them, and then Arrow arrays.

Which columns there are, and of which types, is in `flexwire.columnar.record_schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.buffers import MOST, allocate, bits, buffer
from flexwire.columnar.program import address
from flexwire.columnar.record_schema import (
    BATCH_COLUMNS,
    MOMENT,
    OF_BATCH,
    OF_RECORD,
    RECORD_COLUMNS,
    schema_of,
    to_moments,
)
from flexwire.columnar.repeats import Texts
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - a word in front of some fifty
from flexwire.records.record import COMPRESSIONS, TimestampType
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    RECORD_BATCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from flexwire.records import Record, RecordBatch

    Words = np.ndarray[Any, Any]

_COMPRESSIONS, _TIMESTAMP_TYPES = Texts(COMPRESSIONS), Texts(TimestampType)
_CREATE_TIME = list(TimestampType).index(TimestampType.CREATE_TIME)
_APPEND_TIME = list(TimestampType).index(TimestampType.LOG_APPEND_TIME)
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

    def begin(self, batches: Words, first: int, data: Words, *, check: bool) -> None:
        """Have batches of a table read, from the first on; ``check`` their crcs too."""
        self._set(L.R_TABLE, address(batches))
        self._set(L.R_FIRST, first)
        self._set(L.R_BATCHES, len(batches))
        self._set(L.R_DATA, address(data))
        self._set(L.R_DATA_END, address(data) + len(data))
        self._set(L.R_CHECK, check)

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

    def to_arrow(self, columns: Sequence[str], batches: Words) -> Iterator[pa.RecordBatch]:
        """Give the records so far, those of the batches given: nearly always as one batch."""
        self._learn(int((batches[:, L.B_END // _WORD] - batches[:, L.B_START // _WORD]).sum()))
        counts = batches[:, L.B_ROWS // _WORD]
        made = [self._column(name, batches, counts) for name in columns]
        schema = schema_of(columns)
        if any(isinstance(one, pa.ChunkedArray) for one in made):
            yield from pa.Table.from_arrays(made, schema=schema).to_batches()
        else:
            yield pa.RecordBatch.from_arrays(made, schema=schema)

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
            if self.get(L.R_NO_MOMENTS):
                moments = self._kept[L.R_TIMESTAMPS][: 8 * rows].view(np.int64)
                valid = moments != L.NO_MOMENT
                moments[~valid] = 0
            return _moments(self._buffer(L.R_TIMESTAMPS, 8 * rows), rows, valid)
        if name in _BYTES:
            return self._binary(_BYTES[name], rows)
        if name == "headers":
            count = self.get(L.R_HEADERS)
            inner = [self._binary(one, count) for one in (L.R_HEADER_KEY, L.R_HEADER_VALUE)]
            kind = RECORD_COLUMNS[name]
            items = pa.StructArray.from_arrays(inner, fields=list(kind.value_type))
            offsets = self._buffer(L.R_HEADER_OFFSETS, 4 * rows + 4)
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


def _moments(data: pa.Buffer, rows: int, valid: Words | None) -> pa.Array:
    return pa.Array.from_buffers(MOMENT, rows, [None if valid is None else bits(valid), data])


def _batch_column(name: str, batches: Words, counts: Words) -> pa.Array:
    """Give a fact of the batches for each of their records."""
    attributes = batches[:, L.B_ATTRIBUTES // _WORD]
    if name == "timestamp_type":
        is_append = attributes & TIMESTAMP_TYPE_MASK != 0
        return _TIMESTAMP_TYPES.repeated(np.where(is_append, _APPEND_TIME, _CREATE_TIME), counts)
    if name == "compression":
        return _COMPRESSIONS.repeated(attributes & COMPRESSION_MASK, counts)
    if name in _FLAGS:
        facts = attributes & _FLAGS[name] != 0
    elif name == "magic":
        facts = np.full(len(batches), RECORD_BATCH)
    elif name == "last_offset":
        facts = batches[:, L.B_BASE_OFFSET // _WORD] + batches[:, L.B_LAST_DELTA // _WORD]
    else:
        facts = batches[:, _NUMBERS[name] // _WORD]
    repeated = np.repeat(facts, counts)
    if name == "max_timestamp":
        valid = to_moments(repeated)
        return _moments(pa.py_buffer(repeated), len(repeated), valid)
    return pa.array(repeated, BATCH_COLUMNS[name])


def batch_fact(name: str, batches: Words) -> pa.Array:
    """Give a column of `BATCH_COLUMNS`, or the type of timestamps, once for each batch."""
    return _batch_column(name, batches, np.ones(len(batches), np.int64))


def from_batch(
    batch: RecordBatch, records: Sequence[Record], columns: Sequence[str]
) -> pa.RecordBatch:
    """Give the columns of records that were read into objects, all of one batch."""
    schema = schema_of(columns)
    made = [
        pa.array([OF_RECORD[name](one) for one in records], kind)
        if name in OF_RECORD
        else pa.repeat(pa.scalar(OF_BATCH[name](batch), kind), len(records))
        for name, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(made, schema=schema)
