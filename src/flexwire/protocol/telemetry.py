"""The metrics that clients send to brokers (KIP-714): compressed OTLP bytes, read as rows.

OpenTelemetry's generated classes read the metrics (``pip install 'flexwire[telemetry]'``), because
the format belongs to OpenTelemetry. Decompression is limited.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flexwire.arguments import to_bytes, to_int
from flexwire.errors import CodecError, DecodeError, RecordError, remedy
from flexwire.records.compression import inflate
from flexwire.records.record import COMPRESSIONS
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_INFLATED: Final = 4 * 1024 * 1024
"""The maximum size of metrics after decompression. Larger metrics are refused. By default, a broker
accepts 1 MiB of compressed metrics.
"""
MOST_POINTS: Final = 100_000
"""The maximum number of values in a push. A push with more values is refused, because a value may
take only two bytes on the wire but 1 kB of memory here.
"""

PUSHES: Final = "PushTelemetryRequest"
_PLACE: Final = "metrics"
_LIBRARY: Final = "opentelemetry.proto.metrics.v1.metrics_pb2"
# The compression formats of magic 2. lz4 and snappy data is in the form that current clients write.
_MAGIC: Final = 2
# The period of a metric, by number: since the last push, or since the beginning.
_TEMPORALITIES: Final = (None, "delta", "cumulative")


@dataclass(frozen=True, slots=True)
class ClientMetric:
    """A data point of a metric.

    ``kind`` is "gauge", "sum", "histogram", "exponential_histogram" or "summary". ``temporality``
    describes the period of a sum or histogram: "delta" is the time since the last push, and
    "cumulative" is the time since ``start_us``. Gauges and sums contain a ``value``; the other
    kinds contain a ``count`` and a ``sum``. Times are in microseconds since the epoch, or 0 if the
    metric has no time.
    """

    name: str
    unit: str
    kind: str
    temporality: str | None
    is_monotonic: bool
    attributes: dict[str, str]
    start_us: int
    time_us: int
    value: float | None
    count: int | None
    sum: float | None


def read_client_metrics(
    metrics: bytes, compression_type: int = 0, *, limit: int = MOST_INFLATED
) -> list[ClientMetric]:
    """Read the metrics in a PushTelemetry request, given its compression type.

    Raises `DecodeError` for bytes that are not metrics or exceed ``limit`` bytes after
    decompression, and `CodecError` if OpenTelemetry's classes are not installed. Metrics of an
    unknown kind are skipped.
    """
    raw = to_bytes(metrics, "metrics")
    number = to_int(compression_type, "compression_type")
    if not 0 <= number < len(COMPRESSIONS):
        raise _refused(f"no compression type has number {number}")
    try:
        data = inflate(COMPRESSIONS[number], raw, magic=_MAGIC, limit=to_int(limit, "limit"))
    except RecordError as error:
        raise _refused(error.reason) from None
    if len(data) > limit:
        raise _refused(f"expected at most {limit} bytes of metrics, got {len(data)}")
    library = _library()
    data_read = library.MetricsData()
    try:
        data_read.ParseFromString(data)
    except Exception as error:  # noqa: BLE001 - the kind of error depends on the back end of protobuf
        raise _refused(f"not OpenTelemetry metrics: {error}") from None
    held, count = [], 0
    for metric in _metrics(data_read):
        # A metric without a value takes as much memory as one with a value.
        count += max(1, len(metric[2].data_points))
        if count > MOST_POINTS:
            raise _refused(f"expected at most {MOST_POINTS} values in one push, got more")
        held.append(metric)
    return [point for metric in held for point in _of_metric(*metric)]


def has_telemetry() -> bool:
    """Return whether the OpenTelemetry classes, which read metrics, are installed."""
    try:
        _library()
    except CodecError:
        return False
    return True


def _library() -> Any:
    try:
        return importlib.import_module(_LIBRARY)
    except ImportError:
        raise CodecError(
            f"client metrics require the OpenTelemetry classes: {remedy('telemetry')}",
            path=_PLACE,
            message=PUSHES,
        ) from None


def _refused(reason: str) -> DecodeError:
    return DecodeError(reason, path=_PLACE, message=PUSHES)


def _metrics(data: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield each metric with the name of its kind and its data."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                if kind is not None:
                    yield metric, kind, getattr(metric, kind)


def _of_metric(metric: Any, kind: str, data: Any) -> Iterator[ClientMetric]:
    number = getattr(data, "aggregation_temporality", 0)
    # OpenTelemetry's classes return the number itself if they do not know it yet.
    temporality = _TEMPORALITIES[number] if 0 <= number < len(_TEMPORALITIES) else str(number)
    is_monotonic = bool(getattr(data, "is_monotonic", False))
    for point in data.data_points:
        is_number = kind in {"gauge", "sum"}
        which = point.WhichOneof("value") if is_number else None
        yield ClientMetric(
            metric.name,
            metric.unit,
            kind,
            temporality,
            is_monotonic,
            _texts(point.attributes),
            point.start_time_unix_nano // 1000,
            point.time_unix_nano // 1000,
            None if which is None else float(getattr(point, which)),
            None if is_number else _int64(point.count),
            None if is_number else point.sum,
        )


def _int64(count: int) -> int:
    if count > INT64_MAX:
        raise _refused(f"expected a count of at most {INT64_MAX}, got {count}")
    return count


def _texts(pairs: Iterable[Any]) -> dict[str, str]:
    return {pair.key: _text(pair.value) for pair in pairs}


def _text(value: Any) -> str:
    which = value.WhichOneof("value")
    if which is None:
        return ""
    content = getattr(value, which)
    return content if isinstance(content, str) else str(content)
