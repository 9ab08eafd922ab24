"""SCRAM users and delegation tokens, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state.cluster import CHANGE_COLUMNS, TIME, changed, latest, named
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


TOKEN_SET, TOKEN_REMOVED = "DelegationTokenRecord", "RemoveDelegationTokenRecord"
TOKEN_READS: Final = {
    TOKEN_SET: (
        "token_id",
        "owner",
        "requester",
        "renewers",
        "issue_timestamp",
        "expiration_timestamp",
        "max_timestamp",
    ),
    TOKEN_REMOVED: ("token_id",),
}
_ENDS: Final = {
    "issued": "issue_timestamp",
    "expires": "expiration_timestamp",
    "last_renewal": "max_timestamp",
}


def delegation_tokens(state: ClusterState) -> DataFrame:
    """Return a row for each token that was not removed; such a token may have expired."""
    key = F.coalesce(f"{TOKEN_SET}.token_id", f"{TOKEN_REMOVED}.token_id")
    rows = state.typed(TOKEN_READS).withColumn("token_id", key)
    last = latest(rows, "token_id").where(F.col(TOKEN_SET).isNotNull())
    times = [
        F.timestamp_millis(F.col(f"{TOKEN_SET}.{field}")).alias(name)
        for name, field in _ENDS.items()
    ]
    texts = [f"{TOKEN_SET}.{name}" for name in ("owner", "requester", "renewers")]
    return last.select("token_id", *texts, *times, *changed())


SCRAM_SET, SCRAM_REMOVED = "UserScramCredentialRecord", "RemoveUserScramCredentialRecord"
SCRAM_READS: Final = {
    SCRAM_SET: ("name", "mechanism", "iterations"),
    SCRAM_REMOVED: ("name", "mechanism"),
}
# An enumeration that exists only in Kafka's Java code, and in no spec.
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def scram_users(state: ClusterState) -> DataFrame:
    """Return a row for each SCRAM mechanism for which a user has credentials."""
    rows = state.typed(SCRAM_READS).withColumns(
        {
            "user": F.coalesce(f"{SCRAM_SET}.name", f"{SCRAM_REMOVED}.name"),
            "number": F.coalesce(f"{SCRAM_SET}.mechanism", f"{SCRAM_REMOVED}.mechanism"),
        }
    )
    last = latest(rows, "user", "number").where(F.col(SCRAM_SET).isNotNull())
    mechanism = named(F.col("number"), MECHANISMS).alias("mechanism")
    return last.select("user", mechanism, f"{SCRAM_SET}.iterations", *changed())


_DELEGATED: Final = "delegation token"
_OF_SCRAM: Final = "for SCRAM"
COLUMNS = (
    Column(
        "principal",
        pa.string(),
        "the user, or the owner of the token, such as User:alice",
        heading="Principal",
        is_about=True,
    ),
    Column(
        "kind",
        pa.string(),
        f'"SCRAM-SHA-256", "SCRAM-SHA-512" or "{_DELEGATED}"',
        heading="Kind",
        is_about=True,
    ),
    Column(
        "iterations",
        pa.int32(),
        "the number of times that the password was hashed",
        "for a token",
        heading="Iterations",
    ),
    Column(
        "token_id",
        pa.string(),
        "the token's id, which is not a secret",
        _OF_SCRAM,
        heading="Token",
        is_about=True,
    ),
    Column("requester", pa.string(), "the principal that requested the token", _OF_SCRAM),
    Column(
        "renewers",
        pa.list_(pa.string()),
        "the principals that may renew the token",
        _OF_SCRAM,
        heading="Renewers",
    ),
    Column("issued", TIME, "when the token was issued", _OF_SCRAM, heading="Issued"),
    Column(
        "expires", TIME, "when the token expires if nobody renews it", _OF_SCRAM, heading="Expires"
    ),
    Column(
        "last_renewal",
        TIME,
        ("when the token expires at the latest, even if it is renewed"),
        _OF_SCRAM,
        heading="At the latest",
    ),
    *CHANGE_COLUMNS,
)


@returns(COLUMNS)
def cluster_credentials(tables: AnalysisTables) -> DataFrame | None:
    """Return each user's SCRAM mechanisms, and the delegation tokens.

    Salts, keys and token HMACs are never included. A token that was not removed may have expired.
    """
    state = tables.cluster()
    if state is None:
        return None
    users = scram_users(state).select(
        F.concat(F.lit("User:"), "user").alias("principal"),
        F.col("mechanism").alias("kind"),
        "iterations",
        *(column.name for column in CHANGE_COLUMNS),
    )
    tokens = delegation_tokens(state).select(
        F.col("owner").alias("principal"), F.lit(_DELEGATED).alias("kind"), "*"
    )
    return users.unionByName(tokens.drop("owner"), allowMissingColumns=True)


ANSWER = Answer(
    name="cluster_credentials",
    place=370,
    question="Which users and tokens does the cluster know?",
    meaning="Users with SCRAM credentials, and delegation tokens, in the cluster's metadata. "
    "Secrets are never shown.",
    advice=(
        "Before you remove the credentials of a person who has left (kafka-configs, "
        "kafka-delegation-tokens), find out which programs use them. These programs can no longer "
        "connect afterwards. If a password was hashed with few iterations, set the password again "
        "with more iterations."
    ),
    row="a credential",
    columns=COLUMNS,
    order=("principal", "kind", "token_id"),
    ask=cluster_credentials,
    asks=(InternalTopic.METADATA.topic,),
)
