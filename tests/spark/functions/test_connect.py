"""The functions work on Spark Connect and in streams, as docs/spark-functions.md describes.

With PySpark 4.0, the functions raise an error in both cases.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import AnalysisError
from flexwire.spark.functions import from_kafka, to_kafka
from tests.spark.cluster import python_path, run
from tests.spark.functions.test_on_spark import HAS_FUNCTIONS
from tests.spark.traffic import made

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

# A process with a classic session cannot start a session of another kind.
CLIENT = """
import json
from tests.docs.test_spark_functions_page import follow
from flexwire.tasks import is_connect
names = follow()
print(json.dumps([is_connect(names["spark"]), "body" in names]))
"""


def test_the_page_is_followed_by_spark_connect(standalone: Cluster, tmp_path: Path) -> None:
    remote = standalone.start_connect()
    where = {"PYTHONPATH": python_path(), "SPARK_REMOTE": remote}
    done = run([sys.executable, "-c", CLIENT], tmp_path, **where)
    if not HAS_FUNCTIONS:
        assert done.returncode == 1
        assert "needs PySpark 4.1 or later, got 4.0" in done.stderr
        return
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [True, True]


def test_a_stream_is_decoded_as_a_table_is(spark: SparkSession, tmp_path: Path) -> None:
    if not HAS_FUNCTIONS:
        with pytest.raises(AnalysisError, match=r"needs PySpark 4\.1 or later, got 4\.0"):
            from_kafka("value", "MetadataRequest", 12)
        return
    place = str(tmp_path / "rows")
    data = made("MetadataRequest", topics=[]).encode(12)
    spark.createDataFrame([(data,), (None,)], "value binary").write.parquet(place)
    decoded = (
        spark.readStream.schema("value binary")
        .parquet(place)
        .select(from_kafka("value", "MetadataRequest", 12).alias("m"))
        .select(to_kafka("m", "MetadataRequest", 12).alias("value"))
    )
    query = decoded.writeStream.format("memory").queryName("decoded").trigger(availableNow=True)
    query.start().awaitTermination()
    found = {row.value and bytes(row.value) for row in spark.table("decoded").collect()}
    assert found == {data, None}
