"""A whole analysis on a cluster with Spark Connect equals one in a session in local mode."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.capture.interleaved import EVERYTHING
from tests.spark.cluster import python_path, run
from tests.spark.equality import assert_equal_analyses

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.spark.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

SHAPE = EVERYTHING
# A process with a classic session cannot start a session of another kind.
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
def remote(standalone: Cluster) -> str:
    return standalone.start_connect()


def client(*arguments: str, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, *arguments], home, PYTHONPATH=python_path(), **more)


def test_a_session_of_spark_connect_gives_the_same_analysis(
    remote: str, shaped: list[str], here: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = client("-c", CLIENT, remote, str(out), *shaped, home=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    # The handler received a report of every range.
    assert told["heard"]["Decoding captures"] > 2, told
    assert len(list((out / "tables/frames").glob("*.parquet"))) > 2
    assert told["at_once"] == 2
    assert told["same"]
    # The server and the workers cannot see these files.
    assert "does not exist; an output must be on a file system that the driver" in told["unseen"]
    assert "/unseen/" in told["unseen"]
    assert_equal_analyses(out, here)


@pytest.mark.parametrize("way", ["--master", "SPARK_REMOTE"])
def test_the_command_takes_the_address_of_a_server(
    remote: str, shaped: list[str], here: Path, tmp_path: Path, way: str
) -> None:
    out = tmp_path / "out"
    options = ["--master", remote] if way == "--master" else []
    command = ["-m", "flexwire", "analyze", *shaped, "--out", str(out), *options]
    environment = {} if options else {"SPARK_REMOTE": remote}
    done = client(*command, home=tmp_path, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert_equal_analyses(out, here)
