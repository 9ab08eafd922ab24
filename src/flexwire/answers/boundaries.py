"""The connections and exchanges that were cut between analyses of growing tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.answer import Answer, returns
from flexwire.capture.pairing.state import UNPAIRED
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.units import human_bytes, plural
from flexwire.tables.keys import ANALYSIS, connection_key
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_BEFORE: Final = "before"
COLUMNS: Final = (
    Column(ANALYSIS, pa.string(), "the analysis in which the connections continue",
           heading="Analysis", is_about=True),
    Column(_BEFORE, pa.string(), "the previous analysis, in which these connections began",
           heading="Before"),
    Column("connections", pa.int64(),
           "the number of connections that continue; other answers count such a connection twice, "
           "once in each analysis",
           heading="Connections"),
    Column("unanswered_requests", pa.int64(),
           "the number of requests on these connections that have no response in the previous "
           "analysis",
           heading="Requests without response"),
    Column("unpaired_responses", pa.int64(),
           "the number of responses on these connections that have no request in this analysis, "
           "and therefore no API, client id or latency", heading="Responses without request"),
    Column("early_bytes", pa.int64(),
           "the number of bytes that were captured after the cut but precede the first captured "
           "segment of their direction; this analysis cannot read these bytes",
           heading="Cut frames"),
    Column("time", MOMENT, "when the first of these connections resumes", heading="When"),
)  # fmt: skip


@returns(COLUMNS)
def boundaries(tables: AnalysisTables) -> DataFrame | None:
    """Return the connections that were cut between two analyses.

    An appended analysis continues where the previous one ended. In that case, nothing is cut. The
    analysis starts without the earlier state if that state was lost or was written with different
    options, or if the captures are older than that state. Older releases always started without it.
    Without the earlier state, the cut can separate a request from its response. The request counts
    as unanswered, and the response counts as unpaired. A frame that is split by the cut cannot be
    decoded. The later part of a connection lacks the software name and the login that the client
    sent when the connection began. The other answers about tables that grow do not correct these
    effects. This answer shows the extent of these effects.

    Two connections with the same addresses count as one connection that was cut if the first
    analysis did not see the connection end and the next analysis did not see it begin. If the
    tables contain a single analysis, the answer has no rows.
    """
    if ANALYSIS not in tables.connections.columns:
        return None
    return _counted(_cut(tables.connections), tables.frames)


def _cut(connections: DataFrame) -> DataFrame:
    """Return the connections that were cut.

    Each row consists of a connection's later row and the key of its earlier row.
    """
    ends = Window.partitionBy("client", "broker").orderBy("first_time", ANALYSIS, "connection")
    state = F.struct(*connection_key(connections.columns), "closed_by", "is_kafka")
    both = connections.withColumn("earlier", F.lag(state).over(ends))
    return both.where(
        (F.col(ANALYSIS) != F.col(f"earlier.{ANALYSIS}"))
        & F.col("earlier.closed_by").isNull()
        & ~F.col("seen_from_start")
        & (F.col("is_kafka") | F.col("earlier.is_kafka"))
    ).select(
        F.struct(*connection_key(connections.columns)).alias("later"),
        "earlier",
        "early_bytes",
        "first_time",
    )


def _counted(cut: DataFrame, frames: DataFrame) -> DataFrame:
    """Return how many items were cut between each pair of successive analyses."""
    is_request = F.col("direction") == "request"
    counted = frames.groupBy(*connection_key(frames.columns)).agg(
        F.count_if(is_request & ~F.col("answered")).alias("unanswered"),
        F.count_if(F.col("outcome") == UNPAIRED).alias("unpaired"),
    )
    each = _with(_with(cut, counted, "earlier", "unanswered"), counted, "later", "unpaired")
    return each.groupBy(
        F.col(f"later.{ANALYSIS}").alias(ANALYSIS), F.col(f"earlier.{ANALYSIS}").alias(_BEFORE)
    ).agg(
        F.count("*").alias("connections"),
        F.coalesce(F.sum("unanswered"), F.lit(0)).alias("unanswered_requests"),
        F.coalesce(F.sum("unpaired"), F.lit(0)).alias("unpaired_responses"),
        F.coalesce(F.sum("early_bytes"), F.lit(0)).alias("early_bytes"),
        F.min("first_time").alias("time"),
    )


def _with(cut: DataFrame, counted: DataFrame, side: str, name: str) -> DataFrame:
    """Add a count, taken from the analysis on one ``side`` of the cut, to the cut connections."""
    key = connection_key(counted.columns)
    counts = counted.select(F.struct(*key).alias("of"), name)
    is_it = [F.col(f"{side}.{part}") == F.col(f"of.{part}") for part in key]
    return cut.join(counts, is_it, "left").drop("of")


def boundary_notes(tables: AnalysisTables) -> tuple[str, ...]:
    """Return a sentence about the cuts between analyses, or nothing if there were none."""
    if ANALYSIS not in tables.connections.columns:
        return ()
    # Usually, nothing was cut, and then no frames are read.
    if _cut(tables.connections).isEmpty():
        return ()
    rows = boundaries(tables).drop(ANALYSIS, _BEFORE, "time").groupBy().sum().collect()
    connections, unanswered, unpaired, early = rows[0]
    go = "continues" if connections == 1 else "continue"
    note = (
        f"{plural(connections, 'connection')} {go} from one analysis to the next. The cut left "
        f"{plural(unanswered, 'request')} without a response, {plural(unpaired, 'response')} "
        f"without a request, and {human_bytes(early)} of incomplete frames. The answer "
        f"{ANSWER.name} lists these numbers by analysis."
    )
    return (note,)


ANSWER: Final = Answer(
    name="boundaries",
    place=170,
    question="Which connections were cut between two analyses?",
    meaning=(
        "Connections that continue from one analysis to the next, with the numbers of requests "
        "and responses that were separated, and the number of bytes that precede the first segment "
        "after the cut. This answer has rows only if several analyses were appended to the same "
        "tables."
    ),
    advice=(
        "If a run of `analyze --append` cannot continue the connections of the previous run, it "
        "prints the reason. Use the same broker options in all runs, and analyze the captures in "
        "chronological order."
    ),
    row="a pair of consecutive analyses",
    columns=COLUMNS,
    order=("time", ANALYSIS, _BEFORE),
    ask=boundaries,
    of_grown=True,
)
