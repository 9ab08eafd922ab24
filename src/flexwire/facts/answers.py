"""The facts about one answer: its first rows, and how to show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

# The kind of a column's values. "us": a duration in whole microseconds. "moment": microseconds
# since the epoch, UTC. "share": a float from 0 to 1. "setting": bytes as a configuration writes
# them. "id": a number that identifies something.
Kind = Literal["text", "count", "id", "bytes", "us", "moment", "share", "flag", "setting"]


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column that the report shows: its name in the table, its heading, and the values' kind.

    If ``kind`` is "text", a value may also be a list of strings. ``is_about`` marks the columns
    that identify a row. A picture labels its bars with the values of these columns.
    """

    name: str
    heading: str
    kind: Kind = "text"
    is_about: bool = False


@dataclass(frozen=True, slots=True)
class AnswerPicture:
    """An answer's picture, with bars that show ``value`` for the first rows.

    If the bars are divided, ``parts`` lists columns of one kind that add up to ``value``. ``over``
    is the name of a column that contains moments: the picture then shows ``value`` over time,
    summed over the rows of each moment. ``across`` lists further columns: the picture then contains
    one bar for ``value`` and one for each of these columns, as sums over the shown rows, with the
    difference from ``value``.
    """

    title: str
    value: str
    parts: tuple[str, ...] = ()
    over: str | None = None
    across: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """An answer: its question, its meaning, its advice, and the first of its ``rows`` rows.

    ``shown`` contains rows with a value for each of ``columns``, the most important row first. The
    table and the CSV with the same ``name`` contain all rows except ``left_out`` rows. If the
    picture shows values over time, ``moments`` contains these values, computed from all rows: each
    moment with the values of ``picture.parts`` or ``picture.value``. ``as_of`` is the moment to
    which a state refers. It is empty if that moment is the end of the logs.
    """

    name: str
    question: str
    meaning: str
    advice: str
    columns: tuple[ShownColumn, ...]
    picture: AnswerPicture | None
    rows: int
    shown: tuple[tuple[Any, ...], ...]
    left_out: int = 0
    moments: tuple[tuple[int, tuple[float, ...]], ...] = ()
    as_of: str = ""


def moment_notes(answers: Iterable[AnswerFacts]) -> tuple[str, ...]:
    """Return notes on the moments to which answers about state refer, except the end of logs."""
    moments = sorted({answer.as_of for answer in answers if answer.as_of})
    return tuple(
        f"The answers about internal topics show the state as of {moment}." for moment in moments
    )


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A question that could not be answered, and the reason.

    ``can_ask`` is true if the tables contain the data for the question. If so, the question can be
    asked again.
    """

    name: str
    question: str
    reason: str
    can_ask: bool = True
