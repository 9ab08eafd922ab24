"""The tagged fields of messages in columns are counted as `TaggedFieldUses` counts objects."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.codec import message
from flexwire.columnar.objects import TaggedFieldUses, message_column
from flexwire.columnar.types import message_type
from flexwire.tables.messages import message_rows
from flexwire.tables.tagged import tagged_field_uses
from tests.codec.made_up import made as made_up
from tests.codec.values import random_message
from tests.tables.message_frames import batch, frame

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
    # The same beside rows of a version that has no tagged fields.
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


@pytest.mark.parametrize("versions", [[2], [3], [2, 3], [2, 0, 3]])
def test_any_kind_of_field_is_counted_as_in_objects(versions: list[int]) -> None:
    made: Any = made_up(FIELDS)
    source = random.Random(repr(versions))
    objects, numbers = [], []
    for seed in range(300):
        version = source.choice(versions)
        one = random_message(made, version, seed)
        if source.random() < 0.3 and version:
            one.whole, one.maybe = type(one.whole)(), made.Maybe()
        objects.append(one)
        numbers.append(version)
    parts, expected = [], []
    for version in versions:
        uses = TaggedFieldUses(WITHHELD_BYTES)
        chosen = [one for one, number in zip(objects, numbers, strict=True) if number == version]
        schema = made.definition.schema(version)
        parts.append(message_column(schema, message_type(made), chosen, uses))
        expected += [uses.of(row) for row in range(len(chosen))]
    numbers = sorted(numbers, key=versions.index)
    layouts = dict.fromkeys(versions, made)
    column = pa.concat_arrays(parts)
    found = tagged_field_uses(column, pa.array(numbers).to_numpy(), layouts)
    found.validate(full=True)
    assert found.to_pylist() == expected
    part = tagged_field_uses(column.slice(7, 90), pa.array(numbers[7:97]).to_numpy(), layouts)
    assert part.to_pylist() == expected[7:97]
    assert sum(map(len, expected)) > 300
    names = {one["name"] for row in expected for one in row}
    assert names >= {"text", "none", "some", "ids", "id", "size", "word", "whole", "maybe"}


def test_a_structure_that_is_null_has_no_tagged_fields() -> None:
    made: Any = made_up(FIELDS)
    uses = TaggedFieldUses()
    one = made(held=None)
    column = message_column(made.definition.schema(3), message_type(made), [one], uses)
    assert uses.of(0) == []
    assert tagged_field_uses(column, pa.array([3]).to_numpy(), {3: made}).to_pylist() == [[]]
