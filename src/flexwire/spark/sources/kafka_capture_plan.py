"""Which tasks read a capture: one each for the ranges that a survey cut it into, or one for all.

The survey is made where Spark plans a query, in a process that has no Spark: one pass over all
files in their order. What a range has to be told goes with its task, and so has bounds: where it
would pass them, ranges are joined (`Kept`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition

from flexwire.capture.reassembly.merging import MOST_OPEN
from flexwire.errors import CaptureError
from flexwire.report.sampled_facts import sampled_notes
from flexwire.spark.batches import BATCH_ROWS
from flexwire.spark.marks import CaptureMarks
from flexwire.spark.paths import capture_sources
from flexwire.spark.sources.kafka_capture_kept import Kept
from flexwire.spark.sources.kafka_capture_options import CONNECTIONS, PACKETS
from flexwire.spark.tasks import begin_task
from flexwire.spark.unreadable import Unreadable
from flexwire.storage.local import unsqueezed
from flexwire.survey.pieces import COMPRESSED
from flexwire.survey.ranges import decoded_rows
from flexwire.survey.survey import Surveyor
from flexwire.tables.frames import connection_rows, packet_rows
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.spark.sources.kafka_capture_options import CaptureOptions
    from flexwire.survey.survey import Asked, Survey
    from flexwire.tables.records import Rows

_INFLATION: Final = 10
_REMEDY: Final = "set skipUnreadable to true to read the rest"


@dataclass(frozen=True, slots=True)
class WholeTask(InputPartition):
    """A capture that one task reads."""

    asked: Asked


@dataclass(frozen=True, slots=True)
class RangeTask(InputPartition):
    """A range of a capture, and what its survey kept for it, compressed, by its name."""

    asked: Asked
    number: int
    kept: dict[str, bytes]


def plan(options: CaptureOptions) -> list[InputPartition]:
    """Give a task for each range of the capture in some paths."""
    asked = replace(options.asked, files=tuple(capture_sources(options.paths)))
    total = sum(
        one.size * (_INFLATION if one.name.endswith(COMPRESSED) else 1) for one in asked.files
    )
    if options.kind in {CONNECTIONS, PACKETS} or total <= asked.range_bytes:
        return [WholeTask(asked)]
    kept = Kept()
    survey = _surveyed(asked, kept)
    # Each task has its own files.
    how, ranges = replace(asked, files=()), kept.ranges(survey.ranges)
    found: list[InputPartition] = [RangeTask(how, number, its) for number, its in ranges.items()]
    return found or [WholeTask(asked)]


def rows_of(task: InputPartition, options: CaptureOptions) -> Iterator[Rows]:
    """Give the rows of a task."""
    begin_task()
    if isinstance(task, WholeTask):
        yield from _whole_rows(task.asked, options)
    elif isinstance(task, RangeTask):
        yield from _range_rows(task, options)


def _whole_rows(asked: Asked, options: CaptureOptions) -> Iterator[Rows]:
    kept = Kept()
    survey = _surveyed(replace(asked, range_bytes=INT64_MAX), kept)
    if options.kind == PACKETS:
        yield packet_rows(survey.notes)
    elif options.kind == CONNECTIONS:
        for first in range(0, len(survey.connections), BATCH_ROWS):
            yield connection_rows(survey.connections[first : first + BATCH_ROWS])
    else:
        yield from _range_rows(RangeTask(asked, 0, kept.whole()), options)


def _range_rows(task: RangeTask, options: CaptureOptions) -> Iterator[Rows]:
    def kept(name: str) -> bytes:
        return unsqueezed(task.kept[name])

    for _, rows in decoded_rows(task.asked, task.number, kept, options.wanted):
        yield rows


def _surveyed(asked: Asked, kept: Kept) -> Survey:
    """Survey a capture, and keep what ranges need. Raises `CaptureError`."""
    survey = Surveyor(asked, kept.keep).run()
    unreadable = Unreadable.of(survey.unreadable)
    unreadable.check(len(asked.files), skip=asked.skip_unreadable, remedy=_REMEDY)
    sampled = CaptureMarks.of(survey.marks).sampled
    if sampled and not asked.takes_sampled:
        (note, *_) = sampled_notes(sampled)
        raise CaptureError(f"{note} To read them so, set acceptSampled to true.")
    if survey.is_crowded:
        raise CaptureError(
            f"more than {MOST_OPEN} captures overlap in time and show the same connections: read "
            "fewer of them at once, or join those of one host with mergecap"
        )
    return survey
