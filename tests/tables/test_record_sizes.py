"""Without record bytes, a message's table contains the sizes of records instead, and is otherwise
the same.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from flexwire.codec import message
from flexwire.protocol.credentials import METADATA_TOPIC
from flexwire.schema.catalog import catalog
from flexwire.tables.message_schema import table_schema
from flexwire.tables.messages import message_rows
from flexwire.tables.schema import without_record_bytes
from flexwire.tables.spec_places import RECORDS_FIELDS
from tests.each import each
from tests.tables.message_frames import batch, bodies, frame

MESSAGES = {one.message: one.path for one in RECORDS_FIELDS}


def sized(value: Any, path: tuple[str, ...]) -> Any:
    """Return a value of the column with record bytes, converted to the form without them."""
    if isinstance(value, list):
        return [sized(one, path) for one in value]
    if value is None:
        return None
    name, *rest = path
    if rest:
        return {**value, name: sized(value[name], tuple(rest))}
    size = None if value[name] is None else len(value[name])
    return {key: value[key] for key in value if key != name} | {f"{name}_size": size}


def test_the_messages_with_records_and_no_others_have_another_type() -> None:
    changed = {
        name
        for name in catalog().names()
        if table_schema(name) != table_schema(name, record_bytes=False)
    }
    assert changed == set(MESSAGES)
    kind = table_schema("ProduceRequest", record_bytes=False).field("body").type
    for name in MESSAGES["ProduceRequest"][:-1]:
        kind = kind.field(name).type.value_type
    assert kind.field("records_size").type == pa.int64()
    assert kind.get_field_index("records") == -1


@each("name", sorted(MESSAGES))
def test_sizes_stand_where_the_bytes_stood(name: str) -> None:
    raws = [*bodies(name, range(8))]
    random.Random(name).shuffle(raws)
    frames = [frame(name, raw, version, n) for n, (raw, version) in enumerate(raws)]
    # A body that cannot be decoded becomes null.
    frames[3]["payload"] = frames[3]["payload"][:-1]
    rows = message_rows(batch(frames), name)
    found = message_rows(batch(frames), name, record_bytes=False)
    assert found.schema == table_schema(name, record_bytes=False)
    expected = [{**row, "body": sized(row["body"], MESSAGES[name])} for row in rows.to_pylist()]
    for one in (found, without_record_bytes(rows)):
        one.validate(full=True)
        assert one.to_pylist() == expected
    part = without_record_bytes(rows.slice(2, 5))
    part.validate(full=True)
    assert part.to_pylist() == expected[2:7]


def test_the_size_of_what_is_withheld_is_null() -> None:
    made: Any = message("FetchResponse")
    parts = [made.PartitionData(records=one) for one in (b"secret", b"", None)]
    topics = [
        made.FetchableTopicResponse(topic=name, partitions=parts)
        for name in (METADATA_TOPIC, "orders")
    ]
    given = batch([frame("FetchResponse", made(responses=topics).encode(12), 12)])
    rows = message_rows(given, "FetchResponse", record_bytes=False)
    found = [
        [part["records_size"] for part in topic["partitions"]]
        for topic in rows["body"][0]["responses"].as_py()
    ]
    assert found == [[None, 0, None], [6, 0, None]]


def test_other_tables_are_left_as_they_are() -> None:
    given = batch([frame("HeartbeatRequest", message("HeartbeatRequest")().encode(4), 4)])
    rows = message_rows(given, "HeartbeatRequest")
    assert without_record_bytes(rows) is rows
