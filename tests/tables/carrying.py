"""Make rows of message tables with records, and the rows of records that objects make from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.schema.catalog import catalog
from flexwire.schema.resolve import ZERO_UUID
from flexwire.tables.message_schema import table_schema
from flexwire.tables.records import object_rows
from flexwire.tables.schema import RECORDS
from flexwire.tables.spec_places import RECORDS_FIELDS, RecordsField
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

PRODUCE, FETCH, SHARE_FETCH = RECORDS_FIELDS
NO_ID = uuid_text(ZERO_UUID)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Topic:
    """A topic of a message, with the records of its partitions by partition number."""

    name: str | None
    topic_id: str | None
    partitions: Sequence[tuple[int, bytes | None]] | None


@dataclass(frozen=True)
class Carrier:
    """A message's row: its frame and its topics, or None if its body could not be decoded."""

    index: int
    topics: Sequence[Topic] | None
    client_id: str | None = "billing"
    connection: str = field(default="10.0.0.9:50000>10.0.0.1:9092")

    @property
    def time(self) -> int:
        """Return the capture time, in microseconds."""
        return 1_700_000_000_000_000 + self.index


def message_rows(where: RecordsField, carriers: Iterable[Carrier]) -> pa.RecordBatch:
    """Return the rows of a message table, with only the columns that rows of records need."""
    rows = [
        {
            "connection": one.connection,
            "direction": catalog().entry(where.message).type.value,
            "frame_index": one.index,
            "time": one.time,
            "client_id": one.client_id,
            "body": None if one.topics is None else _body(where, one.topics),
        }
        for one in carriers
    ]
    return pa.RecordBatch.from_pylist(rows, schema=table_schema(where.message))


def _body(where: RecordsField, topics: Sequence[Topic]) -> dict[str, Any]:
    elements = []
    for topic in topics:
        partitions = [
            {where.partition: number, where.records: data}
            for number, data in topic.partitions or ()
        ]
        told = {
            where.partitions: None if topic.partitions is None else partitions,
            where.topic_name: topic.name,
            where.topic_id: topic.topic_id,
        }
        elements.append({name: value for name, value in told.items() if name is not None})
    return {where.topics: elements}


def expected_rows(
    where: RecordsField, carriers: Iterable[Carrier], names: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the rows of the records table, partition by partition and record by record."""
    direction = catalog().entry(where.message).type.value
    for one in carriers:
        for topic in one.topics or ():
            identity = _text(topic.topic_id) if where.topic_id else None
            name = _text(topic.name) if where.topic_name else None
            if name is None and identity is not None:
                name = names.get(identity)
            for number, data in topic.partitions or ():
                of_frame = (one.connection, direction, one.index, one.time, one.client_id)
                for row, _ in object_rows(data or b""):
                    yield (where.source, *of_frame, name, identity, number, *row)


def _text(value: str | None) -> str | None:
    return None if value in {"", NO_ID} else value


def as_table(rows: Iterable[Row]) -> pa.Table:
    """Return these rows in the schema of the records table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(RECORDS)
    arrays = [pa.array(column, one.type) for column, one in zip(columns, RECORDS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=RECORDS)
