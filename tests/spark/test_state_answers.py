"""Analyses of logs compute the state of a cluster from its internal topics."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.answers import LOG_ANSWERS, STATE_ANSWERS
from flexwire.answers.asking.answer import AnalysisTables
from flexwire.errors import ArgumentError
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.records import Record
from flexwire.report import render
from flexwire.spark.analyze import Analysis, analyze
from flexwire.spark.answers.outputs import open_tables, stored_answers
from flexwire.tables.schema import Column, schema_of
from flexwire.tasks import spark_schema
from tests.capture.log_vectors import write_all
from tests.capture.made_logs import TIME, MadeSegment, plain, write_log
from tests.capture.made_metadata import log as metadata
from tests.capture.made_metadata import value, write
from tests.spark.internal_topics.made import MadeTopic, commit, int16, written_transaction

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ORDERS, COORDINATORS = "AAAAAAAAAAAAAAAAAAAAMA", "AAAAAAAAAAAAAAAAAAAAMQ"
PRODUCER, STRAY = 7, 8
HOUR = 3_600_000
STATE = [one.name for one in STATE_ANSWERS]
SOME = ["group_state", "cluster_topics", "tiered_storage"]


def partition(topic: str, **fields: Any) -> bytes:
    first = {"partitionId": 0, "replicas": [1, 2], "isr": [1], "leader": 1, "leaderEpoch": 0}
    empty: dict[str, Any] = {name: [] for name in ("removingReplicas", "addingReplicas")}
    made = {**first, **empty, "partitionEpoch": 0, "directories": []}
    return value("PartitionRecord", 2, topicId=topic, **made | fields)


def registered(broker: int, *, fenced: bool) -> bytes:
    end = {"name": "PLAINTEXT", "host": f"b{broker}", "port": 9092, "securityProtocol": 0}
    features = [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 29}]
    own: dict[str, Any] = {
        "brokerId": broker,
        "incarnationId": ORDERS,
        "brokerEpoch": 1,
        "endPoints": [end],
    }
    own |= {"features": features, "rack": "r", "inControlledShutdown": False}
    return value("RegisterBrokerRecord", 1, **own, fenced=fenced)


def cluster(root: Path) -> None:
    """Write two brokers, one of them fenced, and the partitions that they lead."""
    config = {"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "1"}
    level = {"name": "metadata.version", "featureLevel": 20}
    topics = [("orders", ORDERS), ("__transaction_state", COORDINATORS)]
    values = [
        value("FeatureLevelRecord", **level),
        registered(1, fenced=False),
        registered(2, fenced=True),
        *(value("TopicRecord", name=name, topicId=one) for name, one in topics),
        partition(ORDERS),
        partition(ORDERS, partitionId=1, leader=-1, isr=[2]),
        partition(COORDINATORS, replicas=[1]),
        value("ConfigRecord", **config),
    ]
    write(root, {"0": metadata(values, time=TIME)})


def ordinary(root: Path) -> None:
    """Write two transactions that have not ended, one of which the coordinator knows."""
    segment = MadeSegment(0)
    segment.add(plain(0, 10))
    for producer, offset in ((PRODUCER, 10), (STRAY, 12)):
        segment.add(plain(offset, 2), producer_id=producer, producer_epoch=3, is_transactional=True)
    write_log(root / "orders-0", [segment])


def made(root: Path) -> Path:
    groups = MadeTopic("__consumer_offsets")
    groups.add(*commit(0, 4, "slow"))
    groups.add(*commit(1, 9, "slow"))
    groups.add(*commit(0, 14, "done"))
    # No release writes such bytes.
    groups.add(int16(1) + b"\0\5gr", b"\0\1")
    groups.write(root)
    coordinators = MadeTopic("__transaction_state")
    coordinators.add(*written_transaction("t", 1, PRODUCER, {"orders": [0]}))
    # The time is an hour later, according to the clock of the broker that wrote the record.
    coordinators.segment.add([Record(1, TIME + HOUR, *written_transaction("u", 4, 99, {}), [])])
    coordinators.write(root)
    cluster(root)
    ordinary(root)
    return root


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = tmp_path_factory.mktemp("state")
    return analyze([made(root / "data")], root / "out", spark=spark, answers=SOME)


@pytest.fixture(scope="module")
def more(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """Run the same analysis with more answers, which take a few seconds in total."""
    root = tmp_path_factory.mktemp("more")
    others = [one for one in STATE if one not in SOME]
    return analyze([made(root / "data")], root / "out", spark=spark, answers=others)


def rows(done: Analysis, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.output.table(f"answers/{name}").to_pylist()
    return found


def test_groups_and_their_lag(done: Analysis) -> None:
    slow, ended = rows(done, "group_state")
    told = ("group", "type", "topic", "partitions", "lag", "max_lag", "without_end", "idle_us")
    # There is no log for the second partition.
    assert tuple(slow[one] for one in told) == (
        *("slow", None, "orders", 2, 10, 10, 1),
        HOUR * 1000,
    )
    # A transaction is open from offset 10.
    assert (slow["stable_lag"], ended["stable_lag"]) == (6, 0)
    assert tuple(ended[one] for one in told)[:-1] == ("done", None, "orders", 1, 0, 0, 0)


@pytest.mark.cluster
def test_transactions_that_hang(more: Analysis) -> None:
    found = {row["producer_id"]: row for row in rows(more, "hanging_transactions")}
    assert {one: row["transactional_id"] for one, row in found.items()} == {
        PRODUCER: "t",
        STRAY: None,
    }
    assert {one: row["first_offset"] for one, row in found.items()} == {PRODUCER: 10, STRAY: 12}
    # The cluster's metadata shows that no other coordinator can hold the transaction.
    assert all(row["is_known"] and row["topic"] == "orders" for row in found.values())
    assert found[PRODUCER]["open_us"] == HOUR * 1000
    assert found[STRAY]["open_since"] == datetime.fromtimestamp((TIME + 1) / 1000, UTC)


def test_topics_of_the_cluster(done: Analysis) -> None:
    told = ("topic", "partitions", "replicas", "offline", "under_replicated", "not_preferred")
    topics = [tuple(row[one] for one in told) for row in rows(done, "cluster_topics")]
    assert topics == [("orders", 2, 2, 1, 2, 0), ("__transaction_state", 1, 1, 0, 0, 0)]
    assert rows(done, "cluster_topics")[0]["configs"] == ["retention.ms=1"]


@pytest.mark.cluster
def test_the_rest_of_the_cluster_and_what_could_not_be_read(more: Analysis) -> None:
    told: tuple[str, ...] = ("broker", "is_fenced", "leads", "replicas", "out_of_isr", "endpoints")
    assert [tuple(row[one] for one in told) for row in rows(more, "cluster_brokers")] == [
        (2, True, 0, 2, 1, ["PLAINTEXT://b2:9092"]),
        (1, False, 2, 3, 1, ["PLAINTEXT://b1:9092"]),
    ]
    # A fenced broker remains in an ISR if it is the last member.
    assert [row["last_in_isr"] for row in rows(more, "cluster_brokers")] == [1, 2]
    [level] = rows(more, "cluster_features")
    told = ("feature", "level", "supported_level", "can_rise")
    assert tuple(level[one] for one in told) == ("metadata.version", 20, 29, True)
    [voter] = rows(more, "cluster_voters")
    assert (voter["voter"], voter["kraft_version"], voter["is_known"]) == (1, 0, True)
    [row] = rows(more, "unread_state")
    told = ("topic", "type", "records", "first_offset")
    assert tuple(row[one] for one in told) == ("__consumer_offsets", 1, 1, 3)
    assert row["error"]


def test_the_report_and_the_files_have_it(done: Analysis) -> None:
    # The answer is requested by the path of its topic.
    assert [one.name for one in done.facts.answers] == SOME[:2]
    [unanswered] = done.facts.unanswered
    lacks = "tiered_storage: no log of __remote_log_metadata is among the paths"
    assert (unanswered.reason, unanswered.can_ask) == (lacks, False)
    page = render(done.facts)
    assert "How far has each group read, and which groups are not in use?" in page
    assert lacks in page
    assert "flexwire answers OUT tiered_storage" not in page
    place = done.output.place.path
    assert place is not None
    lines = (place / "answers" / "group_state.csv").read_text().splitlines()
    assert [row["group"] for row in csv.DictReader(lines)] == ["slow", "done"]
    # A finished analysis contains its answers, so Spark is not used again.
    [answer] = stored_answers(str(done.output.place), ["group_state"])
    assert answer.count == 2


def test_what_an_older_release_answered_lacks_only_new_columns(done: Analysis) -> None:
    [answer] = [one for one in STATE_ANSWERS if one.name == "group_state"]
    later = replace(answer, columns=(*answer.columns, Column("later", pa.string(), "new")))
    [given] = stored_answers(str(done.output.place), [later])
    assert given.rows["later"].to_pylist() == [None, None]
    assert given.rows.drop_columns(["later"]) == done.output.table("answers/group_state")
    # A table with different columns is not used as a stored answer.
    other = replace(answer, columns=(Column("other", pa.string(), "new"), *answer.columns))
    with pytest.raises(ArgumentError, match="an analysis that stored group_state"):
        stored_answers(str(done.output.place), [other])


@pytest.mark.long
def test_what_was_not_asked_of_internal_topics_is_not_nothing(done: Analysis) -> None:
    with pytest.raises(ArgumentError, match="an analysis that stored tiered_storage"):
        stored_answers(str(done.output.place), SOME)
    every = {one.answer.name for one in stored_answers(str(done.output.place), "all")}
    assert "group_state" in every
    assert "tiered_storage" not in every


def test_without_internal_topics_no_row(spark: SparkSession, done: Analysis) -> None:
    tables = open_tables(spark, str(done.output.place))
    assert isinstance(tables, AnalysisTables)
    for answer in STATE_ANSWERS:
        found = answer.ordered(answer.ask(tables))
        columns = spark_schema(schema_of(answer.columns))
        assert [(one.name, one.dataType) for one in found.schema] == [
            (one.name, one.dataType) for one in columns
        ]


@pytest.mark.cluster
def test_logs_that_brokers_wrote(spark: SparkSession, tmp_path: Path) -> None:
    write_all(tmp_path)
    done = analyze([tmp_path / "4.4.0"], tmp_path / "out", spark=spark)
    assert not done.facts.unanswered
    found = {one.name: one.rows for one in done.facts.answers}
    asked = [one.name for one in (*LOG_ANSWERS, *STATE_ANSWERS) if one.name != "tiered_storage"]
    assert [*found] == asked
    assert found["unread_state"] == found["hanging_transactions"] == 0
    groups = {row["group"]: row for row in rows(done, "group_state")}
    assert {row["type"] for row in groups.values()} == {
        *("classic", "consumer", "share", "streams"),
        None,
    }
    [broker] = rows(done, "cluster_brokers")
    topics = rows(done, "cluster_topics")
    assert broker["replicas"] == sum(row["partitions"] for row in topics)
    assert InternalTopic.CONSUMER_OFFSETS.topic in {row["topic"] for row in topics}
    other = [tmp_path / one for one in ("__remote_log_metadata-0", "__cluster_metadata-0")]
    done = analyze(other, tmp_path / "other", spark=spark)
    assert not done.facts.unanswered
    assert "group_state" not in {one.name for one in done.facts.answers}
    [tier] = rows(done, "tiered_storage")
    assert (tier["partitions"], tier["unknown"]) == (1, 0)
    assert {row["feature"] for row in rows(done, "cluster_features")} >= {"metadata.version"}
