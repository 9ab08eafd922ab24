"""Logs, answers, internal topics and metadata are read on Spark Connect and in a bucket."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.storage.output_directory import OutputDirectory
from tests.capture.interleaved import CLEAN, write_capture
from tests.capture.made_logs import MadeSegment, plain, write_log
from tests.capture.made_metadata import log, snapshot, write
from tests.spark.cluster import python_path, run
from tests.spark.internal_topics.test_cluster import PARTS
from tests.spark.internal_topics.test_views import commits_log
from tests.storage.servers import s3

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.cluster import Cluster
    from tests.spark.elsewhere import Told

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make captures, and a broker's directory of logs."""
    root = tmp_path_factory.mktemp("files")
    write_capture(root / "captures", 5, CLEAN)
    logs = commits_log(root / "logs", removed=(0,))
    write(logs, {"0": log(*PARTS), "3-1": snapshot(PARTS[0])})
    for number in (0, 1):
        segments = [MadeSegment(base) for base in (0, 40)]
        for offset in range(0, 80, 10):
            records = plain(offset, 10, value=b"v" * 100)
            segments[offset // 40].add(records, compression="gzip" if number else "none")
        segments[0].data += b"not a batch"
        write_log(logs / f"orders-{number}", segments)
    return root


@pytest.fixture(scope="module")
def expected(
    spark: SparkSession, files: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """Return the result from a session on this machine."""
    from tests.spark.elsewhere import everything  # noqa: PLC0415 - it imports PySpark

    return everything(spark, str(files), str(tmp_path_factory.mktemp("here") / "out"))


def told_by(home: Path, *arguments: str, **environment: str) -> Told:
    program = [sys.executable, "-m", "tests.spark.elsewhere", *arguments]
    done = run(program, home, PYTHONPATH=python_path(), **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    found: Told = json.loads(done.stdout.splitlines()[-1])
    return found


def assert_same(found: Told, expected: Told) -> None:
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        assert found[name] == rows, name
    assert {"storage", "savings", "latency", "sizes", "last_commits", "partitions"} <= {*found}
    assert len(expected["asked again"]) == len(expected["storage"]) == 3
    # The records of the metadata have no keys.
    assert sum("'keyed_records': 0" in row for row in expected["storage"]) == 1


def asked(home: Path, out: str, *more: str, **environment: str) -> list[dict[str, Any]]:
    """Return what the command prints about storage for tables without earlier answers."""
    command = [sys.executable, "-m", "flexwire", "answers", out, "storage", "--format", "json"]
    done = run([*command, *more], home, PYTHONPATH=python_path(), **environment)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)["storage"]
    return found


def test_a_client_of_spark_connect_gets_the_same(
    standalone: Cluster, files: Path, expected: Told, tmp_path: Path
) -> None:
    remote, out = standalone.start_connect(), str(tmp_path / "out")
    assert_same(told_by(tmp_path, remote, str(files), out), expected)
    found = asked(tmp_path, f"{out}-bare", "--master", remote)
    assert {row["topic"]: row["records"] for row in found}["orders"] == 160


def test_in_a_bucket_it_is_the_same(files: Path, expected: Told, tmp_path: Path) -> None:
    with s3() as bucket:
        place = OutputDirectory(f"{bucket}/files")
        for file in files.rglob("*"):
            if file.is_file():
                place.write(str(file.relative_to(files)), file.read_bytes())
        # The credentials and the address of the store.
        keys = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        out = f"{bucket}/out"
        assert_same(told_by(tmp_path, "", place.url, out, **keys), expected)
        found = asked(tmp_path, f"{out}-bare", **keys)
        assert {row["topic"]: row["records"] for row in found}["orders"] == 160
