"""Frames of many megabytes among small ones: what is held is bounded, and what fails says so."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.errors import AnalysisError
from flexwire.spark import analyze as analysis
from flexwire.spark.analyze import analyze
from flexwire.spark.batches import spark_schema
from flexwire.spark.frames import FRAMES
from flexwire.spark.pairs import pair_frames, with_payloads
from flexwire.spark.tables import write_table
from tests.spark.traffic import START_US, Traffic, made, request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

MIB = 1024 * 1024
LARGE, EVERY, ROWS = 6 * MIB, 20, 240
PAGE_LIMIT, ROW_GROUP_LIMIT = MIB, 32 * MIB


def _payloads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch["id"].to_pylist():
            size = LARGE if number % EVERY == EVERY - 1 else 100
            yield pa.record_batch({"number": [number], "payload": [os.urandom(size)]})


def test_pages_and_row_groups_are_bounded_however_rows_differ(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(0, ROWS, 1, 1).mapInArrow(_payloads, "number bigint, payload binary")
    write_table(rows, tmp_path / "table")
    (file,) = (tmp_path / "table").glob("*.parquet")
    written = pq.ParquetFile(file)
    assert written.metadata.num_rows == ROWS
    groups = [written.metadata.row_group(n) for n in range(written.num_row_groups)]
    assert max(group.total_byte_size for group in groups) < ROW_GROUP_LIMIT + LARGE + MIB
    assert len(groups) > 1
    pages = list(_page_sizes(spark, file))
    assert sum(pages) >= LARGE * ROWS // EVERY
    # What was in a page before its last row is below the limit.
    assert max(pages) < PAGE_LIMIT + LARGE + MIB


def _page_sizes(spark: SparkSession, file: Path) -> Iterator[int]:
    """The bytes of each page, as the index of the file has them; pyarrow does not show it."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(str(file))
    conf = jvm.org.apache.hadoop.conf.Configuration()
    source = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, conf)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(source)
    try:
        for block in reader.getFooter().getBlocks():
            for column in block.getColumns():
                index = reader.readOffsetIndex(column)
                for page in range(index.getPageCount()):
                    yield index.getCompressedPageSize(page)
    finally:
        reader.close()


def _frame_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [
            {
                "kind": "frame",
                "connection": "a>b",
                "direction": "request",
                "frame_index": number,
                "time": START_US,
                "correlation_id": number,
                "message": "MetadataRequest",
                # It compresses to nothing, so by the size of its file the table is small.
                "payload": bytes(100_000),
            }
            for number in batch["id"].to_pylist()
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=FRAMES)


def test_of_a_large_capture_payloads_are_neither_broadcast_nor_read_thousands_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    made_up = spark.range(0, 50, 1, 1).mapInArrow(_frame_rows, spark_schema(FRAMES))
    write_table(made_up, tmp_path / "wire")

    def plan() -> str:
        wire = spark.read.schema(made_up.schema).parquet(str(tmp_path / "wire"))
        joined = with_payloads(pair_frames(wire), wire)
        assert len(joined.collect()) == 50
        told: str = joined._jdf.queryExecution().executedPlan().toString()
        return told

    usual = plan()
    with analysis._configured(spark, is_small=False):
        ours = plan()
    # By itself Spark does both, and the plan tells.
    assert ("Broadcast" in usual, "ColumnarToRow" in usual) == (True, True)
    assert ("Broadcast" in ours, "ColumnarToRow" in ours) == (False, False)


def _one_capture(directory: Path) -> Path:
    traffic = Traffic(directory)
    traffic.send(traffic.connect(), "request", request(made("MetadataRequest"), 12, 1))
    traffic.close()
    return directory


def _broken_plan(frames: DataFrame, _: str, **__: object) -> DataFrame:
    return frames.select("absent")


def _broken_task(frames: DataFrame, _: str, **__: object) -> DataFrame:
    return frames.mapInArrow(_raise, "message string")


def _raise(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    error = ValueError("planted")
    error.add_note("while testing")
    raise error


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (_broken_task, "Spark failed with ValueError: planted; while testing"),
        (_broken_plan, "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
    ],
)
def test_what_spark_cannot_do_is_told_in_a_line_with_its_stage(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    broken: Any,
    told: str,
) -> None:
    monkeypatch.setattr(analysis, "decode_bodies", broken)
    with pytest.raises(AnalysisError) as error:
        analyze([_one_capture(tmp_path / "capture")], tmp_path / "out", spark=spark)
    text = str(error.value)
    assert text.startswith("Decoding messages: Spark failed with ")
    assert told in text
    assert "\n" not in text
    assert len(text) < 800
    assert capfd.readouterr().err == ""
    # The session goes on, with the settings that it had.
    assert spark.range(3).count() == 3


def test_java_without_memory_is_told_with_the_remedy(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "capture")
    traffic.writer.max_bytes = 2**30
    large = request(made("MetadataRequest"), 12, 1) + bytes(200 * MIB)
    traffic.send(traffic.connect(), "request", large)
    traffic.close()
    (written,) = (tmp_path / "capture").iterdir()
    packed = tmp_path / "capture.pcapng.gz"
    packed.write_bytes(gzip.compress(written.read_bytes(), 1))
    written.unlink()
    command = [sys.executable, "-m", "flexwire", "analyze", str(packed), "--memory", "512m"]
    answer = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    *before, line = answer.stderr.splitlines()
    assert line.startswith("AnalysisError: Reading captures: Java ran out of memory")
    assert "--memory 1024m" in line
    # A worker of Spark's may say that its pipe broke.
    assert len(before) < 6, answer.stderr
