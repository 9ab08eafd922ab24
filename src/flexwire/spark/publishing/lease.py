"""The lease of an output in a store: while one run writes there, any other run stops immediately.

A store has no locks. Without a lease, two concurrent runs would both do all their work, and only
one result would be kept. The lease avoids this wasted work. The lease never decides what is in the
output: the ledger and ``current.json`` decide, and they are correct without any lease.

```
OUT/_lease/<number>     an object that a run writes when it begins, writes again every minute,
                        and removes at its end; the highest number is the current lease
OUT/_lease/now-<owner>  written by a run that finds a lease, to learn the store's time; then removed
```
A lease that has not been written for five minutes is stale: its run was killed or is paused. The
next run takes over by creating the object with the next number. Only one of several runs can create
it, because `OutputDirectory.create` fails if the object already exists. A paused run that resumes
finds the higher number. It keeps working, and the ledger or ``current.json`` decides.

Only times from the store are compared, because the clocks of machines differ. The content of a
lease is not trusted: only its age matters, and an object with any other content counts as the lease
of an unknown run.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.errors import FlexwireError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.storage.store_listing import FileEntry

LEASES: Final = "_lease"
LEASE_FORMAT: Final = 1
STALE_SECONDS: Final = 300.0
"""A lease of this age is stale. A request to a store can take `ANSWER_SECONDS`, and a lease remains
fresh even if one renewal fails.
"""

RENEWALS: Final = 5
"""How often a run renews its lease before the lease would become stale."""

MOST_BYTES: Final = 4096
"""The largest number of bytes that are read from a lease."""

_TRIES: Final = 5
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_PROBE: Final = re.compile(r"now-[0-9a-f]{16}")
_OWNER: Final = re.compile(r"[0-9a-f]{16}")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


class _Content(NamedTuple):
    """The content of a lease; both fields are empty for an unreadable lease or another format."""

    owner: str
    since: str


_UNKNOWN: Final = _Content("", "")


class Lease:
    """The lease that this run holds on ``out``; ``notes`` contains messages for the user."""

    def __init__(self, out: OutputDirectory, stale_seconds: float = STALE_SECONDS) -> None:
        self.out = out
        self.notes: list[str] = []
        self._owner = secrets.token_hex(8)
        self._stale_seconds = stale_seconds
        self._number = 0
        self._since = ""
        self._is_lost = False
        self._ended = threading.Event()

    def take(self) -> None:
        """Take the lease; raise `FlexwireError` if another run holds it."""
        for _ in range(_TRIES):
            entries = self._entries()
            number = _current(entries)
            if number:
                # After a lost response, or in the second round, this is our own lease.
                if self._content(entries[str(number)]).owner == self._owner:
                    self._number, self._since = number, _text(entries[str(number)].modified)
                    self._remove_older(entries)
                    return
                entries, is_stale = self._judge()
                number = _current(entries)
                if number and not is_stale:
                    raise self._refusal(entries[str(number)])
            if not _NUMBER.fullmatch(str(number + 1)):
                # No run reaches this number, so somebody else wrote this object.
                self.out.remove([_name(number)])
                continue
            # This is set before the call, because a call that fails may still create the object.
            self._number = number + 1
            if self.out.create(_name(self._number), self._to_write()) and number:
                last = _text(entries[str(number)].modified)
                self.notes.append(
                    f"took over the lease of a run on {self.out} that was killed or paused: that "
                    f"run last renewed the lease at {last} (the store's clock)"
                )
        raise StorageError("cannot acquire the lease; try again", url=str(self.out.child(LEASES)))

    def renew(self) -> None:
        """Write the lease again, unless another run has taken over."""
        self._note_loss(self._entries())
        if not self._is_lost:
            self.out.write(_name(self._number), self._to_write())

    def renew_until_ended(self) -> None:
        """Renew the lease in this thread until `release`."""
        while not self._ended.wait(self._stale_seconds / RENEWALS):
            # If the store does not answer now, the next renewal may still be in time.
            with suppress(StorageError):
                self.renew()

    def end(self) -> None:
        """Let `renew_until_ended` return."""
        self._ended.set()

    def release(self) -> None:
        """Remove the lease if this run holds one. If this fails, the lease will become stale."""
        with suppress(Exception):
            entries = self._entries()
            self._note_loss(entries)
            if self._writer(entries) == self._owner:
                self.out.remove([_name(self._number)])

    def _note_loss(self, entries: dict[str, FileEntry]) -> None:
        is_own = self._writer(entries) in {"", self._owner}
        if self._is_lost or (is_own and _current(entries) == self._number):
            return
        self._is_lost = True
        self.notes.append(
            f"another run took over the lease on {self.out}, because this run did not renew it "
            f"for {self._stale_seconds:g} seconds; both runs worked at the same time, and "
            "the other run may have failed"
        )

    def _writer(self, entries: dict[str, FileEntry]) -> str | None:
        """Return the writer of the object with our number: "" means unknown, None means nobody."""
        own = entries.get(str(self._number))
        return None if own is None else self._content(own).owner

    def _judge(self) -> tuple[dict[str, FileEntry], bool]:
        """Return the current leases, and whether the valid lease is stale."""
        probe = f"now-{self._owner}"
        self.out.write(f"{LEASES}/{probe}", b"")
        try:
            entries = self._entries()
        finally:
            self.out.remove([f"{LEASES}/{probe}"])
        if probe not in entries or not (number := _current(entries)):
            return entries, False
        age = (entries[probe].modified - entries[str(number)].modified).total_seconds()
        # A store does not write times in the future. An object with a future time would remain a
        # lease forever.
        return entries, abs(age) > self._stale_seconds

    def _entries(self) -> dict[str, FileEntry]:
        entries = self.out.entries(f"{LEASES}/")
        return {entry.name.removeprefix(f"{LEASES}/"): entry for entry in entries}

    def _content(self, entry: FileEntry) -> _Content:
        """Return the content of a lease, which can be garbage or be replaced in the meantime."""
        if entry.size > MOST_BYTES:
            return _UNKNOWN
        try:
            with self.out.source(entry).open() as file:
                content: Any = json.loads(file.read())
            owner, since = content["owner"], content["since"]
            is_ours = content["format"] == LEASE_FORMAT and bool(_OWNER.fullmatch(owner))
            is_time = bool(_TIME.fullmatch(since))
        except (StorageError, ValueError, TypeError, KeyError, RecursionError):
            return _UNKNOWN
        return _Content(owner, since if is_time else "") if is_ours else _UNKNOWN

    def _to_write(self) -> bytes:
        content = {"format": LEASE_FORMAT, "owner": self._owner, "since": self._since}
        return json.dumps(content).encode()

    def _remove_older(self, entries: dict[str, FileEntry]) -> None:
        latest = entries[str(self._number)].modified - timedelta(seconds=self._stale_seconds)
        older = [name for name in entries if _NUMBER.fullmatch(name) and int(name) < self._number]
        probes = [
            name
            for name, entry in entries.items()
            if _PROBE.fullmatch(name) and entry.modified < latest
        ]
        if names := [f"{LEASES}/{name}" for name in (*older, *probes)]:
            self.out.remove(names)

    def _refusal(self, entry: FileEntry) -> FlexwireError:
        where = self.out.child(entry.name)
        until = _text(entry.modified + timedelta(seconds=self._stale_seconds))
        content = self._content(entry)
        if content == _UNKNOWN:
            return FlexwireError(
                f"this release of flexwire cannot read the lease {where}, which another release "
                "may have written; wait until no other run is writing to this output, or choose "
                "another --out. If the lease is not renewed, other runs ignore it after "
                f"{until} (the store's clock)"
            )
        since = content.since or _text(entry.modified)
        return FlexwireError(
            f"another run has been writing to {self.out} since {since}; wait until that run is "
            f"done, or choose another --out. If that run was killed, its lease {where} ends at "
            f"{until} (the store's clock); try again after that time"
        )


@contextmanager
def leased(out: OutputDirectory, stale_seconds: float = STALE_SECONDS) -> Iterator[Lease]:
    """Hold the lease of an output in a store; raise `FlexwireError` if another run holds it."""
    lease = Lease(out, stale_seconds)
    renewing = threading.Thread(target=lease.renew_until_ended, name="flexwire-lease", daemon=True)
    try:
        lease.take()
        renewing.start()
        yield lease
    finally:
        lease.end()
        if renewing.ident is not None:
            # A renewal in progress would write the lease again after its removal.
            renewing.join()
        lease.release()


def _current(entries: dict[str, FileEntry]) -> int:
    """Return the number of the current lease, or 0."""
    return max((int(name) for name in entries if _NUMBER.fullmatch(name)), default=0)


def _name(number: int) -> str:
    return f"{LEASES}/{number}"


def _text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
