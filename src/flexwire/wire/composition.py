"""The names that KIP-482 uses for fields and their tag section, for schemas composed by hand.

The names are from the table in the KIP. `Schema` and `Field` themselves are in `wire.schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.arguments import to_kind
from flexwire.errors import short
from flexwire.wire import types
from flexwire.wire.cursor import Writer
from flexwire.wire.schema import Field, tagged_fields
from flexwire.wire.tags import TagForm, read_tagged_fields, write_tagged_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.wire.cursor import Reader
    from flexwire.wire.types import Type

TAGGED_FIELDS = "_tagged_fields"


class TaggedFields(types.Type):
    """A section of optional fields as a separate type, whose value maps tags to values.

    The value of an unknown tag is its bytes. Every value in the mapping is written, even if it is a
    default.

    >>> from flexwire.wire import COMPACT_STRING, Schema
    >>> tagged = Schema(TaggedFieldsSection({5: Field("rack", COMPACT_STRING)}))
    >>> tagged.encode({"_tagged_fields": {5: "r1", 9: b"new"}}).hex(" ")
    '02 05 03 03 72 31 09 03 6e 65 77'
    >>> tagged.decode(bytes.fromhex("02 05 03 03 7231 09 03 6e6577"))
    {'_tagged_fields': {5: 'r1', 9: b'new'}}
    """

    name = "TAGGED_FIELDS"

    def __init__(
        self, fields: Mapping[int, Field] | None = None, form: TagForm = TagForm.SECTION
    ) -> None:
        self.fields = tagged_fields(fields, "fields")
        self.form = to_kind(form, "form", TagForm)

    def read(self, reader: Reader) -> dict[int, Any]:
        known, unknown = read_tagged_fields(reader, self.form, self.fields)
        return dict(sorted((known | unknown).items()))

    def write(self, writer: Writer, value: Any) -> None:
        if not hasattr(value, "items"):
            raise writer.error(f"expected a mapping from tags to values, got {short(value)}")
        payloads: dict[int, bytes | bytearray] = {}
        unknown: dict[int, bytes] = {}
        for tag, item in value.items():
            field = self.fields.get(tag)
            if field is None:
                unknown[tag] = item
                continue
            payload = Writer()
            payload.path = [*writer.path, field.json_name]
            field.type.write(payload, item)
            payloads[tag] = payload.buffer
        write_tagged_fields(writer, self.form, payloads, unknown, self.fields)

    def layout(self) -> object:
        fields = tuple((tag, field.type.layout()) for tag, field in sorted(self.fields.items()))
        return (self.name, self.form, fields)


def CompactArray(name: str, element: Type) -> Field:  # noqa: N802 - a class name in KIP-482
    """A field of type `CompactArrayOf`."""
    return Field(name, types.CompactArrayOf(element))


def CompactString(name: str) -> Field:  # noqa: N802 - a class name in KIP-482
    """A field of type COMPACT_STRING."""
    return Field(name, types.COMPACT_STRING)


def CompactNullableString(name: str) -> Field:  # noqa: N802 - a class name in KIP-482
    """A field of type COMPACT_NULLABLE_STRING."""
    return Field(name, types.COMPACT_NULLABLE_STRING)


def CompactBytes(name: str) -> Field:  # noqa: N802 - a class name in KIP-482
    """A field of type COMPACT_BYTES."""
    return Field(name, types.COMPACT_BYTES)


def CompactNullableBytes(name: str) -> Field:  # noqa: N802 - a class name in KIP-482
    """A field of type COMPACT_NULLABLE_BYTES."""
    return Field(name, types.COMPACT_NULLABLE_BYTES)


def TagSection(fields: Mapping[int, Field] | None = None) -> Field:  # noqa: N802 - as above
    """A section of tagged fields, named as in KIP-482's draft, with interleaved tag headers."""
    return TaggedFieldsSection(fields, TagForm.INTERLEAVED)


def TaggedFieldsSection(  # noqa: N802 - a class name in KIP-482
    fields: Mapping[int, Field] | None = None, form: TagForm = TagForm.SECTION
) -> Field:
    """The field of type `TaggedFields` at the end of a structure. The field may be missing."""
    return Field(TAGGED_FIELDS, TaggedFields(fields, form), default={})
