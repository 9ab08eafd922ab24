"""The tasks that read a capture, and the state that a survey keeps for them.

The survey is made where Spark plans a query, in a process that has no Spark: one pass over all
files in their order. What a range has to be told goes with its task, and so has bounds: where it
would pass them, ranges are joined (`SurveyStore`).

It goes with the tasks. Where all of it is too much, each range is joined with the one after it, and
again, until it is not: the larger ranges are those that a survey of larger ranges would have found,
so that one survey is enough. What is kept at the start of a range is dropped while the survey goes
on; what only the whole capture says is joined in the end.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition

from flexwire.inputs import capture_sources
from flexwire.spark.settings import BATCH_ROWS
from flexwire.spark.sources.requests import CONNECTIONS, PACKETS
from flexwire.storage.local import compress, decompress
from flexwire.survey.pieces import COMPRESSED
from flexwire.survey.ranges import decode_range_rows
from flexwire.survey.request import NAMES, RangeContext, range_context_name, range_start_name
from flexwire.survey.survey import Surveyor
from flexwire.survey.surveyed_files import check_files
from flexwire.tables.frames import connection_rows, packet_rows
from flexwire.tasks import begin_task
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.spark.sources.requests import CaptureOptions
    from flexwire.survey.survey import AnalysisRequest, Survey
    from flexwire.tables.records import Rows


MOST_OF_TASK: Final = 64 << 20
"""So many bytes go with a task at the most: Spark sends none that has 128 MiB."""
MOST_OF_PLAN: Final = 256 << 20
"""So many bytes go with all tasks of a query, which Java holds while it runs."""


class SurveyStore:
    """Takes what a survey keeps, by its name, and gives it to tasks, compressed."""

    def __init__(self) -> None:
        self._stride = 1  # so many ranges that were surveyed are one that a task reads
        self._seen = 1
        self._size = 0
        self._starts: dict[int, bytes] = {}
        self._others: dict[str, bytes] = {}

    def keep(self, name: str, data: bytes) -> None:
        """Take in what is kept by that name."""
        if name == range_start_name(1):
            # A survey that finds that files overlap begins anew.
            self._seen, self._size, self._starts = 1, 0, {}
        if name != range_start_name(self._seen):
            self._others[name] = compress(data)
            return
        number, self._seen = self._seen, self._seen + 1
        if number % self._stride == 0:
            self._starts[number] = compress(data)
            self._size += len(self._starts[number])
        while self._size > MOST_OF_PLAN:
            self._join()

    def _join(self) -> None:
        self._stride *= 2
        self._starts = {
            number: data for number, data in self._starts.items() if number % self._stride == 0
        }
        self._size = sum(map(len, self._starts.values()))

    def ranges(self, surveyed: int) -> dict[int, dict[str, bytes]]:
        """Return the state for each task by its range; ``surveyed`` is the number of ranges.

        None where it is too much for one that has them all.
        """
        while True:
            ranges = self._joined(surveyed)
            sizes = [sum(map(len, states.values())) for states in ranges.values()]
            if max(sizes) <= MOST_OF_TASK and sum(sizes) <= MOST_OF_PLAN:
                return ranges
            if len(ranges) == 1:
                return {}
            self._join()

    def all_states(self) -> dict[str, bytes]:
        """Return the state for the only range of a capture."""
        return self._others

    def _joined(self, surveyed: int) -> dict[int, dict[str, bytes]]:
        ranges = {}
        for number, end in pairwise([0, *self._starts, surveyed]):
            states = {
                NAMES: self._others[NAMES],
                range_context_name(number): self._context(number, end),
            }
            if number:
                states[range_start_name(number)] = self._starts[number]
            ranges[number] = states
        return ranges

    def _context(self, number: int, end: int) -> bytes:
        packed_contexts = [self._others[range_context_name(each)] for each in range(number, end)]
        if len(packed_contexts) == 1:
            return packed_contexts[0]
        # They were pickled by the survey of this very query.
        contexts: list[RangeContext] = [
            pickle.loads(decompress(packed))  # noqa: S301 - see above
            for packed in packed_contexts
        ]
        return compress(pickle.dumps(RangeContext.joined(contexts), pickle.HIGHEST_PROTOCOL))


_INFLATION: Final = 10
_REMEDY: Final = "set skipUnreadable to true to read the rest"
_TO_ACCEPT: Final = "set acceptSampled to true"


@dataclass(frozen=True, slots=True)
class WholeTask(InputPartition):
    """A capture that one task reads."""

    request: AnalysisRequest


@dataclass(frozen=True, slots=True)
class RangeTask(InputPartition):
    """A range of a capture, and what its survey kept for it, compressed, by its name."""

    request: AnalysisRequest
    number: int
    states: dict[str, bytes]


def plan(options: CaptureOptions) -> list[InputPartition]:
    """Return a task for each range of the capture in some paths."""
    request = replace(options.request, files=tuple(capture_sources(options.paths)))
    total = sum(
        file.size * (_INFLATION if file.name.endswith(COMPRESSED) else 1) for file in request.files
    )
    if options.kind in {CONNECTIONS, PACKETS} or total <= request.range_bytes:
        return [WholeTask(request)]
    store = SurveyStore()
    survey = _survey(request, store)
    # Each task has its own files.
    task_request, ranges = replace(request, files=()), store.ranges(survey.ranges)
    tasks: list[InputPartition] = [
        RangeTask(task_request, number, states) for number, states in ranges.items()
    ]
    return tasks or [WholeTask(request)]


def rows_of(task: InputPartition, options: CaptureOptions) -> Iterator[Rows]:
    """Yield the rows of a task."""
    begin_task()
    if isinstance(task, WholeTask):
        yield from _whole_rows(task.request, options)
    elif isinstance(task, RangeTask):
        yield from _range_rows(task, options)


def _whole_rows(request: AnalysisRequest, options: CaptureOptions) -> Iterator[Rows]:
    store = SurveyStore()
    survey = _survey(replace(request, range_bytes=INT64_MAX), store)
    if options.kind == PACKETS:
        yield packet_rows(survey.notes)
    elif options.kind == CONNECTIONS:
        for first in range(0, len(survey.connections), BATCH_ROWS):
            yield connection_rows(survey.connections[first : first + BATCH_ROWS])
    else:
        yield from _range_rows(RangeTask(request, 0, store.all_states()), options)


def _range_rows(task: RangeTask, options: CaptureOptions) -> Iterator[Rows]:
    def read_state(name: str) -> bytes:
        return decompress(task.states[name])

    for _, rows in decode_range_rows(task.request, task.number, read_state, options.row_filter):
        yield rows


def _survey(request: AnalysisRequest, store: SurveyStore) -> Survey:
    """Survey a capture, and keep what ranges need. Raises `CaptureError`."""
    survey = Surveyor(request, store.keep).run()
    check_files(survey, request, remedy=_REMEDY, to_accept=_TO_ACCEPT)
    return survey
