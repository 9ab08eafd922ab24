"""Choose answers, compute them for an analysis, and convert the rows to a table, CSV and facts.

Spark groups rows, so an answer usually contains few rows. If there are many, the driver receives
only a limited number of them and counts the others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.internal_logs import InternalLogs, internal_topics
from flexwire.answers.state.log import END
from flexwire.arguments import refuse, to_list
from flexwire.errors import AnalysisError, ArgumentError, short
from flexwire.facts.answers import AnswerFacts, UnansweredQuestion
from flexwire.facts.facts import rebinned
from flexwire.facts.units import microseconds_of, shorten
from flexwire.report.audit_files import plain, to_csv
from flexwire.schema.coercion import nearest
from flexwire.tables.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.log import AsOf
    from flexwire.facts.answers import ShownColumn
    from flexwire.storage.input_file import InputFile

ALL: Final = "all"
NONE: Final = "none"

MOST_ROWS: Final = 100_000
"""The maximum number of an answer's rows in its table and its CSV file. The most important rows
are kept.
"""

SHOWN_ROWS: Final = 50
"""The maximum number of an answer's rows in the facts, for the report."""

MOST_MOMENTS: Final = 240
"""The maximum number of points in time in a picture. If there are more points, adjacent ones are
added up."""

# If a string or list is longer, the facts contain only its beginning.
LONGEST_TEXT: Final = 200
_LONGEST_LIST: Final = 8
_NAME: Final = re.compile("[a-z][a-z0-9_]*")


def choose_answers(
    asked: str | Iterable[str | Answer],
    answers_by_name: Mapping[str, Answer],
    labels: str | Path | None = None,
    *,
    needs_taker: bool = True,
) -> tuple[Answer, ...]:
    """Return the chosen answers; ``asked`` is "all", "none", or a list of names and answers.

    If answers from ``answers_by_name`` are chosen by name, only these are imported. "all" returns
    all of them in the order of the report. If ``labels`` is a file, it is read immediately, for the
    answers that use labels. Raises `ArgumentError` for an unknown name, for a repeated name, and,
    with ``needs_taker``, for labels that no answer uses.
    """
    if isinstance(asked, str) and asked in {ALL, NONE}:
        selected = [*in_order(answers_by_name)] if asked == ALL else []
    else:
        listed = [asked] if isinstance(asked, str) else to_list(asked, "answers", "a list of names")
        selected = [
            answer if isinstance(answer, Answer) else _find_answer(answer, answers_by_name)
            for answer in listed
        ]
    names = [answer.name for answer in selected]
    for name in names:
        if not _NAME.fullmatch(name):
            raise refuse("answers", "a name of lowercase letters, digits and underscores", name)
        if names.count(name) > 1:
            raise ArgumentError(
                f"answers: expected each name once, got {name!r} {names.count(name)} times"
            )
    return (
        tuple(selected) if labels is None else _labelled(selected, labels, needs_taker=needs_taker)
    )


def are_named(asked: object) -> bool:
    """Return whether answers were chosen by name; such answers must not be skipped.

    >>> are_named("all"), are_named(None), are_named(["latency"])
    (False, False, True)
    """
    return asked is not None and asked not in (ALL, NONE)


def parse_names(text: str) -> str | list[str]:
    """Parse the names in a command-line option into the form that `choose_answers` accepts.

    >>> parse_names("all"), parse_names("latency, errors")
    ('all', ['latency', 'errors'])
    """
    return text if text in {ALL, NONE} else [name.strip() for name in text.split(",")]


def in_order(answers: Mapping[str, Answer]) -> tuple[Answer, ...]:
    """Return answers in the order of the report, by their place."""
    return tuple(sorted(answers.values(), key=lambda answer: answer.place))


def _find_answer(name: object, answers_by_name: Mapping[str, Answer]) -> Answer:
    if not isinstance(name, str):
        raise refuse("answers", "names of answers", name)
    answer = answers_by_name.get(name)
    if answer is None:
        names = [answer.name for answer in in_order(answers_by_name)]
        close = nearest(name, [*names, ALL, NONE])
        raise ArgumentError(f"answers: no answer is called {short(name)}; {close}")
    return answer


def _labelled(
    selected: Sequence[Answer], labels: str | Path, *, needs_taker: bool
) -> tuple[Answer, ...]:
    takers = {
        answer.name: answer.labelled(labels) for answer in selected if answer.labelled is not None
    }
    if needs_taker and not takers:
        raise ArgumentError(
            f"labels: got {labels!r}, but none of the requested answers uses labels"
        )
    return tuple(
        replace(
            answer,
            ask=takers[answer.name],
            sums=None if answer.sums is None else answer.sums.labelled(labels),
        )
        if answer.name in takers
        else answer
        for answer in selected
    )


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The result of an answer: its most important rows, in order, and the ``count`` of all rows.

    ``notes`` are sentences that a reader of the rows should know.
    """

    answer: Answer
    rows: pa.Table
    count: int
    notes: tuple[str, ...] = ()

    def csv(self) -> str:
        """Return the rows as CSV."""
        batches = (
            zip(*batch.to_pydict().values(), strict=True) for batch in self.rows.to_batches()
        )
        return to_csv(self.rows.column_names, (row for batch in batches for row in batch))

    def facts(self, as_of: str = "") -> AnswerFacts:
        """Return the facts for the report, with the state at ``as_of`` (default: at the end)."""
        answer = self.answer
        shown, rows = self.first(SHOWN_ROWS)
        return AnswerFacts(
            answer.name,
            answer.question,
            answer.meaning,
            answer.advice,
            shown,
            answer.picture,
            self.count,
            rows,
            self.count - len(self.rows),
            self._moments(),
            as_of if answer.asks else "",
        )

    def first(self, most: int) -> tuple[tuple[ShownColumn, ...], tuple[tuple[Any, ...], ...]]:
        """Return the columns to show, and the first rows, with values in the form of the facts.

        A string column that is null in all rows is not shown, unless it identifies the rows.
        """
        shown = tuple(
            shown_column
            for shown_column in self.answer.shown_columns()
            if self._is_seen(shown_column)
        )
        names = [column.name for column in shown]
        first = self.rows.select(names).slice(0, most).to_pydict()
        rows = zip(*first.values(), strict=True)
        return shown, tuple(tuple(map(_fact_value, row)) for row in rows)

    def _is_seen(self, column: ShownColumn) -> bool:
        """Return whether to show a column; a string column that is always null is not shown."""
        values = self.rows.column(column.name)
        return column.kind != "text" or column.is_about or values.null_count < len(values)

    def _moments(self) -> tuple[tuple[int, tuple[float, ...]], ...]:
        picture = self.answer.picture
        if picture is None or picture.over is None:
            return ()
        values = picture.parts or (picture.value,)
        columns = self.rows.select([picture.over, *values]).to_pydict()
        summed: defaultdict[int, list[float]] = defaultdict(lambda: [0] * len(values))
        for moment, *row in zip(*columns.values(), strict=True):
            if moment is not None:
                sums = summed[_fact_value(moment)]
                sums[:] = [before + (value or 0) for before, value in zip(sums, row, strict=True)]
        return tuple((at, tuple(sums)) for at, sums in sorted(_add_up_neighbours(summed).items()))


def _add_up_neighbours(summed: dict[int, list[float]]) -> dict[int, list[float]]:
    """Combine neighboring points in time until there are few enough."""
    moments = sorted(summed)
    if len(moments) <= MOST_MOMENTS:
        return summed
    step = min(b - a for a, b in pairwise(moments))
    return rebinned({moment: summed[moment] for moment in moments}, step, MOST_MOMENTS)[1]


def _fact_value(value: Any) -> Any:
    """Return a value for the facts: long strings and lists are cut, times are in microseconds."""
    if isinstance(value, datetime):
        return microseconds_of(value)
    if isinstance(value, date):
        return _fact_value(datetime.combine(value, time(), UTC))
    value = plain(value)
    if isinstance(value, str):
        return shorten(value, LONGEST_TEXT)
    if isinstance(value, list):
        more = len(value) - _LONGEST_LIST
        first_elements = [_fact_value(element) for element in value[:_LONGEST_LIST]]
        return tuple([*first_elements, f"and {more:,} more"] if more > 0 else first_elements)
    return value


def ask(answer: Answer, tables: AnalysisTables) -> AnswerResult:
    """Compute one answer; errors from Spark are raised unchanged."""
    rows_asked = answer.ask(tables)
    schema = schema_of(answer.columns)
    if rows_asked.columns != schema.names:
        raise AnalysisError(
            f"{answer.name}: expected the columns {', '.join(schema.names)}, got "
            f"{', '.join(rows_asked.columns)}"
        )
    most = max(MOST_ROWS, answer.most_rows)
    if tables.is_small:
        # Spark compiles every sort, which takes longer than sorting a few rows here.
        rows = rows_asked.limit(most + 1).toArrow().cast(schema)
        if len(rows) <= most:
            return AnswerResult(answer, answer.sorted(rows), len(rows))
    rows = answer.ordered(rows_asked).limit(most + 1).toArrow().cast(schema)
    if len(rows) <= most:
        return AnswerResult(answer, rows, len(rows))
    return AnswerResult(answer, rows.slice(0, most), rows_asked.count())


def find_unanswerable(
    answers: Sequence[Answer], files: Sequence[InputFile], *, are_named: bool
) -> dict[str, UnansweredQuestion | None]:
    """Return the answers that cannot be computed because the input lacks the necessary logs.

    If ``are_named`` is true, the result contains a reason for each of these answers. Otherwise, the
    answers are skipped. Answers about several analyses are also skipped, because this is a single
    analysis.
    """
    internal = internal_topics(files)
    unanswerable: dict[str, UnansweredQuestion | None] = {}
    for answer in answers:
        if answer.of_grown and not are_named:
            unanswerable[answer.name] = None
            continue
        if answer.asks and not internal.intersection(answer.asks):
            lacks = f"no log of {' or '.join(answer.asks)} is among the paths"
        elif answer.of_logs and not files:
            lacks = "no log segment is among the paths"
        else:
            continue
        unanswered = UnansweredQuestion(
            answer.name, answer.question, f"{answer.name}: {lacks}", can_ask=False
        )
        unanswerable[answer.name] = unanswered if are_named else None
    return unanswerable


@contextmanager
def with_internal(
    tables: AnalysisTables, spark: SparkSession, files: Sequence[InputFile], as_of: AsOf = END
) -> Iterator[AnalysisTables]:
    """Yield the tables together with the internal topics among these log files."""
    if tables.logs is None or not internal_topics(files):
        yield tables
        return
    internal = InternalLogs(spark, files, tables.logs.batches, as_of)
    try:
        yield replace(tables, internal=internal)
    finally:
        internal.release()
