"""`flexwire schema lint`: report all errors in message specs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from flexwire.cli.check import check_options, load_config, print_findings, rule_page
from flexwire.cli.standard_input import spec_name, takes_standard_input

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.schema.parse import Mode


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="PATH...")
@check_options
@takes_standard_input(paths=spec_name)
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
    """Report everything that is wrong with message specs.

    PATH is a file, a directory, a jar (kafka-clients contains the specs of its release), REV:PATH
    (a path in a git revision), or - for standard input. With --use, only the given rules run.
    Without --use, the category DEFAULT runs: all rules except those in PEDANTIC. Exits with 100 if
    there are findings.
    """
    from flexwire.schema.sources import RELEASE, read_sources
    from flexwire.specs.lint.config import LINT, ConfigError
    from flexwire.specs.lint.lint import lint

    try:
        if explain is not None:
            print(rule_page(LINT, explain))
            return
        if not paths:
            raise click.UsageError("give files, directories, jars or REV:PATH")
        if released := [path for path in paths if path.startswith(RELEASE)]:
            reason = (
                "the catalog does not contain the text of specs, so lint cannot check a release; "
                "use 'schema breaking' to compare releases"
            )
            raise click.UsageError(f"{released[0]}: {reason}")
        chosen = load_config(LINT, config, mode, use, leave_out)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    print_findings(lint(read_sources(paths), chosen), output)
