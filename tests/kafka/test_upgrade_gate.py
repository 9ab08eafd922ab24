"""When a 3.9.2 cluster is upgraded to 4.x, brokers behave as the gates in its metadata predict."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.protocol.audit.cluster import blocks_changes
from flexwire.protocol.error_codes import error_codes
from flexwire.spark.analyze import analyze
from tests.kafka.asking import ask
from tools.broker import broker, new_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
OLD = "3.9.2"
# The last release that blocks changes, and the newest release lines, which do not.
LATER = ("4.0.2", "4.1.2", "4.2.1", "4.4.0")
TOPIC, BROKER, SET, DELETE = 2, 4, 0, 1
FORMAT, CONVERSION = "message.format.version", "message.downconversion.enable"
OF_BROKER = "log.message.downconversion.enable"
CODES = {one.name: one.code for one in error_codes()}
INVALID, UNSUPPORTED = CODES["INVALID_CONFIG"], CODES["UNSUPPORTED_VERSION"]


def alter(address: str, kind: int, resource: str, operation: int, **values: str | None) -> int:
    """Alter configurations of a resource in one request, and return the error code."""
    configs = [
        {"name": name.replace("_", "."), "configOperation": operation, "value": value}
        for name, value in values.items()
    ]
    resources = [{"resourceType": kind, "resourceName": resource, "configs": configs}]
    told = ask(address, "IncrementalAlterConfigs", OLD, resources=resources, validateOnly=False)[
        "responses"
    ]
    code: int = told[0]["errorCode"]
    return code


def create(address: str, topic: str, **configs: str) -> int:
    named = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    one: dict[str, Any] = {"name": topic, "numPartitions": 1, "replicationFactor": 1}
    topics = [{**one, "assignments": [], "configs": named}]
    told = ask(address, "CreateTopics", OLD, topics=topics, timeoutMs=60_000, validateOnly=False)
    code: int = told["topics"][0]["errorCode"]
    return code


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yield the directory of a stopped 3.9.2 broker, and the id of its cluster."""
    directory, cluster = tmp_path_factory.mktemp("old"), new_id()
    with broker(OLD, directory, {"cluster.id": cluster}) as address:
        assert create(address, "one", message_format_version="2.8") == 0
        both = {"message_format_version": "2.8", "message_downconversion_enable": "false"}
        assert create(address, "both", **both) == 0
        assert create(address, "fine", retention_ms="1000000") == 0
        assert alter(address, BROKER, "1", SET, **{OF_BROKER.replace(".", "_"): "false"}) == 0
        assert alter(address, BROKER, "1", SET, nonsense="1") == 0
        # Before the upgrade, the command that the gate recommends works.
        assert create(address, "mended", message_format_version="2.8") == 0
        assert alter(address, TOPIC, "mended", DELETE, message_format_version=None) == 0
    yield directory, cluster
    shutil.rmtree(directory)


def gates(spark: SparkSession, directory: Path, out: Path) -> list[dict[str, Any]]:
    done = analyze([directory / "data"], out, spark=spark, answers=["cluster_gate"])
    assert not done.facts.unanswered
    rows: list[dict[str, Any]] = done.output.table("answers/cluster_gate").to_pylist()
    return rows


def test_the_gate_names_what_was_set(
    spark: SparkSession, old: tuple[Path, str], tmp_path: Path
) -> None:
    rows = gates(spark, old[0], tmp_path / "out")
    named = {
        (row["gate"], row["subject"]): set(row["names"])
        for row in rows
        if row["gate"].endswith("configurations")
    }
    assert named == {
        ("topic configurations", FORMAT): {"one", "both"},
        ("topic configurations", CONVERSION): {"both"},
        ("broker configurations", OF_BROKER): {"1"},
    }
    [level] = [row for row in rows if row["gate"] == "metadata.version"]
    assert level["verdict"] == "nothing seen against it"


@pytest.mark.parametrize("release", LATER)
def test_brokers_do_what_the_gate_says(release: str, old: tuple[Path, str], tmp_path: Path) -> None:
    directory, cluster = tmp_path / "later", old[1]
    shutil.copytree(old[0], directory)
    blocked = INVALID if blocks_changes(release) else 0
    with broker(release, directory, {"cluster.id": cluster}) as address:
        # "configuration blocks changes": the broker refuses every other change to the topic.
        for topic in ("one", "both"):
            assert alter(address, TOPIC, topic, SET, retention_ms="1000000") == blocked
        for topic in ("fine", "mended"):
            assert alter(address, TOPIC, topic, SET, retention_ms="1000000") == 0
        # The fix after the upgrade: remove all configurations that no longer exist in one command.
        assert alter(address, TOPIC, "one", DELETE, message_format_version=None) == 0
        assert alter(address, TOPIC, "both", DELETE, message_format_version=None) == blocked
        at_once = {"message_format_version": None, "message_downconversion_enable": None}
        assert alter(address, TOPIC, "both", DELETE, **at_once) == 0
        for topic in ("one", "both"):
            assert alter(address, TOPIC, topic, SET, retention_ms="1000001") == 0
        # "configuration gone": a topic's configuration is returned, but a broker's is not.
        for name in (FORMAT, CONVERSION, "message.timestamp.difference.max.ms"):
            assert alter(address, TOPIC, "fine", SET, **{name.replace(".", "_"): "1"}) == INVALID
            assert create(address, f"new-{name}", **{name.replace(".", "_"): "1"}) == INVALID
        gone = {OF_BROKER.replace(".", "_"): "true"}
        assert alter(address, BROKER, "1", SET, **gone) == 0
        # "not finalized": the broker offers the API, and answers with error 35.
        described = ask(
            address, "ConsumerGroupDescribe", release, groupIds=["g"],
            includeAuthorizedOperations=False,
        )  # fmt: skip
        assert described["groups"][0]["errorCode"] == UNSUPPORTED
        if release >= "4.1":
            heart: dict[str, Any] = {
                "groupId": "g",
                "memberId": "m" * 22,
                "memberEpoch": 0,
                "rackId": None,
            }
            told = ask(
                address, "ShareGroupHeartbeat", release, **heart, subscribedTopicNames=["fine"]
            )
            assert told["errorCode"] == UNSUPPORTED
