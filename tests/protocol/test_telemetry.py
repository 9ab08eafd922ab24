"""Pushed metrics are read as OpenTelemetry reads them; invalid bytes raise flexwire errors."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import CodecError, DecodeError
from flexwire.protocol import telemetry
from flexwire.protocol.telemetry import MOST_POINTS, ClientMetric, read_client_metrics
from flexwire.records.compression import deflate
from flexwire.records.record import COMPRESSIONS

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND


def library() -> Any:
    return importlib.import_module("opentelemetry.proto.metrics.v1.metrics_pb2")


def pushed(value: float = 2.5) -> bytes:
    """Return a gauge, a counter and a histogram, as a client pushes them."""
    made = library().MetricsData()
    metrics = made.resource_metrics.add().scope_metrics.add().metrics
    gauge = metrics.add(name="org.apache.kafka.producer.latency.avg", unit="ms")
    point = gauge.gauge.data_points.add(time_unix_nano=NOW, as_double=value)
    point.attributes.add(key="client_rack").value.string_value = "r1"
    point.attributes.add(key="node").value.int_value = 7
    point.attributes.add(key="nothing")
    total = metrics.add(name="org.apache.kafka.producer.records", unit="1")
    total.sum.aggregation_temporality = 1
    total.sum.is_monotonic = True
    total.sum.data_points.add(
        start_time_unix_nano=NOW - SECOND, time_unix_nano=NOW, as_int=2**53 - 1
    )
    sizes = metrics.add(name="sizes", unit="By")
    sizes.histogram.aggregation_temporality = 2
    sizes.histogram.data_points.add(time_unix_nano=NOW, count=4, sum=10.5)
    # A metric without data; these classes read a newer kind of metric in this way.
    metrics.add(name="of another kind")
    return bytes(made.SerializeToString())


US = NOW // 1000
LATENCY, RECORDS = "org.apache.kafka.producer.latency.avg", "org.apache.kafka.producer.records"
OF_LATENCY = {"client_rack": "r1", "node": "7", "nothing": ""}
MOST = float(2**53 - 1)
EXPECTED = [
    ClientMetric(LATENCY, "ms", "gauge", None, False, OF_LATENCY, 0, US, 2.5, None, None),
    ClientMetric(RECORDS, "1", "sum", "delta", True, {}, US - 1_000_000, US, MOST, None, None),
    ClientMetric("sizes", "By", "histogram", "cumulative", False, {}, 0, US, None, 4, 10.5),
]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_metrics_of_each_compression_type_are_read(compression: Any) -> None:
    number = COMPRESSIONS.index(compression)
    data = deflate(compression, pushed(), level=None, magic=2)
    assert read_client_metrics(data, number) == EXPECTED
    with pytest.raises(DecodeError):
        read_client_metrics(data + b"\xff" * 9, number)


@given(data=st.binary(max_size=200), number=st.integers(-1, 6))
def test_any_bytes_are_metrics_or_our_error(data: bytes, number: int) -> None:
    try:
        found = read_client_metrics(data, number)
    except DecodeError:
        found = []
    assert all(isinstance(one, ClientMetric) for one in found)


@given(at=st.integers(0, 500), byte=st.integers(0, 255))
def test_damaged_metrics_are_read_or_our_error(at: int, byte: int) -> None:
    data = bytearray(pushed())
    at %= len(data)
    data[at] = byte
    for raw in (bytes(data), bytes(data[:at])):
        with suppress(DecodeError):
            read_client_metrics(raw)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_nothing_inflates_beyond_the_limit(compression: Any) -> None:
    number = COMPRESSIONS.index(compression)
    data = deflate(compression, bytes(100_000), level=None, magic=2)
    with pytest.raises(DecodeError, match=r"more than 99999 bytes|at most 99999 bytes"):
        read_client_metrics(data, number, limit=99_999)


@pytest.mark.long
@pytest.mark.slow
def test_more_values_than_are_held_are_refused() -> None:
    made = library().MetricsData()
    gauge = made.resource_metrics.add().scope_metrics.add().metrics.add(name="x").gauge
    gauge.data_points.extend(library().NumberDataPoint() for _ in range(MOST_POINTS))
    assert len(read_client_metrics(made.SerializeToString())) == MOST_POINTS
    gauge.data_points.add()
    with pytest.raises(DecodeError, match="at most 100000 values in one push, got more"):
        read_client_metrics(made.SerializeToString())


@pytest.mark.long
@pytest.mark.slow
def test_metrics_without_values_count_too() -> None:
    made = library().MetricsData()
    metrics = made.resource_metrics.add().scope_metrics.add().metrics
    for _ in range(MOST_POINTS + 1):
        metrics.add().gauge.SetInParent()
    with pytest.raises(DecodeError, match="at most 100000 values in one push, got more"):
        read_client_metrics(made.SerializeToString())


def test_a_count_that_no_column_holds_is_refused() -> None:
    made = library().MetricsData()
    histogram = made.resource_metrics.add().scope_metrics.add().metrics.add(name="x").histogram
    histogram.data_points.add(count=2**63)
    with pytest.raises(DecodeError, match=f"a count of at most {2**63 - 1}, got {2**63}"):
        read_client_metrics(made.SerializeToString())


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_LIBRARY", "opentelemetry.of_nobody")
    with pytest.raises(CodecError, match=r"pip install 'flexwire\[telemetry\]'") as caught:
        read_client_metrics(b"")
    assert not isinstance(caught.value, DecodeError)
