"""What messages carry inside: records of internal topics, with their names and types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.protocol.credentials import METADATA_TOPIC, METADATA_TOPIC_ID
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.reading import AnalysisTables, open_tables
from flexwire.spark.internal_topics import internal_records
from flexwire.tables.record_objects import WITHHELD_RECORDS
from tests.spark.traffic import Traffic, made, nested, record_batch
from tests.tables.test_typed_records import real_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

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
    traffic.close()
    return root


@pytest.fixture(scope="module")
def tables(spark: SparkSession, capture: Path) -> AnalysisTables:
    out = capture.parent / "out"
    analyze([capture], out, spark=spark, show_credentials=True, answers=[])
    return open_tables(spark, out)


@pytest.mark.parametrize("by_objects", [False, True])
def test_the_topic_of_the_cluster_s_metadata_has_its_name(
    spark: SparkSession, capture: Path, tmp_path: Path, *, by_objects: bool
) -> None:
    done = analyze([capture], tmp_path / "out", spark=spark, by_objects=by_objects, answers=[])
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
