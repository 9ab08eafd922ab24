"""The survey of a capture as tasks of Spark, and what it keeps for those that decode the ranges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from flexwire.spark.commit import run_tasks
from flexwire.spark.tasks import use_one_thread
from flexwire.spark.unreadable import Unreadable
from flexwire.tables.survey import Surveyor

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from flexwire.spark.drop import Drop
    from flexwire.spark.manifest import Committed
    from flexwire.spark.places import Place
    from flexwire.tables.survey import Asked, Survey

    # Writes the tables that the survey alone gives; of a capture that one task decodes, all of
    # them, from what the survey kept, by its name.
    Write = Callable[[Asked, Survey, dict[str, bytes], Drop], None]

KEPT: Final = "_survey"
"""What the survey keeps for the ranges lies here, below the place that an analysis writes to."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What the driver hears of a survey.

    ``packets`` are all that the files hold; ``reason`` is why the first of those that gave none
    did, and ``source`` which file it was. What is ``unreadable`` is without packets too.
    """

    ranges: int
    is_ordered: bool
    packets: int
    span_us: int
    unreadable: Unreadable
    reason: str | None = None
    source: str = ""


def surveyed(
    spark: SparkSession, asked: Asked, drop: Drop, total: int, write: Write
) -> Committed[Surveyed]:
    """Survey a capture of ``total`` bytes. One that fits in a range is decoded by the same task."""
    is_whole = total <= asked.range_bytes
    found: Committed[Surveyed]
    (found,) = run_tasks(spark, 1, partial(_survey, asked, is_whole, write), drop)
    return found


def kept(place: Place, name: str) -> bytes:
    """Give what the survey kept, by its name."""
    return place.read(f"{KEPT}/{name}")


def _survey(asked: Asked, is_whole: bool, write: Write, _number: int, drop: Drop) -> Surveyed:  # noqa: FBT001 - bound by partial, the one way to configure a task
    use_one_thread()
    kept_here: dict[str, bytes] = {}
    keep = kept_here.__setitem__ if is_whole else partial(_keep, drop.place)
    survey = Surveyor(asked, keep).run()
    if survey.ranges:
        write(asked, survey, kept_here, drop)
    return _surveyed(survey)


def _surveyed(survey: Survey) -> Surveyed:
    packets = sum(one.packets for one in survey.notes)
    unreadable = Unreadable.of(survey.unreadable)
    found = Surveyed(survey.ranges, survey.is_ordered, packets, survey.span_us, unreadable)
    if not packets:
        # Of those with the most packets the first by its name, and none has any.
        for one in sorted(survey.notes, key=lambda one: one.file):
            for reason in one.unused().packets:
                return replace(found, reason=reason, source=one.file)
    return found


def _keep(place: Place, name: str, data: bytes) -> None:
    place.write(f"{KEPT}/{name}", data)
