"""Misrouted connections: clients that reached a different broker or cluster than intended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, address, returns
from flexwire.answers.asking.messages import exchanges
from flexwire.columnar.record_columns import MOMENT
from flexwire.protocol.error_codes import ERROR_NAMES
from flexwire.tables.keys import connection_key
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

# The error with which a broker refuses a client that meant to reach another broker (KIP-1242).
_REFUSED: Final = next(code for code, name in ERROR_NAMES.items() if name == "REBOOTSTRAP_REQUIRED")
_BY: Final = ("client_id", "address", "broker", "cluster_id", "node_id")
COLUMNS: Final = (
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("address", pa.string(), "the client's host", heading="Host"),
    Column("broker", pa.string(), "the address and port of the broker that the client reached",
           heading="Broker reached", is_about=True),
    Column("cluster_id", pa.string(), "the id of the cluster that the client wanted to reach",
           "if the client sends no cluster id, for example in ApiVersions before version 5",
           heading="Intended cluster"),
    Column("node_id", pa.int32(), "the id of the broker that the client wanted to reach",
           "if the client sends no broker id", heading="Intended broker"),
    Column("connections", pa.int64(), "how many connections the broker refused",
           heading="Refused"),
    Column("first_time", MOMENT, "when the first connection was refused", heading="From"),
    Column("last_time", MOMENT, "when the last connection was refused", heading="To"),
)  # fmt: skip


@returns(COLUMNS)
def misrouted(tables: AnalysisTables) -> DataFrame | None:
    """Return connections that a broker refused because the client wanted to reach another broker.

    Since KIP-1242 (Kafka 4.4), a client can state in ApiVersions which broker of which cluster it
    wants to reach. If another broker receives the request, that broker responds with
    REBOOTSTRAP_REQUIRED. Older brokers and clients do not check this, so their misrouted
    connections are not listed. Neither are connections whose first request and response were not
    captured.
    """
    asked = exchanges(tables, "ApiVersions")
    # A catalog that contains only releases before 4.4 does not contain these fields.
    if asked is None or "node_id" not in asked.select("request.*").columns:
        return None
    refused = asked.where(F.col("response.error_code") == _REFUSED)
    key = connection_key(refused.columns)
    ends = tables.connections.select(*key, "broker", address(F.col("client")))
    node_id = F.col("request.node_id")
    rows = refused.join(ends, [*key]).select(
        *key,
        "client_id",
        "address",
        "broker",
        F.nullif("request.cluster_id", F.lit("")).alias("cluster_id"),
        F.when(node_id >= 0, node_id).alias("node_id"),
        "answered",
    )
    return rows.groupBy(*_BY).agg(
        F.count_distinct(*key).alias("connections"),
        F.min("answered").alias("first_time"),
        F.max("answered").alias("last_time"),
    )


ANSWER: Final = Answer(
    name="misrouted",
    place=105,
    question="Which connections reached the wrong broker or cluster?",
    meaning="Connections that a broker of Kafka 4.4 or later refused with REBOOTSTRAP_REQUIRED, "
    "because the client wanted to reach another broker or cluster (KIP-1242).",
    advice=(
        "Find out which machine the broker's address in the row leads to. DNS, a load balancer or "
        "a service mesh may send the client to another machine, or the address may now belong to "
        "another cluster. Correct the address in DNS, the load balancer or the service mesh, or "
        "correct advertised.listeners on the broker that the client wanted to reach."
    ),
    row="a combination of a client id at a host, the broker that the client reached, and the "
    "broker that the client wanted to reach",
    columns=COLUMNS,
    order=("-connections", *_BY),
    ask=misrouted,
)
