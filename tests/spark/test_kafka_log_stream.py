"""A stream of ``kafka-log`` returns each record once, across batches and restarts."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from tests.capture.made_logs import MadeSegment, plain

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# This takes half a minute. `capture/test_logs_following.py` tests without Spark what a stream
# reads.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]
HAS_LIMITS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)


def test_a_stream_goes_on_after_a_restart_with_the_next_offset(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    batches: list[list[int]] = []

    def run(**options: str) -> None:
        def keep(rows: object, number: int) -> None:
            del number
            batches.append(sorted(row.offset for row in rows.collect()))  # type: ignore[attr-defined] # a DataFrame

        stream = spark.readStream.format("kafka-log").options(**options).load(str(logs))
        writer = stream.writeStream.foreachBatch(keep).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(out)).start()
        query.awaitTermination()
        told[:] = [json.loads(one.json)["sources"][0] for one in query.recentProgress]

    told: list[dict[str, Any]] = []
    segment = MadeSegment(0)
    for base in range(0, 100, 10):
        segment.add(plain(base, 10))
    segment.write(logs / "a-0")
    run(**({"maxOffsetsPerTrigger": "30"} if HAS_LIMITS else {}))
    assert list(chain(*batches)) == list(range(100))
    assert [len(one) for one in batches] == ([30, 30, 30, 10] if HAS_LIMITS else [100])
    if HAS_LIMITS:
        ends = [(one["endOffset"]["a"]["0"], one["latestOffset"]["a"]["0"]) for one in told]
        assert ends[:4] == [(30, 100), (60, 100), (90, 100), (100, 100)]
    segment.add(plain(100, 5))
    # The broker is writing the next batch.
    segment.data += segment.data[:40]
    segment.write(logs / "a-0")
    later = MadeSegment(0)
    later.add(plain(0, 3))
    later.write(logs / "b-0")
    batches.clear()
    run()
    assert sorted(chain(*batches)) == [0, 1, 2, 100, 101, 102, 103, 104]
    batches.clear()
    run()
    assert list(chain(*batches)) == []
