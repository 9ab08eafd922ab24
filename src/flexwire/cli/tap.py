"""`flexwire tap`: a proxy that captures what passes."""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import Format, format_option
from flexwire.cli.tap_security import how_to_trust, security_options, to_security
from flexwire.cli.tap_service import service_options, to_service
from flexwire.cli.terminal import LogFormatter
from flexwire.printable import printable

if TYPE_CHECKING:
    from flexwire.net import MetricsPort
    from flexwire.net.stamping import HeaderTag, Stamping
    from flexwire.net.statistics import TapStatistics
    from flexwire.net.tap import Tap


def _parsed_tags(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> tuple[HeaderTag, ...]:
    from flexwire.errors import ArgumentError
    from flexwire.net.stamping import parse_header_tag

    try:
        return tuple(parse_header_tag(text) for text in texts)
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from None


def _stamping(tags: tuple[HeaderTag, ...], limit: int | None) -> Stamping | None:
    from flexwire.errors import ArgumentError
    from flexwire.net.stamping import Stamping

    try:
        return Stamping(tags, limit) if tags else None
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None


def _tell(counts: TapStatistics, out: Path, output: Format) -> None:
    from flexwire.errors import CaptureError

    named = dataclasses.asdict(counts)
    del named["open_connections"]
    if output is Format.JSON:
        _print_line("stopped", **{_camel(name): count for name, count in named.items()})
    else:
        for name, count in named.items():
            if count:
                print(f"{name.replace('_', ' '):24} {count:12,}")
    if not counts.is_captured:
        raise CaptureError(
            f"not all that passed is captured: {counts.capture_failures:,} frames are lost, of "
            f"{counts.shortened_frames:,} only the beginning was kept (--hold-mib), "
            f"{counts.not_captured:,} connections were refused, and of {counts.unended:,} "
            "the end is missing; the log says why",
            source=str(out),
        )


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _print_line(kind: str, **told: Any) -> None:
    print(json.dumps({"type": kind, **told}, ensure_ascii=False), flush=True)


@click.command()
@click.option(
    "--upstream",
    required=True,
    help="A broker of the cluster, HOST:PORT; with TLS ssl://HOST:PORT.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory for the capture files.",
)
@click.option(
    "--listen",
    default="127.0.0.1:19092",
    show_default=True,
    help="Where clients connect; with TLS ssl://HOST:PORT.",
)
@click.option(
    "--advertised-host",
    help="The name by which clients reach the tap.  "
    "[default: as they came, or the host of --listen]",
)
@click.option(
    "--keep-addresses",
    is_flag=True,
    help="Leave the addresses that brokers advertise as they are: for a tap beside each broker, "
    "which has the broker's own name and port.",
)
@service_options
@security_options
@click.option(
    "--header-tag",
    "header_tags",
    multiple=True,
    metavar="NUMBER=VALUE",
    callback=_parsed_tags,
    help="Send requests on with this tag in their header: a text or hex:DIGITS. In a text, "
    "{client}, {connection} and {trace_id} stand for what they name.",
)
@click.option(
    "--request-limit",
    type=click.IntRange(min=1),
    help="The brokers' socket.request.max.bytes, 100 MiB unless given: no tag takes a request "
    "beyond it.",
)
@format_option
def tap(
    *,
    upstream: str,
    out: Path,
    listen: str,
    advertised_host: str | None,
    keep_addresses: bool,
    header_tags: tuple[HeaderTag, ...],
    request_limit: int | None,
    output: Format,
    **told: Any,
) -> None:
    """Capture what passes between clients and a cluster.

    The tap is a proxy and writes what passes as pcapng, which flexwire and Wireshark open.

    Advertised addresses are rewritten, so that every broker is reached through the tap. Everything
    else passes unchanged, unless --header-tag asks for tags in request headers: the capture has
    what the client sent, and the tags in comments. Stop it with Ctrl-C.

    With TLS, the tap decrypts what comes and encrypts what goes on, so what it captures is
    plain; SASL passes through. docs/tap.md says how.

    Only you may read the files. Several taps may share a directory: each file takes the next free
    name. Exits with 1 where frames passed that are not in the capture, and says how many. How it
    runs as a service is in docs/tap.md.

    With --format json it prints a line when it listens, and one with all counts when it has
    stopped.
    """
    import asyncio

    from flexwire.net.memory import keep_freed_memory
    from flexwire.net.running import run_tap

    stamping = _stamping(header_tags, request_limit)
    service = to_service(told, keep_addresses=keep_addresses)
    _log_to_terminal()
    keep_freed_memory()
    security, throwaway = to_security(listen, advertised_host, told)

    def ready(running: Tap) -> None:
        scheme = "" if security.listen is None else "ssl://"
        trust = None if throwaway is None else how_to_trust(throwaway)
        _tell_ready(f"{scheme}{running.listen_address}", out, service["metrics"], trust, output)

    counts = asyncio.run(
        run_tap(
            listen,
            upstream,
            out,
            security=security,
            advertised_host=advertised_host,
            keep_addresses=keep_addresses,
            stamping=stamping,
            ready=ready,
            **service,
        )
    )
    _tell(counts, out, output)


def _tell_ready(
    address: str, out: Path, metrics: MetricsPort | None, trust: str | None, output: Format
) -> None:
    url = None if metrics is None else f"http://{metrics.address}/metrics"
    if output is Format.JSON:
        _print_line("listening", address=address, out=str(out), metrics=url, trust=trust)
        return
    print(printable(f"listening on {address}, capturing into {out}; Ctrl-C stops"), flush=True)
    if url is not None:
        print(f"metrics at {url}", flush=True)
    if trust is not None:
        print(printable(trust, keep="\n"), flush=True)


def _log_to_terminal() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
