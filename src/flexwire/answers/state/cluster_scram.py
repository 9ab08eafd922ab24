"""The users that have SCRAM credentials; salts and keys are never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import CHANGE_COLUMNS, changed, latest, named
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

SET, REMOVED = "UserScramCredentialRecord", "RemoveUserScramCredentialRecord"
READS: Final = {SET: ("name", "mechanism", "iterations"), REMOVED: ("name", "mechanism")}
# An enumeration of Kafka's Java, which no spec has.
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
COLUMNS: Final = (
    Column("user", pa.string(), "the user's name"),
    Column("mechanism", pa.string(), "the mechanism"),
    Column("iterations", pa.int32(), "how often the password was hashed"),
    *CHANGE_COLUMNS,
)


def scram_users(state: ClusterState) -> DataFrame:
    """A row a mechanism that a user has credentials for."""
    rows = state.typed(READS).withColumns(
        {
            "user": F.coalesce(f"{SET}.name", f"{REMOVED}.name"),
            "number": F.coalesce(f"{SET}.mechanism", f"{REMOVED}.mechanism"),
        }
    )
    last = latest(rows, "user", "number").where(F.col(SET).isNotNull())
    mechanism = named(F.col("number"), MECHANISMS).alias("mechanism")
    return last.select("user", mechanism, f"{SET}.iterations", *changed())
