"""The common code for tables that grow, in the Delta or Iceberg format.

`GrownTables` represents all tables of an output, and `GrownTable` a single table. `GrownOutput`
reads the rows of analyses that have the state "in" in the ledger. `flexwire.spark.delta.staging`
uses only these classes to add an analysis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flexwire.arguments import refuse
from flexwire.errors import FlexwireError, StorageError
from flexwire.spark.delta.layout import ALWAYS, TABLES, has_days, split, with_logs
from flexwire.spark.delta.ledger import IN, Ledger, LedgerEntry
from flexwire.storage.filesystems import reason_of
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.output import LEDGER, RUNS, SUMS, Output, day_of_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Self

    import pyarrow as pa

    from flexwire.spark.delta.layout import DeltaDirectory
    from flexwire.storage.store_listing import FileEntry

T = TypeVar("T")

# After another writer's commit, the table is read again.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file to add: its name below the table's directory, its size, row count and statistics."""

    name: str
    size: int
    rows: int
    stats: str = ""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """The files of one day of a table (or of a table without days), and their size in bytes."""

    table: str
    day: str | None
    files: tuple[dict[str, Any], ...]

    @property
    def size(self) -> int:
        """The sum of the sizes of the files."""
        return sum(file["size"] for file in self.files)


def retry_commit(
    change: Callable[[], T], directory: OutputDirectory, conflicts: tuple[type[Exception], ...]
) -> T:
    """Make a change to a table, and repeat it if another writer committed first.

    If another writer committed first, the change raises one of ``conflicts``. Raises `StorageError`
    if every attempt fails in this way, and for an `OSError`.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            return change()
        except conflicts as error:
            if not tries_left:
                raise commit_error(error, directory) from None
        except OSError as error:
            raise commit_error(error, directory) from None
    raise AssertionError  # the last attempt returns or raises


def commit_error(error: Exception, directory: OutputDirectory) -> StorageError:
    """Return the error for a failed commit to a table in ``directory``."""
    return StorageError(reason_of(error), url=str(directory), tried="commit to")


class GrownTable(ABC):
    """A table to which analyses are added, and from which analyses are removed."""

    @abstractmethod
    def add(self, files: Sequence[AddedFile], columns: pa.Schema, run: str) -> int:
        """Add files of an analysis with these columns; return the table version that contains them.

        The columns are added to the table before the files.
        """

    @abstractmethod
    def analyses(self, runs: Collection[str]) -> set[str]:
        """Return those of the given analyses that have rows in the table."""

    @abstractmethod
    def own_files(self, run: str) -> list[dict[str, Any]] | None:
        """Return the files of an analysis, or None if a file also has rows of other analyses."""

    @abstractmethod
    def remove(self, runs: Collection[str]) -> None:
        """Remove the rows of these analyses from the table, but keep the files."""


class GrownTables(ABC):
    """The tables and the ledger of one output, all in the same format."""

    out: OutputDirectory
    at_once: int
    """The largest number of tables to commit to at the same time."""

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """The ledger, which lists the analyses in the tables."""

    @abstractmethod
    def table(self, name: str) -> GrownTable:
        """Return a table, which need not exist yet."""

    @abstractmethod
    def output(self, run: str) -> GrownOutput:
        """Return the output, with the report of one analysis."""

    @abstractmethod
    def check(self) -> None:
        """Raise `StorageError` or `FlexwireError` if an analysis cannot add to this output."""

    @abstractmethod
    def prepare(self) -> None:
        """Create everything that the first commit needs."""

    def with_statistics(self, _table: str, files: Sequence[AddedFile]) -> Sequence[AddedFile]:
        """Return files with the statistics that `GrownTable.add` does not compute."""
        return files

    def entries(self) -> list[LedgerEntry]:
        """Return the entries with the state "in"; their file lists are empty."""
        entries = self.ledger.snapshot().entries(files=False)
        return [entry for entry in entries if entry.state == IN]

    def complete_output(self) -> GrownOutput:
        """Return the output with the report of the last analysis.

        Raises `FlexwireError` if there is no analysis in the tables.
        """
        entries = self.entries()
        if not entries:
            raise FlexwireError(
                f"there is no complete analysis in {self.out}: its {LEDGER} is missing or lists no "
                "analysis"
            )
        return self.output(entries[-1].analysis)


def to_directory(out: object) -> OutputDirectory:
    """Return the directory of an output, by path or URL."""
    if not isinstance(out, str) and not hasattr(out, "__fspath__"):
        raise refuse("out", "a str or Path", out)
    return OutputDirectory(str(out))


@dataclass(frozen=True)
class GrownOutput(Output):
    """All tables of ``out``, and the other files of one analysis, such as its report.

    The ledger is read once, when it is first used. Each table's list of files is also read only
    once. If given, ``wanted`` selects days.
    """

    out: OutputDirectory
    wanted: Callable[[str], bool] | None = field(default=None, kw_only=True)

    def on_days(self, wanted: Callable[[str], bool]) -> Self:
        """Return the output with only the files of these days; tables without days keep all files.

        The result uses this output's ledger and tables, even if another process changes them.
        """
        chosen = replace(self, wanted=wanted)
        chosen.__dict__.update(entries=self.entries, states=self.states)
        return chosen

    @cached_property
    def states(self) -> dict[str, Any]:
        """The tables in their state at the first use."""
        return {}

    @abstractmethod
    def files_by_day(self, name: str) -> dict[str, list[FileEntry]] | None:
        """Return the files of a table by the day of their rows, or None if a day is unknown.

        A file with rows of several days is listed for each day.
        """

    @property
    def is_continued(self) -> bool:
        """True if connections continue from one analysis in the output to the next."""
        return any(entry.state_before or entry.request_logs_before for entry in self.entries)

    @property
    @abstractmethod
    def tables(self) -> GrownTables:
        """The tables, in the output's format."""

    @property
    def root(self) -> OutputDirectory:
        """The directory to which the names in `files` are relative."""
        return self.out

    def where(self, name: str) -> str:
        """Return the path or URL of a file or directory in the output."""
        inner = name.split("/", maxsplit=1)[0] == TABLES
        return str((self.out if inner else self.place).child(name))

    @property
    def names(self) -> list[str]:
        """The tables that the ledger lists for at least one analysis in the tables."""
        return sorted({table["name"] for entry in self.entries for table in entry.tables})

    @cached_property
    def entries(self) -> list[LedgerEntry]:
        """The entries of the analyses in the tables, oldest first; their file lists are empty."""
        return self.tables.entries()


def run_directory(out: OutputDirectory, run: str) -> OutputDirectory:
    """Return the directory of the other files of one analysis, such as its report."""
    return out.child(f"{RUNS}/{run}")


@dataclass(frozen=True)
class StagedOutput(Output):
    """The tables of one analysis, in the directory ``staged``, before they are added.

    ``place`` is the location of the tables to which they will be added.
    """

    staged: DeltaDirectory
    counts: Mapping[str, int]

    @cached_property
    def _expected(self) -> Mapping[str, int]:
        # Splitting by day turns each file that a task wrote into one or more files.
        return self.counts

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table without ``analysis``, as for a single analysis."""
        schema = super().schema(name)
        at = schema.get_field_index(ANALYSIS)
        return schema if at < 0 else schema.remove(at)

    @cached_property
    def _listed(self) -> dict[str, list[FileEntry]]:
        # There is no file here for a table without rows.
        tables: dict[str, list[FileEntry]] = {name: [] for name in ALWAYS}
        for entry in self.staged.entries(f"{TABLES}/"):
            table, _ = split(entry.name)
            tables.setdefault(table, []).append(entry._replace(name=self.staged.at(entry.name)))
        return {table: sorted(files) for table, files in with_logs(tables).items()}


def old_sums(
    out: OutputDirectory, opened: Callable[[], GrownOutput], hours: int
) -> Iterator[FileGroup]:
    """Yield each answer's old daily sums that are no longer needed, grouped by day.

    The newest sums for each day in the tables are still needed. ``opened`` returns these tables.
    Sums can be computed again (`flexwire.spark.answers.day_sums`), so removing them is always safe.
    """
    entries_of_sums = [*out.entries(f"{SUMS}/")]
    if not entries_of_sums:
        return
    output = opened()
    before = datetime.now(UTC) - timedelta(hours=hours)
    days: set[str] = set()
    for name in output.names:
        days |= {*((output.files_by_day(name) if has_days(name) else None) or {})}
    by_answer: defaultdict[str, list[FileEntry]] = defaultdict(list)
    newest: dict[tuple[str, str], FileEntry] = {}
    for entry in entries_of_sums:
        answer, _, file = entry.name.rpartition("/")
        by_answer[answer].append(entry)
        of_day = (answer, day_of_sums(file))
        newest[of_day] = max(entry, newest.get(of_day, entry), key=lambda one: one.modified)
    for answer, entries in sorted(by_answer.items()):
        old: list[dict[str, Any]] = []
        for entry in entries:
            day = day_of_sums(entry.name.rpartition("/")[2])
            is_needed = day in days and newest[answer, day].name == entry.name
            if not is_needed and entry.modified < before:
                old.append({"path": entry.name, "size": entry.size})
        if old:
            yield FileGroup(answer, None, tuple(old))
