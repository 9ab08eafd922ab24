"""`flexwire conform`: does a broker answer as Apache Kafka does?"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.call import ConnectionOptions, connection_options, reach
from flexwire.cli.check import FINDINGS
from flexwire.cli.completion import release_names
from flexwire.cli.standard_input import plain_name, takes_standard_input
from flexwire.cli.terminal import note, progress_bar, write_data

if TYPE_CHECKING:
    from flexwire.conformance import Asking, ConformanceRun


class ConformanceFormat(StrEnum):
    """The output format of a run."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


@click.command()
@click.argument("address")
@click.option(
    "--release",
    shell_complete=release_names,
    help="The release of Apache Kafka to compare with. The default is the newest that flexwire "
    "knows.",
)
@click.option(
    "--apis",
    metavar="NAME,…",
    help="Ask only these APIs: names or api keys, with commas between them.",
)
@click.option(
    "--hostile",
    is_flag=True,
    help="Also send damaged requests, each on a connection of its own. Apache Kafka logs an error "
    "with a stack trace for each.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only list what would be sent, and what would not. The command asks the broker for its "
    "versions (ApiVersions) and sends nothing else.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(ConformanceFormat, case_sensitive=False),
    default=ConformanceFormat.TEXT,
    show_default="text",
    help="What to print. JUnit has a test for each case.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write an HTML page.",
)
@connection_options
@takes_standard_input(
    "password_file", **dict.fromkeys(("command_config", "ca", "certificate", "key"), plain_name)
)
def conform(
    *,
    address: str,
    release: str | None,
    apis: str | None,
    hostile: bool,
    dry_run: bool,
    output: ConformanceFormat,
    html: Path | None,
    **reaching: Any,
) -> None:
    """Test whether a broker answers as Apache Kafka does.

    ADDRESS is HOST:PORT of one broker. The command asks each API in each version that the broker
    offers: plainly, with unknown tagged fields, without a client id, with empty and with long
    lists, and in the versions next to those that it offers. It only sends requests that read, about
    names that nobody has; --dry-run lists them.

    It judges the bytes of each response: correlation id, header version, fields, end, and the names
    that were asked about. Error codes are no deviation. A response about a missing right, or about
    a feature that is off, is not judged further. Exits with 100 if the broker breaks a rule.
    """
    from flexwire.conformance import formats, plan_with_hostile
    from flexwire.conformance.running import CaseSender, conform

    if dry_run and (html is not None or output is ConformanceFormat.JUNIT):
        raise click.UsageError("--dry-run has no result: leave out --html and --format junit")
    asking = _asking(release, apis, hostile=hostile)
    config = reach(ConnectionOptions(**reaching))
    if config.client_id is not None:
        asking = asking.with_client_id(config.client_id)
    if dry_run:
        with CaseSender(
            address, config.security, client_id=asking.client_id, timeout=config.timeout
        ) as sender:
            plan = plan_with_hostile(sender.offered(), asking)
        write = formats.plan_json if output is ConformanceFormat.JSON else formats.plan_text
        write_data(write(plan, address))
        return
    with progress_bar() as show:
        done = 0

        def watch(_: object, total: int) -> None:
            nonlocal done
            done += 1
            show("asking the broker", done, total)

        run = conform(
            address, asking, security=config.security, timeout=config.timeout, watch=watch
        )
    _print(run, output, html)
    if run.deviations:
        sys.exit(FINDINGS)


def _asking(release: str | None, apis: str | None, *, hostile: bool) -> Asking:
    from flexwire.conformance import Asking
    from flexwire.protocol.apis import find_api
    from flexwire.schema.catalog import catalog

    compared = catalog().final_releases[-1] if release is None else catalog().release(release)
    names = None if apis is None else [name.strip() for name in apis.split(",") if name.strip()]
    if names == []:
        raise click.UsageError("--apis names at least one API")
    keys = None if names is None else frozenset(find_api(name).api_key or 0 for name in names)
    return Asking(compared, keys, hostile=hostile)


def _print(run: ConformanceRun, output: ConformanceFormat, html: Path | None) -> None:
    from flexwire.conformance import formats

    if html is not None:
        from flexwire.atomic_files import write_together
        from flexwire.conformance.page import to_html

        write_together(html.absolute().parent, {html.name: to_html(run).encode()})
        note(f"wrote {html}")
    write = {
        ConformanceFormat.TEXT: formats.to_text,
        ConformanceFormat.JSON: formats.to_json,
        ConformanceFormat.JUNIT: formats.to_junit,
    }[output]
    write_data(write(run))
    sys.stdout.flush()
