"""Boundary cases, in one list; each executor's tests use the list by case name.

A case is a field of one type, at one version, in one place (inline, an element, tagged), with
values at, below and above each limit of the type. The expected bytes are written here; no executor
computes them.
"""

from __future__ import annotations

import math
import struct
import uuid
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.codec.made_up import made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec import Message

REFUSED = object()
NON_FLEXIBLE, FLEXIBLE = 0, 2
INLINE, NULLABLE, ELEMENT, TAGGED = "inline", "nullable", "element", "tagged"

INTEGERS = {
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
}
# Lengths at both limits of each prefix size, and the greatest length of a string.
LENGTHS = [0, 1, 125, 126, 127, 128, 129, 16382, 16383, 16384, 32766, 32767]
LONGEST_STRING = 32767
# Large counts of elements, which are slow to make; each needs a longer count prefix.
COUNTS = [one for one in LENGTHS if one <= 16383]
NAN = struct.pack(">Q", 0x7FF8_0000_0000_0000)


def ends_of(kind: str) -> tuple[int, int]:
    """Return the lowest and the highest value of an integer type."""
    bits = 8 * struct.calcsize(INTEGERS[kind])
    return (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def integers(kind: str) -> tuple[list[Any], list[Any]]:
    """Return values that fit an integer type, and values that do not."""
    low, high = ends_of(kind)
    around = high - low + 1
    sound = sorted({low, low + 1, *(one for one in (-1, 0, 1) if low <= one), high - 1, high})
    wrong = {low - 1, high + 1, low - around, high + around, 2**63, -(2**63) - 1, 2**64, 10**30}
    wrong |= {value + around for value in sound} | {value - around for value in sound}
    wrong |= {bound for bits in (7, 8, 15, 16, 31, 32) for bound in (2**bits, -(2**bits) - 1)}
    return sound, [one for one in sorted(wrong) if not low <= one <= high]


def strings() -> tuple[list[Any], list[Any]]:
    """Return strings at every length limit, in characters of one to four bytes, and
    invalid values.
    """
    sound = ["x" * length for length in LENGTHS]
    sound += ["\0", "ß" * 63, "ß" * 64, "ß" * 16383, "€" * 10922, "\U0001f600" * 8191, "\uffff"]
    wrong = ["x" * 32768, "x" * 65535, "x" * 65536, "ß" * 16384, "€" * 10923, "\U0001f600" * 8192]
    return sound, [*wrong, "x" * 98304, "\ud800"]


def values_of(kind: str) -> tuple[list[Any], list[Any]]:
    """Return values that fit a type, and values that do not."""
    if kind in INTEGERS:
        return integers(kind)
    largest = b"\x00" * 65536
    others: dict[str, tuple[list[Any], list[Any]]] = {
        "bool": ([True, False], []),
        "float64": (
            [0.0, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan],
            [],
        ),
        "uuid": ([uuid.UUID(int=0), uuid.UUID(int=2**127), uuid.UUID(int=2**128 - 1)], []),
        "string": strings(),
        "bytes": ([largest[:length] for length in [*LENGTHS, 32768, 65535, 65536]], []),
        "records": ([largest[:length] for length in [*LENGTHS, 32768]], []),
    }
    return others[kind]


KINDS = [*INTEGERS, "bool", "float64", "uuid", "string", "bytes", "records"]
VARIABLE = ("string", "bytes", "records")
ARRAYS = ("int8", "uint16", "int32", "int64", "bool", "string", "uuid")


@dataclass(frozen=True, slots=True)
class Case:
    """A field of a type in a place, at a version: a value, and its bytes or REFUSED."""

    kind: str
    place: str
    version: int
    value: Any
    raw: Any

    @property
    def message(self) -> type[Message]:
        """Return the message with only this field."""
        return message_with(self.kind, self.place)

    @property
    def holder(self) -> Any:
        """Return the message with the value."""
        kind: Any = self.message
        return kind(value=self.value)

    def __str__(self) -> str:
        told = repr(self.value)
        told = told if len(told) < 40 else f"{told[:20]}… of {len(told)}"
        return f"{self.place} {self.kind} v{self.version} {told}"


@cache
def message_with(kind: str, place: str) -> type[Message]:
    """Return a message whose only field is of the given type."""
    field: dict[str, Any] = {"name": "Value", "type": kind, "versions": "0+"}
    if place == NULLABLE:
        field["nullableVersions"] = "0+"
    elif place == ELEMENT:
        field |= {"type": f"[]{kind}"}
    elif place == TAGGED:
        field |= {"versions": "2+", "taggedVersions": "2+", "tag": 0}
    return made([field])


def uvarint(value: int) -> bytes:
    """Return an unsigned varint."""
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def length_of(length: int, version: int, form: str = ">i") -> bytes:
    """Return a length on the wire; None becomes -1."""
    return uvarint(length + 1) if version == FLEXIBLE else struct.pack(form, length)


def on_the_wire(kind: str, value: Any, version: int) -> bytes:
    """Return the bytes of a value of a type, with nothing around it."""
    form = ">h" if kind == "string" else ">i"
    if value is None:
        return length_of(-1, version, form)
    if kind in INTEGERS:
        return struct.pack(INTEGERS[kind], value)
    if kind == "bool":
        return b"\x01" if value else b"\x00"
    if kind == "float64":
        return NAN if math.isnan(value) else struct.pack(">d", value)
    if kind == "uuid":
        return bytes(value.bytes)
    data = value.encode() if isinstance(value, str) else value
    return length_of(len(data), version, form) + data


def _placed(kind: str, place: str, version: int, value: Any) -> bytes:
    raw = on_the_wire(kind, value, version)
    if place == ELEMENT:
        raw = length_of(1, version) + raw
    if place == TAGGED:
        default: Any = message_with(kind, TAGGED)()
        return b"\x00" if value == default.value else b"\x01\x00" + uvarint(len(raw)) + raw
    return raw + (b"\x00" if version == FLEXIBLE else b"")


def _places(kind: str) -> Iterator[tuple[str, int]]:
    for version in (NON_FLEXIBLE, FLEXIBLE):
        yield INLINE, version
        if kind in VARIABLE:
            yield NULLABLE, version
        if kind != "records":
            yield ELEMENT, version
    yield TAGGED, FLEXIBLE


def encoded() -> Iterator[Case]:
    """Yield every boundary case for writing a value."""
    for kind in KINDS:
        sound, wrong = values_of(kind)
        for place, version in _places(kind):
            for value in sound:
                held = [value] if place == ELEMENT else value
                yield Case(kind, place, version, held, _placed(kind, place, version, value))
            for value in (*wrong, None):
                held = [value] if place == ELEMENT else value
                raw = REFUSED
                # A missing value of type records is null, whether null is allowed or not.
                if value is None and (place == NULLABLE or (kind, place) == ("records", TAGGED)):
                    raw = _placed(kind, place, version, None)
                yield Case(kind, place, version, held, raw)
    for kind in ARRAYS:
        one = values_of(kind)[0][-1 if kind != "string" else 1]
        counts = LENGTHS if kind == "int8" else COUNTS
        for version, count in ((v, n) for v in (NON_FLEXIBLE, FLEXIBLE) for n in counts):
            raw = length_of(count, version) + count * on_the_wire(kind, one, version)
            raw += b"\x00" if version == FLEXIBLE else b""
            yield Case(kind, ELEMENT, version, [one] * count, raw)


OVERLONG = [b"\x80\x00", b"\x81\x00", b"\x82\x80\x00", b"\x80\x80\x80\x80\x00"]
# Above 32 bits, more than five bytes, cut off; then counts that exceed the remaining bytes.
TOO_MUCH = [b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x10", b"\x80" * 5 + b"\x00", b"\x80"]
TOO_LONG = [b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f"]

# The highest possible tag, which is unknown.
HIGHEST_TAG = b"\x01\xff\xff\xff\xff\x07\x00"


def _wrong_lengths(kind: str, version: int) -> Iterator[bytes]:
    form = ">h" if kind == "string" else ">i"
    if version == FLEXIBLE:
        yield from OVERLONG + TOO_MUCH + TOO_LONG
    else:
        bits = 8 * struct.calcsize(form)
        for length in (-2, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1):
            yield struct.pack(form, length)
    yield length_of(-1, version, form)


def _cut_and_followed() -> Iterator[Case]:
    for case in encoded():
        if case.raw is not REFUSED:
            yield case
            if case.place != TAGGED or len(case.raw) > 1:
                yield Case(case.kind, case.place, case.version, REFUSED, case.raw[:-1])
            yield Case(case.kind, case.place, case.version, REFUSED, case.raw + b"\x00")


def _wrong_values(version: int, end: bytes) -> Iterator[Case]:
    for truth in (2, 127, 128, 255):
        yield Case("bool", INLINE, version, REFUSED, bytes([truth]) + end)
        raw = length_of(2, version) + bytes([1, truth]) + end
        yield Case("bool", ELEMENT, version, REFUSED, raw)
    for kind, place in (*((one, INLINE) for one in VARIABLE), ("int32", ELEMENT)):
        for raw in _wrong_lengths(kind, version):
            for behind in (b"", bytes(8)):
                yield Case(kind, place, version, REFUSED, raw + behind + end)
    for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3"):
        raw = length_of(len(text), version, ">h") + text + end
        yield Case("string", INLINE, version, REFUSED, raw)


def _wrong_tags() -> Iterator[Case]:
    for wrong in OVERLONG + TOO_MUCH + TOO_LONG:
        # The number of tagged fields, a tag, and the size of a tagged field.
        for raw in (wrong, b"\x01" + wrong + b"\x00", b"\x01\x05" + wrong):
            if raw != HIGHEST_TAG:
                yield Case("int8", TAGGED, FLEXIBLE, REFUSED, raw)


def decoded() -> Iterator[Case]:
    """Yield every boundary case for reading bytes; REFUSED means that reading must fail."""
    yield from _cut_and_followed()
    yield from _wrong_values(NON_FLEXIBLE, b"")
    yield from _wrong_values(FLEXIBLE, b"\x00")
    for length in (32768, 65535):
        raw = uvarint(length + 1) + b"x" * length + b"\x00"
        yield Case("string", INLINE, FLEXIBLE, REFUSED, raw)
    yield from _wrong_tags()


ENCODED, DECODED = list(encoded()), list(decoded())
