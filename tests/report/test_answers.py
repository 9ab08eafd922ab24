"""An answer's section has one picture, one table and advice, and does not mention missing data."""

from __future__ import annotations

import csv
import dataclasses
import io
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flexwire.facts.answers import AnswerFacts, AnswerPicture, Kind, ShownColumn, UnansweredQuestion
from flexwire.report import Facts, render
from flexwire.report.answers import cell, chart
from flexwire.report.audit_files import to_csv, to_tool_csv
from tests.report.page import Page
from tests.report.sample import EMPTY, START

EVIL = "<img src=x onerror=alert(3)>"
HOUR = 3_600_000_000
WHO = AnswerFacts(
    "who_sends",
    "Who sends most?",
    "Bytes by client and topic.",
    "Ask them to batch.",
    (
        ShownColumn("client_id", "Client", is_about=True),
        ShownColumn("topics", "Topics", is_about=True),
        ShownColumn("bytes", "Bytes", "bytes"),
        ShownColumn("keys", "Keys", "bytes"),
        ShownColumn("values", "Values", "bytes"),
        ShownColumn("seen", "Seen", "moment"),
        ShownColumn("took_us", "Took", "us"),
        ShownColumn("part", "Part", "share"),
        ShownColumn("is_old", "Old", "flag"),
    ),
    AnswerPicture("Bytes of keys and values", "bytes", ("keys", "values")),
    935,
    (
        (EVIL, ("a", "b"), 3_000, 1_000, 2_000, START, 1_500, 0.25, True),
        (None, None, 1_000, 1_000, None, None, None, None, None),
        ("", (), 0, 0, 0, START, 90_000_000, 1.0, False),
    ),
    left_out=35,
)
WHEN = AnswerFacts(
    "when",
    "When is most asked?",
    "Requests by hour.",
    "Spread them.",
    (ShownColumn("hour", "Hour", "moment"), ShownColumn("requests", "Requests", "count")),
    AnswerPicture("Requests over time", "requests", over="hour"),
    3,
    ((START, 9), (START + HOUR, 4), (START + 5 * HOUR, 2)),
    moments=((START, (9.0,)), (START + HOUR, (4.0,)), (START + 5 * HOUR, (2.0,))),
)
UNSEEN = dataclasses.replace(WHO, name="unseen", question="Unseen?", rows=0, shown=(), left_out=0)
FAILED = UnansweredQuestion("slow_ones", "Which are slow?", f"slow_ones: {EVIL}")
ASKED = dataclasses.replace(EMPTY, answers=(WHO, WHEN, UNSEEN), unanswered=(FAILED,))


@cache
def page() -> Page:
    return Page(render(ASKED))


@pytest.mark.long
def test_an_answer_has_a_question_a_meaning_advice_a_picture_and_a_table() -> None:
    words, tags = page().words(), page().tags
    for one in (WHO, WHEN):
        for told in (one.question, one.meaning, f"What to do: {one.advice}"):
            assert told in words
    assert (tags.count("table"), tags.count("svg")) == (2, 4)
    bars, times = [one for one in dict.fromkeys(page().values("aria-label")) if one.count(":") > 0]
    assert bars.startswith(f"Bytes of keys and values, 2 of 935 rows: {EVIL} \u00b7 a, b 3.00 kB; ")
    # An unknown value is not part of a label.
    assert bars.endswith("; not known 1.00 kB.")
    assert times.startswith("Requests over time, at 3 moments; peak at 2026-10-28 ")
    # Words, and not only colors, distinguish the parts.
    assert "Bytes of keys and values Keys Values" in words
    assert {"#answer-who_sends", "#answer-when", "#answer-slow_ones"} <= {*page().values("href")}


def test_columns_beside_each_other_are_bars_of_their_sums() -> None:
    columns = (
        ShownColumn("message", "Message", is_about=True),
        ShownColumn("sent", "As sent", "bytes"),
        *(ShownColumn(one, one.capitalize(), "bytes") for one in ("small", "same", "large")),
    )
    rows = (("a", 900, 500, 900, 1_000), ("b", 100, 100, 100, 100), ("c", 9, None, None, None))
    picture = AnswerPicture("Bytes", "sent", across=("small", "same", "large"))
    answer = dataclasses.replace(WHO, columns=columns, shown=rows, rows=5, picture=picture)
    drawn = chart(answer)
    assert drawn is not None
    assert drawn.summary == (
        "Bytes, of 2 of 5 rows: As sent 1.00 kB; Small 600 B, 40 % less; Same 1.00 kB, the same; "
        "Large 1.10 kB, 10 % more."
    )
    assert drawn.wide.count("<rect") == 4
    assert chart(dataclasses.replace(answer, shown=rows[2:])) is None


def test_a_column_without_a_value_is_left_out_and_named() -> None:
    silent = dataclasses.replace(
        WHO, shown=tuple((*row[:5], None, None, *row[7:]) for row in WHO.shown)
    )
    shown = Page(render(dataclasses.replace(EMPTY, answers=(silent,)))).words()
    assert "Columns omitted because every value is missing: Seen, Took." in shown
    assert "Columns omitted because" not in page().words()


def test_rows_of_one_moment_are_not_over_time() -> None:
    once = dataclasses.replace(WHEN, rows=1, shown=WHEN.shown[:1], moments=WHEN.moments[:1])
    shown = Page(render(dataclasses.replace(EMPTY, answers=(once,)))).words()
    assert "Requests over time" not in shown
    assert "Requests over time" in page().words()


def test_what_is_not_shown_is_counted_and_said_where_to_find() -> None:
    words = page().words()
    assert "answers/who_sends.csv contain the first 900 of 935 rows." in words
    assert "answers/when.csv contain the same rows." in words


def test_what_was_not_seen_is_named_and_not_shown() -> None:
    words = page().words()
    assert UNSEEN.question not in words
    assert (
        "Questions that could not be answered, because the input contains no data for them: Unseen."
        in words
    )


def test_yes_and_no_take_no_room_of_texts() -> None:
    shown = render(ASKED)
    assert '<td class="flag"><bdi>yes</bdi></td>' in shown
    assert '<th scope="col" class="flag">Old</th>' in shown


def test_what_failed_is_said_with_its_reason() -> None:
    words = page().words()
    assert f"{FAILED.question} # This question could not be answered. {FAILED.reason}" in words
    assert "To compute the answer again, run flexwire answers OUT slow_ones" in words


def test_hostile_names_are_text_in_tables_and_pictures() -> None:
    assert "img" not in page().tags
    assert EVIL in page().words()


def test_answers_survive_json() -> None:
    assert render(Facts.from_json(ASKED.to_json())) == render(ASKED)


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (None, "bytes", "\u2013"),
        ("", "text", "(empty)"),
        (1234, "count", "1,234"),
        (0.5, "count", "0.5"),
        (12_345_678.9, "count", "12,345,679"),
        (10_001, "id", "10001"),
        (1500, "bytes", "1.50 kB"),
        (1500.5, "bytes", "1.50 kB"),
        (131072, "setting", "128 KiB"),
        (1500, "us", "1.50 ms"),
        (90_000_000, "us", "1 min 30 s"),
        (0.001, "share", "<1 %"),
        (False, "flag", "no"),
        (0, "moment", "1970-01-01"),
        (1_000_000, "moment", "1970-01-01 00:00:01"),
    ],
)
def test_a_value_is_written_by_what_it_is(value: object, kind: Kind, shown: str) -> None:
    assert cell(value, kind).text == shown


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"])
def test_no_cell_of_csv_begins_as_a_formula_does(begin: str) -> None:
    text = to_csv(["a"], [[f"{begin}1+1"], [[f"{begin}x", "y"]], [f"{begin}1 ".encode()]])
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    assert [row[0][0] for row in rows] == ["'"] * 3


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
TEXTS = st.text(st.sampled_from("=+-@\t\r\n\uff1d019.eE,\"' xa\u0661")) | st.text()
NUMBERS = st.from_regex(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", fullmatch=True)


@given(TEXTS | NUMBERS)
@example("-1")
@example("+1.5e-3")
@example("-1\n")
@example("-\u0661")
@example("-1+1")
def test_a_cell_is_its_text_unless_a_spreadsheet_would_run_it(text: str) -> None:
    lines = csv.reader(io.StringIO(to_csv(["a"], [[text]]), newline=""), strict=True)
    assert next(lines) == ["a"]
    [found] = next(lines)
    guarded = found != text
    assert found == f"'{text}" if guarded else found == text
    assert guarded == (text.startswith(FORMULAS) and not is_number(text))


def is_number(text: str) -> bool:
    """Return whether a string is a number in ASCII digits, according to Python."""
    try:
        float(text)
    except ValueError:
        return False
    return set(text) <= set("0123456789.eE+-")


@pytest.mark.long
@pytest.mark.slow
@given(st.lists(st.lists(TEXTS | NUMBERS, min_size=2, max_size=4)))
def test_what_a_program_reads_is_unchanged(rows: list[list[str]]) -> None:
    text = to_tool_csv(rows)
    assert [*csv.reader(io.StringIO(text, newline=""), strict=True)] == rows
    assert to_tool_csv(rows, ["a", "b"]) == f"a,b\n{text}"


def test_csv_is_as_the_rfc_says_and_figures_stay_figures() -> None:
    values = ['say "hi",\nplease', None, -5, -0.5, True, datetime(2026, 1, 2, tzinfo=UTC)]
    text = to_csv(list("abcdef"), [values])
    assert (
        text == 'a,b,c,d,e,f\r\n"say ""hi"",\nplease",,-5,-0.5,true,2026-01-02T00:00:00+00:00\r\n'
    )
