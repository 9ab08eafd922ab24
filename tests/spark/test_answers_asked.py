"""An answer is a table, a CSV file and a part of the report. If one fails, the tables remain."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from flexwire import answers
from flexwire.answers import ANSWERS, ANSWERS_BY_NAME, LOG_ANSWERS, STATE_ANSWERS
from flexwire.answers.asking import results
from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.results import (
    AnswerResult,
    are_named,
    ask,
    choose_answers,
    find_unanswerable,
)
from flexwire.cli.app import app
from flexwire.errors import ArgumentError
from flexwire.facts.answers import ShownColumn
from flexwire.spark.analyze import Analysis, analyze
from flexwire.spark.answers import outputs, used_columns
from flexwire.spark.answers.outputs import ask_or_explain, open_tables
from flexwire.tables.schema import Column, schema_of
from tests.spark.asked import BROKEN, BUSY, LABELLED, RAISING, TALKERS, WRONG
from tests.spark.traffic import START_US, Traffic, made, request, response

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

EVIL = "=HYPERLINK(1)"


def by_name(*answers: Answer) -> dict[str, Answer]:
    return {one.name: one for one in answers}


def capture(directory: Path) -> tuple[Path, dict[str, int]]:
    """Write a capture of two clients, whose requests have the given sizes."""
    directory.mkdir()
    traffic, sent = Traffic(directory), {"tests": 0, EVIL: 0}
    connection = traffic.connect()
    beat, answer = made("HeartbeatRequest"), response(made("HeartbeatResponse"), 4, 1)
    for number, client in enumerate(("tests", EVIL, "tests")):
        payload = request(beat, 4, number, client_id=client)
        traffic.send(connection, "request", payload)
        traffic.send(connection, "response", answer[:3] + bytes([number]) + answer[4:])
        sent[client] += 4 + len(payload)
    traffic.close()
    return directory, sent


@pytest.fixture(scope="module")
def told(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Analysis, dict[str, int]]:
    files, sent = capture(tmp_path_factory.mktemp("asked") / "capture")
    out = files.parent / "out"
    answers = [TALKERS, BUSY, RAISING, WRONG, BROKEN]
    return analyze([files], out, spark=spark, answers=answers), sent


@pytest.mark.spark
def test_an_answer_is_a_table_a_csv_and_a_part_of_the_facts(
    told: tuple[Analysis, dict[str, int]],
) -> None:
    done, sent = told
    rows = [("tests", 2, sent["tests"]), (EVIL, 1, sent[EVIL])]
    table = done.output.table("answers/talkers")
    assert table.schema.equals(schema_of(TALKERS.columns))
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows
    text = done.output.read("answers/talkers.csv").decode()
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head == [one.name for one in TALKERS.columns]
    # A value that a spreadsheet would execute is prefixed with an apostrophe.
    assert lines == [["tests", "2", str(sent["tests"])], [f"'{EVIL}", "1", str(sent[EVIL])]]
    assert text.endswith("\r\n")
    talkers, busy = done.facts.answers
    assert (talkers.rows, talkers.left_out, talkers.shown) == (2, 0, tuple(rows))
    second = START_US // 10**6 * 10**6
    assert busy.shown == ((second, "Heartbeat", 3),)
    assert busy.moments == ((second, (3,)),)


@pytest.mark.spark
def test_one_that_fails_is_said_and_takes_nothing_with_it(
    told: tuple[Analysis, dict[str, int]],
) -> None:
    done, _ = told
    failed = {one.name: one.reason for one in done.facts.unanswered}
    assert set(failed) == {"raising", "wrong", "broken"}
    assert "no such thing" in failed["raising"]
    assert (
        "wrong: expected the columns client_id, requests, request_bytes, got client_id"
        in (failed["wrong"])
    )
    assert failed["broken"] == "broken: LookupError: nothing there"
    assert [note for note in done.notes if note.startswith("Not answered: ")] == list(done.notes)
    assert not (done.report.parent / "answers" / "broken.csv").exists()
    assert done.output.table("frames").num_rows == 6


@pytest.mark.long
@pytest.mark.spark
def test_one_that_is_named_and_has_no_log_is_not_passed_over(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]], tmp_path: Path
) -> None:
    assert spark is not None
    files, out = told[0].report.parent.parent / "capture", tmp_path / "out"
    command = ["analyze", str(files), "--out", str(out), "--answers", "group_state,storage,latency"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    for lacks in (
        "group_state: no log of __consumer_offsets is among the paths",
        "storage: no log segment is among the paths",
    ):
        assert f"Not answered: {lacks}" in result.output
    assert sorted(one.name for one in (out / "answers").glob("*.csv")) == ["latency.csv"]
    # With "all", the answers that the input allows are computed.
    for asked in ("all", None):
        answers = ANSWERS if asked else LOG_ANSWERS
        assert {*find_unanswerable(answers, [], are_named=are_named(asked)).values()} == {None}


@pytest.mark.spark
def test_what_is_beyond_the_bound_is_counted(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MOST_ROWS", 1)
    given = ask(TALKERS, open_tables(spark, told[0].report.parent))
    assert (given.rows.num_rows, given.count) == (1, 2)
    facts = given.facts()
    assert (facts.rows, facts.left_out, len(facts.shown)) == (2, 1, 1)


def test_texts_that_no_row_has_are_not_shown_but_for_what_rows_are_of() -> None:
    [answer] = choose_answers(["chargeback"], ANSWERS_BY_NAME)
    schema = schema_of(answer.columns)
    rows = pa.Table.from_pylist([{"requests": 1}, {"principal": "User:a", "requests": 1}], schema)
    headings = [
        [one.heading for one in AnswerResult(answer, table, len(table)).facts().columns]
        for table in (rows, rows.slice(0, 1))
    ]
    told = ["Day", "Client id", "Principal", "Topic", "Requests", "Sent", "Received", "Bytes"]
    assert headings == [told, [one for one in told if one != "Principal"]]


@pytest.mark.long
@pytest.mark.slow
def test_answers_are_files_and_each_is_imported_when_it_is_asked_for() -> None:
    room = Path(answers.__file__).parent
    assert {*ANSWERS_BY_NAME} == {one.stem for one in room.glob("*.py")} - {"__init__"}
    code = (
        "import sys\n"
        "from flexwire.answers import ANSWERS_BY_NAME\n"
        "files = {f'flexwire.answers.{one}' for one in ANSWERS_BY_NAME}\n"
        "print('pyspark' in sys.modules, len(files & {*sys.modules}))\n"
        "ANSWERS_BY_NAME['batches']\n"
        "print(*files & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False 0\nflexwire.answers.batches\n"


def test_answers_are_in_the_order_of_the_report() -> None:
    places = [one.place for one in ANSWERS]
    assert places == sorted({*places})
    # Answers from traffic come first, then those from logs, then those from the state of internal
    # topics.
    of_logs, of_state = [one.of_logs for one in ANSWERS], [bool(one.asks) for one in ANSWERS]
    assert of_state == sorted(of_state)
    assert ANSWERS[of_logs.index(True) :] == (*LOG_ANSWERS, *STATE_ANSWERS)


def test_an_answer_made_as_before_this_release_is_shown_as_before() -> None:
    plain = [Column(one.name, one.type, one.meaning) for one in TALKERS.columns]
    shown = (
        ShownColumn("request_bytes", "Sent", "bytes"),
        ShownColumn("client_id", "Client", is_about=True),
    )
    told = (TALKERS.question, TALKERS.meaning, TALKERS.advice, TALKERS.row)
    old: Any = Answer
    with pytest.warns(DeprecationWarning, match="pass arguments to Answer by keyword"):
        made = old("talkers", *told, (*plain,), TALKERS.order, shown, TALKERS.ask, TALKERS.picture)
    assert made.shown_columns() == shown
    assert made.picture == TALKERS.picture
    assert schema_of(made.columns) == schema_of(TALKERS.columns)
    with pytest.raises(TypeError, match="too many arguments, or the same argument twice"):
        old("talkers", name="talkers")


@pytest.mark.parametrize(
    ("name", "of", "kind"),
    [
        ("bytes", pa.int64(), "bytes"),
        ("mean_bytes", pa.float64(), "bytes"),
        ("lag", pa.int32(), "count"),
        ("idle_us", pa.int64(), "us"),
        ("saved_share", pa.float64(), "share"),
        ("day", pa.date32(), "moment"),
        ("is_known", pa.bool_(), "flag"),
        ("total_bytes", pa.string(), "text"),
        ("ends", pa.list_(pa.int64()), "text"),
    ],
)
def test_type_and_name_say_what_values_are(name: str, of: pa.DataType, kind: str) -> None:
    assert Column(name, of, "it", heading="It").shown().kind == kind


@pytest.mark.long
@pytest.mark.spark
def test_what_tasks_read_from_files_is_what_rows_say(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]]
) -> None:
    opened = open_tables(spark, told[0].report.parent)
    rows = replace(opened, opened=None)
    for answer in choose_answers(["headers", "sizes"], ANSWERS_BY_NAME):
        assert ask(answer, opened).rows.equals(ask(answer, rows).rows)
    # The files do not contain the frames that were left out later.
    none = replace(opened, message=lambda _: None)
    assert ask(choose_answers(["sizes"], ANSWERS_BY_NAME)[0], none).rows[
        "measured"
    ].to_pylist() == [0, 0]


@pytest.mark.spark
def test_files_say_of_a_column_that_it_has_no_other_value(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]]
) -> None:
    tables = open_tables(spark, told[0].report.parent)
    code, message = [("body", "error_code")], "HeartbeatResponse"
    assert tables.hold_only(message, code, 0)
    assert not tables.hold_only(message, code, 1)
    assert not tables.hold_only(message, [*code, ("frame_index",)], 0)
    assert not replace(tables, opened=None).hold_only(message, code, 0)
    assert tables.hold_only("FetchResponse", code, 0)  # there is no table for FetchResponse


@pytest.mark.long
@pytest.mark.spark
def test_few_rows_are_sorted_here_as_spark_orders_them(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (Column("name", pa.string(), "a name"), Column("size", pa.int64(), "a size"))
    seen = [("b", 1), ("a", None), (None, 3), ("é", 3), ("z", 3), ("", 1), ("a", 1)]
    schema = schema_of(columns)
    rows = pa.table(list(zip(*seen, strict=True)), schema=schema)
    answer = replace(
        TALKERS,
        columns=columns,
        order=("-size", "name"),
        ask=lambda _: spark.createDataFrame(rows),
    )
    tables = open_tables(spark, told[0].report.parent)
    small = replace(tables, is_small=True)
    expected = [("z", 3), ("é", 3), (None, 3), ("", 1), ("a", 1), ("b", 1), ("a", None)]
    for one in (tables, small):
        given = ask(answer, one).rows
        assert list(zip(*given.to_pydict().values(), strict=True)) == expected
    # Arrow cannot sort lists.
    lists = [["b"], ["a", "c"], [], None, ["a"], ["a", None], ["é"]]
    entity = (*columns, Column("entity", pa.list_(pa.string()), "a list"))
    wide = rows.append_column(schema_of(entity).field("entity"), pa.array(lists))
    for order in (("entity", "name"), ("-entity", "size")):
        whose = replace(
            answer, columns=entity, order=order, ask=lambda _: spark.createDataFrame(wide)
        )
        assert ask(whose, small).rows == ask(whose, tables).rows
    # If there are more rows than fit in a table, the most important ones are kept.
    monkeypatch.setattr(results, "MOST_ROWS", 2)
    assert ask(answer, small).rows["name"].to_pylist() == ["z", "é"]


@pytest.mark.spark
def test_labels_change_what_is_asked(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]]
) -> None:
    tables = open_tables(spark, told[0].report.parent)
    (plain, team) = choose_answers([TALKERS, LABELLED], {}, "teams.csv")
    assert plain == TALKERS
    given = ask_or_explain(team, lambda answer: ask(answer, tables))
    assert isinstance(given, AnswerResult)
    assert set(given.rows["client_id"].to_pylist()) == {"teams.csv"}


OURS = by_name(TALKERS, BUSY)


def test_answers_are_asked_by_name_or_given() -> None:
    assert choose_answers("all", OURS) == (TALKERS, BUSY)
    assert choose_answers("none", OURS) == ()
    assert choose_answers("talkers", OURS) == (TALKERS,)
    assert choose_answers(["busy_seconds", WRONG], OURS) == (BUSY, WRONG)


@pytest.mark.parametrize(
    ("asked", "labels", "said"),
    [
        (
            "latencies",
            None,
            "no answer is called 'latencies'; known are talkers, busy_seconds, all, none",
        ),
        ([3], None, "got 3"),
        (["talkers", TALKERS], None, "expected each name once, got 'talkers' 2 times"),
        ("all", "teams.csv", "none of the requested answers uses labels"),
    ],
)
def test_a_question_that_there_is_not_is_refused(
    asked: list[str], labels: str | None, said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        choose_answers(asked, OURS, labels)


@pytest.mark.spark
def test_what_was_answered_is_read_and_the_rest_is_asked(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark
    out, asked = told[0].report.parent, []

    def counted(answer: Answer, tables: AnalysisTables) -> AnswerResult:
        asked.append(answer.name)
        return ask(answer, tables)

    monkeypatch.setattr(used_columns, "ask", counted)
    known = by_name(TALKERS, replace(TALKERS, name="others"), LABELLED)
    monkeypatch.setattr(outputs, "ANSWERS_BY_NAME", known)
    first, second = outputs.stored_answers(out, ["talkers", "others"])
    assert asked == ["others"]
    assert first.rows.equals(second.rows)
    assert (first.count, second.count) == (2, 2)
    shown = CliRunner().invoke(app, ["answers", str(out), "talkers", "--rows", "1"])
    head, names, row, more, *_ = shown.output.splitlines()
    assert head == "Who sends most? One row for each client id."
    assert re.split("  +", names.strip()) == ["Client id", "Requests", "Bytes"]
    assert (row.split()[0], more) == ("tests", "… and 1 more row")
    text = CliRunner().invoke(app, ["answers", str(out), "talkers", "--format", "csv"])
    assert text.output.splitlines()[2].startswith(f"'{EVIL},1,")
    told_json = CliRunner().invoke(app, ["answers", str(out), "talkers", "--format", "json"])
    assert json.loads(told_json.output)["talkers"][1]["client_id"] == EVIL
    assert asked == ["others"]


@pytest.mark.spark
def test_what_is_about_several_analyses_is_asked_of_one_by_name_only(
    spark: SparkSession, told: tuple[Analysis, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark
    grown = replace(TALKERS, name="cut", of_grown=True)
    known, out = (TALKERS, grown), told[0].report.parent
    monkeypatch.setattr(outputs, "ANSWERS_BY_NAME", by_name(*known))
    for asked, names in (("all", ["talkers"]), (["cut"], ["cut"])):
        assert [one.answer.name for one in outputs.stored_answers(out, asked)] == names
        passed_over = find_unanswerable(known, [], are_named=are_named(asked))
        assert passed_over == ({"cut": None} if asked == "all" else {})


def test_what_nothing_was_seen_of_is_a_line_where_all_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = pa.table({"client_id": ["a"], "requests": [1], "request_bytes": [2]})
    by_name = {one.name: one for one in ANSWERS}
    given = [AnswerResult(TALKERS, seen, 1)] + [
        AnswerResult(by_name[name], schema_of(by_name[name].columns).empty_table(), 0)
        for name in ("latency", "lag")
    ]
    for name, value in (("stored_answers", given), ("notes_of", ()), ("sampled_in", ())):
        monkeypatch.setattr(outputs, name, lambda *_, value=value, **__: value)
    whole = CliRunner().invoke(app, ["answers", "out"])
    assert whole.output.startswith("Who sends most?")
    assert whole.output.endswith("\nNo rows: latency, lag.\n")
    named = CliRunner().invoke(app, ["answers", "out", "talkers", "latency", "lag"])
    assert "which clients send them?\n  No rows.\n" in named.output
    assert named.output.endswith("No rows; for a broker's logs, group_offsets answers it.\n\n")


def test_csv_is_of_one_answer(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["answers", str(tmp_path), "--format", "csv"])
    assert said.exit_code == 2
    assert "specify exactly one name" in said.output


@pytest.mark.spark
@pytest.mark.cluster
def test_of_delta_tables_they_are_beside_the_report_of_their_input(
    spark: SparkSession, tmp_path: Path
) -> None:
    files, sent = capture(tmp_path / "capture")
    done = analyze(
        [files], tmp_path / "out", spark=spark, answers=[TALKERS], format="delta", append=True
    )
    assert done.facts.answers[0].shown == (("tests", 2, sent["tests"]), (EVIL, 1, sent[EVIL]))
    place = done.output.place.path
    assert place is not None
    assert (place / "answers" / "talkers.csv").is_file()
    assert (place / "answers" / "talkers.parquet").is_file()
    assert ask(TALKERS, open_tables(spark, tmp_path / "out")).count == 2
