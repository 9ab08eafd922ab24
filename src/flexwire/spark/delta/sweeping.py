"""Takes out of the tables what the ledger does not name, and removes what analyses have left."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from flexwire.spark.delta.ledger import ABANDONED, IN, Entry, Ledger, entry
from flexwire.spark.delta.logs import Log
from flexwire.spark.delta.place import AT_ONCE, DeltaPlace
from flexwire.spark.publishing.drop import SCRATCH
from flexwire.spark.publishing.stored import ABANDONED_SECONDS, STAGING
from flexwire.tables.output import RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from datetime import datetime
    from typing import Any

    from flexwire.storage.place import Place


def note_tables(out: Place, run: str, tables: Iterable[str]) -> None:
    """Note to which tables an analysis is going to be added, before it is to the first."""
    out.write(f"{STAGING}/{run}", json.dumps(sorted(tables)).encode())


def sweep(out: Place, own: str, abandoned: float = ABANDONED_SECONDS) -> list[Entry]:
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
    seen = left & set().union(*_each(out, tables, Log.analyses))
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


def take_out(out: Place, runs: Collection[str], tables: Iterable[str]) -> None:
    """Take the rows of some analyses out of tables."""
    _each(out, tables, lambda log: log.remove(runs))


def give_up(out: Place, run: str) -> None:
    """Take an analysis out of all tables, and remove its files, unless it is in the ledger."""
    if run not in _those_in(Ledger(out).entries()):
        take_out(out, {run}, _noted(out, {run}))
        remove_run(out, run)


def remove_run(out: Place, run: str) -> None:
    """Remove the files of an analysis that is in no table."""
    place = DeltaPlace(out, run)
    place.remove([one.name for one in place.entries("")])
    if place.path is not None:
        for directory in (place.path / SCRATCH, place.path, place.path.parent):
            with suppress(OSError):
                directory.rmdir()
    # Last: what is left where this is ended is found again.
    out.remove([f"{STAGING}/{run}"])


def _those_in(entries: list[Entry]) -> set[str]:
    return {one.analysis for one in entries if one.state == IN}


def _abandoned(old: list[Entry], runs: Collection[str]) -> list[Entry] | None:
    noted = {one.analysis for one in old}
    new = [entry(run, ABANDONED, "", ()) for run in sorted(runs) if run not in noted]
    return [*old, *new] if new else None


def _noted(out: Place, runs: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for run in runs:
        data = out.read(f"{STAGING}/{run}") if out.exists(f"{STAGING}/{run}") else b""
        found.update(json.loads(data) if data else ())
    return found


def _each(out: Place, tables: Iterable[str], ask: Callable[[Log], Any]) -> list[Any]:
    logs = [Log(out, name) for name in tables]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="flexwire-delta") as pool:
        return list(pool.map(ask, logs))


def _is_old(out: Place, run: str, began: datetime, now: datetime, abandoned: float) -> bool:
    """Whether nothing was written for so long, by the store's own clock: ours may be another."""
    newest = max([began, *(one.modified for one in DeltaPlace(out, run).entries(""))])
    return (now - newest).total_seconds() > abandoned
