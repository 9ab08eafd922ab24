"""Users of SCRAM and delegation tokens, without a secret: `cluster_credentials`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.nothing import returns
from flexwire.answers.state.cluster_folding import CHANGE_COLUMNS, TIME
from flexwire.answers.state.cluster_scram import scram_users
from flexwire.answers.state.cluster_tokens import delegation_tokens
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

_DELEGATED: Final = "delegation token"
_OF_SCRAM: Final = "of SCRAM"
COLUMNS = (
    Column("principal", pa.string(), "whose it is: User:alice", heading="Principal", is_about=True),
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
        "how often the password was hashed",
        "of a token",
        heading="Iterations",
    ),
    Column(
        "token_id",
        pa.string(),
        "the token's id, which is no secret",
        _OF_SCRAM,
        heading="Token",
        is_about=True,
    ),
    Column("requester", pa.string(), "who asked for the token", _OF_SCRAM),
    Column("renewers", pa.list_(pa.string()), "who may renew it", _OF_SCRAM, heading="Renewers"),
    Column("issued", TIME, "when it was issued", _OF_SCRAM, heading="Issued"),
    Column("expires", TIME, "when it ends, unless it is renewed", _OF_SCRAM, heading="Expires"),
    Column("last_renewal", TIME, "when it ends at the latest", _OF_SCRAM, heading="At the latest"),
    *CHANGE_COLUMNS,
)


@returns(COLUMNS)
def cluster_credentials(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each mechanism of SCRAM that a user has, and each delegation token.

    Salts, keys and the HMACs of tokens are never among it. A token that was not removed may have
    expired.
    """
    state = tables.cluster()
    if state is None:
        return None
    users = scram_users(state).select(
        F.concat(F.lit("User:"), "user").alias("principal"),
        F.col("mechanism").alias("kind"),
        "iterations",
        *(one.name for one in CHANGE_COLUMNS),
    )
    tokens = delegation_tokens(state).select(
        F.col("owner").alias("principal"), F.lit(_DELEGATED).alias("kind"), "*"
    )
    return users.unionByName(tokens.drop("owner"), allowMissingColumns=True)


ANSWER = Answer(
    name="cluster_credentials",
    place=370,
    question="Which users and tokens does the cluster know?",
    meaning="Users with SCRAM credentials, and delegation tokens, as the cluster's metadata has "
    "them; secrets are never shown.",
    advice="Ask whose these are before you remove one of somebody who is gone (kafka-configs, "
    "kafka-delegation-tokens): its program cannot connect any more. Have passwords of few "
    "iterations set anew.",
    row="a credential",
    columns=COLUMNS,
    order=("principal", "kind", "token_id"),
    ask=cluster_credentials,
    asks=(InternalTopic.METADATA.topic,),
)
