"""Parse the text of a message spec into a `MessageSpec`. Errors contain a line and a column.

The sources are KIP-482 ("JSON Schemas"), and the keys, types and conversions of Kafka's generator.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from flexwire.errors import short
from flexwire.schema.coercion import Members
from flexwire.schema.spec import FieldSpec, FieldType, MessageSpec, MessageType, StructSpec
from flexwire.schema.text import SpecText
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.schema.text import Node

_STRUCT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
Mode = Literal["strict", "legacy", "kip", "draft"]

# The order is the same as in Kafka's enums, because a spec may use the number of a value.
_TYPES = tuple(message_type.value for message_type in MessageType)
_LISTENERS = ("zkBroker", "broker", "controller")
_ENTITY_TYPES = ("unknown", "transactionalId", "producerId", "groupId", "topicName", "brokerId")
_MESSAGE_KEYS = (
    "name",
    "validVersions",
    "deprecatedVersions",
    "fields",
    "apiKey",
    "type",
    "commonStructs",
    "flexibleVersions",
    "listeners",
    "latestVersionUnstable",
    "headerVersions",
)
_STRUCT_KEYS = ("name", "versions", "deprecatedVersions", "fields")
_FIELD_KEYS = (
    "name",
    "versions",
    "fields",
    "type",
    "mapKey",
    "nullableVersions",
    "default",
    "ignorable",
    "entityType",
    "about",
    "taggedVersions",
    "flexibleVersions",
    "tag",
    "zeroCopy",
)
# The first draft of KIP-482 used other words for tagged fields, and had none for compact fields.
_DRAFT_MESSAGE_KEYS = (
    *(key for key in _MESSAGE_KEYS if key not in {"flexibleVersions", "headerVersions"}),
    "versionsWithOptional",
    "optionalFields",
)
_DRAFT_STRUCT_KEYS = (*_STRUCT_KEYS, "optionalFields")
_DRAFT_FIELD_KEYS = (
    *(key for key in _FIELD_KEYS if key not in {"tag", "taggedVersions", "flexibleVersions"}),
    "optionalFields",
)
_OPTIONAL_FIELD_KEYS = (
    *(key for key in _DRAFT_FIELD_KEYS if key not in {"versions", "nullableVersions"}),
    "tag",
    "nullable",
)
_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


def parse_spec(text: str, source: str = "<spec>", *, mode: Mode = "legacy") -> MessageSpec:
    """Read one message spec.

    ``strict`` refuses a spec that Kafka's generator from 2024 cannot read. The linter checks the
    generator's other rules. ``legacy`` also reads every spec of earlier releases:
    ``flexibleVersions`` may be missing (then no version is flexible), a tagged structure may leave
    out its ``versions``, and text after the spec is ignored. ``kip`` is like ``strict``, with an
    additional rule of KIP-482: a tag without ``taggedVersions`` applies to all flexible versions.
    Kafka's generator and the other modes refuse such a field. ``draft`` is the grammar of the first
    draft of KIP-482: ``versionsWithOptional`` contains the flexible versions, and
    ``optionalFields`` contains the fields that are tagged in all of these.

    Raises `SpecError` for a spec that is refused. Rules about style and compatibility are not
    checked here.

    >>> spec = parse_spec('{"name": "Foo", "type": "data", "validVersions": "0-2", "fields": ['
    ...                   '{"name": "Bar", "type": "[]int8", "versions": "1+"}]}')
    >>> spec.name, str(spec.valid_versions), spec.fields[0].position
    ('Foo', '0-2', Position(line=1, column=68))
    >>> parse_spec('{"nam": "Foo"}', "Foo.json")
    Traceback (most recent call last):
    flexwire.errors.SpecError: Foo.json:1:2: unknown key 'nam' in the spec; did you mean 'name'?
    """
    whole = SpecText(text, source)
    return parse_node(whole, whole.read(whole=mode != "legacy"), mode=mode)


def parse_node(text: SpecText, node: Node, *, mode: Mode = "legacy") -> MessageSpec:
    """Read the message spec in a node of a larger text.

    If the text collects problems, a refused value is read as absent, or as an arbitrary value. The
    spec is then useful only for finding more problems.
    """
    return _Parser(text, mode).message(node)


class _Parser:
    def __init__(self, text: SpecText, mode: Mode) -> None:
        self.text = text
        self.mode = mode
        self.flexible = Versions.NONE
        # The places at which each structure is defined with its fields.
        self.structs: dict[str, int] = {}

    def message(self, node: Node) -> MessageSpec:
        keys = _DRAFT_MESSAGE_KEYS if self.mode == "draft" else _MESSAGE_KEYS
        members = Members(self.text, node, "the spec", keys)
        name = self.identifier(members)
        kind = members.choice("type", _TYPES)
        if kind is None:
            reason = f"the spec has no 'type'; add one of {', '.join(_TYPES)}"
            members.refuse("TYPE_MISSING", reason, "type")
        valid = members.versions("validVersions")
        self.flexible = self.message_flexible(members, valid)
        structs = tuple(self.struct(field_node) for field_node in members.items("commonStructs"))
        return MessageSpec(
            name=name,
            type=MessageType(kind or "data"),
            valid_versions=valid,
            flexible_versions=self.flexible,
            fields=self.fields(members, name),
            api_key=members.integer("apiKey", 16),
            common_structs=structs,
            deprecated_versions=members.versions("deprecatedVersions", Versions.NONE),
            listeners=members.choices("listeners", _LISTENERS),
            latest_version_unstable=members.flag("latestVersionUnstable"),
            # Kafka ignores this key in a message without valid versions.
            header_versions=members.header_versions("headerVersions") if valid else None,
            source=self.text.source,
        )

    def message_flexible(self, members: Members, valid: Versions) -> Versions:
        if self.mode == "draft":
            return members.versions("versionsWithOptional", Versions.NONE)
        # If a message has no valid versions, a release removed it. The spec of such a message
        # contains no other keys.
        if self.mode != "legacy" and valid and "flexibleVersions" not in members:
            reason = "the spec has no 'flexibleVersions'; write '0+' in a new spec"
            members.refuse("FLEXIBLE_VERSIONS_MISSING", reason, "flexibleVersions")
            return Versions.ALL
        return members.versions("flexibleVersions", Versions.NONE)

    def identifier(self, members: Members) -> str:
        name = members.required("name", "NAME_MISSING")
        # Python would accept letters of other alphabets, and would treat some of them as the same
        # name.
        if not _STRUCT_NAME.fullmatch(name):
            reason = f"{short(name)} cannot be the name of a class; use letters"
            members.refuse("NAME_INVALID", reason, "name")
        return name

    def struct(self, node: Node) -> StructSpec:
        keys = _DRAFT_STRUCT_KEYS if self.mode == "draft" else _STRUCT_KEYS
        members = Members(self.text, node, "the structure", keys)
        name = self.identifier(members)
        members.what = f"structure {name}"
        if not name[:1].isupper():
            reason = f"structure {name!r} begins with a lowercase letter"
            members.refuse("STRUCT_NAME_LOWERCASE", reason, "name")
        self.remember(members, name)
        return StructSpec(
            name=name,
            versions=members.versions("versions"),
            fields=self.fields(members, name),
            deprecated_versions=members.versions("deprecatedVersions", Versions.NONE),
            position=members.position,
        )

    def remember(self, members: Members, name: str) -> None:
        first = self.structs.setdefault(name, members.offset)
        if first != members.offset:
            at = self.text.position(first)
            reason = (
                f"structure {name} is defined twice, first at "
                f"{at.line}:{at.column}; define it once, for example in 'commonStructs'"
            )
            self.text.refuse("STRUCT_REPEATED", reason, members.position)

    def fields(self, members: Members, owner: str) -> tuple[FieldSpec, ...]:
        # Only the draft uses this key. A structure begins with its optional fields.
        optional = tuple(
            self.field(node, optional=True) for node in members.items("optionalFields")
        )
        fields = optional + tuple(self.field(field_node) for field_node in members.items("fields"))
        # Two names must also differ in their JSON form and as Python attributes.
        names = ((field, field.attribute, f"name {field.name}") for field in fields if field.name)
        self.check_unique("NAME_REPEATED", owner, names)
        tags = (
            (field_spec, field_spec.tag, f"tag {field_spec.tag}")
            for field_spec in fields
            if field_spec.tag is not None
        )
        self.check_unique("TAG_REPEATED", owner, tags)
        return fields

    def check_unique(
        self, rule: str, owner: str, marks: Iterable[tuple[FieldSpec, object, str]]
    ) -> None:
        seen: dict[object, FieldSpec] = {}
        for place, mark, what in marks:
            first = seen.setdefault(mark, place)
            if first is not place:
                reason = f"{what} in {owner} already belongs to field {first.name}"
                self.text.refuse(rule, reason, place.position)

    def field(self, node: Node, *, optional: bool = False) -> FieldSpec:
        keys = _DRAFT_FIELD_KEYS if self.mode == "draft" else _FIELD_KEYS
        members = Members(self.text, node, "the field", _OPTIONAL_FIELD_KEYS if optional else keys)
        name = members.required("name", "NAME_MISSING")
        if not _FIELD_NAME.fullmatch(name):
            reason = f"field name {short(name)} must consist of letters and digits"
            members.refuse("NAME_INVALID", reason, "name")
        members.what = f"field {name}"
        type_ = self.type(members)
        tag, tagged = self.optional_tag(members) if optional else self.tag(members)
        return FieldSpec(
            name=name,
            type=type_,
            versions=self.versions(members, type_, tagged),
            nullable_versions=self.nullable(members, type_),
            tag=tag,
            tagged_versions=tagged,
            flexible_versions=self.override(members),
            default=members.string("default") or "",
            ignorable=members.flag("ignorable"),
            map_key=members.flag("mapKey"),
            zero_copy=members.flag("zeroCopy"),
            entity_type=self.entity_type(members),
            about=members.string("about") or "",
            fields=self.inline(members, type_),
            position=members.position,
        )

    def optional_tag(self, members: Members) -> tuple[int | None, Versions]:
        tag = members.integer("tag", 16, hexadecimal=True)
        if tag is None:
            reason = f"{members.what} is optional but has no 'tag'; add a tag"
            members.refuse("TAG_MISSING", reason, "tag")
        elif tag < 0:
            self.negative(members, tag)
        elif not self.flexible:
            reason = (
                f"{members.what} is optional but the spec has no 'versionsWithOptional'; add it"
            )
            members.refuse("TAGGED_VERSIONS_MISSING", reason, "versionsWithOptional")
        return tag, self.flexible

    def negative(self, members: Members, tag: int) -> None:
        members.refuse("TAG_NEGATIVE", f"{members.what} has tag {tag}; tags begin at 0", "tag")

    def type(self, members: Members) -> FieldType:
        text = members.required("type", "TYPE_MISSING")
        try:
            type_ = FieldType.parse(text)
        except ValueError as error:
            members.refuse("TYPE_INVALID", f"{members.what}: {error}", "type")
            return FieldType(text, is_array=True)
        if type_.is_struct and not _STRUCT_NAME.fullmatch(type_.name):
            reason = f"{short(type_.name)} cannot be the name of a class"
            members.refuse("TYPE_INVALID", reason, "type")
        return type_

    def tag(self, members: Members) -> tuple[int | None, Versions]:
        tag = members.integer("tag", 32)
        tagged = members.versions("taggedVersions", Versions.NONE)
        if tag is None:
            if tagged:
                reason = f"{members.what} has 'taggedVersions' but no 'tag'; add a tag"
                members.refuse("TAG_MISSING", reason, "tag", "taggedVersions")
            return None, tagged
        if tag < 0:
            self.negative(members, tag)
        if self.mode == "kip" and "taggedVersions" not in members:
            tagged = self.flexible
        if not tagged:
            reason = f"{members.what} has a tag but no 'taggedVersions'; add this key"
            members.refuse("TAGGED_VERSIONS_MISSING", reason, "taggedVersions", "tag")
        return tag, tagged

    def versions(self, members: Members, type_: FieldType, tagged: Versions) -> Versions:
        # Kafka's generator ignores the tagged versions of a field if the field's structure is
        # inline. Kafka has released such a spec: FetchRequest.json of 3.5.
        inline = type_.is_struct and "fields" in members and self.mode == "strict"
        return members.versions("versions", None if inline or not tagged else tagged)

    def nullable(self, members: Members, type_: FieldType) -> Versions:
        key = "nullable" if members.flag("nullable") else "nullableVersions"
        nullable = members.versions("nullableVersions", Versions.NONE)
        if key == "nullable":
            nullable = self.flexible
        if nullable and not type_.has_null:
            reason = f"{members.what}: type {type_} cannot be null; remove {key!r}"
            members.refuse("TYPE_NOT_NULLABLE", reason, key)
        return nullable

    def override(self, members: Members) -> Versions | None:
        # A string of blanks is an error here. Only an empty string counts as absent.
        if not members.string("flexibleVersions"):
            return None
        return members.versions("flexibleVersions")

    def entity_type(self, members: Members) -> str:
        chosen = members.choice("entityType", _ENTITY_TYPES)
        return "" if chosen in (None, "unknown") else str(chosen)

    def inline(self, members: Members, type_: FieldType) -> tuple[FieldSpec, ...]:
        key = next((key for key in ("fields", "optionalFields") if key in members), None)
        if key is None:
            return ()
        if type_.is_struct:
            self.remember(members, type_.name)
        elif not type_.is_array:
            reason = f"{members.what}: type {type_} has no fields; use a structure"
            members.refuse("TYPE_WITHOUT_FIELDS", reason, key)
        return self.fields(members, type_.name)
