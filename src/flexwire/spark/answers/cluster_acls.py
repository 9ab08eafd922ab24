"""ACLs by the log of a cluster's metadata: `cluster_acls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.facts.answers import ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_acls import COLUMNS, acls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables


def cluster_acls(tables: AnalysisTables) -> DataFrame:
    """Give a row for each ACL in the cluster's metadata.

    Only Kafka's own ``StandardAuthorizer`` keeps them there.
    """
    state = None if tables.internal is None else tables.internal.cluster()
    if state is None:
        return no_rows(tables.frames, COLUMNS)
    return acls(state).select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_acls",
    "Who may do what?",
    "ACLs as the cluster's metadata has them, by principal.",
    "Look for ALLOW of ALL, of resources named * or of principals User:*, and for principals that "
    "are nobody's any more; the audit of traffic says who is there.",
    "an ACL",
    COLUMNS,
    ("principal", "resource_type", "resource_name", "pattern_type", "operation", "host", "acl"),
    (
        ShownColumn("principal", "Principal", is_about=True),
        ShownColumn("permission", "Permission"),
        ShownColumn("operation", "Operation", is_about=True),
        ShownColumn("resource_type", "Resource"),
        ShownColumn("resource_name", "Name", is_about=True),
        ShownColumn("pattern_type", "Pattern"),
        ShownColumn("host", "From"),
        ShownColumn("changed_time", "Changed", "moment"),
    ),
    cluster_acls,
    asks=(InternalTopic.METADATA.topic,),
)
