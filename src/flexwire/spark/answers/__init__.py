"""Answers from the tables of an analysis: DataFrames in, DataFrames out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from flexwire.spark.answers.batches import ANSWER as BATCHES
from flexwire.spark.answers.batches import batches
from flexwire.spark.answers.boundaries import ANSWER as BOUNDARIES
from flexwire.spark.answers.boundaries import boundaries
from flexwire.spark.answers.captured_internal_records import ANSWER as CAPTURED_INTERNAL_RECORDS
from flexwire.spark.answers.captured_internal_records import captured_internal_records
from flexwire.spark.answers.chargeback import ANSWER as CHARGEBACK
from flexwire.spark.answers.chargeback import chargeback
from flexwire.spark.answers.client_metrics import ANSWER as CLIENT_METRICS
from flexwire.spark.answers.client_metrics import client_metrics
from flexwire.spark.answers.cluster_acls import ANSWER as CLUSTER_ACLS
from flexwire.spark.answers.cluster_acls import cluster_acls
from flexwire.spark.answers.cluster_brokers import ANSWER as CLUSTER_BROKERS
from flexwire.spark.answers.cluster_brokers import cluster_brokers
from flexwire.spark.answers.cluster_configs import ANSWER as CLUSTER_CONFIGS
from flexwire.spark.answers.cluster_configs import cluster_configs
from flexwire.spark.answers.cluster_credentials import ANSWER as CLUSTER_CREDENTIALS
from flexwire.spark.answers.cluster_credentials import cluster_credentials
from flexwire.spark.answers.cluster_features import ANSWER as CLUSTER_FEATURES
from flexwire.spark.answers.cluster_features import cluster_features
from flexwire.spark.answers.cluster_gate import ANSWER as CLUSTER_GATE
from flexwire.spark.answers.cluster_gate import cluster_gate
from flexwire.spark.answers.cluster_history import ANSWER as CLUSTER_HISTORY
from flexwire.spark.answers.cluster_history import cluster_history
from flexwire.spark.answers.cluster_partitions import ANSWER as CLUSTER_PARTITIONS
from flexwire.spark.answers.cluster_partitions import cluster_partitions
from flexwire.spark.answers.cluster_quotas import ANSWER as CLUSTER_QUOTAS
from flexwire.spark.answers.cluster_quotas import cluster_quotas
from flexwire.spark.answers.cluster_topics import ANSWER as CLUSTER_TOPICS
from flexwire.spark.answers.cluster_topics import cluster_topics
from flexwire.spark.answers.cluster_voters import ANSWER as CLUSTER_VOTERS
from flexwire.spark.answers.cluster_voters import cluster_voters
from flexwire.spark.answers.connections import ANSWER as CONNECTIONS
from flexwire.spark.answers.connections import connections
from flexwire.spark.answers.diverging_replicas import ANSWER as DIVERGING_REPLICAS
from flexwire.spark.answers.diverging_replicas import diverging_replicas
from flexwire.spark.answers.errors import ANSWER as ERRORS
from flexwire.spark.answers.errors import errors
from flexwire.spark.answers.evidence import AuditTables, TableEvidence
from flexwire.spark.answers.group_members import ANSWER as GROUP_MEMBERS
from flexwire.spark.answers.group_members import group_members
from flexwire.spark.answers.group_offsets import ANSWER as GROUP_OFFSETS
from flexwire.spark.answers.group_offsets import group_offsets
from flexwire.spark.answers.group_state import ANSWER as GROUP_STATE
from flexwire.spark.answers.group_state import group_state
from flexwire.spark.answers.groups import ANSWER as GROUPS
from flexwire.spark.answers.groups import groups
from flexwire.spark.answers.hanging_transactions import ANSWER as HANGING_TRANSACTIONS
from flexwire.spark.answers.hanging_transactions import hanging_transactions
from flexwire.spark.answers.header_tags import ANSWER as HEADER_TAGS
from flexwire.spark.answers.header_tags import header_tags
from flexwire.spark.answers.headers import ANSWER as HEADERS
from flexwire.spark.answers.headers import headers
from flexwire.spark.answers.judging import audit_rows, gather_audit
from flexwire.spark.answers.labels import read_labels, to_labels
from flexwire.spark.answers.lag import ANSWER as LAG
from flexwire.spark.answers.lag import lag
from flexwire.spark.answers.latency import ANSWER as LATENCY
from flexwire.spark.answers.latency import latency, slowest
from flexwire.spark.answers.savings import ANSWER as SAVINGS
from flexwire.spark.answers.savings import savings
from flexwire.spark.answers.share_deliveries import ANSWER as SHARE_DELIVERIES
from flexwire.spark.answers.share_deliveries import share_deliveries
from flexwire.spark.answers.share_state import ANSWER as SHARE_STATE
from flexwire.spark.answers.share_state import share_state
from flexwire.spark.answers.sizes import ANSWER as SIZES
from flexwire.spark.answers.sizes import sizes
from flexwire.spark.answers.storage import ANSWER as STORAGE
from flexwire.spark.answers.storage import storage
from flexwire.spark.answers.tagged_fields import ANSWER as TAGGED_FIELDS
from flexwire.spark.answers.tagged_fields import tagged_fields
from flexwire.spark.answers.throttling import ANSWER as THROTTLING
from flexwire.spark.answers.throttling import throttling
from flexwire.spark.answers.tiered_storage import ANSWER as TIERED_STORAGE
from flexwire.spark.answers.tiered_storage import tiered_storage
from flexwire.spark.answers.topic_readers import ANSWER as TOPIC_READERS
from flexwire.spark.answers.topic_readers import topic_readers
from flexwire.spark.answers.unread_state import ANSWER as UNREAD_STATE
from flexwire.spark.answers.unread_state import unread_state
from flexwire.spark.answers.unused_groups import ANSWER as UNUSED_GROUPS
from flexwire.spark.answers.unused_groups import unused_groups
from flexwire.spark.answers.unused_topics import ANSWER as UNUSED_TOPICS
from flexwire.spark.answers.unused_topics import unused_topics
from flexwire.spark.stored import output_of
from flexwire.spark.stored import read as read_stored
from flexwire.spark.tables import Tables, spark_schema
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import MESSAGES, Output

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.facts.audit import Audit
    from flexwire.spark.answers.answer import Answer
    from flexwire.spark.answers.labels import Labels

__all__ = [
    "ANSWERS",
    "LOG_ANSWERS",
    "STATE_ANSWERS",
    "AuditTables",
    "audit",
    "audit_cluster",
    "audit_rows",
    "audit_tables",
    "batches",
    "boundaries",
    "captured_internal_records",
    "chargeback",
    "client_metrics",
    "cluster_acls",
    "cluster_brokers",
    "cluster_configs",
    "cluster_credentials",
    "cluster_features",
    "cluster_gate",
    "cluster_history",
    "cluster_partitions",
    "cluster_quotas",
    "cluster_topics",
    "cluster_voters",
    "connections",
    "diverging_replicas",
    "errors",
    "gather_audit",
    "group_members",
    "group_offsets",
    "group_state",
    "groups",
    "hanging_transactions",
    "header_tags",
    "headers",
    "lag",
    "latency",
    "read_labels",
    "savings",
    "share_deliveries",
    "share_state",
    "sizes",
    "slowest",
    "storage",
    "tables_to_audit",
    "tagged_fields",
    "throttling",
    "tiered_storage",
    "topic_readers",
    "unread_state",
    "unused_groups",
    "unused_topics",
]

STATE_ANSWERS: tuple[Answer, ...] = (
    GROUP_STATE,
    GROUP_OFFSETS,
    GROUP_MEMBERS,
    SHARE_STATE,
    UNUSED_GROUPS,
    UNUSED_TOPICS,
    HANGING_TRANSACTIONS,
    CLUSTER_TOPICS,
    CLUSTER_PARTITIONS,
    CLUSTER_HISTORY,
    CLUSTER_BROKERS,
    CLUSTER_FEATURES,
    CLUSTER_GATE,
    CLUSTER_VOTERS,
    CLUSTER_CONFIGS,
    CLUSTER_QUOTAS,
    CLUSTER_ACLS,
    CLUSTER_CREDENTIALS,
    TIERED_STORAGE,
    DIVERGING_REPLICAS,
    UNREAD_STATE,
)
"""Those about the state that internal topics add up to, which are asked where logs have some."""

LOG_ANSWERS: tuple[Answer, ...] = (STORAGE, SAVINGS)
"""Those about logs, which are asked unless others are."""

ANSWERS: tuple[Answer, ...] = (
    CHARGEBACK,
    LATENCY,
    THROTTLING,
    ERRORS,
    BATCHES,
    HEADERS,
    HEADER_TAGS,
    TAGGED_FIELDS,
    SIZES,
    CONNECTIONS,
    GROUPS,
    LAG,
    TOPIC_READERS,
    SHARE_DELIVERIES,
    CLIENT_METRICS,
    CAPTURED_INTERNAL_RECORDS,
    BOUNDARIES,
    *LOG_ANSWERS,
    *STATE_ANSWERS,
)
"""Every answer that `analyze` gives, in the order of the report."""


def audit(
    spark: SparkSession,
    tables: str | Path,
    releases: Sequence[str] = (),
    labels: Labels | str | Path | None = None,
) -> DataFrame:
    """Who breaks on these releases, and by which evidence, from ``OUT``: a row a finding.

    ``OUT`` is an analysis by path or URL; ``OUT/tables`` here will do. It is the same as the table
    ``audit`` of the analysis, for other releases than that was asked about. ``labels`` map client
    ids to teams, in a mapping or in a file for `read_labels`. Raises `UnknownMessageError` for a
    release that there is not, `FlexwireError` for tables whose analysis did not finish, and
    `ArgumentError` for labels that do not read. Tables that grow are audited as a whole, all
    analyses together.
    """
    rows = audit_rows(_audited(spark, tables, releases, labels))
    return spark.createDataFrame(rows.to_pylist(), spark_schema(rows.schema))


def audit_cluster(
    spark: SparkSession, tables: str | Path, releases: Sequence[str] = ()
) -> DataFrame:
    """What these releases mean to the cluster itself, from ``OUT``: a row a gate and release.

    The columns are those of ``cluster`` in ``audit.json``; the arguments and errors are those of
    `audit`.
    """
    rows = [asdict(one) for one in _audited(spark, tables, releases).cluster]
    return spark.createDataFrame(rows, _GATES)


_GATES = (
    "release string, gate string, verdict string, subject string, evidence string, reason string, "
    "remedy string, names array<string>, count bigint, source string"
)


def _audited(
    spark: SparkSession,
    tables: str | Path,
    releases: Sequence[str],
    labels: Labels | str | Path | None = None,
) -> Audit:
    teams = to_labels(labels)
    found = output_of(tables)
    root = found.place.path if type(found) is Output else None
    there = found if root is None else Tables(root / "tables")
    known = tables_to_audit(spark, there)
    return audit_tables(known, there.message_names(), releases, labels=teams)


def audit_tables(
    tables: AuditTables,
    messages: Collection[str],
    releases: Sequence[str] = (),
    brokers: Sequence[str] = (),
    *,
    labels: Labels | None = None,
) -> Audit:
    """Audit tables as `gather_audit` does; ``messages`` are those that have one."""
    evidence = TableEvidence(tables, messages)
    return gather_audit(evidence, releases, brokers, labels=labels)


def tables_to_audit(spark: SparkSession, tables: Tables | Output) -> AuditTables:
    """The tables below a directory, or of an output in a store, as an audit reads them."""
    if isinstance(tables, Output):
        return _stored_tables(spark, tables)
    names = set(tables.message_names())

    def message(name: str) -> DataFrame | None:
        if name not in names:
            return None
        # Spark would start a job to look for the schema of each.
        read = spark.read.schema(spark_schema(table_schema(name)))
        return read.parquet(str(tables.message(name)))

    read = spark.read.parquet
    return AuditTables(read(str(tables.frames)), read(str(tables.connections)), message)


def _stored_tables(spark: SparkSession, tables: Output) -> AuditTables:
    names = set(tables.message_names())

    def message(name: str) -> DataFrame | None:
        table = f"{MESSAGES}/{name}"
        if name not in names:
            return None
        # Those that grow say which analysis a row is of.
        schema = table_schema(name) if type(tables) is Output else tables.schema(table)
        return read_stored(spark, tables, table, schema)

    frames, connections = (
        read_stored(spark, tables, name, tables.schema(name)) for name in ("frames", "connections")
    )
    return AuditTables(frames, connections, message)
