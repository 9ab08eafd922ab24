"""``kafka-log`` works on Spark Connect, on a cluster of two workers."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.capture.made_logs import all_records, random_log, write_log
from tests.spark.cluster import python_path, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader
import flexwire.spark

remote, logs = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
def read():
    return spark.read.format("kafka-log").option("maxPartitionBytes", "2k").load(logs)
found = sorted(row.offset for row in read().collect())
flexwire.spark.register(spark)
count = read().where("offset >= 10").count()
if hasattr(DataSourceReader, "pushFilters"):
    flexwire.spark.register(spark, push_filters=True)
narrow = read().where("offset >= 10").count()
spark.stop()
print(json.dumps({"found": found, "count": count, "narrow": narrow}))
"""


def test_a_client_of_spark_connect_reads_logs(standalone: Cluster, tmp_path: Path) -> None:
    made = random_log(1)
    write_log(tmp_path / "logs" / "a-0", made)
    remote, logs = standalone.start_connect(), str(tmp_path / "logs")
    done = run([sys.executable, "-c", CLIENT, remote, logs], tmp_path, PYTHONPATH=python_path())
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    expected = [one.offset for one in all_records(made)]
    later = sum(one >= 10 for one in expected)
    assert told == {"found": expected, "count": later, "narrow": later}
