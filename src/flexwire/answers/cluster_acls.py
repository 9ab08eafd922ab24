"""The ACLs in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state.cluster import CHANGE_COLUMNS, changed, latest, named
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


ADDED, REMOVED = "AccessControlEntryRecord", "RemoveAccessControlEntryRecord"
READS: Final = {
    ADDED: (
        "id",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    ),
    REMOVED: ("id",),
}
# Enumerations that exist only in Kafka's Java code, and in no spec.
RESOURCES: Final = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
PATTERNS: Final = {3: "LITERAL", 4: "PREFIXED"}
OPERATIONS: Final = dict(
    enumerate(
        (
            "ALL",
            "READ",
            "WRITE",
            "CREATE",
            "DELETE",
            "ALTER",
            "DESCRIBE",
            "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "IDEMPOTENT_WRITE",
            "CREATE_TOKENS",
            "DESCRIBE_TOKENS",
            "TWO_PHASE_COMMIT",
        ),
        start=2,
    )
)
PERMISSIONS: Final = {2: "DENY", 3: "ALLOW"}
COLUMNS: Final = (
    Column("acl", pa.string(), "the ACL's id"),
    Column("resource_type", pa.string(), "TOPIC, GROUP, CLUSTER …", heading="Resource"),
    Column(
        "resource_name",
        pa.string(),
        "the name of the resource, or a prefix of resource names",
        heading="Name",
        is_about=True,
    ),
    Column("pattern_type", pa.string(), "LITERAL or PREFIXED", heading="Pattern"),
    Column(
        "principal",
        pa.string(),
        "the principal to which the ACL applies",
        heading="Principal",
        is_about=True,
    ),
    Column(
        "host", pa.string(), "the host to which the ACL applies; * means any host", heading="From"
    ),
    Column("operation", pa.string(), "READ, WRITE …", heading="Operation", is_about=True),
    Column("permission", pa.string(), "ALLOW or DENY", heading="Permission"),
    *CHANGE_COLUMNS,
)


def acls(state: ClusterState) -> DataFrame:
    """Return a row for each existing ACL."""
    rows = state.typed(READS).withColumn("acl", F.coalesce(f"{ADDED}.id", f"{REMOVED}.id"))
    last = latest(rows, "acl").where(F.col(ADDED).isNotNull())
    words = {
        "resource_type": named(F.col(f"{ADDED}.resource_type"), RESOURCES),
        "resource_name": F.col(f"{ADDED}.resource_name"),
        "pattern_type": named(F.col(f"{ADDED}.pattern_type"), PATTERNS),
        "principal": F.col(f"{ADDED}.principal"),
        "host": F.col(f"{ADDED}.host"),
        "operation": named(F.col(f"{ADDED}.operation"), OPERATIONS),
        "permission": named(F.col(f"{ADDED}.permission_type"), PERMISSIONS),
    }
    return last.select("acl", *(value.alias(name) for name, value in words.items()), *changed())


@returns(COLUMNS)
def cluster_acls(tables: AnalysisTables) -> DataFrame | None:
    """Return the ACLs in the cluster's metadata.

    Only Kafka's own ``StandardAuthorizer`` stores ACLs in the cluster's metadata.
    """
    state = tables.cluster()
    if state is None:
        return None
    return acls(state)


ANSWER = Answer(
    name="cluster_acls",
    place=360,
    question="Which principals have which permissions?",
    meaning="ACLs in the cluster's metadata, by principal.",
    advice=(
        "Look for ACLs that allow the operation ALL, for ACLs that apply to resources named * or "
        "to the principal User:*, and for principals that nobody uses anymore. The audit of "
        "traffic shows which principals are in use."
    ),
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
