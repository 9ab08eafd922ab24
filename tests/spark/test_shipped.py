"""What docs/cluster.md says of shipping the environment works, word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.spark.analyze import analyze
from flexwire.spark.session import _quiet_java
from tests.capture.interleaved import CLEAN, write_capture
from tests.spark.cluster import LOOPBACK, ROOT, SPARK_HOME, cluster
from tests.spark.equality import assert_equal_analyses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
CACHE = "cache/flexwire/"


def follow(block: str, directory: Path, **environment: str) -> str:
    """Run a block of the page as a shell does that has nothing but uv and Spark."""
    programs = directory / "programs"
    programs.mkdir(exist_ok=True)
    uv = programs / "uv"
    if not uv.exists():
        uv.symlink_to(Path(sys.executable).with_name("uv"))
    done = subprocess.run(
        ["/bin/bash", "-euc", block],
        cwd=directory,
        env={
            "PATH": f"{programs}:{SPARK_HOME / 'bin'}:/usr/bin:/bin",
            "HOME": str(directory),
            "JAVA_HOME": str(_quiet_java()),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def test_the_page_is_followed_to_a_whole_analysis(spark: SparkSession, tmp_path: Path) -> None:
    pack, run = re.findall(r"^```sh\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    captures = tmp_path / "captures"
    write_capture(captures, 1, CLEAN)
    analyze([captures], tmp_path / "here", spark=spark)

    there = tmp_path / "there"
    conf = there / "conf"
    conf.mkdir(parents=True)
    pins = re.sub(r"( \\)?\n    --hash\S+", "", (ROOT / "requirements.lock").read_text())
    (there / "pins.txt").write_text(pins)
    python = os.path.realpath(sys.executable)
    follow(
        pack,
        there,
        FLEXWIRE=str(ROOT),
        UV_PYTHON=python,
        UV_CONSTRAINT=str(there / "pins.txt"),
        UV_LINK_MODE="copy",
        **{name: value for name, value in os.environ.items() if name == "UV_CACHE_DIR"},
    )
    defaults = [one.removeprefix("--conf=").replace("=", " ", 1) for one in LOOPBACK]
    (conf / "spark-defaults.conf").write_text("\n".join(defaults))
    workers = tmp_path / "workers"
    workers.mkdir()
    with cluster(workers, has_kernels=False) as standalone:
        told = follow(
            run,
            there,
            MASTER=standalone.url,
            CAPTURES=str(captures),
            OUT=str(tmp_path / "out"),
            SPARK_CONF_DIR=str(conf),
        )
    assert "ran without kernels" not in told
    assert_equal_analyses(tmp_path / "out", tmp_path / "here")
    # Every executor had the kernels of the archive, and made none.
    with tarfile.open(there / "environment.tar.gz") as archive:
        packed = {one.name.removeprefix("./"): int(one.mtime) for one in archive if one.isfile()}
    packed = {name: when for name, when in packed.items() if name.startswith(CACHE)}
    assert packed
    executors = list(workers.glob("worker*/app-*/*/environment"))
    assert executors
    for one in executors:
        found = {
            path.relative_to(one).as_posix(): int(path.stat().st_mtime)
            for path in (one / CACHE).rglob("*")
            if path.is_file()
        }
        assert found == packed
    assert not list(workers.glob("worker*/.cache"))
