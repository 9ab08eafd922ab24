"""The metrics that clients push to brokers (KIP-714), by name, unit and client."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.messages import known_id
from flexwire.columnar.record_columns import MOMENT
from flexwire.errors import CodecError
from flexwire.protocol.telemetry import PUSHES, read_client_metrics
from flexwire.tables.keys import connection_key
from flexwire.tables.schema import Column
from flexwire.tasks import begin_task, map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_INSTANCE: Final = "client_instance_id"
_CLIENT: Final = ("client_id", _INSTANCE)
# A push of one MiB has about ten thousand points.
_ROWS: Final = 10_000
_US: Final = pa.timestamp("us", "UTC")

POINTS: Final = pa.schema(
    [
        pa.field("client_id", pa.string()),
        pa.field("client_instance_id", pa.string()),
        pa.field("pushed", _US),
        pa.field("name", pa.string()),
        pa.field("unit", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("temporality", pa.string()),
        pa.field("is_monotonic", pa.bool_()),
        pa.field("attributes", pa.map_(pa.string(), pa.string())),
        pa.field("start_us", pa.int64()),
        pa.field("time_us", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("count", pa.int64()),
        pa.field("sum", pa.float64()),
        pa.field("error", pa.string()),
    ]
)
"""The columns of `metric_points`. A push that cannot be read is a row with only an ``error``.
"""

COLUMNS: Final = (
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("client_instance_id", pa.string(), "the id of this client instance, which the broker "
           "assigned or, with request header 3, the client made (KIP-1313)",
           "if neither the push nor the captured part of its connection has the id"),
    Column("name", pa.string(), 'the metric: "org.apache.kafka.producer.request.latency.avg"',
           "if the pushes cannot be read", heading="Metric", is_about=True),
    Column("unit", pa.string(),
           "the unit of the metric; empty if the client gives no unit, as Kafka's Java client",
           "if ``name`` is null", heading="Unit"),
    Column("kind", pa.string(), '"gauge", "sum", "histogram", "exponential_histogram" or '
           '"summary"', "if ``name`` is null", heading="Kind"),
    Column("temporality", pa.string(),
           'when the counts of the metric begin: "delta" means at the previous push, '
           '"cumulative" means at a fixed start',
           "for a gauge or a summary, or if ``name`` is null"),
    Column("points", pa.int64(),
           "the number of pushed values, or the number of pushes if they cannot be read",
           heading="Values"),
    Column("least", pa.float64(), "the least value", "for histograms and summaries"),
    Column("mean", pa.float64(),
           "the mean of the values, or of the observations in histograms and summaries",
           "if there is no value", heading="Mean"),
    Column("most", pa.float64(), "the greatest value", "for histograms and summaries"),
    Column("total", pa.float64(), "the sum of the counts since the previous push",
           'unless the counts are "delta"', heading="Total"),
    Column("latest", pa.float64(), "the last value that was pushed", "for histograms and "
           "summaries", heading="Latest"),
    Column("first_time", MOMENT, "when the first value was pushed"),
    Column("last_time", MOMENT, "when the last value was pushed"),
    Column("error", pa.string(), "why the pushes cannot be read", "if they can be read",
           heading="Why it cannot be read"),
)  # fmt: skip


def metric_points(tables: AnalysisTables) -> DataFrame | None:
    """Return a row for each point of each pushed metric, or None if there are no pushes.

    If the body of a push has no client instance id, that of its connection is used.
    """
    table = tables.message(PUSHES)
    if table is None:
        return None
    key = connection_key(table.columns)
    given = known_id(F.col(f"body.{_INSTANCE}"))
    pushed = table.where("body is not null").withColumn("_given", given)
    if _INSTANCE in tables.connections.columns:
        pushed = pushed.join(tables.connections.select(*key, _INSTANCE), [*key], "left")
    else:
        pushed = pushed.withColumn(_INSTANCE, F.lit(None).cast("string"))
    pushes = pushed.select(
        "client_id",
        F.coalesce("_given", _INSTANCE).alias(_INSTANCE),
        F.col("time").alias("pushed"),
        F.col("body.compression_type").cast("int").alias("compression_type"),
        F.col("body.metrics").alias("metrics"),
    )
    return map_in_arrow(pushes, _read, POINTS)


@returns(COLUMNS)
def client_metrics(tables: AnalysisTables) -> DataFrame | None:
    """Return each metric of each client, with all attributes of its values combined.

    OpenTelemetry's classes read the metrics. ``flexwire[telemetry]`` installs them. If they are
    missing, no metrics are read, and ``error`` says this. Clients push only the metrics that the
    cluster subscribes to.
    """
    points = metric_points(tables)
    if points is None:
        return None
    return (
        points.groupBy(*_CLIENT, "name", "unit", "kind", "temporality", "error")
        .agg(
            F.count("*").alias("points"),
            F.min("value").alias("least"),
            F.coalesce(F.avg("value"), F.sum("sum") / F.nullif(F.try_sum("count"), F.lit(0))).alias(
                "mean"
            ),
            F.max("value").alias("most"),
            F.sum(F.when(F.col("temporality") == "delta", F.coalesce("value", "sum"))).alias(
                "total"
            ),
            F.max_by("value", F.struct("pushed", "time_us", "value")).alias("latest"),
            F.min("pushed").alias("first_time"),
            F.max("pushed").alias("last_time"),
        )
        .select(*(column.name for column in COLUMNS))
    )


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    rows: list[dict[str, Any]] = []
    for batch in batches:
        for push in batch.to_pylist():
            rows += _rows(push)
            if len(rows) >= _ROWS:
                yield pa.RecordBatch.from_pylist(rows, POINTS)
                rows = []
    yield pa.RecordBatch.from_pylist(rows, POINTS)


def _rows(push: dict[str, Any]) -> list[dict[str, Any]]:
    metrics, compression_type = push.pop("metrics"), push.pop("compression_type")
    try:
        metrics_read = read_client_metrics(metrics or b"", compression_type)
    except CodecError as error:
        return [push | {"error": str(error)}]
    return [
        push | asdict(metric) | {"attributes": [*metric.attributes.items()]}
        for metric in metrics_read
    ]


ANSWER: Final = Answer(
    name="client_metrics",
    place=150,
    question="What do clients measure and push to brokers?",
    meaning="Each metric that clients push (KIP-714), by client. A row adds up all attributes of "
    "the metric.",
    advice="Look for clients whose latencies or error rates are much higher than those of other "
    "clients.",
    row="a client and metric",
    columns=COLUMNS,
    order=("error", "name", "unit", "kind", "temporality", *_CLIENT),
    shown=(
        "client_id",
        "name",
        "unit",
        "kind",
        "points",
        "mean",
        "latest",
        "total",
        "error",
    ),
    ask=client_metrics,
)
