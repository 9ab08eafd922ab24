"""The quotas of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import CHANGE_COLUMNS, changed, latest
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

QUOTA: Final = "ClientQuotaRecord"
READS: Final = {QUOTA: ("entity", "key", "value", "remove")}
COLUMNS: Final = (
    Column(
        "entity",
        pa.list_(pa.struct({"type": pa.string(), "name": pa.string()})),
        "whom it is for: user, client-id and ip, in the order of the types; a name that is null is "
        "the default of its type",
    ),
    Column(
        "quota", pa.string(), "which quota, as producer_byte_rate", heading="Quota", is_about=True
    ),
    Column("value", pa.float64(), "what it allows", heading="Value"),
    *CHANGE_COLUMNS,
)


def client_quotas(state: ClusterState) -> DataFrame:
    """A row a quota that is set."""
    rows = state.typed(READS).withColumn(
        "entity",
        F.array_sort(
            F.transform(
                f"{QUOTA}.entity",
                lambda one: F.struct(
                    one["entity_type"].alias("type"), one["entity_name"].alias("name")
                ),
            )
        ),
    )
    last = latest(rows.withColumn("quota", F.col(f"{QUOTA}.key")), "entity", "quota")
    return last.where(~F.col(f"{QUOTA}.remove")).select(
        "entity", "quota", f"{QUOTA}.value", *changed()
    )
