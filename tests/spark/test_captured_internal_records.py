"""Captured records of internal topics are counted by type, and are not read as state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.answers.asking.answer import AnalysisTables
from flexwire.answers.asking.results import ask
from flexwire.answers.captured_internal_records import ANSWER
from flexwire.tables.schema import RECORDS
from tests.capture.made_logs import COMMIT
from tests.capture.made_metadata import value
from tests.spark.internal_topics.made import commit, written_transaction

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OFFSETS, COORDINATORS = "__consumer_offsets", "__transaction_state"
METADATA_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def row(offset: int | None, pair: tuple[bytes, bytes | None] | None, **more: Any) -> dict[str, Any]:
    key, data = pair or (None, None)
    made = {"source": "fetch", "topic": OFFSETS, "partition": 2, "offset": offset, "key": key}
    return {**made, "value": data, "is_control": False, "is_transactional": False, **more}


def told(spark: SparkSession, path: Path, rows: list[dict[str, Any]]) -> dict[Any, Any]:
    pq.write_table(pa.Table.from_pylist(rows, RECORDS), path)
    records = spark.read.parquet(str(path))
    tables = AnalysisTables(records, records, records, lambda _: None)
    found = ask(ANSWER, tables).rows.to_pylist()
    about = ("topic", "source", "message", "group", "transactional_id")
    return {tuple(one[name] for name in about): one for one in found}


@pytest.mark.long
def test_records_by_what_they_are_and_of_whom(spark: SparkSession, tmp_path: Path) -> None:
    written = [commit(0, 5), commit(1, 7), commit(0, None), commit(0, 8, "other")]
    fetched = [row(at, pair) for at, pair in enumerate(written)]
    transaction = written_transaction("t", 1, 9, {})
    topic = value("TopicRecord", name="orders", topicId=METADATA_ID)
    found = told(
        spark,
        tmp_path / "records.parquet",
        [
            *fetched,
            # Another follower fetched the same records.
            *fetched[1:],
            # A producer numbers its own records from 0, so these are two records.
            *(row(0, written[0], source="produce"),) * 2,
            row(9, (b"\0\1\0\5gr", b"\0\1")),
            row(17, transaction, topic=COORDINATORS),
            # The id of the metadata topic never changes.
            row(3, (b"", topic), topic=None, topic_id=METADATA_ID),
            # This record does not belong to the topic.
            row(4, (COMMIT, b"123456"), is_control=True),
            row(5, written[0], topic="orders"),
            row(None, None),
            row(None, None, error="withheld"),
        ],
    )
    g = found[OFFSETS, "fetch", "OffsetCommit", "g", None]
    assert (g["records"], g["tombstones"], g["partitions"], g["error"]) == (3, 1, 1, None)
    sizes = [len(key) + len(data or b"") for key, data in written]
    assert g["bytes"] == sum(sizes[:3])
    assert found.pop((OFFSETS, "produce", "OffsetCommit", "g", None))["records"] == 2
    assert found[OFFSETS, "fetch", "OffsetCommit", "other", None]["bytes"] == sizes[3]
    assert found[COORDINATORS, "fetch", "TransactionLog", None, "t"]["records"] == 1
    of_metadata = found["__cluster_metadata", "fetch", "TopicRecord", None, None]
    assert (of_metadata["type"], of_metadata["versions"]) == (2, [0])
    unread = [one for one in found.values() if one["error"]]
    assert sorted((one["type"] or -1, one["records"]) for one in unread) == [(-1, 1), (1, 1)]
    assert "withheld" in {one["error"] for one in unread}
    assert sum(one["records"] for one in found.values()) == 8


def test_a_capture_without_them_has_no_row(spark: SparkSession, tmp_path: Path) -> None:
    rows = [row(0, commit(0, 5), topic="orders")]
    assert told(spark, tmp_path / "records.parquet", rows) == {}
