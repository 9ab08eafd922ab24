"""Answers about an analysis that is there: those that it has, and others asked of its tables."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from flexwire.arguments import DEFAULT_MEMORY, refuse
from flexwire.errors import FlexwireError
from flexwire.facts.answers import moment_notes
from flexwire.facts.facts import Facts
from flexwire.spark.answers import ANSWERS
from flexwire.spark.answers.asking import ALL, MOST_ROWS, Given, ask, chosen
from flexwire.spark.answers.boundaries import boundary_notes
from flexwire.spark.answers.reading import tables_of
from flexwire.spark.archive import with_archive
from flexwire.spark.failures import explained, stopped
from flexwire.spark.inputs import mark_notes
from flexwire.spark.session import Start
from flexwire.spark.settings import answering, are_small, java_for
from flexwire.spark.stored import output_of
from flexwire.tables.output import Output
from flexwire.tables.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from flexwire.facts.captures import Sampled
    from flexwire.spark.answers.answer import Answer


def answers_of(
    out: str | Path,
    asked: str | Iterable[str | Answer],
    labels: str | Path | None = None,
    *,
    master: str | None = None,
    memory: str = DEFAULT_MEMORY,
    worker_memory: str | None = None,
) -> list[Given]:
    """The answers ``asked``, as `chosen` has them, about the analysis in ``out``.

    What the analysis has answered is read; Spark starts only for what it has not, for ``labels``,
    and where the tables have grown since. Of internal topics there is what it has answered: where
    all is asked, no more. Of tables that grow, ``notes`` say what was cut between analyses. Raises
    as `open_tables` and `chosen` do, `ArgumentError` for one by name about internal topics that it
    has not answered, and `AnalysisError` where one fails.
    """
    wanted, found = chosen(asked, ANSWERS, labels), output_of(out)
    facts = _facts(out)
    counts = {} if facts is None else {one.name: one.rows for one in facts.answers}
    kept = {one.name: _kept(one, found, counts) for one in wanted if labels is None or one.asks}
    lacking = [one for one in wanted if one.asks and kept[one.name] is None]
    if lacking and asked != ALL:
        name = lacking[0].name
        of = f"an analysis that has answered {name}, since its tables have no internal topics"
        raise refuse("answers", of, out)
    wanted = tuple(one for one in wanted if one not in lacking)
    if asked == ALL and type(found) is Output:
        wanted = tuple(one for one in wanted if not one.of_grown)
    if all(kept.get(one.name) for one in wanted):
        return [given for given in kept.values() if given is not None]
    is_ours = SparkSession.getActiveSession() is None
    start = Start(master, memory, worker_memory)
    explain = partial(
        explained, lambda: "Answering", *(start.memories() if is_ours else (None, None))
    )
    is_small = are_small(found)
    with explain():
        spark = start.session(with_archive(java_for(found)))
    asking = answering(spark, is_small=is_small)
    with stopped(spark) if is_ours else nullcontext(), explain(), asking:
        tables = tables_of(spark, found, is_small=is_small)
        notes = boundary_notes(tables)
        given = [kept.get(one.name) or ask(one, tables) for one in wanted]
        return [replace(one, notes=notes) for one in given]


def sampled_in(out: str | Path) -> tuple[Sampled, ...]:
    """Which captures of the analysis in ``out`` hold a part of all that passed."""
    facts = _facts(out)
    return () if facts is None else facts.sampled


def notes_of(out: str | Path) -> tuple[str, ...]:
    """What a user should hear of the analysis in ``out`` before its answers."""
    facts = _facts(out)
    if facts is None:
        return ()
    marks = mark_notes(facts.sampled, facts.added_tags)
    return (*marks, *moment_notes(facts.answers))


def _facts(out: str | Path) -> Facts | None:
    """The facts of an analysis; None of one that an older release made."""
    try:
        return Facts.from_json(json.loads(output_of(out).read("facts.json")))
    except (ValueError, FlexwireError):
        return None


def _kept(answer: Answer, found: Output, counts: Mapping[str, int]) -> Given | None:
    """Return what the analysis has answered, unless it was cut, or has other columns.

    What was asked of internal topics cannot be asked of its tables. So it is returned where it was
    cut, and where an older release lacked the last columns: these are null. ``counts`` is how many
    rows there were of each answer.
    """
    name = f"answers/{answer.name}"
    if type(found) is not Output or name not in found.names:
        return None
    rows, schema = found.table(name), schema_of(answer.columns)
    is_cut = len(rows) == MOST_ROWS and not answer.asks
    known = rows.schema.names
    is_older = bool(answer.asks) and known == schema.names[: len(known)]
    if is_cut or not (is_older or known == schema.names):
        return None
    for one in [*schema][len(known) :]:
        rows = rows.append_column(one, pa.nulls(len(rows), one.type))
    return Given(answer, rows.cast(schema), max(len(rows), counts.get(answer.name, 0)))
