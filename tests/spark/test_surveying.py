"""Surveying a capture in one task or in one task per piece gives the driver the same result."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.spark import capture_job
from flexwire.spark.capture_job import read_kept, survey_capture
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.manifest import CommittedTask
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.storage.file_search import list_captures
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.survey import AnalysisRequest
from tests.capture.interleaved import CLEAN, EVERYTHING, UNORDERED, write_capture
from tests.tables.test_ranges import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.spark.capture_job import SurveySummary
    from flexwire.survey.survey import Survey
    from tests.tables.test_ranges import Rows

RANGE_BYTES = 15_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture of any size is cut up."""
    monkeypatch.setattr(capture_job, "LEAST_BYTES", 0)


def write(
    asked: AnalysisRequest, survey: Survey, kept_here: dict[str, bytes], task_output: TaskOutput
) -> None:
    assert not kept_here
    assert asked.files
    task_output.directory.write("survey", pickle.dumps(survey))


def noted(
    tasks: list[int], run: Callable[..., Any], spark: SparkSession, count: int, *rest: object
) -> Any:
    tasks.append(count)
    return run(spark, count, *rest)


def run_here(
    tasks: list[int],
    _spark: object,
    count: int,
    work: Callable[[int, TaskOutput], Any],
    task_output: TaskOutput,
) -> list[CommittedTask[Any]]:
    """Run tasks in this process, each with work that has travelled."""
    tasks.append(count)
    packed = pickle.dumps(work)
    return [
        CommittedTask(number, [], pickle.loads(packed)(number, task_output))  # noqa: S301 - see above
        for number in range(count)
    ]


def survey_of(
    spark: SparkSession | None, files: list[Path], out: Path
) -> tuple[SurveySummary, Rows]:
    out.mkdir()
    place = OutputDirectory(str(out))
    asked = AnalysisRequest(
        tuple(list_captures(files)),
        record_bytes=True,
        range_bytes=RANGE_BYTES,
        chunk_bytes=4096,
        skip_unreadable=True,
    )
    total = sum(one.size for one in asked.files)
    found = survey_capture(spark, asked, TaskOutput(place), total, write).value  # type: ignore[arg-type]  # without one tasks run here
    if not found.ranges:
        return found, {}
    # Written by `write`.
    survey: Survey = pickle.loads(place.read("survey"))  # noqa: S301 - see above
    kept_there = {
        name.name: read_kept(place, name.name)
        for name in (out / capture_job.KEPT).iterdir()
        if not name.name.startswith(("summary", "files", "looks"))
    }
    return found, rows_of(asked, survey, kept_there)


@pytest.mark.spark
@pytest.mark.slow
def test_pieces_and_one_task_find_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[int] = []
    monkeypatch.setattr(capture_job, "run_tasks", partial(noted, tasks, run_tasks))
    files = write_capture(tmp_path / "capture", 1, EVERYTHING)
    pieces, of_pieces = survey_of(spark, files, tmp_path / "pieces")
    assert tasks[0] == tasks[2] == 1
    assert tasks[1] > 1
    monkeypatch.setattr(capture_job, "LEAST_BYTES", 1 << 30)
    whole, of_whole = survey_of(spark, files, tmp_path / "whole")
    assert tasks[3:] == [1]
    assert replace(pieces, ranges=1) == replace(whole, ranges=1)
    assert of_pieces == of_whole


@pytest.mark.slow
@pytest.mark.parametrize("is_seen", [True, False])
def test_pieces_that_overlap_are_merged_by_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_seen: bool
) -> None:
    tasks: list[int] = []
    monkeypatch.setattr(capture_job, "run_tasks", partial(run_here, tasks))
    if not is_seen:
        # Then the fold notices it.
        monkeypatch.setattr(capture_job, "is_overlap_likely", lambda *_: False)
    shape = replace(UNORDERED, connections=4, compressed=1.0)
    files = write_capture(tmp_path / "capture", 1, shape)
    pieces, of_pieces = survey_of(None, files, tmp_path / "pieces")
    assert (tasks[1] == 0) is is_seen
    monkeypatch.setattr(capture_job, "LEAST_BYTES", 1 << 30)
    whole, of_whole = survey_of(None, files, tmp_path / "whole")
    assert pieces == whole
    assert of_pieces == of_whole


@pytest.mark.slow
@pytest.mark.parametrize("least_bytes", [0, 1 << 30])
def test_files_that_many_tasks_look_at_are_in_the_same_order(
    least_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_job, "LEAST_BYTES", least_bytes)
    tasks: list[int] = []
    monkeypatch.setattr(capture_job, "run_tasks", partial(run_here, tasks))
    files = write_capture(tmp_path / "capture", 1, replace(CLEAN, files=7))
    # Names say nothing of when files begin.
    files = [one.rename(one.with_name(f"{-at % 4}-{one.name}")) for at, one in enumerate(files)]
    files.append(tmp_path / "capture/none.pcap")
    files[-1].write_text("no capture")
    alone = survey_of(None, files, tmp_path / "alone")
    expected, tasks[:] = [*tasks], []
    monkeypatch.setattr(capture_job, "LOOKED_BY_TASK", 1)
    monkeypatch.setattr(capture_job, "MOST_LOOKING", 5)
    assert survey_of(None, files, tmp_path / "many") == alone
    assert tasks == [4, *expected]
    assert alone[0].unreadable.count == 1
