"""The survey of a capture as tasks of Spark, and what it keeps for those that decode the ranges.

```
files looked at ─▶ in order, cut in pieces ─▶ survey of each piece ─▶ fold: each is proven, or
  by some tasks             one task              a task each             read again; one task
```
Few files are looked at by the task that cuts. A small capture is surveyed by one task from its
start to its end, and so is one whose pieces say too little of the whole (`flexwire.survey.fold`),
or whose files are to be merged.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from flexwire.spark.marks import NO_MARKS, CaptureMarks
from flexwire.spark.publishing.commit import MOST_TASKS, run_tasks
from flexwire.spark.publishing.places import write_there
from flexwire.spark.tasks import begin_task
from flexwire.spark.unreadable import Unreadable
from flexwire.storage.local import squeezed, unsqueezed
from flexwire.survey.fold import Fold
from flexwire.survey.piece_merger import OverlapError, UnprovenError
from flexwire.survey.piece_survey import has_kernels, survey_piece
from flexwire.survey.pieces import pieces_of
from flexwire.survey.request import looks
from flexwire.survey.survey import Survey, Surveyor, in_order, likely_overlap

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from flexwire.spark.publishing.drop import Drop
    from flexwire.spark.publishing.manifest import Committed
    from flexwire.spark.publishing.places import Place
    from flexwire.storage.source import Source
    from flexwire.survey.pieces import Piece
    from flexwire.survey.request import Look
    from flexwire.survey.survey import Asked

    # Writes the tables that the survey alone gives; of a capture that one task decodes, all of
    # them, from what the survey kept, by its name.
    Write = Callable[[Asked, Survey, dict[str, bytes], Drop], None]

KEPT: Final = "_survey"
"""What the survey keeps for the ranges lies here, below the place that an analysis writes to."""

LEAST_BYTES: Final = 1 << 30
"""A capture of fewer bytes is surveyed by one task, in two seconds: to cut it up saves none."""

LOOKED_BY_TASK: Final = 1000
"""So many files a task looks at: in a store it waits for them for twenty seconds."""
MOST_LOOKING: Final = 256
"""So many tasks look at most, as the driver writes down for each which its files are."""

_PLAN: Final = "plan"


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What the driver hears of a survey.

    ``packets`` are all that the files hold; ``reason`` is why the first of those that gave none
    did, and ``source`` which file it was. What is ``unreadable`` is without packets too.
    ``marks`` are what files say of themselves.
    """

    ranges: int
    is_crowded: bool
    packets: int
    span_us: int
    unreadable: Unreadable
    reason: str | None = None
    source: str = ""
    marks: CaptureMarks = NO_MARKS


def surveyed(
    spark: SparkSession, asked: Asked, drop: Drop, total: int, write: Write
) -> Committed[Surveyed]:
    """Survey a capture of ``total`` bytes. One that fits in a range is decoded by the same task."""
    is_whole = total <= asked.range_bytes
    found: Committed[Surveyed]
    looked = _looked(spark, asked, drop)
    if is_whole or total < LEAST_BYTES or not has_kernels():
        (found,) = run_tasks(spark, 1, partial(_survey, asked, looked, is_whole, write), drop)
        return found
    planned: Committed[int]
    # Half of a range, of which the fold puts two together: all processors have work for as long.
    size = max(-(-asked.range_bytes // 2), -(-total // MOST_TASKS))
    (planned,) = run_tasks(spark, 1, partial(_plan, asked, looked, size), drop)
    run_tasks(spark, planned.value, partial(_survey_piece, replace(asked, files=())), drop)
    (found,) = run_tasks(spark, 1, partial(_fold, asked, looked, planned.value, write), drop)
    return found


def _looked(spark: SparkSession, asked: Asked, drop: Drop) -> int:
    """Let tasks look at the files where there are many, and give the number of these tasks."""
    files = asked.files
    size = max(LOOKED_BY_TASK, -(-len(files) // MOST_LOOKING))
    if len(files) <= size:
        return 0
    # Each task gets its own: all of them would be read by each.
    starts = range(0, len(files), size)
    for number, start in enumerate(starts):
        _put(drop.place, _files(number), files[start : start + size])
    run_tasks(spark, len(starts), _look, drop)
    return len(starts)


def _look(number: int, drop: Drop) -> None:
    _put(drop.place, _looks(number), looks(_get(drop.place, _files(number))))


def _found(place: Place, looked: int) -> list[Look] | None:
    """What tasks saw of all files, in their order; None if none has looked."""
    if not looked:
        return None
    return [one for number in range(looked) for one in _get(place, _looks(number))]


def kept(place: Place, name: str) -> bytes:
    """Give what the survey kept, by its name."""
    return unsqueezed(place.read(f"{KEPT}/{name}"))


def _survey(
    asked: Asked,
    looked: int,
    is_whole: bool,  # noqa: FBT001 - bound by partial, the one way to configure a task
    write: Write,
    _number: int,
    drop: Drop,
) -> Surveyed:
    begin_task()
    kept_here: dict[str, bytes] = {}
    keep = kept_here.__setitem__ if is_whole else partial(_keep, drop.place)
    survey = Surveyor(asked, keep, _found(drop.place, looked)).run()
    if survey.ranges:
        write(asked, survey, kept_here, drop)
    return _surveyed(survey)


def _plan(asked: Asked, looked: int, size: int, _number: int, drop: Drop) -> int:
    """Cut the capture into pieces of about ``size`` bytes, and give their number.

    There are none where files are likely to overlap.
    """
    survey = Survey()
    files = in_order(asked, survey, _found(drop.place, looked))
    pieces = [] if files is None or likely_overlap(asked, files) else pieces_of(files, size)
    _put(drop.place, _PLAN, (files, pieces, survey))
    for number, one in enumerate(pieces):
        _put(drop.place, _piece(number), one)
    return len(pieces)


def _survey_piece(asked: Asked, number: int, drop: Drop) -> None:
    begin_task()
    piece: Piece = _get(drop.place, _piece(number))
    found = survey_piece(asked, piece, is_first=number == 0)
    _put(drop.place, _summary(number), found)


def _fold(
    asked: Asked, looked: int, pieces: int, write: Write, _number: int, drop: Drop
) -> Surveyed:
    begin_task()
    keep, place = partial(_keep, drop.place), drop.place
    plan: tuple[list[Source] | None, list[Piece], Survey] = _get(place, _PLAN)
    files, cut, survey = plan
    if files is not None and not cut:
        survey = Surveyor(asked, keep, _found(place, looked), overlapping=True).run()
    elif files is not None:
        summaries = (_get(place, _summary(number)) for number in range(pieces))
        try:
            survey = Fold(asked, keep, files, survey).run(cut, summaries)
        except UnprovenError as error:
            overlapping = isinstance(error, OverlapError)
            found = _found(place, looked)
            survey = Surveyor(asked, keep, found, overlapping=overlapping).run()
    if survey.ranges:
        write(asked, survey, {}, drop)
    return _surveyed(survey)


def _files(number: int) -> str:
    return f"files-{number:06d}"


def _looks(number: int) -> str:
    return f"looks-{number:06d}"


def _piece(number: int) -> str:
    return f"piece-{number:06d}"


def _summary(number: int) -> str:
    return f"summary-{number:06d}"


def _put(place: Place, name: str, value: object) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    _keep(place, name, data)


def _get(place: Place, name: str) -> Any:
    # Written by the tasks of this analysis, in a directory of its own.
    return pickle.loads(kept(place, name))  # noqa: S301 - see above


def _surveyed(survey: Survey) -> Surveyed:
    packets = sum(one.packets for one in survey.notes)
    unreadable = Unreadable.of(survey.unreadable)
    found = Surveyed(
        survey.ranges,
        survey.is_crowded,
        packets,
        survey.span_us,
        unreadable,
        marks=CaptureMarks.of(survey.marks),
    )
    if not packets:
        # Of those with the most packets the first by its name, and none has any.
        for one in sorted(survey.notes, key=lambda one: one.file):
            for reason in one.unused().packets:
                return replace(found, reason=reason, source=one.file)
    return found


def _keep(place: Place, name: str, data: bytes) -> None:
    write_there(place, f"{KEPT}/{name}", squeezed(data))
