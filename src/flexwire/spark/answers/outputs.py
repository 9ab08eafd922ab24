"""Open the tables of an output for answers, and read and write the stored answers of an output.

```
tables/answers/NAME/NAME.parquet     as a table, in one file
answers/NAME.csv                     as CSV, to share
```

For tables that grow, the answers of each analysis are in its own directory, as
answers/NAME.parquet. An answer covers one input, because percentiles of two inputs cannot be
combined.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from flexwire.answers import ANSWERS_BY_NAME
from flexwire.answers.asking.answer import AnalysisTables, LogTables
from flexwire.answers.asking.results import (
    ALL,
    LONGEST_TEXT,
    MOST_ROWS,
    AnswerResult,
    choose_answers,
)
from flexwire.answers.asking.time_span import TimeSpan
from flexwire.arguments import DEFAULT_MEMORY, refuse
from flexwire.errors import FlexwireError
from flexwire.facts.answers import UnansweredQuestion
from flexwire.facts.facts import Facts
from flexwire.facts.units import shorten
from flexwire.measures.audit_rows import CONNECTIONS
from flexwire.spark.answers.continued import view_of
from flexwire.spark.answers.day_sums import SumsByDay
from flexwire.spark.answers.opened import OpenedOutput
from flexwire.spark.answers.used_columns import RowsAsked
from flexwire.spark.archive import with_archive
from flexwire.spark.dataframes import output_of
from flexwire.spark.dataframes import read as read_stored
from flexwire.spark.delta.layout import has_days
from flexwire.spark.failures import SPARK_ERRORS, analysis_error, explain_failures
from flexwire.spark.publishing.output import ANSWERS
from flexwire.spark.publishing.table_files import write_one_file
from flexwire.spark.session import SessionStart, session_for_job
from flexwire.spark.settings import are_small, java_for, set_for_answers
from flexwire.spark.tables import FORMAT
from flexwire.survey.surveyed_files import analysis_notes
from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.output import MARKER, MESSAGES, Output
from flexwire.tables.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path as FilePath

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from flexwire.answers.asking.answer import Answer
    from flexwire.answers.asking.time_span import TimeOrText
    from flexwire.facts.captures import SampledCaptures
    from flexwire.spark.answers.used_columns import Read
    from flexwire.storage.output_directory import OutputDirectory

_ALL_TIME: Final = TimeSpan()


def open_tables(
    spark: SparkSession,
    out: str | FilePath,
    *,
    since: TimeOrText | None = None,
    until: TimeOrText | None = None,
) -> AnalysisTables:
    """Open the tables of the analysis in ``out``, by path or URL. ``OUT/tables`` also works.

    Tables that grow contain the rows of all analyses. With ``since`` or ``until`` they contain
    only the frames, messages and records of that time, and the connections with traffic in that
    time. For growing tables, no files from other days are read. A time is a datetime with a zone,
    or an ISO 8601 string, which is read as UTC if it contains no zone. Tables of logs are always
    whole.

    Raises `FlexwireError` if there is no complete analysis, and `ArgumentError` for an invalid
    time.
    """
    return tables_of(spark, output_of(out), span=TimeSpan.parse(since, until))


def tables_of(
    spark: SparkSession,
    output: Output,
    *,
    is_small: bool = False,
    span: TimeSpan = _ALL_TIME,
    read_table: Read = read_stored,
) -> AnalysisTables:
    """Return the tables of an output, which need not be published yet.

    A small table is a single partition, so each query of it is a job with one task. ``read_table``
    reads each table.
    """
    in_span = output.on_days(span.has_day) if span else output

    def read(name: str, columns: StructType | None = None) -> DataFrame:
        is_cut = bool(span) and name != CONNECTIONS and has_days(name)
        table = read_table(spark, in_span if is_cut else output, name, narrow=columns)
        table = span.only(table) if is_cut else table
        table = view_of(output, name, table, partial(read_table, spark, output))
        if span and name == CONNECTIONS:
            table = span.seen(table)
        return table.coalesce(1) if is_small else table

    names = set(output.message_names())

    @cache
    def message(name: str) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}") if name in names else None

    def narrow(name: str, columns: StructType) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}", columns) if name in names else None

    def named(name: str) -> DataFrame | None:
        return read_table(spark, output, f"{MESSAGES}/{name}") if name in names else None

    logs = None
    if LOG_TABLES[0].place in output.names:
        logs = LogTables(*(read(log_table.place) for log_table in LOG_TABLES))
    frames, connections, records = read("frames"), read("connections"), read("records")
    # Direct reads of files would include rows outside the time span.
    opened = None if span else OpenedOutput(spark, output, records, message)
    return AnalysisTables(
        frames, connections, records, message, logs, narrow, opened=opened, is_small=is_small,
        named=named if span else None,
    )  # fmt: skip


def stored_answers(  # noqa: PLR0913 - these are the options of the command
    out: str | FilePath,
    asked: str | Iterable[str | Answer],
    labels: str | FilePath | None = None,
    *,
    master: str | None = None,
    memory: str = DEFAULT_MEMORY,
    worker_memory: str | None = None,
    span: TimeSpan = _ALL_TIME,
    sums: bool = True,
) -> list[AnswerResult]:
    """Return the chosen answers about the analysis in ``out``: see `choose_answers`.

    If an answer is stored, it is read. Spark is started only if an answer is not stored, if there
    are ``labels``, or if the tables have grown since. Answers about internal topics are always
    stored answers. "all" omits such answers if they are not stored. For tables that grow, ``notes``
    list the results that were cut between analyses. ``span`` limits the answers to a time; with a
    span no stored answer about traffic is read. Answers about logs always cover the whole logs. If
    ``sums`` is true, the daily sums of tables that grow are kept
    (`flexwire.spark.answers.day_sums`).

    Raises the errors of `open_tables` and `choose_answers`. Raises `ArgumentError` for a named
    answer about internal topics that is not stored, and `AnalysisError` if an answer fails.
    """
    chosen_answers, output = choose_answers(asked, ANSWERS_BY_NAME, labels), output_of(out)
    facts = _facts(out)
    counts = {} if facts is None else {answer.name: answer.rows for answer in facts.answers}
    stored = {
        answer.name: _stored_answer(answer, output, counts)
        for answer in chosen_answers
        if answer.asks or (labels is None and (answer.of_logs or not span))
    }
    lacking = [answer for answer in chosen_answers if answer.asks and stored[answer.name] is None]
    if lacking and asked != ALL:
        name = lacking[0].name
        of = f"an analysis that stored {name}, which cannot be computed from the tables"
        raise refuse("answers", of, out)
    chosen_answers = tuple(answer for answer in chosen_answers if answer not in lacking)
    if asked == ALL and type(output) is Output:
        chosen_answers = tuple(answer for answer in chosen_answers if not answer.of_grown)
    if all(stored.get(answer.name) for answer in chosen_answers):
        return [results for results in stored.values() if results is not None]
    is_ours = SparkSession.getActiveSession() is None
    start = SessionStart(master, memory, worker_memory)
    explain = partial(
        explain_failures, lambda: "Answering", *(start.memories() if is_ours else (None, None))
    )
    is_small = are_small(output)
    with explain():
        running = SparkSession.getActiveSession() or start.session(with_archive(java_for(output)))
    with (
        session_for_job(running, is_ours=is_ours) as spark,
        explain(),
        set_for_answers(spark, is_small=is_small),
    ):
        rows = rows_asked(spark, output, span, is_small=is_small)
        asked_of = SumsByDay(rows, span) if sums and type(output) is not Output else rows
        results = [stored.get(answer.name) or asked_of.ask(answer) for answer in chosen_answers]
        notes = () if type(output) is Output else rows.notes()
        return [replace(answer, notes=notes) for answer in results]


def rows_asked(
    spark: SparkSession, output: Output, span: TimeSpan = _ALL_TIME, *, is_small: bool
) -> RowsAsked:
    """Return the object that answers questions about an output from its rows."""

    def opened(read_table: Read) -> AnalysisTables:
        return tables_of(spark, output, is_small=is_small, span=span, read_table=read_table)

    return RowsAsked(spark, output, opened, opened(read_stored))


def sampled_in(out: str | FilePath) -> tuple[SampledCaptures, ...]:
    """Return the captures of the analysis in ``out`` that contain only a part of the traffic."""
    facts = _facts(out)
    return () if facts is None else facts.sampled


def notes_of(out: str | FilePath) -> tuple[str, ...]:
    """Return the notes to read before the answers about the analysis in ``out``."""
    facts = _facts(out)
    return () if facts is None else analysis_notes(facts)


def _facts(out: str | FilePath) -> Facts | None:
    """Return the facts of an analysis, or None if an older release wrote them."""
    try:
        return Facts.from_json(json.loads(output_of(out).read("facts.json")))
    except (ValueError, FlexwireError):
        return None


def _stored_answer(
    answer: Answer, output: Output, counts: Mapping[str, int]
) -> AnswerResult | None:
    """Return the stored answer, or None if it was cut off or contains other columns.

    Answers about internal topics cannot be computed again. The stored answers about internal topics
    are therefore returned even if they were cut off, or if an older release wrote them without the
    last columns. These columns are then null. ``counts`` contains the number of rows of each
    answer.
    """
    name = f"answers/{answer.name}"
    if type(output) is not Output or name not in output.names:
        return None
    rows, schema = output.table(name), schema_of(answer.columns)
    is_cut = len(rows) == MOST_ROWS and not answer.asks
    stored_columns = rows.schema.names
    is_older = bool(answer.asks) and stored_columns == schema.names[: len(stored_columns)]
    if is_cut or not (is_older or stored_columns == schema.names):
        return None
    for field in [*schema][len(stored_columns) :]:
        rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return AnswerResult(answer, rows.cast(schema), max(len(rows), counts.get(answer.name, 0)))


def ask_or_explain(
    answer: Answer, asked: Callable[[Answer], AnswerResult], memory: str | None = None
) -> AnswerResult | UnansweredQuestion:
    """Compute one answer, or return the reason why it failed.

    ``memory`` is Java's memory, if flexwire chose it.
    """
    try:
        return asked(answer)
    except SPARK_ERRORS as error:
        reason = str(analysis_error(answer.name, error, memory))
    except Exception as error:  # noqa: BLE001 - if an answer fails, the tables must still be published
        reason = f"{answer.name}: {type(error).__name__}: {error}"
    reason = shorten(reason, LONGEST_TEXT * 4)
    return UnansweredQuestion(answer.name, answer.question, reason, can_ask=not answer.asks)


def to_send(result: AnswerResult, part: Mapping[str, float | str]) -> AnswerResult:
    """Return an answer in its published form, with columns about the ``part`` that was captured.

    Answers about logs always cover the whole logs.
    """
    if not part or result.answer.asks or result.answer.of_logs:
        return result
    rows = result.rows
    for name, note in part.items():
        rows = rows.append_column(name, pa.repeat(note, len(rows)))
    return replace(result, rows=rows)


def write_answers(
    place: OutputDirectory,
    results: Iterable[AnswerResult],
    *,
    grows: bool,
    part: Mapping[str, float | str],
) -> None:
    """Write answers, and a marker in their directory. ``grows`` is true for tables that grow.

    ``part`` describes captures that contain only a part of the traffic (`part_columns`).
    """
    # The marker allows a later analysis to replace the directory.
    place.write(f"{ANSWERS}/{MARKER}", json.dumps({"format": FORMAT}).encode() + b"\n")
    for result in results:
        name = result.answer.name
        place.write(f"{ANSWERS}/{name}.csv", to_send(result, part).csv().encode())
        directory = ANSWERS if grows else f"tables/{ANSWERS}/{name}"
        rows = result.rows
        write_one_file(place, f"{directory}/{name}.parquet", rows.schema, rows.to_batches())
