"""An analysis in an object store, where nothing can be renamed, and a whole prefix least of all.

```
OUT/runs/<run>/                 what one analysis writes: tables/, facts.json, report.html, …
OUT/_staging/<run>              that it began; there until its files are removed
OUT/current.json                which run is the output, and which one was before it
```
Every file is written once, in the place where it stays, and one PUT of `current.json` publishes
them all: a reader that begins there finds one output, the old or the new. Copying into fixed names
would cost every byte again, and for as long as it takes give a mixture to all who read meanwhile.

Nobody holds a lock in a store. Two analyses at once write to different names; the last to publish
is the output. What a killed one left is removed by a later one, once nothing was written there for
a day; and so is an output after the next but one, that whoever reads it has the time to finish.
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

# Longer than a task takes from its first byte to its first file.
ABANDONED_SECONDS: Final = 24 * 60 * 60
STAGING: Final = "_staging"


@dataclass(frozen=True)
class RunStaging(Staging):
    """What one analysis writes as a run of its own, where that stays.

    ``kept`` has the run once it may be in the output: whatever came of that, its files stay.
    """

    run: str
    committed_runs: list[str] = field(default_factory=list, kw_only=True)


S = TypeVar("S", bound=RunStaging)


@contextmanager
def begin_run(
    out: OutputDirectory, make: Callable[[str], S], remove: Callable[[OutputDirectory, str], None]
) -> Iterator[S]:
    """Begin a run in ``out``, which ``make`` makes by its name; one that is not kept is removed.

    ``_staging`` names it before its first file is written: so whatever is left of it is found.
    """
    run = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"
    out.write(f"{STAGING}/{run}", b"")
    staging: S | None = None
    try:
        staging = make(run)
        yield staging
    except BaseException:
        # A write that failed may have been taken, and a store that is asked now may answer with
        # what was there before. Where it was not taken, or removing fails too, a later analysis
        # removes the run.
        if staging is None or not staging.committed_runs:
            with suppress(Exception):
                remove(out, run)
        raise
    if not staging.committed_runs:
        remove(out, run)


@dataclass(frozen=True)
class StoreStaging(RunStaging):
    """The staging of one analysis in a store."""

    @property
    def files(self) -> OutputDirectory:
        """The directory for files to publish, each at the place that it has in the output."""
        return self.out.child(f"{RUNS}/{self.run}")

    @property
    def published(self) -> Output:
        """The output to read in the end, which is in the same place."""
        return Output(self.files)

    def publish(self) -> None:
        """Make this run the output, once all its files are there and its marker is."""
        if not self.files.exists(f"tables/{SUCCESS}"):
            where = self.files.child("tables")
            raise FlexwireError(f"{where} is unfinished, as it has no {SUCCESS}")
        self.remove_unnamed()
        previous = current_run(self.out).get("run")
        content = {"format": CURRENT_FORMAT, "run": self.run, "before": previous}
        self.committed_runs.append(self.run)
        self.out.write(CURRENT, json.dumps(content, indent=1).encode() + b"\n")


@contextmanager
def store_staging(
    out: OutputDirectory, abandoned: float = ABANDONED_SECONDS
) -> Iterator[StoreStaging]:
    """Make a place for one analysis into ``out``; unpublished files are removed in the end."""

    def make(run: str) -> StoreStaging:
        sweep(out, run, abandoned)
        return StoreStaging(out, run)

    with begin_run(out, make, _remove) as staging:
        yield staging


def sweep(out: OutputDirectory, own: str, abandoned: float = ABANDONED_SECONDS) -> None:
    """Remove what analyses that are over have left in ``out``."""
    began = {entry.name.rpartition("/")[2]: entry.modified for entry in out.entries(f"{STAGING}/")}
    if own not in began:
        # The listing is older than this analysis, and has no time to compare with.
        return
    current = current_run(out)
    kept_runs = {own, current.get("run"), current.get("before")}
    for run, first in began.items():
        if run in kept_runs or not RUN.fullmatch(run):
            continue
        if not current and out.child(f"{RUNS}/{run}").exists(f"tables/{SUCCESS}"):
            # It may be the output: that a store says it has no current.json is no proof.
            continue
        newest = max([first, *(entry.modified for entry in out.entries(f"{RUNS}/{run}/"))])
        # By the store's own clock: ours may be another.
        if (began[own] - newest).total_seconds() > abandoned:
            _remove(out, run)


def _remove(out: OutputDirectory, run: str) -> None:
    files = out.child(f"{RUNS}/{run}")
    files.remove([entry.name for entry in files.entries("")])
    files.sweep(datetime.max.replace(tzinfo=UTC))
    # Last: what is left where this is ended is found again.
    out.remove([f"{STAGING}/{run}"])
