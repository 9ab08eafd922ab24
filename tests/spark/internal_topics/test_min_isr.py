"""min.insync.replicas is taken, as in Kafka, from the topic, else the broker, else the cluster."""

from __future__ import annotations

import random
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.answers.cluster_partitions import with_min_isr
from flexwire.answers.state.cluster import cluster_state
from flexwire.answers.state.cluster_partitions import partitions
from tests.capture.made_metadata import log as metadata
from tests.capture.made_metadata import value, write
from tests.searching import in_make_long
from tests.spark.test_state_answers import partition

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NAME = "min.insync.replicas"
TOPICS = 12


def config(kind: int, name: str, to: int | None) -> bytes:
    of = {"resourceType": kind, "resourceName": name, "name": NAME}
    return value("ConfigRecord", **of, value=None if to is None else str(to))


def topic_id(number: int) -> str:
    return urlsafe_b64encode(UUID(int=number).bytes).decode().rstrip("=")


class Made:
    """A cluster with values for topics, brokers or the whole cluster, and the resulting value."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        one_of = [None, None, 1, 2, 3, 5]
        self.of_topic = {f"t{at}": chance.choice(one_of) for at in range(TOPICS)}
        self.of_broker = {at: chance.choice(one_of) if seed % 2 else None for at in (1, 2, 3)}
        self.of_cluster = chance.choice(one_of)
        self.placed = {
            name: {
                "leader": chance.choice([-1, 1, 2, 3]),
                "replicas": chance.sample([1, 2, 3], chance.randint(1, 3)),
                "isr": chance.sample([1, 2, 3], chance.randint(0, 3)),
            }
            for name in self.of_topic
        }

    def records(self) -> list[bytes]:
        ids = {name: topic_id(at) for at, name in enumerate(self.placed, 100)}
        made = [value("TopicRecord", name=name, topicId=one) for name, one in ids.items()]
        made += [partition(ids[name], **how) for name, how in self.placed.items()]
        for kind, values in ((2, self.of_topic), (4, self.of_broker), (4, {"": self.of_cluster})):
            for name, to in values.items():
                # A value that was set and then removed has no effect.
                made += [config(kind, str(name), 9), config(kind, str(name), to)]
        return made

    def expected(self, name: str) -> tuple[int | None, str | None, bool | None, bool | None]:
        how: dict[str, Any] = self.placed[name]
        leader = how["leader"]
        found, source = self.of_topic[name], "topic"
        if found is None and leader > 0:
            found, source = self.of_broker[leader], "broker"
        is_settled = leader > 0 or not any(self.of_broker.values())
        if found is None and is_settled:
            found, source = self.of_cluster, "cluster"
        if found is None:
            return None, None, None, None
        least = min(found, len(how["replicas"]))
        return least, source, len(how["isr"]) < least, len(how["isr"]) == least


# If the seed is odd, brokers have values of their own.
@pytest.mark.parametrize("seed", [1, *in_make_long(2)])
def test_what_holds_is_known_or_said_not_to_be(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    made = Made(seed)
    write(tmp_path, {"0": metadata(made.records())})
    state = cluster_state(spark, tmp_path / "__cluster_metadata-0")
    columns = ("min_isr", "min_isr_source", "is_under_min_isr", "is_at_min_isr")
    found = {
        row.topic: tuple(row[one] for one in columns)
        for row in with_min_isr(partitions(state), state).collect()
    }
    assert found == {name: made.expected(name) for name in made.placed}
