"""Kafka's types, which read and write values.

Numbers of fixed width are big-endian. A length is an int16 (string) or int32 (bytes, records,
array), with -1 for null. In compact form, a length is an unsigned varint with the length + 1, or 0
for null (KIP-482).
"""

from __future__ import annotations

import operator
import re
import struct
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexwire.arguments import refuse
from flexwire.errors import ArgumentError, short
from flexwire.wire.limits import LONGEST, LONGEST_STRING, RANGES

if TYPE_CHECKING:
    from flexwire.wire.cursor import Reader, Writer

# The length of a string is limited to an int16, even if a compact length could be larger.

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
# For malformed UTF-8, Java and Python insert a U+FFFD at the same places, except for a surrogate:
# Java inserts one U+FFFD for all bytes of the surrogate, and Python inserts one for each byte. FF
# is malformed by itself, so both insert one U+FFFD.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class Type(ABC):
    """The notation of one kind of value."""

    name: str

    @abstractmethod
    def read(self, reader: Reader) -> Any:
        """Read a value. Raises `DecodeError` if the value is invalid."""

    @abstractmethod
    def write(self, writer: Writer, value: Any) -> None:
        """Write a value. Raises `EncodeError` if the type does not allow the value."""

    def skip(self, reader: Reader) -> None:
        """Skip a value without storing it. Raises `DecodeError`.

        Skipping checks lengths and counts. Skipping does not check values, so a boolean of 2 and
        text that is not UTF-8 are skipped too.
        """
        self.read(reader)

    def layout(self) -> object:
        """Return the facts that determine the bytes, to be compared with ``==``."""
        return self.name

    def is_default(self, value: Any, default: Any) -> bool:
        """Return whether a tagged or absent field with this value is not written."""
        return bool(value == default)

    @property
    def least_size(self) -> int:
        """The number of bytes of the smallest value."""
        return 1

    @property
    def fixed_size(self) -> int | None:
        """The number of bytes of every value, or None if values have different sizes."""
        return None


@dataclass(frozen=True)
class Boolean(Type):
    """One byte, 0 or 1. The lenient reader accepts any byte except 0 as true."""

    name: str = "BOOLEAN"

    def read(self, reader: Reader) -> bool:
        start = reader.position
        value = reader.take(1)[0]
        if value > 1 and not reader.lenient:
            raise reader.error(f"expected a boolean (0 or 1), got {value}", start)
        reader.annotate(start, self.name, bool(value))
        return bool(value)

    def skip(self, reader: Reader) -> None:
        reader.skip(1)

    @property
    def fixed_size(self) -> int | None:
        return 1

    def write(self, writer: Writer, value: Any) -> None:
        if value is not True and value is not False:
            raise writer.error(f"expected True or False, got {short(value)}")
        writer.write(b"\x01" if value else b"\x00")


@dataclass(frozen=True)
class Integer(Type):
    """A signed or unsigned integer of 1, 2, 4 or 8 bytes. ``code`` is the `struct` letter."""

    name: str
    code: str

    def read(self, reader: Reader) -> int:
        start = reader.position
        (value,) = reader.unpack(struct.Struct(">" + self.code), self.name)
        reader.annotate(start, self.name, value)
        return int(value)

    def skip(self, reader: Reader) -> None:
        reader.skip(self.fixed_size)

    @property
    def fixed_size(self) -> int:
        return struct.calcsize(">" + self.code)

    def write(self, writer: Writer, value: Any) -> None:
        try:
            number = operator.index(value)
        except TypeError:
            raise writer.error(f"expected an integer, got {short(value)}") from None
        lowest, highest = RANGES[self.name]
        if not lowest <= number <= highest:
            raise writer.error(
                f"{short(number)} is not in {self.name}'s range, {lowest} to {highest}"
            )
        writer.write(struct.pack(">" + self.code, number))


@dataclass(frozen=True)
class Float64(Type):
    """An IEEE 754 double of 8 bytes."""

    name: str = "FLOAT64"
    code: str = "d"

    def read(self, reader: Reader) -> float:
        start = reader.position
        (value,) = reader.unpack(struct.Struct(">d"), self.name)
        reader.annotate(start, self.name, value)
        return float(value)

    def skip(self, reader: Reader) -> None:
        reader.skip(8)

    @property
    def fixed_size(self) -> int | None:
        return 8

    def write(self, writer: Writer, value: Any) -> None:
        try:
            writer.write(struct.pack(">d", value))
        except (struct.error, OverflowError):
            raise writer.error(f"expected a float, got {short(value)}") from None


@dataclass(frozen=True)
class Uuid(Type):
    """A UUID of 16 bytes, the most significant byte first."""

    name: str = "UUID"

    def read(self, reader: Reader) -> uuid.UUID:
        start = reader.position
        if reader.remaining < 16:
            raise reader.error(f"UUID takes 16 bytes but {reader.remaining} remain")
        value = uuid.UUID(bytes=reader.take(16))
        reader.annotate(start, self.name, value)
        return value

    def skip(self, reader: Reader) -> None:
        reader.skip(16)

    @property
    def fixed_size(self) -> int | None:
        return 16

    def write(self, writer: Writer, value: Any) -> None:
        if not isinstance(value, uuid.UUID):
            raise writer.error(f"expected a uuid.UUID, got {short(value)}")
        try:
            raw = value.bytes
        except (AttributeError, OverflowError):
            # Only `object.__setattr__` can create such a UUID.
            raise writer.error("expected a uuid.UUID of 128 bits, got another size") from None
        writer.write(raw)


@dataclass(frozen=True)
class _Sized(Type):
    """The common part of string, bytes, records and array: a length, which may mean null."""

    compact: bool = False
    nullable: bool = False

    def _read_length(self, reader: Reader, prefix: struct.Struct = _INT32) -> int | None:
        start = reader.position
        if self.compact:
            length = reader.read_unsigned_varint() - 1
            if length > LONGEST and reader.lenient:
                # Java reads an int32 here, and any negative value means null.
                length = -1
        else:
            (raw,) = reader.unpack(prefix, f"the length of {self.name}")
            length = int(raw)
            if length < -1 and not reader.lenient:
                raise reader.error(f"expected a length of -1 (null) or more, got {length}", start)
        if length > LONGEST:
            raise reader.error(f"length {length} is above {LONGEST}", start)
        if length >= 0:
            return length
        if not self.nullable:
            raise reader.error("null, but the field is not nullable in this version", start)
        return None

    def _write_length(self, writer: Writer, length: int, prefix: struct.Struct = _INT32) -> None:
        if self.compact:
            writer.write_unsigned_varint(length + 1)
        else:
            writer.write(prefix.pack(length))

    def _write_null(self, writer: Writer, prefix: struct.Struct = _INT32) -> None:
        if not self.nullable:
            raise writer.error("None, but the field is not nullable in this version")
        self._write_length(writer, -1, prefix)

    def _full_name(self, kind: str) -> str:
        return ("COMPACT_" if self.compact else "") + ("NULLABLE_" if self.nullable else "") + kind


@dataclass(frozen=True)
class String(_Sized):
    """UTF-8 text of at most 32767 bytes."""

    @property
    def name(self) -> str:  # type: ignore[override]  # computed from the two flags
        """STRING, NULLABLE_STRING, COMPACT_STRING or COMPACT_NULLABLE_STRING."""
        return self._full_name("STRING")

    def read(self, reader: Reader) -> str | None:
        start = reader.position
        length = self._read_length(reader, _INT16)
        if length is None:
            reader.annotate(start, self.name, None)
            return None
        if length > LONGEST_STRING:
            raise reader.error(
                f"expected a string of at most {LONGEST_STRING} bytes, got {length}", start
            )
        at = reader.position
        raw = reader.take(length)
        if reader.lenient:
            raw = _SURROGATE.sub(b"\xff", raw)
        try:
            text = raw.decode("utf-8", "replace" if reader.lenient else "strict")
        except UnicodeDecodeError as error:
            raise reader.error(f"not UTF-8: {error.reason}", at + error.start) from None
        reader.annotate(start, self.name, text)
        return text

    def skip(self, reader: Reader) -> None:
        reader.skip(self._read_length(reader, _INT16) or 0)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            self._write_null(writer, _INT16)
            return
        if not isinstance(value, str):
            raise writer.error(f"expected a str, got {short(value)}")
        try:
            raw = value.encode()
        except UnicodeEncodeError as error:
            raise writer.error(f"not writable as UTF-8: {error.reason}") from None
        if len(raw) > LONGEST_STRING:
            if writer.lenient:
                # Each malformed byte becomes a U+FFFD, which has three bytes.
                return
            raise writer.error(
                f"expected a string of at most {LONGEST_STRING} bytes, got {len(raw)}"
            )
        self._write_length(writer, len(raw), _INT16)
        writer.write(raw)


@dataclass(frozen=True)
class Bytes(_Sized):
    """Bytes that are not interpreted. ``kind`` is BYTES or RECORDS, which are written alike."""

    kind: str = "BYTES"

    @property
    def name(self) -> str:  # type: ignore[override]  # computed from the flags
        """BYTES or RECORDS, preceded by COMPACT_ and NULLABLE_ if these apply."""
        return self._full_name(self.kind)

    def read(self, reader: Reader) -> bytes | None:
        start = reader.position
        length = self._read_length(reader)
        value = None if length is None else reader.take(length)
        reader.annotate(start, self.name, value)
        return value

    def skip(self, reader: Reader) -> None:
        reader.skip(self._read_length(reader) or 0)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            self._write_null(writer)
            return
        if not isinstance(value, bytes | bytearray | memoryview):
            raise writer.error(f"expected bytes, got {short(value)}")
        self._write_length(writer, len(value))
        writer.write(value)


@dataclass(frozen=True)
class ArrayType(_Sized):
    """A sequence of elements of one type, none of which is null."""

    element: Type = Boolean()

    @property
    def name(self) -> str:  # type: ignore[override]  # computed from the flags
        """ARRAY, preceded by COMPACT_ and NULLABLE_ if these apply."""
        return self._full_name("ARRAY")

    def layout(self) -> object:
        return (self.name, self.element.layout())

    def read(self, reader: Reader) -> list[Any] | None:
        count = self.read_count(reader)
        if count is None:
            return None
        reader.visit(count)
        values = []
        for index in range(count):
            reader.path.append(f"[{index}]")
            values.append(self.element.read(reader))
            reader.path.pop()
        return values

    def read_count(self, reader: Reader) -> int | None:
        """Read the number of elements that follow. None means a null array.

        Raises `DecodeError` for an invalid count.
        """
        start = reader.position
        count = self._read_length(reader)
        reader.annotate(start, f"{self.name} length", count)
        # Every element has at least one byte (resolve ensures this), so a larger count is invalid.
        # Kafka makes the same check.
        if count is not None and count > reader.remaining:
            raise reader.error(
                f"{count} elements declared but {reader.remaining} bytes remain", start
            )
        return count

    def skip(self, reader: Reader) -> None:
        count = self.read_count(reader) or 0
        size = self.element.fixed_size
        if size is not None:
            reader.skip(count * size)
            return
        reader.visit(count)
        for _ in range(count):
            self.element.skip(reader)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            self._write_null(writer)
            return
        if not isinstance(value, list | tuple):
            raise writer.error(f"expected a list, got {short(value)}")
        self._write_length(writer, len(value))
        for index, item in enumerate(value):
            writer.path.append(f"[{index}]")
            self.element.write(writer, item)
            writer.path.pop()

    def is_default(self, value: Any, default: Any) -> bool:
        if default is None or value is None:
            return value is default
        return isinstance(value, list | tuple) and not value

    @property
    def least_size(self) -> int:
        return 1 if self.compact else 4


def ArrayOf(element: Type, *, nullable: bool = False) -> ArrayType:  # noqa: N802 - a class name in KIP-482
    """An array with a fixed int32 length."""
    return ArrayType(element=_of_some_bytes(element), nullable=nullable)


def CompactArrayOf(element: Type, *, nullable: bool = False) -> ArrayType:  # noqa: N802 - see ArrayOf
    """An array whose length is an unsigned varint of the count + 1 (KIP-482)."""
    return ArrayType(element=_of_some_bytes(element), nullable=nullable, compact=True)


def checked_type(value: object, name: str) -> Type:
    """Return an argument that must be a type."""
    if not isinstance(value, Type):
        raise refuse(name, "a Type, such as INT32", value)
    return value


def _of_some_bytes(element: Type) -> Type:
    if not checked_type(element, "element").least_size:
        # The count would have no relation to the number of bytes, and could not be checked.
        reason = "the elements of an array must take at least one byte"
        raise ArgumentError(f"{reason}, but {element.name} takes none")
    return element


BOOLEAN = Boolean()
INT8 = Integer("INT8", "b")
INT16 = Integer("INT16", "h")
UINT16 = Integer("UINT16", "H")
INT32 = Integer("INT32", "i")
UINT32 = Integer("UINT32", "I")
INT64 = Integer("INT64", "q")
FLOAT64 = Float64()
UUID = Uuid()
STRING = String()
NULLABLE_STRING = String(nullable=True)
COMPACT_STRING = String(compact=True)
COMPACT_NULLABLE_STRING = String(compact=True, nullable=True)
BYTES = Bytes()
NULLABLE_BYTES = Bytes(nullable=True)
COMPACT_BYTES = Bytes(compact=True)
COMPACT_NULLABLE_BYTES = Bytes(compact=True, nullable=True)
RECORDS = Bytes(kind="RECORDS")
NULLABLE_RECORDS = Bytes(nullable=True, kind="RECORDS")
COMPACT_RECORDS = Bytes(compact=True, kind="RECORDS")
COMPACT_NULLABLE_RECORDS = Bytes(compact=True, nullable=True, kind="RECORDS")
