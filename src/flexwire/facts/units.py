"""Numbers and foreign text, formatted for people.

A number's tooltip contains the exact value.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from flexwire.printable import printable

ELLIPSIS = "\u2026"
DASH = "\u2013"
# Any legitimate name is shorter than this. A client id can take 32767 bytes, and a record header
# key can take more.
TEXT_LIMIT = 120
# The longest text in the facts, including hex samples of 512 bytes.
FACT_LIMIT = 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_THOUSAND = 1000


def shorten(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return the string, or its beginning and the number of omitted characters.

    >>> shorten("a" * 5, 3), shorten("a" * 50, 3)
    ('aaaaa', 'aaa… (+47 characters)')
    """
    # Cutting a shorter text would save nothing, because the remark takes as much space.
    if len(text) <= limit + 18:
        return text
    return f"{text[:limit]}{ELLIPSIS} (+{count(len(text) - limit)} characters)"


def safe(value: Any, limit: int = FACT_LIMIT) -> Any:
    """Return facts in JSON form, with every string made `printable` and limited in length."""
    copy: dict[str, str] = {}

    def each(value: Any) -> Any:
        if isinstance(value, str):
            # The same names occur many times, so results are cached.
            if value not in copy:
                copy[value] = shorten(printable(shorten(value, limit)), 2 * limit)
            return copy[value]
        if isinstance(value, dict):
            return {key: each(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [each(item) for item in value]
        return value

    return each(value)


def count(number: float) -> str:
    """Return a whole number with separators: 12345 is "12,345"."""
    return f"{number:,.0f}"


def share_text(share: float) -> str:
    """Return a share as a percentage: 0.1 becomes "10 %", and one millionth "0.0001 %"."""
    return f"{share * 100:.6g} %"


def plural(number: int, singular: str, many: str = "") -> str:
    """Return a number with its noun: "1 client", "5 clients", "2 record batches".

    >>> plural(2, "batch", "batches")
    '2 batches'
    """
    return f"{count(number)} {singular if number == 1 else many or singular + 's'}"


def human_bytes(number: float) -> str:
    """Return a number of bytes with three significant digits, in powers of 1000.

    >>> human_bytes(999), human_bytes(1500), human_bytes(999_999)
    ('999 B', '1.50 kB', '1.00 MB')
    """
    if number < _THOUSAND:
        return f"{number:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        number /= _THOUSAND
        if number < _THOUSAND - 0.5:
            return f"{_three_digits(number)} {unit}"
    return f"{count(number)} TB"


def set_bytes(number: int) -> str:
    """Return a number of bytes as configurations write it: in powers of 1024 if this is exact.

    >>> set_bytes(16384), set_bytes(1 << 20), set_bytes(1000), set_bytes(1_000_000)
    ('16 KiB', '1 MiB', '1.00 kB', '1.00 MB')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size and number % size == 0:
            return f"{count(number // size)} {unit}"
    return human_bytes(number)


def exact_bytes(number: int) -> str:
    """Return the tooltip for `human_bytes`: "1,500 bytes"."""
    return plural(number, "byte")


def duration_ms(milliseconds: float) -> str:
    """Return a latency with three significant digits.

    >>> duration_ms(0.0421), duration_ms(3.2), duration_ms(501.3), duration_ms(30000)
    ('42.1 µs', '3.20 ms', '501 ms', '30.0 s')
    """
    if milliseconds < 1:
        return f"{_three_digits(milliseconds * _THOUSAND)} µs"
    if milliseconds < _THOUSAND - 0.5:
        return f"{_three_digits(milliseconds)} ms"
    return f"{_three_digits(milliseconds / _THOUSAND)} s"


def exact_ms(milliseconds: float) -> str:
    """Return the tooltip for `duration_ms`, exact to the microsecond.

    >>> exact_ms(3.2), exact_ms(30000)
    ('3.2 ms', '30,000 ms')
    """
    return f"{milliseconds:,.3f}".rstrip("0").rstrip(".") + " ms"


def span(microseconds: int) -> str:
    """Return a capture's duration as a string.

    >>> span(2_500_000), span(125_000_000), span(7_380_000_000)
    ('2.50 s', '2 min 5 s', '2 h 3 min')
    """
    seconds = microseconds / 1_000_000
    if seconds < 60:  # noqa: PLR2004  seconds in a minute
        return duration_ms(microseconds / _THOUSAND)
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004  minutes in an hour
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:  # noqa: PLR2004 up to two days, hours are clearer
        return f"{hours} h {minutes} min"
    return f"{hours // 24} days {hours % 24} h"


def moment_at(microseconds: int) -> datetime:
    """Return the moment ``microseconds`` after the epoch. Raises `OverflowError` after year 9999.

    >>> moment_at(1_700_000_000_123_456)
    datetime.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=datetime.timezone.utc)
    """
    return _EPOCH + microseconds * _MICROSECOND


def microseconds_of(moment: datetime) -> int:
    """Return the microseconds from the epoch to a moment in UTC without a zone.

    >>> microseconds_of(datetime(1970, 1, 1, 0, 0, 1)), microseconds_of(moment_at(-5))
    (1000000, -5)
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def moment(microseconds: int, *, exact: bool = False) -> str:
    """Return a moment in UTC as a string. A moment outside the calendar is written as a number.

    >>> moment(1_700_000_000_123_456), moment(1_700_000_000_123_456, exact=True)
    ('2023-11-14 22:13:20', '2023-11-14T22:13:20.123456Z')
    """
    try:
        time = moment_at(microseconds)
    except OverflowError:
        return f"{microseconds} µs"
    if exact:
        return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"
    return f"{time:%Y-%m-%d %H:%M:%S}"


def period(first_us: int, last_us: int) -> str:
    """Return a period in UTC. If both ends are on the same day, the day is written once.

    >>> period(1_700_000_000_000_000, 1_700_000_005_000_000)
    '2023-11-14 22:13:20 to 22:13:25'
    """
    first, last = moment(first_us), moment(last_us)
    if first == last:
        return first
    day, _, time = last.partition(" ")
    return f"{first} to {time if first.startswith(f'{day} ') else last}"


def share(part: float) -> str:
    """Return a share of the whole, rounded, but never to "0 %" or "100 %".

    >>> share(0.256), share(0.0001), share(0.9999), share(1)
    ('26 %', '<1 %', '>99 %', '100 %')
    """
    if 0 < part < 0.005:  # noqa: PLR2004  would round to 0
        return "<1 %"
    if 0.995 <= part < 1:  # noqa: PLR2004  would round to 100
        return ">99 %"
    return f"{part:.0%}".replace("%", " %")


def ranges(numbers: tuple[int, ...]) -> str:
    r"""Return versions as a string. Consecutive versions are joined by an en dash.

    >>> ranges((0, 1, 2, 9)) == "0\u20132, 9"
    True
    """
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}{DASH}{high}" for low, high in runs)


def _three_digits(number: float) -> str:
    if number <= 0 or not math.isfinite(number):
        return f"{number:.0f}"
    before = max(1, math.floor(math.log10(number)) + 1)
    return f"{number:.{max(0, 3 - before)}f}"
