"""Logs become tables, answers and a report, alone and together with captures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from flexwire.answers.asking.answer import AnalysisTables, LogTables
from flexwire.answers.savings import ANSWER as SAVINGS
from flexwire.answers.savings import savings
from flexwire.answers.storage import ANSWER as STORAGE
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.records import Record
from flexwire.report import render
from flexwire.spark import log_job
from flexwire.spark.analyze import Analysis, analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.tables.log_schema import LOG_SCHEMAS
from flexwire.tables.schema import schema_of
from flexwire.tasks import spark_schema
from tests.capture.made_logs import COMMIT, TIME, MadeSegment, write_log
from tests.capture.made_transactions import cleaned, random_transactions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HOSTILE = "<script>alert(1)</script>"
# Each of two partitions contains 40 keys, four times each. The other records are written by hand.
KEYS, TIMES = 40, 4


def segments(partition: int) -> list[MadeSegment]:
    made, offset = [], 0
    for turn in range(TIMES):
        segment = MadeSegment(offset)
        for first in range(0, KEYS, 10):
            records = [
                Record(
                    offset + at,
                    TIME + offset + at,
                    b"key %d" % (first + at),
                    # The first ten records of the last round are tombstones.
                    None if turn == TIMES - 1 and first == 0 else b"value " * 100,
                    [],
                )
                for at in range(10)
            ]
            offset += 10
            segment.add(
                records,
                compression="none" if partition else "gzip",
                producer_id=7,
                is_transactional=partition == 0,
            )
        if partition == 0:
            segment.end(offset, 7, COMMIT)
            offset += 1
        made.append(segment)
    return made


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root: Path = tmp_path_factory.mktemp("logs")
    both = {partition: segments(partition) for partition in (0, 1)}
    both[1][0].data += b"not a batch" * 3
    for partition, made in both.items():
        write_log(root / "data" / f"orders-{partition}", made)
    # An older copy of the first log, and a file that a broker is deleting.
    write_log(root / "data" / "old" / "orders-0", both[0][:1])
    write_log(root / "data" / f"orders-9.{'0' * 32}-delete", both[0])
    (root / "data" / "meta.properties").write_text("version=1")
    # The size is small, so that several tasks read a partition and other tasks merge its keys.
    with patch.object(log_job, "_LEAST_TASK", 50_000), patch.object(log_job, "_OPENING", 0):
        return analyze([root / "data"], root / "out", spark=spark)


def tables_of(spark: SparkSession, done: Analysis) -> AnalysisTables:
    return open_tables(spark, str(done.output.place))


def asked(spark: SparkSession, done: Analysis, answer: Any) -> list[dict[str, Any]]:
    rows = answer.ordered(answer.ask(tables_of(spark, done)))
    assert typed(rows) == typed_columns(answer)
    shown = [one.name for one in answer.shown_columns()]
    assert {*shown, *(one.removeprefix("-") for one in answer.order)} <= {*rows.columns}
    return [row.asDict() for row in rows.collect()]


def typed_columns(answer: Any) -> list[Any]:
    return [(one.name, one.dataType) for one in spark_schema(schema_of(answer.columns))]


def typed(rows: DataFrame) -> list[Any]:
    return [(one.name, one.dataType) for one in rows.schema]


@pytest.mark.long
def test_storage_is_what_was_written(spark: SparkSession, done: Analysis) -> None:
    [row] = asked(spark, done, STORAGE)
    sizes = {one: sum(len(part.data) for part in segments(one)) for one in (0, 1)}
    records = 2 * KEYS * TIMES
    assert (row["topic"], row["partitions"], row["segments"]) == ("orders", 2, 2 * TIMES)
    assert row["bytes"] == sum(sizes.values()) + 33 == row["batch_bytes"] + 33 + TIMES * 78
    assert (row["batches"], row["records"]) == (2 * TIMES * KEYS // 10, records)
    assert row["codecs"] == ["gzip", "none"]
    assert (row["tombstones"], row["keyed_records"]) == (20, records)
    assert row["superseded_records"] == records - 2 * KEYS
    assert row["superseded_share"] == row["superseded_records"] / records
    # Three of four rounds are superseded, with 600 bytes and a key per record. Lengths take two
    # bytes.
    keys = 3 * 2 * sum(len(b"key %d" % one) for one in range(KEYS))
    least = keys + 3 * 2 * KEYS * (600 + 7)
    assert least + 3 * 2 * KEYS * 2 <= row["superseded_bytes"] <= least + 3 * 2 * KEYS * 3
    assert (row["transactional_share"], row["control_batches"]) == (0.5, TIMES)
    assert (row["damaged"], row["damaged_bytes"]) == (1, 33)
    assert row["uncompressed_bytes"] == 2 * (sizes[1])
    assert row["compression_ratio"] == row["uncompressed_bytes"] / row["batch_bytes"]
    # With so few batches, the percentile would equal the largest value.
    assert row["batches"] < 100
    assert row["p99_batch_bytes"] is None
    assert row["mean_record_bytes"] == pytest.approx(2 * (sizes[1] - 16 * 61) / records)
    # The values take 614 and 615 bytes, and the size classes are 8 bytes wide.
    assert (row["p50_record_bytes"], row["p99_record_bytes"]) == (608, 608)
    assert row["oldest_time"].timestamp() * 1000 == TIME
    assert row["newest_time"].timestamp() * 1000 == TIME + TIMES * KEYS + TIMES - 2


@pytest.mark.long
def test_older_tables_do_not_say_how_transactions_ended(
    spark: SparkSession, done: Analysis
) -> None:
    tables = tables_of(spark, done)
    assert tables.logs is not None
    older = replace(tables.logs, batches=tables.logs.batches.drop("outcome"))
    [row] = STORAGE.ask(replace(tables, logs=older)).collect()
    assert (row.aborted_records, row.aborted_bytes, row.unsettled_records) == (None, None, None)
    assert row.superseded_records == 2 * KEYS * (TIMES - 1)


@pytest.mark.long
def test_aborted_and_open_transactions_are_counted_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = random_transactions(3), random_transactions(4)
    for number, one in enumerate(made):
        write_log(tmp_path / "data" / f"orders-{number}", one.segments)
    # The size is small, so that tasks search for transactions and several tasks read each
    # partition.
    with patch.object(log_job, "_LEAST_TASK", 1_000), patch.object(log_job, "_OPENING", 0):
        done = analyze([tmp_path / "data"], tmp_path / "out", spark=spark)
    [row] = asked(spark, done, STORAGE)
    both = [cleaned(one) for one in made]
    assert row["keyed_records"] == sum(kept for kept, _ in both)
    assert row["superseded_records"] == sum(gone for _, gone in both)
    records = {
        kind: sum(
            len(records)
            for one in made
            for first, producer, records in one.written
            if one.outcome(producer, first) == kind
        )
        for kind in ("aborted", "open")
    }
    assert all(records.values())
    assert (row["aborted_records"], row["unsettled_records"]) == (*records.values(),)
    assert row["aborted_bytes"] > row["aborted_records"] * len(b"k0v")
    assert (row["keyless_records"], row["damaged"]) == (0, 0)


def collected(row: dict[str, Any], size: float, ratio: float) -> int:
    """Return how many records a producer puts into a batch if it appends them one by one."""
    count = 0
    while 61 + count * size * ratio + size * (count > 0) <= row["producer_batch_size"]:
        count += 1
    return count


@pytest.mark.long
def test_savings_are_of_what_was_written_again(spark: SparkSession, done: Analysis) -> None:
    rows = asked(spark, done, SAVINGS)
    assert {row["batch_size"] for row in rows} == {16 << 10}
    best = rows[0]
    assert (best["rank"], best["topic"]) == (1, "orders")
    assert best["estimated_bytes"] == min(row["estimated_bytes"] for row in rows)
    plain = next(row for row in rows if row["compression"] == "none")
    headers = 61 * sum(
        one["written_batches"]
        for one in done.output.table("log_rewrites").to_pylist()
        if one["compression"] == "none"
    )
    plain_bytes = plain["written_bytes"] - headers
    for row in rows:
        assert row["bytes"] - row["estimated_bytes"] == row["saved_bytes"]
        assert 0 < row["sampled_share"] <= 1
        share = row["written_bytes"] / row["sampled_bytes"]
        assert row["estimated_bytes"] == round(row["bytes"] * share)
        # All records are of about the same size.
        size = plain_bytes / row["sampled_records"]
        ratio = (row["written_bytes"] - headers) / plain_bytes
        held = size * collected(row, size, ratio * 1.05 if row is not plain else 1.0)
        assert abs(held - row["batch_size"]) <= 2 * size
    # One row of each topic says what to do, and each row contains the sum over all topics.
    assert [row["rank"] for row in rows if row["advice"]] == [1]
    level = "" if best["level"] is None else f" at level {best['level']}"
    assert best["advice"].startswith(f"write orders with {best['compression']}{level} in batches")
    saved = f"saves {best['saved_bytes'] / 1e6:,.3f} MB ({best['saved_share'] * 100:,.1f} %)"
    assert best["advice"].endswith(saved)
    assert {row["total_saved_bytes"] for row in rows} == {best["saved_bytes"]}
    plain = next(row for row in rows if row["compression"] == "none")
    assert plain["rank"] == len(rows)
    assert plain["saved_bytes"] < 0 < best["saved_bytes"]
    assert 0 <= plain["producer_batch_size"] - plain["batch_size"] - 61 <= 1
    assert best["producer_batch_size"] < plain["producer_batch_size"]


def test_savings_advise_on_every_topic_but_the_internal_ones(spark: SparkSession) -> None:
    internal = [one.topic for one in InternalTopic]
    topics = {name: number for number, name in enumerate(["a", "b", "c", *internal], 1)}
    batches = [
        {"topic": name, "size": 1000 * number, "is_control": False}
        for name, number in topics.items()
    ]
    # For one topic, nothing is saved; for every other topic, the second way saves the most.
    written = {"gzip": 900, "zstd": 600, "none": 1000}
    ways = [
        {"topic": name, "compression": codec, "batch_size": 16384, "sampled_bytes": 1000,
         "sampled_records": 9, "written_bytes": 1100 if name == "b" else size}
        for name in topics for codec, size in written.items()
    ]  # fmt: skip
    made = [
        spark.createDataFrame(pa.Table.from_pylist(rows, LOG_SCHEMAS[table]))
        for table, rows in (("log_batches", batches), ("log_rewrites", ways))
    ]
    empty = made[0].where("false")
    logs = LogTables(made[0], empty, empty, made[1])
    rows = savings(AnalysisTables(empty, empty, empty, lambda _: None, logs)).collect()
    best = {row.topic: row for row in rows if row.rank == 1}
    assert {row.topic for row in rows} == best.keys() == {"a", "b", "c"}
    assert [row.topic for row in rows if row.advice is not None] == [*best]
    assert best["a"].advice == (
        "write a with zstd in batches of up to 16 KiB of records: saves 0.000 MB (40.0 %)"
    )
    assert best["b"].advice == "leave b as it is: none of the tested combinations saves bytes"
    saved = [max(row.saved_bytes, 0) for row in best.values()]
    assert {row.total_saved_bytes for row in rows} == {sum(saved)} == {400 + 1200}


def test_the_tables_are_whole_and_the_facts_are_theirs(done: Analysis) -> None:
    logs = done.facts.logs
    assert logs is not None
    found = {name: done.output.table(name) for name in LOG_SCHEMAS}
    assert {name: table.schema for name, table in found.items()} == LOG_SCHEMAS
    batches = found["log_batches"].to_pylist()
    assert sum(row["size"] for row in batches) == logs.bytes
    assert (logs.topics, logs.partitions, logs.segments) == (1, 2, 8)
    assert (logs.batches, logs.damaged, logs.damaged_bytes) == (len(batches) - 1, 1, 33)
    assert logs.records == 2 * KEYS * TIMES + TIMES
    assert [one.rpartition("/data/")[2] for one in logs.left_out] == ["old/orders-0"]
    assert len(found["log_keys"]) > 2, "several tasks found something"
    assert len(done.output.table("frames")) == 0
    place = done.output.place.path
    assert place is not None
    assert {one.name for one in place.iterdir()} == {
        *("tables", "answers", "report.html", "facts.json", "audit.csv", "audit.json")
    }


def test_a_report_of_logs_says_nothing_of_traffic(done: Analysis) -> None:
    page = render(done.facts)
    assert done.facts.title == "Kafka logs"
    for word in ("Who breaks", "No frame was captured", "Latencies", "No capture file", "Frames"):
        assert word not in page
    assert "324 records" in page
    assert "8 log segments" in page
    assert "old/orders-0" in page.replace("<wbr>", "")


@pytest.mark.long
@pytest.mark.slow
def test_logs_beside_a_capture(spark: SparkSession, tmp_path: Path) -> None:
    from tests.capture.interleaved import Shape, write_capture  # noqa: PLC0415 - only one test needs this module

    capture = write_capture(tmp_path, 1, Shape(connections=2))
    write_log(tmp_path / "logs" / f"{HOSTILE.replace('/', '')}-0", segments(0))
    done = analyze([*capture, tmp_path / "logs"], tmp_path / "out", spark=spark)
    assert done.facts.logs is not None
    assert done.facts.totals.frames > 0
    assert len(done.output.table("frames")) == done.facts.totals.frames
    page = render(done.facts)
    assert "Who breaks" in page
    assert "log segments" in page
    assert "<script>alert" not in page
    tables = open_tables(spark, tmp_path / "out")
    assert [row.topic for row in STORAGE.ask(tables).collect()] == [HOSTILE.replace("/", "")]


def test_without_logs_no_row(spark: SparkSession, done: Analysis) -> None:
    tables = tables_of(spark, done)
    none = AnalysisTables(tables.frames, tables.connections, tables.records, tables.message)
    for answer in (STORAGE, SAVINGS):
        rows = answer.ordered(answer.ask(none))
        assert typed(rows) == typed_columns(answer)
        assert rows.collect() == []
