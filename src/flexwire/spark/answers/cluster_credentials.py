"""Users of SCRAM and delegation tokens, without a secret: `cluster_credentials`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_folding import CHANGE_COLUMNS, TIME
from flexwire.spark.internal_topics.cluster_scram import scram_users
from flexwire.spark.internal_topics.cluster_tokens import delegation_tokens
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_DELEGATED: Final = "delegation token"
_OF_SCRAM: Final = "of SCRAM"
COLUMNS = (
    Column("principal", pa.string(), "whose it is: User:alice"),
    Column("kind", pa.string(), f'"SCRAM-SHA-256", "SCRAM-SHA-512" or "{_DELEGATED}"'),
    Column("iterations", pa.int32(), "how often the password was hashed", "of a token"),
    Column("token_id", pa.string(), "the token's id, which is no secret", _OF_SCRAM),
    Column("requester", pa.string(), "who asked for the token", _OF_SCRAM),
    Column("renewers", pa.list_(pa.string()), "who may renew it", _OF_SCRAM),
    Column("issued", TIME, "when it was issued", _OF_SCRAM),
    Column("expires", TIME, "when it ends, unless it is renewed", _OF_SCRAM),
    Column("last_renewal", TIME, "when it ends at the latest", _OF_SCRAM),
    *CHANGE_COLUMNS,
)


def cluster_credentials(tables: AnalysisTables) -> DataFrame:
    """Give a row for each mechanism of SCRAM that a user has, and each delegation token.

    Salts, keys and the HMACs of tokens are never among it. A token that was not removed may have
    expired.
    """
    state = None if tables.internal is None else tables.internal.cluster()
    if state is None:
        return no_rows(tables.frames, COLUMNS)
    users = scram_users(state).select(
        F.concat(F.lit("User:"), "user").alias("principal"),
        F.col("mechanism").alias("kind"),
        "iterations",
        *(one.name for one in CHANGE_COLUMNS),
    )
    tokens = delegation_tokens(state).select(
        F.col("owner").alias("principal"), F.lit(_DELEGATED).alias("kind"), "*"
    )
    both = users.unionByName(tokens.drop("owner"), allowMissingColumns=True)
    return both.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_credentials",
    "Which users and tokens does the cluster know?",
    "Users with SCRAM credentials, and delegation tokens, as the cluster's metadata has them; "
    "secrets are never shown.",
    "Ask whose these are before you remove one of somebody who is gone (kafka-configs, "
    "kafka-delegation-tokens): its program cannot connect any more. Have passwords of few "
    "iterations set anew.",
    "a credential",
    COLUMNS,
    ("principal", "kind", "token_id"),
    (
        ShownColumn("principal", "Principal", is_about=True),
        ShownColumn("kind", "Kind", is_about=True),
        ShownColumn("iterations", "Iterations", "count"),
        ShownColumn("token_id", "Token", is_about=True),
        ShownColumn("renewers", "Renewers"),
        ShownColumn("issued", "Issued", "moment"),
        ShownColumn("expires", "Expires", "moment"),
        ShownColumn("last_renewal", "At the latest", "moment"),
        ShownColumn("changed_time", "Changed", "moment"),
    ),
    cluster_credentials,
    asks=(InternalTopic.METADATA.topic,),
)
