"""A plan for Kafka's own tool contains every known offset, and omitted rows are counted."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from flexwire.answers.asking.results import AnswerResult
from flexwire.answers.group_offsets import ANSWER, COLUMNS, reset_plan
from flexwire.cli.app import app
from flexwire.spark.answers import outputs
from flexwire.tables.schema import schema_of

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = schema_of(COLUMNS)
NAMES = st.text(max_size=5) | st.sampled_from(["=1+1", "-1", 'a"b', " a,b ", "a\nb", "a\rb", "5"])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "group": NAMES,
            "topic": st.sampled_from(["orders", "5", "a.b_c-d"]),
            "partition": st.integers(0, 2**31 - 1),
            "offset": st.none() | st.integers(0, 2**63 - 1),
            "pending": st.none() | st.integers(0, 2),
            "is_known": st.booleans(),
        }
    )
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.slow
@given(ROWS)
def test_each_row_is_a_line_or_counted(rows: list[dict[str, Any]]) -> None:
    plan = reset_plan(table(rows))
    left_out = plan.unknown, plan.pending, plan.unwritable
    assert plan.offsets + sum(left_out) == len(rows)
    sure = [
        one for one in rows if one["is_known"] and one["offset"] is not None and one["pending"] == 0
    ]
    assert plan.pending == sum(bool(one["pending"]) for one in rows)
    assert plan.unwritable == sum("\n" in one["group"] for one in sure)
    # Kafka's tool splits the text at newlines, and reads each line separately.
    lines = plan.text.split("\n")
    assert lines.pop() == ""
    read = [next(csv.reader([line.replace("\r", "\0")], strict=True)) for line in lines]
    expected = [
        [one["group"].replace("\r", "\0"), one["topic"], str(one["partition"]), str(one["offset"])]
        for one in sure
        if "\n" not in one["group"]
    ]
    assert sorted(read) == sorted(expected)
    assert plan.groups == len({one[0] for one in read})


def run(
    monkeypatch: pytest.MonkeyPatch,
    rows: list[dict[str, Any]],
    *given_arguments: str,
    count: int = 0,
) -> Any:
    answered = AnswerResult(ANSWER, table(rows), count or len(rows))
    monkeypatch.setattr(outputs, "stored_answers", lambda *_, **__: [answered])
    monkeypatch.setattr(outputs, "notes_of", lambda _: ())
    monkeypatch.setattr(outputs, "sampled_in", lambda _: ())
    return CliRunner().invoke(app, ["answers", "out", *given_arguments])


def known(group: str, offset: int | None = 5) -> dict[str, Any]:
    place = {"group": group, "topic": "orders", "partition": 0}
    return place | {"offset": offset, "pending": 0, "is_known": offset is not None}


def test_the_command_writes_it_and_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    rows = [known("=1+1"), known("b", None), known("c") | {"pending": 1}]
    ran = run(monkeypatch, rows, "group_offsets", "--reset-plan", str(file))
    assert ran.exit_code == 0, ran.output
    # Formulas are not escaped, because only a tool reads the file.
    assert file.read_text() == '"=1+1","orders",0,5\n'
    assert "1 offset of 1 group." in ran.output
    assert "Offsets left out: 1 unknown, 1 pending in a transaction, 0 of groups" in ran.output
    ran = run(monkeypatch, rows, "--reset-plan", str(file), "--format", "json")
    assert json.loads(ran.stdout) == {
        "file": str(file),
        "offsets": 1,
        "groups": 1,
        "unknown": 1,
        "pending": 1,
        "unwritable": 0,
    }


def test_what_is_no_plan_is_an_error_and_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "plan.csv"
    ran = run(monkeypatch, [known("b", None)], "--reset-plan", str(file))
    assert ran.exit_code == 1
    assert "left out: 1 unknown, 0 pending, 0 unwritable" in str(ran.exception)
    ran = run(monkeypatch, [known("b")], "--reset-plan", str(file), count=2)
    assert ran.exit_code == 1
    assert "the analysis kept 1 of 2 rows" in str(ran.exception)
    ran = run(monkeypatch, [known("b")], "latency", "--reset-plan", str(file))
    assert ran.exit_code == 2
    assert not file.exists()
