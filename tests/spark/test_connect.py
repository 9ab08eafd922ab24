"""A whole analysis by Spark Connect, on a cluster, is that of a session in local mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.spark.analyze import analyze
from tests.capture.interleaved import EVERYTHING, write_capture
from tests.spark.cluster import cluster, python_path
from tests.spark.equality import assert_equal_analyses

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

# A process of its own: one that has a classic session can have no other kind.
CLIENT = """
import json, sys
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession
from flexwire.errors import FlexwireError
from flexwire.spark.analyze import analyze
from flexwire.spark.session import session, tasks_at_once
from tests.spark.on_cluster import analyzed

remote, out, *captures = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
try:
    spark.sparkContext
except PySparkAttributeError:
    told = {"heard": analyzed(spark, captures, out), "at_once": tasks_at_once(spark)}
try:
    analyze(captures, f"/proc/self/cwd/unseen", spark=spark)
except FlexwireError as error:
    told["unseen"] = str(error)
# The session goes on, and is taken where there is one.
told["same"] = session() is spark and spark.range(3).count() == 3
spark.stop()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made.start_connect()


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return list(map(str, write_capture(tmp_path_factory.mktemp("capture"), 1, EVERYTHING)))


@pytest.fixture(scope="module")
def here(spark: SparkSession, capture: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("here") / "out"
    analyze(capture, out, spark=spark)
    return out


def client(*arguments: str, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": python_path()}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=home,
        env=environment | more,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_session_of_spark_connect_gives_the_same_analysis(
    remote: str, capture: list[str], here: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = client("-c", CLIENT, remote, str(out), *capture, home=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    # Its handler has heard of every range.
    assert told["heard"]["Decoding captures"] > 2, told
    assert len(list((out / "tables/frames").glob("*.parquet"))) > 2
    assert told["at_once"] == 2
    assert told["same"]
    # What the server and the workers do not see.
    assert "is not there; an output must be on a file system that the driver" in told["unseen"]
    assert "/unseen/" in told["unseen"]
    assert_equal_analyses(out, here)


@pytest.mark.parametrize("way", ["--master", "SPARK_REMOTE"])
def test_the_command_takes_the_address_of_a_server(
    remote: str, capture: list[str], here: Path, tmp_path: Path, way: str
) -> None:
    out = tmp_path / "out"
    options = ["--master", remote] if way == "--master" else []
    command = ["-m", "flexwire", "analyze", *capture, "--out", str(out), *options]
    environment = {} if options else {"SPARK_REMOTE": remote}
    done = client(*command, home=tmp_path, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert_equal_analyses(out, here)
