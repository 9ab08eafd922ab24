"""The evidence of an audit, gathered from tables: what each client sent, and how it was received.

Spark groups; what comes to the driver is bounded by clients times versions, and by brokers times
APIs.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.protocol.audit import OPENING_APIS
from flexwire.spark.answers.touched import gather_touched
from flexwire.spark.cluster_told import (
    CLUSTER_MESSAGES,
    CLUSTER_ROWS,
    CONFIGURING,
    ClusterSums,
    cluster_rows,
)
from flexwire.spark.conducts import (
    API_VERSIONS,
    KEY,
    MECHANISMS_MESSAGE,
    OFFERS_MESSAGE,
    PORT,
    REPLICAS_MESSAGE,
    SOFTWARE,
    SeenClient,
    SeenUse,
    evidence_of,
)
from flexwire.spark.tasks import map_in_arrow
from flexwire.tables.keys import connection_key
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pyspark.sql import Column, Row

    from flexwire.protocol.audit import Party
    from flexwire.spark.conducts import ClusterTold, Evidence, Key, Offers, Touched

_SENT = (*KEY, *SOFTWARE, "api_key", "api_version")
_AROUND = ("asked", "from_start", "closed", "is_range_seen", "lowest", "highest")


@dataclass(frozen=True, slots=True)
class AuditTables:
    """The tables to audit; ``message`` gives that of one message, None where there is none."""

    frames: DataFrame
    connections: DataFrame
    message: Callable[[str], DataFrame | None]

    def known_connections(self) -> DataFrame:
        """The connections that are Kafka, with the client's address instead of its port."""
        is_kafka = self.connections.where("is_kafka")
        # A capture has none, nor has an earlier table; a broker's request log does.
        nobody = F.lit(None).cast("string")
        principal = F.col("principal") if "principal" in is_kafka.columns else nobody
        return is_kafka.select(
            *connection_key(is_kafka.columns),
            F.regexp_replace("client", PORT, "").alias("address"),
            "broker",
            F.col("seen_from_start").alias("from_start"),
            (F.col("closed_by") == "broker").alias("closed_by_broker"),
            principal.alias("principal"),
        )

    def requests(self) -> DataFrame:
        """The requests that say what they are, with `KEY` and the facts of their connection."""
        said = self.frames.where("direction = 'request' and api_key is not null")
        known = self.known_connections()
        if "principal" in said.columns:
            known = known.drop("principal")
        # Both tables have the addresses.
        return said.drop("client", "broker").join(known, [*connection_key(said.columns)])


@dataclass(frozen=True, slots=True)
class TableEvidence:
    """What an audit is made from, asked of tables by queries.

    ``sent`` says of each connection what its clients sent; ``messages`` have a table.
    """

    tables: AuditTables
    messages: Collection[str]
    sent: DataFrame

    def evidence(self) -> Evidence:
        """Gather it: three small tables to the driver."""
        offers = _offers(self.tables)
        ranges = _ranges(() if offers is None else offers.collect())
        uses = [SeenUse(*row) for row in _uses(self.sent, offers).collect()]
        clients: defaultdict[Key, SeenClient] = defaultdict(SeenClient)
        for row in _clients(self.sent, self.tables).collect():
            client = clients[row.client_id, row.address, row.principal]
            client.connections[row.client_software_name, row.client_software_version] += row.owned
            client.whole &= row.whole
            client.mechanisms |= {*(row.mechanisms or ())}
            client.is_replica |= bool(row.is_replica)
            client.configured |= {*(row.configured or ())}
        return evidence_of(uses, clients, ranges, cluster_told(self.tables))

    def touched(self, parties: Collection[Party]) -> dict[Key, Touched]:
        """Which groups and topics these clients named, from the tables of their requests."""
        connections = self.sent.select(*connection_key(self.sent.columns), *KEY).distinct()
        return gather_touched(self.tables.message, self.messages, connections, parties)


@contextmanager
def table_evidence(tables: AuditTables, messages: Collection[str]) -> Iterator[TableEvidence]:
    """Give what an audit asks of tables. Spark holds the rows about connections until the end."""
    # Every question is asked of these, and the frames are read once.
    sent = _sent(tables).persist()
    try:
        yield TableEvidence(tables, messages, sent)
    finally:
        sent.unpersist()


def _ranges(rows: Iterable[Row]) -> Offers:
    found: Offers = defaultdict(dict)
    for row in rows:
        found[row.broker][row.api_key] = Versions(row.lowest, row.highest)
    return found


def _offers(tables: AuditTables) -> DataFrame | None:
    """By broker and API: what all of its ApiVersions responses offer, so that no doubt is left."""
    responses = tables.message(OFFERS_MESSAGE)
    if responses is None:
        return None
    # An answer to a version that the broker does not know names ApiVersions alone (KIP-511).
    told = responses.where("body.error_code = 0")
    key = connection_key(told.columns)
    told = told.join(tables.known_connections().select(*key, "broker"), [*key])
    each = told.select("broker", F.explode("body.api_keys").alias("one"))
    return each.groupBy("broker", F.col("one.api_key").cast("int").alias("api_key")).agg(
        F.max("one.min_version").cast("int").alias("lowest"),
        F.min("one.max_version").cast("int").alias("highest"),
    )


def _sent(tables: AuditTables) -> DataFrame:
    """How often each client sent each version on each connection, and how often it was answered."""
    requests = tables.requests()
    key = connection_key(requests.columns)
    of_connection = (*key, "broker", "from_start", "closed_by_broker")
    sent = requests.groupBy(*of_connection, *_SENT).agg(
        F.count("*").alias("requests"),
        F.unix_micros(F.min("time")).alias("first_us"),
        F.unix_micros(F.max("time")).alias("last_us"),
        F.count_if("answered").alias("answers"),
    )
    whose = ("client_id", *SOFTWARE)
    by_owner = [*(one for one in _SENT if one not in whose), "owner", *whose]
    united = (
        _attributed(sent)
        .groupBy(*of_connection, *by_owner)
        .agg(
            F.sum("requests").alias("requests"),
            F.min("first_us").alias("first_us"),
            F.max("last_us").alias("last_us"),
            F.sum("answers").alias("answers"),
        )
    )
    # Of the owner's software it is that of most requests.
    of_software = Window.partitionBy(*key, "client_id", *SOFTWARE)
    most = F.sum("requests").over(of_software).alias("most")
    is_owner = F.col("client_id").eqNullSafe(F.col("owner")).alias("is_owner")
    names = [F.asc_nulls_last(name) for name in SOFTWARE]
    order = Window.partitionBy(*key).orderBy(F.desc("is_owner"), F.desc("most"), *names)
    first = F.dense_rank().over(order) == 1
    return united.select("*", most, is_owner).withColumn("is_owned", first & F.col("is_owner"))


def _attributed(sent: DataFrame) -> DataFrame:
    """The same with each connection's owner, as `flexwire.spark.sums.owners` has it."""
    key = connection_key(sent.columns)
    connection = Window.partitionBy(*key)
    client = Window.partitionBy(*key, "client_id")
    opens = F.col("api_key").isin(*OPENING_APIS)
    sent = sent.withColumns(
        {
            "further": F.sum(F.when(opens, 0).otherwise(F.col("requests"))).over(client),
            "every": F.sum("requests").over(client),
            "has_name": F.coalesce(F.length("client_id") > 0, F.lit(False)),
        }
    )
    order = connection.orderBy(
        F.desc("further"), F.desc("has_name"), F.desc("every"), F.asc_nulls_last("client_id")
    )
    software = F.struct(*SOFTWARE)
    named = F.collect_set(F.when(F.col(SOFTWARE[0]).isNotNull(), software)).over(connection)
    sent = sent.withColumns({"owner": F.first("client_id").over(order), "named": named})
    is_told = F.col(SOFTWARE[0]).isNull() & (F.size("named") == 1)
    alone = F.col("named")[0]
    told = {name: F.when(is_told, alone[name]).otherwise(F.col(name)) for name in SOFTWARE}
    client_id = F.when(F.col("further") == 0, F.col("owner")).otherwise(F.col("client_id"))
    return sent.withColumns({"client_id": client_id, **told})


def _uses(sent: DataFrame, offers: DataFrame | None) -> DataFrame:
    """How often each client sent each version with the same evidence around it, by `SeenUse`."""
    # Only ApiVersions says the software; of SASL's listeners request logs lack the request.
    is_asking = (F.col("api_key") == API_VERSIONS) | F.col(SOFTWARE[0]).isNotNull()
    asks = F.max(is_asking).alias("asked")
    key = connection_key(sent.columns)
    sent = sent.join(sent.groupBy(*key).agg(asks), [*key])
    sent = sent.withColumn("closed", _closed())
    if offers is None:
        nothing = F.lit(None).cast("int")
        sent = sent.withColumns({"lowest": nothing, "highest": nothing})
        sent = sent.withColumn("is_range_seen", F.lit(col=False))
    else:
        seen = offers.select("broker", F.lit(col=True).alias("is_range_seen")).distinct()
        sent = sent.join(F.broadcast(offers), ["broker", "api_key"], "left")
        sent = sent.join(F.broadcast(seen), "broker", "left")
    return sent.groupBy(*_SENT, *_AROUND).agg(
        F.sum("requests").alias("requests"),
        F.min("first_us").alias("first_us"),
        F.max("last_us").alias("last_us"),
    )


def _closed() -> Column:
    # A version that was answered once on the connection is one that the broker reads.
    return F.coalesce("closed_by_broker", F.lit(False)) & (F.col("answers") == 0)


def _clients(sent: DataFrame, tables: AuditTables) -> DataFrame:
    """What is known of each client besides its requests, by the software that it names."""
    of_connection = (*KEY, *SOFTWARE, *connection_key(sent.columns), "from_start")
    each = sent.groupBy(*of_connection).agg(F.max("is_owned").alias("is_owned"))
    mechanisms = F.collect_set("body.mechanism")
    each = _joined(each, tables.message(MECHANISMS_MESSAGE), mechanisms, "mechanisms")
    replica = F.greatest("body.replica_id", "body.replica_state.replica_id") >= 0
    each = _joined(each, tables.message(REPLICAS_MESSAGE), F.max(replica), "is_replica")
    each = _joined(each, _told(tables, CONFIGURING), F.collect_set("name"), "configured")
    return each.groupBy(*KEY, *SOFTWARE).agg(
        F.count_if("is_owned").alias("owned"),
        F.min("from_start").alias("whole"),
        F.array_distinct(F.flatten(F.collect_list("mechanisms"))).alias("mechanisms"),
        F.max("is_replica").alias("is_replica"),
        F.array_distinct(F.flatten(F.collect_list("configured"))).alias("configured"),
    )


def cluster_told(tables: AuditTables) -> ClusterTold:
    """Gather what responses tell of the cluster: a few rows to the driver."""
    sums = ClusterSums()
    rows = _told(tables, CLUSTER_MESSAGES)
    if rows is not None:
        found = [row.asDict() for row in rows.distinct().collect()]
        sums.add(pa.RecordBatch.from_pylist(found, CLUSTER_ROWS))
    return sums.told()


def _told(tables: AuditTables, messages: Sequence[str]) -> DataFrame | None:
    """What the tables of messages tell of the cluster, as `CLUSTER_ROWS`; None without a table."""
    found = []
    known = tables.known_connections().select("connection")
    for name in messages:
        table = tables.message(name)
        if table is not None:
            rows = table.select("connection", "body_version", "body")
            rows = rows.join(F.broadcast(known), "connection", "left_semi")
            found.append(map_in_arrow(rows, partial(_rows_of, name), CLUSTER_ROWS))
    return reduce(DataFrame.unionByName, found) if found else None


def _rows_of(message: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in batches:
        yield cluster_rows(message, rows)


def _joined(rows: DataFrame, table: DataFrame | None, told: Column, name: str) -> DataFrame:
    """The rows with what a message's table says of their connection; null where it does not."""
    if table is None:
        kind = "boolean" if name == "is_replica" else "array<string>"
        return rows.withColumn(name, F.lit(None).cast(kind))
    key = connection_key(table.columns)
    return rows.join(table.groupBy(*key).agg(told.alias(name)), [*key], "left")
