"""Analyze a capture of the clients as `flexwire analyze` does, and return each client's facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.answers.asking.audit import TableEvidence
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import tables_to_audit
from flexwire.spark.session import session
from flexwire.spark.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from flexwire.measures.evidence import AuditEvidence


def gather(captures: Sequence[Path], out: Path) -> AuditEvidence:
    """Return the facts for every client."""
    spark = session("flexwire and a trial", master="local[2]", memory="1g")
    try:
        analyze(captures, out, spark=spark)
        tables = Tables(out / "tables")
        return TableEvidence(tables_to_audit(spark, tables), tables.message_names()).evidence()
    finally:
        spark.stop()
