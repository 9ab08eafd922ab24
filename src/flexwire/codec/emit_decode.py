"""Writes the decoder of one message version as Python source.

Runs of fixed-width fields become one `struct` call; a varint of one byte is read in place. What the
source cannot take it refuses, and the reference executor then says what is wrong, so that there is
one set of errors.
"""

from __future__ import annotations

import struct
import uuid
from itertools import groupby
from typing import TYPE_CHECKING

from flexwire.codec.source import Refused, Source, default_expression, fixed_code
from flexwire.codec.structs import MessageStruct
from flexwire.errors import DecodeError
from flexwire.wire.limits import HIGHEST_TAG, LONGEST, LONGEST_STRING
from flexwire.wire.schema import (
    Field,
    NullableStruct,
    Presence,
    Schema,
    struct_of,
)
from flexwire.wire.tags import TagForm, separate
from flexwire.wire.types import BOOLEAN, Array, Boolean, Bytes, String, Type, Uuid
from flexwire.wire.varint import read_unsigned_varint, read_unsigned_varlong

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def _varint(data: bytes, position: int) -> tuple[int, int]:
    try:
        return read_unsigned_varint(data, position, len(data))
    except DecodeError:
        raise Refused from None


def _interleaved(data: bytes, position: int) -> tuple[int, int, int]:
    try:
        header, position = read_unsigned_varlong(data, position, len(data))
    except DecodeError:
        raise Refused from None
    return *separate(header), position


def emit_decoder(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Callable[[bytes, int, int], tuple[Any, int]]:
    """Compile ``decode(data, position, limit) -> (message, end position)``.

    Raises, when called, `Refused`, `struct.error`, `IndexError` or `ValueError`.
    """
    return emit_decoder_source(schema, classes, filename).compile(f"decode_{schema.name}")


def emit_decoder_source(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Source:
    """Give the source before it is compiled."""
    emitter = _DecoderEmitter(Source(filename), classes)
    emitter.struct(schema)
    return emitter.source


class _DecoderEmitter:
    def __init__(self, source: Source, classes: Mapping[str, type[MessageStruct]]) -> None:
        self.source = source
        self.line = source.line
        self.block = source.block
        self.classes = classes
        self.done: set[str] = set()
        self.source.namespace.update(
            Refused=Refused,
            UUID=uuid.UUID,
            unpack_from=struct.unpack_from,
            varint=_varint,
        )

    def struct(self, schema: Schema) -> None:
        if schema.name in self.done:
            return
        self.done.add(schema.name)
        for inner in inner_schemas(schema):
            self.struct(inner)
        made = self.source.constant(f"C_{schema.name}", self.classes[schema.name])
        with self.block(f"def decode_{schema.name}(data, position, limit):"):
            for one in schema.tagged.values():
                self.line(f"{_local(one)} = {self._default(one)}")
            if schema.tags_lead:
                self.line("unknown = {}")
                self._optional_field_buffer(schema)
            for fixed, fields in groupby(schema.inline, lambda one: bool(fixed_code(one.type))):
                if fixed:
                    self._run(list(fields))
                else:
                    for one in fields:
                        self._value(one.type, _local(one))
            if not schema.tags_lead:
                self.line("unknown = {}")
            if schema.flexible and not schema.tags_lead:
                self._tag_section(schema)
            self.line(f"return {made}({', '.join(self._arguments(schema))}), position")
        self.line("")

    def _default(self, one: Field) -> str:
        inner = struct_of(one.type)
        if inner is not None and not isinstance(one.type, Array):
            self.source.constant(f"C_{inner.name}", self.classes[inner.name])
            return default_expression(self.source, one.type, one.default, f"C_{inner.name}")
        return default_expression(self.source, one.type, one.default, None)

    def _arguments(self, schema: Schema) -> list[str]:
        known = {one.attribute: one for one in schema.fields}
        made = []
        for attribute in self.classes[schema.name].__struct_fields__[:-1]:
            one = known.get(attribute)
            if one is None or one.presence is Presence.ABSENT:
                made.append(self._absent(schema.name, attribute))
            else:
                made.append(_local(one))
        return [*made, "unknown"]

    def _absent(self, struct_name: str, attribute: str) -> str:
        # A fresh object tells, for a field that only another revision of the spec has too.
        value = getattr(self.classes[struct_name](), attribute)
        if isinstance(value, list):
            return "[]"
        if isinstance(value, MessageStruct):
            return self.source.constant(f"C_{type(value).__name__}", type(value)) + "()"
        return default_expression(self.source, BOOLEAN, value, None)

    def _run(self, fields: list[Field]) -> None:
        """Read neighbours of fixed width with one call."""
        layout = struct.Struct(">" + "".join(fixed_code(one.type) or "" for one in fields))
        unpack = self.source.constant(f"read_{len(self.source.namespace)}", layout.unpack_from)
        names = ", ".join(_local(one) for one in fields)
        self.line(f"({names},) = {unpack}(data, position)")
        self.line(f"position += {layout.size}")
        for one in fields:
            self._convert(one.type, _local(one))

    def _convert(self, kind: Type, name: str) -> None:
        if isinstance(kind, Uuid):
            self.line(f"{name} = UUID(bytes={name})")
        elif isinstance(kind, Boolean):
            with self.block(f"if {name} > 1:"):
                self.line("raise Refused")
            self.line(f"{name} = {name} == 1")

    def _value(self, kind: Type, name: str, limit: str = "limit") -> None:
        """Read one value of any type into ``name``."""
        code = fixed_code(kind)
        if code is not None:
            size = struct.calcsize(">" + code)
            self.line(f"({name},) = unpack_from('>{code}', data, position)")
            self.line(f"position += {size}")
            self._convert(kind, name)
        elif isinstance(kind, Schema):
            self.line(f"{name}, position = decode_{kind.name}(data, position, {limit})")
        elif isinstance(kind, NullableStruct):
            self._nullable_struct(kind, name, limit)
        else:
            self._sized(kind, name, limit)

    def _nullable_struct(self, kind: NullableStruct, name: str, limit: str) -> None:
        self.line("marker = data[position]")
        self.line("position += 1")
        with self.block("if marker == 1:"):
            self.line(f"{name}, position = decode_{kind.schema.name}(data, position, {limit})")
        with self.block(f"elif marker == {0 if kind.tagged else 255}:"):
            self.line(f"{name} = None")
        with self.block("else:"):
            self.line("raise Refused")

    def _sized(self, kind: Type, name: str, limit: str) -> None:
        """Read a string, bytes, records or array: a length, then what it counts."""
        assert isinstance(kind, String | Bytes | Array)  # noqa: S101 - there are no other types
        if kind.compact:
            self.line("count = data[position] - 1")
            self.line("position += 1")
            with self.block("if count > 126:"):
                self.line("count, position = varint(data, position - 1)")
                self.line("count -= 1")
        else:
            code, size = ("h", 2) if isinstance(kind, String) else ("i", 4)
            self.line(f"(count,) = unpack_from('>{code}', data, position)")
            self.line(f"position += {size}")
        with self.block("if count == -1:"):
            self.line(f"{name} = None" if kind.nullable else "raise Refused")
        with self.block("elif count < 0:"):
            self.line("raise Refused")
        longest = LONGEST_STRING if isinstance(kind, String) else LONGEST
        # Each element takes a byte or more, as each byte of a string does.
        with self.block(f"elif count > {limit} - position or count > {longest}:"):
            self.line("raise Refused")
        with self.block("else:"):
            self._content(kind, name, limit)

    def _content(self, kind: String | Bytes | Array, name: str, limit: str) -> None:
        if isinstance(kind, Array):
            self._elements(kind.element, name, limit)
            return
        self.line("end = position + count")
        text = ".decode()" if isinstance(kind, String) else ""
        self.line(f"{name} = data[position:end]{text}")
        self.line("position = end")

    def _elements(self, element: Type, name: str, limit: str) -> None:
        code = fixed_code(element)
        if code is not None and not isinstance(element, Boolean | Uuid):
            size = struct.calcsize(">" + code)
            with self.block(f"if count * {size} > {limit} - position:"):
                self.line("raise Refused")
            self.line(f"{name} = list(unpack_from(f'>{{count}}{code}', data, position))")
            self.line(f"position += count * {size}")
            return
        items, item = f"items_{name}", f"item_{name}"
        self.line(f"{items} = []")
        with self.block("for _ in range(count):"):
            self._value(element, item, limit)
            self.line(f"{items}.append({item})")
        self.line(f"{name} = {items}")

    def _tag_section(self, schema: Schema) -> None:
        self.line("tags = data[position]")
        self.line("position += 1")
        with self.block("if tags:"):
            with self.block("if tags > 127:"):
                self.line("tags, position = varint(data, position - 1)")
            self.line("previous = -1")
            with self.block("for _ in range(tags):"):
                if schema.form is TagForm.INTERLEAVED:
                    header = self.source.constant("interleaved", _interleaved)
                    self.line(f"tag, size, position = {header}(data, position)")
                else:
                    self.line("tag, position = varint(data, position)")
                    self.line("size, position = varint(data, position)")
                self._tagged_field(schema)

    def _optional_field_buffer(self, schema: Schema) -> None:
        self.line("size = data[position]")
        self.line("position += 1")
        self.line("previous = -1")
        with self.block("while size:"):
            with self.block("if size > 127:"):
                self.line("size, position = varint(data, position - 1)")
            # The lowest bit of a zig-zag number is its sign.
            with self.block("if size & 1:"):
                self.line("raise Refused")
            self.line("size >>= 1")
            self.line("(tag,) = unpack_from('>h', data, position)")
            self.line("position += 2")
            self._tagged_field(schema)
            self.line("size = data[position]")
            self.line("position += 1")

    def _tagged_field(self, schema: Schema) -> None:
        """Read one tagged field behind its header: ``tag``, ``size`` and ``previous`` are set."""
        self.line("stop = position + size")
        refused = self.source.constant(f"refused_{schema.name}", schema.refused_tags)
        with self.block(f"if tag <= previous or stop > limit or tag in {refused}:"):
            self.line("raise Refused")
        with self.block(f"if tag > {HIGHEST_TAG}:"):
            self.line("raise Refused")
        self.line("previous = tag")
        self._tag_switch(schema)
        with self.block("if position != stop:"):
            self.line("raise Refused")

    def _tag_switch(self, schema: Schema) -> None:
        # Side by side, because a chain of thousands of branches is too deep for Python's compiler.
        for tag, one in schema.tagged.items():
            with self.block(f"if tag == {tag}:"):
                self._value(one.type, _local(one), "stop")
        known = self.source.constant(f"known_{schema.name}", frozenset(schema.tagged))
        with self.block(f"if tag not in {known}:"):
            self.line("unknown[tag] = data[position:stop]")
            self.line("position = stop")


def _local(one: Field) -> str:
    return f"v_{one.attribute}"


def inner_schemas(schema: Schema) -> list[Schema]:
    """Give the structures that a structure's present fields hold, without theirs."""
    present = (one.type for one in schema.fields if one.presence is not Presence.ABSENT)
    return [inner for inner in map(struct_of, present) if inner is not None]
