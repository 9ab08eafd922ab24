"""The reference executor on rows: it words the errors of what the kernels refuse.

A row is a mapping as Arrow gives and takes it; its plain value is what the wire types work on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.columnar.values import in_column, raw_tagged_fields
from flexwire.errors import DecodeError
from flexwire.wire.reader import Reader
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.types import Array, Type, Uuid
from flexwire.wire.uuid_text import parse_uuid_text, uuid_text
from flexwire.wire.writer import Writer

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping


def read_row(schema: Schema, data: bytes, *, absent_are_null: bool) -> dict[str, Any]:
    """Read the one message in ``data`` as a row; raises `DecodeError`."""
    reader = Reader(data)
    plain = schema.read(reader)
    if reader.remaining:
        raise DecodeError(
            f"the message ends here but {reader.remaining} bytes follow", offset=reader.position
        )
    return _row(plain, schema, absent_are_null=absent_are_null)


def _row(plain: Mapping[str, Any], schema: Schema, *, absent_are_null: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for one in schema.fields:
        if one.attribute in plain:
            value = plain[one.attribute]
        elif one.presence is Presence.ABSENT and absent_are_null:
            value = None
        else:
            value = one.default
        row[one.attribute] = _value(value, one.type, absent_are_null=absent_are_null)
    unknown = plain.get(UNKNOWN_TAGGED_FIELDS, {})
    row[UNKNOWN_TAGGED_FIELDS] = raw_tagged_fields(unknown)
    return row


def _value(value: Any, kind: Type, *, absent_are_null: bool) -> Any:
    match kind:
        case _ if value is None:
            return None
        case Array():
            return [_value(one, kind.element, absent_are_null=absent_are_null) for one in value]
        case NullableStruct():
            return _row(value, kind.schema, absent_are_null=absent_are_null)
        case Schema():
            return _row(value, kind, absent_are_null=absent_are_null)
    return in_column(value)


def write_row(schema: Schema, row: Mapping[str, Any]) -> bytes:
    """Write a row as a message; raises `EncodeError`.

    A null stands for None, and in a field that the version does not have for no value at all.
    """
    writer = Writer()
    schema.write(writer, _plain(writer, row, schema))
    return bytes(writer.buffer)


def _plain(writer: Writer, row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    fields = schema.by_attribute
    plain: dict[str, Any] = {}
    for name, value in row.items():
        one = fields.get(name)
        if name == UNKNOWN_TAGGED_FIELDS:
            plain[name] = _unknown(writer, value or [])
        elif one is None:
            plain |= {} if value is None else {name: value}
        elif one.presence is not Presence.ABSENT or not (value is None or one.ignorable):
            writer.path.append(one.json_name)
            plain[name] = _plain_value(writer, value, one.type)
            writer.path.pop()
    return plain


def _unknown(writer: Writer, items: list[Any]) -> dict[Any, Any]:
    unknown: dict[Any, Any] = {}
    for item in items:
        tag, data = (None, None) if item is None else (item["tag"], item["data"])
        if tag in unknown:
            raise writer.error(f"unknown tag {tag} repeats")
        unknown[tag] = data
    return unknown


def _plain_value(writer: Writer, value: Any, kind: Type) -> Any:
    match kind:
        case _ if value is None:
            return None
        case Uuid():
            return _uuid(writer, value)
        case Array():
            return [_plain_item(writer, at, one, kind.element) for at, one in enumerate(value)]
        case NullableStruct():
            return _plain(writer, value, kind.schema)
        case Schema():
            return _plain(writer, value, kind)
    return value


def _plain_item(writer: Writer, at: int, item: Any, kind: Type) -> Any:
    writer.path.append(f"[{at}]")
    plain = _plain_value(writer, item, kind)
    writer.path.pop()
    return plain


def _uuid(writer: Writer, text: str) -> uuid.UUID:
    try:
        value = parse_uuid_text(text)
    except ValueError:
        value = None
    if value is None or uuid_text(value) != text:
        raise writer.error(f"{text!r} is not a uuid: write 22 characters of base64url")
    return value
