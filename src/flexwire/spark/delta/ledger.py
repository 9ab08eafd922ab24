"""The ledger of a grown output: one row per analysis, with its state.

The ledger alone decides which analyses are in the tables.

A change reads the rows that it needs, and commits only if no other writer has committed in the
meantime. If another writer has committed, the change starts again. If two analyses with the same
input run at the same time, one analysis is added and the other fails.

A change adds a file that contains its own rows, and reads only the rows that it needs. The change
that adds the `_FANOUT`-th small file merges these files, as a log-structured merge tree does. Even
an old ledger therefore consists of few files, and each row is rewritten only a few times. A search
for an input's files reads only rows whose range ``first_file`` to ``last_file`` overlaps the names
of that input.

Reading and committing depend on the format: see `delta_ledger` and
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
        # For each input file, eight bytes of a digest of its URL, size and version.
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
        # The next offset in each partition whose log was read by an analysis with the state "in".
        # Each entry with logs lists all of these partitions, so only the last entry is needed.
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
        # The first and last name among the input's files; a search uses them to skip entries.
        ("first_file", pa.string()),
        ("last_file", pa.string()),
        # The analysis whose final state was the start of this analysis, and the analysis whose
        # final state the next analysis needs.
        ("state_before", pa.string()),
        ("state_after", pa.string()),
        # The corresponding analyses for request logs.
        ("request_logs_before", pa.string()),
        ("request_logs_after", pa.string()),
    ]
)
_TRIES: Final = 20
_FANOUT: Final = 16
"""The number of files of about the same size that are merged into one file."""
_MOST_ROWS: Final = _FANOUT**3
_MOST_BYTES: Final = 8 << 20
"""A file with at least this many rows or bytes is not merged again."""
_NEXT: Final = timedelta(microseconds=1)
EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One analysis: its run, its state, its input, and the files that it added to each table."""

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
    request_logs_before: str | None = None
    request_logs_after: str | None = None


def new_entry(
    run: str, state: str, digest: str, files: Mapping[str, int], tables: Any = ()
) -> LedgerEntry:
    """Return an entry with the current time; ``files`` maps file names to their numbers."""
    return LedgerEntry(
        run, state, digest, datetime.now(UTC), flexwire.__version__, [*files.values()], [*tables],
        first_file=min(files, default=None), last_file=max(files, default=None),
    )  # fmt: skip


def in_order(new: Iterable[LedgerEntry], latest: datetime | None) -> list[LedgerEntry]:
    """Return the new entries in the same order, with increasing times later than ``latest``.

    Entries are read in the order of their times, but the clock may have been set back.
    """
    ordered = []
    for entry in new:
        if latest is not None and entry.time <= latest:
            entry = replace(entry, time=latest + _NEXT)  # noqa: PLW2901 - same entry, new time
        latest = entry.time
        ordered.append(entry)
    return ordered


def next_offsets(entries: Iterable[LedgerEntry]) -> dict[Partition, int]:
    """From the entries with the state "in", return the offsets at which logs continue."""
    return {
        Partition(row["topic"], row["partition"]): row["next_offset"]
        for entry in entries
        if entry.state == IN
        for row in entry.logs or ()
    }


def with_offsets(entry: LedgerEntry, offsets: Mapping[Partition, int]) -> LedgerEntry:
    """Return the entry with these offsets."""
    rows = [
        {**partition._asdict(), "next_offset": offset}
        for partition, offset in sorted(offsets.items())
    ]
    return replace(entry, logs=rows or None)


def fingerprint(source: InputFile) -> int:
    """Return a number that identifies one version of a file.

    Different files almost certainly have different numbers.

    The number is eight bytes of a digest: the probability that any two of a million files have the
    same number is 1 in 37 million.
    """
    description = f"{source.url}\0{source.size}\0{source.version}".encode()
    return int.from_bytes(hashlib.sha256(description).digest()[:8], "big", signed=True)


class LedgerSnapshot(ABC):
    """One version of the ledger. Rows are read only when they are needed."""

    def entries(self, *, files: bool = True) -> list[LedgerEntry]:
        """Return all entries, oldest first; without ``files``, their lists of files are empty."""
        entries = self._read(None, files=files)
        last = max((at for at, entry in enumerate(entries) if entry.logs), default=None)
        # Offsets of older entries must not be used to continue.
        return [
            entry if at == last else replace(entry, logs=None) for at, entry in enumerate(entries)
        ]

    def whole_entries(self) -> list[LedgerEntry]:
        """Return all entries as they are stored, oldest first."""
        return self._read(None)

    def states(self, runs: Collection[str]) -> dict[str, str]:
        """Return the states of these runs, without the runs for which there is no entry."""
        if not runs:
            return {}
        entries = self._read(pc.field("analysis").isin([*runs]), files=False)
        return {entry.analysis: entry.state for entry in entries}

    def abandoned(self) -> list[LedgerEntry]:
        """Return the entries of analyses that were abandoned."""
        return self._read(pc.field("state") == ABANDONED)

    def with_files(self, files: Mapping[str, int]) -> list[LedgerEntry]:
        """Return the entries with the state "in" that list one of ``files`` (names and numbers)."""
        if not files:
            return []
        asked = pc.field("state") == IN
        if "first_file" in self.columns:
            # Entries from earlier releases contain no names.
            asked &= pc.field("first_file").is_null() | (
                (pc.field("first_file") <= max(files)) & (pc.field("last_file") >= min(files))
            )
        numbers, entries = {*files.values()}, self._read(asked)
        return [entry for entry in entries if not numbers.isdisjoint(entry.files)]

    def with_input(self, digest: str) -> list[LedgerEntry]:
        """Return the entries with the state "in" whose whole input has this digest."""
        asked = (pc.field("input") == digest) & (pc.field("state") == IN)
        return self._read(asked, files=False)

    @property
    def columns(self) -> list[str]:
        """The columns of the ledger; a ledger from an earlier release may lack some."""
        names = {*self._names()}
        return [name for name in COLUMNS.names if name in names]

    @property
    def next_offsets(self) -> dict[Partition, int]:
        """The offsets at which logs continue."""
        return next_offsets(self._last_in)

    @property
    def last(self) -> LedgerEntry | None:
        """The entry of the last analysis with the state "in"; its file list is empty."""
        return self._last_in[-1] if self._last_in else None

    @property
    def open_state(self) -> str | None:
        """The analysis whose final state is the start of the next analysis."""
        return None if self.last is None else self.last.state_after

    @property
    def used_state(self) -> str | None:
        """The analysis whose state was the start of `open_state`, and is no longer needed."""
        if self.open_state is None:
            return None
        entries = self._read(pc.field("analysis") == self.open_state, files=False)
        return entries[-1].state_before if entries else None

    @cached_property
    def request_logs(self) -> LedgerEntry | None:
        """The entry of the analysis that read the last request logs; its file list is empty."""
        if "request_logs_after" not in self.columns:
            return None
        name = None if self.last is None else self.last.request_logs_after
        # Entries added by an earlier release do not repeat the name.
        asked = (
            pc.field("request_logs_after").is_valid()
            if name is None
            else pc.field("analysis") == name
        )
        entries = self._read(asked & (pc.field("state") == IN), files=False)
        if not entries:
            return None
        last = entries[-1]
        if last.analysis == last.request_logs_after:
            return last
        own = self._read(pc.field("analysis") == last.request_logs_after, files=False)
        return own[-1] if own else None

    def has_captures(self) -> bool:
        """Return whether an analysis with the state "in" has read captures."""
        return any(entry.files for entry in self._read(pc.field("state") == IN))

    @cached_property
    def _last_in(self) -> list[LedgerEntry]:
        """The most recent entries with the state "in", oldest first; their file lists are empty."""
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
        # After the last entry has been removed, a ledger may contain an empty file.
        return max((entry.time for entry in entries), default=None)

    @cached_property
    def ledger_files(self) -> list[dict[str, Any]]:
        """The ledger's files: path, size, number of rows, and times of the first and last row."""
        return [*self._files()]

    def to_join(self) -> list[dict[str, Any]]:
        """Return the files that the next change merges with its own file."""
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
        """Return the entries that match a pyarrow expression, in the order of their times."""
        columns = [name for name in self.columns if files or name != "files"]
        entries = self.to_entries(self._rows(asked, columns)) if columns else []
        return sorted(entries, key=lambda entry: (entry.time, entry.analysis))

    @staticmethod
    def to_entries(rows: Iterable[Mapping[str, Any]]) -> list[LedgerEntry]:
        """Return rows as entries; a missing column becomes null."""
        nothing: dict[str, Any] = {field.name: None for field in fields(LedgerEntry)} | {
            "files": []
        }
        return [LedgerEntry(**(nothing | {**row})) for row in rows]

    @abstractmethod
    def _names(self) -> Iterable[str]:
        """Return the names of the table's columns, or nothing if there is no table."""

    @abstractmethod
    def _files(self) -> Iterable[dict[str, Any]]:
        """Return the ledger's files, as `ledger_files` does."""

    @abstractmethod
    def _rows(self, asked: Any, columns: list[str]) -> list[dict[str, Any]]:
        """Return these columns of the rows that match a pyarrow expression."""


class CommittedBetweenError(Exception):
    """Another writer changed the ledger after it was read, or the reply to a commit was lost."""


class Ledger(ABC):
    """The ledger of a grown output."""

    @property
    @abstractmethod
    def directory(self) -> OutputDirectory:
        """The ledger's directory."""

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the ledger as it is now, as a `LedgerSnapshot` of its format."""

    @abstractmethod
    def _commit(self, old: Any, new: list[LedgerEntry], *, replaces: bool) -> None:
        """Add entries if no one has committed since ``old``; with ``replaces``, drop old entries.

        If necessary, the ledger is created, or columns are added to it. Raises
        `CommittedBetweenError`.
        """

    def entries(self) -> list[LedgerEntry]:
        """Return all entries; the result is empty before the first commit."""
        entries: list[LedgerEntry] = self.snapshot().entries()
        return entries

    def change(
        self,
        make: Callable[[Any], Sequence[LedgerEntry] | None],
        *,
        replaces: bool = False,
    ) -> Any:
        """Add the entries that ``make`` returns for the ledger; return the new ledger.

        With ``replaces``, the new entries replace all other entries. ``make`` may be called
        several times, and returns None if there is nothing to change. If ``make`` raises, the
        ledger does not change.
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
        raise FlexwireError(f"other processes kept changing {self.directory}; try again later")
