"""Shared settings for tests that run whole analyses on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.cluster import Cluster


@pytest.fixture(scope="module", autouse=True)
def _without_pictures() -> Iterator[None]:
    """Leave pictures out of reports, because drawing them takes half the time of a small analysis.

    `tests/report` checks the pictures, and the tests of docs/ check those of whole analyses.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flexwire.report.charts._svg", lambda *_: "<svg></svg>")
        yield


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a standalone cluster of two workers."""
    # Importing PySpark takes a second.
    from tests.spark.cluster import cluster  # noqa: PLC0415 - see above

    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def shaped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the files of a capture with the module's ``SHAPE``."""
    from tests.capture.interleaved import write_capture  # noqa: PLC0415 - few tests need this module

    return list(map(str, write_capture(tmp_path_factory.mktemp("shaped"), 1, request.module.SHAPE)))


@pytest.fixture(scope="module")
def here(spark: SparkSession, shaped: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the analysis of these files by a session in local mode."""
    from flexwire.spark.analyze import analyze  # noqa: PLC0415 - it imports PySpark

    out = tmp_path_factory.mktemp("here") / "out"
    analyze(shaped, out, spark=spark)
    return out


@pytest.fixture
def flags(tmp_path: Path) -> Path:
    """Return a directory for notes that tasks leave."""
    place = tmp_path / "flags"
    place.mkdir()
    return place
