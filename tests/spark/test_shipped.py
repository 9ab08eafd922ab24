"""The steps in docs/cluster.md for shipping the environment work exactly as written."""

from __future__ import annotations

import os
import re
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.spark.analyze import analyze
from tests.capture.interleaved import CLEAN, write_capture
from tests.spark.cluster import ROOT, SPARK_HOME, cluster, defaults, run
from tests.spark.equality import assert_equal_analyses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
KERNEL = "objects_read."
# The environment variables with which uv uses another index, or an index behind a proxy.
_NETWORK = ("UV_", "SSL_", "HTTP", "NO_PROXY", "http", "no_proxy")


def follow(block: str, directory: Path, **environment: str) -> str:
    """Run a block of the page as a shell would on a machine that has only uv and Spark."""
    programs = directory / "programs"
    programs.mkdir(exist_ok=True)
    uv = programs / "uv"
    if not uv.exists():
        uv.symlink_to(Path(sys.executable).with_name("uv"))
    path = f"{programs}:{SPARK_HOME / 'bin'}:/usr/bin:/bin"
    done = run(["/bin/bash", "-euc", block], directory, PATH=path, **environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def test_the_page_is_followed_to_a_whole_analysis(spark: SparkSession, tmp_path: Path) -> None:
    pack, submit = re.findall(r"^```sh\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    captures = tmp_path / "captures"
    write_capture(captures, 1, CLEAN)
    analyze([captures], tmp_path / "here", spark=spark)

    there = tmp_path / "there"
    there.mkdir()
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
        **{name: value for name, value in os.environ.items() if name.startswith(_NETWORK)},
    )
    workers = tmp_path / "workers"
    workers.mkdir()
    with cluster(workers) as standalone:
        told = follow(
            submit,
            there,
            MASTER=standalone.url,
            CAPTURES=str(captures),
            OUT=str(tmp_path / "out"),
            SPARK_CONF_DIR=defaults(there / "conf"),
        )
    assert "ran without kernels" not in told
    assert_equal_analyses(tmp_path / "out", tmp_path / "here")
    # Every executor used the kernels from the archive.
    with tarfile.open(there / "environment.tar.gz") as archive:
        packed = {one.name.removeprefix("./") for one in archive if KERNEL in one.name}
    assert packed
    executors = list(workers.glob("worker*/app-*/*/environment"))
    assert executors
    for one in executors:
        assert {path.relative_to(one).as_posix() for path in one.rglob(f"*{KERNEL}*")} == packed
