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

# What the options can name; --help need not import where they come from.
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
"""How the bytes of keys and values can be shown; auto is text where they are UTF-8."""


class ConventionName(click.Choice[str]):
    """The name of a convention of record headers; all are imported once somebody asks for them."""

    case_sensitive = True

    def __init__(self) -> None:
        """Leave ``choices`` to be found."""

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]  # click only reads it
        """The names, in the order of the registry."""
        from flexwire.records.conventions import CONVENTIONS

        return tuple(CONVENTIONS)


@dataclass(frozen=True, kw_only=True)
class DumpOptions:
    """The part to show: everything, unless a range narrows it.

    ``decode`` is the topic to decode the records as, None to go by the name of the directory;
    ``release`` is the one that wrote them, None where that is not known.
    ``show_credentials`` shows what is withheld otherwise, of records of the cluster's metadata.
    ``dialect`` is that of KIP-82's typed headers, where the logs are in the document's format.
    ``offsets`` and ``times`` (in ms) are inclusive. A batch inflates to at most ``max_inflated``
    bytes, or the usual number. ``hear`` is called with how far a log is read.
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
        """To how many bytes a batch inflates at most."""
        from flexwire.records import MAX_INFLATED

        return MAX_INFLATED if self.max_inflated is None else self.max_inflated

    @property
    def is_partial(self) -> bool:
        """Whether a part of a log is enough, so that its indexes are not compared with it."""
        return any(part is not None for part in (self.offsets, self.times, self.max_bytes))

    def has_offsets(self, first: int, last: int) -> bool:
        """Return whether any offset from ``first`` to ``last`` is wanted."""
        return self.offsets is None or (first <= self.offsets[1] and last >= self.offsets[0])

    def has_record(self, offset: int, timestamp: int) -> bool:
        """Return whether a record is wanted."""
        return self.has_offsets(offset, offset) and (
            self.times is None or self.times[0] <= timestamp <= self.times[1]
        )


class OffsetRange(click.ParamType):  # type: ignore[type-arg]  # generic for mypy, and not when it runs
    """A range of offsets, both ends in it: A-B, A-, -B or A."""

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


class TimeRange(click.ParamType):  # type: ignore[type-arg]  # as above
    """A range of times, both ends in it: FROM/TO, each ISO 8601 or milliseconds, or left out."""

    name = "FROM/TO"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return the first and the last millisecond."""
        first, slash, last = value.partition("/")
        if not slash or not (first or last):
            self.fail(f"{value!r} is not FROM/TO, with a time on one side at least", param, ctx)
        try:
            times = _milliseconds(first, 0), _milliseconds(last, INT64_MAX)
        except ValueError:
            what = "ISO 8601 times or milliseconds since the epoch"
            self.fail(f"{value!r} is not a range of {what}", param, ctx)
        if times[0] > times[1]:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return times


def _milliseconds(text: str, default: int) -> int:
    """Read a time; one without a zone is in UTC. Raises `ValueError`."""
    if not text:
        return default
    if re.fullmatch(r"[0-9]{9,19}", text):
        return int(text)
    moment = iso_time(text)
    if moment is None:
        raise ValueError(text)
    return int(moment.timestamp() * 1000)
