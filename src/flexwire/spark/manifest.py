"""What the tasks of an analysis wrote: files whose names and bytes follow from their input alone.

So a task that runs twice writes the same files, and what counts is what its manifest names.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from flexwire.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from flexwire.spark.places import Place

T = TypeVar("T")

# Where the tables are, below the place that an analysis writes to.
TABLES = "tables"
_DIGEST_LETTERS = 16


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a task finished: its name below the output, and what is in it."""

    name: str
    table: str
    size: int
    rows: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class Committed(Generic[T]):
    """The one attempt of a task that counts: its files, and the value that its work returned.

    Without kernels it took many times as long.
    """

    number: int
    files: tuple[Written, ...]
    value: T
    has_kernels: bool = True


def part_name(digest: str, number: int, part: int) -> str:
    """Name the ``part``-th file of a table that range ``number`` of an input writes.

    >>> part_name("9f86d081884c7d659a2feaa0c55ad015", 12, 0)
    '9f86d081884c7d65-000012-0000.parquet'
    """
    return f"{digest[:_DIGEST_LETTERS]}-{number:06d}-{part:04d}.parquet"


def settle(place: Place, written: Iterable[Written], others: Collection[str] = ()) -> None:
    """Leave those files in the tables below ``place``, and no others, before it is published.

    What else lies there is of attempts that do not count, and is removed; not in ``others``, the
    tables that something else writes, nor what has an underscore before its name. `AnalysisError`
    where a file is not there or has another size.
    """
    expected = {one.name: one.size for one in written}
    orphans = []
    for entry in place.entries(f"{TABLES}/"):
        _, *table, name = entry.name.split("/")
        size = expected.pop(entry.name, None)
        if size is None:
            if "/".join(table) not in others and not (name.startswith("_") and not table):
                orphans.append(entry.name)
        elif size != entry.size:
            raise AnalysisError(
                f"{entry.name} has {entry.size} bytes, and the task that wrote it counted {size}; "
                "something else writes to the output"
            )
    if expected:
        raise AnalysisError(
            f"{min(expected)} is not in the output, and neither are {len(expected) - 1} others "
            "that tasks have written: not every executor sees the same output, or something else "
            "removes files from it"
        )
    place.remove(orphans)
    # Nobody waits for an attempt that still writes.
    place.sweep(datetime.max.replace(tzinfo=UTC))
