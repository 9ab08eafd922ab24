"""What an audit is made from, summed up over rows of tables: as they are written, or finished.

Facts of a connection are joined by its name in the driver, part by part
(`flexwire.measures.ownership`). The result is bounded by clients times versions and by brokers
times APIs. So many of these are judged (`flexwire.measures.audit_rows`); the others are counted.
For clients against which something is found, the result grows with the different names of their
groups and topics.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.measures.audit_rows import (
    AUDITED,
    CONFIGURATION,
    CONNECTIONS,
    KAFKA,
    MECHANISM,
    MOST_CLIENTS,
    MOST_USES,
    NAMES,
    OF_LOG,
    REPLICA,
    SENT,
    TOLD,
    WHAT,
    Candidates,
    ChosenClients,
    by_analysis,
    hashes,
    kafka_rows,
    logged_connections,
    logged_rows,
    named_rows,
    offered,
    sent_rows,
    told_rows,
)
from flexwire.measures.cluster import CLUSTER_MESSAGES, ClusterSums, cluster_rows
from flexwire.measures.counters import DistinctCounter, hash_of
from flexwire.measures.evidence import (
    OFFERS_MESSAGE,
    SHOWN,
    SOFTWARE,
    NamedEntities,
    SeenClient,
    SeenUse,
    evidence_of,
    key_of,
)
from flexwire.measures.groups import CodedColumn, RowGroups, coded
from flexwire.measures.ownership import CONNECTION, ConnectionRows, RowKind, attributed, owning
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.tables.row_filter import FRAMES, MESSAGES
from flexwire.tables.spec_places import KINDS
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from flexwire.measures.evidence import AuditEvidence, Key, Offers, Software
    from flexwire.measures.groups import Numbers
    from flexwire.protocol.audit import Party

    _Ranges = dict[str, dict[int, tuple[int, int]]]

_REQUEST = "Request"
MOST_BROKERS = 10_000
"""What so many brokers offer is known."""
# Up to so many of the others are counted one by one, then about.
_MOST_COUNTED = 10_000


class AuditSums:
    """Partial sums of the evidence; ``spills``: those that the sums of all ranges go to."""

    def __init__(self, *, spills: bool = False) -> None:
        self._rows = ConnectionRows(AUDITED, spills=spills)
        # By broker and API what all responses offer: the highest of the lowest versions, and the
        # lowest of the highest.
        self._offers: _Ranges = {}
        self._others = DistinctCounter()
        self._cluster = ClusterSums()
        # Which clients are judged, once that is known, where not all are.
        self._chosen: ChosenClients | None = None

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows of the table of frames, of connections or of a message, or of `NAMES`."""
        own = by_analysis(rows)
        if table == FRAMES:
            self._rows.add(SENT, sent_rows(own))
        elif table == CONNECTIONS:
            self._rows.add(KAFKA, kafka_rows(own))
        elif table == NAMES:
            for told in named_rows(own):
                self._rows.add(TOLD, told)
        else:
            self._add_message(table.removeprefix(f"{MESSAGES}/"), rows, own)

    def _add_message(self, message: str, rows: pa.RecordBatch, own: pa.RecordBatch) -> None:
        # The name of a connection says its broker.
        if message in CLUSTER_MESSAGES:
            self._cluster.add(cluster_rows(message, rows))
        if message == OFFERS_MESSAGE:
            for broker, *one in offered(rows):
                self._offer(broker, *one)
            self._prune(2 * MOST_BROKERS)
        elif message.endswith(_REQUEST):
            for told in told_rows(message, own):
                self._rows.add(TOLD, told)

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
        self._others.merge(other._others, _MOST_COUNTED)
        self._cluster.merge(other._cluster)
        self._prune(2 * MOST_BROKERS)

    def _prune(self, most: int) -> None:
        """Keep what some brokers offer where there are more than so ``most``.

        Always the first in the alphabet: one that is left out of a part is left out of the whole.
        """
        if len(self._offers) > most:
            others = sorted(self._offers)[MOST_BROKERS:]
            for one in others:
                del self._offers[one]
            codes = np.array([hash_of(one.encode()) for one in others], np.uint64)
            self._others.add(codes, _MOST_COUNTED)

    def _offer(self, broker: str, api_key: int, lowest: int, highest: int) -> None:
        ranges = self._offers.setdefault(broker, {})
        known = ranges.get(api_key, (lowest, highest))
        ranges[api_key] = max(lowest, known[0]), min(highest, known[1])

    def evidence(self) -> AuditEvidence:
        """Give what was seen of every client."""
        self._prune(MOST_BROKERS)
        self._chosen = self._candidates()
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
        # Another release may be among those that are not known.
        known = offers if not self._others.count else {}
        found = evidence_of(uses.values(), clients, known, self._cluster.told())
        if self._chosen is not None:
            _, clients_out, requests_out = self._chosen
            found = replace(found, clients_left_out=clients_out, requests_left_out=requests_out)
        return replace(found, brokers_left_out=self._others.count)

    def _candidates(self) -> ChosenClients | None:
        """Which clients are judged, where there are too many."""
        if self._rows.count(SENT) <= min(MOST_CLIENTS, MOST_USES):
            return None  # no more clients than rows, nor uses
        every = Candidates()
        offers = {broker: hash(frozenset(told.items())) for broker, told in self._offers.items()}
        for part in self._parts():
            part.add_candidates(every, offers)
        return every.chosen()

    def touched(self, parties: Collection[Party]) -> dict[Key, NamedEntities]:
        """Give which groups and topics these clients named in requests."""
        keys = set(map(key_of, parties))
        names: defaultdict[Key, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for part in self._parts():
            for key, what, name in part.told(KINDS, keys):
                names[key][what].add(name)
        return {key: _touched(**found) for key, found in names.items()}

    def _parts(self) -> Iterator[_ConnectionPart]:
        return (_ConnectionPart(rows, self._chosen) for rows in self._rows.parts())


def _united(one: SeenUse, other: SeenUse) -> SeenUse:
    return one._replace(
        requests=one.requests + other.requests,
        first_us=min(one.first_us, other.first_us),
        last_us=max(one.last_us, other.last_us),
    )


def _touched(groups: Collection[str] = (), topics: Collection[str] = ()) -> NamedEntities:
    first = [tuple(sorted(some)[:SHOWN]) for some in (groups, topics)]
    return NamedEntities(first[0], len(groups), first[1], len(topics))


class _ConnectionPart:
    """All that is known of some connections: those that are Kafka, and show who sends on them."""

    def __init__(self, rows: dict[str, pa.RecordBatch], chosen: ChosenClients | None) -> None:
        logged = rows[OF_LOG]
        self._kafka = rows[KAFKA]
        if len(logged):
            of_logs = kafka_rows(logged_connections(logged))
            self._kafka = pa.concat_batches([self._kafka, of_logs])
        self._told, self._told_at = self._known(rows[TOLD])
        sent, _ = self._known(rows[SENT])
        self._sent, self._sent_at = self._known(attributed(sent, AUDITED[SENT]))
        # One row of each connection, of the client that the connection counts for.
        self._counts = np.zeros(len(self._sent), np.bool_)
        self._counts[owning(self._sent)] = True
        self._address = self._fact("address")
        # Captures tell no principal.
        self._principal = self._fact("principal")
        if chosen is not None:
            self._keep(np.isin(self._hashes(), chosen.clients))

    def _hashes(self) -> Numbers:
        """Of each row of what was sent, which client sent it."""
        named = self._sent["client_id"], self._address, self._principal
        return hashes(named, len(self._sent))

    def _keep(self, is_kept: Numbers) -> None:
        """Forget the other rows of what was sent."""
        kept = pa.array(is_kept)
        self._sent, self._sent_at = self._sent.filter(kept), self._sent_at[is_kept]
        self._counts = self._counts[is_kept]
        self._address, self._principal = self._address.filter(kept), self._principal.filter(kept)

    @cached_property
    def _groups(self) -> tuple[list[Key], Numbers]:
        """The clients, and by connection and client's number who sends on which, in order."""
        if not len(self._sent):
            return [], np.zeros((0, 2), np.int64)
        clients = RowGroups(
            coded(self._sent["client_id"]), coded(self._address), coded(self._principal)
        )
        members = np.unique(np.stack([self._sent_at, clients.of], axis=1), axis=0)
        return [*clients.values()], members

    def add_candidates(self, every: Candidates, offers: Mapping[str, int]) -> None:
        """Tell how much each client sent; of brokers ``offers`` says which offer the same."""
        sent, brokers = self._sent, self._fact("broker").dictionary_encode()
        alike = [offers.get(one, 0) for one in brokers.dictionary.to_pylist()]
        # An end that is not known has no broker.
        codes = np.asarray(brokers.indices.fill_null(len(alike)))
        offered_alike = np.array([*alike, 0], np.int64)[codes]
        flags = self._fact("from_start"), self._fact("is_closed_by_broker")
        told = *(sent[one] for one in _OF_A_USE), *flags, pa.array(offered_alike)
        every.add(self._hashes(), hashes(told, len(sent)), sent["requests"].to_numpy())

    def _known(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Numbers]:
        """Give the rows whose connection is Kafka, and of each which one it is."""
        place = pc.index_in(rows[CONNECTION], value_set=self._kafka[CONNECTION])
        return rows.filter(place.is_valid()), place.drop_null().to_numpy().astype(np.int64)

    def _fact(self, name: str) -> pa.Array:
        return self._kafka[name].take(pa.array(self._sent_at))

    def uses(self, offers: _Ranges) -> Iterator[SeenUse]:
        """Give every version that was sent, with the evidence of its connection around it."""
        sent, at = self._sent, self._sent_at
        asked = np.zeros(len(self._kafka), np.bool_)
        # Only ApiVersions says the software; of SASL's listeners request logs lack the request.
        is_told = np.asarray(sent[SOFTWARE[0]].is_valid())
        asked[at[is_told | (sent["api_key"].to_numpy() == api_key_of(NEGOTIATES))]] = True
        # A version that was answered once on the connection is one that the broker reads.
        is_unanswered = pc.equal(sent["answers"], 0)
        found = {
            "address": self._address,
            "principal": self._principal,
            "asked": pa.array(asked[at]),
            "from_start": self._fact("from_start"),
            "closed": pc.and_(self._fact("is_closed_by_broker"), is_unanswered),
            "broker": self._fact("broker"),
        }
        columns = [found[one] if one in found else sent[one] for one in _USES.schema.names]
        rows = _USES.united(pa.RecordBatch.from_arrays(columns, schema=_USES.schema))
        each = (rows.slice(start, _AT_ONCE) for start in range(0, len(rows), _AT_ONCE))
        for row in chain.from_iterable(one.to_pylist() for one in each):
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
        every, members = self._groups
        for connection, number in members.tolist():
            clients[every[number]].whole &= bool(from_start[connection])
        for key, software, count in self._owned():
            clients[key].connections[software] += count
        for key, what, name in self.told({MECHANISM, REPLICA, CONFIGURATION}):
            if what == REPLICA:
                clients[key].is_replica = True
            elif what == CONFIGURATION:
                clients[key].configured.add(name)
            else:
                clients[key].mechanisms.add(name)

    def _owned(self) -> Iterator[tuple[Key, Software, int]]:
        """Yield each client, the software that it names, and how many connections count for it."""
        own = pa.array(self._counts)
        rows, places = (
            self._sent.filter(own),
            (self._address.filter(own), self._principal.filter(own)),
        )
        if not len(rows):
            return
        columns = rows["client_id"], *places, *(rows[name] for name in SOFTWARE)
        groups = RowGroups(*map(coded, columns))
        for values, count in zip(groups.values(), groups.counts(), strict=True):
            yield values[:3], values[3:], count

    def told(
        self, wanted: Collection[str], keys: Collection[Key] | None = None
    ) -> Iterator[tuple[Key, str, str]]:
        """Give what requests told of the clients on their connection; of ``keys``, or of all."""
        every, members = self._groups
        if keys is not None:
            is_wanted = np.array([one in keys for one in every], np.bool_)
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
        one_each = RowGroups(*columns, CodedColumn(members[member, 1], every))
        for what, name, key in one_each.values():
            yield key, WHAT[what], name


_SENT_KEYS = AUDITED[SENT].keys
_OF_A_USE = (*SOFTWARE, "api_key", "api_version")
# So many rows are objects at once.
_AT_ONCE = 10_000
_USES = RowKind(
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
