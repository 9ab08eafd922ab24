"""High watermarks are read from brokers' checkpoints, and the lag is counted up to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.answers.state import end_offsets, lag, last_commits, open_log
from flexwire.logs.checkpoints import broker_of
from tests.kafka.coordinating import MOST_SECONDS
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
TOPIC, RECORDS, COMMITTED = "orders", 12, 5


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_lag_after_a_clean_stop_is_exact(version: str, spark: SparkSession, tmp_path: Path) -> None:
    with broker(version, tmp_path) as address:
        own: dict[str, Any] = {"bootstrap.servers": address, "log_level": 2}
        admin = AdminClient(own)
        [created] = admin.create_topics([NewTopic(TOPIC, 1, 1)]).values()
        created.result(MOST_SECONDS)
        producer = Producer(own)
        for number in range(RECORDS):
            producer.produce(TOPIC, b"%d" % number, partition=0)
        assert producer.flush(MOST_SECONDS) == 0
        consumer = Consumer({**own, "group.id": "g", "enable.auto.commit": False})
        place = TopicPartition(TOPIC, 0, COMMITTED)
        consumer.commit(offsets=[place], asynchronous=False)
        _, high = consumer.get_watermark_offsets(place, MOST_SECONDS)
        consumer.close()
    logs = tmp_path / "data"
    assert broker_of(str(logs)) == 1
    commits = last_commits(open_log(spark, logs, "__consumer_offsets"))
    [row] = lag(commits, end_offsets(spark, logs, [TOPIC])).collect()
    assert (row.end_offset, row.high_watermark, row.is_watermark_exact) == (high, high, True)
    assert row.lag == high - COMMITTED
