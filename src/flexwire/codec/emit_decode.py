"""Writes the decoder of one message version as Python source.

Runs of fixed-width fields become one `struct` call; a length of one byte is read in place. What the
source cannot take it refuses, and the reference executor then says what is wrong, so that there is
one set of errors.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from flexwire.codec.emit import LONG, Emitter, fixed_code, is_number, runs
from flexwire.codec.structs import MessageStruct
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.tags import TagForm
from flexwire.wire.types import Array, Boolean, Bytes, String, Type, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from flexwire.codec.source import Source


def emit_decoder(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Callable[[bytes, int, int], tuple[Any, int]]:
    """Compile ``decode(data, position, limit) -> (message, end position)``.

    Raises, when called, `Refused`, `struct.error`, `IndexError` or `ValueError`.
    """
    emitter = _DecoderEmitter(schema, classes, filename)
    return emitter.source.compile(emitter.function(schema.name))


def emit_decoder_source(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Source:
    """Give the source before it is compiled."""
    return _DecoderEmitter(schema, classes, filename).source


class _DecoderEmitter(Emitter):
    verb = "decode"

    def emit_function(self, schema: Schema) -> None:
        head = f"def {self.function(schema.name)}(data, position, limit):"
        with self.source.function(head):
            if schema.tags_lead:
                self._tagged_fields(schema)
            for code, fields in runs(schema):
                values = [(one.type, self.names.local(one.attribute)) for one in fields]
                if len(values) > 1:
                    self._run(code, values)
                else:
                    self._value(*values[0], "limit")
            if schema.flexible and not schema.tags_lead:
                self._tagged_fields(schema)
            self._give(schema)

    # What is given back.

    def _give(self, schema: Schema) -> None:
        made, arguments = self.class_of(schema.name), self._arguments(schema)
        flat = f"return {made}({', '.join(arguments)}), position"
        if self.source.fits(flat):
            self.line(flat)
        else:
            self.source.call(made, *arguments, before="message = ")
            self.line("return message, position")

    def _arguments(self, schema: Schema) -> list[str]:
        known = schema.by_attribute
        made = []
        for attribute in self.classes[schema.name].__struct_fields__[:-1]:
            one = known.get(attribute)
            if one is None or one.presence is Presence.ABSENT:
                made.append(self._absent(schema.name, attribute))
            else:
                made.append(self.names.local(attribute))
        return [*made, "unknown" if schema.flexible else "{}"]

    def _absent(self, struct_name: str, attribute: str) -> str:
        # A fresh object says it, for a field that only another revision of the spec has too.
        value = getattr(self.classes[struct_name](), attribute)
        if isinstance(value, list):
            return "[]"
        if isinstance(value, MessageStruct):
            return f"{self.class_of(type(value).__name__)}()"
        return self.literal(value)

    # Values.

    def _run(self, code: str, values: list[tuple[Type, str]]) -> None:
        """Read neighbours of fixed width with one call, each into its local."""
        unpack = self.struct_function("unpack_from", code)
        self.source.unpack([name for _, name in values], f"{unpack}(data, position)")
        self.line(f"position += {struct.calcsize('>' + code)}")
        for kind, name in values:
            if isinstance(kind, Uuid):
                self.source.call(self.source.use("UUID"), f"bytes={name}", before=f"{name} = ")
            elif isinstance(kind, Boolean):
                self._boolean(name)

    def _boolean(self, name: str) -> None:
        with self.block(f"if {name} > 1:"):
            self.refuse()
        self.line(f"{name} = {name} == 1")

    def _value(self, kind: Type, name: str, limit: str) -> None:
        """Read one value of any type into a local."""
        code = fixed_code(kind)
        if isinstance(kind, Boolean):
            self.line(f"{name} = data[position]")
            self.line("position += 1")
            self._boolean(name)
        elif isinstance(kind, Uuid):
            raw = "bytes=data[position : position + 16]"
            self.source.call(self.source.use("UUID"), raw, before=f"{name} = ")
            self.line("position += 16")
        elif code is not None:
            self._run(code, [(kind, name)])
        elif isinstance(kind, Schema):
            self._struct(kind, name, limit)
        elif isinstance(kind, NullableStruct):
            self._nullable_struct(kind, name, limit)
        else:
            self._sized(kind, name, limit)

    def _struct(self, kind: Schema, name: str, limit: str) -> None:
        function = self.function(kind.name)
        self.source.call(function, "data", "position", limit, before=f"{name}, position = ")

    def _nullable_struct(self, kind: NullableStruct, name: str, limit: str) -> None:
        self.line("marker = data[position]")
        self.line("position += 1")
        with self.block("if marker == 1:"):
            self._struct(kind.schema, name, limit)
        with self.block(f"elif marker == {0 if kind.tagged else 255}:"):
            self.line(f"{name} = None")
        with self.block("else:"):
            self.refuse()

    def _sized(self, kind: Type, name: str, limit: str) -> None:
        """Read a string, bytes, records or array: a length, then what it counts."""
        assert isinstance(kind, String | Bytes | Array)  # noqa: S101 - there are no other types
        length = "count" if isinstance(kind, Array) else "size"
        self._length(kind, length)
        # Each element takes a byte or more, as each byte of a string does.
        width = _width(kind.element) if isinstance(kind, Array) else 1
        bytes_ = length if width == 1 else f"{length} * {width}"
        fits = f"0 <= {bytes_} <= {limit} - position"
        if not kind.nullable:
            with self.block(f"if not {fits}:"):
                self.refuse()
            self._content(kind, name, limit)
            return
        with self.block(f"if {length} == -1:"):
            self.line(f"{name} = None")
        with self.block(f"elif {fits}:"):
            self._content(kind, name, limit)
        with self.block("else:"):
            self.refuse()

    def _length(self, kind: String | Bytes | Array, length: str) -> None:
        if not kind.compact:
            code = "h" if isinstance(kind, String) else "i"
            unpack = self.struct_function("unpack_from", code)
            self.source.unpack([length], f"{unpack}(data, position)")
            self.line(f"position += {struct.calcsize('>' + code)}")
            return
        read = "read_string_length" if isinstance(kind, String) else "read_length"
        self.line(f"{length} = data[position] - 1")
        self.line("position += 1")
        with self.block(f"if {length} >= {LONG}:"):
            self.line(f"{length}, position = {self.source.use(read)}(data, position - 1)")

    def _content(self, kind: String | Bytes | Array, name: str, limit: str) -> None:
        if isinstance(kind, Array):
            self._elements(kind.element, name, limit)
            return
        text = ".decode()" if isinstance(kind, String) else ""
        self.line("end = position + size")
        self.line(f"{name} = data[position:end]{text}")
        self.line("position = end")

    def _elements(self, element: Type, name: str, limit: str) -> None:
        if is_number(element):
            format_ = f'f">{{count}}{fixed_code(element)}"'
            values = f"{self.source.use('unpack_from')}({format_}, data, position)"
            self.source.call("list", values, before=f"{name} = ")
            width = _width(element)
            self.line(f"position += {'count' if width == 1 else f'count * {width}'}")
            return
        self.line(f"{name} = []")
        with self.block("for _ in range(count):"):
            self._value(element, "item", limit)
            self.line(f"{name}.append(item)")

    # Tagged fields.

    def _tagged_fields(self, schema: Schema) -> None:
        for one in schema.tagged.values():
            self.line(f"{self.names.local(one.attribute)} = {self.default(one)}")
        if not schema.tagged:
            self._unknown_tags(schema)
            return
        self.line("unknown = {}")
        if schema.form is TagForm.BUFFER:
            self.line("tag = -1")
            with self.block("while data[position]:"):
                self._tagged_field(schema)
            self.line("position += 1")
            return
        with self.block("if data[position]:"):
            self.line(f"count, position = {self.source.use('read_count')}(data, position)")
            self.line("tag = -1")
            with self.block("for _ in range(count):"):
                self._tagged_field(schema)
        with self.block("else:"):
            self.line("position += 1")

    def _unknown_tags(self, schema: Schema) -> None:
        read = self.source.use(f"read_unknown_{self.form}tags")
        refused = [self._refused(schema)] if schema.refused_tags else []
        with self.block("if data[position]:"):
            arguments = ("data", "position", "limit", *refused)
            self.source.call(read, *arguments, before="unknown, position = ")
        with self.block("else:"):
            self.line("unknown = {}")
            self.line("position += 1")

    def _tagged_field(self, schema: Schema) -> None:
        """Read one tagged field by its tag."""
        read = self.source.use(f"read_{self.form}tag")
        self.line(f"tag, position, stop = {read}(data, position, limit, tag)")
        if schema.refused_tags:
            with self.block(f"if tag in {self._refused(schema)}:"):
                self.refuse()
        # A chain of thousands of branches would be too deep for Python's compiler.
        with self.block("match tag:"):
            for tag, one in schema.tagged.items():
                with self.block(f"case {tag}:"):
                    self._value(one.type, self.names.local(one.attribute), "stop")
            with self.block("case _:"):
                self.line("unknown[tag] = data[position:stop]")
                self.line("position = stop")
        with self.block("if position != stop:"):
            self.refuse()

    def _refused(self, schema: Schema) -> str:
        return self.tags("refused", schema, schema.refused_tags)


def _is_number(element: Type) -> bool:
    return fixed_code(element) is not None and not isinstance(element, Boolean | Uuid)


def _width(element: Type) -> int:
    """Give the least number of bytes of an element, for the types that `struct` reads in a row."""
    return struct.calcsize(f">{fixed_code(element)}") if is_number(element) else 1
