"""What the names of a log's files and directories say, on a broker and in tiered storage.

Of tiered storage the layout is that of Kafka's own `LocalTieredStorage`; other implementations
name and transform files as they like.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = (
    "log",
    "index",
    "timeindex",
    "txnindex",
    "snapshot",
)
"""The kinds of files, by what their names end in."""
DELETED, CLEANED, SWAP = "deleted", "cleaned", "swap"
"""What is behind that in the name of a file that a broker is about to delete or to add."""

_UUID: Final = "[A-Za-z0-9_-]{22}"
_FILE: Final = re.compile(
    rf"([0-9]{{20}})(-{_UUID})?\.(log|index|timeindex|txnindex|snapshot)"
    r"(?:\.(deleted|cleaned|swap))?"
)
_DIRECTORY: Final = re.compile(r"(.+)-([0-9]{1,10})")
_TIERED_DIRECTORY: Final = re.compile(rf"(.+)-([0-9]{{1,10}})-{_UUID}")
# A broker removes the first, does not read the second, and has not finished copying the third.
_SET_ASIDE: Final = re.compile(r".+\.[0-9a-f]{32}-(?:delete|stray|future)")


class FileName(NamedTuple):
    """The parts of a file's name; ``segment`` tells files of one base offset apart in a tier."""

    base_offset: int
    segment: str
    kind: str
    state: str


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def parse_file(name: str) -> FileName | None:
    """Give the parts of a file's name; None for one that is not of a log.

    >>> parse_file("00000000000000000042.log.swap")
    FileName(base_offset=42, segment='', kind='log', state='swap')
    """
    match = _FILE.fullmatch(name)
    if match is None or int(match[1]) >= 1 << 63:
        return None
    return FileName(int(match[1]), match[2] or "", match[3], match[4] or "")


def is_log_file(name: str) -> bool:
    """Whether a file is a log segment or what belongs to one, by its name."""
    return parse_file(name) is not None


def is_set_aside(directory: str) -> bool:
    """Whether a broker would not read this directory: it deletes it, or has not copied all of it.

    >>> is_set_aside("orders-0.00c04fd430c800c04fd430c800c04fd4-delete"), is_set_aside("orders-0")
    (True, False)
    """
    return _SET_ASIDE.fullmatch(directory) is not None


def parse_directory(name: str, *, is_tiered: bool) -> Partition | None:
    """Give the partition that a directory is named for; None where the name is another.

    >>> parse_directory("clicks-eu-12", is_tiered=False)
    Partition(topic='clicks-eu', partition=12)
    >>> parse_directory("clicks-eu-12-tvHCaSDsQZWsjr5rbtCjxA", is_tiered=True)
    Partition(topic='clicks-eu', partition=12)
    """
    match = (_TIERED_DIRECTORY if is_tiered else _DIRECTORY).fullmatch(name)
    if match is None or int(match[2]) >= 1 << 31:
        return None
    return Partition(match[1], int(match[2]))
