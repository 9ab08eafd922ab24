"""ACLs by the log of a cluster's metadata: `cluster_acls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.nothing import returns
from flexwire.answers.state.cluster_acls import COLUMNS, acls
from flexwire.protocol.internal_topics import InternalTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables


@returns(COLUMNS)
def cluster_acls(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each ACL in the cluster's metadata.

    Only Kafka's own ``StandardAuthorizer`` keeps them there.
    """
    state = tables.cluster()
    if state is None:
        return None
    return acls(state)


ANSWER = Answer(
    name="cluster_acls",
    place=360,
    question="Who may do what?",
    meaning="ACLs as the cluster's metadata has them, by principal.",
    advice="Look for ALLOW of ALL, of resources named * or of principals User:*, and for "
    "principals that are nobody's any more; the audit of traffic says who is there.",
    row="an ACL",
    columns=COLUMNS,
    order=(
        "principal",
        "resource_type",
        "resource_name",
        "pattern_type",
        "operation",
        "host",
        "acl",
    ),
    shown=(
        "principal",
        "permission",
        "operation",
        "resource_type",
        "resource_name",
        "pattern_type",
        "host",
        "changed_time",
    ),
    ask=cluster_acls,
    asks=(InternalTopic.METADATA.topic,),
)
