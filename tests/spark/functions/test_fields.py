"""Requested fields contain the values of the whole message, and the result has no other fields."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from flexwire.columnar import decode_messages, message_type
from flexwire.columnar.decoding import pruned, pruned_type
from flexwire.errors import ArgumentError
from flexwire.spark.functions.messages import column_type, decoded
from tests.columnar.chosen_fields import kept, paths
from tests.spark.functions.chosen import chosen
from tests.spark.functions.test_messages import SOME, vectors


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
@pytest.mark.parametrize("name", SOME)
def test_fields_are_those_of_the_whole_message(name: str, mode: str) -> None:
    chance = random.Random(name)
    data, versions = vectors(name)
    rows = data.to_pylist()
    rows[1] = None
    if mode == "PERMISSIVE":
        rows[2] = rows[2][:-1]
    data = pa.array([b"", *rows], pa.binary()).slice(1)
    versions = pa.concat_arrays([pa.array([0], pa.int16()), versions]).slice(1)
    whole = decoded(name, chosen(mode=mode), data, versions).to_pylist()
    every = [*paths(message_type(name))]
    assert len(every) > 5
    for _ in range(12):
        wanted = chance.sample(every, chance.randint(1, 4))
        options = chosen(mode=mode, fields=" ,".join(wanted))
        found = decoded(name, options, data, versions)
        assert found.type == column_type(name, options)
        found.validate(full=True)
        names = [one.split(".") for one in wanted]
        if mode == "PERMISSIVE":
            names.append(["_corrupt_record"])
        assert found.to_pylist() == [kept(one, names) for one in whole]


def test_no_fields_are_all_fields_and_a_whole_field_holds_its_own() -> None:
    kind = message_type("MetadataResponse")
    assert pruned_type(kind, ()) == kind
    assert pruned_type(kind, ["topics", "topics.name"]) == pa.struct([kind.field("topics")])
    # Fields are in message order, whatever the order of the requested names.
    found = pruned_type(kind, ["topics.name", "brokers.host", "brokers.node_id"])
    assert [one.name for one in found] == ["brokers", "topics"]
    assert [one.name for one in found.field("brokers").type.value_type] == ["node_id", "host"]


def test_what_is_kept_is_not_copied() -> None:
    data, versions = vectors("MetadataResponse")
    made = decode_messages("MetadataResponse", data, versions)
    before = pa.total_allocated_bytes()
    found = pruned(made, pruned_type(made.type, ["topics.partitions.replica_nodes", "cluster_id"]))
    assert pa.total_allocated_bytes() - before < 4096
    inner = made.field("topics").values.field("partitions").values.field("replica_nodes").values
    kept = found.field("topics").values.field(0).values.field(0).values
    assert kept.buffers()[1].address == inner.buffers()[1].address


@pytest.mark.parametrize("sliced", [0, 3])
def test_parts_of_columns_and_nulls_within_are_pruned_too(sliced: int) -> None:
    rows: list[Any] = [
        {"b": [{"c": at, "d": at}, None], "e": at} if at % 3 else None for at in range(9)
    ]
    rows[4]["b"] = None
    inner = pa.struct({"c": pa.int8(), "d": pa.int8()})
    column = pa.array(rows, pa.struct({"b": pa.list_(inner), "e": pa.int8()})).slice(sliced)
    found = pruned(column, pruned_type(column.type, ["b.d"]))
    found.validate(full=True)
    assert found.to_pylist() == [kept(one, [["b", "d"]]) for one in rows[sliced:]]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("topic", r"fields: expected fields of a message \(throttle_time_ms, .*, got 'topic'"),
        ("topics.nam", r"fields: expected fields of topics \(error_code, name, .*, got 'nam'"),
        ("cluster_id.x", r"fields: expected fields of cluster_id \(it has none\), got 'x'"),
        ("topics.partitions.", r"fields of partitions \(.*\), got ''"),
        ("topics,,brokers", "fields: expected names separated by commas"),
        (",", "fields: expected names separated by commas"),
    ],
)
def test_a_field_that_there_is_not_is_refused_with_those_there_are(
    fields: str, reason: str
) -> None:
    with pytest.raises(ArgumentError, match=reason):
        column_type("MetadataResponse", chosen(fields=fields))
