"""The options of a format, parsed from the strings that Spark passes."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from flexwire.arguments import refuse
from flexwire.errors import ArgumentError
from flexwire.logs.files import Partition
from flexwire.spark.functions.messages import MAX_INFLATED, MAX_RATIO, inflation_of, size_of
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from flexwire.records.inflation import Inflation

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]+")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_MOST_PARTITIONS: Final = 1_000_000
EARLIEST, LATEST = -2, -1
"""The numbers that stand for the earliest and the latest offset in Spark's Kafka source."""


class SourceOptions:
    """The options of one read; their names are not case-sensitive.

    Unknown options are refused. ``refused`` contains advice for each option of Spark's own sources
    that has no meaning here.

    ``aliases`` are other names of some options. An error is raised if an option is given under two
    names.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        accepted: Collection[str],
        aliases: Mapping[str, str] = MappingProxyType({}),
        refused: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._names = {name.lower(): name for name in accepted}
        self._texts = {key.lower(): value for key, value in texts.items()}
        for name, advice in refused.items():
            if name.lower() in self._texts:
                raise ArgumentError(f"there is no option {name}: {advice}")
        for alias, name in aliases.items():
            value = self._texts.pop(alias.lower(), None)
            if value is not None and self._texts.setdefault(name.lower(), value) != value:
                raise ArgumentError(
                    f"{alias} and {name} are the same option; set only one of the two"
                )
        for key in self._texts:
            if key not in {*self._names, "path", "paths"}:
                names = ", ".join(sorted(accepted))
                raise ArgumentError(f"there is no option {key}; choose one of: {names}")

    def paths(self) -> list[str]:
        """Return every path that was passed to `load`."""
        paths = [self._texts["path"]] if self._texts.get("path") else []
        if "paths" in self._texts:
            paths += json.loads(self._texts["paths"])
        if not paths:
            raise ArgumentError("expected a path: .load(PATH), or .option('path', PATH)")
        return paths

    def text(self, name: str) -> str | None:
        """Return an option unchanged, or None if the option is missing."""
        return self._texts.get(name.lower())

    def flag(self, name: str) -> bool:
        """Return an option that is true or false; the default is false."""
        value = (self.text(name) or "false").lower()
        if value not in {"true", "false"}:
            raise refuse(name, "true or false", value)
        return value == "true"

    def choice(self, name: str, choices: Collection[str]) -> Any:
        """Return one of the allowed words, ignoring case; the default is the first word."""
        value = self.text(name)
        if value is None:
            return next(iter(choices))
        for choice in choices:
            if value.lower() == choice.lower():
                return choice
        raise refuse(name, " or ".join(choices), value)

    def number(self, name: str) -> int | None:
        """Return a non-negative number."""
        value = self.text(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdecimal() and int(value) <= INT64_MAX):
            raise refuse(name, "a number, as 1700000000000", value)
        return int(value)

    def positive(self, name: str) -> int | None:
        """Return a number that is at least 1."""
        number = self.number(name)
        if number == 0:
            raise refuse(name, "1 or more", number)
        return number

    def size(self, name: str, default: int) -> int:
        """Return a number of bytes from Spark's notation, such as 134217728 or 128m."""
        value = self.text(name)
        if value is None:
            return default
        return size_of(name, value)

    def inflation(self) -> Inflation:
        """Return the bounds of record batches, as `MAX_INFLATED` and `MAX_RATIO` set them."""
        return inflation_of(self.text(MAX_INFLATED), self.text(MAX_RATIO))

    def words(self, name: str) -> frozenset[str] | None:
        """Return the set of words in a comma-separated string."""
        value = self.text(name)
        if value is None:
            return None
        words = frozenset(word.strip() for word in value.split(","))
        if "" in words:
            raise refuse(name, "names separated by commas", value)
        return words

    def topics(self, name: str) -> frozenset[str] | None:
        """Return topic names. A string that looks like a Python list is refused."""
        topics = self.words(name)
        for topic in topics or ():
            if not _TOPIC.fullmatch(topic):
                raise refuse(name, "topic names separated by commas", topic)
        return topics

    def names(self, name: str, known_names: Collection[str]) -> tuple[str, ...]:
        """Return some of the known names, in the order given, or none if the option is missing."""
        value = self.text(name)
        if value is None:
            return ()
        names = tuple(dict.fromkeys(name_read.strip() for name_read in value.split(",")))
        for name_read in names:
            if name_read not in known_names:
                raise refuse(name, f"names of {', '.join(known_names)}", name_read)
        return names

    def partitions(self, name: str) -> frozenset[int] | None:
        """Return partition numbers from a list of numbers and ranges such as ``0,4-7``."""
        words = self.words(name)
        return None if words is None else frozenset(_numbers(name, words))

    def offsets(self, name: str, *, default: str, also: int | None = None) -> dict[Partition, int]:
        """Return offsets by topic and partition, in the JSON of Spark's Kafka source.

        The result is empty if the option is missing or is the word ``default``. In the JSON,
        Spark's special numbers are -2 for "earliest" and -1 for "latest". The number for
        ``default`` adds nothing to the result. The other number is returned if it is ``also``
        allowed.
        """
        value = self.text(name)
        if value is None or value.strip().lower() == default:
            return {}
        stand_in = _STAND_INS[default]
        expected = f'{default}, or JSON such as {{"orders": {{"0": 23, "1": {stand_in}}}}}'
        offsets = _by_partition(name, expected, value, {stand_in, also})
        return {partition: offset for partition, offset in offsets.items() if offset != stand_in}

    def timestamps(self, name: str) -> dict[Partition, int]:
        """Return times in ms by topic and partition, in the JSON of Spark's Kafka source."""
        value = self.text(name)
        if value is None:
            return {}
        return _by_partition(name, 'JSON such as {"orders": {"0": 1700000000000}}', value)


def _by_partition(
    name: str, expected: str, value: str, stand_ins: Collection[int | None] = ()
) -> dict[Partition, int]:
    """Return the numbers in JSON; negative numbers must be among the ``stand_ins``."""
    try:
        topics = json.loads(value)
        numbers = {
            Partition(topic, int(partition)): number
            for topic, partitions in topics.items()
            for partition, number in partitions.items()
        }
    except (ValueError, AttributeError, RecursionError):
        raise refuse(name, expected, value) from None
    for number in numbers.values():
        is_number = isinstance(number, int) and not isinstance(number, bool)
        if not is_number or not (number in stand_ins or 0 <= number <= INT64_MAX):
            raise refuse(name, expected, value)
    return numbers


_STAND_INS: Final = {"earliest": EARLIEST, "latest": LATEST}


def _numbers(name: str, words: Collection[str]) -> Iterator[int]:
    for word in words:
        match = _RANGE.fullmatch(word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < first + _MOST_PARTITIONS:
            raise refuse(name, "numbers or ranges, such as 0,4-7", word)
        yield from range(first, last + 1)
