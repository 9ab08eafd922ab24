"""The part of the facts that one answer is: its first rows, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

# What a value of a column is. "us": whole microseconds that something took; "moment": microseconds
# since the epoch, UTC; "share": a float from 0 to 1; "setting": bytes as a configuration has them;
# "id": a number that counts nothing.
Kind = Literal["text", "count", "id", "bytes", "us", "moment", "share", "flag", "setting"]


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column that the report shows: its name in the table, its heading and what its values are.

    Of a column of texts, ``kind`` "text", a value may be a list of them too. ``is_about`` marks
    what tells rows apart, which the picture has as the label of a bar.
    """

    name: str
    heading: str
    kind: Kind = "text"
    is_about: bool = False


@dataclass(frozen=True, slots=True)
class AnswerPicture:
    """The picture of an answer: bars of ``value``, one for each of the first rows.

    ``parts`` are columns of one kind that ``value`` is the sum of, if the bar is to show them. With
    ``over``, the name of a column of moments, it is ``value`` over time instead, summed over what
    is shown of each moment. With ``across`` it has a bar of ``value`` and one of each of these, the
    sums of what is shown, and how much more or less than ``value`` each is.
    """

    title: str
    value: str
    parts: tuple[str, ...] = ()
    over: str | None = None
    across: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """An answer: its question, what it means and what to do, and the first of its ``rows`` rows.

    ``shown`` has a value for each of ``columns``, the most important row first. The whole is the
    table and the CSV of the same ``name``, but for ``left_out`` rows that neither has. Where the
    picture is over time, ``moments`` are the values that it shows, of all rows: a moment and its
    ``picture.parts``, or else its ``picture.value``. State is ``as_of`` a moment, empty where that
    is the end of logs.
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
    """Say of which moment answers about state are, where that is not the end of logs."""
    moments = sorted({one.as_of for one in answers if one.as_of})
    return tuple(f"What is said of internal topics is as of {one}." for one in moments)


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A question that was asked and found no answer, because something failed; and what.

    It ``can_ask`` the tables again where they have what it is about.
    """

    name: str
    question: str
    reason: str
    can_ask: bool = True
