"""On Spark Connect, reading and decoding internal topics in one task equals decoding their rows."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.protocol.internal_topics import InternalTopic
from tests.spark.cluster import python_path, run
from tests.spark.internal_topics.test_reading import damaged_log

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

CLIENT = """
import json, sys
from dataclasses import replace
from pyspark.sql import SparkSession
from flexwire.answers.state import last_commits, open_log, unreadable

remote, logs = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
log = open_log(spark, logs, "consumer-offsets")
def said(one):
    fields = {"OffsetCommit": ["key.topic", "value.offset"], "GroupMetadata": []}
    frames = [one.typed(fields), unreadable(one, ["OffsetCommit"]), last_commits(one)]
    return [[str(frame.schema), sorted(map(str, frame.collect()))] for frame in frames]
at_once, by_rows = said(log), said(replace(log, files=None))
spark.stop()
print(json.dumps({"same": at_once == by_rows, "rows": [len(rows) for _, rows in at_once]}))
"""


def test_a_client_of_spark_connect_reads_internal_topics(
    standalone: Cluster, tmp_path: Path
) -> None:
    logs = str(damaged_log(tmp_path / "logs", InternalTopic.CONSUMER_OFFSETS))
    remote = standalone.start_connect()
    done = run([sys.executable, "-c", CLIENT, remote, logs], tmp_path, PYTHONPATH=python_path())
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["same"]
    assert all(rows > 1 for rows in told["rows"])
