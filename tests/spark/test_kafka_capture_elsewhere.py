"""``kafka-capture`` reads captures in a bucket, in batches and streams, and on Spark Connect."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.row_filter import FRAMES
from tests.capture.interleaved import SHAPES, write_capture
from tests.spark.cluster import python_path, run
from tests.spark.test_kafka_capture import rows_of
from tests.storage.servers import s3
from tests.tables.growing import Query
from tests.tables.test_following import ASKED, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.spark.cluster import Cluster


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("captures")
    write_capture(directory, 5, replace(SHAPES["CLEAN"], connections=4, files=2))
    return directory


@pytest.fixture
def bucket() -> Iterator[str]:
    with s3() as url:
        yield url


@pytest.mark.slow
@pytest.mark.cluster
def test_captures_in_a_bucket_are_read_as_those_here(captures: Path, bucket: str) -> None:
    place = OutputDirectory(f"{bucket}/day")
    expected = {kind: rows_of(captures, rows=kind) for kind in ("frames", "records", "packets")}
    files = sorted(captures.iterdir())
    place.write(files[0].name, files[0].read_bytes())
    query = Query(place.url, ASKED)
    query.run()
    first = len(query.rows[FRAMES])
    assert list(query.offset) == [f"{place}/{files[0].name}"]
    for file in files[1:]:
        place.write(file.name, file.read_bytes())
    query.restart()
    query.run(most_bytes=1)
    assert len(query.rows[FRAMES]) > first > 0
    assert query.sorted() == at_once(captures).sorted()
    for kind, rows in expected.items():
        for size in ("128m", "10k"):
            got = rows_of(f"{place}/*.pcap*", rows=kind, maxPartitionBytes=size)
            for row in got:
                row["source"] = row["source"].replace(str(place), str(captures))
            assert sorted(got, key=repr) == sorted(rows, key=repr), (kind, size)


CLIENT = """
import json, sys
from pyspark.sql import SparkSession
import flexwire.spark

remote, captures, out = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
reader = spark.read.format("kafka-capture").option("maxPartitionBytes", "10k")
found = [row.asDict() for row in reader.load(captures).select("connection", "outcome").collect()]
flexwire.spark.register(spark)
typed = reader.option("rows", "messages").option("message", "MetadataResponse").load(captures)
topics = typed.selectExpr("explode(body.topics.name) topic").distinct().count()
stream = spark.readStream.format("kafka-capture").load(captures)
writer = stream.select("connection").writeStream.format("parquet").trigger(availableNow=True)
query = writer.option("path", out).option("checkpointLocation", out + "-at").start()
assert query.awaitTermination(300)
streamed = spark.read.parquet(out).count()
spark.stop()
print(json.dumps({"found": found, "topics": topics, "streamed": streamed}))
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster
def test_a_client_of_spark_connect_reads_captures(
    standalone: Cluster, captures: Path, tmp_path: Path
) -> None:
    remote, out = standalone.start_connect(), str(tmp_path / "out")
    command = [sys.executable, "-c", CLIENT, remote, str(captures), out]
    done = run(command, tmp_path, PYTHONPATH=python_path())
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    rows = rows_of(captures)
    expected = [{name: row[name] for name in ("connection", "outcome")} for row in rows]
    assert sorted(map(repr, told["found"])) == sorted(map(repr, expected))
    topics = {
        topic["name"]
        for row in rows_of(captures, rows="messages", message="MetadataResponse")
        for topic in (row["body"] or {}).get("topics") or ()
    }
    assert told["topics"] == len(topics) > 0
    assert told["streamed"] == len(at_once(captures).rows[FRAMES]) > 0
