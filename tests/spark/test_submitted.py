"""`spark-submit` decides where an analysis runs, for the command and for a user's script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flexwire
from tests.capture.interleaved import CLEAN
from tests.spark.cluster import LOOPBACK, SPARK_HOME, defaults, python_path, run
from tests.spark.equality import assert_equal_analyses

if TYPE_CHECKING:
    import subprocess

    from tests.spark.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

COMMAND = str(Path(flexwire.__file__).with_name("__main__.py"))
SHAPE = CLEAN
EXECUTORS = f"--conf=spark.executorEnv.PYTHONPATH={python_path()}"
SCRIPT = """
import sys
from pyspark.sql import SparkSession
from flexwire.spark.analyze import analyze

spark = SparkSession.builder.appName("of one's own").getOrCreate()
analyze(sys.argv[2:], sys.argv[1])
print("goes on", spark.range(3).count(), spark.sparkContext.master)
"""


def submit(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(SPARK_HOME / "bin" / "spark-submit"), *LOOPBACK, EXECUTORS, *arguments]
    return run(command, home, PYTHONPATH=python_path(), PYSPARK_PYTHON=sys.executable)


def apps(made: Cluster) -> int:
    """Return the number of applications that the cluster has run."""
    return (made.root / "master" / "log").read_text().count("Registered app ")


@pytest.mark.parametrize("what", ["command", "script"])
def test_it_runs_where_spark_submit_says(
    standalone: Cluster, shaped: list[str], here: Path, tmp_path: Path, what: str
) -> None:
    before = apps(standalone)
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT)
    if what == "command":
        program = [COMMAND, "analyze", *shaped, "--out", str(out)]
    else:
        program = [str(script), str(out), *shaped]
    done = submit(tmp_path / "home", "--master", standalone.url, *program)
    assert done.returncode == 0, done.stderr[-3000:]
    if what == "command":
        assert f"Report: {out / 'report.html'}" in done.stdout
    else:
        # The script's own session is used, and remains open.
        assert f"goes on 3 {standalone.url}" in done.stdout
    assert apps(standalone) == before + 1
    assert_equal_analyses(out, here)


def test_the_command_itself_takes_a_master(
    standalone: Cluster, shaped: list[str], here: Path, tmp_path: Path
) -> None:
    """Other settings come from Spark's usual places."""
    before = apps(standalone)
    out, conf = tmp_path / "out", defaults(tmp_path / "conf", EXECUTORS)
    command = [sys.executable, "-m", "flexwire", "analyze", *shaped, "--out", str(out)]
    options = ["--master", standalone.url, "--memory", "512m"]
    done = run([*command, *options], tmp_path, PYTHONPATH=python_path(), SPARK_CONF_DIR=conf)
    assert (done.returncode, done.stderr) == (0, "")
    assert apps(standalone) == before + 1
    assert_equal_analyses(out, here)


def test_two_masters_are_refused(shaped: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    program = [COMMAND, "analyze", *shaped, "--out", str(out), "--master", "local[2]"]
    done = submit(tmp_path / "home", "--master", "local[1]", *program)
    assert done.returncode == 1
    told = done.stdout + done.stderr  # either stream may contain the message
    assert "spark-submit already sets the master, so leave out 'local[2]'" in told
    assert not out.exists()
