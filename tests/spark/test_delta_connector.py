"""Delta's own connector for Spark reads what analyses wrote."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pyspark
import pytest

from flexwire.spark.analyze import analyze
from flexwire.spark.delta.output import output
from tests.capture.interleaved import CLEAN, write_capture
from tools.maven import ROOT, Jars

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.kafka]

CONNECTOR = "4.4.0"
SPARK = ".".join(pyspark.__version__.split(".")[:2])
NEWEST = "4.2"
NONE = f"Delta's connector exists up to Spark {NEWEST}; `make pyspark-versions` runs an older one"
# The connector's own dependencies. Spark includes the others.
OWN = ("delta-", "unitycatalog-")


@pytest.mark.skipif(SPARK > NEWEST, reason=NONE)
def test_the_connector_reads_what_deltalake_reads(spark: SparkSession, tmp_path: Path) -> None:
    jars = Jars(f"delta-{SPARK}", (f"io.delta:delta-spark_{SPARK}_2.13:{CONNECTOR}",)).bring()
    path = ",".join(sorted(str(jar) for jar in jars.iterdir() if jar.name.startswith(OWN)))
    out = tmp_path / "out"
    for seed in (5, 6):
        captures = write_capture(tmp_path / f"captures-{seed}", seed, replace(CLEAN, files=2))
        analyze(captures, out, spark=spark, format="delta", append=True)
    names = output(out).names
    command = [sys.executable, "-m", "tests.spark.delta_connector", str(out), path]
    read = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr[-3000:]
    said = read.stdout.splitlines()
    assert said.pop() == f"{len(names) + 1} registered, 2 in"
    assert [line.split(":")[0] for line in said] == [*names, *names]
    assert [line for line in said if not line.endswith(" rows, equal")] == []
