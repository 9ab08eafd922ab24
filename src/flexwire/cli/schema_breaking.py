"""`flexwire schema breaking`: report what a change to message specs breaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from flexwire.cli.check import check_options, load_config, print_findings, rule_page
from flexwire.cli.standard_input import spec_name, takes_standard_input

if TYPE_CHECKING:
    from flexwire.schema.parse import Mode


@click.command("breaking")
@click.argument("paths", nargs=-1, metavar="NEW...")
@click.option(
    "--against",
    multiple=True,
    metavar="OLD",
    help="The specs to compare with, in the same notation as NEW. Can be given multiple times.",
)
@click.option(
    "--unstable",
    is_flag=True,
    help="Also report changes to versions that OLD marks as unstable.",
)
@check_options
@takes_standard_input(paths=spec_name, against=spec_name)
def schema_breaking(
    *,
    paths: tuple[str, ...],
    against: tuple[str, ...],
    unstable: bool,
    mode: Mode | None,
    output: str,
    use: tuple[str, ...],
    leave_out: tuple[str, ...],
    config: Path | None,
    explain: str | None,
) -> None:
    """Report what a change to message specs breaks.

    NEW and OLD are each a file, a directory, a jar (kafka-clients contains the specs of its
    release), REV:PATH (a path in a git revision), release:NAME (a release in the bundled catalog),
    or - for standard input. NEW can also be OLDREV..NEWREV:PATH, which stands for both NEW and OLD.
    The categories are WIRE, JSON and SUPPORT. If a request in OLD has latestVersionUnstable, the
    command counts the changes to its highest version but does not report them. Exits with 100 if
    the change breaks something.
    """
    from flexwire.schema.editions import read_editions
    from flexwire.specs.breaking.report import compare
    from flexwire.specs.lint.config import BREAKING, ConfigError

    try:
        if explain is not None:
            print(rule_page(BREAKING, explain))
            return
        chosen = load_config(BREAKING, config, mode, use, leave_out)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    new, old = _sides(paths, against)
    editions, texts = read_editions(new, chosen.mode)
    old_editions, _ = read_editions(old, chosen.mode)
    print_findings(
        compare(old_editions, editions, texts, chosen.rules, chosen, unstable=unstable), output
    )


def _sides(paths: tuple[str, ...], against: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the new paths and the old paths. A range of git revisions adds a path to each list."""
    new, old = [], list(against)
    for path in paths:
        before, dots, after = path.partition("..")
        revision, colon, inside = after.partition(":")
        if dots and colon and before and revision and not Path(path).exists():
            if revision.startswith("."):
                reason = (
                    "expected a range with two dots, got three; to compare with the common "
                    "ancestor, give the revision that 'git merge-base' prints"
                )
                raise click.UsageError(f"{path}: {reason}")
            old.append(f"{before}:{inside}")
            new.append(f"{revision}:{inside}")
        else:
            new.append(path)
    if not new or not old:
        raise click.UsageError(
            "give the new specs and the specs to compare with: NEW --against OLD"
        )
    return new, old
