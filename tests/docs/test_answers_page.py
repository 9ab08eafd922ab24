"""docs/answers.md shows each answer's block, and the report can show every answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire import answers
from flexwire.answers import ANSWERS
from flexwire.report.charts import PARTS
from tests.each import each
from tests.spark.asked import BUSY, TALKERS
from tools.pages.answers import PAGE

if TYPE_CHECKING:
    from flexwire.answers.asking.answer import Answer
    from flexwire.facts.answers import Kind

# The column types that the report can show, and how the report shows each of them.
SHOWN_AS: dict[Kind, tuple[str, ...]] = {
    "text": ("string", "list<", "binary"),
    "count": ("int", "double"),
    "id": ("int",),
    "bytes": ("int", "double"),
    "us": ("int", "double"),
    "moment": ("timestamp", "date32"),
    "share": ("double",),
    "flag": ("bool",),
    "setting": ("int",),
}


def test_what_answers_the_same_of_logs_is_an_answer_of_internal_topics() -> None:
    by_name = {one.name: one for one in ANSWERS}
    said = [one.of_state for one in ANSWERS if one.of_state]
    assert said
    assert all(by_name[name].asks for name in said)


def test_every_block_of_the_page_is_in_the_order_that_the_page_promises() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for answer in ANSWERS:
        assert f"ANSWER.ordered({answer.name}(" in text
        assert f" Rows are ordered by {', '.join(f'`{one}`' for one in answer.order)}." in text


def test_no_two_answers_have_one_name_and_each_can_be_imported() -> None:
    names = [one.name for one in ANSWERS]
    assert len(names) == len({*names})
    for one in ANSWERS:
        assert one.ask.__name__ == one.name
        assert one.ask.__module__ == f"{answers.__name__}.{one.name}"


@each("answer", (*ANSWERS, TALKERS, BUSY))
def test_an_answer_is_what_the_report_can_show(answer: Answer) -> None:
    types = {one.name: one.type for one in answer.columns}
    assert len(types) == len(answer.columns)
    assert {one.removeprefix("-") for one in answer.order} <= {*types}
    assert answer.question.endswith("?")
    assert answer.meaning.endswith(".")
    assert answer.advice.endswith(".")
    for one in answer.columns:
        assert one.meaning
        assert "|" not in one.meaning + one.null
    shown = {one.name: one for one in answer.shown_columns()}
    headed = [one.name for one in answer.columns if one.heading]
    assert sorted(shown) == sorted(headed)
    # The report shows the columns in a different order from the table.
    assert list(answer.shown) != headed
    for name, column in shown.items():
        assert str(types[name]).startswith(SHOWN_AS[column.kind]), name
    assert any(one.is_about for one in answer.shown_columns())
    picture = answer.picture
    if picture is not None:
        assert {picture.value, *picture.parts, *picture.across} <= {*shown}
        assert len({one.kind for one in answer.shown_columns() if one.name in picture.across}) <= 1
        assert len(picture.parts) <= len(PARTS)
        assert picture.over is None or pa.types.is_temporal(types[picture.over])
