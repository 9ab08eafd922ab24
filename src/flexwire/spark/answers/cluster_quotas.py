"""Quotas of clients by the log of a cluster's metadata: `cluster_quotas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_quotas import COLUMNS as OF_QUOTAS
from flexwire.spark.internal_topics.cluster_quotas import client_quotas
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

COLUMNS = (
    Column("entity", pa.list_(pa.string()), "whom it is for: user=alice, client-id=etl; one that "
           "ends with = is the default of its type"),
    *OF_QUOTAS[1:],
)  # fmt: skip


def cluster_quotas(tables: AnalysisTables) -> DataFrame:
    """Give a row for each quota of users, client ids and addresses in the cluster's metadata."""
    state = None if tables.internal is None else tables.internal.cluster()
    if state is None:
        return no_rows(tables.frames, COLUMNS)
    entity = F.transform(
        "entity", lambda one: F.concat(one["type"], F.lit("="), F.coalesce(one["name"], F.lit("")))
    )
    made = client_quotas(state).withColumn("entity", entity)
    return made.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_quotas",
    "Who is limited, and to what?",
    "Quotas of clients as the cluster's metadata has them.",
    "Compare them with what clients take (chargeback), and with throttle times in responses: a "
    "quota that is reached slows its client down.",
    "a quota",
    COLUMNS,
    ("entity", "quota"),
    (
        ShownColumn("entity", "Of", is_about=True),
        ShownColumn("quota", "Quota", is_about=True),
        ShownColumn("value", "Value", "count"),
        ShownColumn("changed_time", "Changed", "moment"),
    ),
    cluster_quotas,
    asks=(InternalTopic.METADATA.topic,),
)
