"""Each connection's waiting frames as plain records, for a later analysis.

Data from a file is checked when it is read, because a kernel uses its numbers as memory indexes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a prefix for about twenty names
from flexwire.capture.pairing.headers import (
    ConnectionReader,
    FrameReader,
    RequestSummary,
    WaitingFrames,
)
from flexwire.capture.pairing.pairing import Pairing
from flexwire.capture.pairing.state import make_states
from flexwire.capture.reassembly.saved import Count, Int16, Int32, Number, SavedRecord
from flexwire.protocol import Authentication, Conversation
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from flexwire.columnar.arrays import NumpyArray


class AskedRecord(SavedRecord):
    """A waiting request, or a client's token, which has no header."""

    index: Count
    time_us: Number
    correlation_id: Int32
    api_key: Int16
    api_version: Int16
    client_id: str | None
    is_token: bool = False


class EarlyRecord(SavedRecord):
    """A response for which no request was pending."""

    index: Count
    time_us: Number
    correlation_id: Int32


_MOST: Final = msgspec.Meta(max_length=DEFAULT_IN_FLIGHT + 1)


class PendingRecord(SavedRecord):
    """The facts about a connection, and its waiting frames, oldest first."""

    name: str
    is_open: bool
    is_guarded: bool
    client_id: str | None
    by_objects: bool
    is_exchanging: bool
    asked: Annotated[list[AskedRecord], _MOST]
    early: Annotated[list[EarlyRecord], _MOST]


def records_of(pairing: Pairing, names: Collection[str]) -> list[PendingRecord]:
    """Return the records of some of the connections."""
    some = vars(pairing.only({*names}.__contains__))
    clients, objects = some["_clients"], some["_objects"]
    entries: NumpyArray = some["_kept"]
    order = np.argsort(entries[:, L.KEY] >> L.CONNECTION_SHIFT, kind="stable")
    entries = entries[order]
    owners = entries[:, L.KEY] >> L.CONNECTION_SHIFT
    starts = np.searchsorted(owners, np.arange(len(some["_names"]) + 1))
    records = []
    for number, name in enumerate(some["_names"]):
        if number in objects:
            conversation = objects[number].conversation
            waiting, is_exchanging = objects[number].waiting(), conversation.is_exchanging
            authentication, client_id = conversation.authentication, conversation.client_id
        else:
            own = entries[starts[number] : starts[number + 1]]
            waiting, is_exchanging = WaitingFrames.of_entries(own, clients), False
            flags, client = some["_states"][number, [L.FLAGS, L.CLIENT]].tolist()
            is_open, is_guarded = bool(flags & L.OPEN), bool(flags & L.GUARDED)
            authentication = Authentication(is_open=is_open, is_guarded=is_guarded)
            client_id = clients.text(client)
        records.append(
            PendingRecord(
                name,
                authentication.is_open,
                authentication.is_guarded,
                client_id,
                number in objects,
                is_exchanging,
                [_asked(*frame) for frame in waiting.asked],
                [EarlyRecord(index, seen, key) for key, index, seen in waiting.early],
            )
        )
    return records


def _asked(correlation_id: int, index: int, said: RequestSummary | None) -> AskedRecord:
    if said is None:
        return AskedRecord(0, 0, 0, 0, 0, None, is_token=True)
    api_key, version, client_id, time_us = said
    return AskedRecord(index, time_us, correlation_id, api_key, version, client_id)


def pairing_of(records: Iterable[PendingRecord], *, show_credentials: bool) -> Pairing:
    """Return a pairing that continues from the records. Raises `ValueError` for invalid records."""
    pairing = Pairing(show_credentials=show_credentials)
    state = vars(pairing)
    clients, entries, states = state["_clients"], [], []
    for number, record in enumerate(records):
        state["_names"].append(record.name)
        if state["_numbers"].setdefault(record.name, number) != number:
            raise ValueError("two connections have the same name")
        flags = L.OPEN * record.is_open | L.GUARDED * record.is_guarded
        states.append((flags | L.BY_OBJECTS * record.by_objects, clients.number(record.client_id)))
        if record.by_objects:
            state["_objects"][number] = _reader_of(record, show_credentials=show_credentials)
            continue
        for one in record.asked:
            what = one.api_key << L.API_KEY_SHIFT | one.api_version & L.VERSION_MASK
            owner = clients.number(one.client_id)
            entries.append((_key(number, L.ASKED, one), what, owner, one.time_us, one.index))
        entries += [
            (_key(number, L.EARLY, one), 0, L.NO_CLIENT, one.time_us, one.index)
            for one in record.early
        ]
    made = make_states(len(states))
    made[:, [L.FLAGS, L.CLIENT]] = np.array(states, np.int64).reshape(-1, 2)
    kept = np.array(entries, np.int64).reshape(-1, L.ENTRY)
    state.update(_states=made, _kept=kept)
    return pairing


def join_pairings(parts: Sequence[Pairing]) -> Pairing:
    """Return the pairing for the connections of all parts.

    Each connection is in exactly one part.
    """
    if len(parts) == 1:
        return parts[0]
    records = [record for part in parts for record in records_of(part, part.connections())]
    return pairing_of(records, show_credentials=parts[0].show_credentials)


def _key(number: int, side: int, one: AskedRecord | EarlyRecord) -> int:
    where = number << L.CONNECTION_SHIFT | side << L.SIDE_SHIFT
    return where | one.correlation_id & L.CORRELATION_MASK


def _reader_of(record: PendingRecord, *, show_credentials: bool) -> ConnectionReader:
    conversation = Conversation(
        authentication=Authentication(is_open=record.is_open, is_guarded=record.is_guarded),
        client_id=record.client_id,
        is_exchanging=record.is_exchanging,
    )
    reader = ConnectionReader(
        FrameReader(show_credentials=show_credentials, conversation=conversation)
    )
    return reader.resume(
        WaitingFrames(
            [(one.correlation_id, one.index, _said(one)) for one in record.asked],
            [(one.correlation_id, one.index, one.time_us) for one in record.early],
        )
    )


def _said(one: AskedRecord) -> RequestSummary | None:
    if one.is_token:
        return None
    return RequestSummary(one.api_key, one.api_version, one.client_id, one.time_us)
