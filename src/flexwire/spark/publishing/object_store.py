"""The output of an analysis in an object store, where files and prefixes cannot be renamed.

```
OUT/runs/<run>/                 what one analysis writes: tables/, facts.json, report.html, …
OUT/_staging/<run>              that it began; there until its files are removed
OUT/_lease/<number>             that a run is at work; removed at its end
OUT/current.json                which run is the output, and which one was before it
```
Every file is written once, in its final place, and one PUT of `current.json` publishes all files. A
reader that begins with `current.json` finds one output, either the old or the new one. Copying
files to fixed names would transfer every byte again, and during the copy readers would see a
mixture of old and new files.

While one analysis writes, its lease stops any other analysis (`lease`). The output is correct
without the lease: two concurrent analyses write to different names, and the output of the last one
to publish becomes current. A later analysis removes the files of a killed analysis if nothing was
written there for a day. An analysis removes an output only after two newer outputs are published,
so that the output's readers have time to finish.
"""

from __future__ import annotations

import json
import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from flexwire.errors import FlexwireError
from flexwire.spark.publishing.lease import leased
from flexwire.spark.publishing.output import Staging
from flexwire.tables.output import (
    CURRENT,
    CURRENT_FORMAT,
    RUN,
    RUNS,
    SUCCESS,
    Output,
    current_run,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.storage.output_directory import OutputDirectory

# This is longer than the time that a task takes from its first byte to its first file.
ABANDONED_SECONDS: Final = 24 * 60 * 60
STAGING: Final = "_staging"


@dataclass(frozen=True)
class RunStaging(Staging):
    """The files of one analysis, written as a separate run in their final place.

    ``kept`` contains the run once the run may be part of the output. After that, its files are
    kept even if the analysis fails.
    """

    run: str
    committed_runs: list[str] = field(default_factory=list, kw_only=True)


S = TypeVar("S", bound=RunStaging)


@contextmanager
def begin_run(
    out: OutputDirectory, make: Callable[[str], S], remove: Callable[[OutputDirectory, str], None]
) -> Iterator[S]:
    """In ``out``, begin a run that ``make`` creates from its name; remove it unless it is kept.

    The run is listed in ``_staging`` before its first file is written, so that leftovers can be
    found.
    """
    run = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"
    out.write(f"{STAGING}/{run}", b"")
    staging: S | None = None
    try:
        staging = make(run)
        yield staging
    except BaseException:
        # A failed write may still have succeeded, and a later read may still return the old
        # content. If the write did fail, or if the removal fails too, a later analysis removes the
        # run.
        if staging is None or not staging.committed_runs:
            with suppress(Exception):
                remove(out, run)
        raise
    if not staging.committed_runs:
        remove(out, run)


@dataclass(frozen=True)
class StoreStaging(RunStaging):
    """The staging area of one analysis in a store."""

    @property
    def files(self) -> OutputDirectory:
        """The directory for files to publish, each with its name in the output."""
        return self.out.child(f"{RUNS}/{self.run}")

    @property
    def published(self) -> Output:
        """The output to read at the end, which is in the same place as `files`."""
        return Output(self.files)

    def publish(self) -> None:
        """Once all its files and its marker are written, make this run the output."""
        if not self.files.exists(f"tables/{SUCCESS}"):
            where = self.files.child("tables")
            raise FlexwireError(f"{where} is unfinished, because {SUCCESS} is missing")
        self.remove_unnamed()
        previous = current_run(self.out).get("run")
        content = {"format": CURRENT_FORMAT, "run": self.run, "before": previous}
        self.committed_runs.append(self.run)
        self.out.write(CURRENT, json.dumps(content, indent=1).encode() + b"\n")


@contextmanager
def store_staging(
    out: OutputDirectory, abandoned: float = ABANDONED_SECONDS
) -> Iterator[StoreStaging]:
    """Provide a place for one analysis into ``out``; remove unpublished files at the end.

    Raises `FlexwireError` if another analysis into ``out`` is running.
    """
    with leased(out) as lease:

        def make(run: str) -> StoreStaging:
            sweep(out, run, abandoned)
            return StoreStaging(out, run, notes=lease.notes)

        with begin_run(out, make, _remove) as staging:
            yield staging


def sweep(out: OutputDirectory, own: str, abandoned: float = ABANDONED_SECONDS) -> None:
    """Remove the files that finished analyses left in ``out``."""
    began = {entry.name.rpartition("/")[2]: entry.modified for entry in out.entries(f"{STAGING}/")}
    if own not in began:
        # The listing is older than this analysis, so it contains no time for a comparison.
        return
    current = current_run(out)
    kept_runs = {own, current.get("run"), current.get("before")}
    for run, first in began.items():
        if run in kept_runs or not RUN.fullmatch(run):
            continue
        if not current and out.child(f"{RUNS}/{run}").exists(f"tables/{SUCCESS}"):
            # This run may be the output: even if the store reports no current.json, one may exist.
            continue
        newest = max([first, *(entry.modified for entry in out.entries(f"{RUNS}/{run}/"))])
        # The store's own clock is used, because this machine's clock may differ.
        if (began[own] - newest).total_seconds() > abandoned:
            _remove(out, run)


def _remove(out: OutputDirectory, run: str) -> None:
    files = out.child(f"{RUNS}/{run}")
    files.remove([entry.name for entry in files.entries("")])
    files.sweep(datetime.max.replace(tzinfo=UTC))
    # This comes last, so that the remaining files are found again if this process is killed.
    out.remove([f"{STAGING}/{run}"])
