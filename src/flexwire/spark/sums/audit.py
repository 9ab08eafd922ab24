"""What an audit is made from, summed up by the tasks that write the tables.

It is what `flexwire.spark.answers` asks of finished tables. Facts of a connection are joined by
its name in the driver, part by part (`flexwire.spark.sums.by_connection`). What comes of it is
bounded by clients times versions and by brokers times APIs, and for clients against which something
is found by the different names of their groups and topics.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.spark.conducts import (
    API_VERSIONS,
    OFFERS_MESSAGE,
    SHOWN,
    SOFTWARE,
    SeenClient,
    SeenUse,
    Touched,
    evidence_of,
    key_of,
)
from flexwire.spark.sums.audit_rows import (
    AUDITED,
    KAFKA,
    MECHANISM,
    OF_LOG,
    REPLICA,
    SENT,
    TOLD,
    WHAT,
    kafka_rows,
    logged_connections,
    logged_rows,
    offered,
    sent_rows,
    told_rows,
)
from flexwire.spark.sums.by_connection import CONNECTION, Kind, RowsByConnection
from flexwire.spark.sums.groups import Coded, Groups, coded
from flexwire.tables.entities import KINDS
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from flexwire.protocol.audit import Party
    from flexwire.spark.conducts import Evidence, Key, Offers

    Array = np.ndarray[Any, np.dtype[Any]]

    _Ranges = dict[str, dict[int, tuple[int, int]]]

_REQUEST = "Request"


class AuditSums:
    """Partial sums of the evidence; ``spills``: those that the sums of all ranges go to."""

    def __init__(self, *, spills: bool = False) -> None:
        self._rows = RowsByConnection(AUDITED, spills=spills)
        # By broker and API what all responses offer: the highest of the lowest versions, and the
        # lowest of the highest.
        self._offers: _Ranges = {}

    def add_frames(self, frames: pa.RecordBatch) -> None:
        """Add rows of the table of frames."""
        self._rows.add(SENT, sent_rows(frames))

    def add_messages(self, message: str, rows: pa.RecordBatch) -> None:
        """Add rows of a message's table."""
        if message == OFFERS_MESSAGE:
            for broker, *one in offered(rows):
                self._offer(broker, *one)
        elif message.endswith(_REQUEST):
            for told in told_rows(message, rows):
                self._rows.add(TOLD, told)

    def add_connections(self, connections: pa.RecordBatch) -> None:
        """Add rows of the table of connections."""
        self._rows.add(KAFKA, kafka_rows(connections))

    def add_logged(self, rows: pa.RecordBatch) -> None:
        """Add what lines of request logs say of connections, as `LOGGED` has it."""
        self._rows.add(OF_LOG, logged_rows(rows))

    def logged(self) -> Iterator[pa.RecordBatch]:
        """Give the rows of the table of connections for those of request logs."""
        return (logged_connections(rows[OF_LOG]) for rows in self._rows.parts())

    def merge(self, other: AuditSums) -> None:
        """Add what another one has, which does not spill."""
        self._rows.merge(other._rows)
        for broker, ranges in other._offers.items():
            for api_key, (lowest, highest) in ranges.items():
                self._offer(broker, api_key, lowest, highest)

    def _offer(self, broker: str, api_key: int, lowest: int, highest: int) -> None:
        ranges = self._offers.setdefault(broker, {})
        known = ranges.get(api_key, (lowest, highest))
        ranges[api_key] = max(lowest, known[0]), min(highest, known[1])

    def evidence(self) -> Evidence:
        """Give what was seen of every client."""
        uses: dict[SeenUse, SeenUse] = {}
        clients: defaultdict[Key, SeenClient] = defaultdict(SeenClient)
        for part in self._parts():
            part.add_clients(clients)
            for one in part.uses(self._offers):
                # What differs by broker alone is one.
                alike = one._replace(requests=0, first_us=0, last_us=0)
                uses[alike] = _united(uses.get(alike, one._replace(requests=0)), one)
        offers: Offers = {
            broker: {api_key: Versions(*one) for api_key, one in ranges.items()}
            for broker, ranges in self._offers.items()
        }
        return evidence_of(uses.values(), clients, offers)

    def touched(self, parties: Collection[Party]) -> dict[Key, Touched]:
        """Give which groups and topics these clients named in requests."""
        keys = set(map(key_of, parties))
        names: defaultdict[Key, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for part in self._parts():
            for key, what, name in part.told(KINDS, keys):
                names[key][what].add(name)
        return {key: _touched(**found) for key, found in names.items()}

    def _parts(self) -> Iterator[_Part]:
        return (_Part(rows) for rows in self._rows.parts())


def _united(one: SeenUse, other: SeenUse) -> SeenUse:
    return one._replace(
        requests=one.requests + other.requests,
        first_us=min(one.first_us, other.first_us),
        last_us=max(one.last_us, other.last_us),
    )


def _touched(groups: Collection[str] = (), topics: Collection[str] = ()) -> Touched:
    first = [tuple(sorted(some)[:SHOWN]) for some in (groups, topics)]
    return Touched(first[0], len(groups), first[1], len(topics))


class _Part:
    """All that is known of some connections: those that are Kafka, and show who sends on them."""

    def __init__(self, rows: dict[str, pa.RecordBatch]) -> None:
        logged = rows[OF_LOG]
        self._kafka = rows[KAFKA]
        if len(logged):
            of_logs = kafka_rows(logged_connections(logged))
            self._kafka = pa.concat_batches([self._kafka, of_logs])
        self._told, self._told_at = self._known(rows[TOLD])
        self._sent, self._sent_at = self._known(rows[SENT])
        self._address = self._fact("address")
        # Captures tell no principal.
        self._principal = self._fact("principal")
        clients = Groups(
            coded(self._sent["client_id"]), coded(self._address), coded(self._principal)
        )
        self._clients: list[Key] = [*clients.values()]
        # By connection and client's number who sends on which, in order.
        self._members = np.unique(np.stack([self._sent_at, clients.of], axis=1), axis=0)

    def _known(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Array]:
        """Give the rows whose connection is Kafka, and of each which one it is."""
        place = pc.index_in(rows[CONNECTION], value_set=self._kafka[CONNECTION])
        return rows.filter(place.is_valid()), place.drop_null().to_numpy().astype(np.int64)

    def _fact(self, name: str) -> pa.Array:
        return self._kafka[name].take(pa.array(self._sent_at))

    def uses(self, offers: _Ranges) -> Iterator[SeenUse]:
        """Give every version that was sent, with the evidence of its connection around it."""
        sent, at = self._sent, self._sent_at
        asked = np.zeros(len(self._kafka), np.bool_)
        asked[at[sent["api_key"].to_numpy() == API_VERSIONS]] = True
        # A version that was answered once on the connection is one that the broker reads.
        is_unanswered = pc.equal(sent["answers"], 0)
        # Of SASL's listeners request logs lack ApiVersions, which alone says the software.
        is_asking = asked[at] | np.asarray(sent[SOFTWARE[0]].is_valid())
        found = {
            "address": self._address,
            "principal": self._principal,
            "asked": pa.array(is_asking),
            "from_start": self._fact("from_start"),
            "closed": pc.and_(self._fact("is_closed_by_broker"), is_unanswered),
            "broker": self._fact("broker"),
        }
        columns = [found[one] if one in found else sent[one] for one in _USES.schema.names]
        rows = _USES.united(pa.RecordBatch.from_arrays(columns, schema=_USES.schema))
        for row in rows.to_pylist():
            ranges = offers.get(row.pop("broker"))
            lowest, highest = (ranges or {}).get(row["api_key"], (None, None))
            yield SeenUse(
                is_range_seen=ranges is not None,
                lowest=lowest,
                highest=highest,
                **row,
            )

    def add_clients(self, clients: defaultdict[Key, SeenClient]) -> None:
        """Tell what is known of clients besides their requests."""
        from_start = self._kafka["from_start"].to_numpy(zero_copy_only=False)
        for connection, number in self._members.tolist():
            client = clients[self._clients[number]]
            client.connections += 1
            client.whole &= bool(from_start[connection])
        for key, what, name in self.told({MECHANISM, REPLICA}):
            if what == REPLICA:
                clients[key].is_replica = True
            else:
                clients[key].mechanisms.add(name)

    def told(
        self, wanted: Collection[str], keys: Collection[Key] | None = None
    ) -> Iterator[tuple[Key, str, str]]:
        """Give what requests told of the clients on their connection; of ``keys``, or of all."""
        members = self._members
        if keys is not None:
            is_wanted = np.array([one in keys for one in self._clients], np.bool_)
            members = members[is_wanted[members[:, 1]]]
        codes = [WHAT.index(what) for what in wanted]
        is_told = np.isin(self._told["what"].to_numpy(), codes)
        told, at = self._told.filter(pa.array(is_told)), self._told_at[is_told]
        first, last = (np.searchsorted(members[:, 0], at, side) for side in ("left", "right"))
        counts = last - first
        row = np.repeat(np.arange(len(told)), counts)
        # Of a connection on which several send, each is told of.
        member = np.arange(len(row)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        found = told.select(["what", "name"]).take(pa.array(row))
        columns = coded(found["what"]), coded(found["name"])
        one_each = Groups(*columns, Coded(members[member, 1], self._clients))
        for what, name, key in one_each.values():
            yield key, WHAT[what], name


_SENT_KEYS = AUDITED[SENT].keys
_USES = Kind(
    pa.schema(
        [
            *(_SENT_KEYS.field(name) for name in ("client_id", *SOFTWARE)),
            *(_SENT_KEYS.field(name) for name in ("api_key", "api_version")),
            *((name, pa.string()) for name in ("address", "principal", "broker")),
            *((name, pa.bool_()) for name in ("asked", "from_start", "closed")),
        ]
    ),
    {name: how for name, how in AUDITED[SENT].sums.items() if name != "answers"},
)
