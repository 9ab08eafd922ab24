"""The ledger of a grown output: one row for each analysis that is in, the only truth.

A change reads the table, and commits what it made of it only if nobody has committed meanwhile;
else it begins again. So of two analyses of the same input one is in, and the other one learns it.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

import flexwire
from flexwire.errors import FlexwireError, StorageError
from flexwire.logs.files import Partition
from flexwire.spark.delta.layout import storage_options, table_url
from flexwire.spark.delta.logs import make_private, open_table
from flexwire.storage.filesystems import reason_of, report_failures
from flexwire.tables.output import LEDGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
        # with. The last of these analyses has all of them.
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
    ]
)
_TRIES: Final = 20
_NEXT: Final = timedelta(microseconds=1)


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


def new_entry(
    run: str, state: str, digest: str, files: Iterable[int], tables: Any = ()
) -> LedgerEntry:
    """Return an entry with the current time."""
    return LedgerEntry(
        run, state, digest, datetime.now(UTC), flexwire.__version__, [*files], [*tables]
    )  # fmt: skip


def in_order(old: Iterable[LedgerEntry], new: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Return ``new``, in which whatever is not in ``old`` has a later time than all of ``old``.

    Entries are read in the order of their times, and a clock may have been set back.
    """
    known_times = {entry.analysis: entry.time for entry in old}
    latest = max(known_times.values(), default=None)
    ordered = []
    for entry in new:
        if entry.analysis not in known_times:
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


def with_offsets(
    entries: Iterable[LedgerEntry], offsets: Mapping[Partition, int]
) -> list[LedgerEntry]:
    """Return the same entries; only the last one has these offsets."""
    *older, last = entries
    rows = [
        {**partition._asdict(), "next_offset": offset}
        for partition, offset in sorted(offsets.items())
    ]
    return [*(replace(entry, logs=None) for entry in older), replace(last, logs=rows or None)]


def fingerprint(source: InputFile) -> int:
    """Return a number for a file as it was listed.

    Another file has another number.

    Eight bytes of a digest: of a million files two are alike once in 37 million times.
    """
    description = f"{source.url}\0{source.size}\0{source.version}".encode()
    return int.from_bytes(hashlib.sha256(description).digest()[:8], "big", signed=True)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of the grown output in ``out``."""

    out: OutputDirectory

    @property
    def directory(self) -> OutputDirectory:
        """The directory of the ledger."""
        return self.out.child(LEDGER)

    def entries(self) -> list[LedgerEntry]:
        """Return all entries; none before the first."""
        table = open_table(self.directory)
        return [] if table is None else _entries(table, self.directory)

    def change(
        self, make: Callable[[list[LedgerEntry]], list[LedgerEntry] | None]
    ) -> list[LedgerEntry]:
        """Replace all entries by what ``made`` makes of them; gives what it is then.

        ``made`` may be called several times, and gives None where there is nothing to change. What
        it raises leaves the ledger as it is.
        """
        for _ in range(_TRIES):
            table = open_table(self.directory)
            old = [] if table is None else _entries(table, self.directory)
            new = make(old)
            if new is None:
                return old
            new = in_order(old, new)
            rows = pa.Table.from_pylist([asdict(entry) for entry in new], COLUMNS)
            try:
                if table is None:
                    make_private(self.directory)
                    write_deltalake(
                        table_url(self.directory), rows, mode="error", name=LEDGER,
                        storage_options=storage_options(self.directory),
                    )  # fmt: skip
                else:
                    # Without trying again: deltalake would not call `made` again.
                    properties = CommitProperties(max_commit_retries=0)
                    # One that an earlier release wrote lacks columns.
                    write_deltalake(
                        table, rows, mode="overwrite", schema_mode="overwrite",
                        commit_properties=properties,
                    )  # fmt: skip
            except CommitFailedError:
                continue
            except DeltaError as error:
                if table is None and open_table(self.directory) is not None:
                    continue  # another one was the first
                raise StorageError(
                    reason_of(error), url=str(self.directory), tried="commit to"
                ) from None
            return new
        raise FlexwireError(f"{self.directory} is changed by others all the time; try again later")


def _entries(table: Any, directory: OutputDirectory) -> list[LedgerEntry]:
    with report_failures(directory.url, "read"):
        rows = table.to_pyarrow_table()
    rows = rows.select([name for name in COLUMNS.names if name in rows.column_names]).to_pylist()
    entries = [LedgerEntry(**row) for row in rows]
    return sorted(entries, key=lambda entry: (entry.time, entry.analysis))
