"""Views of growing tables, with the rows that a single analysis of all input would write.

A connection that continues from one analysis to the next is recorded in rows of each analysis. In a
view, the column ``analysis`` of all these rows contains the first of these analyses, so that the
keys of `flexwire.tables.keys` join them. Each connection is a single row, whose counts are sums.
For each request, a column indicates whether its response is in a later analysis. Frames and records
contain the facts about the client and the topic that a later analysis learned.

Lookups are joins by unique keys. Spark therefore omits a join if an answer does not use the joined
columns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.types import LongType

from flexwire.answers.asking.told_names import with_names
from flexwire.measures.audit_rows import CONNECTIONS, LOGGED_EVIDENCE
from flexwire.measures.evidence import SOFTWARE
from flexwire.tables.frames import CLIENT_COLUMNS, TOPIC_NAMES
from flexwire.tables.keys import ANALYSIS, BEGAN_IN, connection_key
from flexwire.tables.row_filter import FRAMES, RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from flexwire.answers.asking.answer import Task
    from flexwire.tables.output import Output

    Read = Callable[[str], DataFrame]

_ANSWERED: Final = "answered_indexes"
# The rows of one connection, in order of time.
_ORDER: Final = ("last_time", "first_time", ANALYSIS)
_EVER: Final = frozenset({"seen_from_start", "reset"})
_LATEST: Final = frozenset({"is_kafka", "reads_as_kafka", "evidence", "looks_like"})
_FIRST: Final = frozenset({"first_time", "day"})


def view_of(output: Output, name: str, rows: DataFrame, read: Read) -> DataFrame:
    """Return the view of one table of an output, with these rows. ``read`` returns other tables."""
    if not output.is_continued or BEGAN_IN not in rows.columns:
        return rows
    whole = own_view_of(output, rows)
    if name == CONNECTIONS:
        return _one_each(whole, rows.columns)
    if name == FRAMES:
        return _with_later(whole, read(CONNECTIONS))
    if name == RECORDS and TOPIC_NAMES in output.names:
        return with_names(whole, read(TOPIC_NAMES))
    return whole


def own_view_of(output: Output, rows: DataFrame) -> DataFrame:
    """Return rows of one analysis with the keys of views, and without facts of other analyses.

    These rows depend only on the files that contain them.
    """
    if not output.is_continued or BEGAN_IN not in rows.columns:
        return rows
    return rows.withColumn(ANALYSIS, F.coalesce(BEGAN_IN, ANALYSIS))


def answered_later(connections: DataFrame) -> DataFrame:
    """Return the frame keys of requests whose response is in a later analysis."""
    answered = connections.where(F.size(_ANSWERED) > 0)
    return answered.select(
        F.coalesce(BEGAN_IN, ANALYSIS).alias(ANALYSIS),
        "connection",
        F.explode(_ANSWERED).alias("frame_index"),
    ).distinct()


def _one_each(connections: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return one row for each connection, instead of one row for each analysis of a connection."""
    kinds = {field.name: field.dataType for field in connections.schema}
    key = connection_key(columns)
    order = F.struct(*_ORDER)
    nothing = {name: F.lit(None).cast(kinds[name]) for name in (BEGAN_IN, _ANSWERED)}
    sums = [
        _summed(name, kinds[name] == LongType(), order).alias(name)
        for name in columns
        if name not in {*key, *nothing}
    ]
    return connections.groupBy(*key).agg(*sums).withColumns(nothing).select(*columns)


def _summed(name: str, is_count: bool, order: Column) -> Column:  # noqa: FBT001 - the parameter's name explains the value
    """Return the combined value of a column over all rows of one connection."""
    value = F.col(name)
    if is_count:
        return F.sum(value)
    if name in _EVER:
        return F.bool_or(value)
    if name in _FIRST:
        return F.min(value)
    if name in _LATEST:
        return F.max_by(F.struct(value.alias("value")), order)["value"]
    return F.max_by(value, F.when(value.isNotNull(), order))


def learned_later(connections: DataFrame) -> DataFrame:
    """Return, by connection, the facts about clients that the view of frames fills in.

    A row contains the key of the connection, and the columns that identify its client.
    """
    later = _later(connections)
    known = {name: F.col(f"known_{name}") for name in CLIENT_COLUMNS}
    kept = {name: column for name, column in known.items() if f"known_{name}" in later.columns}
    return later.select(
        *connection_key(later.columns), *(column.alias(name) for name, column in kept.items())
    )


def _later(connections: DataFrame) -> DataFrame:
    """Return, by connection, the requests answered later and the ``known_`` client facts.

    The rows of ``connections`` are those of single analyses. Connections without such facts are
    omitted. A line of a request log names the client software that the broker knew at that moment,
    so later lines add nothing to it.
    """
    key = connection_key(connections.columns)
    origin = F.coalesce(BEGAN_IN, ANALYSIS)
    order = F.struct(*_ORDER)
    known = {name: f"known_{name}" for name in CLIENT_COLUMNS if name in connections.columns}
    is_captured = F.col("evidence") != LOGGED_EVIDENCE
    is_said = {
        name: F.col(name).isNotNull() & (is_captured if name in SOFTWARE else F.lit(True))
        for name in known
    }
    first = [
        F.min_by(name, F.when(is_said[name], order)).alias(later) for name, later in known.items()
    ]
    later_rows = (
        connections.withColumn(ANALYSIS, origin)
        .groupBy(*key)
        .agg(
            F.flatten(F.collect_list(_ANSWERED)).alias(_ANSWERED),
            *first,
            *(
                F.bool_or(F.col(name).isNull()).alias(f"lacks_{later}")
                for name, later in known.items()
            ),
        )
    )
    # For most connections, later analyses contain no facts.
    needed = F.size(_ANSWERED) > 0
    for later in known.values():
        needed |= F.col(later).isNotNull() & F.col(f"lacks_{later}")
    return later_rows.where(needed).select(*key, _ANSWERED, *known.values())


def _with_later(frames: DataFrame, connections: DataFrame) -> DataFrame:
    """Return frames with the facts that later analyses learned about their connection."""
    later_rows = _later(connections)
    known = {
        name: f"known_{name}" for name in CLIENT_COLUMNS if f"known_{name}" in later_rows.columns
    }
    is_answered = (F.col("direction") == "request") & F.array_contains(
        _ANSWERED, F.col("frame_index")
    )
    joined = frames.join(later_rows, [*connection_key(frames.columns)], "left")
    return joined.withColumns(
        {
            "answered": F.when(is_answered, F.lit(True)).otherwise(F.col("answered")),
            **{name: F.coalesce(name, later) for name, later in known.items()},
        }
    ).select(*frames.columns)


def task_of(task: Task, columns: Sequence[str]) -> tuple[Task, list[str]]:
    """Return a task that reads files as views, and the columns of the files that the task needs."""
    if ANALYSIS not in columns:
        return task, [*columns]
    return partial(_with_origin, task, [*columns]), [*columns, BEGAN_IN]


def _with_origin(
    task: Task, columns: list[str], name: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield from task(name, (_whole(batch, columns) for batch in batches))


def _whole(batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
    origin = pc.coalesce(batch[BEGAN_IN], batch[ANALYSIS])
    return pa.RecordBatch.from_arrays(
        [origin if name == ANALYSIS else batch[name] for name in columns],
        schema=pa.schema([batch.schema.field(name) for name in columns]),
    )
