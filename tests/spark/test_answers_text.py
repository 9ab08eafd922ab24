"""On a terminal, the lines of answers fit, and answers use the same units as the report."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from flexwire.answers import ANSWERS
from flexwire.answers.asking.results import AnswerResult
from flexwire.cli.app import app
from flexwire.facts import units
from flexwire.facts.answers import ShownColumn
from flexwire.report.answer_text import WIDTH, lines
from flexwire.report.answers import cell
from flexwire.spark.answers import outputs
from flexwire.tables.schema import schema_of
from tests.each import each

if TYPE_CHECKING:
    from flexwire.answers.asking.answer import Answer

LARGE = 9_876_543_210_123
TEXTS = ["", "x", "a name of a usual length", "long " * 100, "\x1b[31mred\n\u202e", "é" * 60]


VALUES: dict[str, list[Any]] = {
    "string": TEXTS,
    "binary": [one.encode() for one in TEXTS],
    "bool": [False, True],
    "date32[day]": [date(2026, 11, 22)],
    "timestamp[us, tz=UTC]": [datetime(2026, 11, 22, 23, 59, 59, 999_999, UTC)],
    "double": [0.0, 0.5, 1e12],
    "int64": [0, 7, LARGE],
    "int32": [0, 7, 2**31 - 1],
    "int16": [0, 7, 2**15 - 1],
}


def value(kind: pa.DataType, chance: random.Random) -> Any:
    """Return a value of this type, which may be small, large, hostile or null."""
    if chance.random() < 0.1:
        return None
    if pa.types.is_list(kind):
        return [value(kind.value_type, chance) for _ in range(chance.randrange(12))]
    return chance.choice(VALUES[str(kind)])


def given(answer: Answer) -> AnswerResult:
    chance = random.Random(answer.name)
    schema = schema_of(answer.columns)
    rows = [{one.name: value(one.type, chance) for one in schema} for _ in range(30)]
    return AnswerResult(answer, pa.Table.from_pylist(rows, schema), 1_000_000)


def printed(monkeypatch: pytest.MonkeyPatch, answers: list[AnswerResult]) -> str:
    for name, told in (("stored_answers", answers), ("notes_of", ()), ("sampled_in", ())):
        monkeypatch.setattr(outputs, name, lambda *_, told=told, **__: told)
    done = CliRunner().invoke(app, ["answers", "out", *(one.answer.name for one in answers)])
    assert done.exit_code == 0, done.output
    return done.output


@each("answer", {one.name: one for one in ANSWERS})
def test_no_line_is_longer_than_a_terminal(answer: Answer) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        output = printed(monkeypatch, [given(answer)])
    assert [line for line in output.splitlines() if len(line) > WIDTH] == []
    # Each row's subject is shown, and columns for which there is no room are named.
    told = output.replace("\n", " ")
    for one in answer.shown_columns():
        assert one.heading in told


@each("answer", {one.name: one for one in ANSWERS})
def test_values_are_those_of_the_report(answer: Answer) -> None:
    columns, rows = given(answer).first(5)
    for place, one in enumerate(columns):
        _, *told = lines([one], [(row[place],) for row in rows])[0]
        for row, text in zip(rows, told, strict=True):
            expected = cell(row[place], one.kind).text
            if one.kind == "text":
                assert len(text) <= 48
            else:
                assert text.strip() == expected


def test_a_time_is_said_as_a_person_says_it() -> None:
    idle = ShownColumn("idle_us", "Idle", "us")
    assert lines([idle], [(491_771_000,), (12,), (None,)])[0] == [
        "      Idle", "8 min 12 s", "   12.0 µs", f"         {units.DASH}",
    ]  # fmt: skip


def test_columns_that_find_no_room_are_named() -> None:
    many = [ShownColumn(f"c{number}", f"Heading {number:02}", "count") for number in range(20)]
    about = ShownColumn("who", "Who", is_about=True)
    told, left_out = lines([*many, about], [(*range(20), "w" * 90)])
    assert all(len(line) <= WIDTH for line in told)
    assert told[0].rstrip().endswith("Who")
    assert left_out == [f"Heading {number:02}" for number in range(20 - len(left_out), 20)]
    assert left_out
