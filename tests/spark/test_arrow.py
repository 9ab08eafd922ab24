"""Columns hold what the reference executor reads of the bytes that Kafka's Java wrote."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.codec import Message, message
from flexwire.columnar.types import merge
from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.spark.arrow import TaggedFieldUses, message_column, message_type, uuid_text
from flexwire.spark.batches import record_batches, row_tuples, spark_schema
from flexwire.spark.records import RECORDS_FIELDS
from flexwire.wire.reader import Reader
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.types import Array, Uuid
from tests.codec.vectors import has_changed, load
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.wire.types import Type

VECTORS = load()


def _by_version(name: str) -> dict[int, list[bytes]]:
    found = defaultdict(list)
    for vector in VECTORS[name]:
        if not has_changed(vector):
            found[vector["version"]].append(bytes.fromhex(vector["hex"]))
    return found


def _column_value(value: Any, kind: Type) -> Any:
    """What a column should hold for a value of the reference executor, absent fields left out."""
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_column_value(one, kind.element) for one in value]
    if isinstance(kind, NullableStruct):
        return _column_value(value, kind.schema)
    if isinstance(kind, Schema):
        held = {
            one.attribute: _column_value(value[one.attribute], one.type)
            for one in kind.fields
            if one.attribute in value
        }
        unknown = value.get(UNKNOWN_TAGGED_FIELDS, {})
        held[UNKNOWN_TAGGED_FIELDS] = [
            {"tag": tag, "data": data} for tag, data in sorted(unknown.items())
        ]
        return held
    return uuid_text(value) if isinstance(kind, Uuid) else value


def _assert_holds(column: Any, expected: Any, kind: Type) -> None:
    if isinstance(kind, NullableStruct):
        kind = kind.schema
    if expected is None or not isinstance(kind, Array | Schema):
        assert column == expected or (column != column and expected != expected)  # noqa: PLR0124 - NaN
    elif isinstance(kind, Array):
        for one, other in zip(column, expected, strict=True):
            _assert_holds(one, other, kind.element)
    else:
        assert column[UNKNOWN_TAGGED_FIELDS] == expected[UNKNOWN_TAGGED_FIELDS]
        for one in kind.fields:
            if one.presence is Presence.ABSENT:
                assert column[one.attribute] is None
            elif one.attribute in expected:
                _assert_holds(column[one.attribute], expected[one.attribute], one.type)
            # A tagged field that is not on the wire has its default: the codec's tests hold that.


@each("name", sorted(VECTORS))
def test_columns_hold_what_the_reference_executor_reads(name: str) -> None:
    kind: type[Message] = message(name)
    for version, encoded in _by_version(name).items():
        schema = kind.definition.schema(version)
        objects = [None, *(kind.decode(data, version) for data in encoded)]
        column = message_column(name, version, objects, TaggedFieldUses())
        assert column.type.equals(message_type(name))
        nothing, *rows = column.to_pylist()
        assert nothing is None
        for row, data in zip(rows, encoded, strict=True):
            _assert_holds(row, _column_value(schema.read(Reader(data)), schema), schema)


def _tagged_on_the_wire(value: Any, kind: Type, path: str) -> Iterator[tuple[str, int, str | None]]:
    if isinstance(kind, NullableStruct):
        kind = kind.schema
    if value is None:
        return
    if isinstance(kind, Array):
        for one in value:
            yield from _tagged_on_the_wire(one, kind.element, f"{path}[]")
    if isinstance(kind, Schema):
        for tag in value.get(UNKNOWN_TAGGED_FIELDS, {}):
            yield path, tag, None
        for one in kind.fields:
            if one.attribute in value:
                if one.tag is not None:
                    yield path, one.tag, one.json_name
                inner = f"{path}.{one.json_name}".removeprefix(".")
                yield from _tagged_on_the_wire(value[one.attribute], one.type, inner)


@pytest.mark.slow
@each("name", sorted(VECTORS))
def test_tagged_fields_are_counted_as_they_are_on_the_wire(name: str) -> None:
    kind: type[Message] = message(name)
    for version, encoded in _by_version(name).items():
        schema = kind.definition.schema(version)
        uses = TaggedFieldUses()
        message_column(name, version, [kind.decode(data, version) for data in encoded], uses)
        for row, data in enumerate(encoded):
            counted = {(one["path"], one["tag"], one["name"]): one["times"] for one in uses.of(row)}
            there = Counter(_tagged_on_the_wire(schema.read(Reader(data)), schema, ""))
            assert counted == there


def test_the_vectors_have_tagged_fields_to_count() -> None:
    kind = message("FetchRequest")
    counted = []
    for version, encoded in _by_version("FetchRequest").items():
        uses = TaggedFieldUses()
        message_column(
            "FetchRequest", version, [kind.decode(one, version) for one in encoded], uses
        )
        counted += [one["name"] for row in range(len(encoded)) for one in uses.of(row)]
    assert {"clusterId", "replicaState", None} <= set(counted)


def test_every_message_has_a_type_that_spark_takes() -> None:
    for name in catalog().names():
        schema = pa.schema([("body", message_type(name))])
        assert spark_schema(schema)["body"].nullable


def test_every_field_of_records_is_read_or_left_out_for_a_reason() -> None:
    # These hold parts of files, which begin and end within a batch.
    left_out = {("FetchSnapshotResponse", "unaligned_records")}
    read = {(one.message, one.records) for one in RECORDS_FIELDS}
    found = {
        (name, field.attribute)
        for name in catalog().names()
        for spec, _ in catalog().entry(name).specs()
        for field in spec.walk()
        if field.type.name == "records"
    }
    assert found == read | left_out


def test_types_of_several_specs_widen_or_are_refused() -> None:
    narrow, wide = pa.struct([("a", pa.int8()), (UNKNOWN_TAGGED_FIELDS, pa.null())]), pa.int64()
    merged = merge("M", [narrow, pa.struct([("a", wide), (UNKNOWN_TAGGED_FIELDS, pa.null())])])
    assert merged.field("a").type == wide
    with pytest.raises(SpecError, match=r"M\.a.*no common column"):
        merge("M", [narrow, pa.struct([("a", pa.string()), (UNKNOWN_TAGGED_FIELDS, pa.null())])])


def test_batches_are_bounded_by_bytes_and_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.spark.batches.BATCH_BYTES", 10)
    monkeypatch.setattr("flexwire.spark.batches.BATCH_ROWS", 3)
    schema = pa.schema([("n", pa.int64())])
    sizes = [4, 6, 1, 100, 0, 0, 0, 0]
    batches = list(record_batches(schema, (((n,), size) for n, size in enumerate(sizes))))
    assert [batch.num_rows for batch in batches] == [2, 1, 1, 3, 1]
    assert [row[0] for row in row_tuples(batches)] == list(range(len(sizes)))
