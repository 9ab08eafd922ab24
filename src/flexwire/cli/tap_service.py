"""What `flexwire tap` is told where it runs as a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.filtering import CaptureFilter
    from flexwire.net import MetricsPort
    from flexwire.net.ports import PortRange

_MIB = 1024 * 1024
_OPTIONS = (
    click.option(
        "--rotate",
        type=click.IntRange(min=1),
        default=64,
        show_default=True,
        help="Begin a new file after this many MiB; SIGHUP begins one at once.",
    ),
    click.option(
        "--keep-mib",
        type=click.IntRange(min=1),
        help="Keep at most this many MiB of this run on disk: the oldest finished files are "
        "removed, and counted.  [default: everything]",
    ),
    click.option(
        "--keep-files",
        type=click.IntRange(min=1),
        help="Keep at most this many files of this run, in the same way.",
    ),
    click.option(
        "--sample",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        show_default=True,
        help="Capture this share of the connections, each as a whole, and pass on the others. The "
        "capture says so, and every report of it.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(1, 64),
        default=1,
        show_default=True,
        help="Carry connections in so many processes, for as many cores; --keep-mib, --keep-files "
        "and --metrics are for all of them.",
    ),
    click.option(
        "--hold-mib",
        type=click.IntRange(min=1),
        default=512,
        show_default=True,
        help="Hold at most this many MiB of unfinished frames, over all connections. Beyond that "
        "frames pass, and the capture has only their beginning; both are counted.",
    ),
    click.option(
        "--only-api",
        "only_apis",
        metavar="NAME",
        multiple=True,
        help="Capture only requests of this API, by name (Produce) or api key, and their "
        "responses; again for more. The capture says so, and every report of it.",
    ),
    click.option(
        "--only-client-id",
        "only_client_ids",
        metavar="TEXT",
        multiple=True,
        help="The same by client id; * stands for any text.",
    ),
    click.option(
        "--only-topic",
        "only_topics",
        metavar="TEXT",
        multiple=True,
        help="The same by the topics that requests name; * stands for any text.",
    ),
    click.option(
        "--ports",
        metavar="FIRST-LAST",
        help="Give each broker a port of these, the same whenever the tap is started again with "
        "this --out.  [default: those after --listen]",
    ),
    click.option(
        "--metrics",
        metavar="HOST:PORT",
        help="Give all counts as OpenMetrics at http://HOST:PORT/metrics, on loopback only.",
    ),
    click.option(
        "--metrics-beyond-loopback",
        is_flag=True,
        help="Let other machines ask for --metrics.",
    ),
)


def service_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that `to_service` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def to_service(told: dict[str, Any], *, keep_addresses: bool) -> dict[str, Any]:
    """What the options say, as arguments of `flexwire.net.run_tap`."""
    from flexwire.capture.kept_files import KeepLimit

    rotate, keep_mib, processes = told.pop("rotate"), told.pop("keep_mib"), told["processes"]
    if keep_mib is not None and keep_mib < (processes + 1) * rotate:
        raise InputError(
            f"--keep-mib is to hold {processes + 1} files of --rotate {rotate} at least, got "
            f"{keep_mib}"
        )
    if keep_addresses and told["ports"] is not None:
        raise InputError("--ports are for brokers' listeners, and --keep-addresses has none")
    keep_bytes = None if keep_mib is None else keep_mib * _MIB
    return {
        "max_bytes": rotate * _MIB,
        "most_held": told.pop("hold_mib") * _MIB,
        "keep": KeepLimit(keep_bytes, told.pop("keep_files")),
        "sample": told.pop("sample"),
        "only": _only(told),
        "processes": told.pop("processes"),
        "ports": _ports(told.pop("ports")),
        "metrics": _metrics(told.pop("metrics"), told.pop("metrics_beyond_loopback")),
    }


def _only(told: dict[str, Any]) -> CaptureFilter:
    from flexwire.capture.filtering import CaptureFilter
    from flexwire.errors import ArgumentError
    from flexwire.net.filtering import parse_api

    try:
        apis = tuple(map(parse_api, told.pop("only_apis")))
        return CaptureFilter(apis, told.pop("only_client_ids"), told.pop("only_topics"))
    except ArgumentError as error:
        raise InputError(f"--only-…: {error}") from None


def _ports(text: str | None) -> PortRange | None:
    from flexwire.errors import ArgumentError
    from flexwire.net.ports import parse_port_range

    try:
        return None if text is None else parse_port_range(text)
    except ArgumentError as error:
        raise InputError(f"--ports: {error}") from None


def _metrics(address: str | None, beyond_loopback: bool) -> MetricsPort | None:  # noqa: FBT001  # an option
    from flexwire.net import MetricsPort, parse_host_port

    if address is not None:
        return MetricsPort(parse_host_port(address), beyond_loopback=beyond_loopback)
    if beyond_loopback:
        raise InputError("--metrics-beyond-loopback goes with --metrics")
    return None
