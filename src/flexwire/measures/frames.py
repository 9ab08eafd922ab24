"""Sums over the table of frames: the report's numbers about frames, APIs and clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import FAILED, UNPAIRED
from flexwire.errors import UnknownMessageError
from flexwire.facts.facts import (
    ApiFacts,
    CaptureFileFacts,
    ClientFacts,
    LenientUse,
    Timeline,
    TimelineBucket,
    Totals,
    VersionUse,
)
from flexwire.logs.request_log.requests import NOWHERE
from flexwire.measures.conditions import CARRYING_APIS, OF_KAFKA
from flexwire.measures.failures import FAILURES, SAMPLE_BYTES, FailureSums, ReasonCounts
from flexwire.measures.groups import CodedColumn, RowGroups, Tally, coded, coded_flags, coded_steps
from flexwire.measures.latencies import LatencySums
from flexwire.parties import Client
from flexwire.protocol import api_name
from flexwire.tables.frames import LENIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import TypeVar

    from flexwire.facts.facts import Latency
    from flexwire.measures.groups import Key, Numbers

    _Key = TypeVar("_Key")


REQUEST, RESPONSE = "request", "response"


class TrafficSums(NamedTuple):
    """The number of frames with one client, api version, direction and outcome, and their sums."""

    client: Client
    api_key: int | None
    api_version: int | None
    direction: str
    outcome: str
    has_message: bool
    frames: int
    bytes: int
    unanswered: int
    withheld: int


def frames_of(traffic: Iterable[TrafficSums], direction: str) -> int:
    """Return the number of frames in one direction."""
    return sum(group.frames for group in traffic if group.direction == direction)


def bytes_of(traffic: Iterable[TrafficSums], direction: str) -> int:
    """Return the number of bytes in one direction."""
    return sum(group.bytes for group in traffic if group.direction == direction)


def api_facts(
    traffic: Iterable[TrafficSums], latencies: Mapping[int, Latency]
) -> tuple[ApiFacts, ...]:
    """Return the facts about each api key."""
    return tuple(
        ApiFacts(
            api_key=api_key,
            name=name_of(api_key),
            requests=frames_of(some, REQUEST),
            responses=frames_of(some, RESPONSE),
            request_bytes=bytes_of(some, REQUEST),
            response_bytes=bytes_of(some, RESPONSE),
            failures=sum(group.frames for group in some if group.outcome == FAILED),
            versions=tuple(
                sorted({group.api_version for group in some if group.api_version is not None})
            ),
            latency=latencies.get(api_key),
            may_wait=may_wait(api_key),
        )
        for api_key, some in _by(traffic, lambda group: group.api_key).items()
        if api_key is not None
    )


def client_facts(
    traffic: Iterable[TrafficSums], connections: Mapping[Client, Collection[str]]
) -> tuple[ClientFacts, ...]:
    """Return the facts about each client that is named in a message."""
    by_client = _by((group for group in traffic if group.has_message), lambda group: group.client)
    return tuple(
        ClientFacts(
            client=client,
            connections=len(connections[client]),
            requests=frames_of(some, REQUEST),
            bytes_sent=bytes_of(some, REQUEST),
            bytes_received=bytes_of(some, RESPONSE),
            apis=len({group.api_key for group in some} - {None}),
        )
        for client, some in by_client.items()
    )


def version_uses(traffic: Iterable[TrafficSums]) -> tuple[VersionUse, ...]:
    """Return the client, version and API of each use, and how often the use occurs."""
    requests = (group for group in traffic if group.direction == REQUEST)
    by_use = _by(requests, lambda group: (group.client, group.api_key, group.api_version))
    return tuple(
        VersionUse(client, key, name_of(key), version, sum(group.frames for group in some))
        for (client, key, version), some in by_use.items()
        if key is not None and version is not None
    )


def name_of(api_key: int) -> str | None:
    """Return the name of an API, or None if no release contains it."""
    try:
        return api_name(api_key)
    except UnknownMessageError:
        return None


def may_wait(api_key: int) -> bool:
    """Return whether the broker may wait for records before it responds."""
    return name_of(api_key) in CARRYING_APIS


def _by(
    traffic: Iterable[TrafficSums], key: Callable[[TrafficSums], _Key]
) -> dict[_Key, list[TrafficSums]]:
    groups: dict[_Key, list[TrafficSums]] = {}
    for group in traffic:
        groups.setdefault(key(group), []).append(group)
    return groups


CLIENT = ("client_id", "client_software_name", "client_software_version")
"""The columns of the table of frames that identify clients."""

_TRAFFIC = (*CLIENT, "api_key", "api_version", "direction", "outcome")
_COLUMNS = (
    *_TRAFFIC,
    "message",
    "time",
    "connection",
    "broker",
    "source",
    "size",
    "latency_us",
    "answered",
    "withheld_credentials",
)


class FrameSums:
    """Partial sums over the table of frames, without connections that are not Kafka.

    ``bucket_us`` is the width of a slice in the timeline (`timeline.bucket_us`). Memory use grows
    with the number of connections, clients and api versions, but not with the number of frames.
    """

    def __init__(self, bucket_us: int) -> None:
        self._bucket_us = bucket_us
        self._first_us: int | None = None
        self._last_us: int | None = None
        # The numbers of frames, bytes, unanswered frames and withheld frames, by `_TRAFFIC` and
        # whether there is a message.
        self._traffic = Tally()
        # The numbers of frames and bytes: by slice and direction, and by source.
        self._slices = Tally()
        self._sources = Tally()
        # Each name is kept as a single object, so that a pickle contains the name only once.
        self._connections: dict[str, str] = {}
        self._brokers: set[str] = set()
        self._of_clients: dict[Key, set[str]] = {}
        self._latencies = LatencySums()
        self._lenient = ReasonCounts()
        self.failures = FailureSums()
        """The frames that could not be decoded. Other failures may be added to them."""

    def add(self, frames: pa.RecordBatch) -> None:
        """Add rows of the table of frames."""
        is_kafka = OF_KAFKA.of(frames)
        rows = frames.select(_COLUMNS)
        if is_kafka.false_count:
            rows = rows.filter(is_kafka)
        if not len(rows):
            return
        columns = {name: coded(rows[name]) for name in _TRAFFIC}
        has_message = np.asarray(rows["message"].is_valid())
        # Request logs do not contain sizes.
        size = rows["size"].fill_null(0).to_numpy()
        self._add_traffic(rows, columns, has_message, size)
        self._add_times(rows["time"], columns["direction"], size)
        self._sources.add(RowGroups(coded(rows["source"])), size)
        self._add_parties(rows, columns, has_message)
        measured = rows.select(["api_key", "latency_us"]).drop_null()
        if len(measured):
            self._latencies.add(measured["api_key"].to_numpy(), measured["latency_us"].to_numpy())
        outcomes = set(columns["outcome"].values)
        if FAILED in outcomes:
            self.failures.add(_failed(frames))
        if LENIENT in outcomes:
            lenient = frames.filter(pc.equal(frames["outcome"], LENIENT))
            names = ("message", "api_version", *CLIENT, "error")
            self._lenient.add(RowGroups(*(coded(lenient[name]) for name in names)))

    def _add_traffic(
        self,
        rows: pa.RecordBatch,
        columns: Mapping[str, CodedColumn],
        has_message: Numbers,
        size: Numbers,
    ) -> None:
        is_unanswered = np.asarray(pc.fill_null(pc.invert(rows["answered"]), fill_value=False))
        is_withheld = np.asarray(
            pc.fill_null(pc.greater(rows["withheld_credentials"], 0), fill_value=False)
        )
        groups = RowGroups(*columns.values(), coded_flags(has_message))
        self._traffic.add(groups, size, is_unanswered, is_withheld)

    def _add_times(self, times: pa.Array, direction: CodedColumn, size: Numbers) -> None:
        micros = times.cast(pa.int64()).to_numpy()
        self._note_time(int(micros.min()), int(micros.max()))
        self._slices.add(RowGroups(coded_steps(micros, self._bucket_us), direction), size)

    def _note_time(self, first_us: int | None, last_us: int | None) -> None:
        self._first_us = min(_present(self._first_us, first_us), default=None)
        self._last_us = max(_present(self._last_us, last_us), default=None)

    def _add_parties(
        self, rows: pa.RecordBatch, columns: Mapping[str, CodedColumn], has_message: Numbers
    ) -> None:
        self._brokers.update(
            broker for broker in coded(rows["broker"]).values if broker != NOWHERE.broker
        )
        connections = coded(rows["connection"])
        named = self._named(connections.values)
        different = len(named)
        clients = RowGroups(*(columns[name] for name in CLIENT))
        keys = list(clients.values())
        pairs = np.unique((clients.of * different + connections.codes)[has_message])
        for some in np.split(pairs, np.flatnonzero(np.diff(pairs // different)) + 1):
            if len(some):
                names = [named[code] for code in (some % different).tolist()]
                self._of_clients.setdefault(keys[some[0] // different], set()).update(names)

    def _named(self, connections: Iterable[str]) -> list[str]:
        return [self._connections.setdefault(connection, connection) for connection in connections]

    def merge(self, other: FrameSums) -> None:
        """Add the sums of another task. The slices of that task must have the same width."""
        if other._bucket_us != self._bucket_us:
            raise ValueError("expected sums over slices of the same width")
        self._note_time(other._first_us, other._last_us)
        self._traffic.merge(other._traffic)
        self._slices.merge(other._slices)
        self._sources.merge(other._sources)
        self._brokers |= other._brokers
        self._named(other._connections)
        for client, names in other._of_clients.items():
            self._of_clients.setdefault(client, set()).update(self._named(names))
        self._latencies.merge(other._latencies)
        self._lenient.merge(other._lenient)
        self.failures.merge(other.failures)

    def totals(
        self, *, undecodable_records: int = 0, skipped_packets: int = 0, beyond_bounds: int = 0
    ) -> Totals:
        """Return the totals. The arguments are numbers that are not in the table of frames."""
        traffic = self._groups()

        def of(outcome: str) -> int:
            return sum(group.frames for group in traffic if group.outcome == outcome)

        return Totals(
            first_time_us=self._first_us,
            last_time_us=self._last_us,
            frames=sum(group.frames for group in traffic),
            requests=frames_of(traffic, REQUEST),
            responses=frames_of(traffic, RESPONSE),
            unanswered_requests=sum(group.unanswered for group in traffic),
            unpaired_responses=of(UNPAIRED),
            connections=len(self._connections),
            clients=len(self._of_clients),
            brokers=len(self._brokers),
            bytes=sum(group.bytes for group in traffic),
            decode_failures=of(FAILED) + undecodable_records,
            skipped_packets=skipped_packets,
            lenient_frames=of(LENIENT),
            batches_beyond_bounds=beyond_bounds,
        )

    def withheld_credentials(self) -> int:
        """Return the number of frames in which something was withheld."""
        return sum(group.withheld for group in self._groups())

    def timeline(self) -> Timeline:
        """Return the traffic over time."""
        slices: dict[int, dict[str, tuple[int, int]]] = {}
        for (step, direction), (frames, size) in self._slices.sums.items():
            slices.setdefault(step, {})[direction] = frames, size
        nothing = 0, 0
        buckets = (
            TimelineBucket(
                time_us=step * self._bucket_us,
                request_bytes=sums.get(REQUEST, nothing)[1],
                response_bytes=sums.get(RESPONSE, nothing)[1],
                frames=sum(frames for frames, _ in sums.values()),
            )
            for step, sums in sorted(slices.items())
        )
        return Timeline(self._bucket_us, tuple(buckets))

    def sources(self, packets: Mapping[str, int]) -> tuple[CaptureFileFacts, ...]:
        """Return the facts about each capture file in ``packets``."""
        sums = self._sources.sums
        return tuple(
            CaptureFileFacts(path, count, *sums.get((path,), (0, 0)))
            for path, count in sorted(packets.items())
        )

    def apis(self) -> tuple[ApiFacts, ...]:
        """Return the facts about each api key."""
        return api_facts(self._groups(), self._latencies.facts())

    def clients(self) -> tuple[ClientFacts, ...]:
        """Return the facts about each client."""
        connections = {Client(*client): names for client, names in self._of_clients.items()}
        return client_facts(self._groups(), connections)

    def version_uses(self) -> tuple[VersionUse, ...]:
        """Return the client, version and API of each use, before any audit has judged them."""
        return version_uses(self._groups())

    def lenient_uses(self) -> tuple[LenientUse, ...]:
        """Return the uses that were decoded leniently, most frequent first."""
        frequent, _ = self._lenient.most_frequent()
        return tuple(
            LenientUse(Client(*client), message, version, reason, count)
            for (message, version, *client), reason, count in frequent
        )

    def _groups(self) -> list[TrafficSums]:
        return [
            TrafficSums(Client(*key[:3]), *key[3:], *numbers)
            for key, numbers in self._traffic.sums.items()
        ]


def _failed(frames: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of the frames that could not be decoded."""
    place = FAILURES.names.index("bytes")
    rows = frames.select(FAILURES.names)
    # Only the first bytes are copied. A decoded frame's row contains no bytes.
    rows = rows.set_column(place, "bytes", pc.binary_slice(rows["bytes"], 0, SAMPLE_BYTES))
    return rows.filter(pc.equal(frames["outcome"], FAILED))


def _present(*numbers: int | None) -> list[int]:
    return [number for number in numbers if number is not None]
