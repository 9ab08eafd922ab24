"""Records of internal topics that Spark's own Kafka source reads decode as in the broker's logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.answers.state import InternalLog, internal_records, last_commits, open_log
from flexwire.answers.state.records import BY_NAME
from flexwire.tables.typed_records import record_names
from tests.kafka.filling import INTERNAL
from tests.kafka.test_judged import by_broker, by_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.kafka.filling import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
# Spark finds offsets with an admin client by default, which leaves out these topics.
BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
ASKED = {"kafka__exclude__internal__topics": "false"}


@pytest.fixture(autouse=True)
def by_consumer(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(BY_CONSUMER, "true")
    yield
    spark.conf.unset(BY_CONSUMER)


@pytest.mark.parametrize("topic", INTERNAL)
def test_records_of_the_broker_are_those_of_its_log(
    spark: SparkSession, kafka: Broker, topic: str
) -> None:
    names = sorted(record_names(BY_NAME[topic]))
    of_broker = internal_records(by_broker(spark, kafka, topic, **ASKED), topic, names)
    of_log = internal_records(by_log(spark, kafka, topic), topic, names)
    at_once = open_log(spark, kafka.logs, topic).typed(names, ["message"])
    key = ["partition", "offset"]
    expected = of_log.orderBy(*key).collect()
    # Spark's own consumers join a group to find offsets, which writes to this topic.
    there = {(row.partition, row.offset) for row in expected}
    read = of_broker.orderBy(*key).collect()
    assert [row for row in read if (row.partition, row.offset) in there] == expected
    assert len(expected) > 0
    assert not any(row.error for row in expected)
    told = [tuple(row[name] for name in (*key, "message", *names)) for row in expected]
    found = at_once.orderBy(*key).select(*key, "message", *names).collect()
    assert [tuple(row) for row in found] == told


def test_commits_of_the_broker_are_those_of_its_log(spark: SparkSession, kafka: Broker) -> None:
    topic = INTERNAL[0]
    committed = {**ASKED, "kafka__isolation__level": "read_committed"}
    log = InternalLog(by_broker(spark, kafka, topic, **committed), topic)
    shown = ("group", "topic", "partition", "offset", "metadata", "log_offset", "is_known")
    of_broker = last_commits(log).select(*shown)
    of_log = last_commits(open_log(spark, kafka.logs, topic)).where("offset is not null")
    assert sorted(map(tuple, of_broker.collect())) == sorted(
        map(tuple, of_log.select(*shown).collect())
    )
