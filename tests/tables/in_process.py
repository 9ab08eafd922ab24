"""Analyze captures in this process, without Spark, one task after another."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from flexwire.measures.analysis import PACKETS, AnalysisSums, facts_of
from flexwire.measures.audit_rows import CONNECTIONS
from flexwire.spark.answers import gather_audit
from flexwire.survey.ranges import decode_range_rows
from flexwire.tables.frames import connection_rows, packet_rows
from flexwire.tables.records import RunRows
from tests.tables.folding import surveyed_in_pieces
from tests.tables.test_ranges import surveyed

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from flexwire.tables.records import Rows

Tables = dict[str, list[dict[str, Any]]]
_ALWAYS = ("frames", "connections", "packets", "records")


def analyzed_in_process(
    files: list[Path],
    *,
    piece_bytes: int | None = None,
    releases: tuple[str, ...] = (),
    **how: Any,
) -> tuple[Tables, Any]:
    """Return the rows of all tables by path, and the facts as `facts.json` contains them.

    The survey uses pieces of about ``piece_bytes``, if that is given. The audit is for
    ``releases``. ``how`` contains further fields of the request.
    """
    if piece_bytes is None:
        asked, survey, kept = surveyed(files, **how)
    else:
        asked, survey, kept = surveyed_in_pieces(files, piece_bytes, **how)
    tables: Tables = defaultdict(list, {name: [] for name in _ALWAYS})
    every = AnalysisSums(survey.span_us, spills=True)

    def take(sums: AnalysisSums, table: str, rows: Rows) -> None:
        batch: pa.RecordBatch = rows.batch() if isinstance(rows, RunRows) else rows
        tables[table] += batch.to_pylist()
        sums.add(table, rows)

    of_survey = AnalysisSums(survey.span_us)
    take(of_survey, CONNECTIONS, connection_rows(survey.connections))
    take(of_survey, PACKETS, packet_rows(survey.notes))
    parts = [of_survey]
    for number in range(survey.ranges):
        parts.append(AnalysisSums(survey.span_us))
        for table, rows in decode_range_rows(asked, number, kept.__getitem__):
            take(parts[-1], table, rows)
    for one in parts:
        every.merge(pickle.loads(pickle.dumps(one)))  # noqa: S301 - this line also pickled the data
    release = (asked.release,) if asked.release else ()
    audit = gather_audit(every.audit, releases, release)
    facts = facts_of(every.parts(asked.brokers), audit, title="in process", made_at_us=0)
    return dict(tables), json.loads(json.dumps(facts.to_json()))
