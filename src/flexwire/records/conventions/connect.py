"""Kafka Connect's `SimpleHeaderConverter`: values are text, from which their types are parsed."""

from __future__ import annotations

import math
import re
import struct
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple

from flexwire.errors import short
from flexwire.records.conventions.convention import MAX_DEPTH, Convention, HeaderEvidence
from flexwire.wire.limits import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

# The characters that Java's String.trim removes, and that Connect treats as blanks.
_BLANK = "".join(map(chr, range(0x21)))
# A delimiter, or everything up to the next delimiter that is not escaped. The pattern is
# possessive, because otherwise the matcher would have to remember each character.
_TOKEN = re.compile(r'[:,{}\[\]"]|(?:[^:,{}\[\]"\\]++|\\.|\\\Z)++', re.DOTALL)
_NUMBER = re.compile(
    r"[+-]?(?:\d+(?:\.(?P<digits>\d*))?|\.(?P<more>\d+))"
    r"(?:[eE](?P<sign>[+-]?)0*(?P<exponent>\d{1,10}))?"
)
_INT32 = range(INT32_MIN, INT32_MAX + 1)
_INTEGERS = {f"int{bits}": range(-(2 ** (bits - 1)), 2 ** (bits - 1)) for bits in (8, 16, 32, 64)}
# The types from narrow to wide. If the values of a list have several of these types, the list has
# the widest type.
_NUMBERS = (*_INTEGERS, "float32", "float64")
# Connect's logical types are integers internally, and are merged with integers.
_TEMPORAL = {"date": "int32", "time": "int32", "timestamp": "int64"}
_LITERALS = {"null": None, "true": True, "false": False}
_COLONS = 2  # In a time or timestamp, each colon is a token between two other tokens.
# This length is reached if every character is escaped.
_LONGEST = 2 * len("2024-01-01T12:34:56.789Z")

# Java's SimpleDateFormat accepts any numbers between the separators, and any text after them.
_N = r"[ \t]*-?\d+(?:E-?\d+)?"
_CLOCK = rf"{_N}:{_N}:{_N}\.{_N}Z"
_LOOSE = {
    10: ("date", re.compile(rf"{_N}-{_N}-{_N}")),
    13: ("time", re.compile(_CLOCK)),
    24: ("timestamp", re.compile(rf"{_N}-{_N}-{_N}T{_CLOCK}")),
}


class ConnectValue(NamedTuple):
    """A value with its Connect type, such as int8, float32, date or array; None for ``null``."""

    kind: str
    value: Any


class MisreadError(Exception):
    """Connect would lose, change or invent data when it reads the text."""


class _NotStructuredError(Exception):
    """The text begins like an array or map but is neither, so it is a string."""


def parse(text: str) -> ConnectValue:
    """Read text as `SimpleHeaderConverter` does.

    Numbers have the narrowest possible integer type, or otherwise float32. All numbers in an array
    or map have the same type. Any other text is a string. A date keeps its digits, even before
    1582, when Java uses the Julian calendar. Raises `MisreadError` if Java loses, changes or
    invents data, and for nesting deeper than `MAX_DEPTH`.

    >>> parse("300"), parse("[1, 2.5]"), parse("plain: text")
    (ConnectValue(kind='int16', value=300), ConnectValue(kind='array', value=[1.0, 2.5]), \
ConnectValue(kind='string', value='plain: text'))
    """
    parser = _ConnectParser(text)
    try:
        value = parser.value(0)
    except _NotStructuredError:
        if text.startswith(tuple(_BLANK)):
            raise MisreadError("Connect would read only the blanks before the bracket") from None
        return ConnectValue("string", text)
    if value.kind != "string" and parser.rest():
        reads = f"{short(value.value)} and drops {short(parser.rest())}"
        raise MisreadError(f"Connect would read {reads}")
    return value


class _ConnectParser:
    """The tokens of a string, and the number of tokens that were read so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def rest(self) -> str:
        return "".join(self._tokens[self._next :]).strip(_BLANK)

    def value(self, depth: int) -> ConnectValue:
        """Read the next value: the whole text at depth 0, and otherwise part of it."""
        piece = self._peek()
        if depth and piece == '"':
            return self._quoted()
        if (
            piece is not None
            and piece in _LITERALS
            and (depth or self._next + 1 == len(self._tokens))
        ):
            self._next += 1
            literal = _LITERALS[piece]
            return ConnectValue("null" if literal is None else "boolean", literal)
        if piece in {"[", "{"}:
            if depth == MAX_DEPTH:
                raise MisreadError(f"nested more than {MAX_DEPTH} levels deep")
            self._next += 1
            return self._array(depth + 1) if piece == "[" else self._map(depth + 1)
        return self._scalar(piece, depth)

    def _peek(self) -> str | None:
        """Return the next token, stripped. A blank token is skipped unless it is the last one."""
        if self._next == len(self._tokens):
            return None
        piece: str = self._tokens[self._next].strip(_BLANK)
        if not piece and self._next + 1 < len(self._tokens):
            self._next += 1
            piece = self._tokens[self._next].strip(_BLANK)
        return piece

    def _take(self, piece: str) -> bool:
        is_next = self._peek() == piece
        self._next += is_next
        return is_next

    def _scalar(self, piece: str | None, depth: int) -> ConnectValue:
        value = None
        if piece and piece[0].isdecimal():
            value = self._temporal(piece) or self._number(piece)
        elif piece and piece[0] in "+-":
            value = self._number(piece)
        if not value and depth:
            raise _NotStructuredError
        return value or ConnectValue("string", self._text)

    def _number(self, piece: str) -> ConnectValue | None:
        value = _number(piece)
        self._next += value is not None
        return value

    def _temporal(self, piece: str) -> ConnectValue | None:
        """Read a time, date or timestamp, which colons can divide into five tokens."""
        for more in (2 * _COLONS, 0):
            parts = [piece, *self._tokens[self._next + 1 : self._next + 1 + more]]
            if len(parts) == more + 1 and sum(map(len, parts)) <= _LONGEST:
                value = _temporal("".join(parts))
                if value:
                    self._next += 1 + more
                    return value
        return None

    def _quoted(self) -> ConnectValue:
        """Read to the next quote. Escapes are kept, and blanks before a delimiter are lost."""
        parts = []
        self._next += 1
        while self._peek() is not None and not self._take('"'):
            parts.append(self._tokens[self._next])
            self._next += 1
        content = "".join(parts)
        return _temporal(content) or ConnectValue("string", content)

    def _array(self, depth: int) -> ConnectValue:
        items: list[ConnectValue] = []
        while self._peek() is not None:
            if self._take("]"):
                return ConnectValue("array", _aligned(items, _common(items)))
            items.append(self.value(depth))
            if self._peek() != "]" and not self._take(","):
                raise _NotStructuredError
        raise _NotStructuredError

    def _map(self, depth: int) -> ConnectValue:
        keys: list[ConnectValue] = []
        values: list[ConnectValue] = []
        while self._peek() is not None:
            if self._take("}"):
                return ConnectValue("map", _mapped(keys, values))
            keys.append(self.value(depth))
            if keys[-1].value is None or not self._take(":"):
                raise _NotStructuredError
            values.append(self.value(depth))
            # Connect accepts a missing comma.
            self._take(",")
        raise _NotStructuredError


def _number(piece: str) -> ConnectValue | None:
    match = _NUMBER.fullmatch(piece)
    # Java examines UTF-16 code units, and half a character is never a digit.
    if not match or max(piece) > "\uffff":
        return None
    exponent = int((match["sign"] or "") + (match["exponent"] or "0"))
    scale = len(match["digits"] or match["more"] or "") - exponent
    if exponent not in _INT32 or scale not in _INT32:
        return None
    decimal = Decimal(piece)
    whole = _whole(decimal)
    if whole is not None:
        for kind, values in _INTEGERS.items():
            if whole in values:
                return ConnectValue(kind, whole)
    if scale:
        double = float(piece)
        single = round_to_float32(decimal, double)
        if math.isfinite(single):
            return ConnectValue("float32", single)
        if math.isfinite(double):
            return ConnectValue("float64", double)
    return ConnectValue("decimal", decimal)


def _whole(decimal: Decimal) -> int | None:
    """Return a whole number of up to 20 digits as an int. No type can hold more digits."""
    if not decimal:
        return 0
    if not 0 <= decimal.adjusted() < len(str(2**64)):
        return None
    whole = decimal.to_integral_value()
    return int(whole) if whole == decimal else None


def round_to_float32(exact: Decimal | int, double: float) -> float:
    """Round a number only once, because rounding twice may give a different result."""
    below, above = (_float32(math.nextafter(double, to)) for to in (-math.inf, math.inf))
    if below == above or not math.isfinite(double) or exact == Decimal(double):
        return _float32(double)
    return above if exact > Decimal(double) else below


def _float32(double: float) -> float:
    try:
        return float(struct.unpack(">f", struct.pack(">f", double))[0])
    except OverflowError:
        return math.copysign(math.inf, double)


def _temporal(text: str) -> ConnectValue | None:
    """Read ISO 8601 in the three forms that Connect writes, as UTC. Java uses local time."""
    text = text.replace("\\:", ":")
    if len(text) not in _LOOSE:
        return None
    kind, loose = _LOOSE[len(text)]
    if not loose.match(text):
        return None
    with suppress(ValueError):
        return ConnectValue(kind, _ISO[kind](text))
    raise MisreadError(f"{short(text)} is not a valid {kind}, but Connect would accept it")


def _date(text: str) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError
    return date.fromisoformat(text)


def _time(text: str) -> time:
    # Since 3.14, Python accepts 24:00 as midnight.
    if not re.fullmatch(r"(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", text):
        raise ValueError
    return time.fromisoformat(text[:-1])


def _timestamp(text: str) -> datetime:
    day, clock = text.split("T")
    return datetime.combine(_date(day), _time(clock), UTC)


_ISO = {"date": _date, "time": _time, "timestamp": _timestamp}


def _common(values: list[ConnectValue]) -> str | None:
    """Return the type that Connect determines for all values, if there is one."""
    common = None
    for value in values:
        if common is None:
            common = value.kind if value.kind != "null" else None
        elif value.kind != "null":
            old, new = (_TEMPORAL.get(kind, kind) for kind in (common, value.kind))
            if old == new:
                common = value.kind
            elif old not in _NUMBERS or new not in _NUMBERS:
                return None
            elif _NUMBERS.index(old) < _NUMBERS.index(new):
                common = value.kind
    return common


def _aligned(values: list[ConnectValue], common: str | None) -> list[Any]:
    """Convert values to their common type. If one value cannot be converted, all become strings."""
    return [value.value if common is None else _converted(value, common) for value in values]


def _converted(value: ConnectValue, kind: str) -> Any:
    if value.kind == "null" or (value.kind in _TEMPORAL and kind in _NUMBERS):
        raise _NotStructuredError
    if kind in _TEMPORAL and value.kind not in _TEMPORAL:
        raise MisreadError(f"Connect would turn {value.value} into a {kind}")
    if value.kind in _INTEGERS and kind in {"float32", "float64"}:
        double = float(value.value)
        return round_to_float32(value.value, double) if kind == "float32" else double
    return value.value


def _mapped(keys: list[ConnectValue], values: list[ConnectValue]) -> dict[Any, Any]:
    """Return the map, converted to common types. For equal keys, the last value is kept."""
    entries: dict[Any, tuple[ConnectValue, ConnectValue]] = {}
    for key, value in zip(keys, values, strict=True):
        if key.kind in {"array", "map"}:
            raise MisreadError("a Python dict cannot have arrays or maps as keys")
        first, _ = entries.get(key.value, (key, value))
        if type(first.value) is not type(key.value):
            raise MisreadError(f"the keys {first.value} and {key.value} are the same key in Python")
        entries[key.value] = (first, value)
    key_type = _common(keys)
    # If the keys have no common type, Connect does not convert the values either.
    value_type = _common(values) if key_type else None
    names = _aligned([key for key, _ in entries.values()], key_type)
    contents = _aligned([value for _, value in entries.values()], value_type)
    mapping = dict(zip(names, contents, strict=True))
    if len(mapping) != len(entries):
        raise MisreadError("Connect would merge two keys of a map into one")
    return mapping


_INT64 = range(INT64_MIN, INT64_MAX + 1)


class Connect(Convention):
    """Values as Connect's default for record headers, `SimpleHeaderConverter`, reads them.

    int8 to int64 become ints. float32 and float64 become floats. Nearly all floats are float32,
    which may lose digits. Decimal becomes a `decimal.Decimal`. Date, Time and Timestamp become a
    date, time and datetime in UTC. Arrays and maps become lists and dicts, and everything else
    becomes a str. A string that Java reads differently (``12:30`` as 12) is invalid.

    >>> Connect().read([(b"retries", b"3"), (b"late", b"true"), (b"ids", b'["a",null,7]')])
    [('retries', 3), ('late', True), ('ids', ['a', None, 7])]
    """

    name = "connect"
    rank = 40

    def read_value(self, key: str, data: bytes) -> Any:
        """Read the text by Connect's rules."""
        try:
            return parse(self.text(key, data)).value
        except MisreadError as error:
            raise self.misfit(key, str(error)) from None

    def write_value(self, key: str, value: Any) -> bytes:
        """Write the text that Connect would write.

        A float may be rounded to 32 bits when it is read.

        A str that would be read as another type, such as "12", is invalid. Bytes are invalid too,
        because they would be read as a base64 string.
        """
        text = self._rendered(key, value, 0)
        data = self.encoded(key, text)
        back = self.read_value(key, data)
        if not _same(back, value):
            raise self.misfit(key, f"{short(value)} would be read as {short(back)}")
        return data

    def sign(self, key: str, data: bytes, value: Any) -> HeaderEvidence | None:  # noqa: ARG002 - the base class has this argument
        """Return evidence for Connect for every value except a string, which proves nothing."""
        kind = type(value).__name__
        return None if kind == "str" else HeaderEvidence(key, 1, f"reads as {kind}: {short(value)}")

    def _rendered(self, key: str, value: Any, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise self.misfit(key, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, str):
            return (
                value if not depth else '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'
            )
        if isinstance(value, list):
            return f"[{','.join(self._rendered(key, item, depth + 1) for item in value)}]"
        if isinstance(value, dict):
            entries = (
                f"{self._rendered(key, name, depth + 1)}:{self._rendered(key, item, depth + 1)}"
                for name, item in value.items()
            )
            return f"{{{','.join(entries)}}}"
        text = _scalar(value)
        if text is None:
            raise self.misfit(key, f"Connect cannot write {short(value)} as text")
        return text


def _scalar(value: Any) -> str | None:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | Decimal) or (isinstance(value, int) and value in _INT64):
        return str(value)
    return _temporal_text(value)


def _temporal_text(value: Any) -> str | None:
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None)
        return f"{value.isoformat(timespec='milliseconds')}Z"
    if isinstance(value, time) and not value.tzinfo:
        return f"{value.isoformat(timespec='milliseconds')}Z"
    return value.isoformat() if type(value) is date else None


def _same(back: Any, value: Any) -> bool:
    """Return whether a value that was read equals the written one, except for number types."""
    if isinstance(value, bool):
        return back is value
    if isinstance(value, int | float | Decimal):
        return _is_number(back) and (back == value or back == _rounded(value))
    if isinstance(value, list):
        return type(back) is list and len(back) == len(value) and all(map(_same, back, value))
    if isinstance(value, dict):
        return (
            type(back) is dict
            and all(map(_same, back, value))
            and all(map(_same, back.values(), value.values()))
            and len(back) == len(value)
        )
    return type(back) is type(value) and bool(back == value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _rounded(value: float | Decimal) -> float | None:
    return round_to_float32(Decimal(value), value) if isinstance(value, float) else None
