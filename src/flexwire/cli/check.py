"""Code that `flexwire schema lint` and `breaking` share: choose rules and print findings."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from flexwire.cli.completion import rule_names
from flexwire.cli.terminal import styled, write_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.schema.parse import Mode
    from flexwire.specs.finding import Report
    from flexwire.specs.lint.config import Config, Ruleset

FINDINGS = 100
FORMATS = ["text", "json", "github-actions", "junit", "sarif"]

_OPTIONS = (
    click.option(
        "--specs-mode",
        "--mode",
        "mode",
        type=click.Choice(["strict", "legacy", "kip", "draft"]),
        help=(
            "Which specs to accept: those that Kafka's generator reads (strict), those plus specs "
            "from old releases (legacy), specs that follow KIP-482 (kip), or specs that follow the "
            "first draft of KIP-482 (draft). The default is the mode set in the configuration, or "
            "strict if none is set there."
        ),
    ),
    click.option(
        "--format",
        "output",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="What to print.",
    ),
    click.option(
        "--use",
        multiple=True,
        metavar="RULE",
        shell_complete=rule_names,
        help="Run only this rule or category. Can be given multiple times.",
    ),
    click.option(
        "--except",
        "leave_out",
        multiple=True,
        metavar="RULE",
        shell_complete=rule_names,
        help="Disable this rule or category. Can be given multiple times.",
    ),
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The configuration file; by default, the nearest flexwire.toml or pyproject.toml.",
    ),
    click.option(
        "--explain",
        metavar="RULE",
        shell_complete=rule_names,
        help="Explain a rule; ALL lists the rules.",
    ),
)


def check_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options that choose rules and control the output of findings."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def load_config(
    of: Ruleset,
    path: Path | None,
    mode: Mode | None,
    use: tuple[str, ...],
    leave_out: tuple[str, ...],
) -> Config:
    """Return the configuration with the overrides from the command line. Raises `ConfigError`."""
    from dataclasses import replace

    from flexwire.specs.lint.config import Config, choose, find_config, read_config

    path = path or find_config(Path())
    config = read_config(path, of) if path else Config(of.defaults())
    if use or leave_out:
        used = choose(use, leave_out, of=of) if use else config.rules - choose(leave_out, (), of=of)
        config = replace(config, rules=used)
    return config if mode is None else replace(config, mode=mode)


def rule_page(of: Ruleset, name: str) -> str:
    """Return the page of a rule, or one line for each rule of a category."""
    from flexwire.specs.lint.config import ALL, rules_named

    rules = of.rules()
    if name != ALL:
        chosen = sorted(rules_named(name, of=of))
        if len(chosen) == 1:
            rule = rules[chosen[0]]
            return f"{chosen[0]} ({rule.category.name}: {rule.category.value})\n\n{rule.page}"
    shown = {rule_id: rules[rule_id] for rule_id in sorted(rules_named(name, of=of))}
    width = max(map(len, shown))
    category = max(len(rule.category.name) for rule in shown.values())
    return "\n".join(
        f"{rule_id:{width}}  {rule.category.name:{category}}  {rule.summary}"
        for rule_id, rule in shown.items()
    )


def print_findings(report: Report, output: str) -> NoReturn:
    """Print the findings. Exit with code 100 if the report contains findings."""
    text = _report_text(report, output)
    if output == "text":
        styled(sys.stdout).write(text)
    else:
        write_data(text)
    sys.stdout.flush()
    sys.exit(FINDINGS if report.findings else 0)


def _report_text(report: Report, output: str) -> str:
    from flexwire.specs.lint import formats

    if output == "text":
        terminal = sys.stdout.isatty()
        colour = terminal and not os.environ.get("NO_COLOR")
        width = shutil.get_terminal_size().columns if terminal else None
        return formats.to_text(report, width, colour=colour)
    write = {
        "json": formats.to_json,
        "github-actions": formats.to_github_actions,
        "junit": formats.to_junit,
        "sarif": formats.to_sarif,
    }[output]
    return write(report)
