"""Iceberg's Java code on Spark reads what analyses wrote, and flexwire reads what Spark merged."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pyspark
import pytest

from flexwire.spark.analyze import analyze
from flexwire.spark.iceberg.output import output
from tests.capture.interleaved import CLEAN, write_capture
from tools.maven import ROOT, Jars

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.kafka]

RUNTIMES = {"4.0": "1.11.0", "4.1": "1.12.0"}
"""The newest Iceberg release with a runtime for a given Spark version."""
SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"
SPARK = ".".join(pyspark.__version__.split(".")[:2])
NONE = "Iceberg's runtime exists for Spark 4.0 and 4.1; `make pyspark-versions` runs an older one"


@pytest.mark.skipif(SPARK not in RUNTIMES, reason=NONE)
def test_spark_reads_what_flexwire_reads(spark: SparkSession, tmp_path: Path) -> None:
    runtime = f"org.apache.iceberg:iceberg-spark-runtime-{SPARK}_2.13:{RUNTIMES[SPARK]}"
    jars = Jars(f"iceberg-{SPARK}", (runtime, SQLITE)).bring()
    path = ",".join(sorted(str(jar) for jar in jars.iterdir()))
    out = tmp_path / "out"
    for seed in (5, 6):
        captures = write_capture(tmp_path / f"captures-{seed}", seed, replace(CLEAN, files=2))
        analyze(captures, out, spark=spark, format="iceberg", append=True)
    found = output(out)
    names, frames = found.names, found.table("frames").num_rows
    files = len(found.files("frames"))
    command = [sys.executable, "-m", "tests.spark.iceberg_connector", str(out), path]
    read = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr[-3000:]
    said = read.stdout.splitlines()
    tables = [line for line in said if " rows, " in line]
    assert [line.split(":")[0] for line in tables] == [*names, *names]
    assert [line for line in tables if not line.endswith(" rows, equal")] == []
    others = [line for line in said if line not in tables]
    assert files > 1
    assert others[:3] == [f"in: {frames} of {frames}", "early: 0 in 0 files", "files: 1"]
    assert others[3].startswith("refused: kafka.frames has delete files; merge")
