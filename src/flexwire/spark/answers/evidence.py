"""The evidence of an audit from finished tables: the measure of a running analysis over their rows.

Each task sums up its rows, and the driver merges these sums one after the other. So both audits
say the same, with the same bounds.
"""

from __future__ import annotations

import pickle
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.measures.audit import AuditSums
from flexwire.measures.audit_rows import COLUMNS, CONNECTIONS, EVIDENT, NAMES
from flexwire.spark.answers.touched import names_in
from flexwire.spark.tasks import begin_task, map_in_arrow
from flexwire.tables.keys import connection_key
from flexwire.tables.wanted import FRAMES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pyspark.sql import Column

    from flexwire.measures.evidence import Evidence, Key, Touched
    from flexwire.protocol.audit import Party

_SUMS: Final = pa.schema([("sums", pa.binary())])


class AuditTables(NamedTuple):
    """The tables to audit; ``message`` gives that of one message, None where there is none."""

    frames: DataFrame
    connections: DataFrame
    message: Callable[[str], DataFrame | None]


class TableEvidence:
    """What an audit is made from, summed up over tables; ``messages`` have one."""

    def __init__(self, tables: AuditTables, messages: Collection[str]) -> None:
        self._tables = tables
        self._messages = messages
        self._sums = AuditSums(spills=True)

    def evidence(self) -> Evidence:
        """Return what was seen of every client. Reads the tables once."""
        tables = self._tables
        found = [
            _summed(FRAMES, _columns(tables.frames, COLUMNS[FRAMES])),
            _summed(CONNECTIONS, _columns(tables.connections, COLUMNS[CONNECTIONS])),
        ]
        for name, fields in EVIDENT.items():
            if (table := tables.message(name)) is not None:
                found.append(_summed(f"{MESSAGES}/{name}", _message(table, fields)))
        self._sums = AuditSums(spills=True)
        self._merge(found)
        return self._sums.evidence()

    def touched(self, parties: Collection[Party]) -> dict[Key, Touched]:
        """Return which groups and topics these clients named in requests, after `evidence`."""
        named = (names_in(self._tables.message, one) for one in self._messages)
        self._merge([_summed(NAMES, one) for one in named if one is not None])
        return self._sums.touched(parties)

    def _merge(self, found: list[DataFrame]) -> None:
        """Add what tasks sum up; the driver holds the sums of one task at a time."""
        if not found:
            return
        every = reduce(DataFrame.unionByName, found).persist()
        try:
            # An iterator alone would run one task after the other.
            every.count()
            for row in every.toLocalIterator():
                # Written by the tasks of this job.
                self._sums.merge(pickle.loads(row.sums))  # noqa: S301 - see above
        finally:
            every.unpersist()


def _columns(table: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return these columns of a table, and its key; one that earlier tables lack is null."""
    there = {*table.columns}
    lacking = F.lit(None).cast("string")
    others = [one for one in names if one not in (key := connection_key(table.columns))]
    return table.select(
        *key, *(F.col(one) if one in there else lacking.alias(one) for one in others)
    )


def _message(table: DataFrame, fields: Collection[str]) -> DataFrame:
    """Return what a message's table tells, of its body only these ``fields`` if there are any."""
    body: Column = F.col("body")
    if fields:
        # So Spark reads no other columns of a file.
        body = F.struct(*(F.col(f"body.{one}") for one in fields)).alias("body")
    return table.select(*connection_key(table.columns), "body_version", body)


def _summed(table: str, rows: DataFrame) -> DataFrame:
    """Return a row for each task: the sums of its rows of a table."""
    return map_in_arrow(rows, partial(_sum, table), _SUMS)


def _sum(table: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    sums = AuditSums()
    for rows in batches:
        sums.add(table, rows)
    yield pa.RecordBatch.from_pylist([{"sums": pickle.dumps(sums)}], _SUMS)
