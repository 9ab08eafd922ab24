"""Records with the columns of Spark's own Kafka source, and what else may be asked for.

The order and types are that source's. `RecordReader` gives most of them; what is made here is what
the file's place says, the type of timestamps as a number, and record headers as that source has
them: with texts for keys, and null where there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from flexwire.columnar.program import bits
from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.records.record import TimestampType

if TYPE_CHECKING:
    from flexwire.logs.reading import Damaged, LogPiece

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


def damaged_row(schema: pa.Schema, piece: LogPiece, found: Damaged) -> pa.RecordBatch:
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
