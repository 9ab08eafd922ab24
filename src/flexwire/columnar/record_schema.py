"""The schema of records: the columns of a record and of its batch, in types that Spark takes.

It stands here once, for what is decoded in columns as for the ``records`` table of an analysis.
Spark takes no dictionaries, no unsigned integers and no milliseconds, so there are none.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.kernels.records.columns_layout import FIRST_MILLISECOND, LAST_MILLISECOND
from flexwire.wire.batch_layout import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.records import Record, RecordBatch

MOMENT = pa.timestamp("us", tz="UTC")
_HEADER = pa.struct([pa.field("key", pa.binary(), nullable=False), ("value", pa.binary())])
RECORD_COLUMNS = {
    "offset": pa.int64(),
    "timestamp": MOMENT,
    "timestamp_type": pa.string(),
    "key": pa.binary(),
    "value": pa.binary(),
    # Keys are bytes, because nothing on the wire makes them UTF-8: cast to string at will.
    "headers": pa.list_(pa.field("item", _HEADER, nullable=False)),
}
"""What a record has. A timestamp is null where there is none, and where it is in no year from 1 to
9999, which is as far as the timestamps of Spark and the dates of Python go."""
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
"""What a record has of its batch, where it is asked for; as `RecordBatch` says, -1 included."""


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """Give the schema of the columns named, in their order; `KeyError` for one there is not."""
    return _schema_of(tuple(columns))


@cache
def _schema_of(columns: tuple[str, ...]) -> pa.Schema:
    known = RECORD_COLUMNS | BATCH_COLUMNS
    return pa.schema([(name, known[name]) for name in columns])


def moment(milliseconds: int) -> int | None:
    """Give a timestamp of the wire as a value of `MOMENT`.

    >>> moment(1700000000000), moment(-1), moment(2**62)
    (1700000000000000, None, None)
    """
    is_moment = FIRST_MILLISECOND <= milliseconds <= LAST_MILLISECOND and milliseconds != NO_VALUE
    return milliseconds * 1000 if is_moment else None


def to_moments(milliseconds: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Make timestamps of the wire values of `MOMENT` where they stand, as `moment` does.

    Gives which of them are not null; None where there are no nulls.
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
"""The columns of a record that was read into an object: what gives the value of each."""
OF_BATCH: dict[str, Callable[[RecordBatch], Any]] = {
    **{name: attrgetter(name) for name in BATCH_COLUMNS},
    "timestamp_type": lambda batch: batch.timestamp_type.value,
    "compression": lambda batch: batch.compression.value,
    "batch_position": attrgetter("position"),
    "batch_size": attrgetter("size"),
    "max_timestamp": lambda batch: moment(batch.max_timestamp),
}
"""The columns that all the records of a batch have from it: what gives the value of each."""
