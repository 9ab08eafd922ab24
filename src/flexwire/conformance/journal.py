"""The journal of a run: one line per finished case, so that an interrupted run can be continued.

The first line identifies the run: the brokers, the release, and a digest of all requests. The
journal of a different run is refused. Verdicts are not recorded, because a later run judges the
outcomes again. Only the owner of the journal can read it, because answers contain the names of
topics and groups. An answer is not recorded if it may contain credentials or is too long to judge.
In this situation, the case is sent again.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.closeable import Closeable
from flexwire.conformance.judging import MOST_DECODED, CaseOutcome, Ending
from flexwire.errors import ConformanceJournalError
from flexwire.facts.units import shorten
from flexwire.protocol.credentials import carries_credentials
from flexwire.protocol.headers import response_name
from flexwire.storage.local import create_private_file, is_locked, lock_while_open

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from flexwire.conformance.cases import Asking, Case, CasePlan

FORMAT: Final = "flexwire conform, journal 1"
LONGEST_LINE: Final = 2 * MOST_DECODED + 64 * 1024
"""The maximum size of a line in bytes: an answer in hex, plus some text."""


class JournalHeader(NamedTuple):
    """The facts that identify the run of a journal: the brokers, the release, and the requests."""

    brokers: tuple[str, ...]
    release: str
    cases: int
    digest: str

    @classmethod
    def of(cls, sides: Sequence[tuple[str, CasePlan]], asking: Asking) -> JournalHeader:
        """Return the header for these brokers and the cases of each broker."""
        digest = sha256()
        for _, plan in sides:
            for case in plan.cases:
                digest.update(f"{case.name}\n{case.expected.name}\n{case.data.hex()}\n".encode())
            digest.update(b"\n")
        count = sum(len(plan.cases) for _, plan in sides)
        brokers = tuple(address for address, _ in sides)
        return cls(brokers, asking.release, count, digest.hexdigest())

    def to_line(self) -> bytes:
        """Return the first line of the journal."""
        return _to_line({"format": FORMAT, **self._asdict(), "brokers": [*self.brokers]})


def _to_line(form: dict[str, Any]) -> bytes:
    return json.dumps(form, ensure_ascii=True).encode() + b"\n"


class ConformanceJournal(Closeable):
    """A new or reopened journal. Raises `ConformanceJournalError` for another run's journal.

    An incomplete last line is removed.
    """

    def __init__(self, path: Path, header: JournalHeader) -> None:
        self._path = path
        self._entries: list[tuple[int, str, CaseOutcome]] = []
        try:
            self._file = self._opened()
        except OSError as error:
            raise self._refusal(error.strerror or str(error)) from None
        try:
            lock_while_open(self._file)
            self._file.truncate(self._read(header))
            self._file.seek(0, os.SEEK_END)
            if not self._file.tell():
                self._write(header.to_line())
        except BaseException:
            self.close()
            raise

    def finished(self, broker: int, plan: CasePlan) -> dict[str, CaseOutcome]:
        """Return the outcomes of finished cases by name. Brokers are numbered from 0."""
        names = {case.name for case in plan.cases}
        found: dict[str, CaseOutcome] = {}
        for of_broker, name, outcome in self._entries:
            if of_broker != broker:
                continue
            if name not in names or name in found:
                raise self._refusal(
                    f"the journal contains {shorten(name)!r} twice, or this run has no such case"
                )
            found[name] = outcome
        return found

    def append(self, broker: int, case: Case, outcome: CaseOutcome) -> None:
        """Write the outcome of a case, unless it may contain credentials or is too long."""
        payload = outcome.payload
        if payload is not None and (
            len(payload) > MOST_DECODED
            or carries_credentials(response_name(case.api_key, case.version))
        ):
            return
        form = {
            "broker": broker,
            "case": case.name,
            "payload": None if payload is None else payload.hex(),
            "ending": None if outcome.ending is None else outcome.ending.name,
            "detail": outcome.detail,
            "unread": outcome.unread,
        }
        self._write(_to_line(form))

    def close(self) -> None:
        """Close the file. A second call has no effect."""
        self._file.close()

    def _opened(self) -> FileIO:
        if not self._path.exists():
            return create_private_file(self._path)
        if not self._path.is_file():
            raise self._refusal("expected a regular file")
        if is_locked(self._path):
            raise self._refusal("another run is writing to this file")
        return FileIO(self._path, "r+")

    def _refusal(self, reason: str) -> ConformanceJournalError:
        return ConformanceJournalError(f"{self._path}: {reason}")

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise self._refusal(error.strerror or str(error)) from None

    def _read(self, header: JournalHeader) -> int:
        """Read the entries and return the end of the last complete line."""
        with self._path.open("rb") as file:
            first = file.readline(LONGEST_LINE)
            if header.to_line().startswith(first) and not first.endswith(b"\n"):
                return 0
            self._check(first, header)
            end = len(first)
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                if len(self._entries) == header.cases:
                    raise self._refusal(f"the journal contains more than {header.cases} cases")
                try:
                    self._entries.append(_entry(line))
                except (ValueError, TypeError, KeyError, RecursionError):
                    number = len(self._entries) + 2
                    raise self._refusal(f"line {number} is not a journal entry") from None
                end += len(line)
            if len(line) == LONGEST_LINE:
                raise self._refusal(f"a line is longer than {LONGEST_LINE} bytes")
        return end

    def _check(self, line: bytes, header: JournalHeader) -> None:
        """Raise an error if the first line does not belong to this run."""
        try:
            form = json.loads(line)
            is_ours = form["format"] == FORMAT
            brokers, release = " and ".join(form["brokers"]), str(form["release"])
        except (ValueError, TypeError, KeyError, RecursionError):
            is_ours, brokers, release = False, "", ""
        if not is_ours:
            raise self._refusal("not the journal of a conformance run; choose another file")
        asked = " and ".join(header.brokers)
        for old, new in ((brokers, asked), (release, header.release)):
            if old != new:
                raise self._refusal(
                    f"the journal belongs to a run against {shorten(old)}, but this run is against "
                    f"{new}; choose another file"
                )
        if line != header.to_line():
            raise self._refusal(
                "the journal belongs to a run with different cases: the broker offers different "
                "versions, or the options or flexwire changed; choose another file"
            )


def _entry(line: bytes) -> tuple[int, str, CaseOutcome]:
    """Return an entry's broker, case and outcome, or raise an error if the entry is invalid."""
    form = json.loads(line)
    broker, name, detail, unread = (form[key] for key in ("broker", "case", "detail", "unread"))
    payload = None if form["payload"] is None else bytes.fromhex(form["payload"])
    ending = None if form["ending"] is None else Ending[form["ending"]]
    is_sound = type(broker) is type(unread) is int and type(name) is type(detail) is str
    if not is_sound or unread < 0 or (payload is None) is (ending is None):
        raise ValueError(line)
    return broker, name, CaseOutcome(payload, ending, detail, unread)
