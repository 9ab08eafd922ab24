"""If tasks share the connections of several hosts, they write the same rows as a single task."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.spark import share_job
from flexwire.spark.analyze import analyze
from flexwire.spark.delta.output import output
from flexwire.survey.survey import AnalysisRequest
from flexwire.tables.keys import ANALYSIS, BEGAN_IN
from tests.capture.interleaved import HOSTS, write_capture
from tests.spark.equality import assert_equal_analyses
from tests.tables.test_going_on import in_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SHARED = replace(HOSTS, noise=0.03, unended=0.6)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Return a function that sets the number of shares, and returns the tasks' shares."""
    ran: list[int] = []
    survey_shares = share_job.survey_shares

    def noted(spark: SparkSession, request: AnalysisRequest, shares: int, *others: Any) -> Any:
        ran.append(shares)
        return survey_shares(spark, request, shares, *others)

    monkeypatch.setattr("flexwire.spark.analyze.range_bytes_for", lambda *_: 45_000)
    monkeypatch.setattr("flexwire.spark.capture_job.LEAST_BYTES", 0)
    monkeypatch.setattr("flexwire.spark.capture_job.survey_shares", noted)
    monkeypatch.setattr(
        "flexwire.spark.options.AnalysisRequest", partial(AnalysisRequest, chunk_bytes=4_096)
    )

    def divide(shares: int) -> list[int]:
        monkeypatch.setattr("flexwire.spark.analyze.count_shares", lambda *_: shares)
        return ran

    return divide


@pytest.mark.long
@pytest.mark.slow
def test_shares_and_one_task_write_the_same(
    spark: SparkSession, tmp_path: Path, shared: Callable[[int], list[int]]
) -> None:
    write_capture(tmp_path / "capture", 1, SHARED)
    for shares in (1, 3):
        ran = shared(shares)
        analyze([tmp_path / "capture"], tmp_path / f"out{shares}", spark=spark, record_bytes=True)
    assert ran == [3]
    assert_equal_analyses(tmp_path / "out1", tmp_path / "out3")


@pytest.mark.long
@pytest.mark.slow
def test_appended_analyses_in_shares_write_what_those_of_one_task_write(
    spark: SparkSession, tmp_path: Path, shared: Callable[[int], list[int]]
) -> None:
    shape = replace(SHARED, files=2, compressed=0.0)
    files = in_time(write_capture(tmp_path / "capture", 2, shape))
    how: dict[str, Any] = {"format": "delta", "append": True, "answers": "none", "spark": spark}
    for shares in (1, 3):
        ran = shared(shares)
        out = tmp_path / f"out{shares}"
        for some in (files[:3], files[3:]):
            done = analyze([one.name for one in some], out, **how)
        assert "from the previous analysis" in done.notes[0]
    assert ran == [3, 3]
    rows = [rows_of(tmp_path / f"out{shares}") for shares in (1, 3)]
    assert rows[0] == rows[1]


def rows_of(out: Path) -> dict[str, list[str]]:
    """Return the rows of all tables by name, in a fixed order. Analyses have different names."""
    found = {}
    for name in ("frames", "connections", "records", "packets"):
        rows = output(out).table(name).to_pylist()
        runs = sorted({row[ANALYSIS] for row in rows})
        numbers = {run: number for number, run in enumerate(runs)}
        for row in rows:
            row[ANALYSIS] = numbers[row[ANALYSIS]]
            if row.get(BEGAN_IN):
                row[BEGAN_IN] = numbers[row[BEGAN_IN]]
        assert rows
        found[name] = sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
    return found
