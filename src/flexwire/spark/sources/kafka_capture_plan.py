"""The tasks that read a capture, and the state that the survey keeps for them.

The survey runs in the process that plans the query, without Spark. The survey makes one pass over
all files in order. The state of a range is sent with its task, and the size of this state is
bounded. If the state would exceed the bound, ranges are merged (`SurveyStore`).

If the total is too large, pairs of neighboring ranges are merged, repeatedly, until the total fits.
Merged ranges are the same as those of a survey with larger ranges, so one survey is enough. When
two ranges are merged during the survey, the state between them is removed. Facts about the whole
capture are combined at the end.
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
"""The largest number of bytes that are sent with a task. Spark refuses to send 128 MiB."""
MOST_OF_PLAN: Final = 256 << 20
"""The largest number of bytes that are sent with all tasks of a query. Java holds these bytes
while the query runs.
"""


class SurveyStore:
    """Receives the named entries of a survey, and passes them to tasks in compressed form."""

    def __init__(self) -> None:
        self._stride = 1  # the number of surveyed ranges that are merged into the range of one task
        self._seen = 1
        self._size = 0
        self._starts: dict[int, bytes] = {}
        self._others: dict[str, bytes] = {}

    def keep(self, name: str, data: bytes) -> None:
        """Store an entry under a name."""
        if name == range_start_name(1):
            # If a survey finds that files overlap, it starts again.
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
        """Return the state for each task, by its range; ``surveyed`` is the number of ranges.

        The result is empty if the state is too large for one task with all ranges.
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
        """Return the state of a capture that has a single range."""
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
        # The survey of this query pickled these entries.
        contexts: list[RangeContext] = [
            pickle.loads(decompress(packed))  # noqa: S301 - our own bytes
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
    """A range of a capture, with the survey's entries for it, by name and compressed."""

    request: AnalysisRequest
    number: int
    states: dict[str, bytes]


def plan(options: CaptureOptions) -> list[InputPartition]:
    """Return a task for each range of the capture in the given paths."""
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
    """Survey a capture, and keep the entries for ranges. Raises `CaptureError`."""
    survey = Surveyor(request, store.keep).run()
    check_files(survey, request, remedy=_REMEDY, to_accept=_TO_ACCEPT)
    return survey
