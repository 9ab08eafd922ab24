"""An answer lists connections that reached the wrong broker and were refused (KIP-1242)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.misrouted import ANSWER, misrouted
from tests.spark.told import BROKER, SECOND, Told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
REFUSED = {"error_code": 129}


def meant(cluster_id: str | None, node_id: int) -> dict[str, Any]:
    return {"cluster_id": cluster_id, "node_id": node_id}


def connect(told: Told, client_id: str | None, end: str, at: int, *exchanges: Any) -> None:
    told.connection(end, at, at + SECOND)
    for asked, answer in exchanges:
        told.exchange((client_id, end), "ApiVersions", at, 1000, asked, answer)


def test_refused_connections_by_client_and_by_what_was_meant(spark: SparkSession) -> None:
    told = Told()
    east = (meant("east", 3), REFUSED)
    connect(told, "billing", "10.0.1.1:4001", 0, east)
    # On one connection, the broker refused twice, which counts once.
    connect(told, "billing", "10.0.1.1:4002", 60 * SECOND, east, east)
    connect(told, "billing", "10.0.1.1:4003", 90 * SECOND, (meant("east", 4), REFUSED))
    connect(told, None, "10.0.1.2:4001", 120 * SECOND, (meant(None, -1), REFUSED))
    # The intended broker, a different error, and a client that names no broker.
    connect(told, "billing", "10.0.1.1:4004", 0, (meant("west", 1), {"error_code": 0}))
    connect(told, "billing", "10.0.1.1:4005", 0, (meant("east", 3), {"error_code": 35}))
    connect(told, "old", "10.0.1.3:4001", 0, ({}, {}))
    rows = {
        (row.client_id, row.address, row.cluster_id, row.node_id): row
        for row in misrouted(told.tables(spark)).collect()
    }
    assert {key: row.connections for key, row in rows.items()} == {
        ("billing", "10.0.1.1", "east", 3): 2,
        ("billing", "10.0.1.1", "east", 4): 1,
        (None, "10.0.1.2", None, None): 1,
    }
    assert {row.broker for row in rows.values()} == {BROKER}
    row = rows["billing", "10.0.1.1", "east", 3]
    assert (row.last_time - row.first_time).total_seconds() == 60


def test_traffic_without_apiversions_has_no_answer(spark: SparkSession) -> None:
    told = Told()
    told.connection("10.0.1.1:4001", 0, SECOND)
    told.exchange(("billing", "10.0.1.1:4001"), "Metadata", 0)
    assert ANSWER.ask(told.tables(spark)).count() == 0
