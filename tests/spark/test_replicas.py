"""An analysis of a failed cluster's disks says which replica it read, and where that ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.answers.state import end_offsets, lag, last_commits, open_log
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables, stored_answers
from tests.capture.made_logs import MadeSegment
from tests.capture.test_logs_choosing import write_replica
from tests.searching import trying_few
from tests.spark.internal_topics.made import MadeTopic, commit

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def commits(root: Path, broker: int, *offsets: int) -> None:
    log = MadeTopic("__consumer_offsets")
    for one in offsets:
        log.add(*commit(0, one))
    log.write(root / f"broker-{broker}")


def watermark(root: Path, broker: int, offset: int, *, is_clean: bool) -> None:
    directory = root / f"broker-{broker}"
    text = f"0\n1\norders 0 {offset}\n"
    (directory / "replication-offset-checkpoint").write_text(text)
    if is_clean:
        (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')


@pytest.mark.long
def test_the_replica_that_counts_is_read_and_the_other_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    # A dead leader holds records that no other replica contained. The successor's replica is also
    # here.
    write_replica(logs, 1, [0] * 8)
    # The dead leader had started another segment.
    MadeSegment(9).write(logs / "broker-1" / "orders-0")
    write_replica(logs, 2, [0, 0, 0, 1, 1, 1])
    commits(logs, 2, 2)
    watermark(logs, 1, 8, is_clean=True)
    watermark(logs, 2, 5, is_clean=True)
    asked = ["diverging_replicas", "group_offsets"]
    analyze([logs], tmp_path / "out", spark=spark, answers=asked)
    found = {
        one.answer.name: one.rows.to_pylist() for one in stored_answers(tmp_path / "out", asked)
    }
    [row] = found["diverging_replicas"]
    places = [name.split("/")[-2] for name in row.pop("directories")]
    assert places == ["broker-2", "broker-1"]
    assert row == {
        "topic": "orders",
        "partition": 0,
        "first_difference": 3,
        "brokers": [2, 1],
        "ends": [6, 9],
        "epochs": [1, 0],
        "beyond": 6,
    }
    [row] = found["group_offsets"]
    assert (row["offset"], row["end_offset"], row["high_watermark"]) == (2, 6, 5)
    # Up to the high watermark, as Kafka's tool defines it.
    assert (row["lag"], row["is_watermark_exact"]) == (3, True)
    tables = open_tables(spark, tmp_path / "out")
    assert tables.logs is not None
    [last] = tables.logs.batches.where("topic = 'orders'").selectExpr("max(last_offset)").collect()
    assert last[0] == 5


CASES = {
    # First, the watermark comes from a clean stop, then from a running broker that wrote it up to 5
    # seconds earlier.
    "exact": (4, True, 5, 2, 2, True),
    "old": (4, False, 5, 2, 2, False),
    # A group has committed a later offset, so consumers could read that far.
    "outrun": (4, False, 5, 5, 0, False),
    "exact and outrun": (4, True, 5, 5, -1, True),
    # The log was truncated after this checkpoint was written.
    "beyond": (9, True, 6, 2, 4, True),
}


FEW = ("exact", "outrun")


@pytest.mark.parametrize("case", trying_few(CASES, FEW))
def test_lag_is_up_to_the_high_watermark(case: str, spark: SparkSession, tmp_path: Path) -> None:
    said, is_clean, end, committed, expected, is_exact = CASES[case]
    write_replica(tmp_path, 1, [0] * end)
    commits(tmp_path, 1, committed)
    rows = last_commits(open_log(spark, tmp_path, "consumer-offsets"))
    [unknown] = lag(rows, end_offsets(spark, tmp_path, ["orders"])).collect()
    assert (unknown.lag, unknown.high_watermark) == (end - committed, None)
    watermark(tmp_path, 1, said, is_clean=is_clean)
    [row] = lag(rows, end_offsets(spark, tmp_path, ["orders"])).collect()
    assert (row.end_offset, row.high_watermark) == (end, min(said, end))
    assert (row.lag, row.is_watermark_exact) == (expected, is_exact)
