"""The evidence for an audit, summed over rows of tables while they are written, or later.

The driver joins the facts about each connection by the connection's name, part by part
(`flexwire.measures.ownership`). The number of clients and versions, and the number of brokers and
APIs, limit the size of the result. `flexwire.measures.audit_rows` limits how many clients are
judged; further clients are only counted. For clients with findings, the size also grows with the
names of their groups and topics.
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
    STATED,
    WHAT,
    Candidates,
    ChosenClients,
    by_analysis,
    hashes,
    ids_of_lines_without,
    kafka_rows,
    logged_connections,
    logged_rows,
    named_rows,
    offered,
    sent_rows,
    stated_rows,
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
    from flexwire.tables.request_logs import LoggedIds

    _Ranges = dict[str, dict[int, tuple[int, int]]]

_REQUEST = "Request"
MOST_BROKERS = 10_000
"""The maximum number of brokers whose offered versions are kept."""
# Further brokers are counted exactly up to this number. Above it, the count is an estimate.
_MOST_COUNTED = 10_000


class AuditSums:
    """Partial sums of the evidence. With ``spills``, the sums of all ranges are merged here."""

    def __init__(self, *, spills: bool = False) -> None:
        self._rows = ConnectionRows(AUDITED, spills=spills)
        # The versions that all responses offer, by broker and API: from the highest of all lowest
        # versions to the lowest of all highest versions.
        self._offers: _Ranges = {}
        self._others = DistinctCounter()
        self._cluster = ClusterSums()
        # The clients to judge, once they have been chosen, or None if all clients are judged.
        self._chosen: ChosenClients | None = None

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows of the tables of frames, of connections, of a message, or of `NAMES`."""
        own = by_analysis(rows)
        if table == FRAMES:
            self._rows.add(SENT, sent_rows(own))
        elif table == CONNECTIONS:
            self._rows.add(KAFKA, kafka_rows(own))
        elif table == NAMES:
            for named in named_rows(own):
                self._rows.add(STATED, named)
        else:
            self._add_message(table.removeprefix(f"{MESSAGES}/"), rows, own)

    def _add_message(self, message: str, rows: pa.RecordBatch, own: pa.RecordBatch) -> None:
        # The name of a connection contains the connection's broker.
        if message in CLUSTER_MESSAGES:
            self._cluster.add(cluster_rows(message, rows))
        if message == OFFERS_MESSAGE:
            for broker, *offer in offered(rows):
                self._offer(broker, *offer)
            self._prune(2 * MOST_BROKERS)
        elif message.endswith(_REQUEST):
            for row in stated_rows(message, own):
                self._rows.add(STATED, row)

    def add_logged(self, rows: pa.RecordBatch) -> None:
        """Add facts about connections in request logs, as rows of `LOGGED`."""
        self._rows.add(OF_LOG, logged_rows(rows))

    def logged(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows for request logs in the table of connections."""
        return (logged_connections(rows[OF_LOG]) for rows in self._rows.parts())

    def ids_of_lines_without(self) -> Iterator[dict[str, LoggedIds]]:
        """Yield, by connection, the client's ids that some of its lines in request logs lack."""
        return (ids_of_lines_without(rows[OF_LOG]) for rows in self._rows.parts())

    def merge(self, other: AuditSums) -> None:
        """Add the sums of another task. That task must not spill."""
        self._rows.merge(other._rows)
        for broker, ranges in other._offers.items():
            for api_key, (lowest, highest) in ranges.items():
                self._offer(broker, api_key, lowest, highest)
        self._others.merge(other._others, _MOST_COUNTED)
        self._cluster.merge(other._cluster)
        self._prune(2 * MOST_BROKERS)

    def _prune(self, most: int) -> None:
        """Keep the versions offered by at most ``most`` brokers.

        The first brokers in alphabetical order are kept, so a broker that is dropped from a part is
        also dropped from the whole.
        """
        if len(self._offers) > most:
            others = sorted(self._offers)[MOST_BROKERS:]
            for name in others:
                del self._offers[name]
            codes = np.array([hash_of(name.encode()) for name in others], np.uint64)
            self._others.add(codes, _MOST_COUNTED)

    def _offer(self, broker: str, api_key: int, lowest: int, highest: int) -> None:
        ranges = self._offers.setdefault(broker, {})
        range_ = ranges.get(api_key, (lowest, highest))
        ranges[api_key] = max(lowest, range_[0]), min(highest, range_[1])

    def evidence(self) -> AuditEvidence:
        """Return the evidence about every client."""
        self._prune(MOST_BROKERS)
        self._chosen = self._candidates()
        uses: dict[SeenUse, SeenUse] = {}
        clients: defaultdict[Key, SeenClient] = defaultdict(SeenClient)
        for part in self._parts():
            part.add_clients(clients)
            for use in part.uses(self._offers):
                # Uses that differ only in the broker count as one use.
                alike = use._replace(requests=0, first_us=0, last_us=0)
                uses[alike] = _united(uses.get(alike, use._replace(requests=0)), use)
        offers: Offers = {
            broker: {api_key: Versions(*bounds) for api_key, bounds in ranges.items()}
            for broker, ranges in self._offers.items()
        }
        # A broker that was left out may have another release.
        offered_ranges = offers if not self._others.count else {}
        evidence = evidence_of(uses.values(), clients, offered_ranges, self._cluster.evidence())
        if self._chosen is not None:
            _, clients_out, requests_out = self._chosen
            evidence = replace(
                evidence, clients_left_out=clients_out, requests_left_out=requests_out
            )
        return replace(evidence, brokers_left_out=self._others.count)

    def _candidates(self) -> ChosenClients | None:
        """Return the clients to judge if there are too many, or None if all are judged."""
        if self._rows.count(SENT) <= min(MOST_CLIENTS, MOST_USES):
            return None  # There cannot be more clients or uses than rows.
        every = Candidates()
        offers = {
            broker: hash(frozenset(ranges.items())) for broker, ranges in self._offers.items()
        }
        for part in self._parts():
            part.add_candidates(every, offers)
        return every.chosen()

    def touched(self, parties: Collection[Party]) -> dict[Key, NamedEntities]:
        """Return the groups and topics in the requests of these clients."""
        keys = set(map(key_of, parties))
        names: defaultdict[Key, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for part in self._parts():
            for key, what, name in part.statements(KINDS, keys):
                names[key][what].add(name)
        return {key: _touched(**names) for key, names in names.items()}

    def _parts(self) -> Iterator[_ConnectionPart]:
        return (_ConnectionPart(rows, self._chosen) for rows in self._rows.parts())


def _united(use: SeenUse, other: SeenUse) -> SeenUse:
    return use._replace(
        requests=use.requests + other.requests,
        first_us=min(use.first_us, other.first_us),
        last_us=max(use.last_us, other.last_us),
    )


def _touched(groups: Collection[str] = (), topics: Collection[str] = ()) -> NamedEntities:
    first = [tuple(sorted(some)[:SHOWN]) for some in (groups, topics)]
    return NamedEntities(first[0], len(groups), first[1], len(topics))


class _ConnectionPart:
    """All facts about some of the connections that are Kafka and have a known client."""

    def __init__(self, rows: dict[str, pa.RecordBatch], chosen: ChosenClients | None) -> None:
        logged = rows[OF_LOG]
        self._kafka = rows[KAFKA]
        if len(logged):
            of_logs = kafka_rows(logged_connections(logged))
            self._kafka = pa.concat_batches([self._kafka, of_logs])
        self._stated, self._stated_at = self._of_part(rows[STATED])
        sent, _ = self._of_part(rows[SENT])
        self._sent, self._sent_at = self._of_part(attributed(sent, AUDITED[SENT]))
        # This column marks one row of each connection: a row sent by the client for which the
        # connection counts.
        self._counts = np.zeros(len(self._sent), np.bool_)
        self._counts[owning(self._sent)] = True
        self._address = self._fact("address")
        # Captures do not show principals.
        self._principal = self._fact("principal")
        if chosen is not None:
            self._keep(np.isin(self._hashes(), chosen.clients))

    def _hashes(self) -> Numbers:
        """The hash of the client that sent each request row."""
        named = self._sent["client_id"], self._address, self._principal
        return hashes(named, len(self._sent))

    def _keep(self, is_kept: Numbers) -> None:
        """Drop the request rows that are not kept."""
        mask = pa.array(is_kept)
        self._sent, self._sent_at = self._sent.filter(mask), self._sent_at[is_kept]
        self._counts = self._counts[is_kept]
        self._address, self._principal = self._address.filter(mask), self._principal.filter(mask)

    @cached_property
    def _groups(self) -> tuple[list[Key], Numbers]:
        """Return the clients, and which of them sends on each connection, in order."""
        if not len(self._sent):
            return [], np.zeros((0, 2), np.int64)
        clients = RowGroups(
            coded(self._sent["client_id"]), coded(self._address), coded(self._principal)
        )
        members = np.unique(np.stack([self._sent_at, clients.of], axis=1), axis=0)
        return [*clients.values()], members

    def add_candidates(self, every: Candidates, offers: Mapping[str, int]) -> None:
        """Count what each client has sent. ``offers`` shows which brokers offer equal versions."""
        sent, brokers = self._sent, self._fact("broker").dictionary_encode()
        alike = [offers.get(broker, 0) for broker in brokers.dictionary.to_pylist()]
        # A connection whose endpoints are unknown has no broker.
        codes = np.asarray(brokers.indices.fill_null(len(alike)))
        offered_alike = np.array([*alike, 0], np.int64)[codes]
        flags = self._fact("from_start"), self._fact("is_closed_by_broker")
        columns = *(sent[name] for name in _OF_A_USE), *flags, pa.array(offered_alike)
        every.add(self._hashes(), hashes(columns, len(sent)), sent["requests"].to_numpy())

    def _of_part(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Numbers]:
        """Return the rows on Kafka connections, and the number of each row's connection."""
        place = pc.index_in(rows[CONNECTION], value_set=self._kafka[CONNECTION])
        return rows.filter(place.is_valid()), place.drop_null().to_numpy().astype(np.int64)

    def _fact(self, name: str) -> pa.Array:
        return self._kafka[name].take(pa.array(self._sent_at))

    def uses(self, offers: _Ranges) -> Iterator[SeenUse]:
        """Yield every version that was sent, with the evidence from its connections."""
        sent, at = self._sent, self._sent_at
        asked = np.zeros(len(self._kafka), np.bool_)
        # Only ApiVersions contains the software, and request logs of SASL listeners lack that
        # request.
        is_stated = np.asarray(sent[SOFTWARE[0]].is_valid())
        asked[at[is_stated | (sent["api_key"].to_numpy() == api_key_of(NEGOTIATES))]] = True
        # If the broker has answered a version once on the connection, it can read that version.
        is_unanswered = pc.equal(sent["answers"], 0)
        computed = {
            "address": self._address,
            "principal": self._principal,
            "asked": pa.array(asked[at]),
            "from_start": self._fact("from_start"),
            "closed": pc.and_(self._fact("is_closed_by_broker"), is_unanswered),
            "broker": self._fact("broker"),
        }
        columns = [
            computed[name] if name in computed else sent[name] for name in _USES.schema.names
        ]
        rows = _USES.united(pa.RecordBatch.from_arrays(columns, schema=_USES.schema))
        each = (rows.slice(start, _AT_ONCE) for start in range(0, len(rows), _AT_ONCE))
        for row in chain.from_iterable(batch.to_pylist() for batch in each):
            ranges = offers.get(row.pop("broker"))
            lowest, highest = (ranges or {}).get(row["api_key"], (None, None))
            yield SeenUse(
                is_range_seen=ranges is not None,
                lowest=lowest,
                highest=highest,
                **row,
            )

    def add_clients(self, clients: defaultdict[Key, SeenClient]) -> None:
        """Add the known facts about clients, except their requests."""
        from_start = self._kafka["from_start"].to_numpy(zero_copy_only=False)
        every, members = self._groups
        for connection, number in members.tolist():
            clients[every[number]].whole &= bool(from_start[connection])
        for key, software, count in self._owned():
            clients[key].connections[software] += count
        for key, what, name in self.statements({MECHANISM, REPLICA, CONFIGURATION}):
            if what == REPLICA:
                clients[key].is_replica = True
            elif what == CONFIGURATION:
                clients[key].configured.add(name)
            else:
                clients[key].mechanisms.add(name)

    def _owned(self) -> Iterator[tuple[Key, Software, int]]:
        """Yield each client and its software, with the number of its connections."""
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

    def statements(
        self, row_kinds: Collection[str], keys: Collection[Key] | None = None
    ) -> Iterator[tuple[Key, str, str]]:
        """Yield facts from requests about the clients of connections, for ``keys`` or for all."""
        every, members = self._groups
        if keys is not None:
            is_wanted = np.array([key in keys for key in every], np.bool_)
            members = members[is_wanted[members[:, 1]]]
        codes = [WHAT.index(what) for what in row_kinds]
        is_stated = np.isin(self._stated["what"].to_numpy(), codes)
        rows, at = self._stated.filter(pa.array(is_stated)), self._stated_at[is_stated]
        first, last = (np.searchsorted(members[:, 0], at, side) for side in ("left", "right"))
        counts = last - first
        row = np.repeat(np.arange(len(rows)), counts)
        # If several clients send on a connection, the fact applies to each of them.
        member = np.arange(len(row)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        named = rows.select(["what", "name"]).take(pa.array(row))
        columns = coded(named["what"]), coded(named["name"])
        one_each = RowGroups(*columns, CodedColumn(members[member, 1], every))
        for what, name, key in one_each.values():
            yield key, WHAT[what], name


_SENT_KEYS = AUDITED[SENT].keys
_OF_A_USE = (*SOFTWARE, "api_key", "api_version")
# The maximum number of rows that become Python objects at the same time.
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
