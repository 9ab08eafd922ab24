"""Bodies that violate their spec, but that Kafka's Java code accepts, are read with a remark."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.report import Facts
from flexwire.spark.analyze import Analysis, analyze
from tests.spark.traffic import TOPIC_ID, Traffic, made, record_batch, request, response

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

SECRET = b"\0alice\0correct horse"
NAMELESS = uuid.UUID(int=0x123456)
# librdkafka 2.16 writes these bytes.
METADATA_V13 = bytes.fromhex("00000000010000")
TRAILING_ZERO = b"\0"


def _nested(name: str, struct: str, /, **values: Any) -> Any:
    return getattr(type(made(name)), struct)(**values)


def _produce() -> Any:
    partition = _nested(
        "ProduceRequest", "PartitionProduceData", index=0, records=record_batch((b"k", b"v", []))
    )
    topic = _nested("ProduceRequest", "TopicProduceData", name="orders", partition_data=[partition])
    return made("ProduceRequest", acks=1, timeout_ms=100, topic_data=[topic])


def _fetched() -> Any:
    batch = record_batch((b"k", b"v", [(b"trace", b"1")]))
    topics = []
    for topic_id in (TOPIC_ID, NAMELESS):
        partition = _nested("FetchResponse", "PartitionData", partition_index=0, records=batch)
        topics.append(
            _nested(
                "FetchResponse", "FetchableTopicResponse", topic_id=topic_id, partitions=[partition]
            )
        )
    return made("FetchResponse", responses=topics)


def _metadata() -> Any:
    topic = _nested("MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID)
    return made("MetadataResponse", topics=[topic])


def _write(traffic: Traffic) -> None:
    one = traffic.connect()
    # This body decodes, so nothing after it belongs to authentication.
    traffic.exchange(one, made("HeartbeatRequest"), made("HeartbeatResponse"), 4, 0)
    empty = request(made("MetadataRequest"), 13, 1)
    head = empty[: len(empty) - len(made("MetadataRequest").encode(13))]
    traffic.send(one, "request", head + METADATA_V13)
    traffic.send(one, "response", response(_metadata(), 13, 1))
    for number in (2, 3):
        asked = request(made("AlterUserScramCredentialsRequest"), 0, number)
        traffic.send(one, "request", asked + TRAILING_ZERO * number)
    traffic.send(one, "request", request(_produce(), 9, 4) + TRAILING_ZERO)
    traffic.send(one, "response", response(made("ProduceResponse"), 9, 4) + TRAILING_ZERO)
    secret = made("SaslAuthenticateRequest", auth_bytes=SECRET)
    traffic.send(one, "request", request(secret, 2, 5) + TRAILING_ZERO)
    traffic.send(one, "request", request(made("HeartbeatRequest"), 4, 6)[:-3])
    traffic.exchange(one, made("FetchRequest"), _fetched(), 13, 7)
    one.close(timestamp_us=traffic.now_us)


@pytest.fixture(scope="module")
def analysis(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = tmp_path_factory.mktemp("lenient")
    traffic = Traffic(root / "capture")
    _write(traffic)
    traffic.close()
    return analyze([root / "capture"], root / "out", spark=spark)


@pytest.fixture(scope="module")
def frames(spark: SparkSession, analysis: Analysis) -> list[Row]:
    return spark.read.parquet(str(analysis.tables.frames)).orderBy("time").collect()


def _lenient(frames: list[Row], message: str) -> list[Row]:
    return [one for one in frames if (one.outcome, one.message) == ("lenient", message)]


def test_what_only_the_strict_reader_refuses_is_typed_with_its_bytes_and_the_reason(
    spark: SparkSession, analysis: Analysis, frames: list[Row]
) -> None:
    (frame,) = _lenient(frames, "MetadataRequest")
    (row,) = spark.read.parquet(str(analysis.tables.message("MetadataRequest"))).collect()
    assert (row.body.topics, row.body_version) == (None, 13)
    assert row.error == frame.error
    assert frame.error.endswith("the message ends here but 3 bytes follow")
    assert bytes(row.bytes) == bytes(frame.bytes)
    assert bytes(frame.bytes).endswith(METADATA_V13)
    # The frame is paired like any other frame.
    assert frame.answered is True


def test_what_the_lenient_reader_refuses_too_is_a_failure(
    analysis: Analysis, frames: list[Row]
) -> None:
    (failed,) = [one for one in frames if one.outcome == "failed"]
    assert (failed.message, failed.body_version) == ("HeartbeatRequest", None)
    assert [one.message for one in analysis.facts.failures] == ["HeartbeatRequest"]
    assert sum(api.failures for api in analysis.facts.apis) == 1


def test_the_figures_add_up(analysis: Analysis, frames: list[Row]) -> None:
    facts, totals = analysis.facts, analysis.facts.totals
    outcomes = [one.outcome for one in frames]
    assert totals.lenient_frames == outcomes.count("lenient") == 6
    assert totals.lenient_frames == sum(use.frames for use in facts.lenient_uses)
    assert totals.decode_failures == outcomes.count("failed") == 1
    assert totals.frames == len(frames) == 1 + 6 + outcomes.count("decoded")
    assert Facts.from_json(facts.to_json()) == facts


def test_the_finding_names_message_version_client_and_reason(analysis: Analysis) -> None:
    uses = {one.message: one for one in analysis.facts.lenient_uses}
    assert sorted(uses) == [
        "AlterUserScramCredentialsRequest", "MetadataRequest", "ProduceRequest", "ProduceResponse",
        "SaslAuthenticateRequest",
    ]  # fmt: skip
    scram = uses["AlterUserScramCredentialsRequest"]
    # Findings that differ only in their figures count as one finding.
    assert (scram.version, scram.frames, scram.client.client_id) == (0, 2, "tests")
    assert scram.reason.endswith("the message ends here but … bytes follow")
    assert uses["ProduceResponse"].client.client_id == "tests"
    assert "3 bytes follow" in uses["MetadataRequest"].reason
    assert "Frames that decode only leniently" in analysis.report.read_text()


def test_records_of_such_a_message_are_records(spark: SparkSession, analysis: Analysis) -> None:
    produced = spark.read.parquet(str(analysis.tables.records)).where("source = 'produce'")
    assert [bytes(one.value) for one in produced.collect()] == [b"v"]


def test_its_credentials_are_withheld(
    spark: SparkSession, analysis: Analysis, frames: list[Row]
) -> None:
    (frame,) = _lenient(frames, "SaslAuthenticateRequest")
    assert (frame.bytes, frame.withheld_credentials) == (None, 1)
    (row,) = spark.read.parquet(str(analysis.tables.message("SaslAuthenticateRequest"))).collect()
    assert (row.bytes, bytes(row.body.auth_bytes)) == (None, b"withheld")
    assert SECRET[1:].hex() not in analysis.report.read_text()


def test_a_topic_known_only_by_its_id_says_so(analysis: Analysis) -> None:
    topics = {(one.topic, one.side): one.is_id for one in analysis.facts.topics}
    nameless = "AAAAAAAAAAAAAAAAABI0Vg"
    assert topics == {
        ("orders", "produce"): False, ("orders", "fetch"): False, (nameless, "fetch"): True,
    }  # fmt: skip
    assert f"topic id {nameless}" in analysis.report.read_text().replace("<wbr>", "")
