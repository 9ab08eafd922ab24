"""A topic or group that is used in any way does not count as unused. Answers claim no proof."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.answers.asking.results import with_internal
from flexwire.answers.topic_readers import topic_readers
from flexwire.answers.unused_groups import ANSWER as UNUSED_GROUPS
from flexwire.answers.unused_groups import unused_groups
from flexwire.answers.unused_topics import ANSWER as UNUSED_TOPICS
from flexwire.answers.unused_topics import unused_topics
from flexwire.codec import message
from flexwire.logs.files import LOG_NAMES, is_log_file
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.storage.file_search import list_files
from tests.capture.made_logs import TIME
from tests.capture.made_metadata import log as metadata
from tests.capture.made_metadata import value, write
from tests.spark.internal_topics.made import MadeTopic, keyed
from tests.spark.test_state_answers import partition
from tests.spark.told import Told

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

pytestmark = pytest.mark.spark
HOUR, DAY = 3_600_000, 86_400_000
# The topics that are used. The name of each topic indicates how it is used.
USED = (
    *("wanted-by-a-member", "held-by-a-member", "committed-an-hour-ago", "committed-last-week"),
    *("pending", "unreadable-time", "fetched", "fetched-by-id", "share-fetched", "answered"),
    "committed-in-traffic",
)
UNUSED = ("never-read", "committed-long-ago", "followed")
APART = {
    "connect-offsets": "Kafka Connect",
    "eu-connect-status": "Kafka Connect",
    "_schemas": "Schema Registry",
    "app-KSTREAM-AGGREGATE-0000000001-changelog": "Kafka Streams",
    "app-by-key-repartition": "Kafka Streams",
    "mm2-offsets.eu.internal": "MirrorMaker",
    "__transaction_state_copy": "internal by its name",
    "a-table": None,
}
KAFKAS = ("__consumer_offsets", "__transaction_state")
NUMBERS = {name: at for at, name in enumerate((*USED, *UNUSED, *APART, *KAFKAS), 100)}


def topic_id(name: str) -> str:
    return urlsafe_b64encode(UUID(int=NUMBERS[name]).bytes).decode().rstrip("=")


def committed(group: str, topic: str, age: int) -> tuple[bytes, bytes | None]:
    key = {"group": group, "topic": topic, "partition": 0}
    value_of = {"offset": 5, "metadata": "", "commit_timestamp": -1 if age < 0 else TIME - age}
    return keyed(1, "OffsetCommit", key, value_of)


def written(root: Path) -> Path:
    log = MadeTopic("__consumer_offsets")
    log.add(*keyed(3, "ConsumerGroupMetadata", {"group_id": "live"}, {"epoch": 1}))
    key = {"group_id": "live", "member_id": "m"}
    wants = {"subscribed_topic_names": ["wanted-by-a-member"], "client_id": "c", "client_host": "h"}
    log.add(*keyed(5, "ConsumerGroupMemberMetadata", key, wants))
    of: Any = message("ConsumerGroupCurrentMemberAssignmentValue")
    held = UUID(int=NUMBERS["held-by-a-member"])
    has = [of.TopicPartitions(topic_id=held, partitions=[0])]
    assigned = {"member_epoch": 3, "assigned_partitions": has}
    log.add(*keyed(8, "ConsumerGroupCurrentMemberAssignment", key, assigned))
    log.add(*committed("hourly", "committed-an-hour-ago", HOUR))
    log.add(*committed("weekly", "committed-last-week", 6 * DAY))
    log.add(*committed("no-time", "unreadable-time", -1))
    log.add(*committed("within", "pending", 30 * DAY), producer=7)
    for group in ("old", "seen", "described"):
        log.add(*committed(group, "committed-long-ago", 30 * DAY))
    log.write(root)
    names = [*NUMBERS]
    compacted = {"resourceType": 2, "resourceName": "a-table", "name": "cleanup.policy"}
    values = [
        *(value("TopicRecord", name=name, topicId=topic_id(name)) for name in names),
        *(partition(topic_id(name), replicas=[1]) for name in names),
        value("ConfigRecord", **compacted, value="compact,delete"),
    ]
    write(root, {"0": metadata(values, time=TIME)})
    return root


def traffic() -> Told:
    told = Told()
    reads = ("reader", "10.0.0.7:5")
    by_id = {"topics": [{"topic": None, "topic_id": topic_id("fetched-by-id")}]}
    told.exchange(reads, "Fetch", 0, asked={"replica_id": -1, "topics": [{"topic": "fetched"}]})
    answered = {"responses": [{"topic": "answered"}]}
    told.exchange(reads, "Fetch", 1, asked={"replica_id": -1} | by_id, answer=answered)
    shares = {"group_id": "shares", "topics": [{"topic_id": topic_id("share-fetched")}]}
    told.exchange(reads, "ShareFetch", 2, asked=shares)
    commits = {"group_id": "alone", "topics": [{"name": "committed-in-traffic"}]}
    told.exchange(reads, "OffsetCommit", 3, asked=commits)
    follows = ("broker-2-fetcher-0", "10.0.0.2:6")
    every = [{"topic": name} for name in NUMBERS]
    of_follower = {"replica_state": {"replica_id": 2, "replica_epoch": 1}, "topics": every}
    told.exchange(follows, "Fetch", 4, asked=of_follower)
    told.exchange(reads, "Heartbeat", 5, asked={"group_id": "seen"})
    told.exchange(("exporter", "10.0.0.8:7"), "DescribeGroups", 6, asked={"groups": ["described"]})
    return told


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("unused")
    logs = written(root / "data")
    analyze([logs], root / "out", spark=spark, answers="none")
    told = traffic().tables(spark)
    both = replace(open_tables(spark, root / "out"), message=told.message, opened=None)
    files = list_files([logs], is_log_file, LOG_NAMES)
    with with_internal(both, spark, files) as found:
        yield found


@pytest.mark.long
def test_every_use_keeps_a_topic_out(tables: AnalysisTables) -> None:
    rows = UNUSED_TOPICS.ordered(unused_topics(tables)).collect()
    found = {row.topic: row.asDict() for row in rows}
    assert len(rows) == len(found)
    assert {*found} == {*UNUSED, *APART}
    assert {name for name, row in found.items() if row["is_apart"]} == {*APART}
    assert {name: found[name]["software"] for name in APART} == APART
    assert {name for name, row in found.items() if row["is_compacted"]} == {"a-table"}
    assert found["committed-long-ago"]["unread_us"] >= 30 * DAY * 1000
    assert {*[*found][: len(UNUSED)]} == {*UNUSED}


@pytest.mark.long
def test_without_traffic_what_is_only_there_is_not_seen(tables: AnalysisTables) -> None:
    alone = replace(tables, message=lambda _: None)
    found = {row.topic for row in unused_topics(alone).collect()}
    in_traffic = {one for one in USED if "fetched" in one} | {"answered", "committed-in-traffic"}
    assert found == {*UNUSED, *APART, *in_traffic}


@pytest.mark.long
def test_every_use_keeps_a_group_out(tables: AnalysisTables) -> None:
    rows = UNUSED_GROUPS.ordered(unused_groups(tables)).collect()
    assert {row.group for row in rows} == {"old", "described", "weekly", "no-time"}
    last = rows[-1]
    # Without a dated record, it is unknown how long the group has been idle.
    assert (last.group, last.idle_us) == ("no-time", None)
    alone = replace(tables, message=lambda _: None)
    assert "seen" in {row.group for row in unused_groups(alone).collect()}


def test_who_reads_each_topic(tables: AnalysisTables) -> None:
    told = traffic()
    names = [{"topic_id": topic_id(one), "name": one} for one in ("fetched-by-id",)]
    told.exchange(("any", "10.0.0.7:5"), "Metadata", 9, answer={"topics": names})
    again = replace(tables, message=told.tables(tables.frames.sparkSession).message)
    rows = [row.asDict() for row in topic_readers(again).collect()]
    readers = {row["topic"] or row["topic_id"]: row for row in rows if not row["is_follower"]}
    assert {*readers} == {
        *("fetched", "fetched-by-id", "answered", "committed-in-traffic"),
        topic_id("share-fetched"),
    }
    counts = ("requests", "responses", "commits")
    assert {name: tuple(row[one] for one in counts) for name, row in readers.items()} == {
        "fetched": (1, 0, 0),
        "fetched-by-id": (1, 0, 0),
        "answered": (0, 1, 0),
        "committed-in-traffic": (0, 0, 1),
        topic_id("share-fetched"): (1, 0, 0),
    }
    assert readers["committed-in-traffic"]["groups"] == ["alone"]
    assert {(row["client_id"], row["address"]) for row in readers.values()} == {
        ("reader", "10.0.0.7")
    }
    followers = [row for row in rows if row["is_follower"]]
    assert {row["client_id"] for row in followers} == {"broker-2-fetcher-0"}
    assert {row["topic"] for row in followers} == {*NUMBERS}
