"""Pair requests and responses among the frames of a capture, and read their headers.

The state of all connections is kept in arrays from one chunk to the next. A kernel reads the plain
frames, and leaves the uncertain decisions to Python. If raw tokens may follow on a connection, the
rest of the connection is read frame by frame. Without kernels, all connections are read this way.
All results are the same as those of `FrameReader`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a prefix for about fifty names
from flexwire.capture.pairing.headers import (
    ConnectionReader,
    FrameReader,
    HeaderColumns,
    PairingRun,
    RequestSummary,
    WaitingFrames,
)
from flexwire.capture.pairing.rows import PAIRED, Hindsight, Judgement, build_paired
from flexwire.capture.pairing.state import ClientIds, PendingTable, make_states
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.kernels import load_kernel
from flexwire.protocol import Authentication, Conversation, expects_response, read_request
from flexwire.protocol.headers import decodes
from flexwire.protocol.sasl import is_ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.protocol import RequestFrame


__all__ = [
    "PAIRED",
    "HeaderColumns",
    "Hindsight",
    "Judgement",
    "Pairing",
    "RequestSummary",
    "build_paired",
]

_FLAGS, _CLIENT = L.FLAGS, L.CLIENT
_KEY, _WHAT, _E_CLIENT, _INDEX = L.KEY, L.WHAT, L.ENTRY_CLIENT, L.INDEX
# If there are more client ids than this, those that are no longer used are dropped.
_MANY_CLIENTS = 4096


class Pairing:
    """The unanswered requests of all connections, kept from one chunk to the next.

    A pairing can be pickled between chunks and continued elsewhere, with or without kernels. The
    pickle does not contain the known facts about requests without a response, or about responses
    that precede their request.
    """

    def __init__(self, *, show_credentials: bool = False) -> None:
        self.show_credentials = show_credentials
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._states = make_states(0)
        self._kept = np.empty((0, L.ENTRY), np.int64)
        self._waiting: PendingTable | None = None
        self._clients = ClientIds()
        self._most_clients = _MANY_CLIENTS
        self._objects: dict[int, ConnectionReader] = {}
        # Connections that have ended are included.
        self._forgotten: dict[str, list[int]] = {}
        self._early: dict[str, dict[int, RequestSummary]] = {}

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._waiting is not None:
            state["_kept"] = self._waiting.entries()
        state |= {"_waiting": None, "_clients": list(self._clients.texts)}
        state |= {"_forgotten": {}, "_early": {}}
        state["_states"] = self._states[: len(self._names)].copy()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clients = ClientIds(state["_clients"])
        # A waiting frame keeps its place in the order, because its entry is put back in that place.
        states = self._states
        self._states = make_states(len(states))
        self._states[:, [_FLAGS, _CLIENT]] = states[:, [_FLAGS, _CLIENT]]

    def read_headers(
        self, frames: FrameColumns, given: HeaderColumns | None = None
    ) -> HeaderColumns:
        """Read the next frames of all connections, and return their headers.

        ``given`` contains the facts about the rows that are already known. ``given`` requires the
        kernel, and is not allowed if any connection is read frame by frame. Only the other rows are
        read.
        """
        if len(self._clients.texts) > self._most_clients:
            self._forget_clients()
        if given is None:
            headers = HeaderColumns.fresh(len(frames), self._clients.texts)
        else:
            numbers = np.array(
                [self._clients.number(client_id) for client_id in (*given.clients, None)]
            )
            headers = replace(given, clients=self._clients.texts)
            headers.client[:] = numbers[headers.client]
        numbers = self._numbered(frames)
        pairing = load_kernel("pairing")
        if pairing is None:
            for number in set(numbers[numbers >= 0].tolist()):
                self._to_objects(number)
            begins = dict.fromkeys(self._objects, 0)
        else:
            begins = self._read(
                pairing.read, PairingRun(frames, numbers, headers, self._in_place(), self._clients)
            )
        if self._objects:
            self._read_objects(frames, headers, numbers, begins)
        return headers

    def connections(self) -> list[str]:
        """Return the names of the connections that have had frames and have not ended."""
        return list(self._numbers)

    def flags(self, connection: str) -> int:
        """Return a connection's flags: any of `OPEN`, `GUARDED` and `BY_OBJECTS`."""
        number = self._numbers.get(connection)
        return 0 if number is None else int(self._states[number, _FLAGS])

    def client_id(self, connection: str) -> str | None:
        """Return the last client id in a request on a connection, if there was one."""
        number = self._numbers.get(connection)
        if number is None:
            return None
        if number in self._objects:
            return self._objects[number].conversation.client_id
        return self._clients.text(int(self._states[number, _CLIENT]))

    def only(self, is_wanted: Callable[[str], bool]) -> Pairing:
        """Return the pairing for a part of the capture with only some of the connections."""
        some = Pairing(show_credentials=self.show_credentials)
        pairs = [(name, number) for name, number in self._numbers.items() if is_wanted(name)]
        some._names = [name for name, _ in pairs]
        some._numbers = {name: number for number, name in enumerate(some._names)}
        old = np.array([number for _, number in pairs], np.int64)
        some._states = make_states(len(pairs))
        some._states[:, [_FLAGS, _CLIENT]] = self._states[old][:, [_FLAGS, _CLIENT]]
        new = np.full(len(self._names), L.NOWHERE, np.int64)
        new[old] = np.arange(len(pairs))
        entries = self._kept if self._waiting is None else self._waiting.entries()
        numbers = new[entries[:, _KEY] >> L.CONNECTION_SHIFT]
        some._kept = entries[numbers >= 0]
        rest = some._kept[:, _KEY] & (1 << L.CONNECTION_SHIFT) - 1
        some._kept[:, _KEY] = numbers[numbers >= 0] << L.CONNECTION_SHIFT | rest
        some._clients = ClientIds(self._clients.texts)
        some._objects = {
            int(new[number]): reader for number, reader in self._objects.items() if new[number] >= 0
        }
        return some

    def awaiting(self, api_key: int) -> set[str]:
        """Return the connections on which a kernel has read a pending request of an API."""
        entries = self._kept if self._waiting is None else self._waiting.entries()
        asks = entries[:, _KEY] >> L.SIDE_SHIFT & 1 == L.ASKED
        asks &= entries[:, _WHAT] >> L.API_KEY_SHIFT == api_key
        return {
            self._names[number] for number in np.unique(entries[asks, _KEY] >> L.CONNECTION_SHIFT)
        }

    def waiting(self) -> dict[str, NumpyArray]:
        """Return the correlation ids that are waiting on each connection that a kernel reads."""
        entries = self._kept if self._waiting is None else self._waiting.entries()
        entries = entries[np.argsort(entries[:, _KEY], kind="stable")]
        ids = entries[:, _KEY] & L.CORRELATION_MASK
        numbers, starts = np.unique(entries[:, _KEY] >> L.CONNECTION_SHIFT, return_index=True)
        names = [self._names[number] for number in numbers.tolist()]
        return dict(zip(names, np.split(ids, starts[1:]), strict=False))

    def end(self, connection: str) -> None:
        """Forget a connection that has ended; its pending requests remain unanswered."""
        number = self._numbers.pop(connection, None)
        if number is None:
            return
        waiting = self._unanswered_on(number)
        if waiting:
            self._forgotten.setdefault(connection, []).extend(waiting)
        self._drop(number)
        self._objects.pop(number, None)
        self._states[number] = make_states(1)[0]
        self._names[number] = ""
        self._free.append(number)

    def forgotten(self) -> dict[str, list[int]]:
        """Return the indexes of the requests that certainly get no response, by connection."""
        return {name: sorted(indexes) for name, indexes in self._forgotten.items()}

    def unanswered(self) -> dict[str, list[int]]:
        """Return the requests without a response in ascending order, even those that still wait."""
        unanswered = self.forgotten()
        entries = self._kept if self._waiting is None else self._waiting.entries()
        asked = entries[entries[:, _KEY] >> L.SIDE_SHIFT & 1 == L.ASKED]
        for key, index in asked[:, [_KEY, _INDEX]].tolist():
            unanswered.setdefault(self._names[key >> L.CONNECTION_SHIFT], []).append(index)
        for number, reader in self._objects.items():
            if indexes := reader.unanswered():
                unanswered.setdefault(self._names[number], []).extend(indexes)
        return {name: sorted(indexes) for name, indexes in unanswered.items()}

    def know(
        self, forgotten: dict[str, list[int]], early: dict[str, dict[int, RequestSummary]]
    ) -> None:
        """Add the results of `forgotten` and `early` from a pairing of other connections."""
        self._forgotten.update(forgotten)
        self._early.update(early)

    def early(self) -> dict[str, dict[int, RequestSummary]]:
        """Return the requests captured after their response, by connection and response index."""
        return {name: dict(requests) for name, requests in self._early.items()}

    def take_early(self) -> dict[str, dict[int, RequestSummary]]:
        """Return the result of `early` without keeping a copy."""
        early, self._early = self._early, {}
        return early

    def _numbered(self, frames: FrameColumns) -> NumpyArray:
        """Return the number of each connection of the frames, or -1 for one without frames."""
        numbers = np.full(len(frames.connections), -1, np.int64)
        used = np.flatnonzero(np.bincount(frames.connection, minlength=len(numbers)))
        for place in used.tolist():
            name = frames.connections[place]
            number = self._numbers.get(name)
            if number is None:
                number = self._numbers[name] = self._new_number(name)
            numbers[place] = number
        if len(self._names) > len(self._states):
            more = make_states(max(len(self._names), 2 * len(self._states)))
            more[: len(self._states)] = self._states
            self._states = more
            if self._waiting is not None:
                self._waiting.use(more)
        return numbers

    def _new_number(self, name: str) -> int:
        if self._free:
            number = self._free.pop()
            self._names[number] = name
            return number
        self._names.append(name)
        return len(self._names) - 1

    def _in_place(self) -> PendingTable:
        if self._waiting is None:
            self._waiting = PendingTable(self._states, self._kept)
            self._kept = self._kept[:0]
        return self._waiting

    def _read(self, read: Any, run: PairingRun) -> dict[int, int]:
        """Read the plain frames.

        For each connection, return the first row that is read as an object.
        """
        waiting, begins = run.waiting, dict.fromkeys(self._objects, 0)
        while (why := read(waiting.address)) != L.AT_END:
            row = waiting.words.at
            number = run.number(row)
            if why == L.FULL:
                waiting.grow()
                continue
            if why not in {L.ODD, L.TOKENS}:
                request = _parsed(run.frames.payload(row))
                if request is not None:
                    self._help(why, run, row, number, request)
                    continue
            if why == L.TOKENS or self._may_exchange(run, row):
                self._to_objects(number)
                begins[number] = row
            else:
                self._read_odd(run, row, number)
        for number, index in run.forgotten[: waiting.words.forgotten_count].tolist():
            self._forgotten.setdefault(self._names[number], []).append(index)
        for number, index, what, client, time in run.early[: waiting.words.early_count].tolist():
            said = RequestSummary.of_entry(what, client, time, self._clients)
            self._early.setdefault(self._names[number], {})[index] = said
        return begins

    def _help(
        self, why: int, run: PairingRun, row: int, number: int, request: RequestFrame
    ) -> None:
        """Decide about a request with a plain header about which the kernel could not decide."""
        payload = run.frames.payload(row)
        if why == L.NEW_CLIENT:
            self._clients.number(request.client_id)
            run.use(self._clients)
        elif why == L.ASKS:
            run.prepare(row, expects=expects_response(request, payload))
        elif decodes(request.message_name, payload[request.body_offset :], request.api_version):
            self._states[number, _FLAGS] |= L.OPEN
        else:
            run.waiting.words.tried = row

    def _may_exchange(self, run: PairingRun, row: int) -> bool:
        frames = run.frames
        if row in frames.unplaced or frames.is_response[row]:
            return False
        payload = frames.payload(row)
        return run.table.is_handshake(payload) or is_ticket(payload)

    def _read_odd(self, run: PairingRun, row: int, number: int) -> None:
        """Read one frame as an object, starting from the state of its connection."""
        state, frame = self._states[number], run.frames.frame(row)
        reader = self._reader(number)
        values = reader.read(frame)
        authentication = reader.conversation.authentication
        flags = L.OPEN * authentication.is_open | L.GUARDED * authentication.is_guarded
        state[_FLAGS], state[_CLIENT] = flags, self._clients.number(reader.conversation.client_id)
        run.headers.tell(row, values, self._clients.number(values.get("client_id")))
        run.use(self._clients)
        if "correlation_id" not in values:
            run.skip()
        elif frame.direction == "response":
            # The kernel knows which request the response answers.
            run.read_again(row)
        else:
            run.prepare(row, expects=values["pair"] is not None)

    def _reader(self, number: int) -> FrameReader:
        flags = int(self._states[number, _FLAGS])
        authentication = Authentication(
            is_open=bool(flags & L.OPEN), is_guarded=bool(flags & L.GUARDED)
        )
        return FrameReader(
            show_credentials=self.show_credentials,
            conversation=Conversation(
                authentication=authentication,
                client_id=self._clients.text(int(self._states[number, _CLIENT])),
            ),
        )

    def _to_objects(self, number: int) -> None:
        """Read a connection frame by frame from now on."""
        if number in self._objects:
            return
        waiting = WaitingFrames.of_entries(self._drop(number), self._clients)
        self._objects[number] = ConnectionReader(self._reader(number)).resume(waiting)
        self._states[number, _FLAGS] |= L.BY_OBJECTS

    def _drop(self, number: int) -> NumpyArray:
        """Remove and return a connection's waiting frames."""
        if self._waiting is not None:
            return self._waiting.take(number)
        is_its = self._kept[:, _KEY] >> L.CONNECTION_SHIFT == number
        entries: NumpyArray = self._kept[is_its]
        self._kept = self._kept[~is_its]
        return entries

    def _unanswered_on(self, number: int) -> list[int]:
        if number in self._objects:
            return self._objects[number].unanswered()
        entries = self._drop(number)
        asked = entries[entries[:, _KEY] >> L.SIDE_SHIFT & 1 == L.ASKED]
        indexes: list[int] = asked[:, _INDEX].tolist()
        return indexes

    def _read_objects(
        self,
        frames: FrameColumns,
        headers: HeaderColumns,
        numbers: NumpyArray,
        begins: dict[int, int],
    ) -> None:
        for row, number in self._object_rows(frames, numbers):
            if row < begins[number]:
                continue
            reader, frame, name = self._objects[number], frames.frame(row), self._names[number]
            values, said, answered = reader.read(frame)
            if frame.direction == "response" and values.get("pair") is not None:
                client = L.NO_CLIENT if said is None else self._clients.number(said.client_id)
                headers.answer(row, values, said, client)
                continue
            headers.tell(row, values, self._clients.number(values.get("client_id")))
            if answered is not None and said is not None:
                self._early.setdefault(name, {})[answered] = said
            for index in reader.forgotten():
                self._forgotten.setdefault(name, []).append(index)

    def _object_rows(self, frames: FrameColumns, numbers: NumpyArray) -> Iterator[tuple[int, int]]:
        is_read = np.isin(numbers, list(self._objects))[frames.connection]
        rows = np.flatnonzero(is_read)
        yield from zip(rows.tolist(), numbers[frames.connection[rows]].tolist(), strict=True)

    def _forget_clients(self) -> None:
        """Keep only the client ids that are still used."""
        entries = self._kept if self._waiting is None else self._waiting.take(L.ALL)
        clients, kept = self._clients, ClientIds()
        renumbered = np.array(
            [
                kept.number(clients.texts[client]) if client >= 0 else L.NO_CLIENT
                for client in [*self._states[:, _CLIENT].tolist(), *entries[:, _E_CLIENT].tolist()]
            ],
            np.int64,
        )
        self._states[:, _CLIENT] = renumbered[: len(self._states)]
        entries[:, _E_CLIENT] = renumbered[len(self._states) :]
        self._clients = kept
        self._most_clients = max(_MANY_CLIENTS, 2 * len(kept.texts))
        self._kept, self._waiting = entries, None


def _parsed(payload: bytes) -> RequestFrame | None:
    try:
        return read_request(payload)
    except (FrameError, CodecError, UnknownMessageError):
        return None
