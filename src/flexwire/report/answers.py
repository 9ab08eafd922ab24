"""The answers in the report, each with a picture, a table and advice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from flexwire.facts import units
from flexwire.report import charts
from flexwire.report.charts import bars
from flexwire.report.tables import (
    ROW_LIMIT,
    ReportCell,
    ReportColumn,
    ReportTable,
    build,
    number,
    size,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flexwire.facts.answers import (
        AnswerFacts,
        AnswerPicture,
        Kind,
        ShownColumn,
        UnansweredQuestion,
    )
    from flexwire.facts.facts import Facts
    from flexwire.report.tables import Kind as TableKind

_MINUTE_US: Final = 60_000_000
_DAY_US: Final = 86_400_000_000
_LEAST_MOMENTS: Final = 2
_LABEL: Final = 34
# Numbers of at least this value are shown without decimals.
_PLAIN: Final = 1000
_SET_AS: Final[dict[Kind, TableKind]] = {"text": "text", "flag": "flag", "moment": "moment"}
_NOT_KNOWN: Final = ReportCell(units.DASH, "not known")


@dataclass(frozen=True, slots=True)
class AnswerSection:
    """The section of one answer. If the answer failed, the section contains only the reason."""

    name: str
    label: str
    question: str
    meaning: str = ""
    advice: str = ""
    chart: charts.Chart | None = None
    caption: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    table: ReportTable | None = None
    whole: str = ""
    failed: str = ""
    as_of: str = ""
    remarks: tuple[str, ...] = ()
    can_ask: bool = True


def parts(
    facts: Facts, pictures: Mapping[str, charts.Chart | None], rows: int = ROW_LIMIT
) -> list[AnswerSection]:
    """Return the sections, in the order of the answers. Answers without rows have no section.

    ``pictures`` contains the results of `chart`, keyed by name. Tables contain at most ``rows``
    rows.
    """
    said = {"header_tags": facts.added_tags.sentences}
    return [
        *(
            replace(_part(answer, pictures[answer.name], rows), remarks=said.get(answer.name, ()))
            for answer in facts.answers
            if answer.rows
        ),
        *(_failed(question) for question in facts.unanswered),
    ]


def chart(answer: AnswerFacts) -> charts.Chart | None:
    """Return the picture of an answer, or None if there is nothing to draw."""
    picture = answer.picture
    if picture is not None and picture.across:
        return _across_chart(answer, picture)
    return _time_chart(answer) or _bar_chart(answer)


def unseen(facts: Facts) -> str:
    """Return the names of the answers without rows."""
    return ", ".join(_label(answer.name) for answer in facts.answers if not answer.rows)


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _failed(question: UnansweredQuestion) -> AnswerSection:
    return AnswerSection(
        question.name,
        _label(question.name),
        question.question,
        failed=question.reason,
        can_ask=question.can_ask,
    )


def _part(answer: AnswerFacts, picture: charts.Chart | None, rows: int) -> AnswerSection:
    columns, silent = _told_columns(answer)
    table = _table(answer, columns).first(rows)
    return AnswerSection(
        answer.name,
        _label(answer.name),
        answer.question,
        answer.meaning,
        answer.advice,
        picture,
        "" if picture is None else _title(answer),
        _legend(answer),
        replace(table, more=0),
        _whole(answer, len(table.rows), silent),
        as_of=answer.as_of,
    )


def _title(answer: AnswerFacts) -> str:
    """Return the title of a picture.

    If all rows have the same time, the title does not include "over time".
    """
    picture = answer.picture
    if picture is None:
        return ""
    return picture.title if _moves(answer) else picture.title.removesuffix(" over time")


def _told_columns(answer: AnswerFacts) -> tuple[list[int], list[str]]:
    """Return the indexes of columns that have values, and the headings of columns that do not."""
    shown, silent = [0], []
    for place, column in list(enumerate(answer.columns))[1:]:
        if any(row[place] not in (None, [], ()) for row in answer.shown):
            shown.append(place)
        else:
            silent.append(column.heading)
    return shown, silent


def _whole(answer: AnswerFacts, shown: int, silent: Sequence[str]) -> str:
    """Return a sentence that states where the omitted rows are and which columns are empty."""
    name = answer.name
    kept_rows, of = answer.rows - answer.left_out, units.plural(answer.rows, "row")
    if answer.left_out:
        has = f"contain the first {units.count(kept_rows)} of {of}"
    elif shown < answer.rows:
        has = f"contain all {of}, of which these are the first {shown}"
    else:
        has = "contain the same rows"
    empty = (
        f" Columns omitted because every value is missing: {', '.join(silent)}." if silent else ""
    )
    return f"The table answers/{name} and answers/{name}.csv {has}.{empty}"


def _table(answer: AnswerFacts, places: Sequence[int]) -> ReportTable:
    shown = [(place, answer.columns[place]) for place in places]
    columns = [
        ReportColumn(column.heading, _SET_AS.get(column.kind, "number")) for _, column in shown
    ]
    return build(
        f"{_label(answer.name)}, most important first",
        columns,
        answer.shown,
        lambda row: [cell(row[place], column.kind) for place, column in shown],
    )


def cell(value: Any, kind: Kind) -> ReportCell:
    """Return the table cell for a value of a given kind."""
    if value is None:
        return _NOT_KNOWN
    if kind == "text":
        return text(_words(value)) if value != "" else ReportCell("(empty)")
    if kind == "flag":
        return ReportCell("yes" if value else "no")
    if kind in _WHOLE and isinstance(value, int):
        return _WHOLE[kind](value)
    return ReportCell(write(value, kind), _exact(value, kind), value)


def _id(value: int) -> ReportCell:
    return ReportCell(str(value), sort=value)


_WHOLE: Final[dict[Kind, Callable[[int], ReportCell]]] = {"id": _id, "count": number, "bytes": size}


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def write(value: float, kind: Kind) -> str:
    """Return a number in human-readable form."""
    if kind == "bytes":
        return units.human_bytes(value)
    if kind == "setting":
        return units.set_bytes(int(value))
    if kind == "us":
        return units.span(int(value)) if value >= _MINUTE_US else units.duration_ms(value / 1000)
    if kind == "share":
        return units.share(value)
    if kind == "moment":
        moment = units.moment(int(value))
        return moment if value % _DAY_US else moment.partition(" ")[0]
    is_plain = float(value).is_integer() or abs(value) >= _PLAIN
    return units.count(value) if is_plain else f"{value:,.3g}"


def _exact(value: float, kind: Kind) -> str:
    if kind == "us":
        return f"{value:,} \u00b5s"
    if kind == "moment":
        return units.moment(int(value), exact=True)
    return f"{value:.6g}" if kind == "share" else f"{value:,}"


def _drawn(answer: AnswerFacts) -> tuple[str, ...]:
    picture = answer.picture
    return () if picture is None else (picture.parts or (picture.value,))


def _column(answer: AnswerFacts, name: str) -> ShownColumn | None:
    return next((column for column in answer.columns if column.name == name), None)


def _legend(answer: AnswerFacts) -> tuple[tuple[str, str], ...]:
    """Return the color and the name of each part if there are several parts."""
    names = _drawn(answer)
    if len(names) < 2:  # noqa: PLR2004 - a single part needs no legend
        return ()
    columns = [_column(answer, name) for name in names]
    headings = [
        name if column is None else column.heading
        for column, name in zip(columns, names, strict=True)
    ]
    return tuple(zip(charts.PARTS, headings, strict=False))


def _bar_chart(answer: AnswerFacts) -> charts.Chart | None:
    picture, names = answer.picture, [column.name for column in answer.columns]
    if picture is None or not {picture.value, *picture.parts} <= {*names}:
        return None
    kind = answer.columns[names.index(picture.value)].kind
    at, of = names.index(picture.value), [names.index(name) for name in _drawn(answer)]
    rows = [row for row in answer.shown if row[at]][: charts.BAR_LIMIT]
    label = _labelling(answer.columns)
    drawn = [
        charts.Bar(label(row), tuple(row[place] or 0 for place in of), write(row[at], kind))
        for row in rows
    ]
    drawn = [bar for bar in drawn if sum(bar.parts) > 0]
    if not drawn:
        return None
    words = "; ".join(f"{bar.label} {bar.value}" for bar in drawn)
    all_rows = units.count(answer.rows)
    of_all = "" if len(drawn) == answer.rows else f", {len(drawn)} of {all_rows} rows"
    return bars(f"{_title(answer)}{of_all}: {words}.", drawn)


def _across_chart(answer: AnswerFacts, picture: AnswerPicture) -> charts.Chart | None:
    """Return a chart with one bar per column: its sum over the rows with values in all columns."""
    columns = [
        (place, column)
        for name in (picture.value, *picture.across)
        for place, column in enumerate(answer.columns)
        if column.name == name
    ]
    rows = [row for row in answer.shown if all(row[place] is not None for place, _ in columns)]
    sums = [sum(row[place] for row in rows) for place, _ in columns]
    if len(columns) <= len(picture.across) or not sums[0]:
        return None
    shares = [
        f"{write(total, column.kind)}{_beside(total, sums[0]) if place else ''}"
        for place, (total, (_, column)) in enumerate(zip(sums, columns, strict=True))
    ]
    drawn = [
        charts.Bar(column.heading, (total,), value)
        for (_, column), total, value in zip(columns, sums, shares, strict=True)
    ]
    of_all = f", of {len(rows)} of {units.count(answer.rows)} rows" * (len(rows) < answer.rows)
    words = "; ".join(f"{bar.label} {bar.value}" for bar in drawn)
    return bars(f"{picture.title}{of_all}: {words}.", drawn)


def _beside(total: float, whole: float) -> str:
    if total == whole:
        return ", the same"
    return f", {units.share(abs(total - whole) / whole)} {'less' if total < whole else 'more'}"


def _labelling(columns: Sequence[ShownColumn]) -> Callable[[Sequence[Any]], str]:
    about = [place for place, column in enumerate(columns) if column.is_about] or [0]
    kinds = [columns[place].kind for place in about]

    def label(row: Sequence[Any]) -> str:
        words = [
            cell(row[place], kind).text
            for place, kind in zip(about, kinds, strict=True)
            if row[place] is not None
        ]
        if not words:
            return "not known"
        return " \u00b7 ".join(_cut(word) for word in words)

    return label


def _cut(word: str) -> str:
    """Shorten a word to leave room for others.

    The end of the word is kept, because it is often more informative than the middle.
    """
    half = _LABEL // 2
    return word if len(word) <= _LABEL else f"{word[:half]}{units.ELLIPSIS}{word[1 - half :]}"


def _moves(answer: AnswerFacts) -> bool:
    """Return whether to draw values over time; those from a single moment are drawn by row."""
    picture = answer.picture
    return (
        picture is not None and picture.over is not None and len(answer.moments) >= _LEAST_MOMENTS
    )


def _time_chart(answer: AnswerFacts) -> charts.Chart | None:
    picture, moments = answer.picture, dict(answer.moments)
    if picture is None or not _moves(answer):
        return None
    step = min(later - sooner for sooner, later in pairwise(sorted(moments)))
    column = _column(answer, picture.value)
    kind = "count" if column is None else column.kind
    most = max(moments, key=lambda at: sum(moments[at]))
    summary = (
        f"{picture.title}, at {units.plural(len(moments), 'moment')}; peak at "
        f"{units.moment(most)} UTC: {write(sum(moments[most]), kind)}."
    )
    unit = "B" if kind == "bytes" else ""
    return charts.draw(
        summary,
        f"answer-{answer.name}",
        lambda room: charts.time_spec(charts.rebin(moments, step, room.buckets), room, unit),
    )
