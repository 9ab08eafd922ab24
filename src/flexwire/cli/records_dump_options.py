"""The options of `flexwire records dump`: ranges, notations and decoders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import click

from flexwire.arguments import iso_time
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.protocol.internal_topics import InternalTopic
    from flexwire.records.conventions import Convention

# The choices for options. The names are repeated so that --help does not import the modules that
# define the names.
DECODER_NAMES = ("consumer-offsets", "transactions", "metadata", "remote-log", "share-state")
DIALECT_NAMES = ("kip-82", "kip-82-earlier")
NUMBERS = {
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "float32": ">f",
    "float64": ">d",
}
NOTATIONS = ("auto", "hex", "base64", *NUMBERS, "uuid")
"""The notations for the bytes of keys and values. With auto, UTF-8 bytes are shown as text."""


class ConventionName(click.Choice[str]):
    """The name of a convention for record headers.

    The module of the conventions is imported on first use.
    """

    case_sensitive = True

    def __init__(self) -> None:
        """Do not set ``choices``, which are computed later."""

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]  # click only reads the property
        """The names of conventions, in the order of the registry."""
        from flexwire.records.conventions import CONVENTIONS

        return tuple(CONVENTIONS)


@dataclass(frozen=True, kw_only=True)
class DumpOptions:
    """The part of a log to show: everything, unless a range is given.

    ``decode`` is the internal topic whose format is used to decode records. If ``decode`` is None,
    the name of the directory determines the topic. ``release`` is the release that wrote the
    records, or None if it is unknown. ``show_credentials`` shows the credentials in records of the
    cluster's metadata, which are otherwise withheld. ``dialect`` is the dialect of KIP-82's typed
    headers, for logs in that document's format. ``offsets`` and ``times`` (in ms) are inclusive. A
    batch is inflated to at most ``max_inflated`` bytes, or to the default limit. ``hear`` is called
    with the progress in a log.
    """

    deep: bool = False
    offsets: tuple[int, int] | None = None
    times: tuple[int, int] | None = None
    max_bytes: int | None = None
    decode: InternalTopic | None = None
    release: str | None = None
    key_notation: str = "auto"
    value_notation: str = "auto"
    convention: Convention | None = None
    dialect: str | None = None
    show_credentials: bool = False
    max_inflated: int | None = None
    named: frozenset[Path] = field(default_factory=frozenset)
    hear: Callable[[Path, int, int], None] = lambda path, done, total: None  # noqa: ARG005

    @property
    def most_inflated(self) -> int:
        """The maximum number of bytes to which a batch may be inflated."""
        from flexwire.records import MAX_INFLATED

        return MAX_INFLATED if self.max_inflated is None else self.max_inflated

    @property
    def is_partial(self) -> bool:
        """True if only a part of a log was requested.

        In this case, the log is not compared with its indexes.
        """
        return any(part is not None for part in (self.offsets, self.times, self.max_bytes))

    def has_offsets(self, first: int, last: int) -> bool:
        """Return whether the requested range contains an offset from ``first`` to ``last``."""
        return self.offsets is None or (first <= self.offsets[1] and last >= self.offsets[0])

    def has_record(self, offset: int, timestamp: int) -> bool:
        """Return whether a record is in the requested ranges."""
        return self.has_offsets(offset, offset) and (
            self.times is None or self.times[0] <= timestamp <= self.times[1]
        )


class OffsetRange(click.ParamType):  # type: ignore[type-arg]  # generic only for mypy
    """An inclusive range of offsets, written A-B, A-, -B or A."""

    name = "A-B"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return the first and the last offset."""
        match = re.fullmatch(r"(?=.*[0-9])([0-9]{0,19})(-?)([0-9]{0,19})", value)
        if match is None:
            self.fail(
                f"{value!r} is not a range of offsets such as 10-20, 10-, -20 or 10", param, ctx
            )
        first = int(match[1] or 0)
        last = int(match[3] or INT64_MAX) if match[2] else first
        if first > last:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return first, last


class TimeRange(click.ParamType):  # type: ignore[type-arg]  # generic only for mypy
    """An inclusive range of times, written FROM/TO.

    Each time is in ISO 8601 or in milliseconds. Either time may be missing.
    """

    name = "FROM/TO"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return the first and the last millisecond."""
        first, slash, last = value.partition("/")
        if not slash or not (first or last):
            self.fail(f"expected FROM/TO with at least one time, got {value!r}", param, ctx)
        try:
            times = _milliseconds(first, 0), _milliseconds(last, INT64_MAX)
        except ValueError:
            what = "ISO 8601 times or milliseconds since the epoch"
            self.fail(f"{value!r} is not a range of {what}", param, ctx)
        if times[0] > times[1]:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return times


def _milliseconds(text: str, default: int) -> int:
    """Return a time in milliseconds. A time without a zone is in UTC. Raises `ValueError`."""
    if not text:
        return default
    if re.fullmatch(r"[0-9]{9,19}", text):
        return int(text)
    moment = iso_time(text)
    if moment is None:
        raise ValueError(text)
    return int(moment.timestamp() * 1000)
