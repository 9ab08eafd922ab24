"""The generated Python source: its lines, imports, constants and names.

A statement that is longer than a line is divided where it is generated, usually with one item per
line. The formatter has only a few other rules, for quotes, numbers, and blank lines between
functions.

A field may be called ``size``, and a structure may be called ``UUID``. Names are therefore assigned
in this order: the names that the source itself needs, local variables, and names of the module. If
a name is already taken, the later name gets a "_".

A structure has a function for a single structure, a function for all structures in an array, or
both. Calling a function for each element would take as long as reading or writing a small
structure.
"""

from __future__ import annotations

import keyword
import linecache
import math
from abc import ABC, abstractmethod
from contextlib import contextmanager
from itertools import groupby
from struct import calcsize
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flexwire.codec import runtime
from flexwire.wire.limits import GROUP_BITS
from flexwire.wire.schema import Field, Presence, Schema, struct_of
from flexwire.wire.tags import TagForm
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer, String, Type, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from flexwire.codec.structs import MessageStruct


HOMES = {
    "Struct": "struct",
    "pack": "struct",
    "unpack_from": "struct",
    "UUID": "uuid",
    "starmap": "itertools",
    **dict.fromkeys(runtime.__all__, runtime.__name__),
}
"""The imports of generated source, by name."""
_BUILTINS = ("bool", "bytearray", "bytes", "dict", "float", "len", "list", "range", "str")
_DECODING = (
    *("count", "data", "end", "high", "item", "items", "limit", "marker", "position", "rows"),
    *("size", "stop", "tag", "tags"),
)
_ENCODING = ("known", "message", "out", "payload", "raw")
OWN = frozenset({*HOMES, *_BUILTINS, *_DECODING, *_ENCODING, "unknown", "_"})
"""Names that must not be used for a field's local variable or a module's constant."""


class SourceNames:
    """The names in one generated module, derived from the attributes of its structures.

    >>> names = SourceNames(["topic_id", "size", "size_"])
    >>> names.local("topic_id"), names.local("size"), names.local("size_")
    ('topic_id', 'size__', 'size_')
    >>> names.shared("class", "UUID"), names.shared("function", "decode_UUID")
    ('UUID_', 'decode_UUID')
    """

    def __init__(self, attributes: Iterable[str]) -> None:
        wanted = set(attributes)
        self._taken = OWN | wanted
        self._locals: dict[str, str] = {}
        self._shared: dict[tuple[str, str], str] = {}
        for name in sorted(wanted):
            self._locals[name] = self._free(name) if name in OWN else name

    def local(self, attribute: str) -> str:
        """Return the local variable for a field."""
        return self._locals[attribute]

    def shared(self, kind: str, wanted: str) -> str:
        """Return the name of an object in the module. Each call returns the same name."""
        key = (kind, wanted)
        if key not in self._shared:
            self._shared[key] = self._free(wanted)
        return self._shared[key]

    def _free(self, name: str) -> str:
        while name in self._taken or keyword.iskeyword(name):
            name += "_"
        self._taken |= {name}
        return name


LONGEST_LINE = 100
_INDENT = "    "


class GeneratedModule:
    """The text of a generated module, and the additional objects in its namespace."""

    def __init__(self, filename: str, about: str) -> None:
        self.filename = filename
        self.about = about
        self.namespace: dict[str, Any] = {}
        self._used: set[str] = set()
        self._constants: dict[str, list[str]] = {}
        self._lines: list[str] = []
        self._depth = 0

    # The methods below add statements.

    def line(self, text: str) -> None:
        """Add a line at the current indentation."""
        self._lines.append(_INDENT * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add the line ``head``, and indent the following lines."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Add a function, with blank lines before it."""
        self._lines += ["", ""]
        with self.block(head):
            yield

    @contextmanager
    def condition(self, word: str, options: Sequence[str]) -> Iterator[None]:
        """Add ``if one or other:``, and indent the lines after it."""
        head = f"{word} {' or '.join(options)}:"
        if not self.fits(head):
            with self.block(f"{word} ("):
                for place, option in enumerate(options):
                    self.line(f"or {option}" if place else option)
            head = "):"
        with self.block(head):
            yield

    def call(self, function: str, *arguments: str, before: str = "") -> None:
        """Add a call. ``before`` is the text before the call, such as an assignment's target."""
        joined = ", ".join(arguments)
        if self.fits(f"{before}{function}({joined})"):
            self.line(f"{before}{function}({joined})")
        elif self.fits(_INDENT + joined):
            with self.block(f"{before}{function}("):
                self.line(joined)
            self.line(")")
        else:
            self._one_to_a_line(f"{before}{function}(", arguments, ")")

    def listing(self, name: str, item: str) -> None:
        """Add a statement ``name = [item]``."""
        flat = f"{name} = [{item}]"
        if self.fits(flat):
            self.line(flat)
        else:
            self._one_to_a_line(f"{name} = [", [item], "]")

    def comprehension(
        self, name: str, call: tuple[str, Sequence[str]], targets: Sequence[str], values: str
    ) -> None:
        """Add ``name = [call for targets in values]``, with a function call and its arguments."""
        line, arguments = call
        joined = f"({', '.join(targets)}{',' * (len(targets) == 1)})"
        loop = f"for {joined} in {values}"
        whole = f"{line}({', '.join(arguments)}) {loop}"
        if self.fits(f"{name} = [{whole}]"):
            self.line(f"{name} = [{whole}]")
            return
        with self.block(f"{name} = ["):
            if self.fits(whole):
                self.line(whole)
            else:
                self.call(line, *arguments)
                if self.fits(loop):
                    self.line(loop)
                else:
                    self._one_to_a_line("for (", targets, f") in {values}")
        self.line("]")

    def unpack(self, names: Sequence[str], value: str) -> None:
        """Add ``names = value`` for a value that is a tuple."""
        joined = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
        if self.fits(f"{joined} = {value}"):
            self.line(f"{joined} = {value}")
        else:
            self._one_to_a_line("(", names, f") = {value}")

    def _one_to_a_line(self, head: str, items: Sequence[str], tail: str) -> None:
        for text in _one_to_a_line(head, items, tail):
            self.line(text)

    def fits(self, text: str) -> bool:
        """Return whether a string fits on a line at the current indentation."""
        return len(_INDENT) * self._depth + len(text) <= LONGEST_LINE

    # The methods below create names.

    def use(self, name: str) -> str:
        """Import a name that generated source needs, and return the name."""
        self._used.add(name)
        return name

    def constant(self, name: str, expression: str) -> str:
        """Define a constant at the beginning of the module, and return its name."""
        self._constants[name] = [f"{name} = {expression}"]
        return name

    def numbers(self, name: str, numbers: Collection[int]) -> str:
        """Define a constant for a set of numbers, and return its name."""
        items = list(map(str, sorted(numbers)))
        flat = f"{name} = {{{', '.join(items)}}}"
        exploded = _one_to_a_line(f"{name} = {{", items, "}")
        self._constants[name] = [flat] if len(flat) <= LONGEST_LINE else exploded
        return name

    def bind(self, name: str, value: Any) -> str:
        """Put an object that has no source form into the namespace, and return its name."""
        self.namespace[name] = value
        return name

    # The methods below return the whole module.

    def text(self) -> str:
        """Return the whole source."""
        own = sorted(name for name in self._used if "." in HOMES[name])
        python = sorted(self._used.difference(own), key=lambda name: (HOMES[name], name))
        constants = [line for lines in self._constants.values() for line in lines]
        parts = [[f'"""{self.about}"""'], _imports(python), _imports(own), constants]
        head = "\n\n".join("\n".join(lines) for lines in parts if lines)
        return "\n".join([head, *self._lines, ""])

    def compile(self, function: str) -> Callable[..., Any]:
        """Compile the module and return a function. Tracebacks find the source in `linecache`."""
        text = self.text()
        linecache.cache[self.filename] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            self.filename,
        )
        exec(compile(text, self.filename, "exec"), self.namespace)  # noqa: S102 - flexwire generated the source
        compiled: Callable[..., Any] = self.namespace[function]
        return compiled


def _imports(names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for home, group in groupby(names, HOMES.__getitem__):
        items = list(group)
        flat = f"from {home} import {', '.join(items)}"
        exploded = _one_to_a_line(f"from {home} import (", items, ")")
        lines += [flat] if len(flat) <= LONGEST_LINE else exploded
    return lines


def _one_to_a_line(head: str, items: Sequence[str], tail: str) -> list[str]:
    return [head, *(f"{_INDENT}{item}," for item in items), tail]


def literal(value: str | bytes | float | None) -> str:
    r"""Return a value as source code, with the quotes and digits that ruff would choose.

    >>> print(literal("it's"), literal('"'), literal(b"\xff"), literal(1e300), literal(-1))
    "it's" '"' b"\xff" 1e300 -1
    >>> literal(float("nan"))
    'float("nan")'
    """
    if isinstance(value, str | bytes):
        return _quoted(repr(value))
    if isinstance(value, float):
        text = repr(value).replace("e+", "e")
        return text if math.isfinite(value) else f'float("{text}")'
    return repr(value)


def _quoted(text: str) -> str:
    """Return a string in double quotes, or in single quotes if these need fewer backslashes."""
    quote = text[-1]
    prefix, inner = text[: text.index(quote)], text[text.index(quote) + 1 : -1]
    plain = inner.replace("\\'", "'")
    if quote == '"' or plain.count('"') > plain.count("'"):
        return text
    escaped = plain.replace('"', '\\"')
    return f'{prefix}"{escaped}"'


# A length below this limit has a compact form of one byte: the length plus 1.
LONG = 2**GROUP_BITS - 1
# A length below this limit has a compact form of at most two bytes.
LONG_OF_TWO = 2 ** (2 * GROUP_BITS) - 1
# A default whose text has at most this length fits on one line together with a name.
_LONGEST_LITERAL = 24
# At most this many field names, together with a format for them, are readable on one line.
LONGEST_RUN = 24
_FORMS = {TagForm.SECTION: "", TagForm.INTERLEAVED: "interleaved_", TagForm.BUFFER: "buffered_"}


class Emitter(ABC):
    """Write the functions for each structure of a message, inner structures first."""

    verb: str

    def __init__(
        self, message: Schema, classes: Mapping[str, type[MessageStruct]], filename: str
    ) -> None:
        about = f"{self.verb.capitalize()}s {message.name}, with the classes in this namespace."
        self.source = GeneratedModule(filename, about)
        self.line, self.block = self.source.line, self.source.block
        self.classes = classes
        attributes = {name for cls in classes.values() for name in cls.__struct_fields__}
        self.names = SourceNames(attributes)
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

    def _find_uses(self, schema: Schema, seen: set[str]) -> None:
        seen.add(schema.name)
        for field in schema.fields:
            inner = struct_of(field.type)
            if inner is None or field.presence is Presence.ABSENT:
                continue
            is_many = isinstance(field.type, ArrayType) and self.takes_many(inner)
            (self._arrays if is_many else self._singles).add(inner.name)
            if inner.name not in seen:
                self._find_uses(inner, seen)

    @abstractmethod
    def takes_many(self, element: Schema) -> bool:
        """Return whether arrays of a structure use the function for many structures."""

    @abstractmethod
    def emit_function(self, schema: Schema, *, many: bool) -> None:
        """Write the function for one structure, or for ``many`` structures in an array."""

    # The methods below create names.

    def function(self, name: str, *, many: bool = False) -> str:
        """Return the name of the function for a structure."""
        return self.names.shared("function", f"{self.verb}_{'many_' * many}{name}")

    def class_of(self, name: str) -> str:
        """Return the name of a structure's class, which is in the source's namespace."""
        return self.source.bind(self.names.shared("class", name), self.classes[name])

    def struct_function(self, method: str, code: str) -> str:
        """Return the name of a function that packs or unpacks a format, such as ``unpack_iqi``."""
        letters = code.replace("?", "o")
        name = self.names.shared("format", f"{method.removesuffix('_from')}_{letters}")
        return self.source.constant(name, f'{self.source.use("Struct")}(">{code}").{method}')

    def tags(self, word: str, schema: Schema, tags: frozenset[int]) -> str:
        """Return the name of a set with some of a structure's tags."""
        return self.source.numbers(self.names.shared("tags", f"{word}_{schema.name}"), tags)

    def refuse(self) -> None:
        """Write the statement that leaves the input to the reference executor."""
        self.line(f"raise {self.source.use('Refusal')}")

    # The methods below create values.

    def literal(self, value: Any) -> str:
        """Return an expression for a default: a literal, or the name of a constant."""
        if isinstance(value, UUID):
            name = self.names.shared("uuid", f"uuid_{value.int:x}")
            return self.source.constant(name, f'{self.source.use("UUID")}("{value}")')
        text = literal(value)
        if len(text) <= _LONGEST_LITERAL:
            return text
        return self.source.bind(self.names.shared(text, "default"), value)

    def default(self, field: Field) -> str:
        """Return an expression that creates a field's default."""
        if field.default is None:
            return "None"
        if isinstance(field.type, ArrayType):
            return "[]"
        inner = struct_of(field.type)
        return self.literal(field.default) if inner is None else f"{self.class_of(inner.name)}()"


def inner_schemas(schema: Schema) -> list[Schema]:
    """Return the structures in the present fields of a structure, but not those inside them."""
    present = (field.type for field in schema.fields if field.presence is not Presence.ABSENT)
    return [inner for inner in map(struct_of, present) if inner is not None]


def fixed_code(kind: Type) -> str | None:
    """Return the `struct` code of a type with a fixed width, or None for other types.

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
    """Return whether `struct` can read and write values of this type directly."""
    return fixed_code(kind) is not None and not isinstance(kind, Boolean | Uuid)


def width_of(kind: Type) -> int:
    """Return the number of bytes of a type with a fixed width."""
    return calcsize(f">{fixed_code(kind)}")


def length_code(kind: String | Bytes | ArrayType) -> str:
    """Return the `struct` code of a length.

    For a compact length, the result is the code of a single byte.
    """
    if kind.compact:
        return "B"
    return "h" if isinstance(kind, String) else "i"


def is_row(schema: Schema) -> bool:
    """Return whether one call can read a structure: it has a fixed width and no tagged fields.

    >>> from flexwire.wire import COMPACT_STRING, INT16
    >>> is_row(Schema(Field("a", INT16))), is_row(Schema(Field("a", COMPACT_STRING)))
    (True, False)
    """
    fixed = all(fixed_code(field.type) for field in schema.inline)
    return fixed and 0 < len(schema.inline) <= LONGEST_RUN and not schema.tags_lead


def row_code(kind: Type) -> str:
    """Return the `struct` code of a field in a row. Any byte except 0 means true for a boolean."""
    return "?" if isinstance(kind, Boolean) else str(fixed_code(kind))


def row_codes(schema: Schema) -> str:
    """Return the codes of all fields in a row."""
    return "".join(row_code(field.type) for field in schema.inline)
