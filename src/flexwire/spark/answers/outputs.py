"""Outputs of analyses, as answers have them: their tables opened, their answers read and written.

```
tables/answers/NAME/NAME.parquet     as a table, in one file
answers/NAME.csv                     as CSV, to send round
```
With Delta tables both are in the directory of the analysis, the table as answers/NAME.parquet: it
is about one input, and percentiles of two cannot be added up.
"""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
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
    ask,
    choose_answers,
)
from flexwire.answers.boundaries import boundary_notes
from flexwire.arguments import DEFAULT_MEMORY, refuse
from flexwire.errors import FlexwireError
from flexwire.facts.answers import UnansweredQuestion, moment_notes
from flexwire.facts.facts import Facts
from flexwire.facts.units import shorten
from flexwire.spark.archive import with_archive
from flexwire.spark.dataframes import of_files, output_of
from flexwire.spark.dataframes import read as read_stored
from flexwire.spark.failures import SPARK_ERRORS, analysis_error, explain_failures, stop_at_end
from flexwire.spark.inputs import mark_notes
from flexwire.spark.publishing.output import ANSWERS
from flexwire.spark.publishing.table_files import write_one_file
from flexwire.spark.session import SessionStart
from flexwire.spark.settings import are_small, java_for, set_for_answers
from flexwire.spark.tables import FORMAT
from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.output import MARKER, MESSAGES, Output
from flexwire.tables.schema import schema_of
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path as FilePath

    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from flexwire.answers.asking.answer import Answer, Task
    from flexwire.facts.captures import SampledCaptures
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.tables.parquet import ValueRanges
    from flexwire.tables.spec_places import Path

# How Parquet calls what is in a list, in its specification and as Arrow once did.
_IN_LISTS: Final = re.compile(r"\.list\.(?:element|item)(?=\.|$)")


@dataclass(frozen=True, slots=True)
class OpenedOutput:
    """The output that tables were opened from, and the tables as they were then."""

    spark: SparkSession
    found: Output
    records: DataFrame
    message: Callable[[str], DataFrame | None]

    def message_names(self) -> list[str]:
        """Return the messages that have a table."""
        return self.found.message_names()

    def of_files(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        task: Task,
        schema: pa.Schema,
        *,
        only: ValueRanges | None = None,
    ) -> DataFrame:
        """Return what ``task`` makes of these columns of the files of these tables."""
        return of_files(self.spark, self.found, names, columns, task, schema, only=only)

    def hold_only(self, name: str, paths: Collection[Path], value: object) -> bool:
        """Whether all values of columns of a table are this one or null, as its files say."""
        if name not in self.found.names:
            return True
        column_paths = {".".join(path) for path in paths}
        footers = (part.metadata for part in self.found.dataset(name).get_fragments())
        groups = (
            footer.row_group(number)
            for footer in footers
            for number in range(footer.num_row_groups)
        )
        return all(_hold_only(group, column_paths, value) for group in groups)


def _hold_only(group: pq.RowGroupMetaData, column_paths: set[str], value: object) -> bool:
    """Whether a row group has all the columns, and says it of them."""
    columns = map(group.column, range(group.num_columns))
    named = {_IN_LISTS.sub("", column.path_in_schema): column for column in columns}
    return column_paths <= named.keys() and all(
        _is_only(named[path], value) for path in column_paths
    )


def _is_only(column: pq.ColumnChunkMetaData, value: object) -> bool:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        # Without any, or all null.
        return bool(column.num_values == (0 if statistics is None else statistics.null_count))
    return bool(statistics.min == statistics.max == value)


def open_tables(spark: SparkSession, out: str | FilePath) -> AnalysisTables:
    """The tables of the analysis in ``out``, by path or URL; ``OUT/tables`` will do.

    Of Delta tables they are all analyses that are in. Raises `FlexwireError` where there is no
    complete analysis.
    """
    return tables_of(spark, output_of(out))


def tables_of(spark: SparkSession, output: Output, *, is_small: bool = False) -> AnalysisTables:
    """The tables of an output that was found, or is not published yet.

    Small ones are one partition each, and what is asked of them is a job of one task.
    """

    def read(name: str, columns: StructType | None = None) -> DataFrame:
        table = _read(spark, output, name, columns)
        return table.coalesce(1) if is_small else table

    names = set(output.message_names())

    @cache
    def message(name: str) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}") if name in names else None

    def narrow(name: str, columns: StructType) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}", columns) if name in names else None

    logs = None
    if LOG_TABLES[0].place in output.names:
        logs = LogTables(*(read(log_table.place) for log_table in LOG_TABLES))
    frames, connections, records = read("frames"), read("connections"), read("records")
    opened = OpenedOutput(spark, output, records, message)
    return AnalysisTables(
        frames, connections, records, message, logs, narrow, opened=opened, is_small=is_small
    )


def _read(
    spark: SparkSession, output: Output, name: str, columns: StructType | None = None
) -> DataFrame:
    schema = output.schema(name)
    # Of Delta tables some files count, and not others beside them; in a store it has no keys.
    if type(output) is not Output or output.place.path is None:
        return read_stored(spark, output, name, schema)
    # Spark's own reader of Parquet reads only the columns that an answer names.
    return spark.read.schema(columns or spark_schema(schema)).parquet(
        output.where(f"tables/{name}")
    )


def stored_answers(
    out: str | FilePath,
    asked: str | Iterable[str | Answer],
    labels: str | FilePath | None = None,
    *,
    master: str | None = None,
    memory: str = DEFAULT_MEMORY,
    worker_memory: str | None = None,
) -> list[AnswerResult]:
    """The answers ``asked``, as `choose_answers` has them, about the analysis in ``out``.

    What the analysis has answered is read; Spark starts only for what it has not, for ``labels``,
    and where the tables have grown since. Of internal topics there is what it has answered: where
    all is asked, no more. Of tables that grow, ``notes`` say what was cut between analyses. Raises
    as `open_tables` and `choose_answers` do, `ArgumentError` for one by name about internal topics
    that it has not answered, and `AnalysisError` where one fails.
    """
    chosen_answers, output = choose_answers(asked, ANSWERS_BY_NAME, labels), output_of(out)
    facts = _facts(out)
    counts = {} if facts is None else {answer.name: answer.rows for answer in facts.answers}
    stored = {
        answer.name: _stored_answer(answer, output, counts)
        for answer in chosen_answers
        if labels is None or answer.asks
    }
    lacking = [answer for answer in chosen_answers if answer.asks and stored[answer.name] is None]
    if lacking and asked != ALL:
        name = lacking[0].name
        of = f"an analysis that has answered {name}, since its tables have no internal topics"
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
        spark = start.session(with_archive(java_for(output)))
    asking = set_for_answers(spark, is_small=is_small)
    with stop_at_end(spark) if is_ours else nullcontext(), explain(), asking:
        tables = tables_of(spark, output, is_small=is_small)
        notes = boundary_notes(tables)
        results = [stored.get(answer.name) or ask(answer, tables) for answer in chosen_answers]
        return [replace(answer, notes=notes) for answer in results]


def sampled_in(out: str | FilePath) -> tuple[SampledCaptures, ...]:
    """Which captures of the analysis in ``out`` hold a part of all that passed."""
    facts = _facts(out)
    return () if facts is None else facts.sampled


def notes_of(out: str | FilePath) -> tuple[str, ...]:
    """What a user should hear of the analysis in ``out`` before its answers."""
    facts = _facts(out)
    if facts is None:
        return ()
    marks = mark_notes(facts.sampled, facts.added_tags)
    return (*marks, *moment_notes(facts.answers))


def _facts(out: str | FilePath) -> Facts | None:
    """The facts of an analysis; None of one that an older release made."""
    try:
        return Facts.from_json(json.loads(output_of(out).read("facts.json")))
    except (ValueError, FlexwireError):
        return None


def _stored_answer(
    answer: Answer, output: Output, counts: Mapping[str, int]
) -> AnswerResult | None:
    """Return what the analysis has answered, unless it was cut, or has other columns.

    What was asked of internal topics cannot be asked of its tables. So it is returned where it was
    cut, and where an older release lacked the last columns: these are null. ``counts`` is how many
    rows there were of each answer.
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
    answer: Answer, tables: AnalysisTables, memory: str | None = None
) -> AnswerResult | UnansweredQuestion:
    """Ask one answer; where that fails, say so. ``memory`` is what we gave Java, if we did."""
    try:
        return ask(answer, tables)
    except SPARK_ERRORS as error:
        reason = str(analysis_error(answer.name, error, memory))
    except Exception as error:  # noqa: BLE001 - whatever fails in one, the tables are not lost by it
        reason = f"{answer.name}: {type(error).__name__}: {error}"
    reason = shorten(reason, LONGEST_TEXT * 4)
    return UnansweredQuestion(answer.name, answer.question, reason, can_ask=not answer.asks)


def to_send(result: AnswerResult, part: Mapping[str, float | str]) -> AnswerResult:
    """An answer as it is sent round: where it is about a ``part`` of what passed, rows say so.

    Answers of logs are about all that the logs have.
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
    """Write them, and whose their directory is; ``grows`` where the tables are Delta's.

    ``part`` is what is said of captures that do not hold all that passed (`part_columns`).
    """
    # What has it, a later analysis may replace.
    place.write(f"{ANSWERS}/{MARKER}", json.dumps({"format": FORMAT}).encode() + b"\n")
    for result in results:
        name = result.answer.name
        place.write(f"{ANSWERS}/{name}.csv", to_send(result, part).csv().encode())
        directory = ANSWERS if grows else f"tables/{ANSWERS}/{name}"
        rows = result.rows
        write_one_file(place, f"{directory}/{name}.parquet", rows.schema, rows.to_batches())
