"""The voters in a metadata log are the voters that Kafka reports."""

from __future__ import annotations

import contextlib
import socket
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.kafka.acting import MOST_SECONDS, SETTINGS, properties
from tests.kafka.asking import ask
from tests.spark.internal_topics.snapshots import compared, view
from tools.broker import VERSIONS, broker, new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
OTHER = 3
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
OURS = {"controller.quorum.voters": ""}


class Quorum(NamedTuple):
    """Kafka's answer: voters with their directories, listeners, and the kraft.version."""

    voters: dict[int, str | None]
    ends: dict[int, list[tuple[str, str, int]]]
    version: int


def quorum(address: str, version: str) -> Quorum:
    """Ask what the admin client asks in describeMetadataQuorum and describeFeatures."""
    wanted = [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]
    said = ask(address, "DescribeQuorum", version, topics=wanted)
    [told] = said["topics"][0]["partitions"]
    ids = {one["replicaId"]: one["replicaDirectoryId"] for one in told["currentVoters"]}
    levels = ask(
        address,
        "ApiVersions",
        version,
        most=4,
        clientSoftwareName="judge",
        clientSoftwareVersion="1",
    )["finalizedFeatures"]
    found = {one["name"]: one["maxVersionLevel"] for one in levels}
    return Quorum(
        {one: None if at == NO_ID else at for one, at in ids.items()},
        {
            one["nodeId"]: [(end["name"], end["host"], end["port"]) for end in one["listeners"]]
            for one in said["nodes"]
        },
        found.get("kraft.version", 0),
    )


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + MOST_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come to be so"
        time.sleep(0.2)


@contextlib.contextmanager
def other(version: str, directory: Path) -> Iterator[dict[str, Any]]:
    """Run another controller in the cluster for the duration of the block."""
    there, first = directory / "other", properties(directory / "server.properties")
    cluster = properties(directory / "data" / "meta.properties")["cluster.id"]
    mine = new_id()
    (there / "data").mkdir(parents=True)
    lines = f"version=1\ncluster.id={cluster}\nnode.id={OTHER}\ndirectory.id={mine}\n"
    (there / "data" / "meta.properties").write_text(lines)
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    bootstrap = "controller.quorum.bootstrap.servers"
    settings = {
        **OURS,
        bootstrap: first[bootstrap],
        "process.roles": "controller",
        "node.id": str(OTHER),
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
    }
    with broker(version, there, settings):
        yield {
            "clusterId": cluster,
            "voterId": OTHER,
            "voterDirectoryId": mine,
            "listeners": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": port}],
        }


def agree(spark: SparkSession, address: str, version: str, logs: Path) -> Quorum:
    """Compare the voters in the log with Kafka's answer, and return them."""
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    said = quorum(address, version)
    state = cluster_state(spark, logs)
    rows = view("voters", "voters", state).collect()
    compare(rows, said)
    levels = view("features", "features", state).where("until_offset is null")
    found = {row.feature: row.level for row in levels.collect()}
    assert found["kraft.version"] == said.version == 1
    assert state.unread().count() == 0
    return said


def compare(rows: list[Row], said: Quorum) -> None:
    assert all(row.is_known and row.said_by == "KRAFT_VOTERS" for row in rows)
    assert {row.voter: row.directory_id for row in rows} == said.voters
    ends = {row.voter: [(one.name, one.host, one.port) for one in row.endpoints] for row in rows}
    assert ends == {one: said.ends[one] for one in said.voters}


@pytest.mark.parametrize("version", VERSIONS)
def test_voters_that_come_and_go(spark: SparkSession, tmp_path: Path, version: str) -> None:
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    logs = tmp_path / "data"
    with broker(version, tmp_path, {**SETTINGS, **OURS}) as address:
        first = agree(spark, address, version, logs)
        assert {*first.voters} == {1}
        time.sleep(0.1)
        before = datetime.now(UTC)
        with other(version, tmp_path) as voter:
            caught_up(address, version)
            added = ask(address, "AddRaftVoter", version, most=0, timeoutMs=60_000, **voter)
            assert added["errorCode"] == 0, added
            until(lambda: {*quorum(address, version).voters} == {1, OTHER})
            both = agree(spark, address, version, logs)
            assert both.voters[OTHER] == voter["voterDirectoryId"]
            gone: dict[str, Any] = {"voterId": OTHER, "voterDirectoryId": both.voters[OTHER]}
            told = ask(address, "RemoveRaftVoter", version, clusterId=voter["clusterId"], **gone)
            assert told["errorCode"] == 0, told
            until(lambda: {*quorum(address, version).voters} == {1})
            agree(spark, address, version, logs)
        # The state at an earlier time is correct, although the log contains later records.
        compare(view("voters", "voters", cluster_state(spark, logs, time=before)).collect(), first)
    compared(spark, logs, most=1)


def caught_up(address: str, version: str) -> None:
    """Wait until the other controller has the log, because only then may it vote."""
    wanted = [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]

    def is_so() -> bool:
        said = ask(address, "DescribeQuorum", version, topics=wanted)
        [told] = said["topics"][0]["partitions"]
        ends = {one["replicaId"]: one["logEndOffset"] for one in told["observers"]}
        return bool(ends.get(OTHER, -1) >= told["highWatermark"] - 5)

    until(is_so)
