"""`flexwire tables`: maintain growing tables: merge files, remove old days and leftovers."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import Format, format_option
from flexwire.cli.terminal import note, print_line

if TYPE_CHECKING:
    from types import ModuleType

    from flexwire.spark.delta.grown import FileGroup
    from flexwire.storage.output_directory import OutputDirectory

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what the command would do, and change nothing."
)


@click.command()
@click.argument("out")
@dry_run_option
@format_option
def compact(*, out: str, dry_run: bool, output: Format) -> None:
    """Merge the small files of the tables in OUT.

    OUT is an output of analyze --tables delta. In each table, the files of one day are merged into
    one file, or into several files of 128 MiB. The last day is merged once it has at least eight
    files, and an earlier day once it has at least two. The rows do not change. `vacuum` removes the
    old files later. Iceberg tables are compacted by an engine such as Spark; the command prints
    how.

    Each line of the output describes the files that are merged next. If the command is killed, no
    row is lost or repeated; run the command again.
    """
    from flexwire.spark.delta.staging import upkeep_lock
    from flexwire.storage.output_directory import OutputDirectory

    place = OutputDirectory(out)
    upkeep = _room(place, "upkeep")
    with upkeep_lock(place, dry_run=dry_run) as notes:
        groups = [*upkeep.to_join(place)]
        for group in groups:
            _tell("merge", group, output)
            if not dry_run:
                upkeep.join(place, group)
    _end(groups, "merged", output, notes, dry_run=dry_run)


@click.command()
@click.argument("out")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    required=True,
    help="How many days to keep, including today (UTC).",
)
@dry_run_option
@format_option
def retain(*, out: str, days: int, dry_run: bool, output: Format) -> None:
    """Remove the rows of old days from the tables in OUT.

    OUT is an output of analyze --tables delta or iceberg. Tables that are not divided by day
    (packets, audit and the log tables) do not change. If a connection had traffic on any of the
    kept days, its row in the 'connections' table is also kept. Captures that were added earlier
    still count as known, so no later analysis adds them again. Reports are kept.

    The command first prints everything that it will remove. The files remain until you run
    'flexwire tables vacuum', which deletes files that no table has used for a week.
    """
    from datetime import UTC, datetime, timedelta

    from flexwire.spark.delta.staging import upkeep_lock
    from flexwire.storage.output_directory import OutputDirectory

    place = OutputDirectory(out)
    upkeep = _room(place, "upkeep")
    first = datetime.now(UTC).date() - timedelta(days=days - 1)
    with upkeep_lock(place, dry_run=dry_run) as notes:
        groups = [*upkeep.to_retire(place, first)]
        for group in groups:
            _tell("take out", group, output)
        if not dry_run:
            upkeep.retire(place, groups)
    _end(groups, "taken out", output, notes, dry_run=dry_run)


@click.command()
@click.argument("out")
@click.argument("analysis")
@dry_run_option
@format_option
def undo(*, out: str, analysis: str, dry_run: bool, output: Format) -> None:
    """Remove the last analysis from the tables in OUT.

    OUT is an output of analyze --tables delta or iceberg. ANALYSIS is the name of the last analysis
    in OUT, which is also the name of its report's directory in OUT/runs. The command refuses to
    remove any other analysis. The next analysis continues from the analysis before the removed one,
    and can add the same captures and logs again.

    The command first prints everything that it will remove. The next analysis then deletes the
    files and the report.
    """
    from flexwire.spark.delta import staging
    from flexwire.storage.output_directory import OutputDirectory

    place = OutputDirectory(out)
    tables = _room(place, "output").tables_in(place)
    with staging.upkeep_lock(place, dry_run=dry_run) as notes:
        groups = [*staging.to_undo(tables, analysis)]
        for group in groups:
            _tell("take out", group, output)
        if not dry_run:
            staging.undo(tables, analysis)
    _end(groups, "taken out", output, notes, dry_run=dry_run)


@click.command()
@click.argument("out")
@click.option(
    "--hours",
    type=click.IntRange(min=24),
    default=168,
    show_default=True,
    help=(
        "Keep files that a table used within the last HOURS. A reader or an analysis that "
        "started earlier may still need these files."
    ),
)
@dry_run_option
@format_option
def vacuum(*, out: str, hours: int, dry_run: bool, output: Format) -> None:
    """Delete files in OUT that its tables no longer use.

    OUT is an output of analyze --tables delta or iceberg. A file is unused if it was merged into
    another file, if `retain` or a new analysis removed it, or if a killed process left it behind.
    The command also deletes daily sums that newer sums have replaced, and the sums of days that are
    no longer in the tables. The command first prints everything that it will remove. Afterwards,
    old versions of the tables can no longer be read. For Iceberg, the snapshots expire.
    """
    from flexwire.spark.delta.grown import old_sums
    from flexwire.spark.delta.staging import upkeep_lock
    from flexwire.storage.output_directory import OutputDirectory

    place = OutputDirectory(out)
    upkeep = _room(place, "upkeep")
    with upkeep_lock(place, dry_run=dry_run) as notes:
        unnamed = [*upkeep.unnamed_files(place, hours)]
        sums = [*old_sums(place, lambda: _room(place, "output").output(out), hours)]
        groups = [*unnamed, *sums]
        for group in groups:
            for file in group.files if output is Format.TEXT else ():
                print_line(f"remove {group.table}: {file['path']}")
        if not dry_run:
            upkeep.remove_unnamed_files(place, [group.table for group in unnamed], hours)
            place.remove([file["path"] for group in sums for file in group.files])
    _end(groups, "removed", output, notes, dry_run=dry_run)


def _room(place: OutputDirectory, name: str) -> ModuleType:
    """Return a module from the package for the format of the tables in ``place``."""
    from flexwire.arguments import DELTA, ICEBERG
    from flexwire.extras import needed_by
    from flexwire.tables.output import is_iceberg

    kind = ICEBERG if is_iceberg(place) else DELTA
    with needed_by("flexwire tables", kind):
        return import_module(f"flexwire.spark.{kind}.{name}")


def _tell(verb: str, group: FileGroup, output: Format) -> None:
    from flexwire.facts.units import human_bytes, plural

    if output is Format.TEXT:
        day = "" if group.day is None else f" {group.day}"
        files = plural(len(group.files), "file")
        print_line(f"{verb} {group.table}{day}: {files}, {human_bytes(group.size)}")


def _end(
    groups: list[FileGroup], done: str, output: Format, notes: list[str], *, dry_run: bool
) -> None:
    from flexwire.facts.units import plural

    for text in notes:
        note(text)
    if output is Format.JSON:
        print(json.dumps(_as_json(groups, dry_run=dry_run), ensure_ascii=False, indent=2))
        return
    files = plural(sum(len(group.files) for group in groups), "file")
    print_line(f"{files} {'would be ' if dry_run else ''}{done}.")


def _as_json(groups: list[FileGroup], *, dry_run: bool) -> dict[str, Any]:
    parts = [
        {"table": group.table, "day": group.day, "files": [file["path"] for file in group.files]}
        for group in groups
    ]
    return {"isDone": not dry_run, "groups": parts}
