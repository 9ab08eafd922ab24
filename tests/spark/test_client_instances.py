"""The client instance id is in Spark's tables, and in the answer about client metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.answers.client_metrics import client_metrics
from flexwire.schema.catalog import use_catalog
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.wire.varint import uuid_text
from tests.protocol.payloads import make
from tests.protocol.test_telemetry import pushed
from tests.schema.trunk import GET_TELEMETRY, OFFSET_DELETE, PUSH_TELEMETRY, trunk_catalog
from tests.spark.traffic import Traffic, response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

pytestmark = pytest.mark.spark

NONE = UUID(int=0)
IN_HEADER, IN_BODY, OF_BROKER, ONCE = (UUID(int=number) for number in range(7, 11))


@pytest.fixture(scope="module", autouse=True)
def _trunk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    use_catalog(trunk_catalog(tmp_path_factory.mktemp("trunk")))
    yield
    use_catalog(None)


def asked(api_key: int, version: int, number: int, instance: UUID, body: Any) -> bytes:
    """Return a request with header version 3, or with header version 2 for version 0."""
    header = make(
        "RequestHeader",
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=number,
        client_id="tests",
        client_instance_id=instance,
    )
    encoded: bytes = header.encode(3 if version else 2) + body.encode(version)
    return encoded


def talk(traffic: Traffic, port: int, frames: list[tuple[bytes, str, int, Any]]) -> None:
    connection = traffic.connect(("10.0.0.9", port))
    for number, (sent, name, version, answer) in enumerate(frames):
        traffic.send(connection, "request", sent)
        made = make(name, **answer)
        traffic.send(connection, "response", response(made, version, number))
    connection.close(timestamp_us=traffic.now_us)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> AnalysisTables:
    root = tmp_path_factory.mktemp("instances")
    traffic = Traffic(root / "capture")
    pushes, subscribes = "PushTelemetryResponse", "GetTelemetrySubscriptionsResponse"
    push = make("PushTelemetryRequest", metrics=pushed())
    asks = make("GetTelemetrySubscriptionsRequest")
    named = make("PushTelemetryRequest", metrics=pushed(), client_instance_id=IN_BODY)
    deletes = make("OffsetDeleteRequest", group_id="g")
    talk(traffic, 50000, [(asked(PUSH_TELEMETRY, 1, 0, IN_HEADER, push), pushes, 1, {})])
    talk(traffic, 50001, [(asked(PUSH_TELEMETRY, 0, 0, NONE, named), pushes, 0, {})])
    assigned = {"client_instance_id": OF_BROKER}
    talk(
        traffic,
        50002,
        [
            (asked(GET_TELEMETRY, 0, 0, NONE, asks), subscribes, 0, assigned),
            # This client sends no id, although an id was assigned.
            (asked(PUSH_TELEMETRY, 0, 1, NONE, push), pushes, 0, {}),
        ],
    )
    talk(
        traffic,
        50003,
        [
            (asked(OFFSET_DELETE, 1, 0, ONCE, deletes), "OffsetDeleteResponse", 1, {}),
            (asked(PUSH_TELEMETRY, 1, 1, NONE, push), pushes, 1, {}),
        ],
    )
    talk(traffic, 50004, [(asked(PUSH_TELEMETRY, 1, 0, NONE, push), pushes, 1, {})])
    traffic.close()
    analyze([root / "capture"], root / "out", spark=spark, answers=[])
    return open_tables(spark, root / "out")


EXPECTED = {
    50000: uuid_text(IN_HEADER),
    50001: uuid_text(IN_BODY),
    50002: uuid_text(OF_BROKER),
    50003: uuid_text(ONCE),
    50004: None,
}


def test_frames_and_connections_have_it(tables: AnalysisTables) -> None:
    for table in (tables.frames, tables.connections):
        rows = table.select("client", "client_instance_id").distinct().collect()
        assert {int(row[0].rpartition(":")[2]): row[1] for row in rows} == EXPECTED
        assert len(rows) == len(EXPECTED)


def test_metrics_are_of_the_instance_whoever_gave_its_id(tables: AnalysisTables) -> None:
    rows = client_metrics(tables).collect()
    assert {row.client_instance_id for row in rows} == set(EXPECTED.values())
    assert all(row.points == 1 for row in rows)


def test_tables_from_before_the_column_have_what_the_bodies_give(tables: AnalysisTables) -> None:
    column = "client_instance_id"
    older = replace(
        tables, frames=tables.frames.drop(column), connections=tables.connections.drop(column)
    )
    rows = client_metrics(older).collect()
    assert {row.client_instance_id for row in rows} == {uuid_text(IN_BODY), None}
