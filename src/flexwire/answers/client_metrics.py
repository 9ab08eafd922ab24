"""The metrics that clients push to brokers (KIP-714), by name, unit and client."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums, returns
from flexwire.answers.asking.day_sums import DAY
from flexwire.answers.asking.exact_sums import divided, sum_exactly
from flexwire.answers.asking.messages import known_id
from flexwire.answers.asking.software import CONNECTION, connection_columns
from flexwire.columnar.record_columns import MOMENT
from flexwire.errors import CodecError
from flexwire.protocol.telemetry import PUSHES, has_telemetry, read_client_metrics
from flexwire.tables.keys import connection_key
from flexwire.tables.output import MESSAGES
from flexwire.tables.schema import Column, schema_of
from flexwire.tasks import begin_task, map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_INSTANCE: Final = "client_instance_id"
_CLIENT: Final = ("client_id", _INSTANCE)
# A push of one MiB contains about ten thousand points.
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
"""The columns of `metric_points`. An unreadable push is a row with only an ``error``.
"""

_POINTS: Final = pa.schema(
    [*POINTS, (DAY, pa.date32()), *((name, pa.string()) for name in CONNECTION)]
)
_METRIC: Final = ("name", "unit", "kind", "temporality", "error")
_KEY: Final = (*CONNECTION, *_CLIENT, *_METRIC)
# The exact sums: of values, of the sums of observations, and of the counts since the previous push.
_EXACT: Final = ("of_values", "of_sums", "of_delta")
_LATEST: Final = pa.struct([("pushed", _US), ("time_us", pa.int64()), ("value", pa.float64())])
_SUMS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        *((name, pa.string()) for name in _KEY),
        *((name, pa.int64()) for name in ("points", "value_count")),
        ("counts", pa.decimal128(38, 0)),
        *((name, pa.float64()) for name in ("least", "most")),
        ("latest", _LATEST),
        *((name, MOMENT) for name in ("first_time", "last_time")),
        *((name, pa.string()) for name in _EXACT),
    ]
)

COLUMNS: Final = (
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("client_instance_id", pa.string(), "the id of this client instance, which is "
           "assigned by the broker or, with version 3 of the request header (KIP-1313), generated "
           "by the client",
           "if neither the push nor the captured part of its connection contains the id"),
    Column("name", pa.string(), 'the metric: "org.apache.kafka.producer.request.latency.avg"',
           "if the pushes cannot be read", heading="Metric", is_about=True),
    Column("unit", pa.string(),
           "the unit of the metric; empty if the client sends no unit (Kafka's Java client sends "
           "none)",
           "if ``name`` is null", heading="Unit"),
    Column("kind", pa.string(), '"gauge", "sum", "histogram", "exponential_histogram" or '
           '"summary"', "if ``name`` is null", heading="Kind"),
    Column("temporality", pa.string(),
           'the period that each pushed value covers: since the previous push ("delta"), or since '
           'a fixed start ("cumulative")',
           "for a gauge or a summary, or if ``name`` is null"),
    Column("points", pa.int64(),
           "the number of pushed values or, if the pushes cannot be read, the number of pushes",
           heading="Values"),
    Column("least", pa.float64(), "the smallest value", "for histograms and summaries"),
    Column("mean", pa.float64(),
           "the mean of the values, or of the observations in histograms and summaries",
           "if there are no values", heading="Mean"),
    Column("most", pa.float64(), "the largest value", "for histograms and summaries"),
    Column("total", pa.float64(), "the sum of all pushed values",
           'unless ``temporality`` is "delta"', heading="Total"),
    Column("latest", pa.float64(), "the last value that was pushed", "for histograms and "
           "summaries", heading="Latest"),
    Column("first_time", MOMENT, "when the first value was pushed"),
    Column("last_time", MOMENT, "when the last value was pushed"),
    Column("error", pa.string(), "why the pushes cannot be read", "if the pushes can be read",
           heading="Why pushes cannot be read"),
)  # fmt: skip


def metric_points(tables: AnalysisTables) -> DataFrame | None:
    """Return a row for each point of each pushed metric, or None if there are no pushes.

    If the body of a push contains no client instance id, the row contains the one that is known for
    the connection.
    """
    points = _points(tables)
    return None if points is None else _with_instances(points, tables).select(*POINTS.names)


def _points(tables: AnalysisTables) -> DataFrame | None:
    """Return the points with the instance id of their push or, if missing, with the connection."""
    table = tables.message(PUSHES)
    if table is None:
        return None
    given = known_id(F.col(f"body.{_INSTANCE}"))
    own_key = [F.when(F.col(_INSTANCE).isNull(), F.col(name)).alias(name) for name in CONNECTION]
    pushes = table.where("body is not null").select(
        *connection_columns(table),
        "client_id",
        given.alias(_INSTANCE),
        F.col("time").alias("pushed"),
        F.col("body.compression_type").cast("int").alias("compression_type"),
        F.col("body.metrics").alias("metrics"),
    )
    others = [name for name in pushes.columns if name not in CONNECTION]
    return map_in_arrow(pushes.select(*others, *own_key), _read, _POINTS)


def _with_instances(rows: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Fill in the instance ids of connections, and drop the keys of connections."""
    if _INSTANCE in tables.connections.columns:
        key = connection_key(tables.connections.columns)
        of_connections = tables.connections.where(F.col(_INSTANCE).isNotNull()).select(
            *key, F.col(_INSTANCE).alias("its_instance")
        )
        rows = rows.join(of_connections, [*key], "left").withColumn(
            _INSTANCE, F.coalesce(_INSTANCE, "its_instance")
        )
    return rows.drop(*CONNECTION, "its_instance")


@returns(COLUMNS)
def client_metrics(tables: AnalysisTables) -> DataFrame | None:
    """Return every metric of every client, with the values for all attributes combined.

    flexwire reads metrics by means of the OpenTelemetry classes that ``flexwire[telemetry]``
    installs. Without these classes, no metrics are read, and ``error`` states the reason. Clients
    push only the metrics that the cluster subscribes to.
    """
    parts = _part(tables)
    return None if parts is None else _total(parts, tables)


def _part(tables: AnalysisTables) -> DataFrame | None:
    """Return the sums of each day; sums without an instance id also contain the connection."""
    points = _points(tables)
    if points is None:
        return None
    is_delta = F.col("temporality") == "delta"
    of_delta = F.when(is_delta, F.coalesce("value", "sum"))
    exact = zip(_EXACT, (F.col("value"), F.col("sum"), of_delta), strict=True)
    # Positive and negative zero are equal, so either of them could be the least value.
    value = F.col("value") + F.lit(0.0)
    summed = points.groupBy(DAY, *_KEY).agg(
        F.count("*").alias("points"),
        F.min(value).alias("least"),
        F.max(value).alias("most"),
        F.count("value").alias("value_count"),
        F.sum(F.col("count").cast("decimal(38, 0)")).alias("counts"),
        F.max(F.struct("pushed", "time_us", "value")).alias("latest"),
        F.min("pushed").alias("first_time"),
        F.max("pushed").alias("last_time"),
        *(F.collect_list(column).alias(name) for name, column in exact),
    )
    return map_in_arrow(summed.select(*_SUMS.names), _sum_lists, _SUMS)


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from sums."""
    summed = _with_instances(parts, tables).groupBy(*_CLIENT, *_METRIC)
    rows = summed.agg(
        *(F.sum(name).alias(name) for name in ("points", "value_count", "counts")),
        F.min("least").alias("least"),
        F.max("most").alias("most"),
        F.max("latest")["value"].alias("latest"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
        *(F.collect_list(name).alias(name) for name in _EXACT),
    )
    return map_in_arrow(rows, _shown, schema_of(COLUMNS))


def _sum_lists(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows with exact sums instead of lists of doubles."""
    begin_task()
    for batch in batches:
        sums = [
            pa.array([sum_exactly(numbers) for numbers in batch[name].to_pylist()], pa.string())
            if name in _EXACT
            else batch[name].cast(_SUMS.field(name).type)
            for name in _SUMS.names
        ]
        yield pa.RecordBatch.from_arrays(sums, schema=_SUMS)


def _shown(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of the answer, based on sums whose exact sums are in lists."""
    begin_task()
    for batch in batches:
        yield pa.RecordBatch.from_pylist(
            [_with_means(row) for row in batch.to_pylist()], schema_of(COLUMNS)
        )


def _with_means(row: dict[str, Any]) -> dict[str, Any]:
    values, sums, of_delta = (sum_exactly(row[name]) for name in _EXACT)
    observed = None if row["counts"] is None else int(row["counts"])
    mean = divided(sums, observed) if values is None else divided(values, row["value_count"])
    shown = row | {"mean": mean, "total": divided(of_delta, 1)}
    return {column.name: shown[column.name] for column in COLUMNS}


def _has_no_library(_tables: AnalysisTables) -> bool:
    """Return whether metrics cannot be read here, in which case their sums are not stored."""
    return not has_telemetry()


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    rows: list[dict[str, Any]] = []
    for batch in batches:
        for push in batch.to_pylist():
            rows += _rows(push)
            if len(rows) >= _ROWS:
                yield pa.RecordBatch.from_pylist(rows, _POINTS)
                rows = []
    yield pa.RecordBatch.from_pylist(rows, _POINTS)


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
    question="Which metrics do clients push to brokers?",
    meaning="Each metric that clients push (KIP-714), by client. Each row combines "
    "a metric's values across all combinations of its attributes.",
    advice="Look for clients whose latencies or error rates are much higher than those of other "
    "clients.",
    row="a combination of a client and a metric",
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
    sums=DaySums(
        version=1,
        tables=lambda: [f"{MESSAGES}/{PUSHES}"],
        columns=_SUMS,
        part=_part,
        total=_total,
        unless=_has_no_library,
    ),
)
