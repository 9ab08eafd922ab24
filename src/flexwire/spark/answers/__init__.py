"""Answers on Spark: audits of stored outputs, and the stored answers of outputs.

The answers themselves are in `flexwire.answers`. The old names below this package work until the
next release.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flexwire import answers
from flexwire.answers.asking.audit import AuditTables, TableEvidence, audit_rows, gather_audit
from flexwire.answers.asking.labels import read_labels, to_labels
from flexwire.spark.answers.continued import view_of
from flexwire.spark.dataframes import literal_path, output_of
from flexwire.spark.dataframes import read as read_stored
from flexwire.spark.tables import Tables
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import MESSAGES, Output
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.answers.asking.labels import Labels
    from flexwire.facts.audit import Audit

__all__ = [
    "AuditTables",
    "audit",
    "audit_cluster",
    "audit_rows",
    "audit_tables",
    "gather_audit",
    "read_labels",
    "tables_to_audit",
]


class _AnswersModule(ModuleType):
    """The class of this package's module object.

    With this class, importing an answer's old module does not hide the function of the same name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in answers.ANSWERS_BY_NAME or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _AnswersModule


def __getattr__(name: str) -> Any:
    """Return names that were here until this release: the answers' functions, and lists of them."""
    if name in answers.__all__:
        return getattr(answers, name)
    home = "latency" if name == "slowest" else name
    if home not in answers.ANSWERS_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{answers.__name__}.{home}"), name)


def audit(
    spark: SparkSession,
    tables: str | Path,
    releases: Sequence[str] = (),
    labels: Labels | str | Path | None = None,
) -> DataFrame:
    """Return which clients break on these releases, with the evidence: one row for each finding.

    ``OUT`` is the path or URL of an analysis. A local ``OUT/tables`` also works. The result is the
    table ``audit`` of the analysis, judged by these releases. ``labels`` map client ids to teams:
    a mapping, or a file for `read_labels`. Raises `UnknownMessageError` for an unknown release,
    `FlexwireError` for tables of an unfinished analysis, and `ArgumentError` for labels that
    cannot be read. Tables that grow are audited as a whole, with all their analyses.
    """
    rows = audit_rows(_audited(spark, tables, releases, labels))
    return spark.createDataFrame(rows.to_pylist(), spark_schema(rows.schema))


def audit_cluster(
    spark: SparkSession, tables: str | Path, releases: Sequence[str] = ()
) -> DataFrame:
    """Return how these releases affect the cluster: one row for each gate and release.

    The columns are those of ``cluster`` in ``audit.json``. Arguments and errors are those of
    `audit`.
    """
    rows = [asdict(gate) for gate in _audited(spark, tables, releases).cluster]
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
    analysis_output = output_of(tables)
    root = analysis_output.place.path if type(analysis_output) is Output else None
    there = analysis_output if root is None else Tables(root / "tables")
    audit_tables_of_output = tables_to_audit(spark, there)
    return audit_tables(audit_tables_of_output, there.message_names(), releases, labels=teams)


def audit_tables(
    tables: AuditTables,
    messages: Collection[str],
    releases: Sequence[str] = (),
    brokers: Sequence[str] = (),
    *,
    labels: Labels | None = None,
) -> Audit:
    """Audit tables as `gather_audit` does. ``messages`` are the messages that have a table."""
    evidence = TableEvidence(tables, messages)
    return gather_audit(evidence, releases, brokers, labels=labels)


def tables_to_audit(spark: SparkSession, tables: Tables | Output) -> AuditTables:
    """Return the tables of a directory, or of an output in a store, for an audit."""
    if isinstance(tables, Output):
        return _stored_tables(spark, tables)
    names = set(tables.message_names())

    def message(name: str) -> DataFrame | None:
        if name not in names:
            return None
        # Otherwise Spark would start a job for each table to find the table's schema.
        read = spark.read.schema(spark_schema(table_schema(name)))
        return read.parquet(literal_path(str(tables.message(name))))

    frames, connections = (
        spark.read.parquet(literal_path(str(path))) for path in (tables.frames, tables.connections)
    )
    return AuditTables(frames, connections, message)


def _stored_tables(spark: SparkSession, tables: Output) -> AuditTables:
    names = set(tables.message_names())
    read = partial(read_stored, spark, tables)

    def message(name: str) -> DataFrame | None:
        table = f"{MESSAGES}/{name}"
        if name not in names:
            return None
        # Tables that grow contain a column with the analysis of each row.
        schema = table_schema(name) if type(tables) is Output else None
        return view_of(tables, table, read(table, schema), read)

    frames, connections = (
        view_of(tables, name, read(name), read) for name in ("frames", "connections")
    )
    return AuditTables(frames, connections, message)
