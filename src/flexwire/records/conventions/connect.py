"""Kafka Connect's `SimpleHeaderConverter`: values as text, whose types are found by reading it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from flexwire.errors import short
from flexwire.records.conventions.connect_text import MisreadError, parse, round_to_float32
from flexwire.records.conventions.convention import MAX_DEPTH, Convention, Evidence
from flexwire.wire.limits import INT64_MAX, INT64_MIN

_INT64 = range(INT64_MIN, INT64_MAX + 1)


class Connect(Convention):
    """Values as `SimpleHeaderConverter` reads them, Connect's default for record headers.

    int8 to int64 are ints; float32 and float64 floats, where nearly all are float32 and so may lose
    digits; Decimal is a `decimal.Decimal`; Date, Time and Timestamp are a date, time and datetime
    in UTC; arrays and maps are lists and dicts; all else is a str. What Java reads otherwise than
    the text says (``12:30`` as 12) does not fit.

    >>> Connect().read([(b"retries", b"3"), (b"late", b"true"), (b"ids", b'["a",null,7]')])
    [('retries', 3), ('late', True), ('ids', ['a', None, 7])]
    """

    name = "connect"

    def read_value(self, key: str, data: bytes) -> Any:
        """Read the text by Connect's rules."""
        try:
            return parse(self.text(key, data)).value
        except MisreadError as error:
            raise self.misfit(key, str(error)) from None

    def write_value(self, key: str, value: Any) -> bytes:
        """Write the text that Connect would; a float may come back rounded to 32 bits.

        A str that would be read as something else, "12" for one, does not fit, nor do bytes: they
        would come back as text in base64.
        """
        text = self._rendered(key, value, 0)
        data = self.encoded(key, text)
        back = self.read_value(key, data)
        if not _same(back, value):
            raise self.misfit(key, f"{short(value)} would be read as {short(back)}")
        return data

    def sign(self, key: str, data: bytes, value: Any) -> Evidence | None:  # noqa: ARG002 - part of the hook
        """Any value that is not a string speaks for Connect; a string proves nothing."""
        kind = type(value).__name__
        return None if kind == "str" else Evidence(key, 1, f"reads as {kind}: {short(value)}")

    def _rendered(self, key: str, value: Any, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise self.misfit(key, f"nested more than {MAX_DEPTH} deep")
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
            raise self.misfit(key, f"Connect has no text for {short(value)}")
        return text


def _scalar(value: Any) -> str | None:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | Decimal) or (isinstance(value, int) and value in _INT64):
        return str(value)
    return _temporal(value)


def _temporal(value: Any) -> str | None:
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None)
        return f"{value.isoformat(timespec='milliseconds')}Z"
    if isinstance(value, time) and not value.tzinfo:
        return f"{value.isoformat(timespec='milliseconds')}Z"
    return value.isoformat() if type(value) is date else None


def _same(back: Any, value: Any) -> bool:
    """Whether a value was read back as written, but for the types and precision of numbers."""
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
