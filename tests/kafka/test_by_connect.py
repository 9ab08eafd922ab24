"""A Spark Connect client reads the same records from a broker's log as librdkafka's consumer."""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.kafka.conftest import SETTINGS
from tests.kafka.filling import CODECS, MOST_SECONDS, Broker, consumed, write_any
from tests.spark.cluster import python_path, run
from tests.spark.conftest import standalone  # noqa: F401 - a fixture
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark.cluster import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

CLIENT = """
import base64, json, sys
from pyspark.sql import SparkSession

def text(data):
    return None if data is None else base64.b64encode(data).decode()

remote, logs, topic = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
reader = spark.read.format("kafka-log").option("topic", topic).option("maxPartitionBytes", "20k")
found = reader.load(logs).selectExpr(
    "partition", "offset", "unix_millis(timestamp) time", "key", "value"
)
rows = [[*row[:3], *map(text, row[3:])] for row in found.collect()]
spark.stop()
print(json.dumps(rows))
"""


def as_sent(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return *row[:3], *(None if one is None else base64.b64decode(one) for one in row[3:])


def test_a_client_of_spark_connect_reads_a_broker_s_log(
    standalone: Cluster,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    with broker(VERSIONS[-1], tmp_path / "kafka", SETTINGS) as address:
        kafka = Broker(address, tmp_path / "kafka" / "data")
        admin = AdminClient({"bootstrap.servers": address})
        for created in admin.create_topics([NewTopic("all", 2, 1)]).values():
            created.result(MOST_SECONDS)
        for codec in CODECS:
            write_any(kafka, "all", codec, 100)
        remote = standalone.start_connect()
        command = [sys.executable, "-c", CLIENT, remote, str(kafka.logs), "all"]
        done = run(command, tmp_path, PYTHONPATH=python_path())
        assert done.returncode == 0, done.stderr[-3000:]
        found = [as_sent(tuple(one)) for one in json.loads(done.stdout.splitlines()[-1])]
        expected = consumed(kafka, "all")
        assert len(expected) == 100 * len(CODECS)
        assert sorted(found, key=lambda row: row[:2]) == expected
