"""Bodies as Kafka 2.7 and earlier write them, which is text, as the JSON that later ones write.

``{group_id=readers,topics=[{name=orders,partitions=[{…}]}],_tagged_fields={}}``
The fields are those of the version, in the order of the wire. Strings are not quoted: one that
holds what separates fields cannot be told from fields, and then there is no body. Bytes are not in
the text, so they are left out; of records there is the size.
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
    """Give the JSON of a body; None where the text is not surely that of the version, or too large.

    >>> body_of_text("{group_id=g,generation_id=1,member_id=m}", "HeartbeatRequest", 0)
    b'{"groupId":"g","generationId":1,"memberId":"m"}'
    >>> body_of_text("{group_id=a,generation_id=1,generation_id=1}", "HeartbeatRequest", 0)
    """
    if is_too_large(text.encode()):
        return None
    try:
        schema = message(name).definition.schema(version)
        reader = _TextReader(text, _names(name, version))
        found = reader.struct(schema)
    except (_UnsureError, UnknownMessageError, RecursionError):
        return None
    if reader.at != len(text):
        return None
    return json.dumps(found, separators=(",", ":")).encode()


class _UnsureError(Exception):
    """The text is not what the version has."""


@per_catalog
@lru_cache(maxsize=4096)
def _names(name: str, version: int) -> dict[tuple[str, str], tuple[str, ...]]:
    """What a field may be called in text: by structure and its name in JSON."""
    definition = message(name).definition
    former = definition.served.former_names(version)
    found: dict[tuple[str, str], tuple[str, ...]] = {}

    def add(schema: Schema) -> None:
        for one in schema.fields:
            old = [
                there
                for there, here in former.get(schema.name, {}).items()
                if here == one.json_name
            ]
            words = [
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", n).lower() for n in (one.json_name, *old)
            ]
            found[schema.name, one.json_name] = tuple(dict.fromkeys(words))
            kind: Any = one.type
            while isinstance(kind, ArrayType | NullableStruct):
                kind = kind.element if isinstance(kind, ArrayType) else kind.schema
            if isinstance(kind, Schema):
                add(kind)

    add(definition.schema(version))
    return found


class _TextReader:
    """Reads a text from the front."""

    def __init__(self, text: str, names: dict[tuple[str, str], tuple[str, ...]]) -> None:
        self._text = text
        self._names = names
        self.at = 0

    def struct(self, schema: Schema) -> dict[str, Any]:
        self._take("{")
        found: dict[str, Any] = {}
        inline = [one for one in schema.fields if one.presence is Presence.INLINE]
        for place, one in enumerate(inline):
            if place:
                self._take(",")
            self._name(schema, one.json_name)
            if isinstance(one.type, Bytes):
                self._bytes(found, one.json_name)
            else:
                found[one.json_name] = self._value(one.type, is_nullable=one.nullable)
        if schema.flexible:
            self._take("," * bool(inline) + _TAGGED)
            self._tagged(schema, found)
        self._take("}")
        return found

    def _take(self, text: str) -> None:
        if not self._text.startswith(text, self.at):
            raise _UnsureError
        self.at += len(text)

    def _takes(self, text: str) -> bool:
        found = self._text.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def _name(self, schema: Schema, name: str) -> None:
        """Read a field's name: one of its own, or an older one that no other field has."""
        matched = _ANY_NAME.match(self._text, self.at)
        if matched is None:
            raise _UnsureError
        others = (self._names[schema.name, one.json_name] for one in schema.fields)
        is_own = matched[1] in self._names[schema.name, name]
        if not is_own and any(matched[1] in one for one in others):
            raise _UnsureError
        self.at = matched.end()

    def _tagged(self, schema: Schema, found: dict[str, Any]) -> None:
        """Read tagged fields, which stand by their tags."""
        known = {one.tag: one for one in schema.fields if one.presence is Presence.TAGGED}
        is_first = True
        while not self._takes("}"):
            if not is_first:
                self._take(",")
            is_first = False
            tag = _TAG.match(self._text, self.at)
            one = known.pop(int(tag[1]), None) if tag is not None else None
            if tag is None or one is None or isinstance(one.type, Bytes):
                raise _UnsureError
            self.at = tag.end()
            found[one.json_name] = self._value(one.type, is_nullable=one.nullable)

    def _bytes(self, found: dict[str, Any], name: str) -> None:
        if (records := _RECORDS.match(self._text, self.at)) is not None:
            found[f"{name}{SIZE_SUFFIX}"] = int(records[1])
            self.at = records.end()
        elif (data := _BYTES.match(self._text, self.at)) is not None:
            self.at = data.end()
        else:
            self._take(_NULL)
            found[name] = None

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
        # Doubles are nowhere in these releases but in quotas.
        if isinstance(kind, Boolean | Integer | Float64 | Bytes):
            raise _UnsureError
        return text

    def _array(self, kind: ArrayType, *, is_nullable: bool) -> list[Any] | None:
        if is_nullable and self._takes(_NULL):
            return None
        self._take("[")
        found: list[Any] = []
        while not self._takes("]"):
            if found:
                self._take(",")
            before = self.at
            found.append(self._value(kind.element, is_nullable=False))
            if self.at == before and not self._text.startswith(("]", ","), self.at):
                raise _UnsureError
            if self.at == before and self._text.startswith("]", self.at) and len(found) > 1:
                # After a comma something stands.
                raise _UnsureError
        return found
