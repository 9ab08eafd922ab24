"""Write the encoder of one message version as Python source.

Adjacent fixed-width fields are packed by one call, together with the length that follows them. The
source refuses values that it cannot write. The reference executor then raises the error.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from flexwire.codec.mappings import to_plain
from flexwire.codec.source import (
    LONG,
    LONG_OF_TWO,
    LONGEST_RUN,
    Emitter,
    fixed_code,
    is_number,
    is_row,
    length_code,
)
from flexwire.wire.limits import GROUP_BITS
from flexwire.wire.schema import Field, NullableStruct, Schema, struct_of
from flexwire.wire.types import ArrayType, Boolean, Bytes, String, Type, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from flexwire.codec.source import GeneratedModule
    from flexwire.codec.structs import MessageStruct

    _Sized = String | Bytes | ArrayType
    # A `struct` code, and the value that is packed with it.
    _Fixed = tuple[str, str]

# An empty value is not always the default. The reference executor must handle an empty value that
# is not a dict, because no structure that contains such a value equals its default.
_ANY_UNKNOWN = "unknown or unknown.__class__ is not dict"


def emit_encoder(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Callable[[bytearray, Any], None]:
    """Compile ``encode(out, message)``. The function appends the message to ``out``.

    Calling the function may raise `Refusal`, and any error that a value of an invalid type causes.
    """
    emitter = _EncoderEmitter(schema, classes, filename)
    return emitter.source.compile(emitter.function(schema.name))


def emit_encoder_source(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> GeneratedModule:
    """Return the source before it is compiled."""
    return _EncoderEmitter(schema, classes, filename).source


class _EncoderEmitter(Emitter):
    verb = "encode"

    def takes_many(self, element: Schema) -> bool:
        # If structures are written inline, a second function writes unusual structures.
        return not self._unlike_rows(element)

    def emit_function(self, schema: Schema, *, many: bool) -> None:
        function = self.function(schema.name, many=many)
        with self.source.function(f"def {function}(out, {'items' if many else 'message'}):"):
            if not many:
                self._body(schema)
                return
            with self.block("for message in items:"):
                self._body(schema)

    def _body(self, schema: Schema) -> None:
        """Write all fields of a structure."""
        self._refuse_unless("message", self.class_of(schema.name))
        for field in schema.absent:
            if not field.ignorable:
                self._absent(field)
        if schema.tags_lead:
            self._tagged_fields(schema, [])
        tags_follow = schema.flexible and not schema.tags_lead
        self._fields(schema.inline, schema if tags_follow else None)
        if not schema.flexible:
            self.line("unknown = message.unknown_tagged_fields")
            with self.block(f"if {_ANY_UNKNOWN}:"):
                self.refuse()

    def _absent(self, field: Field) -> None:
        with self._where_it_differs(field, f"message.{field.attribute}"):
            self.refuse()

    def _value_of(self, field: Field) -> str:
        """Return the expression for a field's value: a variable if it is used more than once."""
        value = f"message.{field.attribute}"
        if isinstance(field.type, Schema) or fixed_code(field.type) is not None:
            return value
        local = self.names.local(field.attribute)
        self.line(f"{local} = {value}")
        return local

    # The code below handles the defaults of fields.

    def _where_it_differs(self, field: Field, value: str) -> AbstractContextManager[None]:
        """Indent the code for a tagged or absent field whose value differs from its default."""
        options = self._differences(field, value)
        return self.source.condition("if", options) if options else nullcontext()

    def _differences(self, field: Field, value: str) -> list[str]:
        """Return the conditions under which a field differs from its default.

        The list is empty if the field always differs.
        """
        if field.default is None:
            return [f"{value} is not None"]
        if isinstance(field.type, ArrayType):
            return [f"{value}.__class__ is not list", value]
        inner = struct_of(field.type)
        if inner is None:
            unlike = "is not" if isinstance(field.type, Boolean) else "!="
            return [f"{value} {unlike} {self.default(field)}"]
        if not field.is_default(to_plain(self.classes[inner.name](), inner)):
            # NaN differs from itself. A structure with NaN as a default therefore differs from its
            # default.
            return []
        name = self.names.shared("default", f"default_{inner.name}")
        return [f"{value} != {self.source.constant(name, self.default(field))}"]

    # The code below writes values.

    def _refuse_unless(self, value: str, cls: str, word: str = "if") -> None:
        """Refuse a value that is not exactly of the given class."""
        with self.block(f"{word} {value}.__class__ is not {cls}:"):
            self.refuse()

    def _fields(self, fields: Sequence[Field], tagged: Schema | None) -> None:
        """Write fields and the tag section after them."""
        fixed: list[_Fixed] = []
        for field in fields:
            if fixed_code(field.type) is not None:
                if len(fixed) == LONGEST_RUN:
                    self._write("out", fixed)
                    fixed = []
                self._check(field.type, f"message.{field.attribute}")
                fixed.append(self._packed(field.type, f"message.{field.attribute}"))
            else:
                self._value(field.type, self._value_of(field), "out", fixed)
                fixed = []
        if tagged is None:
            self._write("out", fixed)
        else:
            self._tagged_fields(tagged, fixed)

    def _check(self, kind: Type, value: str) -> None:
        """Refuse values that `struct` would accept by mistake."""
        cls = self._class_name(kind)
        if cls:
            self._refuse_unless(value, cls)

    def _class_name(self, kind: Type) -> str:
        """Return the class that a value must have, if `struct` would also accept other classes."""
        if isinstance(kind, Boolean):
            return "bool"
        return self.source.use("UUID") if isinstance(kind, Uuid) else ""

    def _packed(self, kind: Type, value: str) -> _Fixed:
        """Return the `struct` code of a fixed-width value, and the expression to pack."""
        packed = f"{value}.int.to_bytes(16)" if isinstance(kind, Uuid) else value
        return str(fixed_code(kind)), packed

    def _write(self, out: str, fixed: list[_Fixed]) -> None:
        """Write adjacent fixed-width values with one call."""
        codes, values = "".join(code for code, _ in fixed), [value for _, value in fixed]
        if codes == "B":
            self.line(f"{out}.append({values[0]})")
        elif codes == "16s":
            self.line(f"{out} += {values[0]}")
        elif codes:
            self.source.call(self.struct_function("pack", codes), *values, before=f"{out} += ")

    def _value(
        self, kind: Type, value: str, out: str, fixed: list[_Fixed], *, null: bool = True
    ) -> None:
        """Write the preceding fixed-width values, then one value of any type.

        ``null`` is true if the value can be None.
        """
        if fixed_code(kind) is not None:
            self._check(kind, value)
            self._write(out, [*fixed, self._packed(kind, value)])
        elif isinstance(kind, Schema):
            self._write(out, fixed)
            self.source.call(self.function(kind.name), out, value)
        elif isinstance(kind, NullableStruct):
            self._nullable_struct(kind, value, out, fixed, null=null)
        else:
            assert isinstance(kind, String | Bytes | ArrayType)  # noqa: S101 - no other types exist
            self._sized(kind, value, out, fixed, null=null and kind.nullable)

    def _nullable_struct(
        self, kind: NullableStruct, value: str, out: str, fixed: list[_Fixed], *, null: bool
    ) -> None:
        if null:
            with self.block(f"if {value} is None:"):
                self._write(out, [*fixed, ("B", "0" if kind.tagged else "255")])
        with self.block("else:") if null else nullcontext():
            self._write(out, [*fixed, ("B", "1")])
            self.source.call(self.function(kind.schema.name), out, value)

    def _sized(
        self, kind: _Sized, value: str, out: str, fixed: list[_Fixed], *, null: bool
    ) -> None:
        if null:
            with self.block(f"if {value} is None:"):
                self._write(out, [*fixed, (length_code(kind), "0" if kind.compact else "-1")])
        cls = "str" if isinstance(kind, String) else "bytes" if isinstance(kind, Bytes) else "list"
        self._refuse_unless(value, cls, "elif" if null else "if")
        with self.block("else:") if null else nullcontext():
            self._content(kind, value, out, fixed)

    def _content(self, kind: _Sized, value: str, out: str, fixed: list[_Fixed]) -> None:
        if isinstance(kind, String):
            self.line(f"raw = {value}.encode()")
            value = "raw"
        length = "count" if isinstance(kind, ArrayType) else "size"
        self.line(f"{length} = len({value})")
        if isinstance(kind, ArrayType) and is_number(kind.element):
            self._numbers(kind, value, out, fixed)
            return
        if kind.compact:
            with self.block(f"if {length} < {LONG}:"):
                self._write(out, [*fixed, ("B", f"{length} + 1")])
            if isinstance(kind, Bytes):
                # The code is written inline, because a call would double the time for a record
                # batch of 1 kB.
                with self.block(f"elif {length} < {LONG_OF_TWO}:"):
                    low, high = (
                        f"({length} + 1) & {LONG} | {LONG + 1}",
                        f"{length} + 1 >> {GROUP_BITS}",
                    )
                    self._write(out, [*fixed, ("B", low), ("B", high)])
            with self.block("else:"):
                self._long(kind, length, out, fixed)
        else:
            self._write(out, [*fixed, (length_code(kind), length)])
        if isinstance(kind, ArrayType):
            self._elements(kind.element, value, out)
        else:
            self.line(f"{out} += {value}")

    def _long(self, kind: _Sized, length: str, out: str, fixed: list[_Fixed]) -> None:
        """Write a compact length that takes several bytes."""
        self._write(out, fixed)
        write = "write_string_length" if isinstance(kind, String) else "write_length"
        self.line(f"{out} += {self.source.use(write)}({length})")

    def _numbers(self, kind: ArrayType, value: str, out: str, fixed: list[_Fixed]) -> None:
        code = str(fixed_code(kind.element))
        before = "".join(code for code, _ in fixed) + length_code(kind)
        table = self.names.shared("format", f"pack_{before}_many_{code}")
        call = f'{self.source.use("packers_of_many")}("{before}", "{code}")'
        self.source.constant(table, call)
        values = [value for _, value in fixed]
        if not kind.compact:
            self.source.call(f"{table}[count]", *values, "count", f"*{value}", before=f"{out} += ")
            return
        with self.block(f"if count < {LONG}:"):
            arguments = (*values, "count + 1", f"*{value}")
            self.source.call(f"{table}[count]", *arguments, before=f"{out} += ")
        with self.block("else:"):
            self._long(kind, "count", out, fixed)
            pack = self.source.use("pack")
            self.line(f'{out} += {pack}(f">{{count}}{code}", *{value})')

    def _elements(self, element: Type, value: str, out: str) -> None:
        unless = self._unlike_rows(element) if isinstance(element, Schema) else []
        if isinstance(element, Schema) and not unless:
            self.source.call(self.function(element.name, many=True), out, value)
            return
        with self.block(f"for item in {value}:"):
            if not isinstance(element, Schema):
                self._value(element, "item", out, [])
                return
            with self.source.condition("if", unless):
                # This function refuses invalid values, and writes tagged fields.
                self.source.call(self.function(element.name), out, "item")
            with self.block("else:"):
                row = [
                    self._packed(field.type, f"item.{field.attribute}") for field in element.inline
                ]
                self._write(out, [*row, ("B", "0")] if element.flexible else row)

    def _unlike_rows(self, element: Schema) -> list[str]:
        """Return the conditions that exclude writing an element inline.

        The list is empty if no element is written inline.
        """
        if not is_row(element) or element.tagged:
            return []
        options = [f"item.__class__ is not {self.class_of(element.name)}"]
        options.append("item.unknown_tagged_fields")
        for field in element.absent:
            if not field.ignorable:
                ways = self._differences(field, f"item.{field.attribute}")
                if not ways:
                    return []
                options += ways
        checked = [(self._class_name(field.type), field.attribute) for field in element.inline]
        options += [f"item.{name}.__class__ is not {cls}" for cls, name in checked if cls]
        return options

    # The code below writes tagged fields.

    def _tagged_fields(self, schema: Schema, fixed: list[_Fixed]) -> None:
        """Write the preceding fixed-width values, then the tagged fields."""
        if schema.tagged:
            self.line("known = {}")
        for tag, field in schema.tagged.items():
            self._tagged_field(tag, field)
        self.line("unknown = message.unknown_tagged_fields")
        taken = schema.refused_tags.union(schema.tagged)
        arguments = ["out", "known" if schema.tagged else "{}", "unknown"]
        arguments += [self.tags("taken", schema, taken)] if taken else []
        with self.block(f"if {'known or ' if schema.tagged else ''}{_ANY_UNKNOWN}:"):
            self._write("out", fixed)
            self.source.call(self.source.use(f"write_{self.form}tags"), *arguments)
        with self.block("else:"):
            # In every encoding, an empty tag section is one zero byte.
            self._write("out", [*fixed, ("B", "0")])

    def _tagged_field(self, tag: int, field: Field) -> None:
        value, kind = self._value_of(field), field.type
        if isinstance(kind, ArrayType) and not kind.nullable and field.default is not None:
            self._refuse_unless(value, "list")
            with self.block(f"if {value}:"):
                self.line(f"known[{tag}] = payload = bytearray()")
                self._content(kind, value, "payload", [])
            return
        with self._where_it_differs(field, value):
            self.line(f"known[{tag}] = payload = bytearray()")
            self._value(kind, value, "payload", [], null=field.default is not None)
