"""Run clients that send every request they can: those of each Kafka release, and librdkafka."""

from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import admin as confluent_admin

from flexwire.spark.java import find_java
from tools.broker import jars
from tools.maven import ROOT, Jars

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.sidecars import Sidecars

MOST_SECONDS = 300
PROGRAMS = ROOT / "tools" / "java"
STREAMS_GROUP, RECORDS = "drive-streams", 60
# The jar of Kafka Streams 4.4.0 is not published with the others. The program keeps no state, so it
# needs no RocksDB.
STREAMS = Jars(
    "kafka-streams-4.3.1",
    ("org.apache.kafka:kafka-streams:4.3.1", "org.slf4j:slf4j-simple:1.7.36"),
)
Said = dict[str, list[tuple[str, ...]]]


def compiled(release: str, directory: Path) -> Path:
    """Compile the broker's plug-in for a release; return a directory for the class path."""
    command = [_java(), "--module", "jdk.compiler/com.sun.tools.javac.Main", "-d", str(directory)]
    own = os.pathsep.join(str(jar) for jar in jars(release).glob("*.jar"))
    command += ["-cp", own, str(PROGRAMS / "TakeTelemetry.java")]
    subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)
    return directory


def drive(cluster: Sidecars) -> Said:
    """Send every request to a cluster; return the output of Kafka's clients, by each line's first
    word.
    """
    plain, release = cluster.address("PLAINTEXT"), cluster.release
    said: Said = defaultdict(list)
    places = (plain, cluster.address("SASL"), str(len(cluster.nodes)))
    _run(release, "Drive", *places, str(cluster.nodes[0].second), said=said)
    by_librdkafka(plain)
    if release >= "4":
        _run(release, "DriveShares", plain, said=said)
    if release >= "4.2":
        state = str(cluster.nodes[0].directory.parent / "streams")
        flows = (plain, STREAMS_GROUP, "drive-none", str(RECORDS), state)
        _run("streams", "DriveStreams", *flows, said=said)
        _run(release, "DriveGroups", plain, STREAMS_GROUP, said=said)
    return said


def _java() -> str:
    return str(find_java() / "bin" / "java")


def _run(release: str, program: str, *given: str, said: Said) -> None:
    own = STREAMS.bring() if release == "streams" else jars(release)
    # In 3.9, KIP-848 groups are a preview, and are disabled.
    without = "true" if release < "4" else "false"
    command = [_java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Dwithout.newer.groups={without}"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{own}/*"]
    command += [str(PROGRAMS / f"{program}.java"), *given]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    assert ran.returncode == 0, f"{program}:\n{ran.stdout[-500:]}\n{ran.stderr[-3000:]}"
    for line in ran.stdout.splitlines():
        word, *parts = line.split("\t")
        said[word].append(tuple(parts))


def by_librdkafka(address: str) -> None:
    """Send requests that Java's clients do not send: AlterConfigs, and one for each partition of a
    transaction.
    """
    told: dict[str, Any] = {"bootstrap.servers": address, "client.id": "librdkafka", "log_level": 2}
    admin: Any = confluent_admin
    client = admin.AdminClient(told)
    [made] = client.create_topics([admin.NewTopic("drive-c", 1, 1)]).values()
    made.result(MOST_SECONDS)
    config = admin.ConfigResource("topic", "drive-c", set_config={"retention.ms": "-1"})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        [altered] = client.alter_configs([config]).values()
    altered.result(MOST_SECONDS)
    producer = Producer({**told, "transactional.id": "drive-c", "compression.type": "zstd"})
    producer.init_transactions(MOST_SECONDS)
    producer.begin_transaction()
    for number in range(10):
        producer.produce("drive-c", b"%d" % number)
    assert producer.flush(MOST_SECONDS) == 0
    own = {"group.id": "drive-c", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**told, **own})
    offsets = [TopicPartition("drive-c", 0, 5)]
    group = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction(offsets, group, MOST_SECONDS)
    producer.commit_transaction(MOST_SECONDS)
    consumer.subscribe(["drive-c"])
    end, left = time.monotonic() + MOST_SECONDS, 5
    while left and time.monotonic() < end:
        left -= sum(one.error() is None for one in consumer.consume(10, 1))
    assert left == 0
    consumer.commit(asynchronous=False)
    consumer.close()
    for one in client.describe_consumer_groups(["drive-c"]).values():
        one.result(MOST_SECONDS)
    [gone] = client.delete_consumer_groups(["drive-c"]).values()
    gone.result(MOST_SECONDS)
