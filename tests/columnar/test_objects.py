"""Columns of objects equal the values that the reference executor reads from Kafka's own bytes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import Message, message
from flexwire.columnar.objects import message_column
from flexwire.columnar.types import message_type
from flexwire.wire.cursor import Reader
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.types import ArrayType, Uuid
from flexwire.wire.varint import uuid_text
from tests.codec.vectors import has_changed, load
from tests.each import each

if TYPE_CHECKING:
    from flexwire.wire.types import Type

VECTORS = load()


def _by_version(name: str) -> dict[int, list[bytes]]:
    found = defaultdict(list)
    for vector in VECTORS[name]:
        if not has_changed(vector):
            found[vector["version"]].append(bytes.fromhex(vector["hex"]))
    return found


def _column_value(value: Any, kind: Type) -> Any:
    """Return the column's form of a value of the reference executor, without absent fields."""
    if value is None:
        return None
    if isinstance(kind, ArrayType):
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
    if expected is None or not isinstance(kind, ArrayType | Schema):
        assert column == expected or (column != column and expected != expected)  # noqa: PLR0124 - NaN
    elif isinstance(kind, ArrayType):
        for one, other in zip(column, expected, strict=True):
            _assert_holds(one, other, kind.element)
    else:
        assert column[UNKNOWN_TAGGED_FIELDS] == expected[UNKNOWN_TAGGED_FIELDS]
        for one in kind.fields:
            if one.presence is Presence.ABSENT:
                assert column[one.attribute] is None
            elif one.attribute in expected:
                _assert_holds(column[one.attribute], expected[one.attribute], one.type)
            # A tagged field that is not on the wire has its default; the codec's tests check that.


@pytest.mark.slow
@each("name", sorted(VECTORS))
def test_columns_hold_what_the_reference_executor_reads(name: str) -> None:
    kind: type[Message] = message(name)
    for version, encoded in _by_version(name).items():
        schema = kind.definition.schema(version)
        objects = [None, *(kind.decode(data, version) for data in encoded)]
        column = message_column(schema, message_type(name), objects)
        assert column.type.equals(message_type(name))
        nothing, *rows = column.to_pylist()
        assert nothing is None
        for row, data in zip(rows, encoded, strict=True):
            _assert_holds(row, _column_value(schema.read(Reader(data)), schema), schema)
