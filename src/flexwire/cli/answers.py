"""`flexwire answers`: answer operators' questions from the tables of an analysis."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import (
    labels_option,
    master_option,
    memory_option,
    worker_memory_option,
)
from flexwire.cli.standard_input import plain_name, takes_standard_input
from flexwire.cli.terminal import note, print_line, write_data

if TYPE_CHECKING:
    import pyarrow as pa

    from flexwire.answers.asking.results import AnswerResult


@click.command()
@click.argument("out")
@click.argument("names", nargs=-1)
@click.option(
    "--format",
    type=click.Choice(["text", "csv", "json", "table"]),
    default="text",
    show_default=True,
    help="The output format. Text shows the columns and units of the report, in lines of up to 120 "
    'characters. CSV and JSON include all rows and columns. "table" is the old name for text.',
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many rows of each answer to print in text output.",
)
@click.option(
    "--reset-plan",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the committed offsets of groups to this file, in the format that "
    "'kafka-consumer-groups --reset-offsets --from-file' reads. Offsets that are unknown or "
    "pending in a transaction are omitted and counted. Only with group_offsets.",
)
@click.option(
    "--since",
    metavar="TIME",
    help=(
        "Cover only traffic captured at or after this time, such as 2026-11-22T10:00Z. A time "
        "without a zone is UTC. For Delta and Iceberg tables, files of earlier days are not read. "
        "This option does not affect answers about logs."
    ),
)
@click.option(
    "--until",
    metavar="TIME",
    help="Cover only traffic captured before this time, in the same format as --since.",
)
@click.option(
    "--no-sums",
    is_flag=True,
    help="Compute the answers from all rows. Without this option, flexwire stores the daily sums "
    "of Delta and Iceberg tables in OUT/sums, and reuses a day's sums until the files of that day "
    "change.",
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
    format: str,  # noqa: A002 - `format` is the option's name
    rows: int,
    reset_plan: Path | None,
    since: str | None,
    until: str | None,
    no_sums: bool,
    labels: str | None,
    master: str | None,
    memory: str,
    worker_memory: str | None,
) -> None:
    """Answer questions about the traffic in OUT, the output of an analysis.

    docs/answers.md lists the NAMES. Without NAMES, the command prints all answers. If the analysis
    stored an answer, the command prints the stored answer. The command uses Spark to compute all
    other answers from the tables, and does not store them. With --labels, --since or --until, and
    for Delta and Iceberg tables, the command computes every answer. For Delta and Iceberg tables,
    the command stores daily sums.
    """
    from flexwire.answers.asking.results import ALL
    from flexwire.answers.asking.time_span import TimeSpan
    from flexwire.facts.captures import part_columns
    from flexwire.spark.answers.outputs import notes_of, sampled_in, stored_answers, to_send

    if reset_plan is not None:
        names = _plan_names(names)
    if format == "csv" and len(names) != 1:
        raise click.UsageError("CSV output can contain only one answer; specify exactly one name")
    results = stored_answers(
        out,
        names or ALL,
        labels,
        master=master,
        memory=memory,
        worker_memory=worker_memory,
        span=TimeSpan.parse(since, until),
        sums=not no_sums,
    )
    for note_text in dict.fromkeys(
        (*notes_of(out), *(note_text for result in results for note_text in result.notes))
    ):
        note(note_text)
    part = part_columns(sampled_in(out))
    if reset_plan is not None:
        _write_plan(results[0], reset_plan, is_json=format == "json")
        return
    results = [to_send(result, part) for result in results]
    if format == "json":
        print(
            json.dumps({result.answer.name: rows_form(result.rows) for result in results}, indent=1)
        )
    elif format == "csv":
        write_data(results[0].csv())
    else:
        _print_all(results, rows, are_named=bool(names))


def _print_all(results: list[AnswerResult], most: int, *, are_named: bool) -> None:
    # If all answers were requested, most of them may be empty. If a single answer was requested by
    # name and is empty, a note is printed.
    empty = [] if are_named else [result.answer.name for result in results if not result.count]
    for result in results:
        if result.answer.name not in empty:
            _print(result, most)
    if empty:
        print(f"No rows: {', '.join(empty)}.")


def _plan_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the only answer from which a plan can be made.

    Raise a usage error for all other answers.
    """
    from flexwire.answers.group_offsets import ANSWER_NAME

    if names not in {(), (ANSWER_NAME,)}:
        raise click.UsageError(
            f"--reset-plan uses the answer {ANSWER_NAME}, so leave out the names of other answers"
        )
    return (ANSWER_NAME,)


def _write_plan(result: AnswerResult, file: Path, *, is_json: bool) -> None:
    """Write a plan. Print how many rows the plan contains and how many it leaves out."""
    from flexwire.answers.group_offsets import reset_plan
    from flexwire.cli.options import InputError
    from flexwire.facts.units import plural
    from flexwire.storage.output_directory import OutputDirectory

    if result.count > len(result.rows):
        kept_rows = f"the analysis kept {len(result.rows):,} of {result.count:,} rows"
        raise InputError(
            f"{kept_rows}, so an unknown number of groups would be missing from the plan"
        )
    plan = reset_plan(result.rows)
    left_out = {"unknown": plan.unknown, "pending": plan.pending, "unwritable": plan.unwritable}
    if not plan.offsets:
        counts = ", ".join(f"{count:,} {name}" for name, count in left_out.items())
        raise InputError(f"the plan would be empty, because no offset is known; left out: {counts}")
    with OutputDirectory(str(file.absolute().parent)).writing(file.name) as growing:
        growing.write_text(plan.text, encoding="utf-8", newline="")
    if is_json:
        form = {"file": str(file), "offsets": plan.offsets, "groups": plan.groups}
        print(json.dumps(form | left_out, indent=1))
        return
    print_line(f"{file}: {plural(plan.offsets, 'offset')} of {plural(plan.groups, 'group')}.")
    print(
        f"Offsets left out: {plan.unknown:,} unknown, {plan.pending:,} pending in a transaction, "
        f"{plan.unwritable:,} of groups whose name contains a line break."
    )
    print_line(
        "Stop the members of these groups. Then run kafka-consumer-groups --reset-offsets "
        f"--from-file {file} --all-groups --dry-run and count the rows in the output, because "
        "this command exits with 0 even if a row fails. --execute sets the offsets."
    )


def rows_form(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of an answer in JSON form."""
    from flexwire.report.audit_files import plain

    return [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _print(result: AnswerResult, most: int) -> None:
    from textwrap import fill

    from flexwire.facts.units import plural
    from flexwire.report.answer_text import WIDTH, lines

    if not result.count:
        print(result.answer.question)
        of_state = result.answer.of_state
        elsewhere = result.answer.elsewhere or (f"{of_state} answers it" if of_state else "")
        elsewhere = elsewhere and f"; for a broker's logs, {elsewhere}"
        print(f"  No rows{elsewhere}.\n")
        return
    row = result.answer.row.removeprefix("One row ").removesuffix(".")
    row = re.sub("^an? ", "", row)
    print(fill(f"{result.answer.question} One row for each {row}.", WIDTH))
    columns, rows = result.first(most)
    text_lines, left_out = lines(columns, rows)
    for line in text_lines:
        print(line)
    more = result.count - len(rows)
    if more:
        print(f"… and {plural(more, 'more row')}")
    if left_out:
        print(fill(f"Not shown: {', '.join(left_out)}. --format csv prints all columns.", WIDTH))
    print()
