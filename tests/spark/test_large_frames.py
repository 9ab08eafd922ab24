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
from flexwire.spark.analyze import analyze
from flexwire.spark.by_objects.frames import FRAMES
from flexwire.spark.by_objects.pairs import pair_frames, with_payloads
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.settings import configured
from flexwire.spark.tables import write_table
from flexwire.tasks import spark_schema
from tests.spark.traffic import START_US, Traffic, made, request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.spark.publishing.drop import Drop

pytestmark = pytest.mark.spark

MIB = 1024 * 1024
LARGE, EVERY, ROWS = 6 * MIB, 20, 240
_COMPILED = "spark.sql.codegen.wholeStage"
SPARKS_OWN = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
    "spark.sql.optimizer.disableHints": "false",
}
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

    # What the session of the tests leaves out, as its jobs are small.
    usually = {_COMPILED: "true", **SPARKS_OWN}
    small = {name: str(spark.conf.get(name)) for name in usually}
    for name, value in usually.items():
        spark.conf.set(name, value)
    try:
        usual = plan()
        with configured(spark, is_small=False):
            ours = plan()
    finally:
        for name, value in small.items():
            spark.conf.set(name, value)
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


def _broken_task(spark: SparkSession, _: object, drop: Drop, __: int) -> Any:
    return run_tasks(spark, 1, _raise, drop)


def _raise(_: int, __: Drop) -> None:
    error = ValueError("planted")
    error.add_note("while testing")
    raise error


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (
            ("analyze.write_tables", _broken_task, False),
            "Decoding captures: Spark failed with ValueError: planted; while testing",
        ),
        (
            ("by_objects.analysis.decode_bodies", _broken_plan, True),
            "Decoding messages: Spark failed with org.apache.spark.sql.catalyst.",
        ),
    ],
)
def test_what_spark_cannot_do_is_told_in_a_line_with_its_stage(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    broken: tuple[str, Any, bool],
    told: str,
) -> None:
    where, instead, by_objects = broken
    monkeypatch.setattr(f"flexwire.spark.{where}", instead)
    captures = [_one_capture(tmp_path / "capture")]
    with pytest.raises(AnalysisError) as error:
        analyze(captures, tmp_path / "out", spark=spark, by_objects=by_objects)
    text = str(error.value)
    assert text.startswith(told)
    assert "\n" not in text
    assert len(text) < 800
    assert capfd.readouterr().err == ""
    # The session goes on, with the settings that it had.
    assert spark.range(3).count() == 3


# What Python itself says; Java and its workers, which may end after it, have the other stream.
_SAID = "import sys; sys.stderr = sys.stdout"

# A task in which Java is to make a value that no heap of this size holds.
_LARGE = f"""
{_SAID}
from flexwire.errors import AnalysisError
from flexwire.spark import analyze
analyze.write_tables = lambda spark, *_: spark.range(1).selectExpr(
    "length(repeat('x', 2000000000 + int(id)))"
).collect()
try:
    analyze.analyze([sys.argv[1]], sys.argv[2], memory="512m")
except AnalysisError as error:
    sys.exit(f"AnalysisError: {{error}}")
"""


@pytest.fixture(scope="module")
def one_large_frame(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compressed capture of a frame that does not fit into a small heap twice."""
    directory = tmp_path_factory.mktemp("large")
    traffic = Traffic(directory / "capture")
    traffic.writer.max_bytes = 2**30
    large = request(made("MetadataRequest"), 12, 1) + bytes(200 * MIB)
    traffic.send(traffic.connect(), "request", large)
    traffic.close()
    (written,) = (directory / "capture").iterdir()
    packed = directory / "capture.pcapng.gz"
    packed.write_bytes(gzip.compress(written.read_bytes(), 1))
    written.unlink()
    return packed


def test_java_without_memory_is_told_with_the_remedy(tmp_path: Path) -> None:
    capture = _one_capture(tmp_path / "capture")
    command = [sys.executable, "-c", _LARGE, str(capture), str(tmp_path / "out")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    (line,) = answer.stdout.splitlines()
    assert line.startswith("AnalysisError: Decoding captures: Java ran out of memory")
    assert "--memory 1024m" in line


# Java ends between what is asked of it and its answer.
_KILLED = f"""
{_SAID}
import logging, signal
from threading import Timer
from pyspark import SparkContext
from flexwire.errors import AnalysisError
from flexwire.spark.settings import SMALL_JAVA
from flexwire.spark.archive import with_archive
from flexwire.spark.failures import stopped
from flexwire.spark.session import session
try:
    with stopped(session(memory="512m", conf=with_archive(SMALL_JAVA))):
        java = SparkContext._gateway.proc
        java.send_signal(signal.SIGSTOP)
        Timer(0.5, java.kill).start()
        raise AnalysisError("Java ran out of memory")
except AnalysisError as error:
    # As a thread of Py4J's says it that was telling Java what to forget.
    logging.getLogger().handle(logging.makeLogRecord({{"module": "java_gateway", "msg": "gone"}}))
    sys.exit(f"AnalysisError: {{error}}")
"""


def test_a_session_whose_java_has_ended_is_stopped_without_a_word() -> None:
    command = [sys.executable, "-c", _KILLED]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stdout == "AnalysisError: Java ran out of memory\n"


def test_java_never_holds_a_frame_that_columns_read(one_large_frame: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flexwire", "analyze", str(one_large_frame)]
    command += ["--memory", "512m", "--out", str(tmp_path / "out")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
    assert answer.stdout.startswith("1 frame on 1 connection, 209,715,")
