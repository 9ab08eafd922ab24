"""KIP-82's typed values: a type byte, followed by the bytes of the value.

The type table of the document and the type table of an earlier revision are two dialects. All
differences between the two dialects are in this module.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from flexwire.arguments import to_bytes, to_kind, to_text
from flexwire.errors import DecodeError, EncodeError, short
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.types import BOOLEAN, FLOAT64, INT8, INT16, INT32, INT64, UINT16, Type

PlainValue: TypeAlias = bool | int | float | str | bytes | None

_HIGHEST_CODE_UNIT = 0xFFFF


class ValueType(enum.StrEnum):
    """A type with its name in the document's table. Only the earlier revision has ``null``.

    In Python a boolean is a bool. Byte, short, int and long are signed ints of 8, 16, 32 and 64
    bits. A char is a str of one UTF-16 code unit, which may be a lone surrogate. Float and double
    are floats. A float is rounded to 32 bits. A string is a str, and byte[] is bytes.
    """

    NULL = "null"
    BOOLEAN = "boolean"
    BYTE = "byte"
    CHAR = "char"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "byte[]"


class TypedDialect(enum.Enum):
    """The type table to use, which cannot be inferred from the bytes."""

    #: KIP-82 as it stands: 0x00 is boolean, with one byte for the value, and so on to 0x09, byte[].
    DOCUMENT = "kip-82"
    #: The revision before it: 0x00 null, 0x01 true and 0x02 false, with no bytes, to 0x0b, byte[].
    EARLIER = "kip-82-earlier"


class _Null(Type):
    name = "null"

    def read(self, reader: Reader) -> None:
        """Return no bytes, because a null has no bytes."""

    def write(self, writer: Writer, value: Any) -> None:
        if value is not None:
            raise writer.error(f"expected None, got {short(value)}")


class _Char(Type):
    name = "char"

    def read(self, reader: Reader) -> str:
        return chr(UINT16.read(reader))

    def write(self, writer: Writer, value: Any) -> None:
        if not isinstance(value, str) or len(value) != 1 or ord(value) > _HIGHEST_CODE_UNIT:
            raise writer.error(f"expected a str of one UTF-16 code unit, got {short(value)}")
        UINT16.write(writer, ord(value))


class _Float32(Type):
    name = "float"
    _layout = struct.Struct(">f")

    def read(self, reader: Reader) -> float:
        (value,) = reader.unpack(self._layout, "FLOAT32")
        return float(value)

    def write(self, writer: Writer, value: Any) -> None:
        try:
            writer.write(self._layout.pack(value))
        except (struct.error, OverflowError):
            raise writer.error(f"expected a float of 32 bits, got {short(value)}") from None


class _String(Type):
    name = "string"

    def read(self, reader: Reader) -> str:
        start = reader.position
        try:
            return reader.take(reader.remaining).decode()
        except UnicodeDecodeError as error:
            raise reader.error(f"not UTF-8: {error.reason}", start + error.start) from None

    def write(self, writer: Writer, value: Any) -> None:
        if not isinstance(value, str):
            raise writer.error(f"expected a str, got {short(value)}")
        try:
            writer.write(value.encode())
        except UnicodeEncodeError as error:
            raise writer.error(f"cannot be encoded as UTF-8: {error.reason}") from None


class _Bytes(Type):
    name = "byte[]"

    def read(self, reader: Reader) -> bytes:
        return reader.take(reader.remaining)

    def write(self, writer: Writer, value: Any) -> None:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise writer.error(f"expected bytes, got {short(value)}")
        writer.write(bytes(value))


_WIRE: dict[ValueType, Type] = {
    ValueType.NULL: _Null(),
    ValueType.BOOLEAN: BOOLEAN,
    ValueType.BYTE: INT8,
    ValueType.CHAR: _Char(),
    ValueType.SHORT: INT16,
    ValueType.INT: INT32,
    ValueType.LONG: INT64,
    ValueType.FLOAT: _Float32(),
    ValueType.DOUBLE: FLOAT64,
    ValueType.STRING: _String(),
    ValueType.BYTES: _Bytes(),
}
# The types with a fixed size. The other types take all remaining bytes.
_SIZES = {
    ValueType.BOOLEAN: 1,
    ValueType.BYTE: 1,
    ValueType.CHAR: 2,
    ValueType.SHORT: 2,
    ValueType.INT: 4,
    ValueType.LONG: 8,
    ValueType.FLOAT: 4,
    ValueType.DOUBLE: 8,
}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Typed:
    """A value with its type. The number 5 sent as a short differs from 5 sent as a long.

    ``type`` can also be the name of a type. Two objects are equal if their types and bytes are
    equal. A NaN therefore equals itself, and -0.0 does not equal 0.0. Raises `EncodeError` for a
    value that the type cannot represent.

    >>> Typed("short", 5), Typed("short", 5).encode().hex(" ")
    (Typed('short', 5), '03 00 05')
    >>> Typed.decode(bytes.fromhex("03 00 05")) == Typed("long", 5)
    False
    """

    type: ValueType
    #: The value as bytes, without the type byte.
    data: bytes

    def __init__(
        self,
        type: ValueType | str,  # noqa: A002 - KIP-82 uses this word
        value: PlainValue | bytearray | memoryview = None,
    ) -> None:
        try:
            value_type = ValueType(to_text(type, "type"))
        except ValueError:
            reason = f"{short(type)} is not a type; the types are {', '.join(ValueType)}"
            raise EncodeError(reason, path="type", message="Typed") from None
        writer = Writer()
        try:
            # In Python a bool is also an int, but a caller who specifies a type does not mean a
            # bool.
            if isinstance(value, bool) and value_type is not ValueType.BOOLEAN:
                raise writer.error(f"got {value}, a boolean")
            _WIRE[value_type].write(writer, value)
        except EncodeError as error:
            reason = f"not a {value_type}: {error.reason}"
            raise EncodeError(reason, path="value", message="Typed") from None
        self._set(value_type, bytes(writer.buffer))

    def _set(self, type: ValueType, data: bytes) -> None:  # noqa: A002 - KIP-82 uses this word, as above
        # The class is frozen, so its fields are set in this way.
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "data", data)

    @property
    def value(self) -> PlainValue:
        """The value without its type."""
        value: PlainValue = _WIRE[self.type].read(Reader(self.data))
        return value

    def encode(self, dialect: TypedDialect = TypedDialect.DOCUMENT) -> bytes:
        """Return the TypedValue. Raises `EncodeError` for null, which only the earlier table has.

        >>> Typed("boolean", True).encode().hex(" ")
        '00 01'
        >>> Typed("boolean", True).encode(TypedDialect.EARLIER).hex(" ")
        '01'
        """
        table = _TABLES[to_kind(dialect, "dialect", TypedDialect)]
        if self in table.values:
            return bytes([table.values.index(self)])
        if self.type not in table.types:
            reason = f"the type table {dialect.value} does not contain {self.type}"
            raise EncodeError(reason, path="type", message="Typed")
        return bytes([len(table.values) + table.types.index(self.type)]) + self.data

    @classmethod
    def decode(
        cls,
        data: bytes | bytearray | memoryview,
        dialect: TypedDialect = TypedDialect.DOCUMENT,
    ) -> Typed:
        """Return the value in a whole TypedValue.

        Raises `DecodeError` for a type byte that is not in the table, for a value of an invalid
        size, for a boolean other than 0 and 1, and for a string that is not UTF-8.
        """
        to_kind(dialect, "dialect", TypedDialect)
        reader = Reader(to_bytes(data))
        reader.path = ["type"]
        try:
            return cls._read(reader, _TABLES[dialect])
        except DecodeError as error:
            error.message = "Typed"
            raise

    @classmethod
    def _read(cls, reader: Reader, table: _TypeTable) -> Typed:
        if not reader.remaining:
            raise reader.error("no type byte")
        number = reader.take(1)[0]
        place = number - len(table.values)
        if place >= len(table.types):
            last = len(table.values) + len(table.types) - 1
            raise reader.error(f"unknown type {number:#04x}; the highest is {last:#04x}", 0)
        reader.path = ["value"]
        value = table.values[number] if place < 0 else None
        type_ = value.type if value else table.types[place]
        size = 0 if value else _SIZES.get(type_, reader.remaining)
        if reader.remaining != size:
            raise reader.error(f"type {type_} requires {size} bytes, got {reader.remaining}")
        if value:
            return value
        typed = cls.__new__(cls)
        typed._set(type_, reader.data[reader.position :])  # noqa: SLF001 - the object is of this class
        _WIRE[type_].read(reader)
        return typed

    def __repr__(self) -> str:
        return f"Typed({self.type.value!r}, {self.value!r})"


class _TypeTable(NamedTuple):
    """Values that consist of the type number alone, and types whose value follows the number."""

    values: tuple[Typed, ...]
    types: tuple[ValueType, ...]


_TABLES = {
    TypedDialect.DOCUMENT: _TypeTable((), tuple(ValueType)[1:]),
    # "0x00-0x002 - null and boolean this will be zero length"
    TypedDialect.EARLIER: _TypeTable(
        (Typed("null"), Typed("boolean", True), Typed("boolean", False)), tuple(ValueType)[2:]
    ),
}
