"""Writes the encoder of one message version as Python source.

What the source cannot write it refuses, and the reference executor then says what is wrong.
"""

from __future__ import annotations

import struct
import uuid
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from flexwire.codec.emit_decode import inner_schemas
from flexwire.codec.plain import to_plain
from flexwire.codec.source import Refused, Source, default_expression, fixed_code
from flexwire.wire.limits import HIGHEST_TAG, LONGEST_STRING
from flexwire.wire.schema import Field, NullableStruct, Schema, struct_of
from flexwire.wire.tags import TagForm, join, objection
from flexwire.wire.types import Array, Boolean, Bytes, String, Type, Uuid
from flexwire.wire.varint import write_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from flexwire.codec.structs import MessageStruct


def emit_encoder(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Callable[[bytearray, Any], None]:
    """Compile ``encode(out, message)``, which appends the message to ``out``.

    Raises, when called, `Refused` and whatever a value of a wrong type raises by itself.
    """
    return emit_encoder_source(schema, classes, filename).compile(f"encode_{schema.name}")


def emit_encoder_source(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Source:
    """Give the source before it is compiled."""
    emitter = _EncoderEmitter(Source(filename), classes, schema.form)
    emitter.struct(schema)
    return emitter.source


def _write_tagged_fields(
    form: TagForm,
    out: bytearray,
    known: dict[int, bytearray],
    unknown: dict[int, bytes],
    taken: frozenset[int],
) -> None:
    payloads: dict[int, bytearray | bytes] = dict(known)
    for tag, data in unknown.items():
        if type(tag) is not int or not 0 <= tag <= HIGHEST_TAG or tag in taken:
            raise Refused
        if not isinstance(data, bytes):
            raise Refused
        payloads[tag] = data
    if form is TagForm.BUFFER and any(objection(form, *one) for one in payloads.items()):
        raise Refused
    out += join(form, payloads)


class _EncoderEmitter:
    def __init__(
        self, source: Source, classes: Mapping[str, type[MessageStruct]], form: TagForm
    ) -> None:
        self.source = source
        self.line = source.line
        self.block = source.block
        self.classes = classes
        self.done: set[str] = set()
        self.source.namespace.update(
            Refused=Refused,
            UUID=uuid.UUID,
            pack=struct.pack,
            varint=write_unsigned_varint,
            write_tagged_fields=partial(_write_tagged_fields, form),
        )

    def struct(self, schema: Schema) -> None:
        if schema.name in self.done:
            return
        self.done.add(schema.name)
        for inner in inner_schemas(schema):
            self.struct(inner)
        made = self.source.constant(f"C_{schema.name}", self.classes[schema.name])
        with self.block(f"def encode_{schema.name}(out, value):"):
            with self.block(f"if value.__class__ is not {made}:"):
                self.line("raise Refused")
            for one in schema.absent:
                if not one.ignorable:
                    with self.block(f"if {self._differs(one)}:"):
                        self.line("raise Refused")
            if schema.tags_lead:
                self._tagged_fields(schema)
            self._inline(schema)
            if not schema.flexible:
                with self.block("if value.unknown_tagged_fields:"):
                    self.line("raise Refused")
            elif not schema.tags_lead:
                self._tagged_fields(schema)
        self.line("")

    def _inline(self, schema: Schema) -> None:
        for fixed, fields in groupby(schema.inline, lambda one: bool(fixed_code(one.type))):
            if fixed:
                self._run(list(fields))
            else:
                for one in fields:
                    self._value(one.type, f"value.{one.attribute}", "out")

    def _differs(self, one: Field) -> str:
        """Give the condition under which a tagged or absent field is not at its default."""
        name = f"value.{one.attribute}"
        if one.default is None:
            return f"{name} is not None"
        if isinstance(one.type, Array):
            return f"{name}.__class__ is not list or {name}"
        inner = struct_of(one.type)
        if inner is None:
            return f"{name} != {default_expression(self.source, one.type, one.default, None)}"
        default = self.classes[inner.name]()
        if not one.is_default(to_plain(default, inner)):
            # NaN is unlike itself, and a structure that has it by default unlike its default.
            return "True"
        return f"{name} != {self.source.constant(f'D_{inner.name}', default)}"

    def _run(self, fields: list[Field]) -> None:
        """Write neighbours of fixed width with one call."""
        layout = struct.Struct(">" + "".join(fixed_code(one.type) or "" for one in fields))
        pack = self.source.constant(f"write_{len(self.source.namespace)}", layout.pack)
        values = [self._fixed(one.type, f"value.{one.attribute}") for one in fields]
        self.line(f"out += {pack}({', '.join(values)})")

    def _fixed(self, kind: Type, name: str) -> str:
        """Check what `struct` would let pass, and give the expression to pack."""
        if isinstance(kind, Boolean | Uuid):
            made = "bool" if isinstance(kind, Boolean) else "UUID"
            with self.block(f"if {name}.__class__ is not {made}:"):
                self.line("raise Refused")
        return f"{name}.bytes" if isinstance(kind, Uuid) else name

    def _value(self, kind: Type, name: str, out: str, depth: int = 0) -> None:
        """Write one value of any type, ``name`` being an expression."""
        code = fixed_code(kind)
        if code is not None:
            self.line(f"{out} += pack('>{code}', {self._fixed(kind, name)})")
        elif isinstance(kind, Schema):
            self.line(f"encode_{kind.name}({out}, {name})")
        elif isinstance(kind, NullableStruct):
            with self.block(f"if {name} is None:"):
                self.line(f"{out}.append({0 if kind.tagged else 255})")
            with self.block("else:"):
                self.line(f"{out}.append(1)")
                self.line(f"encode_{kind.schema.name}({out}, {name})")
        else:
            self._sized(kind, name, out, depth)

    def _sized(self, kind: Type, name: str, out: str, depth: int) -> None:
        assert isinstance(kind, String | Bytes | Array)  # noqa: S101 - there are no other types
        item = f"item_{depth}"
        self.line(f"{item} = {name}")
        with self.block(f"if {item} is None:"):
            if not kind.nullable:
                self.line("raise Refused")
            elif kind.compact:
                self.line(f"{out}.append(0)")
            else:
                width = 2 if isinstance(kind, String) else 4
                self.line(f"{out} += {bytes([0xFF] * width)!r}")
        with self.block("else:"):
            self._check(kind, item)
            self._length(kind, item, out)
            self._content(kind, item, out, depth)

    def _check(self, kind: String | Bytes | Array, item: str) -> None:
        if isinstance(kind, String):
            with self.block(f"if {item}.__class__ is not str:"):
                self.line("raise Refused")
            self.line(f"{item} = {item}.encode()")
            with self.block(f"if len({item}) > {LONGEST_STRING}:"):
                self.line("raise Refused")
            return
        made = "list" if isinstance(kind, Array) else "bytes"
        with self.block(f"if {item}.__class__ is not {made}:"):
            self.line("raise Refused")

    def _length(self, kind: String | Bytes | Array, item: str, out: str) -> None:
        if not kind.compact:
            code = "h" if isinstance(kind, String) else "i"
            self.line(f"{out} += pack('>{code}', len({item}))")
            return
        with self.block(f"if len({item}) < 127:"):
            self.line(f"{out}.append(len({item}) + 1)")
        with self.block("else:"):
            self.line(f"{out} += varint(len({item}) + 1)")

    def _content(self, kind: String | Bytes | Array, item: str, out: str, depth: int) -> None:
        if not isinstance(kind, Array):
            self.line(f"{out} += {item}")
            return
        code = fixed_code(kind.element)
        if code is not None and not isinstance(kind.element, Boolean | Uuid):
            self.line(f"{out} += pack(f'>{{len({item})}}{code}', *{item})")
            return
        with self.block(f"for element_{depth} in {item}:"):
            self._value(kind.element, f"element_{depth}", out, depth + 1)

    def _tagged_fields(self, schema: Schema) -> None:
        self.line("unknown = value.unknown_tagged_fields")
        if schema.tagged:
            self.line("known = {}")
        for tag, one in schema.tagged.items():
            with self.block(f"if {self._differs(one)}:"):
                self.line(f"known[{tag}] = payload = bytearray()")
                self._value(one.type, f"value.{one.attribute}", "payload")
        taken = frozenset(schema.tagged) | schema.refused_tags
        name = self.source.constant(f"taken_{schema.name}", taken)
        with self.block("if known or unknown:" if schema.tagged else "if unknown:"):
            known = "known" if schema.tagged else "{}"
            self.line(f"write_tagged_fields(out, {known}, unknown, {name})")
        with self.block("else:"):
            # No tagged fields are one zero byte in every form.
            self.line("out.append(0)")
