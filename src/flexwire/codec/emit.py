"""What the writers of decoders and encoders share: the order of the functions, and their words.

A structure has a function for one of it, or for all in an array, or both: a call for each element
would take as long as to read or write a small one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from struct import calcsize
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flexwire.codec.naming import Names
from flexwire.codec.source import Source, literal
from flexwire.wire.limits import GROUP_BITS
from flexwire.wire.schema import Field, Presence, Schema, struct_of
from flexwire.wire.tags import TagForm
from flexwire.wire.types import Array, Boolean, Bytes, Float64, Integer, String, Type, Uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.codec.structs import MessageStruct

# A compact length below it is a single byte, which holds the length + 1.
LONG = 2**GROUP_BITS - 1
# And one below this, two bytes.
LONG_OF_TWO = 2 ** (2 * GROUP_BITS) - 1
# A line holds so much of a default beside a name.
_LONGEST_LITERAL = 24
# The names of so many fields, and of a format for them, can be read.
LONGEST_RUN = 24
_FORMS = {TagForm.SECTION: "", TagForm.INTERLEAVED: "interleaved_", TagForm.BUFFER: "buffered_"}


class Emitter(ABC):
    """Writes the functions for each structure of a message, those that it holds before it."""

    verb: str

    def __init__(
        self, message: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
    ) -> None:
        about = f"{self.verb.capitalize()}s {message.name}, whose classes are given."
        self.source = Source(filename, about)
        self.line, self.block = self.source.line, self.source.block
        self.classes = classes
        attributes = {name for one in classes.values() for name in one.__struct_fields__}
        self.names = Names(attributes)
        self.form = _FORMS[message.form]
        self._done: set[str] = set()
        self._singles, self._arrays = {message.name}, set[str]()
        self._find_uses(message, set())
        self._structure(message)

    def _structure(self, schema: Schema) -> None:
        if schema.name in self._done:
            return
        self._done.add(schema.name)
        for inner in inner_schemas(schema):
            self._structure(inner)
        if schema.name in self._singles:
            self.emit_function(schema, many=False)
        if schema.name in self._arrays:
            self.emit_function(schema, many=True)

    def _find_uses(self, schema: Schema, found: set[str]) -> None:
        found.add(schema.name)
        for one in schema.fields:
            inner = struct_of(one.type)
            if inner is None or one.presence is Presence.ABSENT:
                continue
            is_many = isinstance(one.type, Array) and self.takes_many(inner)
            (self._arrays if is_many else self._singles).add(inner.name)
            if inner.name not in found:
                self._find_uses(inner, found)

    @abstractmethod
    def takes_many(self, element: Schema) -> bool:
        """Whether an array of structures takes the function for many of them."""

    @abstractmethod
    def emit_function(self, schema: Schema, *, many: bool) -> None:
        """Write the function of one structure, or of ``many`` in an array."""

    # Names.

    def function(self, name: str, *, many: bool = False) -> str:
        """Give the name of a structure's function."""
        return self.names.shared("function", f"{self.verb}_{'many_' * many}{name}")

    def class_of(self, name: str) -> str:
        """Give the name of a structure's class, which the source is given."""
        return self.source.given(self.names.shared("class", name), self.classes[name])

    def struct_function(self, method: str, code: str) -> str:
        """Give the name of a function that packs or unpacks one format: ``unpack_iqi``."""
        letters = code.replace("?", "o")
        name = self.names.shared("format", f"{method.removesuffix('_from')}_{letters}")
        return self.source.constant(name, f'{self.source.use("Struct")}(">{code}").{method}')

    def tags(self, word: str, schema: Schema, tags: frozenset[int]) -> str:
        """Give the name of a set of a structure's tags."""
        return self.source.numbers(self.names.shared("tags", f"{word}_{schema.name}"), tags)

    def refuse(self) -> None:
        """Write the statement that leaves what comes to the reference executor."""
        self.line(f"raise {self.source.use('Refused')}")

    # Values.

    def literal(self, value: Any) -> str:
        """Give an expression for a default: a literal, or the name of a constant."""
        if isinstance(value, UUID):
            name = self.names.shared("uuid", f"uuid_{value.int:x}")
            return self.source.constant(name, f'{self.source.use("UUID")}("{value}")')
        text = literal(value)
        if len(text) <= _LONGEST_LITERAL:
            return text
        return self.source.given(self.names.shared(text, "default"), value)

    def default(self, one: Field) -> str:
        """Give an expression that makes a field's default anew."""
        if one.default is None:
            return "None"
        if isinstance(one.type, Array):
            return "[]"
        inner = struct_of(one.type)
        return self.literal(one.default) if inner is None else f"{self.class_of(inner.name)}()"


def inner_schemas(schema: Schema) -> list[Schema]:
    """Give the structures that a structure's present fields hold, without theirs."""
    present = (one.type for one in schema.fields if one.presence is not Presence.ABSENT)
    return [inner for inner in map(struct_of, present) if inner is not None]


def fixed_code(kind: Type) -> str | None:
    """Give the `struct` code of a fixed-width type, None for others.

    >>> from flexwire.wire import types
    >>> fixed_code(types.INT32), fixed_code(types.UUID), fixed_code(types.STRING)
    ('i', '16s', None)
    """
    if isinstance(kind, Boolean):
        return "B"
    if isinstance(kind, Uuid):
        return "16s"
    return kind.code if isinstance(kind, Integer | Float64) else None


def is_number(kind: Type) -> bool:
    """Whether `struct` reads and writes values of a type as they are."""
    return fixed_code(kind) is not None and not isinstance(kind, Boolean | Uuid)


def width_of(kind: Type) -> int:
    """Give the number of bytes of a fixed-width type."""
    return calcsize(f">{fixed_code(kind)}")


def length_code(kind: String | Bytes | Array) -> str:
    """Give the `struct` code of a length; a compact one is this where it takes one byte."""
    if kind.compact:
        return "B"
    return "h" if isinstance(kind, String) else "i"


def is_row(schema: Schema) -> bool:
    """Whether a structure without tagged fields is always as wide, and can be read with one call.

    >>> from flexwire.wire import COMPACT_STRING, INT16
    >>> is_row(Schema(Field("a", INT16))), is_row(Schema(Field("a", COMPACT_STRING)))
    (True, False)
    """
    fixed = all(fixed_code(one.type) for one in schema.inline)
    return fixed and 0 < len(schema.inline) <= LONGEST_RUN and not schema.tags_lead


def row_code(kind: Type) -> str:
    """Give the `struct` code of a field of a row, where any byte but 0 is a true boolean."""
    return "?" if isinstance(kind, Boolean) else str(fixed_code(kind))


def row_codes(schema: Schema) -> str:
    """Give the codes of all fields of a row."""
    return "".join(row_code(one.type) for one in schema.inline)
