"""A connection is attributed to one client, whatever client ids its requests name."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.answers.asking.audit import AuditTables, TableEvidence
from flexwire.measures.audit import AuditSums
from flexwire.measures.audit_rows import AUDITED, CONNECTIONS, SENT
from flexwire.measures.ownership import attributed, owning
from flexwire.protocol.audit import OPENING_APIS, Party
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE
from tests.spark.test_audit_sums import by_connection_of, only_opens, owner_of, read, summed
from tests.spark.traffic import Traffic, made, request

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.measures.evidence import AuditEvidence

KIND = AUDITED[SENT]
SASL_HANDSHAKE, API_VERSIONS, METADATA, FETCH = 17, 18, 3, 1
CLIENT_IDS = (None, "", "a", "b", "ä", "B")
SOFTWARE = ((None, None), (None, None), ("x", "1"), ("x", None), ("y", "1"))
ROW = st.tuples(
    st.integers(0, 4),
    st.sampled_from(CLIENT_IDS),
    st.sampled_from(SOFTWARE),
    st.sampled_from((SASL_HANDSHAKE, API_VERSIONS, METADATA, FETCH)),
    st.integers(1, 5),
)
Row = tuple[int, str | None, tuple[str | None, str | None], int, int]


def rows(told: list[Row]) -> pa.RecordBatch:
    """Return rows of sent requests, with equal rows merged."""
    every = [
        {
            "connection": f"c{connection}", "client_id": client_id,
            "client_software_name": software[0], "client_software_version": software[1],
            "api_key": api_key, "api_version": 0, "requests": requests,
            "first_us": 0, "last_us": 0, "answers": 0,
        }
        for connection, client_id, software, api_key, requests in told
    ]  # fmt: skip
    return KIND.united(pa.RecordBatch.from_pylist(every, KIND.schema))


def requests_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return a row for each request, as the reference counts requests."""
    return [one for one in batch.to_pylist() for _ in range(one["requests"])]


@pytest.mark.long
@pytest.mark.slow
@given(st.lists(ROW, max_size=40))
def test_a_connection_has_one_owner_and_no_request_is_lost(told: list[Row]) -> None:
    batch = rows(told)
    before = by_connection_of(requests_of(batch))
    found = attributed(batch, KIND)
    after = by_connection_of(requests_of(found))
    assert {name: len(own) for name, own in after.items()} == {
        name: len(own) for name, own in before.items()
    }
    for name, own in before.items():
        owner = owner_of(own)
        moved = [owner if only_opens(one["client_id"], own) else one["client_id"] for one in own]
        assert Counter(one["client_id"] for one in after[name]) == Counter(moved)
        named = {
            (one["client_software_name"], one["client_software_version"])
            for one in own
            if one["client_software_name"] is not None
        }
        nameless = any(one["client_software_name"] is None for one in after[name])
        assert not (nameless and len(named) == 1)
    owners = found.take(pa.array(owning(found))).to_pylist()
    assert [one["connection"] for one in sorted(owners, key=lambda one: one["connection"])] == (
        sorted(before)
    )
    assert {one["connection"]: one["client_id"] for one in owners} == {
        name: owner_of(own) for name, own in before.items()
    }
    # Adding the same rows again changes nothing.
    assert attributed(found, KIND).to_pylist() == found.to_pylist()


def sasl(traffic: Traffic, port: int, first: str | None, rest: str | None) -> None:
    """Write a client that opens its connection with one client id and then uses another."""
    connection = traffic.connect(("10.0.0.7", port))
    opening = ((first, "ApiVersions", 0), (first, "SaslHandshake", 1))
    for number, (client_id, name, version) in enumerate((*opening, (rest, "Metadata", 1))):
        values = {"mechanism": "PLAIN"} if name == "SaslHandshake" else {}
        body = made(f"{name}Request", **values)
        told = request(body, version, number, client_id=client_id)
        traffic.send(connection, "request", told)


@pytest.mark.parametrize("first", ["", None, "sasl"])
def test_a_client_that_opens_with_another_client_id_is_one_client_on_one_connection(
    tmp_path: Path, first: str | None
) -> None:
    traffic = Traffic(tmp_path / "capture")
    for port in (1000, 1001):
        sasl(traffic, port, first, "billing")
    traffic.close()
    conducts = summed(read([traffic.directory])).evidence().conducts
    assert list(conducts) == [Party("billing", "10.0.0.7")]
    (conduct,) = conducts.values()
    assert (conduct.connections, conduct.requests) == (2, 6)
    assert conduct.mechanisms == {"PLAIN"}
    assert conduct.api_keys == {API_VERSIONS, SASL_HANDSHAKE, METADATA}


def random_tables(seed: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Draw frames and connections on which any client may send anything."""
    chance = random.Random(seed)
    start = datetime(2026, 11, 23, tzinfo=UTC)
    ends = [f"10.0.0.{number % 4}:{number}" for number in range(40)]
    connections = [
        {
            "connection": f"{end}>10.0.1.1:9092", "client": end, "broker": "10.0.1.1:9092",
            "is_kafka": chance.random() < 0.9, "seen_from_start": chance.random() < 0.7,
            "closed_by": chance.choice((None, "broker", "client")),
        }
        for end in ends
    ]  # fmt: skip
    frames = []
    for number in range(400):
        software = chance.choice(SOFTWARE)
        frames.append(
            {
                "connection": chance.choice(connections)["connection"],
                "direction": chance.choice(("request", "request", "response")),
                "client_id": chance.choice(CLIENT_IDS),
                "client_software_name": software[0],
                "client_software_version": software[1],
                "api_key": chance.choice((SASL_HANDSHAKE, API_VERSIONS, METADATA, FETCH, None)),
                "api_version": chance.randrange(3),
                "time": start + timedelta(seconds=number),
                "answered": chance.choice((None, True, False)),
            }
        )
    return (
        pa.RecordBatch.from_pylist(frames, FRAMES_TABLE),
        pa.RecordBatch.from_pylist(connections, CONNECTIONS_TABLE),
    )


def of_sums(frames: pa.RecordBatch, connections: pa.RecordBatch) -> AuditEvidence:
    sums = AuditSums()
    sums.add(FRAMES, frames)
    sums.add(CONNECTIONS, connections)
    return sums.evidence()


@pytest.mark.parametrize("seed", range(20))
def test_connections_over_all_clients_are_those_on_which_requests_were_sent(seed: int) -> None:
    frames, connections = random_tables(seed)
    kafka = {one["connection"] for one in connections.to_pylist() if one["is_kafka"]}
    sending = {
        one["connection"]
        for one in frames.to_pylist()
        if one["direction"] == "request" and one["api_key"] is not None
    }
    conducts = of_sums(frames, connections).conducts
    assert sum(one.connections for one in conducts.values()) == len(kafka & sending)
    # Some connections carry requests from several clients, but still count once.
    clients: defaultdict[str, set[str | None]] = defaultdict(set)
    for one in frames.to_pylist():
        if one["direction"] == "request" and one["api_key"] not in {None, *OPENING_APIS}:
            clients[one["connection"]].add(one["client_id"])
    assert any(len(some) > 1 for some in clients.values())


@pytest.mark.long
@pytest.mark.spark
def test_queries_over_tables_find_the_same_owners(spark: SparkSession) -> None:
    for seed in range(3):
        frames, connections = random_tables(seed)
        tables = AuditTables(
            spark.createDataFrame(pa.Table.from_batches([frames])),
            spark.createDataFrame(pa.Table.from_batches([connections])),
            lambda _: None,
        )
        assert TableEvidence(tables, ()).evidence() == of_sums(frames, connections)
