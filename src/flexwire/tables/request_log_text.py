"""Convert bodies in the text form of Kafka 2.7 and earlier to the JSON of later releases.

``{group_id=readers,topics=[{name=orders,partitions=[{…}]}],_tagged_fields={}}`` The fields are
those of the version, in the order of the protocol. Strings are not quoted. If a string contains a
character that separates fields, the text is ambiguous and the body is dropped. The text does not
contain bytes, so these are left out. In place of records, the text contains their size.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from flexwire.codec import message
from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import per_catalog
from flexwire.tables.request_log_bodies import SIZE_SUFFIX, is_too_large
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer

if TYPE_CHECKING:
    from flexwire.wire.types import Type

_VALUE: Final = re.compile(r"[^,={}\[\]]*")
_RECORDS: Final = re.compile(r"\w+\(size=(\d{1,18})(?:, [^()]*)?\)")
_BYTES: Final = re.compile(r"java\.nio\.\w+\[[^\[\]]*\]|\[B@[0-9a-f]+")
_INTEGER: Final = re.compile(r"-?\d{1,20}")
_TAGGED: Final = "_tagged_fields={"
_TAG: Final = re.compile(r"(\d{1,10})=")
_ANY_NAME: Final = re.compile(r"(\w+)=")
_NULL: Final = "null"
_TRUTH: Final = {"true": True, "false": False}


def body_of_text(text: str, name: str, version: int) -> bytes | None:
    """Return a body's JSON, or None if the text may be in another version or is too large.

    >>> body_of_text("{group_id=g,generation_id=1,member_id=m}", "HeartbeatRequest", 0)
    b'{"groupId":"g","generationId":1,"memberId":"m"}'
    >>> body_of_text("{group_id=a,generation_id=1,generation_id=1}", "HeartbeatRequest", 0)
    """
    if is_too_large(text.encode()):
        return None
    try:
        schema = message(name).definition.schema(version)
        reader = _TextReader(text, _names(name, version))
        body = reader.struct(schema)
    except (_UnsureError, UnknownMessageError, RecursionError):
        return None
    if reader.at != len(text):
        return None
    return json.dumps(body, separators=(",", ":")).encode()


class _UnsureError(Exception):
    """The text does not match the version."""


@per_catalog
@lru_cache(maxsize=4096)
def _names(name: str, version: int) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the names that a field may have in the text, by structure and JSON name."""
    definition = message(name).definition
    former = definition.served.former_names(version)
    names: dict[tuple[str, str], tuple[str, ...]] = {}

    def add(schema: Schema) -> None:
        for field in schema.fields:
            old = [
                there
                for there, here in former.get(schema.name, {}).items()
                if here == field.json_name
            ]
            words = [
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", n).lower() for n in (field.json_name, *old)
            ]
            names[schema.name, field.json_name] = tuple(dict.fromkeys(words))
            kind: Any = field.type
            while isinstance(kind, ArrayType | NullableStruct):
                kind = kind.element if isinstance(kind, ArrayType) else kind.schema
            if isinstance(kind, Schema):
                add(kind)

    add(definition.schema(version))
    return names


class _TextReader:
    """Read a string from its beginning."""

    def __init__(self, text: str, names: dict[tuple[str, str], tuple[str, ...]]) -> None:
        self._text = text
        self._names = names
        self.at = 0

    def struct(self, schema: Schema) -> dict[str, Any]:
        self._take("{")
        values: dict[str, Any] = {}
        inline = [field for field in schema.fields if field.presence is Presence.INLINE]
        for place, field in enumerate(inline):
            if place:
                self._take(",")
            self._name(schema, field.json_name)
            if isinstance(field.type, Bytes):
                self._bytes(values, field.json_name)
            else:
                values[field.json_name] = self._value(field.type, is_nullable=field.nullable)
        if schema.flexible:
            self._take("," * bool(inline) + _TAGGED)
            self._tagged(schema, values)
        self._take("}")
        return values

    def _take(self, text: str) -> None:
        if not self._text.startswith(text, self.at):
            raise _UnsureError
        self.at += len(text)

    def _takes(self, text: str) -> bool:
        is_next = self._text.startswith(text, self.at)
        self.at += len(text) * is_next
        return is_next

    def _name(self, schema: Schema, name: str) -> None:
        """Read a field's name: the current name, or an old name that no other field has."""
        matched = _ANY_NAME.match(self._text, self.at)
        if matched is None:
            raise _UnsureError
        others = (self._names[schema.name, field.json_name] for field in schema.fields)
        is_own = matched[1] in self._names[schema.name, name]
        if not is_own and any(matched[1] in names for names in others):
            raise _UnsureError
        self.at = matched.end()

    def _tagged(self, schema: Schema, values: dict[str, Any]) -> None:
        """Read tagged fields, which the text identifies by their tags."""
        tagged = {field.tag: field for field in schema.fields if field.presence is Presence.TAGGED}
        is_first = True
        while not self._takes("}"):
            if not is_first:
                self._take(",")
            is_first = False
            tag = _TAG.match(self._text, self.at)
            field = tagged.pop(int(tag[1]), None) if tag is not None else None
            if tag is None or field is None or isinstance(field.type, Bytes):
                raise _UnsureError
            self.at = tag.end()
            values[field.json_name] = self._value(field.type, is_nullable=field.nullable)

    def _bytes(self, values: dict[str, Any], name: str) -> None:
        if (records := _RECORDS.match(self._text, self.at)) is not None:
            values[f"{name}{SIZE_SUFFIX}"] = int(records[1])
            self.at = records.end()
        elif (data := _BYTES.match(self._text, self.at)) is not None:
            self.at = data.end()
        else:
            self._take(_NULL)
            values[name] = None

    def _value(self, kind: Type, *, is_nullable: bool) -> Any:
        if isinstance(kind, ArrayType):
            return self._array(kind, is_nullable=is_nullable)
        if isinstance(kind, NullableStruct):
            return None if self._takes(_NULL) else self.struct(kind.schema)
        if isinstance(kind, Schema):
            return self.struct(kind)
        return self._plain(kind, is_nullable=is_nullable)

    def _plain(self, kind: Type, *, is_nullable: bool) -> Any:
        matched = _VALUE.match(self._text, self.at)
        text = "" if matched is None else matched[0]
        self.at += len(text)
        if text == _NULL and is_nullable:
            return None
        if isinstance(kind, Boolean) and text in _TRUTH:
            return _TRUTH[text]
        if isinstance(kind, Integer) and _INTEGER.fullmatch(text):
            return int(text)
        # In Kafka 2.7 and earlier, doubles occur only in quotas.
        if isinstance(kind, Boolean | Integer | Float64 | Bytes):
            raise _UnsureError
        return text

    def _array(self, kind: ArrayType, *, is_nullable: bool) -> list[Any] | None:
        if is_nullable and self._takes(_NULL):
            return None
        self._take("[")
        items: list[Any] = []
        while not self._takes("]"):
            if items:
                self._take(",")
            before = self.at
            items.append(self._value(kind.element, is_nullable=False))
            if self.at == before and not self._text.startswith(("]", ","), self.at):
                raise _UnsureError
            if self.at == before and self._text.startswith("]", self.at) and len(items) > 1:
                # A comma must be followed by an element.
                raise _UnsureError
        return items
