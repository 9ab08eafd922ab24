"""The evidence of an audit, gathered from tables: what each client sent, and how it was received.

Spark groups; what comes to the driver is bounded by clients times versions, and by brokers times
APIs.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.protocol.audit import Conduct, Party, Use, fitting_releases, role_of
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Column, DataFrame, Row

    from flexwire.protocol.audit import Asked

# Where brokers say what they read, where clients say how they authenticate, and who fetches.
_OFFERS, _HANDSHAKES, _FETCHES = "ApiVersionsResponse", "SaslHandshakeRequest", "FetchRequest"
_API_VERSIONS = 18
_SOFTWARE = ("client_software_name", "client_software_version")
# What tells clients apart; software is per connection, and a client that never asks has none.
KEY = ("client_id", "address", "principal")
_Key = tuple[str | None, str | None, str | None]
_Software = tuple[str | None, str | None]
_USED = ("api_key", "api_version", "asked", "from_start", "closed", "is_range_seen")


@dataclass(frozen=True, slots=True)
class AuditTables:
    """The tables to audit; ``message`` gives that of one message, None where there is none."""

    frames: DataFrame
    connections: DataFrame
    message: Callable[[str], DataFrame | None]

    def known_connections(self) -> DataFrame:
        """The connections that are Kafka, with the client's address instead of its port."""
        is_kafka = self.connections.where("is_kafka")
        return is_kafka.select(
            "connection",
            # An IPv6 address stands in brackets, and has colons too.
            F.regexp_replace("client", r":\d+$", "").alias("address"),
            "broker",
            F.col("seen_from_start").alias("from_start"),
            (F.col("closed_by") == "broker").alias("closed_by_broker"),
        )

    def requests(self) -> DataFrame:
        """The requests that say what they are, with `KEY` and the facts of their connection."""
        said = self.frames.where("direction = 'request' and api_key is not null")
        if "principal" not in said.columns:
            # A capture has none; a broker's request log does.
            said = said.withColumn("principal", F.lit(None).cast("string"))
        # Both tables have the addresses.
        return said.drop("client", "broker").join(self.known_connections(), "connection")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of every client, and of which releases the brokers may be.

    ``connections`` are those of each client: "connection" and `KEY`.
    """

    conducts: dict[Party, Conduct]
    brokers: tuple[str, ...]
    connections: DataFrame

    @property
    def clients(self) -> dict[Party, Conduct]:
        """Those that are neither brokers nor controllers."""
        return {one: seen for one, seen in self.conducts.items() if seen.role == "client"}


@contextmanager
def gathered_evidence(tables: AuditTables) -> Iterator[Evidence]:
    """Gather all evidence: three small tables to the driver. Spark holds its rows until the end."""
    offers = _offers(tables)
    ranges = None if offers is None else offers.collect()
    # Every question is asked of these, and the frames are read once.
    sent = _sent(tables).persist()
    try:
        uses = _uses(sent, offers).collect()
        parties = {_key(row): row for row in _parties(sent, tables).collect()}
        connections = sent.select("connection", *KEY).distinct()
        yield Evidence(_conducts(uses, parties), _brokers(ranges or ()), connections)
    finally:
        sent.unpersist()


def _key(row: Row) -> _Key:
    return row.client_id, row.address, row.principal


def _software(row: Row) -> _Software:
    return row.client_software_name, row.client_software_version


def _offers(tables: AuditTables) -> DataFrame | None:
    """By broker and API: what all of its ApiVersions responses offer, so that no doubt is left."""
    responses = tables.message(_OFFERS)
    if responses is None:
        return None
    # An answer to a version that the broker does not know names ApiVersions alone (KIP-511).
    told = responses.where("body.error_code = 0")
    told = told.join(tables.known_connections().select("connection", "broker"), "connection")
    each = told.select("broker", F.explode("body.api_keys").alias("one"))
    return each.groupBy("broker", F.col("one.api_key").cast("int").alias("api_key")).agg(
        F.max("one.min_version").cast("int").alias("lowest"),
        F.min("one.max_version").cast("int").alias("highest"),
    )


def _sent(tables: AuditTables) -> DataFrame:
    """How often each client sent each version on each connection, and how often it was answered."""
    of_connection = ("connection", "broker", "from_start", "closed_by_broker", *KEY, *_SOFTWARE)
    requests = tables.requests()
    return requests.groupBy(*of_connection, "api_key", "api_version").agg(
        F.count("*").alias("requests"),
        F.unix_micros(F.min("time")).alias("first_us"),
        F.unix_micros(F.max("time")).alias("last_us"),
        F.count_if("answered").alias("answers"),
    )


def _uses(sent: DataFrame, offers: DataFrame | None) -> DataFrame:
    """How often each client sent each version with the same evidence around it."""
    asks = F.max(F.col("api_key") == _API_VERSIONS).alias("asked")
    sent = sent.join(sent.groupBy("connection").agg(asks), "connection")
    sent = sent.withColumn("closed", _closed())
    if offers is None:
        nothing = F.lit(None).cast("int")
        sent = sent.withColumns({"lowest": nothing, "highest": nothing})
        sent = sent.withColumn("is_range_seen", F.lit(col=False))
    else:
        seen = offers.select("broker", F.lit(col=True).alias("is_range_seen")).distinct()
        sent = sent.join(F.broadcast(offers), ["broker", "api_key"], "left")
        sent = sent.join(F.broadcast(seen), "broker", "left")
    return sent.groupBy(*KEY, *_SOFTWARE, *_USED, "lowest", "highest").agg(
        F.sum("requests").alias("requests"),
        F.min("first_us").alias("first_us"),
        F.max("last_us").alias("last_us"),
    )


def _closed() -> Column:
    # A version that was answered once on the connection is one that the broker reads.
    return F.coalesce("closed_by_broker", F.lit(False)) & (F.col("answers") == 0)


def _parties(sent: DataFrame, tables: AuditTables) -> DataFrame:
    """What is known of each client besides its requests."""
    each = sent.groupBy(*KEY, "connection", "from_start").agg(
        F.collect_set("api_key").alias("api_keys")
    )
    each = _joined(each, tables.message(_HANDSHAKES), F.collect_set("body.mechanism"), "mechanisms")
    replica = F.greatest("body.replica_id", "body.replica_state.replica_id") >= 0
    each = _joined(each, tables.message(_FETCHES), F.max(replica), "is_replica")
    return each.groupBy(*KEY).agg(
        F.count("*").alias("connections"),
        F.min("from_start").alias("whole"),
        F.array_distinct(F.flatten(F.collect_list("api_keys"))).alias("api_keys"),
        F.array_distinct(F.flatten(F.collect_list("mechanisms"))).alias("mechanisms"),
        F.max("is_replica").alias("is_replica"),
    )


def _joined(rows: DataFrame, table: DataFrame | None, told: Column, name: str) -> DataFrame:
    """The rows with what a message's table says of their connection; null where it does not."""
    if table is None:
        kind = "array<string>" if name == "mechanisms" else "boolean"
        return rows.withColumn(name, F.lit(None).cast(kind))
    return rows.join(table.groupBy("connection").agg(told.alias(name)), "connection", "left")


def _brokers(ranges: Iterable[Row]) -> tuple[str, ...]:
    """The releases that the brokers may be; none where one of them is of no release."""
    offered: defaultdict[str, dict[int, Versions]] = defaultdict(dict)
    for row in ranges:
        offered[row.broker][row.api_key] = Versions(row.lowest, row.highest)
    fitting = [fitting_releases(one) for one in offered.values()]
    if not fitting or not all(fitting):
        return ()
    # In the catalog's order, whose names do not sort like numbers.
    return tuple(dict.fromkeys(one for some in sorted(fitting, key=len) for one in some))


def _conducts(uses: list[Row], parties: dict[_Key, Row]) -> dict[Party, Conduct]:
    named: defaultdict[_Key, set[_Software]] = defaultdict(set)
    asking = set()
    for row in uses:
        if row.client_software_name is not None:
            named[_key(row)].add(_software(row))
        if row.asked:
            asking.add(_key(row))
    found: defaultdict[Party, list[Use]] = defaultdict(list)
    for row in uses:
        key, software = _key(row), _software(row)
        if software[0] is None and len(named[key]) == 1:
            # It says so on one of its connections, and is the same client on the others.
            (software,) = named[key]
        found[Party(*key, *software)].append(_use(row, is_asking=key in asking))
    return {
        party: _conduct(tuple(own), parties[party.client_id, party.address, party.principal])
        for party, own in found.items()
    }


def _use(row: Row, *, is_asking: bool) -> Use:
    asked: Asked = "here" if row.asked else "elsewhere" if is_asking else "unseen"
    if row.from_start and asked == "unseen":
        asked = "never"
    offered = Versions.NONE if row.is_range_seen else None
    if row.highest is not None:
        offered = Versions(row.lowest, row.highest)
    return Use(
        row.api_key,
        row.api_version,
        row.requests,
        row.first_us,
        row.last_us,
        asked,
        offered,
        closed=row.closed,
    )


def _conduct(uses: tuple[Use, ...], seen: Row) -> Conduct:
    return Conduct(
        role_of(seen.api_keys, is_replica=bool(seen.is_replica)),
        uses,
        connections=seen.connections,
        mechanisms=frozenset(seen.mechanisms or ()),
        whole=bool(seen.whole),
    )
