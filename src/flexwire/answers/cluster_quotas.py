"""The client quotas in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state.cluster import CHANGE_COLUMNS, changed, latest
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


QUOTA: Final = "ClientQuotaRecord"
READS: Final = {QUOTA: ("entity", "key", "value", "remove")}
VIEW_COLUMNS: Final = (
    Column(
        "entity",
        pa.list_(pa.struct({"type": pa.string(), "name": pa.string()})),
        "the entity that the quota applies to: user, client-id and ip, in this order; a null name "
        "means the default for this entity type",
    ),
    Column(
        "quota",
        pa.string(),
        "the name of the quota, such as producer_byte_rate",
        heading="Quota",
        is_about=True,
    ),
    Column("value", pa.float64(), "the limit", heading="Value"),
    *CHANGE_COLUMNS,
)


def client_quotas(state: ClusterState) -> DataFrame:
    """Return a row for each quota that is set."""
    rows = state.typed(READS).withColumn(
        "entity",
        F.array_sort(
            F.transform(
                f"{QUOTA}.entity",
                lambda entity: F.struct(
                    entity["entity_type"].alias("type"), entity["entity_name"].alias("name")
                ),
            )
        ),
    )
    last = latest(rows.withColumn("quota", F.col(f"{QUOTA}.key")), "entity", "quota")
    return last.where(~F.col(f"{QUOTA}.remove")).select(
        "entity", "quota", f"{QUOTA}.value", *changed()
    )


COLUMNS = (
    Column("entity", pa.list_(pa.string()), (
        "the entity to which the quota applies: user=alice, client-id=etl; an entry that ends "
        "with = stands for the default for this entity type"
    ), heading="Entity", is_about=True),
    *VIEW_COLUMNS[1:],
)  # fmt: skip


@returns(COLUMNS)
def cluster_quotas(tables: AnalysisTables) -> DataFrame | None:
    """Return the quotas of users, client ids and addresses in the cluster's metadata."""
    state = tables.cluster()
    if state is None:
        return None
    entity = F.transform(
        "entity",
        lambda entity: F.concat(entity["type"], F.lit("="), F.coalesce(entity["name"], F.lit(""))),
    )
    return client_quotas(state).withColumn("entity", entity)


ANSWER = Answer(
    name="cluster_quotas",
    place=350,
    question="Which clients have quotas, and how high are these quotas?",
    meaning="Client quotas in the cluster's metadata.",
    advice="Compare each quota with the bytes that the client sends and receives (chargeback), and "
    "with the throttle times in responses. Brokers slow down a client that reaches its quota.",
    row="a quota",
    columns=COLUMNS,
    order=("entity", "quota"),
    ask=cluster_quotas,
    asks=(InternalTopic.METADATA.topic,),
)
