"""Answers from the tables of an analysis: DataFrames in, DataFrames out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.spark.answers.evidence import AuditTables, table_evidence
from flexwire.spark.answers.judging import audit_rows, gather_audit
from flexwire.spark.batches import spark_schema
from flexwire.spark.tables import finished_tables
from flexwire.tables.message_schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.report.audit_facts import Audit
    from flexwire.spark.tables import Tables

__all__ = [
    "AuditTables",
    "audit",
    "audit_rows",
    "audit_tables",
    "gather_audit",
    "tables_to_audit",
]


def audit(spark: SparkSession, tables: str | Path, releases: Sequence[str] = ()) -> DataFrame:
    """Who breaks on these releases, and by which evidence, from ``OUT/tables``: a row a finding.

    The same as the table ``audit`` of the analysis, for other releases than it was asked about.
    Raises `UnknownMessageError` for a release that there is not, `FlexwireError` for tables whose
    analysis did not finish.
    """
    there = finished_tables(Path(tables))
    found = audit_tables(tables_to_audit(spark, there), there.message_names(), releases)
    rows = audit_rows(found)
    return spark.createDataFrame(rows.to_pylist(), spark_schema(rows.schema))


def audit_tables(
    tables: AuditTables,
    messages: Collection[str],
    releases: Sequence[str] = (),
    brokers: Sequence[str] = (),
) -> Audit:
    """Audit tables as `gather_audit` does; ``messages`` are those that have one."""
    with table_evidence(tables, messages) as gathered:
        return gather_audit(gathered, releases, brokers)


def tables_to_audit(spark: SparkSession, tables: Tables) -> AuditTables:
    """The tables below a directory, as an audit reads them."""
    names = set(tables.message_names())

    def message(name: str) -> DataFrame | None:
        if name not in names:
            return None
        # Spark would start a job to look for the schema of each.
        read = spark.read.schema(spark_schema(table_schema(name)))
        return read.parquet(str(tables.message(name)))

    read = spark.read.parquet
    return AuditTables(read(str(tables.frames)), read(str(tables.connections)), message)
