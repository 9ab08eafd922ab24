"""Write the decoder of one message version as Python source.

Adjacent fixed-width fields are read by one `struct` call, together with the length that follows
them. An array of structures that contain only such fields is also read by one call. A slice is not
checked if the next read would fail anyway. A slice is never longer than the data, but its computed
end may be beyond the data. The source refuses input that it cannot read. The reference executor
then raises the error, so there is only one set of errors.
"""

from __future__ import annotations

import struct
from contextlib import nullcontext
from typing import TYPE_CHECKING

from flexwire.codec.source import (
    LONG,
    LONGEST_RUN,
    Emitter,
    fixed_code,
    is_number,
    is_row,
    length_code,
    row_code,
    row_codes,
    width_of,
)
from flexwire.codec.structs import MessageStruct
from flexwire.wire.limits import GROUP_BITS
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.tags import TagForm
from flexwire.wire.types import ArrayType, Boolean, Bytes, String, Type, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from flexwire.codec.source import GeneratedModule

    _Sized = String | Bytes | ArrayType
    _Value = tuple[Type, str]
    # The `struct` code, the local variable, and the type if the code does not determine it.
    _Fixed = tuple[str, str, Type | None]


def emit_decoder(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> Callable[[bytes, int, int], tuple[Any, int]]:
    """Compile ``decode(data, position, limit) -> (message, end position)``.

    Calling the function may raise `Refusal`, `struct.error`, `IndexError` or `ValueError`.
    """
    emitter = _DecoderEmitter(schema, classes, filename)
    return emitter.source.compile(emitter.function(schema.name))


def emit_decoder_source(
    schema: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
) -> GeneratedModule:
    """Return the source before it is compiled."""
    return _DecoderEmitter(schema, classes, filename).source


class _DecoderEmitter(Emitter):
    verb = "decode"

    def takes_many(self, element: Schema) -> bool:
        # If structures are read as rows, a second function reads structures with tagged fields.
        return element.flexible or not is_row(element)

    def emit_function(self, schema: Schema, *, many: bool) -> None:
        function = self.function(schema.name, many=many)
        with self.source.function(f"def {function}(data, position, limit{', count' * many}):"):
            if not many:
                self._body(schema)
                self._give(schema, "return ", ", position", "return message, position")
                return
            self.line("items = []")
            with self.block("for _ in range(count):"):
                self._body(schema)
                self._give(schema, "items.append(", ")", "items.append(message)")
            self.line("return items, position")

    def _body(self, schema: Schema) -> None:
        """Write the code that reads all fields of a structure into local variables."""
        if schema.tags_lead:
            self._tagged_fields(schema)
        values = [(field.type, self.names.local(field.attribute)) for field in schema.inline]
        tags_follow = schema.flexible and not schema.tags_lead
        self._fields(values, "limit", tags=tags_follow)
        if tags_follow:
            self._tagged_fields(schema)

    # The code below writes the values to return.

    def _give(self, schema: Schema, head: str, tail: str, separately: str) -> None:
        """Write code to create and use an object. ``separately`` is the use on its own line."""
        local_names = {
            field.attribute: self.names.local(field.attribute)
            for field in schema.fields
            if field.presence is not Presence.ABSENT
        }
        call, arguments = self.class_of(schema.name), self._arguments(schema, local_names)
        if schema.flexible:
            arguments = [*self._every_argument(schema, local_names), "unknown"]
        flat = f"{head}{call}({', '.join(arguments)}){tail}"
        if self.source.fits(flat):
            self.line(flat)
        else:
            self.source.call(call, *arguments, before="message = ")
            self.line(separately)

    def _arguments(self, schema: Schema, local_names: Mapping[str, str]) -> list[str]:
        """Return the arguments of the call that creates an object, without defaults at the end."""
        attributes = self.classes[schema.name].__struct_fields__[:-1]
        last = max((at for at, name in enumerate(attributes, 1) if name in local_names), default=0)
        return self._every_argument(schema, local_names)[:last]

    def _every_argument(self, schema: Schema, local_names: Mapping[str, str]) -> list[str]:
        attributes = self.classes[schema.name].__struct_fields__[:-1]
        return [local_names.get(name) or self._absent(schema.name, name) for name in attributes]

    def _absent(self, struct_name: str, attribute: str) -> str:
        # A field that exists only in another revision of the spec gets its default from a new
        # object.
        value = getattr(self.classes[struct_name](), attribute)
        if isinstance(value, list):
            return "[]"
        if isinstance(value, MessageStruct):
            return f"{self.class_of(type(value).__name__)}()"
        return self.literal(value)

    # The code below reads values.

    def _fields(self, values: list[_Value], limit: str, *, tags: bool = False) -> None:
        """Read values one after another into their locals. With ``tags``, also read the next byte.

        The lengths, the markers and the byte after the values are read together with the preceding
        fixed-width values. ``_at`` is the name of the local variable with the current position:
        "end" right after a string, bytes or numbers, and otherwise "position".
        """
        self._at = "position"
        pending: list[_Fixed] = []
        for kind, name in values:
            code = fixed_code(kind)
            if code is not None:
                if len(pending) == LONGEST_RUN:
                    self._read(pending, limit)
                    pending = []
                pending.append((code, name, kind))
                continue
            if isinstance(kind, Schema):
                self._read(pending, limit)
                self._struct(kind, name, limit)
            elif isinstance(kind, NullableStruct):
                self._read([*pending, ("B", "marker", None)], limit)
                self._nullable_struct(kind, name, limit)
            else:
                assert isinstance(kind, String | Bytes | ArrayType)  # noqa: S101 - no other types exist
                self._read([*pending, (length_code(kind), _length_of(kind), None)], limit)
                self._sized(kind, name, limit)
            pending = []
        self._read([*pending, ("B", "tags", None)] if tags else pending, limit)

    def _read(self, fixed: list[_Fixed], limit: str) -> None:
        """Read adjacent fixed-width values with one call, each into its own local variable."""
        at, self._at = self._at, "position"
        if not fixed:
            if at == "end":
                # The slice ends here or earlier, and no later read would notice that the slice is
                # too short.
                with self.block(f"if end > {limit}:"):
                    self.refuse()
                self.line("position = end")
            return
        codes = "".join(code for code, _, _ in fixed)
        if codes == "B":
            self.line(f"{fixed[0][1]} = data[{at}]")
        else:
            unpack = self.struct_function("unpack_from", codes)
            self.source.unpack([name for _, name, _ in fixed], f"{unpack}(data, {at})")
        width = struct.calcsize(">" + codes)
        self.line(f"position += {width}" if at == "position" else f"position = end + {width}")
        for _, name, kind in fixed:
            if isinstance(kind, Uuid):
                self.source.call(self.source.use("to_uuid"), name, before=f"{name} = ")
            elif isinstance(kind, Boolean):
                with self.block(f"if {name} > 1:"):
                    self.refuse()
                self.line(f"{name} = {name} == 1")

    def _struct(self, kind: Schema, name: str, limit: str) -> None:
        function = self.function(kind.name)
        self.source.call(function, "data", "position", limit, before=f"{name}, position = ")

    def _nullable_struct(self, kind: NullableStruct, name: str, limit: str) -> None:
        with self.block("if marker == 1:"):
            self._struct(kind.schema, name, limit)
        with self.block(f"elif marker == {0 if kind.tagged else 255}:"):
            self.line(f"{name} = None")
        with self.block("else:"):
            self.refuse()

    def _sized(self, kind: _Sized, name: str, limit: str) -> None:
        """Read a string, bytes, records or array whose length (or length + 1) was already read."""
        length = _length_of(kind)
        if not kind.nullable:
            self._whole_length(kind, length)
            self._content(kind, name, limit)
        elif kind.compact:
            with self.block(f"if {length}:"):
                self._whole_length(kind, length)
                self._content(kind, name, limit)
            with self.block("else:"):
                self._null(kind, name)
        else:
            with self.block(f"if {length} >= 0:"):
                self._content(kind, name, limit)
            with self.block(f"elif {length} == -1:"):
                self._null(kind, name)
            with self.block("else:"):
                self.refuse()
        self._at = _after(kind)

    def _null(self, kind: _Sized, name: str) -> None:
        self.line(f"{name} = None")
        if _after(kind) == "end":
            self.line("end = position")

    def _whole_length(self, kind: _Sized, length: str) -> None:
        """Refuse null and negative lengths where they are not allowed, and read long lengths."""
        if not kind.compact:
            with self.block(f"if {length} < 0:"):
                self.refuse()
            return
        read = self.source.use("read_string_length" if isinstance(kind, String) else "read_length")
        short = f"{length} <= {LONG}" if kind.nullable else f"0 < {length} <= {LONG}"
        with self.block(f"if {length} > {LONG}:" if kind.nullable else f"if not {short}:"):
            if isinstance(kind, Bytes):
                self._length_of_two(length)
            with self.block("else:") if isinstance(kind, Bytes) else nullcontext():
                self.line(f"{length}, position = {read}(data, position - 1)")

    def _length_of_two(self, length: str) -> None:
        """Read a length of two bytes without a call, which would be slower for short lengths."""
        self.line("high = data[position]")
        with self.block(f"if 0 < high <= {LONG} < {length}:"):
            self.line(f"{length} += (high << {GROUP_BITS}) - {LONG + 1}")
            self.line("position += 1")

    def _content(self, kind: _Sized, name: str, limit: str) -> None:
        # A compact length is one more than the number of elements.
        less = int(kind.compact)
        if isinstance(kind, ArrayType):
            self._elements(kind.element, less, name, limit)
            return
        self.line(f"end = position + size{' - 1' * less}")
        self.line(f"{name} = data[position:end]{'.decode()' * isinstance(kind, String)}")

    def _elements(self, element: Type, less: int, name: str, limit: str) -> None:
        if is_number(element):
            self._numbers(element, less, name)
            return
        if less:
            self.line("count -= 1")
        if isinstance(element, Schema) and is_row(element):
            self._rows(element, name, limit)
        else:
            self._one_by_one(element, name, limit)

    def _numbers(self, element: Type, less: int, name: str) -> None:
        code, width = fixed_code(element), width_of(element)
        table = self.names.shared("format", f"unpack_{'compact' if less else 'many'}_{code}")
        arguments = f'"{code}", {less}' if less else f'"{code}"'
        self.source.constant(table, f"{self.source.use('unpackers_of_many')}({arguments})")
        self.source.listing(name, f"*{table}[count](data, position)")
        size = "count" if width == 1 else f"count * {width}"
        self.line(f"end = position + {size}{f' - {width}' * less}")

    def _one_by_one(self, element: Type, name: str, limit: str) -> None:
        # Each element takes at least one byte.
        with self.block(f"if count > {limit} - position:"):
            self.refuse()
        self._loop(element, name, limit)

    def _loop(self, element: Type, name: str, limit: str) -> None:
        if isinstance(element, Schema):
            many = self.function(element.name, many=True)
            arguments = ("data", "position", limit, "count")
            fits = self.source.fits(f"{name}, position = {many}(")
            self.source.call(many, *arguments, before=f"{name if fits else 'item'}, position = ")
            if not fits:
                self.line(f"{name} = item")
            return
        self.line(f"{name} = []")
        with self.block("for _ in range(count):"):
            self._fields([(element, "item")], limit)
            self.line(f"{name}.append(item)")

    # The code below reads fixed-width structures.

    def _rows(self, row: Schema, name: str, limit: str) -> None:
        """Read fixed-width structures with one call, unless one of them has tagged fields."""
        inner = struct.calcsize(">" + row_codes(row))
        width = inner + row.flexible
        self.line(f"end = position + count * {width}")
        with self.block(f"if end > {limit}:"):
            self.refuse()
        self.line("rows = data[position:end]")
        if not row.flexible:
            self._row_objects(row, name, width)
            return
        with self.block(f'if rows[{inner}::{width}].strip(b"\\x00"):'):
            self._loop(row, name, limit)
        with self.block("else:"):
            self._row_objects(row, name, width)

    def _row_objects(self, row: Schema, name: str, width: int) -> None:
        at = 0
        for field in row.inline:
            code = row_code(field.type)
            if code == "?":
                with self.block(f'if rows[{at}::{width}].strip(b"\\x00\\x01"):'):
                    self.refuse()
            at += struct.calcsize(">" + code)
        unpack = self.struct_function("iter_unpack", row_codes(row) + "x" * row.flexible)
        self.line(f"rows = {unpack}(rows)")
        call, arguments = self.class_of(row.name), self._row_arguments(row)
        names = [self.names.local(field.attribute) for field in row.inline]
        if arguments == names:
            values = f"{self.source.use('starmap')}({call}, rows)"
            self.source.call("list", values, before=f"{name} = ")
        else:
            self.source.comprehension(name, (call, arguments), names, "rows")
        self.line("position = end")

    def _row_arguments(self, row: Schema) -> list[str]:
        defaults = {field.attribute: self.default(field) for field in row.tagged.values()}
        for field in row.inline:
            local = self.names.local(field.attribute)
            is_uuid = isinstance(field.type, Uuid)
            defaults[field.attribute] = (
                f"{self.source.use('to_uuid')}({local})" if is_uuid else local
            )
        return self._arguments(row, defaults)

    # The code below reads tagged fields.

    def _tagged_fields(self, schema: Schema) -> None:
        for field in schema.tagged.values():
            self.line(f"{self.names.local(field.attribute)} = {self.default(field)}")
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
        with self.block("if tags:"):
            self.line(f"count, position = {self.source.use('read_count')}(data, position - 1)")
            self.line("tag = -1")
            with self.block("for _ in range(count):"):
                self._tagged_field(schema)

    def _unknown_tags(self, schema: Schema) -> None:
        read = self.source.use(f"read_unknown_{self.form}tags")
        refused = [self._refused(schema)] if schema.refused_tags else []
        at = "position" if schema.tags_lead else "position - 1"
        with self.block("if data[position]:" if schema.tags_lead else "if tags:"):
            arguments = ("data", at, "limit", *refused)
            self.source.call(read, *arguments, before="unknown, position = ")
        with self.block("else:"):
            self.line("unknown = {}")
            if schema.tags_lead:
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
            for tag, field in schema.tagged.items():
                with self.block(f"case {tag}:"):
                    self._fields([(field.type, self.names.local(field.attribute))], "stop")
            with self.block("case _:"):
                self.line("unknown[tag] = data[position:stop]")
                self.line("position = stop")
        with self.block("if position != stop:"):
            self.refuse()

    def _refused(self, schema: Schema) -> str:
        return self.tags("refused", schema, schema.refused_tags)


def _length_of(kind: _Sized) -> str:
    """Return the local variable that contains a length."""
    return "count" if isinstance(kind, ArrayType) else "size"


def _after(kind: _Sized) -> str:
    """Return the local variable with the end of a value. A slice of the data ends at "end"."""
    return "position" if isinstance(kind, ArrayType) and not is_number(kind.element) else "end"
