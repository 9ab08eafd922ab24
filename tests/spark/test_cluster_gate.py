"""The cluster's gate and configurations are found in requests, whether by sums, tables or logs."""

from __future__ import annotations

import json
import pickle
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.cli.analyze import analysis_form
from flexwire.facts.audit import ClusterGate
from flexwire.measures.audit import AuditSums
from flexwire.measures.cluster import CLUSTER_MESSAGES, CONFIGURING, ClusterSums, cluster_rows
from flexwire.protocol.audit import NameSample
from flexwire.report import render
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import audit_cluster, audit_tables, gather_audit
from flexwire.survey.ranges import MESSAGES
from tests.capture.made_logs import MadeSegment, plain, write_log
from tests.capture.made_metadata import TIME, log, value
from tests.capture.made_metadata import write as write_metadata
from tests.spark.test_audit import Client
from tests.spark.test_audit_sums import Captured, cut, read, summed
from tests.spark.traffic import Traffic, made, nested, request, response

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ORDERS = "AAAAAAAAAAAAAAAAAAAAMA"
FORMAT, OLD_FORMAT = "message.format.version", "log.message.format.version"
CONVERTING = "message.downconversion.enable"
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
OWN, OF_FILE, DEFAULT = 1, 4, 5
RELEASES = ["4.0.2", "4.4.0"]


def creating(*names: str) -> dict[str, Any]:
    configs = [nested("CreateTopicsRequest", "CreatableTopicConfig", name=one) for one in names]
    topic = nested("CreateTopicsRequest", "CreatableTopic", name="orders", configs=configs)
    return {"topics": [topic]}


def altering(kind: int, **operations: int) -> dict[str, Any]:
    message = "IncrementalAlterConfigsRequest"
    configs = [
        nested(message, "AlterableConfig", name=name.replace("_", "."), config_operation=operation)
        for name, operation in operations.items()
    ]
    one = nested(message, "AlterConfigsResource", resource_type=kind, configs=configs)
    return {"resources": [one]}


class Cluster(Client):
    """A client whose requests about the cluster are answered."""

    def answer(self, asked: Any, told: Any, version: int) -> Cluster:
        self._correlation_id += 1
        sent = request(asked, version, self._correlation_id, client_id=self._client_id)
        self._traffic.send(self._connection, "request", sent)
        payload = response(told, version, self._correlation_id)
        self._traffic.send(self._connection, "response", payload)
        return self

    def features(self, epoch: int, **levels: int) -> Cluster:
        name = "ApiVersionsResponse"
        found = [
            nested(name, "FinalizedFeatureKey", name=one.replace("_", "."), max_version_level=level)
            for one, level in levels.items()
        ]
        told = made(name, finalized_features_epoch=epoch, finalized_features=found)
        return self.answer(made("ApiVersionsRequest"), told, 3)

    def described(self, kind: int, resource: str, version: int = 4, **sources: int) -> Cluster:
        name = "DescribeConfigsResponse"
        configs = [
            nested(name, "DescribeConfigsResourceResult", name=one.replace("_", "."), **{
                "config_source": source} if version else {})
            for one, source in sources.items()
        ]  # fmt: skip
        one = nested(
            name, "DescribeConfigsResult", resource_type=kind, resource_name=resource,
            configs=configs,
        )  # fmt: skip
        return self.answer(made("DescribeConfigsRequest"), made(name, results=[one]), version)


def write(traffic: Traffic) -> None:
    Client(traffic, "creates", 1).send("CreateTopics", 5, **creating(FORMAT, "retention.ms"))
    Client(traffic, "is fine", 2).send("CreateTopics", 5, **creating("retention.ms"))
    alters = Client(traffic, "alters", 3)
    alters.send("IncrementalAlterConfigs", 1, **altering(TOPIC, message_downconversion_enable=SET))
    alters.send("IncrementalAlterConfigs", 1, **altering(BROKER, log_message_format_version=SET))
    # A deletion is harmless, and a broker's configuration is not a topic's.
    mends = Client(traffic, "mends", 4)
    mends.send("IncrementalAlterConfigs", 1, **altering(TOPIC, message_format_version=DELETE))
    mends.send("IncrementalAlterConfigs", 1, **altering(TOPIC, log_message_format_version=SET))
    older = nested(
        "AlterConfigsRequest", "AlterConfigsResource", resource_type=TOPIC,
        configs=[nested("AlterConfigsRequest", "AlterableConfig", name=FORMAT)],
    )  # fmt: skip
    Client(traffic, "replaces", 5).send("AlterConfigs", 1, resources=[older])
    asks = Cluster(traffic, "asks", 6)
    # Facts about a broker from before its newest epoch are no longer valid.
    asks.features(4, metadata_version=5, group_version=1).features(9, metadata_version=21)
    asks.features(7, metadata_version=6)
    asks.described(TOPIC, "a", message_format_version=OWN, retention_ms=OWN)
    asks.described(TOPIC, "b", message_format_version=OWN, message_downconversion_enable=DEFAULT)
    asks.described(BROKER, "1", zookeeper_connect=OF_FILE, log_message_format_version=DEFAULT)
    # Version 0 of the response does not specify where a value was set.
    asks.described(BROKER, "2", 0, zookeeper_connect=OF_FILE)
    Client(traffic, "consumes", 7).send("ConsumerGroupHeartbeat", 0)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    traffic = Traffic(tmp_path_factory.mktemp("gate"))
    write(traffic)
    traffic.close()
    return read([traffic.directory])


def test_clients_are_told_what_they_set(captured: Captured) -> None:
    audit = gather_audit(summed(captured), ["4.4.0"])
    told = {
        (one.client.client_id, one.verdict, one.reason)
        for one in audit.findings
        if one.evidence.startswith("configuration")
    }
    answers = "and Kafka 4.4.0 returns INVALID_CONFIG (40)"
    accepts = (
        "which Kafka 4.4.0 accepts but ignores; the last release with this configuration is 3.9.2"
    )
    assert told == {
        ("creates", "will break",
         f"the client sets {FORMAT} for a topic with CreateTopics, {answers}"),
        ("replaces", "will break",
         f"the client sets {FORMAT} for a topic with AlterConfigs, {answers}"),
        ("alters", "will break",
         f"the client sets {CONVERTING} for a topic with IncrementalAlterConfigs, {answers}"),
        ("alters", "will do nothing",
         f"the client sets {OLD_FORMAT} for a broker with IncrementalAlterConfigs, {accepts}"),
    }  # fmt: skip


def test_the_gates_say_what_the_capture_said(captured: Captured) -> None:
    audit = gather_audit(summed(captured), RELEASES)
    told = {(one.release, one.gate, one.subject, one.verdict, one.names) for one in audit.cluster}
    for release, verdict in zip(RELEASES, ("will break", "will do nothing"), strict=True):
        assert (release, "topic configurations", FORMAT, verdict, ("a", "b")) in told
        gone = (release, "broker configurations", "zookeeper.connect", "will do nothing", ("1",))
        assert gone in told
        apis = ("ConsumerGroupHeartbeat (68)", "ConsumerGroupDescribe (69)")
        assert (release, "features", "group.version", "will break", apis) in told
    of_topics = [one for one in audit.cluster if one.gate == "topic configurations"]
    assert {one.subject for one in of_topics} == {FORMAT}
    levels = {one.reason for one in audit.cluster if one.gate == "metadata.version"}
    assert all(one.startswith("the metadata.version level is 21") for one in levels)


def test_however_rows_are_cut_and_merged_the_cluster_is_the_same(captured: Captured) -> None:
    chance = random.Random(3)
    parts = [AuditSums() for _ in range(4)]
    for table, rows in captured.batches:
        for some in cut(rows, chance):
            # A range may be decoded twice, so repeated facts count once.
            for one in chance.sample(parts, 2 if table.startswith(MESSAGES) else 1):
                one.add(table, some)
    merged = AuditSums()
    chance.shuffle(parts)
    for one in parts:
        merged.merge(pickle.loads(pickle.dumps(one)))  # noqa: S301 - this line also pickled the data
    assert merged._cluster.evidence() == summed(captured)._cluster.evidence()
    assert merged._cluster.evidence().configured == {
        ("broker", "zookeeper.connect"): NameSample(("1",), 1),
        ("topic", FORMAT): NameSample(("a", "b"), 2),
    }
    assert [*merged._cluster.evidence().features.values()] == [{"metadata.version": 21}]
    assert merged._cluster.evidence().described == {"broker": 1, "topic": 2}


@pytest.mark.parametrize("message", [*CONFIGURING, *CLUSTER_MESSAGES])
def test_no_rows_and_rows_without_a_body_tell_nothing(message: str, captured: Captured) -> None:
    whole = captured.table(f"{MESSAGES}/{message}")
    assert whole is not None
    (rows,) = whole.combine_chunks().to_batches()
    assert len(cluster_rows(message, rows))
    assert len(cluster_rows(message, rows.slice(0, 0))) == 0
    place = rows.schema.get_field_index("body")
    without = rows.set_column(
        place, rows.schema.field("body"), pa.nulls(len(rows), rows["body"].type)
    )
    assert len(cluster_rows(message, without)) == 0
    # In a slice of a table, only the slice's rows count.
    each = [cluster_rows(message, rows.slice(at, 1)) for at in range(len(rows))]
    assert {tuple(row.values()) for one in each for row in one.to_pylist()} == {
        tuple(row.values()) for row in cluster_rows(message, rows).to_pylist()
    }


def test_many_names_are_counted_and_the_first_are_kept() -> None:
    rows = [
        {"what": "configured", "kind": "topic", "name": FORMAT, "resource": f"{number:05}"}
        for number in range(30_000)
    ]
    sums = ClusterSums()
    schema = cluster_rows("", pa.RecordBatch.from_pylist([])).schema
    sums.add(pa.RecordBatch.from_pylist(rows, schema))
    named = sums.evidence().configured["topic", FORMAT]
    assert (named.names[0], len(named.names)) == ("00000", 20)
    assert named.count == pytest.approx(30_000, rel=0.05)


@pytest.mark.long
@pytest.mark.spark
def test_queries_over_finished_tables_say_the_same(spark: SparkSession, captured: Captured) -> None:
    found = audit_tables(captured.on(spark), captured.messages(), RELEASES)
    assert found == gather_audit(summed(captured), RELEASES)
    assert any(one.verdict == "will do nothing" for one in found.findings)


@pytest.mark.long
@pytest.mark.spark
def test_the_logs_of_a_cluster_say_it_too(spark: SparkSession, tmp_path: Path) -> None:
    def config(kind: int, resource: str, name: str, said: str | None) -> bytes:
        return value(
            "ConfigRecord", resourceType=kind, resourceName=resource, name=name, value=said
        )

    root = tmp_path / "data"
    values = [
        value("FeatureLevelRecord", name="metadata.version", featureLevel=6),
        value("FeatureLevelRecord", name="metadata.version", featureLevel=21),
        value("FeatureLevelRecord", name="group.version", featureLevel=1),
        value("TopicRecord", name="orders", topicId=ORDERS),
        config(TOPIC, "orders", FORMAT, "2.8"),
        config(TOPIC, "orders", "retention.ms", "1"),
        # A removed value does not count, and neither does a topic with the same name as a broker.
        config(TOPIC, "orders", "message.downconversion.enable", "false"),
        config(TOPIC, "orders", "message.downconversion.enable", None),
        config(BROKER, "", OLD_FORMAT, "2.8"),
        config(BROKER, "1", FORMAT, "2.8"),
    ]
    write_metadata(root, {"0": log(values, time=TIME)})
    segment = MadeSegment(0)
    segment.add(plain(0, 2), magic=1)
    segment.add(plain(2, 2))
    write_log(root / "orders-0", [segment])
    done = analyze([root], tmp_path / "out", spark=spark, answers=["cluster_gate"])
    assert not done.facts.unanswered
    rows = done.output.table("answers/cluster_gate").to_pylist()
    told = {(row["gate"], row["subject"], row["verdict"], row["evidence"]) for row in rows}
    nothing = "nothing seen against it"
    assert told >= {
        ("ZooKeeper", "the cluster", nothing, "KRaft"),
        ("metadata.version", "metadata.version", nothing, "level"),
        ("topic configurations", FORMAT, "will break", "configuration blocks changes"),
        ("topic configurations", FORMAT, "will do nothing", "configuration gone"),
        ("broker configurations", OLD_FORMAT, "will do nothing", "configuration gone"),
        ("old batches", "orders", nothing, "magic 0 and 1"),
        ("features", "group.version", nothing, "finalized"),
        ("features", "share.version", nothing, "not finalized"),
    }
    assert {row["subject"] for row in rows if row["gate"] == "topic configurations"} == {FORMAT}
    [blocked, ignored] = [row for row in rows if row["subject"] == FORMAT]
    assert (blocked["releases"], blocked["names"]) == (["4.0.0", "4.0.2", "4.1.2"], ["orders"])
    assert ignored["releases"] == ["4.2.1", "4.3.1", "4.4.0"]
    assert f"--delete-config {FORMAT}" in blocked["remedy"]
    [old] = [row for row in rows if row["gate"] == "old batches"]
    # Without compression, each message with magic value 1 is a batch of its own.
    assert (old["count"], old["releases"][0]) == (2, "4.0.0")
    assert "What blocks an upgrade of this cluster to Kafka 4?" in render(done.facts)


@pytest.mark.long
@pytest.mark.spark
def test_an_analysis_of_captures_has_it_in_every_form(spark: SparkSession, tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "gate")
    write(traffic)
    traffic.close()
    done = analyze([traffic.directory], tmp_path / "out", spark=spark, releases=RELEASES)
    place = done.output.place.path
    assert place is not None
    rows = audit_cluster(spark, place, RELEASES).collect()
    assert [ClusterGate(**{**row.asDict(), "names": tuple(row.names)}) for row in rows] == [
        *done.facts.audit.cluster
    ]
    form = json.loads((place / "audit.json").read_text(encoding="utf-8"))
    assert {one["gate"] for one in form["cluster"]} == {
        one.gate for one in done.facts.audit.cluster
    }
    page = render(done.facts)
    for told in ("The cluster itself", "rejects any other change to these topics", "zookeeper"):
        assert told in page
    says = [said["sentence"] for one in analysis_form(done)["audit"] for said in one["cluster"]]
    assert any(FORMAT in sentence and "will break" in sentence for sentence in says)
    assert not any("nothing seen" in sentence for sentence in says)
