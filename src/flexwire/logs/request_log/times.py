"""The time at which a line was written, usually a local time without a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flexwire.arguments import refuse, to_text

_MOMENT: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|UTC|[+-]\d\d:?\d\d)\b)?"
)
_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)")
_SECOND_US: Final = 1_000_000
# The offset of any time zone from UTC is a multiple of this.
_STEP_US: Final = 15 * 60 * _SECOND_US
_FURTHEST_US: Final = 15 * 3600 * _SECOND_US


class Zone:
    """The time zone of local times: "Europe/Berlin", "+02:00" or "UTC". Raises `ArgumentError`."""

    __slots__ = ("_zone", "name")

    def __init__(self, name: str = "UTC") -> None:
        self.name = to_text(name, "timezone")
        self._zone = _zone(self.name)

    def __reduce__(self) -> tuple[type[Zone], tuple[str]]:
        return Zone, (self.name,)

    def moment(self, text: bytes, seen_us: int | None = None) -> int | None:
        """Return the first time in a string, in microseconds since the epoch, or None.

        ``seen_us`` is the time in the line's envelope. It reveals the zone of a time that is
        written without one.

        >>> Zone("+02:00").moment(b"[2026-11-22 20:00:00,123] DEBUG")
        1795370400123000
        >>> Zone().moment(b"[2026-11-22 20:00:00,123] DEBUG", seen_us=1795370400124000)
        1795370400123000
        """
        match = _MOMENT.search(text)
        if match is None:
            return None
        second, fraction, written = match.groups()
        local_us = _local_us(second)
        if local_us is None:
            return None
        parts = int(fraction.ljust(6, b"0")[:6]) if fraction else 0
        if written is not None:
            offset = _written_offset_us(written)
        elif seen_us is not None and abs(seen_us - local_us) <= _FURTHEST_US:
            offset = -round((seen_us - local_us - parts) / _STEP_US) * _STEP_US
        else:
            offset = _offset_us(self._zone, second)
        return local_us - offset + parts


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is not None:
        return timezone(timedelta(microseconds=_written_offset_us(name.encode())))
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise refuse("timezone", 'a time zone such as "Europe/Berlin" or "+02:00"', name) from None


@lru_cache(maxsize=4096)
def _local_us(second: bytes) -> int | None:
    # Python 3.14 and newer versions read 24:00 as midnight.
    if second[11:13] == b"24":
        return None
    try:
        moment = datetime.fromisoformat(second.decode()).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * _SECOND_US


@lru_cache(maxsize=4096)
def _offset_us(zone: tzinfo, second: bytes) -> int:
    # If an hour occurs twice, the first occurrence is assumed.
    local = datetime.fromisoformat(second.decode()).replace(tzinfo=zone)
    try:
        offset = local.utcoffset()
    except OverflowError:
        return 0
    return 0 if offset is None else int(offset.total_seconds()) * _SECOND_US


@lru_cache(maxsize=256)
def _written_offset_us(text: bytes) -> int:
    match = _OFFSET.fullmatch(text.decode())
    if match is None:
        return 0
    sign, hours, minutes = match.groups()
    seconds = min(int(hours), 23) * 3600 + min(int(minutes), 59) * 60
    return (-1 if sign == "-" else 1) * seconds * _SECOND_US
