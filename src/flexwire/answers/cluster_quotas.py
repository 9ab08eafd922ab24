"""Quotas of clients by the log of a cluster's metadata: `cluster_quotas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.nothing import returns
from flexwire.answers.state.cluster_quotas import COLUMNS as OF_QUOTAS
from flexwire.answers.state.cluster_quotas import client_quotas
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

COLUMNS = (
    Column("entity", pa.list_(pa.string()), "whom it is for: user=alice, client-id=etl; one that "
           "ends with = is the default of its type", heading="Of", is_about=True),
    *OF_QUOTAS[1:],
)  # fmt: skip


@returns(COLUMNS)
def cluster_quotas(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each quota of users, client ids and addresses in the cluster's metadata."""
    state = tables.cluster()
    if state is None:
        return None
    entity = F.transform(
        "entity", lambda one: F.concat(one["type"], F.lit("="), F.coalesce(one["name"], F.lit("")))
    )
    return client_quotas(state).withColumn("entity", entity)


ANSWER = Answer(
    name="cluster_quotas",
    place=350,
    question="Who is limited, and to what?",
    meaning="Quotas of clients as the cluster's metadata has them.",
    advice="Compare them with what clients take (chargeback), and with throttle times in "
    "responses: a quota that is reached slows its client down.",
    row="a quota",
    columns=COLUMNS,
    order=("entity", "quota"),
    ask=cluster_quotas,
    asks=(InternalTopic.METADATA.topic,),
)
