"""Schemas composed by hand from KIP-482's type classes, for values that are plain mappings.

The names are those of the KIP's table. A field's value stands in the mapping under its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flexwire.arguments import refuse, to_bytes, to_flag, to_kind, to_text
from flexwire.errors import ArgumentError, CodecError, DecodeError, short
from flexwire.wire import schema, types
from flexwire.wire.limits import HIGHEST_TAG
from flexwire.wire.reader import Reader
from flexwire.wire.schema import NO_DEFAULT, Presence
from flexwire.wire.tags import TagForm, read_tagged_fields, write_tagged_fields
from flexwire.wire.writer import Writer

if TYPE_CHECKING:
    from flexwire.wire.types import Type

TAGGED_FIELDS = "_tagged_fields"


def Field(name: str, type_: Type, default: Any = NO_DEFAULT) -> schema.Field:  # noqa: N802 - the KIP's class name
    """A field by its name, which is also its key in a mapping.

    A field with a default may be missing in the mapping; an optional one that has its default is
    not written.
    """
    to_text(name, "name")
    return schema.Field(name, name, name, types.checked_type(type_, "type_"), default=default)


class Schema(schema.Schema):
    r"""Mandatory fields in order and, where ``optional_fields`` are given, optional ones by tag.

    The optional fields stand where ``form`` says: in a tag section at the end, as KIP-482 has it,
    or in an optional field buffer at the beginning, as its first draft had it. With no
    ``optional_fields`` there is no place for any, and with empty ones there is.

    >>> from flexwire.wire import CompactArrayOf, COMPACT_STRING, INT16, STRING
    >>> foo = Schema(Field("baz", INT16), optional_fields={1: Field("bar", COMPACT_STRING)})
    >>> foo.encode({"baz": 7, "bar": "hi"}).hex(" ")
    '00 07 01 01 03 03 68 69'
    >>> foo.decode(bytes.fromhex("0007 00"))
    {'baz': 7}
    >>> foos = Schema(Field("foos", CompactArrayOf(foo)), optional_fields={})
    >>> foos.decode(bytes.fromhex("02 0007 00 01 09 01 ff"))
    {'foos': [{'baz': 7}], 'unknown_tagged_fields': {9: b'\xff'}}
    >>> draft = Schema(
    ...     Field("baz", INT16), optional_fields={1: Field("bar", STRING)}, form=TagForm.BUFFER
    ... )
    >>> draft.encode({"baz": 7, "bar": "hi"}).hex(" ")
    '08 00 01 00 02 68 69 00 00 07'
    """

    def __init__(
        self,
        *fields: schema.Field,
        optional_fields: Mapping[int, schema.Field] | None = None,
        form: TagForm = TagForm.SECTION,
        name: str = "structure",
    ) -> None:
        tagged = tuple(_all_tagged(optional_fields, "optional_fields").values())
        to_text(name, "name")
        names: set[str] = set()
        for one in fields + tagged:
            to_kind(one, "fields", schema.Field)
            if one.name in names:
                raise ArgumentError(f"field {one.name!r} stands twice in {name}")
            names.add(one.name)
        super().__init__(
            name, fields + tagged, optional_fields is not None, form=to_kind(form, "form", TagForm)
        )

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """Give the bytes of a mapping; raises `EncodeError`."""
        writer = Writer()
        try:
            self.write(writer, value)
        except CodecError as error:
            error.message = self.name
            raise
        return bytes(writer.buffer)

    def decode(
        self, data: bytes | bytearray | memoryview, *, lenient: bool = False
    ) -> dict[str, Any]:
        """Give the mapping that bytes are; raises `DecodeError`, for bytes left over too.

        Optional fields that are not there are not in the mapping.
        """
        reader = Reader(to_bytes(data), lenient=to_flag(lenient, "lenient"))
        try:
            value = self.read(reader)
            if reader.remaining and not lenient:
                raise reader.error(f"{self.name} ends here but {reader.remaining} bytes follow")
        except DecodeError as error:
            error.message = self.name
            raise
        return value


def _all_tagged(given: Mapping[int, schema.Field] | None, name: str) -> dict[int, schema.Field]:
    if given is not None and not isinstance(given, Mapping):
        raise refuse(name, "a mapping of tags to fields", given)
    return {tag: _tagged(tag, one) for tag, one in (given or {}).items()}


def _tagged(tag: int, one: schema.Field) -> schema.Field:
    if type(tag) is not int or not 0 <= tag <= HIGHEST_TAG:
        raise ArgumentError(f"{short(tag)} is not a tag: 0 to {HIGHEST_TAG}")
    to_kind(one, f"the field of tag {tag}", schema.Field)
    return schema.Field(
        one.name, one.attribute, one.json_name, one.type, Presence.TAGGED, one.default, tag
    )


class TaggedFields(types.Type):
    """A section of optional fields as a type of its own: its value maps tags to values.

    A tag that it does not know has its bytes. What is in the mapping is written, defaults too.

    >>> from flexwire.wire import COMPACT_STRING
    >>> tagged = Schema(TaggedFieldsSection({5: Field("rack", COMPACT_STRING)}))
    >>> tagged.encode({"_tagged_fields": {5: "r1", 9: b"new"}}).hex(" ")
    '02 05 03 03 72 31 09 03 6e 65 77'
    >>> tagged.decode(bytes.fromhex("02 05 03 03 7231 09 03 6e6577"))
    {'_tagged_fields': {5: 'r1', 9: b'new'}}
    """

    name = "TAGGED_FIELDS"

    def __init__(
        self, fields: Mapping[int, schema.Field] | None = None, form: TagForm = TagForm.SECTION
    ) -> None:
        self.fields = _all_tagged(fields, "fields")
        self.form = to_kind(form, "form", TagForm)

    def read(self, reader: Reader) -> dict[int, Any]:
        known, unknown = read_tagged_fields(reader, self.form, self.fields)
        return dict(sorted((known | unknown).items()))

    def write(self, writer: Writer, value: Any) -> None:
        if not hasattr(value, "items"):
            raise writer.error(f"expected values by tag, got {short(value)}")
        payloads: dict[int, bytes | bytearray] = {}
        unknown: dict[int, bytes] = {}
        for tag, item in value.items():
            one = self.fields.get(tag)
            if one is None:
                unknown[tag] = item
                continue
            payload = Writer()
            payload.path = [*writer.path, one.json_name]
            one.type.write(payload, item)
            payloads[tag] = payload.buffer
        write_tagged_fields(writer, self.form, payloads, unknown, self.fields)

    def layout(self) -> object:
        fields = tuple((tag, one.type.layout()) for tag, one in sorted(self.fields.items()))
        return (self.name, self.form, fields)


def CompactArray(name: str, element: Type) -> schema.Field:  # noqa: N802 - the KIP's class name
    """A field of type `CompactArrayOf`."""
    return Field(name, types.CompactArrayOf(element))


def CompactString(name: str) -> schema.Field:  # noqa: N802 - the KIP's class name
    """A field of type COMPACT_STRING."""
    return Field(name, types.COMPACT_STRING)


def CompactNullableString(name: str) -> schema.Field:  # noqa: N802 - the KIP's class name
    """A field of type COMPACT_NULLABLE_STRING."""
    return Field(name, types.COMPACT_NULLABLE_STRING)


def CompactBytes(name: str) -> schema.Field:  # noqa: N802 - the KIP's class name
    """A field of type COMPACT_BYTES."""
    return Field(name, types.COMPACT_BYTES)


def CompactNullableBytes(name: str) -> schema.Field:  # noqa: N802 - the KIP's class name
    """A field of type COMPACT_NULLABLE_BYTES."""
    return Field(name, types.COMPACT_NULLABLE_BYTES)


def TaggedFieldsSection(  # noqa: N802 - the KIP's class name
    fields: Mapping[int, schema.Field] | None = None, form: TagForm = TagForm.SECTION
) -> schema.Field:
    """The field of type `TaggedFields` that a structure ends with; it may be missing."""
    return Field(TAGGED_FIELDS, TaggedFields(fields, form), default={})
