"""The ledger of a grown output: one row for each analysis that is in, the only truth.

A change asks the ledger for what it needs, and commits only if nobody has committed meanwhile; else
it begins again. So of two analyses of the same input one is in, and the other one learns it.

A change adds a file with its own rows, and reads none but those that it asks for. Small files are
joined by the change that makes them `_FANOUT`, as in a log-structured tree: so a ledger of any age
has few files, and a row is written again a few times in its life. Files of the input are looked for
only in rows whose ``first_file`` to ``last_file`` meets the names of that input.

How a table is read and committed to is its format's business: `delta_ledger`, and Iceberg's own in
`flexwire.spark.iceberg.ledger`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

import flexwire
from flexwire.errors import FlexwireError
from flexwire.logs.files import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory

IN: Final = "in"
ABANDONED: Final = "abandoned"
COLUMNS: Final = pa.schema(
    [
        ("analysis", pa.string()),
        ("state", pa.string()),
        ("input", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("flexwire", pa.string()),
        # Of each file of the input, eight bytes of a digest of its URL, size and version.
        ("files", pa.list_(pa.int64())),
        (
            "tables",
            pa.list_(
                pa.struct(
                    [
                        ("name", pa.string()),
                        ("version", pa.int64()),
                        ("files", pa.int64()),
                        ("rows", pa.int64()),
                    ]
                )
            ),
        ),
        # Of each partition of which an analysis that is in has read a log, the offset to go on
        # with. Each of these analyses has all of them, and the last one's count.
        (
            "logs",
            pa.list_(
                pa.struct(
                    [
                        ("topic", pa.string()),
                        ("partition", pa.int32()),
                        ("next_offset", pa.int64()),
                    ]
                )
            ),
        ),
        # The least and the greatest name of the files of the input: where to look for others.
        ("first_file", pa.string()),
        ("last_file", pa.string()),
        # The analysis whose state it began with, and the one whose state the next begins with.
        ("state_before", pa.string()),
        ("state_after", pa.string()),
    ]
)
_TRIES: Final = 20
_FANOUT: Final = 16
"""So many files of about one size become one file."""
_MOST_ROWS: Final = _FANOUT**3
_MOST_BYTES: Final = 8 << 20
"""A file of so many rows or bytes stays as it is."""
_NEXT: Final = timedelta(microseconds=1)
EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One analysis: its run, whether it is in, of which input, and what it added to which table."""

    analysis: str
    state: str
    input: str
    time: datetime
    flexwire: str
    files: list[int]
    tables: list[dict[str, Any]]
    logs: list[dict[str, Any]] | None = None
    first_file: str | None = None
    last_file: str | None = None
    state_before: str | None = None
    state_after: str | None = None


def new_entry(
    run: str, state: str, digest: str, files: Mapping[str, int], tables: Any = ()
) -> LedgerEntry:
    """Return an entry with the current time; ``files`` are the numbers of files, by their names."""
    return LedgerEntry(
        run, state, digest, datetime.now(UTC), flexwire.__version__, [*files.values()], [*tables],
        first_file=min(files, default=None), last_file=max(files, default=None),
    )  # fmt: skip


def in_order(new: Iterable[LedgerEntry], latest: datetime | None) -> list[LedgerEntry]:
    """Return new entries with times after ``latest``, and in the order that they have here.

    Entries are read in the order of their times, and a clock may have been set back.
    """
    ordered = []
    for entry in new:
        if latest is not None and entry.time <= latest:
            entry = replace(entry, time=latest + _NEXT)  # noqa: PLW2901 - the same, with its time
        latest = entry.time
        ordered.append(entry)
    return ordered


def next_offsets(entries: Iterable[LedgerEntry]) -> dict[Partition, int]:
    """Return the offsets at which logs continue, by the entries that are in."""
    return {
        Partition(row["topic"], row["partition"]): row["next_offset"]
        for entry in entries
        if entry.state == IN
        for row in entry.logs or ()
    }


def with_offsets(entry: LedgerEntry, offsets: Mapping[Partition, int]) -> LedgerEntry:
    """Return the same entry, with these offsets."""
    rows = [
        {**partition._asdict(), "next_offset": offset}
        for partition, offset in sorted(offsets.items())
    ]
    return replace(entry, logs=rows or None)


def fingerprint(source: InputFile) -> int:
    """Return a number for a file as it was listed.

    Another file has another number.

    Eight bytes of a digest: of a million files two are alike once in 37 million times.
    """
    description = f"{source.url}\0{source.size}\0{source.version}".encode()
    return int.from_bytes(hashlib.sha256(description).digest()[:8], "big", signed=True)


class LedgerSnapshot(ABC):
    """The ledger at one version, which is read only where it is asked."""

    def entries(self, *, files: bool = True) -> list[LedgerEntry]:
        """Return all entries, the first one first; without ``files``, theirs are empty."""
        entries = self._read(None, files=files)
        last = max((at for at, entry in enumerate(entries) if entry.logs), default=None)
        # Of older ones nobody is to go on with them.
        return [
            entry if at == last else replace(entry, logs=None) for at, entry in enumerate(entries)
        ]

    def whole_entries(self) -> list[LedgerEntry]:
        """Return all entries as they are kept, the first one first."""
        return self._read(None)

    def states(self, runs: Collection[str]) -> dict[str, str]:
        """Return the state of each of these runs that has an entry."""
        if not runs:
            return {}
        entries = self._read(pc.field("analysis").isin([*runs]), files=False)
        return {entry.analysis: entry.state for entry in entries}

    def abandoned(self) -> list[LedgerEntry]:
        """Return the entries of analyses that were given up."""
        return self._read(pc.field("state") == ABANDONED)

    def with_files(self, files: Mapping[str, int]) -> list[LedgerEntry]:
        """Return what is in and has one of these files, given as numbers by their names."""
        if not files:
            return []
        asked = pc.field("state") == IN
        if "first_file" in self.columns:
            # Entries of earlier releases have no names.
            asked &= pc.field("first_file").is_null() | (
                (pc.field("first_file") <= max(files)) & (pc.field("last_file") >= min(files))
            )
        numbers, entries = {*files.values()}, self._read(asked)
        return [entry for entry in entries if not numbers.isdisjoint(entry.files)]

    def with_input(self, digest: str) -> list[LedgerEntry]:
        """Return what is in and is of the whole input with this digest."""
        asked = (pc.field("input") == digest) & (pc.field("state") == IN)
        return self._read(asked, files=False)

    @property
    def columns(self) -> list[str]:
        """The columns that it has; what an earlier release wrote lacks some."""
        names = {*self._names()}
        return [name for name in COLUMNS.names if name in names]

    @property
    def next_offsets(self) -> dict[Partition, int]:
        """The offsets at which logs continue."""
        return next_offsets(self._last_in)

    @property
    def open_state(self) -> str | None:
        """The analysis whose state the next one begins with."""
        return self._last_in[-1].state_after if self._last_in else None

    @property
    def used_state(self) -> str | None:
        """The analysis with whose state the one of `open_state` began: nobody needs it again."""
        if self.open_state is None:
            return None
        entries = self._read(pc.field("analysis") == self.open_state, files=False)
        return entries[-1].state_before if entries else None

    @cached_property
    def _last_in(self) -> list[LedgerEntry]:
        """Some of the last analyses that are in, without their files, the first one first."""
        for file in sorted(self.ledger_files, key=lambda file: file["last"], reverse=True):
            late = pc.field("time") >= file["first"]
            if entries := self._read(late & (pc.field("state") == IN), files=False):
                return entries
        return []

    @cached_property
    def latest(self) -> datetime | None:
        """The time of the last entry."""
        if not self.ledger_files:
            return None
        first = max(self.ledger_files, key=lambda file: file["last"])["first"]
        entries = self._read(pc.field("time") >= first, files=False)
        # Of a ledger whose last entry was taken out there may be an empty file.
        return max((entry.time for entry in entries), default=None)

    @cached_property
    def ledger_files(self) -> list[dict[str, Any]]:
        """Its files: path, size, rows and the times of the first and the last of them."""
        return [*self._files()]

    def to_join(self) -> list[dict[str, Any]]:
        """Return the files that the next change joins with its own."""
        joined: list[dict[str, Any]] = []
        rows = 1
        while rows < _MOST_ROWS:
            alike = [
                file
                for file in self.ledger_files
                if rows <= file["rows"] < rows * _FANOUT and file["size"] < _MOST_BYTES
            ]
            if len(alike) + 1 < _FANOUT:
                break
            joined += alike
            rows *= _FANOUT
        return joined

    def _read(self, asked: Any, *, files: bool = True) -> list[LedgerEntry]:
        """Return the entries for which an expression of pyarrow holds, in the order of times."""
        columns = [name for name in self.columns if files or name != "files"]
        entries = self.to_entries(self._rows(asked, columns)) if columns else []
        return sorted(entries, key=lambda entry: (entry.time, entry.analysis))

    @staticmethod
    def to_entries(rows: Iterable[Mapping[str, Any]]) -> list[LedgerEntry]:
        """Return rows as entries; what they lack is null."""
        nothing: dict[str, Any] = {field.name: None for field in fields(LedgerEntry)} | {
            "files": []
        }
        return [LedgerEntry(**(nothing | {**row})) for row in rows]

    @abstractmethod
    def _names(self) -> Iterable[str]:
        """Return the names of the columns of its table; none if there is no table."""

    @abstractmethod
    def _files(self) -> Iterable[dict[str, Any]]:
        """Return its files, as `ledger_files` does."""

    @abstractmethod
    def _rows(self, asked: Any, columns: list[str]) -> list[dict[str, Any]]:
        """Return some columns of the rows for which an expression of pyarrow holds."""


class CommittedBetweenError(Exception):
    """Another one has changed the ledger since it was read; or the answer to a commit is lost."""


class Ledger(ABC):
    """The ledger of a grown output."""

    @property
    @abstractmethod
    def directory(self) -> OutputDirectory:
        """The directory of the ledger."""

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the ledger as it is now, a `LedgerSnapshot` of its format."""

    @abstractmethod
    def _commit(self, old: Any, new: list[LedgerEntry], *, replaces: bool) -> None:
        """Add entries, or put them in the place of all, if nobody has committed since ``old``.

        It makes the ledger and widens it where it must. Raises `CommittedBetweenError`.
        """

    def entries(self) -> list[LedgerEntry]:
        """Return all entries; none before the first."""
        entries: list[LedgerEntry] = self.snapshot().entries()
        return entries

    def change(
        self,
        make: Callable[[Any], Sequence[LedgerEntry] | None],
        *,
        replaces: bool = False,
    ) -> Any:
        """Add the entries that ``make`` makes of the ledger; return what it is then.

        With ``replaces`` they take the place of all others. ``make`` may be called several times,
        and returns None where there is nothing to change. What it raises leaves the ledger as it
        is.
        """
        for _ in range(_TRIES):
            old = self.snapshot()
            new = make(old)
            if new is None:
                return old
            try:
                self._commit(
                    old, in_order(new, None if replaces else old.latest), replaces=replaces
                )
            except CommittedBetweenError:
                continue
            return self.snapshot()
        raise FlexwireError(f"{self.directory} is changed by others all the time; try again later")
