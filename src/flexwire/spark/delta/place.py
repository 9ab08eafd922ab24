"""Where the tasks of one analysis put files, for tables that others append to as well.

It has the names that every analysis uses. ``tables/frames/X`` is ``X`` in this analysis' own
directory of the table; all else is in the directory of its run.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self, TypeVar

from flexwire.schema.catalog import catalog
from flexwire.tables import schema
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.log_schema import LOG_SCHEMAS
from flexwire.tables.output import MESSAGES, RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from flexwire.storage.pages import Entry
    from flexwire.storage.place import Place
    from flexwire.storage.source import Source

T = TypeVar("T")

TABLES: Final = "tables"
ALWAYS: Final = tuple(one.place for one in schema.TABLES if "<" not in one.place)
"""Tables that every analysis has, whatever it found."""

# A listing is mostly waiting for the store.
AT_ONCE: Final = 16


def possible_tables() -> list[str]:
    """Every table that an analysis may write."""
    return [*ALWAYS, *LOG_SCHEMAS, *(f"{MESSAGES}/{name}" for name in catalog().names())]


def with_logs(tables: dict[str, list[T]]) -> dict[str, list[T]]:
    """Add those of the tables of logs that lack a file, where others have some."""
    if any(name in tables for name in LOG_SCHEMAS):
        for name in LOG_SCHEMAS:
            tables.setdefault(name, [])
    return tables


def split(name: str) -> tuple[str, str]:
    """The table and what comes after it, of a name below the output.

    >>> split("tables/messages/FetchRequest/day=2026-11-22/a.parquet")
    ('messages/FetchRequest', 'day=2026-11-22/a.parquet')
    """
    parts = name.split("/")
    end = 3 if parts[1] == MESSAGES else 2
    return "/".join(parts[1:end]), "/".join(parts[end:])


@dataclass(frozen=True, slots=True)
class DeltaPlace:
    """The place of the run ``run`` in the grown output ``out``."""

    out: Place
    run: str
    below: str = ""

    def __str__(self) -> str:
        return str(self._own)

    @property
    def path(self) -> Path | None:
        """The directory of the run, where it is on this machine."""
        return self._own.path

    @property
    def _own(self) -> Place:
        return self.out.child(f"{RUNS}/{self.run}")

    def child(self, name: str) -> Self:
        """The place below this one."""
        return replace(self, below=f"{self.below}{name}/")

    def at(self, name: str) -> str:
        """Where a name is, below ``out``."""
        full = f"{self.below}{name}"
        if not full.startswith(f"{TABLES}/"):
            return f"{RUNS}/{self.run}/{full}"
        table, rest = split(full)
        return f"{TABLES}/{table}/{ANALYSIS}={self.run}/{rest}"

    def put(self, file: Path, name: str) -> None:
        """Put a finished file there."""
        self.out.put(file, self.at(name))

    def write(self, name: str, data: bytes) -> None:
        """Write a file there."""
        self.out.write(self.at(name), data)

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return self.out.read(self.at(name))

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return self.out.exists(self.at(name))

    def entries(self, prefix: str) -> Iterator[Entry]:
        """All files of this analysis whose names begin so; of others none."""
        full = f"{self.below}{prefix}"
        if not full.startswith(TABLES):
            start = self.below
            for one in self._own.entries(full):
                yield one._replace(name=one.name[len(start) :])
        if f"{TABLES}/".startswith(full) or full.startswith(f"{TABLES}/"):
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="flexwire-list") as pool:
                for found in pool.map(self._files, possible_tables()):
                    for one in found:
                        if one.name.startswith(full):
                            yield one._replace(name=one.name[len(self.below) :])

    def _files(self, table: str) -> list[Entry]:
        start = f"{ANALYSIS}={self.run}/"
        entries = self.out.child(f"{TABLES}/{table}").entries(start)
        return [one._replace(name=f"{TABLES}/{table}/{one.name[len(start) :]}") for one in entries]

    def source(self, entry: Entry) -> Source:
        """A file that was listed, to be read by ranges."""
        return self.out.source(entry._replace(name=self.at(entry.name)))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there are no error."""
        self.out.remove(map(self.at, names))

    def sweep(self, before: datetime) -> int:
        """Remove what was left unfinished in the directory of the run; tables are others' too."""
        return self._own.sweep(before)
