"""Adds request logs to tables that grow: each line is added once, and connections continue.

```
files ─▶ positions before ─▶ new lines ─▶ rows, with the analysis in which a connection began
                                             └─▶ positions and connections for the next analysis
```
The state is a file of the analysis, like the state of captures (`flexwire.survey.saved_state`), and
the ledger records which state is valid. One commit to the ledger therefore publishes the rows and
the positions after them. Without the positions, it is unknown which lines are in the tables. If the
positions are lost, no request log is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import pyarrow as pa

from flexwire.capture.reassembly.saved import Number, SavedRecord
from flexwire.errors import FlexwireError
from flexwire.facts.units import plural
from flexwire.logs.request_log.positions import MOST_FILES, LogPosition, resume_logs
from flexwire.logs.request_log.requests import NOWHERE
from flexwire.measures.audit_rows import LOGGED_TEXTS
from flexwire.survey.saved_state import SavedStateError, pack, unpack
from flexwire.tables.request_logs import LoggedIds
from flexwire.tables.schema import CONNECTIONS_TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from flexwire.logs.request_log import Zone
    from flexwire.logs.request_log.lines import RequestLogFile
    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory

LOGGED_STATE: Final = "request_log_state"
"""The name of the state file in the directory of an analysis."""
MOST_CONTINUED: Final = 200_000
"""The largest number of connections that continue in the next analysis: those with the latest
lines.
"""
MOST_TEXT: Final = 64 << 20
"""The largest number of characters in the names and strings of these connections."""
IDLE_US: Final = 24 * 3600 * 1_000_000
"""A connection without a line for this long does not continue."""

_TEXTS: Final = tuple(name for name in LOGGED_TEXTS if name not in {"client", "broker"})


class ContinuedConnection(SavedRecord):
    """Facts about a connection, from the lines that were read, and the analysis in which it began.

    ``texts`` contains the values of `_TEXTS`.
    """

    began_in: str
    last_us: Number
    client_id: str | None
    client_instance_id: str | None
    texts: Annotated[list[str | None], msgspec.Meta(min_length=len(_TEXTS), max_length=len(_TEXTS))]

    @property
    def length(self) -> int:
        """The number of characters in the strings of this connection."""
        return sum(len(text or "") for text in (self.client_id, *self.texts))


class LoggedState(SavedRecord):
    """The content of the state file."""

    logs: Annotated[list[LogPosition], msgspec.Meta(max_length=MOST_FILES)]
    connections: dict[str, ContinuedConnection]


@dataclass(frozen=True)
class RequestLogGrowth:
    """The new lines of request logs for the analysis ``run``, and the connections known so far.

    ``known`` lists the names of files without new lines. ``notes`` contains messages for the user.
    """

    run: str
    files: tuple[RequestLogFile, ...]
    positions: tuple[LogPosition, ...]
    connections: Mapping[str, ContinuedConnection]
    known: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def ids(self) -> dict[str, LoggedIds]:
        """The ids of the connections, by connection name."""
        return {
            name: LoggedIds(one.client_id, one.client_instance_id)
            for name, one in self.connections.items()
            if name != NOWHERE.name and (one.client_id or one.client_instance_id)
        }

    @cached_property
    def origins(self) -> dict[str, str]:
        """The analyses in which the connections began, by name."""
        return {name: one.began_in for name, one in self.connections.items()}

    def with_ids(self, found: Mapping[str, LoggedIds]) -> dict[str, LoggedIds]:
        """Return the earlier ids, completed by ``found``: the ids from the lines read now."""
        ids = self.ids | {**found}
        for name in self.ids.keys() & found.keys():
            before, now = self.ids[name], found[name]
            ids[name] = LoggedIds(
                before.client_id or now.client_id,
                before.client_instance_id or now.client_instance_id,
                before.client_at if before.client_id else now.client_at,
            )
        return ids

    def continued(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of connections with earlier facts, and with the analyses in which they began.

        The counts and the first time remain those of this analysis.
        """
        changed = [*_TEXTS, "client_id", "client_instance_id", "began_in", "last_time"]
        columns: dict[str, list[Any]] = {name: rows[name].to_pylist() for name in changed}
        times = rows["last_time"].cast(pa.int64()).to_pylist()
        for at, name in enumerate(rows["connection"].to_pylist()):
            before = self.connections.get(name)
            if before is None:
                continue
            columns["began_in"][at] = before.began_in
            for column, text in zip(_TEXTS, before.texts, strict=True):
                columns[column][at] = max(filter(None, (columns[column][at], text)), default=None)
            for column, text in (
                ("client_id", before.client_id),
                ("client_instance_id", before.client_instance_id),
            ):
                columns[column][at] = text or columns[column][at]
            times[at] = max(times[at], before.last_us)
        columns["last_time"] = times
        arrays = [
            pa.array(columns[field.name], pa.int64() if field.name == "last_time" else field.type)
            if field.name in columns
            else rows[field.name]
            for field in CONNECTIONS_TABLE
        ]
        whole = pa.RecordBatch.from_arrays(arrays, names=CONNECTIONS_TABLE.names)
        return whole.cast(CONNECTIONS_TABLE)

    def next_state(
        self, seen: Mapping[str, ContinuedConnection], forgotten: int = 0
    ) -> tuple[bytes, tuple[str, ...]]:
        """Return the content of the file for the next analysis, and notes for the user.

        ``seen`` contains the connections with lines in this analysis; ``forgotten`` is the number
        of other such connections.
        """
        connections = {**self.connections, **seen}
        latest = max((one.last_us for one in connections.values()), default=0)
        busy = {name: one for name, one in connections.items() if one.last_us >= latest - IDLE_US}
        kept = latest_connections(busy)
        state = LoggedState([*self.positions], kept)
        return pack(state), _forgotten_note(forgotten + len(busy) - len(kept))


def latest_connections(
    connections: Mapping[str, ContinuedConnection],
) -> dict[str, ContinuedConnection]:
    """Return the connections with the latest lines, up to the number that can continue."""
    kept: dict[str, ContinuedConnection] = {}
    length = 0
    for name, one in sorted(connections.items(), key=lambda item: (-item[1].last_us, item[0])):
        size = len(name) + one.length
        if len(kept) < MOST_CONTINUED and length + size <= MOST_TEXT:
            kept[name] = one
            length += size
    return kept


class SeenConnections:
    """The connections that one analysis passes to the next: those with the latest lines."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._seen: dict[str, ContinuedConnection] = {}
        self._length = self._forgotten = 0

    def watched(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of connections, and keep their facts."""
        for rows in batches:
            self._add(rows)
            yield rows

    def _add(self, rows: pa.RecordBatch) -> None:
        names = ["connection", "began_in", "client_id", "client_instance_id", *_TEXTS]
        times = rows["last_time"].cast(pa.int64()).to_pylist()
        for row, last_us in zip(rows.select(names).to_pylist(), times, strict=True):
            one = ContinuedConnection(
                row["began_in"] or self._run,
                last_us,
                row["client_id"],
                row["client_instance_id"],
                [row[name] for name in _TEXTS],
            )
            self._seen[row["connection"]] = one
            self._length += len(row["connection"]) + one.length
            if len(self._seen) > 2 * MOST_CONTINUED or self._length > 2 * MOST_TEXT:
                self._prune()

    def _prune(self) -> None:
        kept = latest_connections(self._seen)
        self._forgotten += len(self._seen) - len(kept)
        self._seen = kept
        self._length = sum(len(name) + one.length for name, one in kept.items())

    def state(self, growth: RequestLogGrowth) -> tuple[bytes, tuple[str, ...]]:
        """Return the state after this analysis, and notes for the user."""
        return growth.next_state(self._seen, self._forgotten)


def _forgotten_note(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    text = f"{plural(count, 'connection')} cannot continue in the next analysis"
    return (f"{text}: the maximum is {MOST_CONTINUED:,} connections.",)


def grow_request_logs(
    run: str,
    files: Sequence[RequestLogFile],
    zone: Zone,
    before: OutputDirectory | None,
    version_of: Callable[[InputFile], int],
) -> RequestLogGrowth:
    """Return the new lines of request logs; ``before`` is the directory of the initial state.

    Raises `FlexwireError` if the state cannot be read, and the errors of `resume_logs`.
    """
    state = LoggedState([], {}) if before is None else _read_state(before)
    resumed = resume_logs(files, state.logs, zone, version_of)
    return RequestLogGrowth(
        run, resumed.files, resumed.positions, state.connections, resumed.known, resumed.notes
    )


def _read_state(place: OutputDirectory) -> LoggedState:
    reason = "the file is missing"
    if place.exists(LOGGED_STATE):
        try:
            return unpack(place.read(LOGGED_STATE), LoggedState)
        except SavedStateError as error:
            reason = str(error)
    raise FlexwireError(
        f"{place.child(LOGGED_STATE)} cannot be used: {reason}. This file shows which lines of "
        "request logs are in the tables. Without this file, lines could be added twice; choose "
        "another --out for request logs"
    )
