"""One analysis that adds to tables, from its first file to its entry in the ledger."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from flexwire.errors import FlexwireError, StorageError
from flexwire.spark.delta.layout import (
    ALWAYS,
    AT_ONCE,
    TABLES,
    DeltaDirectory,
    by_day,
    check_scheme,
    split,
    with_logs,
)
from flexwire.spark.delta.ledger import (
    ABANDONED,
    IN,
    Ledger,
    LedgerEntry,
    fingerprint,
    new_entry,
    next_offsets,
    with_offsets,
)
from flexwire.spark.delta.logs import AddedFile, TableLog
from flexwire.spark.delta.output import DeltaOutput, StagedOutput
from flexwire.spark.publishing.local import locked
from flexwire.spark.publishing.object_store import ABANDONED_SECONDS, STAGING, RunStaging, begin_run
from flexwire.spark.publishing.task_output import SCRATCH, TaskOutput
from flexwire.storage.local import make_private_directory
from flexwire.tables import schema
from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.output import CURRENT, MARKER, RUN, RUNS, is_delta

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory


def note_tables(out: OutputDirectory, run: str, tables: Iterable[str]) -> None:
    """Note to which tables an analysis is going to be added, before it is to the first."""
    out.write(f"{STAGING}/{run}", json.dumps(sorted(tables)).encode())


def sweep(
    out: OutputDirectory, own: str, abandoned: float = ABANDONED_SECONDS
) -> list[LedgerEntry]:
    """Take out of the tables what is not in the ledger, and remove its files; gives the ledger.

    The files of what was in a table until now stay until the next time, as somebody may read them.
    """
    ledger = Ledger(out)
    entries = ledger.entries()
    began = {one.name.rpartition("/")[2]: one.modified for one in out.entries(f"{STAGING}/")}
    left = {run for run in began if run != own and RUN.fullmatch(run)} - _those_in(entries)
    if not left:
        return entries
    tables = _noted(out, left)
    seen = left & set().union(*_each(out, tables, TableLog.analyses))
    if seen:
        entries = ledger.change(lambda old: _abandoned(old, seen))
        seen -= _those_in(entries)
        take_out(out, seen, tables)
    for run in left - seen - _those_in(entries):
        if out.path is None and own not in began:
            continue  # the listing is older than this analysis, and has no time to compare with
        if out.path is not None or _is_old(out, run, began[run], began[own], abandoned):
            remove_run(out, run)
    return entries


def take_out(out: OutputDirectory, runs: Collection[str], tables: Iterable[str]) -> None:
    """Take the rows of some analyses out of tables."""
    _each(out, tables, lambda log: log.remove(runs))


def give_up(out: OutputDirectory, run: str) -> None:
    """Take an analysis out of all tables, and remove its files, unless it is in the ledger."""
    if run not in _those_in(Ledger(out).entries()):
        take_out(out, {run}, _noted(out, {run}))
        remove_run(out, run)


def remove_run(out: OutputDirectory, run: str) -> None:
    """Remove the files of an analysis that is in no table."""
    place = DeltaDirectory(out.url, run)
    place.remove([one.name for one in place.entries("")])
    if place.path is not None:
        for directory in (place.path / SCRATCH, place.path, place.path.parent):
            with suppress(OSError):
                directory.rmdir()
    # Last: what is left where this is ended is found again.
    out.remove([f"{STAGING}/{run}"])


def _those_in(entries: list[LedgerEntry]) -> set[str]:
    return {one.analysis for one in entries if one.state == IN}


def _abandoned(old: list[LedgerEntry], runs: Collection[str]) -> list[LedgerEntry] | None:
    noted = {one.analysis for one in old}
    new = [new_entry(run, ABANDONED, "", ()) for run in sorted(runs) if run not in noted]
    return [*old, *new] if new else None


def _noted(out: OutputDirectory, runs: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for run in runs:
        data = out.read(f"{STAGING}/{run}") if out.exists(f"{STAGING}/{run}") else b""
        found.update(json.loads(data) if data else ())
    return found


def _each(out: OutputDirectory, tables: Iterable[str], ask: Callable[[TableLog], Any]) -> list[Any]:
    logs = [TableLog(out, name) for name in tables]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="flexwire-delta") as pool:
        return list(pool.map(ask, logs))


def _is_old(
    out: OutputDirectory, run: str, began: datetime, now: datetime, abandoned: float
) -> bool:
    """Whether nothing was written for so long, by the store's own clock: ours may be another."""
    newest = max([began, *(one.modified for one in DeltaDirectory(out.url, run).entries())])
    return (now - newest).total_seconds() > abandoned


_FIXED: Final = {one.place: one.columns for one in (*schema.TABLES, *LOG_TABLES)}


class AlreadyInError(FlexwireError):
    """Another analysis of the same input was first."""


@dataclass(frozen=True)
class DeltaStaging(RunStaging):
    """What one analysis adds to tables; ``digest`` and ``fingerprints`` say of which input."""

    digest: str
    fingerprints: list[int]
    append: bool

    @cached_property
    def task_output(self) -> TaskOutput:
        """Where tasks hand over what they wrote, a file for each day."""
        return TaskOutput(self.files, arrange=by_day, keeps_files=True)

    @property
    def files(self) -> DeltaDirectory:
        """For what is to be published."""
        return DeltaDirectory(self.out.url, self.run)

    @property
    def published(self) -> DeltaOutput:
        """What there is to read in the end."""
        return DeltaOutput(self.out.child(f"{RUNS}/{self.known or self.run}"), self.out)

    @property
    def staged(self) -> StagedOutput:
        """The tables that have been written, before they are published."""
        return StagedOutput(self.out, self.files, self.task_output.counts)

    def mark(self, sources: Iterable[str]) -> None:
        """Nothing: the ledger is what says that an analysis is complete."""

    def publish(self) -> None:
        """Add the files to their tables, and then the analysis to the ledger."""
        if (own := self.files.path) is not None:
            # Attempts that were killed leave theirs.
            shutil.rmtree(own / SCRATCH, ignore_errors=True)
        self.remove_unnamed()
        tables = self._tables()
        note_tables(self.out, self.run, tables)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="flexwire-delta") as pool:
            told = list(pool.map(self._add, tables, tables.values()))
        new = new_entry(self.run, IN, self.digest, self.fingerprints, told)
        before = Ledger(self.out).entries()
        Ledger(self.out).change(lambda old: self._entered(old, new))
        self.kept.append(self.run)
        if not self.append and before:
            names = {table["name"] for one in before for table in one.tables}
            take_out(self.out, {one.analysis for one in before}, names)

    def _entered(self, old: list[LedgerEntry], own: LedgerEntry) -> list[LedgerEntry] | None:
        mine = [one.state for one in old if one.analysis == self.run]
        if mine == [IN]:
            # The answer to an earlier try was lost.
            return None
        if mine:
            raise FlexwireError(
                f"{self.out}: another analysis took this one for ended, and removed its rows; run "
                "it again"
            )
        if not self.append:
            kept = (one for one in old if one.state == ABANDONED)
            return with_offsets([*kept, own], self.read_until)
        offsets, known_offsets = next_offsets(old), self.next_offsets or {}
        if known_in(old, self.digest, self.fingerprints, self.out) or any(
            offsets.get(one) != known_offsets.get(one) for one in self.read_until
        ):
            raise AlreadyInError(
                f"{self.out}: another analysis of the same input was first, and is in"
            )
        return with_offsets([*old, own], offsets | self.read_until)

    def _tables(self) -> dict[str, list[AddedFile]]:
        rows = {one.name: one.rows for one in self.task_output.files}
        found: dict[str, list[AddedFile]] = {name: [] for name in ALWAYS}
        for one in self.files.entries(f"{TABLES}/"):
            table, name = split(one.name)
            count = rows.get(one.name)
            if count is None:  # the driver's own
                count = self._footer(table, name).num_rows
            physical = split(self.files.at(one.name))[1]
            found.setdefault(table, []).append(AddedFile(physical, one.size, count))
            rows.pop(one.name, None)
        if missing := [name for name in rows if name.startswith(f"{TABLES}/")]:
            reason = f"{min(missing)} was written, and is not listed, as {len(missing) - 1} others"
            raise StorageError(reason, url=str(self.out))
        return with_logs(found)

    def _footer(self, table: str, name: str) -> pq.FileMetaData:
        system, root = self.out.arrow()
        path = f"{root}/{self.files.at(f'{TABLES}/{table}/{name}')}"
        return pq.read_metadata(path, filesystem=system)

    def _add(self, table: str, files: Sequence[AddedFile]) -> dict[str, object]:
        if table in _FIXED:
            columns = schema.schema_of(_FIXED[table])
        else:
            columns = self._columns(table, files[0])
        version = TableLog(self.out, table).add(files, columns, self.run)
        rows = sum(one.rows for one in files)
        return {"name": table, "version": version, "files": len(files), "rows": rows}

    def _columns(self, table: str, file: AddedFile) -> pa.Schema:
        system, root = self.out.arrow()
        return pq.read_schema(f"{root}/{TABLES}/{table}/{file.name}", filesystem=system)


def known_in(
    entries: Iterable[LedgerEntry], digest: str, files: Collection[int], out: OutputDirectory
) -> str:
    """The analysis of that input that is in, or nothing; `FlexwireError` where a part of it is."""
    wanted = set(files)
    for one in entries:
        if one.state != IN:
            continue
        if one.input == digest:
            return one.analysis
        if both := len(wanted.intersection(one.files)):
            raise FlexwireError(
                f"{both:,} of {len(wanted):,} files are in {out} already, by the analysis "
                f"{one.analysis}: give only those that are not, or their rows were there twice"
            )
    return ""


@contextmanager
def delta_staging(
    out: OutputDirectory,
    sources: Sequence[InputFile],
    digest: str,
    *,
    append: bool,
    abandoned: float = ABANDONED_SECONDS,
) -> Iterator[DeltaStaging]:
    """A place for one analysis that adds to the tables in ``out``.

    ``sources`` are its captures, and ``digest`` is of all its input. With ``append`` it is added to
    those that are in, else it takes their place. What analyses that are over have left is removed
    first.
    """
    check_scheme(out)
    prints = [fingerprint(one) for one in sources]

    def make(run: str) -> DeltaStaging:
        entries = sweep(out, run, abandoned)
        known = known_in(entries, digest, prints, out) if append else ""
        offsets = next_offsets(entries) if append else {}
        if out.path is not None:
            make_private_directory(out.path / RUNS / run)
        return DeltaStaging(
            out, run, digest, prints, append, known=known or None, next_offsets=offsets
        )

    with nullcontext() if out.path is None else _held(out.path):
        _check_ours(out)
        with begin_run(out, make, give_up) as staging:
            yield staging


@contextmanager
def _held(out: Path) -> Iterator[None]:
    is_new = not out.exists()
    make_private_directory(out)
    try:
        with locked(out):
            yield
    finally:
        if is_new:
            with suppress(OSError):
                out.rmdir()  # where nothing came of it


def _check_ours(out: OutputDirectory) -> None:
    if is_delta(out):
        return
    if out.exists(CURRENT) or out.exists(f"{TABLES}/{MARKER}"):
        raise FlexwireError(
            f"{out} holds an analysis of format parquet; choose another --out for Delta tables"
        )
    is_begun = next(iter(out.entries(f"{STAGING}/")), None) is not None
    if not is_begun and next(iter(out.entries(f"{TABLES}/")), None) is not None:
        raise FlexwireError(
            f"{out}/{TABLES} holds files that flexwire did not write; choose another --out"
        )
