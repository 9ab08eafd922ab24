"""Adds one analysis to tables, from its first file to its entry in the ledger.

`undo` removes the last analysis, so that its input can be analyzed again. One commit removes the
entry of the last analysis from the ledger. After this commit, flexwire's readers no longer see the
rows of the analysis. If `undo` is killed after this commit, the next analysis completes the
removal. The next analysis begins with the same state as the removed analysis.
"""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from flexwire.errors import CaptureError, FlexwireError, StorageError
from flexwire.spark.delta.grown import AddedFile, FileGroup, GrownOutput, StagedOutput
from flexwire.spark.delta.layout import (
    ALWAYS,
    FIXED,
    TABLES,
    DeltaDirectory,
    by_day,
    split,
    with_logs,
)
from flexwire.spark.delta.ledger import (
    ABANDONED,
    IN,
    LedgerEntry,
    LedgerSnapshot,
    fingerprint,
    new_entry,
    with_offsets,
)
from flexwire.spark.delta.request_logs import begin_request_logs
from flexwire.spark.publishing.lease import leased
from flexwire.spark.publishing.local import locked
from flexwire.spark.publishing.object_store import ABANDONED_SECONDS, STAGING, RunStaging, begin_run
from flexwire.spark.publishing.task_output import SCRATCH, TaskOutput
from flexwire.spark.request_log_growth import LOGGED_STATE
from flexwire.storage.filesystems import scheme_of
from flexwire.storage.local import is_locked, make_private_directory
from flexwire.survey.request import Continuation
from flexwire.survey.survey import STATE
from flexwire.tables import schema
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.output import CURRENT, MARKER, RUN, RUNS, is_delta, is_iceberg
from flexwire.tables.parquet import ORIGIN, lacks_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from flexwire.spark.delta.grown import GrownTable, GrownTables
    from flexwire.spark.delta.request_logs import GivenRequestLogs
    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory


def note_tables(out: OutputDirectory, run: str, tables: Iterable[str]) -> None:
    """Record which tables an analysis will be added to, before it is added to any of them."""
    out.write(f"{STAGING}/{run}", json.dumps(sorted(tables)).encode())


def sweep(tables: GrownTables, own: str, abandoned: float = ABANDONED_SECONDS) -> LedgerSnapshot:
    """Remove analyses whose state is not "in" from the tables, and return the ledger.

    Their files are deleted too. If an analysis had rows in a table until now, its files are kept
    until the next sweep, because a reader may still use them.
    """
    out, ledger = tables.out, tables.ledger
    snapshot: LedgerSnapshot = ledger.snapshot()
    began = {entry.name.rpartition("/")[2]: entry.modified for entry in out.entries(f"{STAGING}/")}
    leftover = {run for run in began if run != own and RUN.fullmatch(run)}
    if done := _those_in(snapshot, leftover):
        # These analyses are in the tables, but were killed before they removed their own records.
        out.remove([f"{STAGING}/{run}" for run in sorted(done)])
        leftover -= done
    if not leftover:
        return snapshot
    names = _noted_tables(out, leftover)
    in_tables = set().union(*_ask(tables, names, lambda table: table.analyses(leftover)))
    if in_tables:
        snapshot = ledger.change(lambda old: _abandoned(old, in_tables))
        in_tables -= _those_in(snapshot, in_tables)
        take_out(tables, in_tables, names)
    for run in leftover - in_tables - _those_in(snapshot, leftover):
        if out.path is None and own not in began:
            # the listing does not contain this analysis, so there is no time for a comparison
            continue
        if out.path is not None or _is_old(out, run, began[run], began[own], abandoned):
            remove_run(out, run)
    return snapshot


def take_out(tables: GrownTables, runs: Collection[str], names: Iterable[str]) -> None:
    """Remove the rows of these analyses from tables."""
    _ask(tables, names, lambda table: table.remove(runs))


def give_up(tables: GrownTables, run: str) -> None:
    """Remove the rows and the files of an analysis that is not in the ledger."""
    out = tables.out
    if not _those_in(tables.ledger.snapshot(), {run}):
        take_out(tables, {run}, _noted_tables(out, {run}))
        remove_run(out, run)


def remove_run(out: OutputDirectory, run: str) -> None:
    """Remove the files of an analysis that is not in any table."""
    directory = DeltaDirectory(out.url, run)
    directory.remove([entry.name for entry in directory.entries("")])
    if directory.path is not None:
        for path in (directory.path / SCRATCH, directory.path, directory.path.parent):
            with suppress(OSError):
                path.rmdir()
    # This is removed last, so that the next sweep finds the remaining files if this process is
    # killed.
    out.remove([f"{STAGING}/{run}"])


def _those_in(ledger: LedgerSnapshot, runs: Collection[str]) -> set[str]:
    return {run for run, state in ledger.states(runs).items() if state == IN}


def _abandoned(ledger: LedgerSnapshot, runs: Collection[str]) -> list[LedgerEntry] | None:
    noted = ledger.states(runs)
    return [new_entry(run, ABANDONED, "", {}) for run in sorted(runs) if run not in noted] or None


def _noted_tables(out: OutputDirectory, runs: Iterable[str]) -> set[str]:
    tables: set[str] = set()
    for run in runs:
        data = out.read(f"{STAGING}/{run}") if out.exists(f"{STAGING}/{run}") else b""
        tables.update(json.loads(data) if data else ())
    return tables


def _ask(tables: GrownTables, names: Iterable[str], ask: Callable[[GrownTable], Any]) -> list[Any]:
    with ThreadPoolExecutor(tables.at_once, thread_name_prefix="flexwire-tables") as pool:
        return list(pool.map(lambda name: ask(tables.table(name)), names))


def _is_old(
    out: OutputDirectory, run: str, began: datetime, now: datetime, abandoned: float
) -> bool:
    """Return whether nothing was written for ``abandoned`` seconds, by the store's clock."""
    newest = max([began, *(entry.modified for entry in DeltaDirectory(out.url, run).entries())])
    return (now - newest).total_seconds() > abandoned


MOST_FOOTERS: Final = 4096
"""With more files than this number, an analysis reads no footers, and reports only row counts."""


class AlreadyInError(FlexwireError):
    """Another analysis of the same input was added first."""


@dataclass(frozen=True)
class GrownStaging(RunStaging):
    """The addition of one analysis to tables; ``digest`` and ``fingerprints`` identify its input.

    ``fingerprints`` maps the names of files to their numbers. This analysis begins with the final
    state of the analysis ``open_state``. ``open_state`` itself began with the final state of the
    analysis ``used_state``. ``last_logged`` is the entry with the request log state from which
    this analysis continues.
    """

    tables: GrownTables
    digest: str
    fingerprints: dict[str, int]
    append: bool
    open_state: str | None = None
    used_state: str | None = None
    last_logged: LedgerEntry | None = None

    @cached_property
    def task_output(self) -> TaskOutput:
        """The place where tasks hand over their files, one for each day."""
        constants = {ANALYSIS: self.run}
        return TaskOutput(self.files, arrange=by_day, keeps_files=True, constants=constants)

    @property
    def files(self) -> DeltaDirectory:
        """The directory for files that are to be published."""
        return DeltaDirectory(self.out.url, self.run)

    @property
    def published(self) -> GrownOutput:
        """The output to read after `publish`."""
        return self.tables.output(self.known_run or self.run)

    @property
    def staged(self) -> StagedOutput:
        """The tables that have been written, before they are published."""
        return StagedOutput(self.out, self.files, self.task_output.counts)

    def mark(self, sources: Iterable[str]) -> None:
        """Do nothing, because the ledger marks an analysis as complete."""

    def publish(self) -> None:
        """Add the files to their tables, and then the analysis to the ledger."""
        if (own := self.files.path) is not None:
            # Killed task attempts leave files there.
            shutil.rmtree(own / SCRATCH, ignore_errors=True)
        self.remove_unnamed()
        tables = self._tables()
        note_tables(self.out, self.run, tables)
        self.tables.prepare()
        with ThreadPoolExecutor(self.tables.at_once, thread_name_prefix="flexwire-tables") as pool:
            table_versions = list(pool.map(self._add, tables, tables.values()))
        new = new_entry(self.run, IN, self.digest, self.fingerprints, table_versions)
        ledger = self.tables.ledger
        previous: list[LedgerEntry] = []
        ledger.change(lambda old: self._entered(old, new, previous), replaces=not self.append)
        self.committed_runs.append(self.run)
        if previous:
            names = {table["name"] for entry in previous for table in entry.tables}
            take_out(self.tables, {entry.analysis for entry in previous}, names)
        self.out.remove([f"{STAGING}/{self.run}", *self._used_states()])

    def _used_states(self) -> list[str]:
        """Return the state files that no later analysis needs."""
        used = [] if self.used_state is None else [f"{RUNS}/{self.used_state}/{STATE}"]
        last = self.last_logged
        if self._reads_request_logs and last is not None and last.request_logs_before is not None:
            used.append(f"{RUNS}/{last.request_logs_before}/{LOGGED_STATE}")
        return used

    @property
    def _reads_request_logs(self) -> bool:
        return self.growth is not None and bool(self.growth.files)

    def _entered(
        self, old: LedgerSnapshot, own: LedgerEntry, replaced: list[LedgerEntry]
    ) -> list[LedgerEntry] | None:
        """Return the entries to add to the ledger, and add the replaced entries to ``replaced``."""
        own_state = old.states({self.run}).get(self.run)
        if own_state == IN:
            # The reply to an earlier attempt was lost.
            return None
        if own_state is not None:
            raise FlexwireError(
                f"{self.out}: another analysis concluded that this analysis had ended, and removed "
                "its rows; run this analysis again"
            )
        if not self.append:
            replaced[:] = old.entries(files=False)
            for entry in replaced:
                # If this process is killed, the next sweep finds what is left of these analyses.
                note_tables(self.out, entry.analysis, (table["name"] for table in entry.tables))
            own = self._with_request_logs(own, None)
            return [*old.abandoned(), with_offsets(own, self.read_until)]
        own = self._with_request_logs(own, old.request_logs if self.growth else old.last)
        offsets, known_offsets = old.next_offsets, self.next_offsets or {}
        if old.with_files(self.fingerprints) or any(
            offsets.get(partition) != known_offsets.get(partition) for partition in self.read_until
        ):
            raise AlreadyInError(
                f"{self.out}: another analysis of the same input finished first; its rows are in "
                "the tables"
            )
        return [with_offsets(self._with_state(own, old.open_state), offsets | self.read_until)]

    def _with_state(self, own: LedgerEntry, open_state: str | None) -> LedgerEntry:
        """Return the entry with the names of the states with which it began and ended."""
        if not self.fingerprints:
            # An input that contains only logs does not change the state of captures.
            return replace(own, state_after=open_state)
        if not self.files.exists(STATE):
            return own
        if open_state != self.open_state:
            raise FlexwireError(
                f"{self.out}: another analysis was added in the meantime, so this analysis "
                "continues from an outdated state; run this analysis again"
            )
        return replace(own, state_before=open_state, state_after=self.run)

    def _with_request_logs(self, own: LedgerEntry, last: LedgerEntry | None) -> LedgerEntry:
        """Return the entry with the names of the analyses whose request log states are needed.

        ``last`` is an analysis with the state "in" that records the name of the current state.
        """
        before = None if last is None else last.request_logs_after
        if not self._reads_request_logs:
            return replace(own, request_logs_after=before)
        if self.append and before != (self.last_logged and self.last_logged.analysis):
            raise AlreadyInError(
                f"{self.out}: another analysis added lines of request logs in the meantime; run "
                "this analysis again"
            )
        return replace(own, request_logs_before=before, request_logs_after=self.run)

    def _tables(self) -> dict[str, list[AddedFile]]:
        rows = {file.name: file.rows for file in self.task_output.files}
        tables: dict[str, list[AddedFile]] = {name: [] for name in ALWAYS}
        for entry in self.files.entries(f"{TABLES}/"):
            table, _ = split(entry.name)
            count = rows.get(entry.name)
            physical = split(self.files.at(entry.name))[1]
            if count is None:  # the driver wrote this file
                count = self._footer(table, physical).num_rows
            if count:
                tables.setdefault(table, []).append(AddedFile(physical, entry.size, count))
            rows.pop(entry.name, None)
        if missing := [name for name in rows if name.startswith(f"{TABLES}/")]:
            reason = f"{min(missing)} was written but is not listed (and {len(missing) - 1} others)"
            raise StorageError(reason, url=str(self.out))
        return with_logs(tables)

    def _footer(self, table: str, name: str) -> pq.FileMetaData:
        system, root = self.out.arrow()
        return pq.read_metadata(f"{root}/{TABLES}/{table}/{name}", filesystem=system)

    def _add(self, table: str, files: Sequence[AddedFile]) -> dict[str, object]:
        if table in FIXED:
            columns = schema.schema_of(FIXED[table])
        else:
            columns = self._columns(table, files[0])
        if lacks_origin(columns):
            columns = columns.append(ORIGIN)
        if len(self.task_output.files) <= MOST_FOOTERS:
            files = self.tables.with_statistics(table, files)
        version = self.tables.table(table).add(files, columns, self.run)
        rows = sum(file.rows for file in files)
        return {"name": table, "version": version, "files": len(files), "rows": rows}

    def _columns(self, table: str, file: AddedFile) -> pa.Schema:
        system, root = self.out.arrow()
        return pq.read_schema(f"{root}/{TABLES}/{table}/{file.name}", filesystem=system)


def _check_finished(growing: Collection[str]) -> None:
    """Raise `CaptureError` if the only files that are left are still being written."""
    if growing:
        reason = "the file is still being written; wait until the tap begins its next file"
        raise CaptureError(reason, source=min(growing))


def _is_growing(source: InputFile) -> bool:
    return not scheme_of(source.url) and is_locked(source.url)


@contextmanager
def grown_staging(
    tables: GrownTables,
    sources: Sequence[InputFile],
    digest_of: Callable[[Sequence[InputFile]], str],
    *,
    append: bool,
    has_logs: bool = False,
    request_logs: GivenRequestLogs | None = None,
    abandoned: float = ABANDONED_SECONDS,
) -> Iterator[GrownStaging]:
    """Provide a place for one analysis to be added to ``tables``.

    ``sources`` are its captures. ``digest_of`` takes some captures and returns the digest of the
    whole input. ``has_logs`` is true if there are also logs. ``growth`` contains the new lines of
    ``request_logs``. With ``append``, the analysis is added, without files that are in the tables
    or that a tap is still writing; otherwise it replaces the tables. First, leftovers are removed.
    """
    out = tables.out
    tables.check()

    def make(run: str) -> GrownStaging:
        ledger = sweep(tables, run, abandoned)
        logged = begin_request_logs(out, run, ledger, sources, request_logs, append=append)
        numbers = {source.name: fingerprint(source) for source in sources}
        entries = ledger.with_files(numbers) if append else []
        is_in = {number for entry in entries for number in entry.files}
        names_in = {name for name, number in numbers.items() if number in is_in}
        growing = {source.name for source in sources if append and _is_growing(source)} - names_in
        new = [source for source in sources if source.name not in names_in | growing]
        if not (new or names_in or has_logs):
            _check_finished(growing)
        if names_in and not new and not has_logs:
            known_run: str | None = entries[-1].analysis
        elif logged.growth is not None and (logged.growth.files or not has_logs):
            known_run = logged.known_run
        else:
            is_asked = append and (has_logs or not sources)
            same = ledger.with_input(digest_of(sources)) if is_asked else []
            known_run = same[0].analysis if same else None
        if out.path is not None:
            make_private_directory(out.path / RUNS / run)
        new_numbers = {source.name: numbers[source.name] for source in new}
        return GrownStaging(
            *(out, run, tables, digest_of(new), new_numbers, append),
            known_run=known_run,
            known_files=frozenset(names_in | logged.known),
            growing_files=frozenset(growing),
            next_offsets=ledger.next_offsets if append else {},
            open_state=ledger.open_state if append else None,
            used_state=ledger.used_state if append else None,
            continuation=_continuation(out, run, ledger.open_state) if append else None,
            notes=notes,
            growth=logged.growth,
            last_logged=logged.last,
        )

    with hold_output(out) as notes:
        _check_ours(out)
        with begin_run(out, make, lambda _, run: give_up(tables, run)) as staging:
            yield staging


def _continuation(out: OutputDirectory, run: str, before: str | None) -> Continuation:
    """Return how an analysis continues from the analysis ``before``, if there is one."""
    return Continuation(run, None if before is None else out.child(f"{RUNS}/{before}"))


@contextmanager
def hold_lock(out: Path) -> Iterator[None]:
    """Hold the lock of an output on this machine; raise `FlexwireError` if it is taken."""
    is_new = not out.exists()
    make_private_directory(out)
    try:
        with locked(out):
            yield
    finally:
        if is_new:
            with suppress(OSError):
                out.rmdir()  # this succeeds only if nothing was written


@contextmanager
def hold_output(out: OutputDirectory) -> Iterator[list[str]]:
    """Hold the lock of an output on this machine, or its lease in a store; yield notes about it.

    Raises `FlexwireError` if another run holds it.
    """
    if out.path is not None:
        with hold_lock(out.path):
            yield []
        return
    with leased(out) as lease:
        yield lease.notes


@contextmanager
def upkeep_lock(out: OutputDirectory, *, dry_run: bool) -> Iterator[list[str]]:
    """Hold the lock or the lease of an output, so that no analysis begins; yield notes about it.

    A dry run writes nothing into a store, so it takes no lease there.
    """
    if dry_run and out.path is None:
        yield []
        return
    with hold_output(out) as notes:
        yield notes


def _check_ours(out: OutputDirectory) -> None:
    if is_delta(out) or is_iceberg(out):
        return
    if out.exists(CURRENT) or out.exists(f"{TABLES}/{MARKER}"):
        raise FlexwireError(
            f"{out} holds an analysis in the parquet format; choose another --out for growing "
            "tables"
        )
    is_begun = next(iter(out.entries(f"{STAGING}/")), None) is not None
    if not is_begun and next(iter(out.entries(f"{TABLES}/")), None) is not None:
        raise FlexwireError(
            f"{out}/{TABLES} holds files that flexwire did not write; choose another --out"
        )


def to_undo(tables: GrownTables, run: str) -> Iterator[FileGroup]:
    """Yield the files of the last analysis, table by table.

    Raises `FlexwireError` if ``run`` is not the last analysis, or if its files were merged with
    files of other analyses.
    """
    for name in sorted(_tables_of_last(tables, tables.ledger.snapshot(), run)):
        files = tables.table(name).own_files(run)
        if files is None:
            raise FlexwireError(
                f"the files of {run} in the table {name} of {tables.out} were merged with files of "
                "other analyses, so this analysis alone cannot be removed"
            )
        if files:
            yield FileGroup(name, None, tuple(files))


def undo(tables: GrownTables, run: str) -> None:
    """Remove the last analysis from the ledger, and then from the tables; keep its files.

    Raises `FlexwireError` if ``run`` is not the last analysis.
    """
    names = _tables_of_last(tables, tables.ledger.snapshot(), run)
    # If this process is killed, the next sweep finds what is left of the analysis.
    note_tables(tables.out, run, names)

    def without(ledger: LedgerSnapshot) -> list[LedgerEntry]:
        _tables_of_last(tables, ledger, run)
        return [entry for entry in ledger.whole_entries() if entry.analysis != run]

    tables.ledger.change(without, replaces=True)
    take_out(tables, {run}, names)


def _tables_of_last(tables: GrownTables, ledger: LedgerSnapshot, run: str) -> set[str]:
    """Return the tables of the last analysis; raise `FlexwireError` if it is not ``run``."""
    last = ledger.last
    if last is None:
        raise FlexwireError(f"there is no analysis in {tables.out}")
    if last.analysis != run:
        raise FlexwireError(
            f"only the last analysis can be removed from {tables.out}: expected "
            f"{last.analysis}, got {run}"
        )
    return {table["name"] for table in last.tables}
