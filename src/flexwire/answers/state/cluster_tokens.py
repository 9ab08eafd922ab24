"""The delegation tokens of a cluster. No record has the HMAC that it takes to log in with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import CHANGE_COLUMNS, TIME, changed, latest
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

SET, REMOVED = "DelegationTokenRecord", "RemoveDelegationTokenRecord"
READS: Final = {
    SET: (
        "token_id",
        "owner",
        "requester",
        "renewers",
        "issue_timestamp",
        "expiration_timestamp",
        "max_timestamp",
    ),
    REMOVED: ("token_id",),
}
_ENDS: Final = {
    "issued": "issue_timestamp",
    "expires": "expiration_timestamp",
    "last_renewal": "max_timestamp",
}
COLUMNS: Final = (
    Column("token_id", pa.string(), "the token's id"),
    Column("owner", pa.string(), "whose it is"),
    Column("requester", pa.string(), "who asked for it"),
    Column("renewers", pa.list_(pa.string()), "who may renew it"),
    Column("issued", TIME, "when it was issued"),
    Column("expires", TIME, "when it ends, unless it is renewed"),
    Column("last_renewal", TIME, "when it ends at the latest"),
    *CHANGE_COLUMNS,
)


def delegation_tokens(state: ClusterState) -> DataFrame:
    """A row a token that was not removed; it may have expired."""
    key = F.coalesce(f"{SET}.token_id", f"{REMOVED}.token_id")
    rows = state.typed(READS).withColumn("token_id", key)
    last = latest(rows, "token_id").where(F.col(SET).isNotNull())
    times = [
        F.timestamp_millis(F.col(f"{SET}.{field}")).alias(name) for name, field in _ENDS.items()
    ]
    texts = [f"{SET}.{name}" for name in ("owner", "requester", "renewers")]
    return last.select("token_id", *texts, *times, *changed())
