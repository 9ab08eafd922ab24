"""Message content is decoded, including records of internal topics, with names and types."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.answers.client_metrics import client_metrics
from flexwire.answers.share_deliveries import share_deliveries
from flexwire.answers.state import internal_records
from flexwire.protocol.credentials import METADATA_TOPIC, METADATA_TOPIC_ID
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.tables.records import WITHHELD_RECORDS
from tests.protocol.test_telemetry import pushed
from tests.spark.traffic import TOPIC_ID, Traffic, made, nested, record_batch
from tests.tables.test_typed_records import real_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

pytestmark = pytest.mark.spark

# Two pushes are readable, in two compression types. One push does not contain metrics, and one has
# an unknown compression type.
PUSHED = [(pushed(), 0), (gzip.compress(pushed()), 1), (b"\xff\xff", 0), (b"", 9)]
METADATA = real_records(InternalTopic.METADATA)[:40]
COMMITS = real_records(InternalTopic.CONSUMER_OFFSETS)[:40]


def fetched(rows: Sequence[tuple[bytes | None, bytes | None]], **topic: Any) -> Any:
    batch = record_batch(*((key, value, []) for key, value in rows))
    partition = nested("FetchResponse", "PartitionData", partition_index=0, records=batch)
    return made(
        "FetchResponse",
        responses=[
            nested("FetchResponse", "FetchableTopicResponse", partitions=[partition], **topic)
        ],
    )


def share(traffic: Traffic, connection: Any) -> None:
    """Write two members, one of which gets records that the other releases, and invalid ranges."""
    topic = nested("MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID)
    metadata = made("MetadataResponse", topics=[topic])
    traffic.exchange(connection, made("MetadataRequest"), metadata, 12, 10)
    fetches = [
        ("m1", [(0, 9, 1), (10, 10, 1)], []),
        ("m2", [(0, 4, 2), (5, 5, 4)], [(20, 21, [1]), (22, 24, [2, 3, 0])]),
        ("m2", [(7, 3, 9), (-(2**63), 2**63 - 1, 9)], [(7, 3, [1]), (-(2**63), 2**63 - 1, [1])]),
    ]
    for number, (member, acquired, acknowledged) in enumerate(fetches, 11):
        asked = made(
            "ShareFetchRequest",
            group_id="sharing",
            member_id=member,
            topics=[said("ShareFetchRequest", "FetchTopic", "FetchPartition", acknowledged)],
        )
        ranges = [
            nested(
                "ShareFetchResponse",
                "AcquiredRecords",
                first_offset=first,
                last_offset=last,
                delivery_count=count,
            )
            for first, last, count in acquired
        ]
        partition = nested(
            "ShareFetchResponse", "PartitionData", acquired_records=ranges, records=b""
        )
        answered = nested(
            "ShareFetchResponse",
            "ShareFetchableTopicResponse",
            topic_id=TOPIC_ID,
            partitions=[partition],
        )
        answer = made("ShareFetchResponse", responses=[answered])
        traffic.exchange(connection, asked, answer, 1, number)
    acknowledged = said(
        "ShareAcknowledgeRequest", "AcknowledgeTopic", "AcknowledgePartition", [(0, 9, [2])]
    )
    asked = made(
        "ShareAcknowledgeRequest", group_id="sharing", member_id="m1", topics=[acknowledged]
    )
    traffic.exchange(connection, asked, made("ShareAcknowledgeResponse"), 1, 30)


def said(message: str, topic: str, partition: str, batches: Sequence[Any]) -> Any:
    """Return the topic of a request that acknowledges these ranges of offsets."""
    made_batches = [
        nested(
            message,
            "AcknowledgementBatch",
            first_offset=first,
            last_offset=last,
            acknowledge_types=types,
        )
        for first, last, types in batches
    ]
    of = nested(message, partition, partition_index=0, acknowledgement_batches=made_batches)
    return nested(message, topic, topic_id=TOPIC_ID, partitions=[of])


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("inside") / "capture"
    traffic = Traffic(root)
    one = traffic.connect()
    by_id = fetched(METADATA, topic_id=METADATA_TOPIC_ID)
    traffic.exchange(one, made("FetchRequest"), by_id, 17, 1)
    traffic.exchange(one, made("FetchRequest"), fetched(METADATA, topic=METADATA_TOPIC), 12, 2)
    commits = fetched(COMMITS, topic="__consumer_offsets")
    traffic.exchange(one, made("FetchRequest"), commits, 12, 3)
    share(traffic, one)
    client = UUID(int=7)
    for number, (metrics, compression) in enumerate(PUSHED, 40):
        push = made(
            "PushTelemetryRequest",
            client_instance_id=client,
            metrics=metrics,
            compression_type=compression,
        )
        traffic.exchange(one, push, made("PushTelemetryResponse"), 0, number)
    traffic.close()
    return root


@pytest.fixture(scope="module")
def tables(spark: SparkSession, capture: Path) -> AnalysisTables:
    out = capture.parent / "out"
    analyze([capture], out, spark=spark, show_credentials=True, answers=[])
    return open_tables(spark, out)


def test_the_topic_of_the_cluster_s_metadata_has_its_name(tables: AnalysisTables) -> None:
    found = {(one.topic, one.topic_id) for one in tables.records.collect()}
    assert found == {
        (METADATA_TOPIC, None),
        (METADATA_TOPIC, "AAAAAAAAAAAAAAAAAAAAAQ"),
        ("__consumer_offsets", None),
    }


@pytest.mark.slow
def test_it_has_its_name_where_its_records_are_withheld(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    done = analyze([capture], tmp_path / "out", spark=spark, answers=[])
    rows = done.output.table("records", ["topic", "topic_id", "error"]).to_pylist()
    withheld = [one for one in rows if one["topic"] == METADATA_TOPIC]
    assert len(withheld) == 2
    assert {one["error"] for one in withheld} == {WITHHELD_RECORDS}
    assert {one["topic_id"] for one in withheld} == {None, "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert {one["topic"] for one in rows} == {METADATA_TOPIC, "__consumer_offsets"}


@pytest.mark.parametrize(
    ("topic", "records", "wanted"),
    [
        (METADATA_TOPIC, METADATA * 2, ["TopicRecord", "PartitionRecord", "ConfigRecord"]),
        ("__consumer_offsets", COMMITS, ["OffsetCommit", "GroupMetadata"]),
    ],
)
def test_records_of_internal_topics_in_captures_are_typed(
    tables: AnalysisTables, topic: str, records: Sequence[Any], wanted: list[str]
) -> None:
    rows = tables.records.where(f"topic = '{topic}' and error is null").drop("error")
    typed = internal_records(rows, topic, wanted).collect()
    assert len(typed) == len(records)
    assert not [one.error for one in typed if one.error]
    for name in wanted:
        held = [one for one in typed if one.message == name and not one.is_tombstone]
        assert all(one[name] is not None for one in held)
    assert any(one.message in wanted for one in typed)


def test_metrics_that_clients_push(tables: AnalysisTables) -> None:
    rows = [row.asDict() for row in client_metrics(tables).collect()]
    assert {(one["client_id"], one["client_instance_id"]) for one in rows} == {
        ("tests", "AAAAAAAAAAAAAAAAAAAABw")
    }
    found = {one["name"]: one for one in rows if one["name"]}
    latency = found["org.apache.kafka.producer.latency.avg"]
    assert (latency["unit"], latency["kind"], latency["points"]) == ("ms", "gauge", 2)
    assert [latency[one] for one in ("least", "mean", "most", "latest")] == [2.5] * 4
    assert (latency["total"], latency["temporality"]) == (None, None)
    assert latency["first_time"] < latency["last_time"]
    counter = found["org.apache.kafka.producer.records"]
    assert (counter["temporality"], counter["total"]) == ("delta", 2 * (2**53 - 1))
    sizes = found["sizes"]
    assert (sizes["mean"], sizes["total"], sizes["latest"]) == (10.5 / 4, None, None)
    refused = {one["error"]: one["points"] for one in rows if one["error"]}
    assert len(found) + len(refused) == len(rows) == 5
    assert set(refused.values()) == {1}
    assert any("no compression type has number 9" in one for one in refused)


@pytest.mark.long
def test_share_groups_say_what_was_delivered_before(tables: AnalysisTables) -> None:
    found = {row.member_id: row.asDict() for row in share_deliveries(tables).collect()}
    assert found.keys() == {"m1", "m2"}
    one, two = found["m1"], found["m2"]
    for row in (one, two):
        assert (row["group_id"], row["client_id"]) == ("sharing", "tests")
        assert (row["topic"], row["topic_id"]) == ("orders", None)
        assert row["first_time"] < row["last_time"]
    assert (one["acquired"], one["redelivered"], one["most_deliveries"]) == (11, 0, 1)
    assert (one["redelivered_share"], one["released"], one["accepted"]) == (0, 10, 0)
    assert (two["acquired"], two["redelivered"], two["most_deliveries"]) == (6, 6, 4)
    assert (two["accepted"], two["released"], two["rejected"], two["gaps"]) == (2, 1, 1, 1)
    assert (two["redelivered_share"], two["renewed"]) == (1, 0)


@pytest.mark.long
def test_where_there_are_no_such_messages_there_are_no_rows(tables: AnalysisTables) -> None:
    answer = client_metrics(replace(tables, message=lambda _: None))
    assert answer.collect() == []
    assert answer.columns == client_metrics(tables).columns
    shares = share_deliveries(replace(tables, message=lambda _: None))
    assert shares.collect() == []
    assert shares.schema.simpleString() == share_deliveries(tables).schema.simpleString()
