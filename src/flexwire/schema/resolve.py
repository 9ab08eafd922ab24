"""Resolve a message spec into the schema of one version. No other module decides a layout.

The module decides whether a field exists, whether it is inline or tagged, whether it is compact,
whether it is nullable, and what its default is. All executors use the result unchanged. The sources
are KIP-482 ("JSON Schemas" and "Serialization"), and Kafka's released code where it has more rules.
"""

from __future__ import annotations

import math
import re
import uuid
from typing import TYPE_CHECKING, Any

from flexwire.errors import SpecError
from flexwire.versions import Versions
from flexwire.wire import types
from flexwire.wire.encoding import Encoding
from flexwire.wire.limits import RANGES
from flexwire.wire.schema import Field, NullableStruct, Presence, Schema
from flexwire.wire.tags import TagForm
from flexwire.wire.varint import parse_uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.schema.spec import FieldSpec, FieldType, MessageSpec


# A spec, and the versions for which it is used.
ServedSpec = tuple["MessageSpec", "Versions"]
# The description of a field in a spec, and the versions for which this spec is used.
Mention = tuple["FieldSpec", "Versions"]
Fields = dict[str, dict[str, list[Mention]]]


def union(specs: Iterable[ServedSpec]) -> Fields:
    """Return the fields of a message and its structures, by structure name and attribute.

    The message comes first. Fields are in the order of the first spec, followed by the fields that
    are only in later specs. Each field comes with its descriptions from all specs that contain it,
    in the order of the specs. If the newest spec is first, the first description determines the
    default.
    """
    structures: Fields = {}
    for spec, versions in specs:
        message_first = {spec.name: spec.fields} | spec.fields_by_structure()
        for name, fields in message_first.items():
            mentions_by_attribute = structures.setdefault(name, {})
            for field in fields:
                mentions_by_attribute.setdefault(field.attribute, []).append((field, versions))
    return structures


def types_of(mentions: Sequence[Mention]) -> tuple[FieldType, ...]:
    """Return a field's types. If specs differ, there are several types."""
    return tuple(dict.fromkeys(spec.type for spec, _ in mentions))


_FIXED_WIDTH = {
    "bool": types.BOOLEAN,
    "int8": types.INT8,
    "int16": types.INT16,
    "uint16": types.UINT16,
    "int32": types.INT32,
    "uint32": types.UINT32,
    "int64": types.INT64,
    "float64": types.FLOAT64,
    "uuid": types.UUID,
}
MOST_NESTED = 100
_INTEGER = re.compile(r"[+-]?[0-9]+|0x[0-9a-fA-F]+")
_UUID = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")
_DOUBLE = re.compile(
    r"([+-]?(?:NaN|Infinity"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
)
ZERO_UUID = uuid.UUID(int=0)
_FORMS = {
    Encoding.INTERLEAVED: TagForm.INTERLEAVED,
    Encoding.OPTIONAL_BUFFERS: TagForm.BUFFER,
}


def resolve(
    spec: MessageSpec,
    version: int,
    others: Sequence[ServedSpec] = (),
    encoding: Encoding = Encoding.KAFKA,
) -> Schema:
    """Return the schema of ``version``. The version need not be valid.

    ``others`` are the message's specs for other versions, the newest first. Fields that are only in
    these specs become absent fields here, so that a value in such a field is not lost silently.
    ``encoding`` determines how the version is written. See `effective` for the cases in which this
    makes a difference.

    Raises `SpecError` for a spec that cannot have a layout: with an unknown structure, a structure
    inside itself, more than 100 nested structures, a default that is not a value of its field's
    type, a tag in a version without a tag section, or an array whose elements take no bytes.
    """
    return _Resolver(spec, version, others, effective(spec, version, encoding)).message()


def effective(spec: MessageSpec, version: int, encoding: Encoding) -> Encoding:
    """Return KAFKA if ``encoding`` writes the version in the same way, and otherwise ``encoding``.

    Like KIP-482 itself, the drafts of the KIP did not change versions that are not flexible.
    """
    if version in spec.flexible_versions:
        return Encoding.KAFKA if encoding is Encoding.FLEXIBLE else encoding
    return encoding if encoding in {Encoding.FIXED, Encoding.FLEXIBLE} else Encoding.KAFKA


class _Resolver:
    def __init__(
        self,
        spec: MessageSpec,
        version: int,
        others: Sequence[ServedSpec],
        encoding: Encoding,
    ) -> None:
        self.spec = spec
        self.version = version
        self.flexible = version in spec.flexible_versions
        self.encoding = encoding
        self.has_tags = encoding is not Encoding.FIXED and (
            self.flexible or encoding is Encoding.FLEXIBLE
        )
        # The first draft is older than the compact types, so its lengths are of fixed size.
        self.has_compact_types = encoding not in {Encoding.FIXED, Encoding.OPTIONAL_BUFFERS}
        self.structs = spec.fields_by_structure()
        # The fields of each structure that exist only in other specs.
        self.elsewhere: dict[str, list[FieldSpec]] = {}
        if others:
            own = (spec, Versions(version, version))
            for name, fields in union([own, *others]).items():
                mine = {field.attribute for field in self.structs.setdefault(name, ())}
                others_say = (
                    mentions for attribute, mentions in fields.items() if attribute not in mine
                )
                self.elsewhere[name] = [mentions[0][0] for mentions in others_say]
        self.open: list[str] = []
        self.made: dict[str, Schema] = {}

    def message(self) -> Schema:
        return self.struct(self.spec.name)

    def struct(self, name: str) -> Schema:
        # A structure is the same in every place, and a spec may use it very often.
        if name not in self.made:
            self.made[name] = self.make(name, self.structs[name])
        return self.made[name]

    def make(self, name: str, fields: tuple[FieldSpec, ...]) -> Schema:
        self.open.append(name)
        if len(self.open) > MOST_NESTED:
            raise SpecError(
                f"more than {MOST_NESTED} nested structures",
                source=self.spec.source or self.spec.name,
            )
        resolved = tuple(self.field(field) for field in fields)
        resolved += tuple(
            self.field(field_spec, Presence.ABSENT) for field_spec in self.elsewhere.get(name, ())
        )
        refused = frozenset(
            each_field.tag
            for each_field in fields
            if each_field.tag is not None and self.version not in each_field.tagged_versions
        )
        self.open.pop()
        form = _FORMS.get(self.encoding, TagForm.SECTION)
        return Schema.resolved(
            name, resolved, flexible=self.has_tags, refused_tags=refused, form=form
        )

    def field(self, field: FieldSpec, presence: Presence | None = None) -> Field:
        presence = presence or self.presence(field)
        tag = field.tag if presence is Presence.TAGGED else None
        ignorable = field.ignorable
        if presence is Presence.TAGGED and not self.has_tags:
            # The version has the field, so the field's value must not be lost, even if the field is
            # ignorable.
            presence, ignorable = Presence.ABSENT, False
        nullable = self.version in field.nullable_versions
        return Field(
            name=field.name,
            attribute=field.attribute,
            json_name=field.json_name,
            type=self.type(field, presence, nullable=nullable),
            presence=presence,
            default=parse_default(field, self.spec.source or self.spec.name),
            tag=tag,
            ignorable=ignorable,
            nullable=nullable,
        )

    def presence(self, field: FieldSpec) -> Presence:
        if field.tag is not None and self.version in field.tagged_versions:
            if not self.flexible:
                raise self.error(field, f"tagged in version {self.version}, which is not flexible")
            return Presence.TAGGED
        return Presence.INLINE if self.version in field.versions else Presence.ABSENT

    def type(self, field: FieldSpec, presence: Presence, *, nullable: bool) -> types.Type:
        # A tagged field is always in flexible form, even if an override says otherwise.
        compact = (
            self.has_tags
            if field.flexible_versions is None
            else self.version in field.flexible_versions
        )
        compact = self.has_compact_types and (compact or presence is Presence.TAGGED)
        if field.type.is_array:
            element = self.element(field, compact=compact)
            if presence is not Presence.ABSENT and not element.least_size:
                # Such a count would have no relation to the number of bytes after it, so it could
                # not be checked.
                raise self.error(field, f"the elements take no bytes in version {self.version}")
            return types.ArrayType(element=element, compact=compact, nullable=nullable)
        if field.type.is_struct:
            schema = self.nested(field)
            if nullable:
                # The varint marker of a tagged structure was introduced together with the compact
                # types.
                return NullableStruct(schema, tagged=compact and presence is Presence.TAGGED)
            return schema
        return self.primitive(field, compact=compact, nullable=nullable)

    def element(self, field: FieldSpec, *, compact: bool) -> types.Type:
        if field.type.is_struct:
            return self.nested(field)
        return self.primitive(field, compact=compact, nullable=False)

    def primitive(self, field: FieldSpec, *, compact: bool, nullable: bool) -> types.Type:
        if field.type.name == "string":
            return types.String(compact=compact, nullable=nullable)
        if field.type.name in ("bytes", "records"):
            return types.Bytes(compact=compact, nullable=nullable, kind=field.type.name.upper())
        return _FIXED_WIDTH[field.type.name]

    def nested(self, field: FieldSpec) -> Schema:
        name = field.type.name
        if name in self.open:
            raise self.error(field, f"structure {name} contains itself")
        if name not in self.structs:
            raise self.error(field, f"structure {name} is never defined")
        return self.struct(name)

    def error(self, field: FieldSpec, reason: str) -> SpecError:
        return SpecError(
            f"field {field.name}: {reason}",
            source=self.spec.source or self.spec.name,
            line=field.position.line,
            column=field.position.column,
        )


def parse_default(field: FieldSpec, source: str = "<spec>") -> Any:
    """Return the value of a field's default.

    If there is no default, the value is zero, false or empty, and null for records. An empty tuple
    means an empty array, and an empty mapping means a default structure. Raises `SpecError` for a
    string that is not a value of the field's type.
    """
    text = field.default
    try:
        # The default of records is always null in Kafka, even if the spec says otherwise.
        if field.type.name == "records" and not field.type.is_array:
            return None
        if text == "null" and (field.nullable_versions or field.type.name == "string"):
            return None
        if field.type.is_array or field.type.is_struct:
            return _empty(text, () if field.type.is_array else {})
        return _SCALARS[field.type.name](text)
    except ValueError as error:
        raise SpecError(
            f"field {field.name}: default {text!r} is not a {field.type}: {error}",
            source=source,
            line=field.position.line,
            column=field.position.column,
        ) from None


def _empty(text: str, value: Any) -> Any:
    if text:
        raise ValueError("the only possible defaults are 'null' and an empty string")
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in ("", "true", "false"):
        raise ValueError("write 'true' or 'false'")
    return text.lower() == "true"


def _integer(lowest: int, highest: int) -> Any:
    def parse(text: str) -> int:
        if text and not _INTEGER.fullmatch(text):
            raise ValueError("write decimal digits, or 0x and hex digits")
        value = int(text, 0) if text.startswith("0x") else int(text or "0")
        if not lowest <= value <= highest:
            raise ValueError(f"not in {lowest} to {highest}")
        return value

    return parse


def _uuid(text: str) -> uuid.UUID:
    if not text:
        return ZERO_UUID
    if not _UUID.fullmatch(text):
        raise ValueError("write 22 characters of base64url")
    return parse_uuid_text(text[:22])


def _double(text: str) -> float:
    # In Java, a number may have a suffix f or d, or consist of hexadecimal digits with a binary
    # exponent.
    if not text:
        return 0.0
    match = _DOUBLE.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a number in Java's notation")
    if "0x" not in match[1].lower():
        return float(match[1])
    try:
        return float.fromhex(match[1])
    except OverflowError:
        # Java rounds this to infinity. For decimal digits, Python does the same.
        return math.copysign(math.inf, -1 if match[1].startswith("-") else 1)


_SCALARS: dict[str, Any] = {
    "bool": _boolean,
    "int8": _integer(*RANGES["INT8"]),
    "int16": _integer(*RANGES["INT16"]),
    "uint16": _integer(*RANGES["UINT16"]),
    "int32": _integer(*RANGES["INT32"]),
    "uint32": _integer(*RANGES["UINT32"]),
    "int64": _integer(*RANGES["INT64"]),
    "float64": _double,
    "uuid": _uuid,
    "string": lambda text: text,
    "bytes": lambda text: _empty(text, b""),
}
