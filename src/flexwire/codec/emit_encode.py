"""Writes the encoder of one message version as Python source.

What the source cannot write it refuses, and the reference executor then says what is wrong.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from flexwire.codec.emit import LONG, Emitter, fixed_code, is_number, runs
from flexwire.codec.plain import to_plain
from flexwire.codec.source import literal
from flexwire.wire.schema import Field, NullableStruct, Schema, struct_of
from flexwire.wire.types import Array, Boolean, Bytes, String, Type, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from flexwire.codec.source import Source
    from flexwire.codec.structs import MessageStruct


def emit_encoder(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Callable[[bytearray, Any], None]:
    """Compile ``encode(out, message)``, which appends the message to ``out``.

    Raises, when called, `Refused` and whatever a value of a wrong type raises by itself.
    """
    emitter = _EncoderEmitter(schema, classes, filename)
    return emitter.source.compile(emitter.function(schema.name))


def emit_encoder_source(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Source:
    """Give the source before it is compiled."""
    return _EncoderEmitter(schema, classes, filename).source


class _EncoderEmitter(Emitter):
    verb = "encode"

    def emit_function(self, schema: Schema) -> None:
        with self.source.function(f"def {self.function(schema.name)}(out, message):"):
            self._refuse_unless("message", self.class_of(schema.name))
            for one in schema.absent:
                if not one.ignorable:
                    self._absent(one)
            if schema.tags_lead:
                self._tagged_fields(schema)
            for code, fields in runs(schema):
                if len(fields) > 1:
                    self._run(code, fields)
                else:
                    self._value(fields[0].type, self._given(fields[0]), "out")
            if not schema.flexible:
                with self.block("if message.unknown_tagged_fields != {}:"):
                    self.refuse()
            elif not schema.tags_lead:
                self._tagged_fields(schema)

    def _absent(self, one: Field) -> None:
        with self._where_it_differs(one, f"message.{one.attribute}"):
            self.refuse()

    def _given(self, one: Field) -> str:
        """Give the expression of a field's value: a local where it is looked at more than once."""
        value = f"message.{one.attribute}"
        if isinstance(one.type, Schema) or fixed_code(one.type) is not None:
            return value
        local = self.names.local(one.attribute)
        self.line(f"{local} = {value}")
        return local

    # Defaults.

    def _where_it_differs(self, one: Field, value: str) -> AbstractContextManager[None]:
        """Indent what is for a tagged or absent field that is not at its default."""
        options = self._differences(one, value)
        return self.source.condition("if", options) if options else nullcontext()

    def _differences(self, one: Field, value: str) -> list[str]:
        """Give the ways in which a field may be unlike its default; none where it always is."""
        if one.default is None:
            return [f"{value} is not None"]
        if isinstance(one.type, Array):
            return [f"{value}.__class__ is not list", value]
        inner = struct_of(one.type)
        if inner is None:
            unlike = "is not" if isinstance(one.type, Boolean) else "!="
            return [f"{value} {unlike} {self.default(one)}"]
        if not one.is_default(to_plain(self.classes[inner.name](), inner)):
            # NaN is unlike itself, and a structure that has it by default unlike its default.
            return []
        name = self.names.shared("default", f"default_{inner.name}")
        return [f"{value} != {self.source.constant(name, self.default(one))}"]

    # Values.

    def _refuse_unless(self, value: str, made: str, word: str = "if") -> None:
        """Refuse a value that is not just of a class."""
        with self.block(f"{word} {value}.__class__ is not {made}:"):
            self.refuse()

    def _run(self, code: str, fields: list[Field]) -> None:
        """Write neighbours of fixed width with one call."""
        values = [self._checked(one.type, f"message.{one.attribute}") for one in fields]
        self.source.call(self.struct_function("pack", code), *values, before="out += ")

    def _checked(self, kind: Type, value: str) -> str:
        """Refuse what `struct` would let pass, and give the expression to pack."""
        if isinstance(kind, Boolean | Uuid):
            made = "bool" if isinstance(kind, Boolean) else self.source.use("UUID")
            self._refuse_unless(value, made)
        return f"{value}.bytes" if isinstance(kind, Uuid) else value

    def _value(self, kind: Type, value: str, out: str, *, null: bool = True) -> None:
        """Write one value of any type; ``null`` says whether it may be None."""
        code = fixed_code(kind)
        if code is not None:
            checked = self._checked(kind, value)
            if isinstance(kind, Boolean):
                self.line(f"{out}.append({checked})")
            elif isinstance(kind, Uuid):
                self.line(f"{out} += {checked}")
            else:
                self.line(f"{out} += {self.struct_function('pack', code)}({checked})")
        elif isinstance(kind, Schema):
            self.source.call(self.function(kind.name), out, value)
        elif isinstance(kind, NullableStruct):
            self._nullable_struct(kind, value, out, null=null)
        else:
            assert isinstance(kind, String | Bytes | Array)  # noqa: S101 - there are no others
            self._sized(kind, value, out, null=null and kind.nullable)

    def _nullable_struct(self, kind: NullableStruct, value: str, out: str, *, null: bool) -> None:
        if null:
            with self.block(f"if {value} is None:"):
                self.line(f"{out}.append({0 if kind.tagged else 255})")
        with self.block("else:") if null else nullcontext():
            self.line(f"{out}.append(1)")
            self.source.call(self.function(kind.schema.name), out, value)

    def _sized(self, kind: String | Bytes | Array, value: str, out: str, *, null: bool) -> None:
        if null:
            width = 2 if isinstance(kind, String) else 4
            with self.block(f"if {value} is None:"):
                absent = f"{out} += {literal(bytes([0xFF] * width))}"
                self.line(f"{out}.append(0)" if kind.compact else absent)
        made = "str" if isinstance(kind, String) else "bytes" if isinstance(kind, Bytes) else "list"
        self._refuse_unless(value, made, "elif" if null else "if")
        with self.block("else:") if null else nullcontext():
            self._content(kind, value, out)

    def _content(self, kind: String | Bytes | Array, value: str, out: str) -> None:
        if isinstance(kind, String):
            self.line(f"raw = {value}.encode()")
            value = "raw"
        length = "count" if isinstance(kind, Array) else "size"
        self.line(f"{length} = len({value})")
        self._length(kind, length, out)
        if not isinstance(kind, Array):
            self.line(f"{out} += {value}")
        elif is_number(kind.element):
            numbers = f'f">{{count}}{fixed_code(kind.element)}", *{value}'
            self.line(f"{out} += {self.source.use('pack')}({numbers})")
        else:
            with self.block(f"for item in {value}:"):
                self._value(kind.element, "item", out)

    def _length(self, kind: String | Bytes | Array, length: str, out: str) -> None:
        if not kind.compact:
            code = "h" if isinstance(kind, String) else "i"
            self.line(f"{out} += {self.struct_function('pack', code)}({length})")
            return
        write = "write_string_length" if isinstance(kind, String) else "write_length"
        with self.block(f"if {length} < {LONG}:"):
            self.line(f"{out}.append({length} + 1)")
        with self.block("else:"):
            self.line(f"{out} += {self.source.use(write)}({length})")

    # Tagged fields.

    def _tagged_fields(self, schema: Schema) -> None:
        if schema.tagged:
            self.line("known = {}")
        for tag, one in schema.tagged.items():
            self._tagged_field(tag, one)
        unknown = "message.unknown_tagged_fields"
        taken = schema.refused_tags.union(schema.tagged)
        arguments = ["out", "known" if schema.tagged else "{}", unknown]
        arguments += [self.tags("taken", schema, taken)] if taken else []
        # Not its truth: what is empty and not a dict is the reference's to judge.
        is_any = f"{unknown} != {{}}"
        with self.block(f"if known or {is_any}:" if schema.tagged else f"if {is_any}:"):
            self.source.call(self.source.use(f"write_{self.form}tags"), *arguments)
        with self.block("else:"):
            # No tagged fields are one zero byte in every form.
            self.line("out.append(0)")

    def _tagged_field(self, tag: int, one: Field) -> None:
        value, kind = self._given(one), one.type
        if isinstance(kind, Array) and not kind.nullable and one.default is not None:
            self._refuse_unless(value, "list")
            with self.block(f"if {value}:"):
                self.line(f"known[{tag}] = payload = bytearray()")
                self._content(kind, value, "payload")
            return
        with self._where_it_differs(one, value):
            self.line(f"known[{tag}] = payload = bytearray()")
            self._value(kind, value, "payload", null=one.default is not None)
