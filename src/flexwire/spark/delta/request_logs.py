"""Prepare to add request logs to tables: find the state and the new lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import CaptureError
from flexwire.spark.delta.ledger import fingerprint
from flexwire.spark.request_log_growth import grow_request_logs
from flexwire.tables.output import RUNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.logs.request_log import Zone
    from flexwire.logs.request_log.lines import RequestLogFile
    from flexwire.spark.delta.ledger import LedgerEntry, LedgerSnapshot
    from flexwire.spark.request_log_growth import RequestLogGrowth
    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory


class GivenRequestLogs(NamedTuple):
    """Request logs for tables that grow, and the time zone of their local times."""

    files: Sequence[RequestLogFile]
    zone: Zone


@dataclass(frozen=True, slots=True)
class LoggedInput:
    """The new lines of request logs, if any logs are given.

    ``last`` is the entry of the analysis with the latest state, or None.
    """

    given: GivenRequestLogs | None = None
    growth: RequestLogGrowth | None = None
    last: LedgerEntry | None = None

    @property
    def known(self) -> frozenset[str]:
        """The names of the files without new lines."""
        return frozenset(() if self.growth is None else self.growth.known)

    @property
    def known_run(self) -> str | None:
        """The last analysis with request logs if no line is new; None if some lines are new.

        Raises `CaptureError` if there is no such analysis.
        """
        if self.given is None or self.growth is None or self.growth.files:
            return None
        if self.last is None:
            reason = "the file has no complete line yet; wait until the broker writes a line"
            raise CaptureError(reason, source=self.given.files[0].source.name)
        return self.last.analysis


def begin_request_logs(
    out: OutputDirectory,
    run: str,
    ledger: LedgerSnapshot,
    captures: Sequence[InputFile],
    given: GivenRequestLogs | None,
    *,
    append: bool,
) -> LoggedInput:
    """Return the new lines of request logs for the analysis ``run``.

    Raises `CaptureError` if the tables would contain both captures and request logs, and the errors
    of `grow_request_logs`.
    """
    if given is None:
        last = ledger.last if append and captures else None
        if last is not None and last.request_logs_after is not None:
            raise CaptureError(_twice(out, "request logs", "captures"), source=captures[0].name)
        return LoggedInput()
    last = ledger.request_logs if append else None
    if append and last is None and ledger.has_captures():
        name = given.files[0].source.name
        raise CaptureError(_twice(out, "captures", "request logs"), source=name)
    before = None if last is None else out.child(f"{RUNS}/{last.analysis}")
    growth = grow_request_logs(run, given.files, given.zone, before, fingerprint)
    return LoggedInput(given, growth, last)


def _twice(out: OutputDirectory, present: str, given: str) -> str:
    return (
        f"{out} holds {present}, and a request in both a capture and a request log would be "
        f"counted twice; choose another --out for {given}"
    )
