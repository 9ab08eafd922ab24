"""`flexwire answers`: what operators ask, of the tables of an analysis that is there."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.loudness import note
from flexwire.cli.options import (
    labels_option,
    master_option,
    memory_option,
    worker_memory_option,
)
from flexwire.cli.standard_input import plain_name, takes_standard_input
from flexwire.cli.terminal import write_data
from flexwire.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from flexwire.spark.answers.asking import Given

_WIDEST = 48


@click.command()
@click.argument("out")
@click.argument("names", nargs=-1)
@click.option(
    "--format",
    type=click.Choice(["text", "csv", "json", "table"]),
    default="text",
    show_default=True,
    help="Tables for the terminal, or all rows as CSV or JSON; text was called table.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many rows of each a table for the terminal has.",
)
@labels_option
@master_option
@memory_option
@worker_memory_option
@takes_standard_input(labels=plain_name)
def answers(
    *,
    out: str,
    names: tuple[str, ...],
    format: str,  # noqa: A002 - the option's own name
    rows: int,
    labels: str | None,
    master: str | None,
    memory: str,
    worker_memory: str | None,
) -> None:
    """Answer questions about the traffic in OUT, the output of an analysis.

    NAMES are those that docs/answers.md has; by default all of them. What the analysis has answered
    is printed as it was; all else, and with --labels and of Delta tables everything, is asked of
    the tables on Spark, and written nowhere.
    """
    from flexwire.report.sampled_facts import part_columns
    from flexwire.spark.answers.again import answers_of, notes_of, sampled_in
    from flexwire.spark.answers.asking import ALL
    from flexwire.spark.answers.writing import to_send

    if format == "csv" and len(names) != 1:
        raise click.UsageError("CSV has the columns of one answer, so name one")
    given = answers_of(
        out, names or ALL, labels, master=master, memory=memory, worker_memory=worker_memory
    )
    for told in notes_of(out):
        note(told)
    part = part_columns(sampled_in(out))
    given = [to_send(one, part) for one in given]
    if format == "json":
        print(json.dumps({one.answer.name: _rows(one.rows) for one in given}, indent=1))
    elif format == "csv":
        write_data(given[0].csv())
    else:
        # Of all that can be asked, most may have nothing: what was asked by name says so itself.
        empty = [] if names else [one.answer.name for one in given if not one.count]
        for one in given:
            if one.answer.name not in empty:
                _print(one, rows)
        if empty:
            print(f"Nothing was seen of {', '.join(empty)}.")


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    from flexwire.report.spreadsheet import plain

    return [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _print(given: Given, most: int) -> None:
    from flexwire.report.spreadsheet import text_of
    from flexwire.report.units import plural

    shown = given.rows.slice(0, most)
    columns = [
        [name, *(_fitting(text_of(value)) for value in column.to_pylist())]
        for name, column in zip(shown.column_names, shown.columns, strict=True)
    ]
    widths = [max(map(len, column)) for column in columns]
    if not given.count:
        print(given.answer.question)
        of_state = given.answer.of_state
        elsewhere = given.answer.elsewhere or (f"{of_state} answers it" if of_state else "")
        elsewhere = elsewhere and f"; of a broker's logs {elsewhere}"
        print(f"  Nothing was seen of it{elsewhere}.\n")
        return
    row = given.answer.row.removeprefix("One row ").removesuffix(".")
    print(f"{given.answer.question} A row for each {re.sub('^an? ', '', row)}.")
    for line in zip(*columns, strict=True):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
    more = given.count - len(shown)
    print(f"… and {plural(more, 'more row')}\n" if more else "")


def _fitting(text: str) -> str:
    told = printable(text)
    return told if len(told) <= _WIDEST else f"{told[: _WIDEST - 1]}…"
