"""`flexwire schema lint`: all that is wrong with message specs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from flexwire.check.config import Config
    from flexwire.check.report import Report
    from flexwire.schema.parse import Mode

FINDINGS = 100
FORMATS = ["text", "json", "github-actions", "junit", "sarif"]


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--mode",
    type=click.Choice(["strict", "legacy", "kip", "draft"]),
    help="What counts as a spec: what Kafka's generator reads, all that old releases hold, or "
    "what KIP-482 says, or its first draft. By default that of the configuration, else strict.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="What to print.",
)
@click.option(
    "--use",
    multiple=True,
    metavar="RULE",
    help="Use this rule or category, and only what is named so: DEFAULT has all but PEDANTIC.",
)
@click.option("--except", "leave_out", multiple=True, metavar="RULE", help="Leave this one out.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The configuration; by default the nearest flexwire.toml or pyproject.toml.",
)
@click.option("--explain", metavar="RULE", help="Tell what a rule is about; ALL lists the rules.")
def schema_lint(
    *,
    paths: tuple[str, ...],
    mode: Mode | None,
    output: str,
    use: tuple[str, ...],
    leave_out: tuple[str, ...],
    config: Path | None,
    explain: str | None,
) -> None:
    """Tell all that is wrong with message specs.

    PATH is a file, a directory, a jar (kafka-clients has the specs of its release), or REV:PATH, a
    path in a git revision. Exits with 100 where there are findings.
    """
    from flexwire.check.config import ConfigError
    from flexwire.check.lint import lint
    from flexwire.check.sources import read_sources

    try:
        if explain is not None:
            print(_page(explain))
            return
        if not paths:
            raise click.UsageError("name files, directories, jars or REV:PATH")
        chosen = _config(config, mode, use, leave_out)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    report = lint(read_sources(paths), chosen)
    click.echo(_told(report, output), nl=False, color=True)
    if report.findings:
        sys.stdout.flush()
        sys.exit(FINDINGS)


def _config(
    path: Path | None, mode: Mode | None, use: tuple[str, ...], leave_out: tuple[str, ...]
) -> Config:
    from dataclasses import replace

    from flexwire.check.config import Config, choose, find_config, read_config

    path = path or find_config(Path())
    found = read_config(path) if path else Config()
    if use or leave_out:
        used = choose(use, leave_out) if use else found.rules - choose(leave_out, ())
        found = replace(found, rules=used)
    return found if mode is None else replace(found, mode=mode)


def _page(name: str) -> str:
    from flexwire.check.config import ALL, named
    from flexwire.check.rules import rules

    if name != ALL:
        chosen = sorted(named(name))
        if len(chosen) == 1:
            rule = rules()[chosen[0]]
            return f"{rule.id} ({rule.category.name}: {rule.category.value})\n\n{rule.page}"
    shown = [rules()[one] for one in sorted(named(name))]
    width = max(len(rule.id) for rule in shown)
    category = max(len(rule.category.name) for rule in shown)
    return "\n".join(
        f"{rule.id:{width}}  {rule.category.name:{category}}  {rule.summary}" for rule in shown
    )


def _told(report: Report, output: str) -> str:
    from flexwire.check.formats import github_actions, json, junit, sarif, text

    if output == "text":
        terminal = sys.stdout.isatty()
        colour = terminal and not os.environ.get("NO_COLOR")
        width = shutil.get_terminal_size().columns if terminal else None
        return text.write(report, width, colour=colour)
    write = {
        "json": json.write,
        "github-actions": github_actions.write,
        "junit": junit.write,
        "sarif": sarif.write,
    }[output]
    return write(report)
