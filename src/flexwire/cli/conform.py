"""`flexwire conform`: test whether a broker responds as Apache Kafka does."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.check import FINDINGS
from flexwire.cli.completion import release_names
from flexwire.cli.connection_options import (
    ConnectionOptions,
    connection_options,
    reach,
    told_config,
)
from flexwire.cli.standard_input import plain_name, takes_standard_input
from flexwire.cli.terminal import note, progress_bar, write_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from flexwire.client.config import ClientConfig
    from flexwire.conformance import Asking, ConformanceRun, SecondBroker


_KILLED = 128
"""If a signal ends a process, a shell's exit code for the process is this number plus the signal's
number.
"""


class ConformanceFormat(StrEnum):
    """The format in which a run is printed."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


@click.command()
@click.argument("address")
@click.option(
    "--release",
    shell_complete=release_names,
    help="The release of Apache Kafka to compare with. The default is the newest release that "
    "flexwire knows.",
)
@click.option(
    "--apis",
    metavar="NAME,…",
    help="Test only these APIs: comma-separated names or api keys.",
)
@click.option(
    "--hostile",
    is_flag=True,
    help=(
        "Also send damaged requests, each on its own connection. Apache Kafka logs an error with a "
        "stack trace for each damaged request."
    ),
)
@click.option(
    "--write",
    is_flag=True,
    help="Also send requests that change something. These requests use only a topic, groups and a "
    "transactional id that the run itself creates under new names. The topic and the groups are "
    "removed afterwards, even if the run is interrupted. If the cluster has never had a group or a "
    "transaction, these requests cause the cluster to create its internal topics.",
)
@click.option(
    "--disposable",
    is_flag=True,
    help="Also send requests that concern the whole cluster: quotas, credentials, ACLs, features, "
    "reassignments, voters. The command does NOT undo these changes. Use this option only on a "
    "cluster that nobody needs afterwards. Implies --write.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help=(
        "Only list which requests the run would send and which it would omit. The command asks the "
        "broker for its versions (ApiVersions) and sends nothing else."
    ),
)
@click.option(
    "--format",
    "output",
    type=click.Choice(ConformanceFormat, case_sensitive=False),
    default=ConformanceFormat.TEXT,
    show_default="text",
    help="What to print. JUnit output contains one test for each case.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write an HTML page.",
)
@click.option(
    "--badge",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "Also write an SVG badge with the number of cases in which the broker answered as Apache "
        "Kafka does."
    ),
)
@click.option(
    "--against",
    metavar="HOST:PORT",
    help=(
        "Also send the same requests to a second broker, for example Apache Kafka. The "
        "result shows the second broker's response next to each deviation, and the differences "
        "between the two brokers."
    ),
)
@click.option(
    "--against-config",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help=(
        "A client's properties file for the second broker. Without this option, the second "
        "broker gets the same TLS and login settings as the first."
    ),
)
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "Write each finished case to this file. If the file exists, continue where the earlier "
        "run stopped."
    ),
)
@connection_options
@takes_standard_input(
    "password_file",
    **dict.fromkeys(("command_config", "against_config", "ca", "certificate", "key"), plain_name),
)
def conform(
    *,
    address: str,
    release: str | None,
    apis: str | None,
    hostile: bool,
    write: bool,
    disposable: bool,
    dry_run: bool,
    output: ConformanceFormat,
    html: Path | None,
    badge: Path | None,
    against: str | None,
    against_config: Path | None,
    resume: Path | None,
    **reaching: Any,
) -> None:
    """Test whether a broker answers as Apache Kafka does.

    ADDRESS is HOST:PORT of one broker. The command tests each API in each version that the broker
    offers. For each version, the command sends a plain request, a request with unknown tagged
    fields, a request without a client id, a request with empty lists and a request with long lists.
    The command also sends requests in the versions just below and just above the offered versions.
    Without --write, the command sends only requests that change nothing. These requests refer to
    names that do not exist. --dry-run lists the requests.

    The command checks the bytes of each response: the correlation id, the header version, the
    fields, the end of the response, and the requested names. An error code is not a deviation. If a
    response reports a missing permission or a disabled feature, the remaining checks are skipped.
    Exits with 100 if the broker breaks a rule. --against does not affect the exit code.
    """
    if against_config is not None and against is None:
        raise click.UsageError("--against-config needs --against")
    files = (html, badge, against, resume)
    if dry_run and (any(one is not None for one in files) or output is ConformanceFormat.JUNIT):
        raise click.UsageError(
            "--dry-run produces no result: leave out --against, --badge, --html, --resume and "
            "--format junit"
        )
    if (write or disposable) and resume is not None:
        raise click.UsageError(
            "--resume continues only runs that change nothing; leave out --write and --disposable"
        )
    asking = _asking(release, apis, hostile=hostile, write=write, disposable=disposable)
    config = reach(ConnectionOptions(**reaching))
    if config.client_id is not None:
        asking = asking.with_client_id(config.client_id)
    if dry_run:
        _print_plan(address, asking, config, output)
        return
    run = _ask(address, asking, config, _second(against, against_config), resume)
    if resume is not None:
        _tell_resumed(run, resume)
    for one in run.of_each_broker:
        for words in one.left:
            note(f"left behind: {words}")
    _write(run, html, badge)
    _print(run, output)
    if run.deviations:
        sys.exit(FINDINGS)


def _print_plan(
    address: str, asking: Asking, config: ClientConfig, output: ConformanceFormat
) -> None:
    from flexwire.conformance import formats, plan_with_hostile
    from flexwire.conformance.sending import CaseSender

    with CaseSender(
        address, config.security, client_id=asking.client_id, timeout=config.timeout
    ) as sender:
        plan = plan_with_hostile(sender.offered(), asking)
    write = formats.plan_json if output is ConformanceFormat.JSON else formats.plan_text
    write_data(write(plan, address))


def _ask(
    address: str,
    asking: Asking,
    config: ClientConfig,
    against: SecondBroker | None,
    journal: Path | None,
) -> ConformanceRun:
    from flexwire.conformance import conform

    done = 0
    with progress_bar() as show, _ended_in_order():

        def watch(_: object, total: int) -> None:
            nonlocal done
            done += 1
            show("asking the broker", done, total)

        return conform(
            address,
            asking,
            security=config.security,
            timeout=config.timeout,
            watch=watch,
            against=against,
            journal=journal,
        )


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Make SIGTERM end a block as Ctrl-C does, so that the block removes what it created."""

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(_KILLED + number)

    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set a handler for a signal.
        yield
        return
    old_handler = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old_handler)


def _second(address: str | None, path: Path | None) -> SecondBroker | None:
    from flexwire.conformance import SecondBroker

    if address is None:
        return None
    return SecondBroker(address, None if path is None else told_config(path).security)


def _tell_resumed(run: ConformanceRun, path: Path) -> None:
    done = sum(one.resumed for one in run.of_each_broker)
    total = sum(len(one.plan.cases) for one in run.of_each_broker)
    if done:
        note(f"{path}: {done} of {total} cases were finished earlier and are not sent again")


def _asking(
    release: str | None, apis: str | None, *, hostile: bool, write: bool, disposable: bool
) -> Asking:
    from flexwire.conformance import Asking
    from flexwire.conformance.writing import own_name
    from flexwire.protocol.apis import find_api
    from flexwire.schema.catalog import catalog

    compared = catalog().final_releases[-1] if release is None else catalog().final_release(release)
    names = None if apis is None else [name.strip() for name in apis.split(",") if name.strip()]
    if names == []:
        raise click.UsageError("--apis needs at least one API")
    keys = None if names is None else frozenset(find_api(name).api_key or 0 for name in names)
    own = own_name() if write or disposable else ""
    return Asking(compared, keys, hostile=hostile, own=own, disposable=disposable)


def _write(run: ConformanceRun, html: Path | None, badge: Path | None) -> None:
    """Write the files that the options request."""
    from flexwire.atomic_files import write_together
    from flexwire.conformance.badge import to_badge
    from flexwire.conformance.page import to_html

    for path, write in ((html, to_html), (badge, to_badge)):
        if path is not None:
            write_together(path.absolute().parent, {path.name: write(run).encode()})
            note(f"wrote {path}")


def _print(run: ConformanceRun, output: ConformanceFormat) -> None:
    from flexwire.conformance import formats

    write = {
        ConformanceFormat.TEXT: formats.to_text,
        ConformanceFormat.JSON: formats.to_json,
        ConformanceFormat.JUNIT: formats.to_junit,
    }[output]
    write_data(write(run))
    sys.stdout.flush()
