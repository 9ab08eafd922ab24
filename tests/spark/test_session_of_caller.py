"""An analysis in the caller's session leaves nothing behind in that session."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import stored_answers
from flexwire.spark.dataframes import table
from flexwire.spark.registration import register
from flexwire.spark.session import session_for_job
from flexwire.spark.settings import temporary_settings
from tests.capture.interleaved import CLEAN, write_capture

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OWN = {
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
}


def settings(spark: SparkSession) -> Mapping[str, str]:
    return spark.conf.getAll


@pytest.mark.long
@pytest.mark.parametrize("is_given", [True, False], ids=["given", "running"])
def test_settings_and_environment_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_given: bool
) -> None:
    write_capture(tmp_path / "captures", 1, CLEAN)
    with temporary_settings(spark, OWN):
        before, variables = dict(settings(spark)), dict(os.environ)
        monkeypatch.setattr(spark.sparkContext, "environment", {"MINE": "1"})
        done = analyze([tmp_path / "captures"], tmp_path / "out", spark=spark if is_given else None)
        stored_answers(tmp_path / "out", "chargeback")
        assert dict(settings(spark)) == before
        assert dict(os.environ) == variables
        assert spark.sparkContext.environment == {"MINE": "1"}
        assert spark.getActiveSession() is spark
    assert done.facts.totals.frames > 0


def descriptions(spark: SparkSession) -> list[str | None]:
    """Return the description of each job so far, oldest first, as Spark's UI shows it."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    told = [jobs.apply(place).description() for place in range(jobs.size())][::-1]
    return [text.get() if text.isDefined() else None for text in told]


@pytest.mark.long
def test_jobs_say_what_they_are_for(spark: SparkSession, tmp_path: Path) -> None:
    write_capture(tmp_path / "captures", 1, CLEAN)
    spark.sparkContext.setJobDescription("mine")
    try:
        before = len(descriptions(spark))
        analyze([tmp_path / "captures"], tmp_path / "out", spark=spark, answers="chargeback")
        spark.range(3).count()
        *ours, last = descriptions(spark)[before:]
    finally:
        spark.sparkContext.setJobDescription("")
    assert last == "mine"
    assert {"flexwire: Decoding captures", "flexwire: Answering"} <= {*ours}
    assert all(text is None or text.startswith("flexwire: ") for text in ours), ours


@pytest.mark.long
def test_two_at_once_do_not_see_each_other_s_settings(spark: SparkSession, tmp_path: Path) -> None:
    write_capture(tmp_path / "captures", 1, CLEAN)

    def run(number: int) -> int:
        out = tmp_path / f"out-{number}"
        return analyze([tmp_path / "captures"], out, spark=spark).facts.totals.frames

    with temporary_settings(spark, OWN):
        before = dict(settings(spark))
        with ThreadPoolExecutor(2) as both:
            frames = set(both.map(run, range(2)))
        assert dict(settings(spark)) == before
    assert len(frames) == 1


def test_a_session_beside_another_begins_with_its_settings(spark: SparkSession) -> None:
    with temporary_settings(spark, OWN), session_for_job(spark, is_ours=False) as beside:
        assert beside.conf.get("spark.sql.shuffle.partitions") == "3"
        # flexwire's own jobs depend on these settings.
        assert beside.conf.get("spark.sql.session.timeZone") == "UTC"
        beside.conf.set("spark.sql.shuffle.partitions", "5")
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    assert beside.sparkContext is spark.sparkContext


@pytest.mark.long
def test_sessions_register_sources_of_one_name(spark: SparkSession, tmp_path: Path) -> None:
    """A name counts as taken if it exists in the active session, whichever session registers it."""
    write_capture(tmp_path / "captures", 1, CLEAN)
    frames = analyze([tmp_path / "captures"], tmp_path / "out", spark=spark).facts.totals.frames
    sessions = [spark, spark.newSession(), spark.newSession()]
    for session in [*sessions, *sessions[::-1]]:
        assert table(session, tmp_path / "out", "frames").count() == frames
        register(session)
    table(spark, tmp_path / "out", "frames")
    assert spark.getActiveSession() is spark
