"""`spark-submit` says where an analysis runs, of the command and of a script of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flexwire
from flexwire.spark.analyze import analyze
from tests.capture.interleaved import CLEAN, write_capture
from tests.spark.cluster import LOOPBACK, Cluster, cluster, python_path, submit
from tests.spark.equality import assert_equal_analyses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

COMMAND = str(Path(flexwire.__file__).with_name("__main__.py"))
ENVIRONMENT = {"PYTHONPATH": python_path(), "PYSPARK_PYTHON": sys.executable}
EXECUTORS = f"--conf=spark.executorEnv.PYTHONPATH={python_path()}"
SCRIPT = """
import sys
from pyspark.sql import SparkSession
from flexwire.spark.analyze import analyze

spark = SparkSession.builder.appName("of one's own").getOrCreate()
analyze(sys.argv[2:], sys.argv[1])
print("goes on", spark.range(3).count(), spark.sparkContext.master)
"""


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return list(map(str, write_capture(tmp_path_factory.mktemp("capture"), 1, CLEAN)))


@pytest.fixture(scope="module")
def here(spark: SparkSession, capture: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("here") / "out"
    analyze(capture, out, spark=spark)
    return out


def apps(made: Cluster) -> int:
    """How many applications the cluster has run."""
    return (made.root / "master" / "log").read_text().count("Registered app ")


def test_the_command_runs_where_spark_submit_says(
    standalone: Cluster, capture: list[str], here: Path, tmp_path: Path
) -> None:
    before = apps(standalone)
    out = tmp_path / "out"
    command = ["--master", standalone.url, EXECUTORS, COMMAND, "analyze", *capture]
    done = submit(*command, "--out", str(out), home=tmp_path / "home", **ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"Report: {out / 'report.html'}" in done.stdout
    assert apps(standalone) == before + 1
    assert_equal_analyses(out, here)


def test_a_script_that_has_a_session_has_it_afterwards(
    standalone: Cluster, capture: list[str], here: Path, tmp_path: Path
) -> None:
    before = apps(standalone)
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT)
    command = ["--master", standalone.url, EXECUTORS, str(script), str(out), *capture]
    done = submit(*command, home=tmp_path / "home", **ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"goes on 3 {standalone.url}" in done.stdout
    assert apps(standalone) == before + 1
    assert_equal_analyses(out, here)


def test_the_command_itself_takes_a_master(
    standalone: Cluster, capture: list[str], here: Path, tmp_path: Path
) -> None:
    """Settings besides are Spark's own, from where it looks for them."""
    before = apps(standalone)
    out, conf = tmp_path / "out", tmp_path / "conf"
    conf.mkdir()
    defaults = [one.removeprefix("--conf=").replace("=", " ", 1) for one in (*LOOPBACK, EXECUTORS)]
    (conf / "spark-defaults.conf").write_text("\n".join(defaults))
    command = [sys.executable, "-m", "flexwire", "analyze", *capture, "--out", str(out)]
    done = subprocess.run(
        [*command, "--master", standalone.url, "--memory", "512m"],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": python_path(), "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert apps(standalone) == before + 1
    assert_equal_analyses(out, here)


def test_two_masters_are_refused(capture: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["--master", "local[1]", COMMAND, "analyze", *capture, "--out", str(out)]
    done = submit(*command, "--master", "local[2]", home=tmp_path / "home", **ENVIRONMENT)
    assert done.returncode == 1
    told = done.stdout + done.stderr  # it sends one to the other
    assert "spark-submit says where Spark runs, so leave the master 'local[2]' out" in told
    assert not out.exists()
