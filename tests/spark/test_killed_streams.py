"""A stream that is killed between two files of its checkpoint still returns each row once.

A killed driver leaves the disk as it was at the moment of the kill. The test therefore copies the
disk at three moments in a query: when a batch is planned (`offsets`), when it is also in the table
(`output`), and when it is committed (`committed`). From each copy, another query continues after
the input has grown.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tests.capture.interleaved import CLEAN, write_capture
from tests.capture.made_logs import MadeSegment, plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# The test takes two minutes. `capture/test_logs_following.py` and `tables/test_following.py` test
# the same without Spark.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]
HAS_LIMITS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
NAME = "a query"


def grow_log(directory: Path, *, is_whole: bool) -> None:
    """Write a log whose last batch is incomplete, and then the same log with more segments."""
    for base in (0, 30, 60) if is_whole else (0, 30):
        segment = MadeSegment(base)
        segment.add(plain(base, 10))
        segment.add(plain(base + 10, 20))
        if base and not is_whole:
            del segment.data[-40:]
        segment.write(directory / "orders-0")
    if is_whole:
        later = MadeSegment(0)
        later.add(plain(0, 3))
        later.write(directory / "later-0")


def grow_captures(directory: Path, *, is_whole: bool) -> None:
    """Write a capture that its tap has not finished, and then the same capture with later files."""
    shutil.rmtree(directory, ignore_errors=True)
    files = sorted(write_capture(directory, 5, replace(CLEAN, files=3)))
    if not is_whole:
        files[0].write_bytes(files[0].read_bytes()[: files[0].stat().st_size * 2 // 3])
        for one in files[1:]:
            one.unlink()


STREAMS: dict[str, tuple[Callable[..., None], dict[str, str]]] = {
    "kafka-log": (grow_log, {"maxOffsetsPerTrigger": "25"}),
    "kafka-capture": (grow_captures, {"maxBytesPerTrigger": "9000"}),
    # The state of the stream is in its checkpoint.
    "kafka-capture with its state": (grow_captures, {"maxBytesPerTrigger": "9000"}),
}


class Query:
    """Start a query like that of docs/spark-delta.md, with its table and checkpoint
    below ``home``.
    """

    def __init__(self, spark: SparkSession, name: str, logs: Path, home: Path) -> None:
        options = STREAMS[name][1] if HAS_LIMITS else {}
        self.source, *_ = name.split()
        self._stream = spark.readStream.format(self.source).options(**options)
        self._has_state = name.endswith("state")
        self._logs = logs
        self.home = home
        self.moments: list[Path] = []

    @property
    def table(self) -> str:
        return str(self.home / "table")

    def run(self, *, copies: bool = False) -> None:
        """Read everything that exists, and then end."""

        def copy(number: int, step: str) -> None:
            if copies:
                self.moments.append(self.home.parent / f"{number} {step}")
                shutil.copytree(self.home, self.moments[-1])

        def append(rows: DataFrame, number: int) -> None:
            copy(number, "offsets")
            if DeltaTable.is_deltatable(self.table):
                last = DeltaTable(self.table).transaction_version(NAME)
                if last is not None and number <= last:
                    return
            done = CommitProperties(app_transactions=[Transaction(NAME, number)])
            write_deltalake(self.table, rows.toArrow(), mode="append", commit_properties=done)
            copy(number, "output")

        if self._has_state:
            self._stream.option("stateLocation", str(self.home / "state"))
        writer = self._stream.load(str(self._logs)).writeStream.foreachBatch(append)
        writer = writer.option("checkpointLocation", str(self.home / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(300)
        copy(99, "committed")

    def rows(self) -> list[str]:
        return told(DeltaTable(self.table).to_pyarrow_table().to_pylist())


def told(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows without their times, because the zone differs in rows from a Delta table."""
    plain_rows = [{k: v for k, v in row.items() if k != "timestamp"} for row in rows]
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in plain_rows)


@pytest.mark.parametrize("name", STREAMS)
def test_killed_at_any_step_of_a_batch_each_row_is_there_once(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    grow, inputs, home = STREAMS[name][0], tmp_path / "inputs", tmp_path / "copies" / "home"
    home.mkdir(parents=True)
    query = Query(spark, name, inputs, home)
    grow(inputs, is_whole=False)
    query.run(copies=True)
    before, steps = len(query.rows()), query.moments
    grow(inputs, is_whole=True)
    # The query that was not killed.
    query.run()
    expected = query.rows()
    whole = spark.read.format(query.source).load(str(inputs))
    assert 0 < before < len(expected) == whole.count()
    assert [one.name.split()[1] for one in steps] == [
        *["offsets", "output"] * (len(steps) // 2),
        "committed",
    ]
    for step in steps:
        query.home = step
        query.run()
        assert query.rows() == expected, step.name
