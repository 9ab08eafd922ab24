"""The tagged fields in a column of messages equal those on the wire."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.columnar.objects import message_column
from flexwire.columnar.types import message_type
from flexwire.tables.messages import message_rows
from flexwire.tables.tagged_fields import tagged_field_uses
from flexwire.wire.cursor import Reader
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Schema
from flexwire.wire.types import ArrayType
from tests.codec.made_up import made as made_up
from tests.codec.vectors import has_changed, load
from tests.each import each
from tests.tables.message_frames import batch, frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec import Message
    from flexwire.wire.types import Type

VECTORS = load()

NOW = "2+"


def use(path: str, tag: int, name: str | None, times: int, size: int | None = None) -> Any:
    return {"path": path, "tag": tag, "name": name, "times": times, "bytes": size}


def uses_of(name: str, *messages: tuple[Any, int]) -> list[Any]:
    given = [frame(name, one.encode(version), version) for one, version in messages]
    found: list[Any] = message_rows(batch(given), name)["tagged_fields"].to_pylist()
    return found


def test_what_has_its_default_is_not_counted() -> None:
    made: Any = message("ApiVersionsResponse")
    feature = made.FinalizedFeatureKey(name="a", max_version_level=1)
    some = made(finalized_features_epoch=7, finalized_features=[feature, feature])
    features = [made.SupportedFeatureKey(name="a", unknown_tagged_fields={9: b"xyz"})] * 2
    more = made(supported_features=features, zk_migration_ready=True)
    epoch, finalized = (use("", 1, "finalizedFeaturesEpoch", 1), use("", 2, "finalizedFeatures", 1))
    assert uses_of("ApiVersionsResponse", (made(), 4), (some, 3), (made(), 0), (more, 4)) == [
        [],
        [epoch, finalized],
        [],
        [
            use("", 0, "supportedFeatures", 1),
            use("supportedFeatures[]", 9, None, 2, 6),
            use("", 3, "zkMigrationReady", 1),
        ],
    ]


def test_uses_are_counted_in_the_message_whose_structures_have_them() -> None:
    made: Any = message("FetchResponse")
    leader = made.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    plain, led = made.PartitionData(), made.PartitionData(current_leader=leader)
    tagged = made.PartitionData(unknown_tagged_fields={500: b"a", 7: b"bc"})

    def fetched(*topics: list[Any]) -> Any:
        each = [made.FetchableTopicResponse(topic="t", partitions=one) for one in topics]
        return made(responses=each)

    given = [fetched([plain], [led, led]), fetched(), fetched([tagged], [tagged, led, plain])]
    expected = [
        [use("responses[].partitions[]", 1, "currentLeader", 2)],
        [],
        [
            use("responses[].partitions[]", 1, "currentLeader", 1),
            use("responses[].partitions[]", 7, None, 2, 4),
            use("responses[].partitions[]", 500, None, 2, 2),
        ],
    ]
    assert uses_of("FetchResponse", *[(one, 12) for one in given]) == expected
    # The same messages, mixed with rows of a version without tagged fields.
    mixed = [(fetched([plain]), 11), *[(one, 12) for one in given], (fetched([plain]), 4)]
    assert uses_of("FetchResponse", *mixed) == [[], *expected, []]


def test_bytes_that_are_withheld_have_no_size() -> None:
    made = message("HeartbeatRequest")
    tags = [{3: WITHHELD_BYTES}, {3: WITHHELD_BYTES, 4: b""}, {4: b"four"}]
    given = [(made(unknown_tagged_fields=one), 4) for one in tags]
    assert uses_of("HeartbeatRequest", *given) == [
        [use("", 3, None, 1)],
        [use("", 3, None, 1), use("", 4, None, 1, 0)],
        [use("", 4, None, 1, 4)],
    ]


FIELDS: list[dict[str, Any]] = [
    {"name": "Text", "type": "string", "versions": NOW, "tag": 0, "taggedVersions": NOW,
     "default": "a"},
    {"name": "None", "type": "string", "versions": NOW, "nullableVersions": NOW, "default": "null",
     "tag": 1, "taggedVersions": NOW},
    {"name": "Some", "type": "string", "versions": NOW, "nullableVersions": NOW, "default": "b",
     "tag": 2, "taggedVersions": NOW},
    {"name": "Ids", "type": "[]uuid", "versions": NOW, "nullableVersions": NOW, "tag": 3,
     "taggedVersions": NOW},
    {"name": "Ratio", "type": "float64", "versions": NOW, "default": "1.5", "tag": 4,
     "taggedVersions": "3+"},
    {"name": "Held", "type": "Held", "versions": NOW, "nullableVersions": NOW, "default": "null",
     "fields": [
         {"name": "Id", "type": "uuid", "versions": NOW, "tag": 0, "taggedVersions": NOW},
         {"name": "Size", "type": "int8", "versions": NOW, "default": "5", "tag": 1,
          "taggedVersions": NOW},
         {"name": "Word", "type": "string", "versions": NOW, "nullableVersions": NOW,
          "default": "c", "tag": 2, "taggedVersions": NOW},
     ]},
    {"name": "Maybe", "type": "Maybe", "versions": NOW, "nullableVersions": NOW, "default": "null",
     "tag": 6, "taggedVersions": NOW,
     "fields": [{"name": "Sign", "type": "int8", "versions": NOW}]},
    {"name": "Whole", "type": "Whole", "versions": NOW, "tag": 5, "taggedVersions": NOW,
     "fields": [
         {"name": "Names", "type": "[]string", "versions": NOW},
         {"name": "Old", "type": "int32", "versions": "2", "default": "7", "ignorable": True},
         {"name": "Within", "type": "Within", "versions": NOW,
          "fields": [{"name": "Flag", "type": "bool", "versions": NOW, "default": "true"}]},
     ]},
]  # fmt: skip


def on_the_wire(value: Any, kind: Type, path: str) -> Iterator[tuple[str, int, str | None, int]]:
    """Yield each tagged field of a value that the reference read: path, tag, name and bytes."""
    if isinstance(kind, NullableStruct):
        kind = kind.schema
    if value is None:
        return
    if isinstance(kind, ArrayType):
        for one in value:
            yield from on_the_wire(one, kind.element, f"{path}[]")
    if isinstance(kind, Schema):
        for tag, data in value.get(UNKNOWN_TAGGED_FIELDS, {}).items():
            yield path, tag, None, len(data)
        for one in kind.fields:
            if one.attribute in value:
                if one.tag is not None:
                    yield path, one.tag, one.json_name, 0
                inner = f"{path}.{one.json_name}".removeprefix(".")
                yield from on_the_wire(value[one.attribute], one.type, inner)


def counted_on_the_wire(data: bytes, schema: Schema) -> dict[Any, tuple[int, int | None]]:
    times: Counter[Any] = Counter()
    sizes: Counter[Any] = Counter()
    for path, tag, name, size in on_the_wire(schema.read(Reader(data)), schema, ""):
        times[path, tag, name] += 1
        sizes[path, tag, name] += size
    return {key: (count, sizes[key] if key[2] is None else None) for key, count in times.items()}


def counted(uses: list[dict[str, Any]]) -> dict[Any, tuple[int, int | None]]:
    found = {(one["path"], one["tag"], one["name"]): (one["times"], one["bytes"]) for one in uses}
    assert len(found) == len(uses)
    return found


@pytest.mark.parametrize("versions", [[2], [3], [2, 3], [2, 0, 3]])
def test_any_kind_of_field_is_counted_as_it_is_on_the_wire(versions: list[int]) -> None:
    made: Any = made_up(FIELDS)
    source = random.Random(repr(versions))
    given: dict[int, list[Any]] = {version: [] for version in versions}
    for seed in range(300):
        version = source.choice(versions)
        one = random_message(made, version, seed)
        if source.random() < 0.3 and version:
            one.whole, one.maybe = type(one.whole)(), made.Maybe()
        given[version].append(one)
    schemas = {version: made.definition.schema(version) for version in versions}
    parts = [message_column(schemas[one], message_type(made), given[one]) for one in versions]
    expected = [
        counted_on_the_wire(one.encode(version), schemas[version])
        for version in versions
        for one in given[version]
    ]
    numbers = pa.array([version for version in versions for _ in given[version]]).to_numpy()
    layouts = dict.fromkeys(versions, made)
    column = pa.concat_arrays(parts)
    found = tagged_field_uses(column, numbers, layouts)
    found.validate(full=True)
    assert [counted(row) for row in found.to_pylist()] == expected
    part = tagged_field_uses(column.slice(7, 90), numbers[7:97], layouts)
    assert part.to_pylist() == found.to_pylist()[7:97]
    assert sum(map(len, expected)) > 300
    names = {name for row in expected for _, _, name in row}
    assert names >= {"text", "none", "some", "ids", "id", "size", "word", "whole", "maybe"}


def uses_in_vectors(name: str) -> Iterator[tuple[list[Any], list[bytes], Schema]]:
    """For each version of a message, yield the counts, and the bytes that Kafka wrote."""
    kind: type[Message] = message(name)
    encoded: dict[int, list[bytes]] = {}
    for vector in VECTORS[name]:
        if not has_changed(vector):
            encoded.setdefault(vector["version"], []).append(bytes.fromhex(vector["hex"]))
    for version, data in encoded.items():
        schema = kind.definition.schema(version)
        column = message_column(
            schema, message_type(name), [kind.decode(one, version) for one in data]
        )
        numbers = pa.array([version] * len(data)).to_numpy()
        yield tagged_field_uses(column, numbers, {version: kind}).to_pylist(), data, schema


@pytest.mark.long
@pytest.mark.slow
@each("name", sorted(VECTORS))
def test_tagged_fields_are_counted_as_kafka_wrote_them(name: str) -> None:
    for found, encoded, schema in uses_in_vectors(name):
        for row, data in zip(found, encoded, strict=True):
            assert counted(row) == counted_on_the_wire(data, schema)


def test_the_vectors_have_tagged_fields_to_count() -> None:
    found = [row for rows, _, _ in uses_in_vectors("FetchRequest") for row in rows]
    assert {"clusterId", "replicaState", None} <= {use["name"] for row in found for use in row}


def test_a_structure_that_is_null_has_no_tagged_fields() -> None:
    made: Any = made_up(FIELDS)
    column = message_column(made.definition.schema(3), message_type(made), [made(held=None)])
    assert tagged_field_uses(column, pa.array([3]).to_numpy(), {3: made}).to_pylist() == [[]]


def test_bytes_count_for_what_is_unknown_unless_they_are_withheld() -> None:
    kind = message("ApiVersionsRequest")
    given = [kind(unknown_tagged_fields={9: data}) for data in (b"secret", WITHHELD_BYTES)]
    column = message_column(kind.definition.schema(3), message_type(kind), given)
    found = tagged_field_uses(column, pa.array([3, 3]).to_numpy(), {3: kind}).to_pylist()
    assert found == [[use("", 9, None, 1, 6)], [use("", 9, None, 1)]]
