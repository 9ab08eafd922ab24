"""Survey captures that must be merged: the connections are divided among several tasks.

```
all files ─▶ merged; a share of the connections is surveyed ─▶ the shares are joined
                          a task each                                one task
```
Each task reads all packets (`flexwire.survey.shares`). More tasks therefore take more CPU time in
total, but they finish sooner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from flexwire.capture.reassembly.assembly import ConnectionShare
from flexwire.errors import StorageError
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.survey_entries import PLAN, entry_name, get_entry, keep_entry, put_entry
from flexwire.storage.filesystems import scheme_of
from flexwire.survey.saved_state import SavedStateError
from flexwire.survey.shares import join_shares, survey_share
from flexwire.survey.state import LateError, UnprovenError
from flexwire.survey.survey import read_state
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.spark.survey_entries import SurveyPlan
    from flexwire.storage.input_file import InputFile
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.survey.request import AnalysisRequest, Survey

    _Begun = Literal["after", "late", "anew"]


MOST_STORED: Final = 2
"""The largest number of tasks for files in a store. Reading these files takes more CPU time than
anything else, and each task reads all of them.
"""


def count_merging(files: Iterable[InputFile], shares: int) -> int:
    """Return how many tasks, at most ``shares``, should read these files."""
    is_stored = any(scheme_of(file.url) for file in files)
    return min(shares, MOST_STORED) if is_stored else shares


@dataclass(frozen=True, slots=True)
class SharedSurvey:
    """The parts of a survey that tasks wrote, one for each of ``shares`` shares of the connections.

    The parts continue from the state of an earlier analysis, or begin anew if that state could not
    be used. ``is_late`` is true if the capture is older than the end of that analysis.
    """

    shares: int
    goes_on: bool
    is_late: bool

    def join(
        self, request: AnalysisRequest, directory: OutputDirectory, before: bytes | None
    ) -> Survey:
        """Return the survey of all connections. Keep its entries.

        Raises `LateError` and `SavedStateError` if the state ``before`` cannot be used, and
        `UnprovenError` if no parts begin as requested, or if they differ.
        """
        if before is not None and self.is_late:
            raise LateError
        if (before is not None) is not self.goes_on:
            raise UnprovenError
        plan: SurveyPlan = get_entry(directory, PLAN)
        names = [entry_name("part", number) for number in range(self.shares)]
        return join_shares(
            request,
            partial(keep_entry, directory),
            plan.looks or [],
            plan.survey,
            [get_entry(directory, name) for name in names],
            before,
        )


def survey_shares(
    spark: SparkSession, request: AnalysisRequest, shares: int, task_output: TaskOutput
) -> SharedSurvey:
    """Run ``shares`` tasks that each survey one share of the connections. The plan must exist."""
    request = replace(request, files=())
    continues = request.continuation is not None and request.continuation.before is not None

    def run(*, goes_on: bool) -> list[_Begun]:
        work = partial(_survey_share, request, shares, "after" if goes_on else "anew")
        return [task.value for task in run_tasks(spark, shares, work, task_output)]

    begun = run(goes_on=continues)
    goes_on = all(each == "after" for each in begun)
    if continues and not goes_on:
        run(goes_on=False)
    return SharedSurvey(shares, goes_on, "late" in begun)


def _survey_share(
    request: AnalysisRequest, shares: int, asked: _Begun, number: int, task_output: TaskOutput
) -> _Begun:
    """Survey a share, and write its part. Return how the share began."""
    begin_task()
    directory = task_output.directory
    plan: SurveyPlan = get_entry(directory, PLAN)
    try:
        before = read_state(request) if asked == "after" else None
    except StorageError:
        # The task that joins the shares reports this error.
        return "anew"
    share, keep = ConnectionShare(number, shares), partial(keep_entry, directory)
    try:
        part = survey_share(request, plan.looks or [], share, keep, before)
    except LateError:
        return "late"
    except SavedStateError:
        return "anew"
    put_entry(directory, entry_name("part", number), part)
    return asked
