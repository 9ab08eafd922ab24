"""Structures: fields in order and, in flexible versions, tagged fields (KIP-482).

The value of a structure is a mapping from attribute names to values. A missing field has its
default, and ``unknown_tagged_fields`` maps tags to bytes. `Schema.resolved` makes the structures of
message specs. Structures can also be composed by hand from KIP-482's type classes. The attribute
of such a field is the field's name.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from flexwire.arguments import refuse, to_bytes, to_flag, to_kind, to_text
from flexwire.errors import ArgumentError, CodecError, DecodeError, short
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.limits import HIGHEST_TAG
from flexwire.wire.tags import TagForm, read_tagged_fields, skip_tagged_fields, write_tagged_fields
from flexwire.wire.types import ArrayType, Type, checked_type

if TYPE_CHECKING:
    from typing import Self

UNKNOWN_TAGGED_FIELDS = "unknown_tagged_fields"
# The default of a field without a default. Such fields exist only in schemas composed by hand.
NO_DEFAULT: Final = object()


class Presence(Enum):
    """Whether and how a field is present in one version of a message."""

    INLINE = "inline"
    TAGGED = "tagged"
    ABSENT = "absent"


@dataclass(frozen=True)
class Field:
    """A field of a structure in one version.

    A field with a default may be missing in a mapping. A tagged field is not written if its value
    is the default. ``default`` is a value of the field. An empty tuple means an empty array, and an
    empty mapping means a structure whose fields all have their defaults. ``attribute`` is the key
    of the field in a mapping, and ``json_name`` is its name in paths. ``attribute`` and
    ``json_name`` default to ``name``. ``tag`` is set if the field is tagged. ``tag`` is also set
    if the field is untagged only because the encoding has no tagged fields.
    """

    name: str
    type: Type
    default: Any = NO_DEFAULT
    attribute: str = ""
    json_name: str = ""
    presence: Presence = Presence.INLINE
    tag: int | None = None
    ignorable: bool = False
    nullable: bool = False

    def __post_init__(self) -> None:
        to_text(self.name, "name")
        checked_type(self.type, "type")
        vars(self).update(
            attribute=self.attribute or self.name, json_name=self.json_name or self.name
        )

    def is_default(self, value: Any) -> bool:
        """Return whether a tagged or absent field with this value is not written."""
        return self.default is not NO_DEFAULT and self.type.is_default(value, self.default)


@dataclass(frozen=True, init=False)
class Schema(Type):
    r"""A structure in one version, or a structure composed by hand.

    A structure composed by hand has mandatory fields in order and, if ``optional_fields`` are
    given, optional fields by tag. ``form`` determines where the optional fields are: in a tag
    section at the end as in KIP-482, or in an optional field buffer at the beginning as in the
    KIP's first draft. Without ``optional_fields``, the structure has no place for unknown fields
    either. With an empty mapping, the structure has a place for unknown fields.

    ``fields`` contains all fields. In a version of a message, ``fields`` includes absent fields. A
    structure with tagged fields is ``flexible``. ``refused_tags`` contains the tags of fields in
    other versions. Kafka refuses these tags in this version.

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

    name: str
    fields: tuple[Field, ...]
    flexible: bool
    refused_tags: frozenset[int]
    form: TagForm

    def __init__(
        self,
        *fields: Field,
        optional_fields: Mapping[int, Field] | None = None,
        form: TagForm = TagForm.SECTION,
        name: str = "structure",
    ) -> None:
        tagged = tuple(tagged_fields(optional_fields, "optional_fields").values())
        to_text(name, "name")
        names: set[str] = set()
        for field in fields + tagged:
            to_kind(field, "fields", Field)
            if field.name in names:
                raise ArgumentError(f"field {field.name!r} appears twice in {name}")
            names.add(field.name)
        vars(self).update(
            name=name,
            fields=fields + tagged,
            flexible=optional_fields is not None,
            refused_tags=frozenset(),
            form=to_kind(form, "form", TagForm),
        )

    @classmethod
    def resolved(
        cls,
        name: str,
        fields: tuple[Field, ...],
        *,
        flexible: bool,
        refused_tags: frozenset[int],
        form: TagForm,
    ) -> Self:
        """Make a structure from fields that are already marked as inline, tagged or absent."""
        schema = cls.__new__(cls)
        vars(schema).update(
            name=name, fields=fields, flexible=flexible, refused_tags=refused_tags, form=form
        )
        return schema

    @property
    def tags_lead(self) -> bool:
        """Return whether the tagged fields are at the start of the structure and not at its end."""
        return self.flexible and self.form is TagForm.BUFFER

    @cached_property
    def inline(self) -> tuple[Field, ...]:
        """The fields that are always present, in the order in which they are written."""
        return tuple(field for field in self.fields if field.presence is Presence.INLINE)

    @cached_property
    def tagged(self) -> dict[int, Field]:
        """The tagged fields by tag, in ascending order of the tags."""
        tagged = ((field.tag, field) for field in self.fields if field.presence is Presence.TAGGED)
        return {
            tag: field
            for tag, field in sorted(tagged, key=lambda item: item[0] or 0)
            if tag is not None
        }

    @cached_property
    def absent(self) -> tuple[Field, ...]:
        """The fields that this version does not contain."""
        return tuple(field for field in self.fields if field.presence is Presence.ABSENT)

    @cached_property
    def by_attribute(self) -> dict[str, Field]:
        """All fields, by attribute name."""
        return {field.attribute: field for field in self.fields}

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The keys that may be in a value's mapping."""
        return frozenset(self.by_attribute) | {UNKNOWN_TAGGED_FIELDS}

    @cached_property
    def least_size(self) -> int:
        # The size is computed once for each structure, because specs can double the number of
        # structures at every level.
        return sum(field.type.least_size for field in self.inline) + self.flexible

    def layout(self) -> object:
        inline = tuple((field.name, field.type.layout()) for field in self.inline)
        tagged = tuple((tag, field.name, field.type.layout()) for tag, field in self.tagged.items())
        return (inline, self.form if self.flexible else None, tagged)

    # The methods below read values.

    def decode(
        self, data: bytes | bytearray | memoryview, *, lenient: bool = False
    ) -> dict[str, Any]:
        """Return the mapping in bytes. Raises `DecodeError`, also if bytes are left over.

        Optional fields that are missing are not in the mapping.
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

    def read(self, reader: Reader) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if self.tags_lead:
            self._read_tagged_fields(reader, values)
        for field in self.inline:
            reader.path.append(field.json_name)
            values[field.attribute] = field.type.read(reader)
            reader.path.pop()
        if self.flexible and not self.tags_lead:
            self._read_tagged_fields(reader, values)
        return values

    def _read_tagged_fields(self, reader: Reader, values: dict[str, Any]) -> None:
        known_values, unknown = read_tagged_fields(
            reader, self.form, self.tagged, self.refused_tags
        )
        for tag, value in known_values.items():
            values[self.tagged[tag].attribute] = value
        if unknown:
            values[UNKNOWN_TAGGED_FIELDS] = unknown

    def skip(self, reader: Reader) -> None:
        if self.tags_lead:
            skip_tagged_fields(reader, self.form)
        for size, kind in self._skipped:
            reader.skip(size)
            if kind is not None:
                kind.skip(reader)
        if self.flexible and not self.tags_lead:
            skip_tagged_fields(reader, self.form)

    @cached_property
    def _skipped(self) -> tuple[tuple[int, Type | None], ...]:
        """The steps for skipping: a number of bytes, then a field without a fixed size, if any."""
        steps: list[tuple[int, Type | None]] = []
        together = 0
        for field in self.inline:
            size = field.type.fixed_size
            if size is None:
                steps.append((together, field.type))
                together = 0
            else:
                together += size
        return (*steps, (together, None)) if together else tuple(steps)

    # The methods below write values.

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """Return the bytes of a mapping. Raises `EncodeError` if the mapping cannot be written."""
        writer = Writer()
        try:
            self.write(writer, value)
        except CodecError as error:
            error.message = self.name
            raise
        return bytes(writer.buffer)

    def write(self, writer: Writer, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise writer.error(f"expected a {self.name}, got {short(value)}")
        self._check_names(writer, value)
        for field in self.absent:
            self._check_absent(writer, field, value)
        unknown = value.get(UNKNOWN_TAGGED_FIELDS) or {}
        if not isinstance(unknown, Mapping):
            raise writer.error(
                f"expected a mapping from tags to unknown tagged fields, got {short(unknown)}"
            )
        if unknown and not self.flexible:
            raise writer.error(
                "unknown tagged fields are set, but this version has no tag section in this "
                "encoding"
            )
        if self.tags_lead:
            self._write_tagged_fields(writer, value, unknown)
        for field in self.inline:
            writer.path.append(field.json_name)
            field_value = value.get(field.attribute, field.default)
            if field_value is NO_DEFAULT:
                raise writer.error("the field is missing and has no default")
            field.type.write(writer, field_value)
            writer.path.pop()
        if self.flexible and not self.tags_lead:
            self._write_tagged_fields(writer, value, unknown)

    def _check_names(self, writer: Writer, value: Mapping[str, Any]) -> None:
        for name in value.keys() - self.attributes:
            near = difflib.get_close_matches(str(name), self.attributes, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise writer.error(f"{self.name} has no field {short(name)}{hint}")

    def _check_absent(self, writer: Writer, field: Field, value: Mapping[str, Any]) -> None:
        field_value = value.get(field.attribute, NO_DEFAULT)
        if field_value is NO_DEFAULT or field.ignorable or field.is_default(field_value):
            return
        writer.path.append(field.json_name)
        lack = "version has no such field" if field.tag is None else "encoding has no tagged fields"
        raise writer.error(f"this {lack}, but {short(field_value)} is not the field's default")

    def _write_tagged_fields(
        self, writer: Writer, value: Mapping[str, Any], unknown: Mapping[int, bytes]
    ) -> None:
        payloads: dict[int, bytes | bytearray] = {}
        for tag, field in self.tagged.items():
            field_value = value.get(field.attribute, NO_DEFAULT)
            if field_value is NO_DEFAULT or field.is_default(field_value):
                continue
            payload = Writer(lenient=writer.lenient)
            payload.path = [*writer.path, field.json_name]
            field.type.write(payload, field_value)
            payloads[tag] = payload.buffer
        taken = self.tagged.keys() | self.refused_tags
        write_tagged_fields(writer, self.form, payloads, unknown, taken)

    def is_default(self, value: Any, default: Any) -> bool:
        """Return whether ``value`` equals ``default``, which is None or a structure of defaults."""
        if default is None or value is None:
            return value is default
        if not isinstance(value, Mapping) or value.get(UNKNOWN_TAGGED_FIELDS):
            return False
        return all(
            field.is_default(value[field.attribute])
            for field in self.fields
            if field.attribute in value
        )


def tagged_fields(fields: Mapping[int, Field] | None, name: str) -> dict[int, Field]:
    """Return an argument that must map tags to fields, with the tag set in each field."""
    if fields is not None and not isinstance(fields, Mapping):
        raise refuse(name, "a mapping of tags to fields", fields)
    return {tag: _tagged(tag, field) for tag, field in (fields or {}).items()}


def _tagged(tag: int, field: Field) -> Field:
    if type(tag) is not int or not 0 <= tag <= HIGHEST_TAG:
        raise ArgumentError(f"expected a tag from 0 to {HIGHEST_TAG}, got {short(tag)}")
    return replace(
        to_kind(field, f"the field of tag {tag}", Field), presence=Presence.TAGGED, tag=tag
    )


@dataclass(frozen=True)
class NullableStruct(Type):
    """A structure after a marker. The marker is negative for null, in any version.

    The marker is an int8 with the value -1 or 1. In a tagged field, the marker is an unsigned
    varint with the value 0 or 1.
    """

    schema: Schema
    tagged: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]  # the structure's
        """The name of the structure."""
        return self.schema.name

    def layout(self) -> object:
        return ("NULLABLE", self.schema.layout())

    def read(self, reader: Reader) -> dict[str, Any] | None:
        return None if self.read_is_null(reader) else self.schema.read(reader)

    def skip(self, reader: Reader) -> None:
        if not self.read_is_null(reader):
            self.schema.skip(reader)

    def read_is_null(self, reader: Reader) -> bool:
        """Read the marker. Return whether the marker means null.

        Raises `DecodeError` for an invalid marker.
        """
        start = reader.position
        marker = reader.read_unsigned_varint() if self.tagged else reader.take(1)[0]
        null = not 0 < marker <= HIGHEST_TAG if self.tagged else marker > 0x7F
        if marker not in ((0, 1) if self.tagged else (0xFF, 1)) and not reader.lenient:
            raise reader.error(
                f"expected the marker for null or for a structure, got {marker}", start
            )
        reader.annotate(start, "null marker", null)
        return null

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            writer.write(b"\x00" if self.tagged else b"\xff")
            return
        writer.write(b"\x01")
        self.schema.write(writer, value)

    def is_default(self, value: Any, default: Any) -> bool:
        return self.schema.is_default(value, default)


def struct_of(kind: Type) -> Schema | None:
    """Return the structure in a type: the type itself, after a marker, or an array's element."""
    if isinstance(kind, ArrayType):
        kind = kind.element
    if isinstance(kind, NullableStruct):
        return kind.schema
    return kind if isinstance(kind, Schema) else None
