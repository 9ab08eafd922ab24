"""The driver receives the same result whether one task or one task per piece surveys a capture."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import StorageError
from flexwire.spark import capture_job, share_job
from flexwire.spark.capture_job import survey_capture
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.manifest import CommittedTask
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.spark.survey_entries import KEPT, read_kept
from flexwire.storage.file_search import list_captures
from flexwire.storage.input_file import InputFile
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey import state as state_module
from flexwire.survey.request import Continuation, look_at_files
from flexwire.survey.survey import STATE, AnalysisRequest, read_state
from tests.capture.interleaved import CLEAN, EVERYTHING, HOSTS, UNORDERED, write_capture
from tests.searching import in_make_long
from tests.tables.sharing import record_of
from tests.tables.test_ranges import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from flexwire.spark.capture_job import SurveySummary
    from flexwire.survey.survey import Survey
    from tests.tables.test_ranges import Rows

RANGE_BYTES = 15_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow captures of any size to be divided."""
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
    """Run tasks in this process, each with its own unpickled copy of the work."""
    tasks.append(count)
    packed = pickle.dumps(work)
    return [
        CommittedTask(number, [], pickle.loads(packed)(number, task_output))  # noqa: S301 - see above
        for number in range(count)
    ]


def survey_of(
    spark: SparkSession | None,
    files: list[Path],
    out: Path,
    shares: int = 1,
    continuation: Continuation | None = None,
) -> tuple[SurveySummary, Rows]:
    out.mkdir()
    place = OutputDirectory(str(out))
    asked = AnalysisRequest(
        tuple(list_captures(files)),
        record_bytes=True,
        range_bytes=RANGE_BYTES,
        chunk_bytes=4096,
        skip_unreadable=True,
        continuation=continuation,
    )
    total = sum(one.size for one in asked.files)
    found = survey_capture(spark, asked, TaskOutput(place), total, write, shares).value  # type: ignore[arg-type]  # without one tasks run here
    if not found.ranges:
        return found, {}
    # Written by `write`.
    survey: Survey = pickle.loads(place.read("survey"))  # noqa: S301 - see above
    kept_there = {
        name.name: read_kept(place, name.name)
        for name in (out / KEPT).iterdir()
        if not name.name.startswith(("summary", "files", "looks", "part"))
    }
    return found, rows_of(asked, survey, kept_there)


@pytest.mark.long
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
@pytest.mark.parametrize("is_seen", [True, *in_make_long(False)])
def test_pieces_that_overlap_are_merged_by_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_seen: bool
) -> None:
    tasks: list[int] = []
    monkeypatch.setattr(capture_job, "run_tasks", partial(run_here, tasks))
    if not is_seen:
        # The fold then notices the difference.
        monkeypatch.setattr(capture_job, "is_overlap_likely", lambda *_: False)
    shape = replace(UNORDERED, connections=4, compressed=1.0)
    files = write_capture(tmp_path / "capture", 1, shape)
    pieces, of_pieces = survey_of(None, files, tmp_path / "pieces")
    assert (tasks[1] == 0) is is_seen
    monkeypatch.setattr(capture_job, "LEAST_BYTES", 1 << 30)
    whole, of_whole = survey_of(None, files, tmp_path / "whole")
    assert pieces == whole
    assert of_pieces == of_whole


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("is_seen", [True, False])
def test_pieces_that_overlap_are_surveyed_in_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_seen: bool
) -> None:
    tasks: list[int] = []
    for job in (capture_job, share_job):
        monkeypatch.setattr(job, "run_tasks", partial(run_here, tasks))
    if not is_seen:
        monkeypatch.setattr(capture_job, "is_overlap_likely", lambda *_: False)
    files = write_capture(tmp_path / "capture", 1, HOSTS)
    shares, of_shares = survey_of(None, files, tmp_path / "shares", 3)
    assert (tasks[1] == 0) is is_seen
    assert [tasks[0], *tasks[2:]] == [1, 1, 3, 1]
    monkeypatch.setattr(capture_job, "LEAST_BYTES", 1 << 30)
    whole, of_whole = survey_of(None, files, tmp_path / "whole", 3)
    assert tasks[5:] == [1]
    assert shares == whole
    assert of_shares == of_whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "state", ["gone for one task", *in_make_long("used", "late", "damaged", "gone")]
)
def test_a_state_is_used_by_all_shares_or_by_none(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[int] = []
    for job in (capture_job, share_job):
        monkeypatch.setattr(job, "run_tasks", partial(run_here, tasks))
    monkeypatch.setattr(capture_job, "is_overlap_likely", lambda *_: True)
    shape = replace(HOSTS, files=4, compressed=0.0, unended=0.8)
    looks = look_at_files(list_captures(write_capture(tmp_path / "capture", 1, shape)))
    files = [Path(look.source.name) for look in sorted(looks, key=lambda look: look.first_us)]
    first, second = files[:6], files[6:]
    survey_of(None, first, tmp_path / "first", 3, Continuation("first"))
    before = OutputDirectory(str(tmp_path / "first"))
    if state == "damaged":
        before.write(STATE, before.read(STATE)[:-1])
    elif state == "gone":
        before.remove([STATE])
    elif state == "late":
        monkeypatch.setattr(state_module, "LATE_US", -60_000_000)
    elif state == "gone for one task":
        monkeypatch.setattr(share_job, "read_state", fail_once(read_state))
    runs = []
    del tasks[:]
    for name, shares in (("shares", 3), ("whole", 1)):
        continuation = Continuation("second", before)
        found, rows = survey_of(None, second, tmp_path / name, shares, continuation)
        kept = record_of(OutputDirectory(str(tmp_path / name)).read(STATE))
        runs.append((found, rows, kept))
    assert runs[0] == runs[1]
    again = [] if state == "used" else [3]
    assert tasks == [1, 0, 1, 3, *again, 1, 1, 0, 1]
    found = runs[0][0]
    assert (found.begins_anew is None) is (state in {"used", "gone for one task"})
    assert (found.went_on > 0) is (found.begins_anew is None)


def fail_once(read: Callable[[AnalysisRequest], bytes | None]) -> Any:
    calls = []

    def read_or_fail(request: AnalysisRequest) -> bytes | None:
        calls.append(1)
        if len(calls) == 2:
            reason = "it is gone for a moment"
            raise StorageError(reason, url="state")
        return read(request)

    return read_or_fail


@pytest.mark.slow
@pytest.mark.parametrize("least_bytes", [1 << 30, *in_make_long(0)])
def test_files_that_many_tasks_look_at_are_in_the_same_order(
    least_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_job, "LEAST_BYTES", least_bytes)
    tasks: list[int] = []
    monkeypatch.setattr(capture_job, "run_tasks", partial(run_here, tasks))
    files = write_capture(tmp_path / "capture", 1, replace(CLEAN, files=7))
    # The names of files do not show when their captures begin.
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


def test_few_tasks_read_all_of_what_is_in_a_store() -> None:
    here, there = InputFile("/captures/1.pcap", 5, "1"), InputFile("s3://b/1.pcap", 5, "1")
    assert share_job.count_merging([here, here], 8) == 8
    assert share_job.count_merging([here, there], 8) == 2
    assert share_job.count_merging([there], 1) == 1
