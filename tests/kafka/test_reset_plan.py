"""Kafka's own tool sets every offset in a plan, whatever the groups are called."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.cli.app import app
from flexwire.spark.analyze import analyze
from flexwire.spark.java import find_java
from tests.kafka.asking import ask
from tests.kafka.coordinating import LASTING
from tools.broker import broker
from tools.maven import Jars

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
MOST_SECONDS = 120
# The name of group "5" could be the number that the tool's older line format has in this place.
TOPICS = ("orders", "5")
GROUPS = (
    "plain",
    "=1+1",
    "-1",
    "a,b",
    'q"uote',
    " space ",
    "grüße",
    "tab\there",
    "carriage\rreturn",
)
BROKEN = "line\nbreak"
Offsets = dict[tuple[str, str], int]


def tool(version: str, address: str, *given: str) -> subprocess.CompletedProcess[str]:
    """Run a release's kafka-consumer-groups."""
    wanted = (f"org.apache.kafka:kafka-tools:{version}", "org.slf4j:slf4j-simple:1.7.36")
    jars = Jars(f"kafka-tools-{version}", wanted, ("org.slf4j:slf4j-reload4j",)).bring()
    program = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = [str(find_java() / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
    command += ["-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8", "-cp", f"{jars}/*", program]
    return subprocess.run(
        [*command, "--bootstrap-server", address, *given],
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )


def commit(address: str, offset: int) -> None:
    """Make every group commit an offset in each topic."""
    for group in (*GROUPS, BROKEN):
        own = {"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False}
        consumer = Consumer({**own, "log_level": 2})
        places = [TopicPartition(topic, 0, offset) for topic in TOPICS]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()


def committed(address: str) -> Offsets:
    asked = [
        {"groupId": one, "memberId": None, "memberEpoch": -1, "topics": None}
        for one in (*GROUPS, BROKEN, "pending")
    ]
    form: dict[str, Any] = {"groups": asked, "requireStable": False}
    return {
        (group["groupId"], topic["name"]): one["committedOffset"]
        for group in ask(address, "OffsetFetch", "4.4.0", most=9, **form)["groups"]
        for topic in group["topics"]
        for one in topic["partitions"]
    }


# Kafka's tools of 4.4.0 are not published.
@pytest.mark.parametrize(("version", "of_tool"), [("3.9.2", "3.9.2"), ("4.4.0", "4.3.1")])
def test_kafkas_tool_takes_a_plan(
    spark: SparkSession, tmp_path: Path, version: str, of_tool: str
) -> None:
    plan = tmp_path / "plan.csv"
    with broker(version, tmp_path / "broker") as address:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
        for one in admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS]).values():
            one.result(MOST_SECONDS)
        producer = Producer({"bootstrap.servers": address, "log_level": 2})
        for topic in TOPICS:
            for _ in range(20):
                producer.produce(topic, b"v", partition=0)
        producer.flush(MOST_SECONDS)
        commit(address, 7)
        own = {"bootstrap.servers": address, "transactional.id": "t", "log_level": 2}
        within = Producer(own | LASTING)
        within.init_transactions(MOST_SECONDS)
        within.begin_transaction()
        member = Consumer({"bootstrap.servers": address, "group.id": "pending", "log_level": 2})
        metadata = member.consumer_group_metadata()
        within.send_offsets_to_transaction([TopicPartition("orders", 0, 9)], metadata, MOST_SECONDS)
        before = committed(address)
        logs, out = tmp_path / "logs", tmp_path / "out"
        shutil.copytree(tmp_path / "broker" / "data", logs)
        analyze([logs], out, spark=spark, answers=["group_offsets"])
        ran = CliRunner().invoke(app, ["answers", str(out), "--reset-plan", str(plan)])
        assert ran.exit_code == 0, ran.output
        assert f"{2 * len(GROUPS)} offsets of {len(GROUPS)} groups." in ran.output
        assert "Left out: 0 unknown, 1 pending in a transaction, 2 of groups" in ran.output
        commit(address, 3)
        lost = committed(address)
        asked = ("--reset-offsets", "--all-groups", "--execute", "--from-file")
        # The answer's own CSV is not a plan, but Kafka's tool still ends with status 0.
        done = tool(of_tool, address, *asked, str(out / "answers" / "group_offsets.csv"))
        assert (done.returncode, committed(address)) == (0, lost), done.stdout
        done = tool(of_tool, address, *asked, str(plan))
        found = committed(address)
        kept = {place for place in before if place[0] == BROKEN}
        assert {one: found[one] for one in found if one not in kept} == {
            one: offset for one, offset in before.items() if one not in kept
        }, done.stdout + done.stderr
        assert {found[one] for one in kept} == {3}
        # For a single group, the tool uses only the lines of that group in the file.
        commit(address, 3)
        alone = ("--reset-offsets", "--group", "plain", "--execute", "--from-file", str(plan))
        done = tool(of_tool, address, *alone)
        assert committed(address)["plain", "5"] == 7, done.stdout + done.stderr
