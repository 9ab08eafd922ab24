"""Columns of objects hold what the reference executor reads of Kafka's own bytes."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.codec import Message, message
from flexwire.columnar.objects import TAGGED_FIELD_USES, TaggedFieldUses, message_column
from flexwire.columnar.types import message_type
from flexwire.wire.cursor import Reader
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.types import Array, Uuid
from flexwire.wire.varint import uuid_text
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
        column = message_column(schema, message_type(name), objects, TaggedFieldUses())
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
        objects = [kind.decode(data, version) for data in encoded]
        message_column(schema, message_type(name), objects, uses)
        for row, data in enumerate(encoded):
            counted = {(one["path"], one["tag"], one["name"]): one["times"] for one in uses.of(row)}
            there = Counter(_tagged_on_the_wire(schema.read(Reader(data)), schema, ""))
            assert counted == there


def test_the_vectors_have_tagged_fields_to_count() -> None:
    kind = message("FetchRequest")
    counted = []
    for version, encoded in _by_version("FetchRequest").items():
        uses = TaggedFieldUses()
        schema = kind.definition.schema(version)
        objects = [kind.decode(one, version) for one in encoded]
        message_column(schema, message_type(kind), objects, uses)
        counted += [one["name"] for row in range(len(encoded)) for one in uses.of(row)]
    assert {"clusterId", "replicaState", None} <= set(counted)


def test_bytes_count_for_what_is_unknown_unless_they_are_withheld() -> None:
    kind = message("ApiVersionsRequest")
    given = [kind(unknown_tagged_fields={9: data}) for data in (b"secret", b"***")]
    uses = TaggedFieldUses(withheld=b"***")
    message_column(kind.definition.schema(3), message_type(kind), given, uses)
    column = pa.array([uses.of(row) for row in range(3)], TAGGED_FIELD_USES)
    use = {"path": "", "tag": 9, "name": None, "times": 1}
    assert column.to_pylist() == [[{**use, "bytes": 6}], [{**use, "bytes": None}], []]
