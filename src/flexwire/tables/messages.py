"""From frames of one message to the rows of its table, in columns.

Bodies are cut out of the payloads and decoded as one column. What columns refuse, or cannot say as
the reference says it, goes row by row through `flexwire.tables.bodies`: damaged and lenient bodies,
headers that are not the plain ones, and whatever holds credentials. Then all stand in order again.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.columnar import decode_messages
from flexwire.errors import UnknownMessageError
from flexwire.kernels.engine import kernel
from flexwire.protocol import carries_credentials
from flexwire.tables.bodies import Bodies
from flexwire.tables.body_places import BodyPlaces, Carried, bodies, body_places
from flexwire.tables.conforming import conform
from flexwire.tables.layouts import class_of
from flexwire.tables.message_schema import COPIED, NEEDED, READ, table_schema
from flexwire.tables.record_sizes import without_record_bytes
from flexwire.tables.schema import OUTCOMES
from flexwire.tables.tagged_uses import tagged_field_uses
from flexwire.tables.withheld import rows_of_metadata

if TYPE_CHECKING:
    from flexwire.codec import Message

    Words = np.ndarray[Any, Any]

# Rows that were put side by side are copied at once, unless there are many of them.
_RUNS = 16

__all__ = ["message_rows", "table_schema", "without_record_bytes"]


def message_rows(
    frames: pa.RecordBatch,
    name: str,
    *,
    release: str | None = None,
    show_credentials: bool = False,
    record_bytes: bool = True,
    rows: Words | None = None,
) -> pa.RecordBatch:
    """Give the rows of a message's table, one for each frame that carries it, in their order.

    These are all of ``frames``, or those that stand in some of its ``rows``, ascending.
    ``frames`` has at least the columns of `NEEDED`, ``release`` is that of the captured brokers
    where it is known. Without ``record_bytes`` there are only their sizes.
    """
    carried = Carried(frames.select(NEEDED.names), rows)
    parts = _Parts(len(carried))
    if kernel("decode") is not None and (show_credentials or not carries_credentials(name)):
        _put_columns(parts, carried, name, release, show_credentials=show_credentials)
    left = parts.missing()
    if len(left):
        some = carried.frames(left)
        for which, batch in Bodies(name, release, show_credentials).decode(some):
            parts.put(left[which], batch)
    made = parts.joined(table_schema(name, release))
    return made if record_bytes else without_record_bytes(made)


class _Parts:
    """Rows that come in parts, in any order."""

    def __init__(self, rows: int) -> None:
        self._places = np.full(rows, -1)
        self._batches: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._put = 0

    def put(self, rows: Words, batch: pa.RecordBatch, is_right: Words | None = None) -> None:
        """Put a batch of these rows; those that are not right will come in another part."""
        places = np.arange(self._put, self._put + len(rows))
        self._places[rows] = places if is_right is None else np.where(is_right, places, -1)
        self._batches.append(batch)
        self._starts.append(self._put)
        self._put += len(rows)

    def missing(self) -> Words:
        """Give the rows that are still to come."""
        return np.flatnonzero(self._places < 0)

    def joined(self, schema: pa.Schema) -> pa.RecordBatch:
        """Give all rows in order."""
        if not self._batches:
            return pa.RecordBatch.from_pylist([], schema)
        runs = self._runs()
        if runs == [0] and self._put == len(self._places):
            return self._batches[0]
        if len(runs) <= _RUNS:
            ends = [*runs[1:], len(self._places)]
            return pa.concat_batches(map(self._run, runs, ends))
        return pa.concat_batches(self._batches).take(pa.array(self._places))

    def _runs(self) -> list[int]:
        """Give where rows begin that stand side by side in a part."""
        begins = np.diff(self._places, prepend=-2) != 1
        begins |= np.isin(self._places, self._starts)
        return np.flatnonzero(begins).tolist()

    def _run(self, begin: int, end: int) -> pa.RecordBatch:
        place = self._places[begin]
        part = bisect_right(self._starts, place) - 1
        return self._batches[part].slice(place - self._starts[part], end - begin)


def _put_columns(
    parts: _Parts, carried: Carried, name: str, release: str | None, *, show_credentials: bool
) -> None:
    """Put the rows that columns are sure of, those of one layout at a time."""
    places = body_places(carried)
    versions = np.asarray(carried.facts["api_version"].fill_null(-1))
    by_class: dict[type[Message], dict[int, type[Message]]] = {}
    for version in pc.unique(pa.array(versions[places.is_sure])).to_pylist():
        made = class_of(name, version, release)
        with suppress(UnknownMessageError):
            made.definition.schema(version)
            by_class.setdefault(made, {})[version] = made
    for layouts in by_class.values():
        rows = np.flatnonzero(places.is_sure & np.isin(versions, [*layouts]))
        batch = _batch(carried, places, rows, layouts, table_schema(name, release))
        is_right = np.asarray(batch["body"].is_valid())
        if not show_credentials:
            is_right = is_right & ~rows_of_metadata(name, batch["body"])
        parts.put(rows, batch, is_right)


def _batch(
    carried: Carried,
    places: BodyPlaces,
    rows: Words,
    layouts: dict[int, type[Message]],
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Give the rows of some frames, whose versions one class reads; a refused body is null."""
    (made,) = set(layouts.values())
    frames = carried.facts
    versions = np.asarray(frames["api_version"].fill_null(-1))[rows]
    data = bodies(carried, places.starts, rows)
    decoded = decode_messages(made, data, pa.array(versions), mode="PERMISSIVE").values
    body = conform(decoded, schema.field("body").type)
    copied = frames.select(COPIED)
    read = pa.RecordBatch.from_arrays([places.header_versions, places.unknown_tagged_fields], READ)
    if len(rows) < len(frames):
        copied, read = copied.take(pa.array(rows)), read.take(pa.array(rows))
    columns = {
        **dict(zip(copied.schema.names, copied.columns, strict=True)),
        **dict(zip(read.schema.names, read.columns, strict=True)),
        "message": pa.repeat(made.entry.name, len(rows)),
        "body_version": pa.array(versions, pa.int32()),
        "withheld_credentials": pa.repeat(pa.scalar(0, pa.int32()), len(rows)),
        "tagged_fields": tagged_field_uses(body, versions, layouts),
        "error": pa.nulls(len(rows), pa.string()),
        "bytes": pa.nulls(len(rows), pa.binary()),
    }
    arrays = [columns[one.name] for one in OUTCOMES]
    return pa.RecordBatch.from_arrays([*arrays, body], schema=schema)
