"""The options of commands that serve metrics in the OpenMetrics format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from flexwire.cli.options import InputError

if TYPE_CHECKING:
    from flexwire.tap.metrics import MetricsPort

METRICS_OPTIONS: Final = (
    click.option(
        "--metrics",
        metavar="HOST:PORT",
        help="Serve all counts in OpenMetrics format at http://HOST:PORT/metrics, on loopback "
        "only.",
    ),
    click.option(
        "--metrics-beyond-loopback",
        is_flag=True,
        help="Allow --metrics on addresses that other machines can reach.",
    ),
)
"""The options, in the order of the command's help."""


def metrics_port(address: str | None, *, beyond_loopback: bool) -> MetricsPort | None:
    """Return the port that the options describe, or None if no option is given.

    The port is opened later.
    """
    from flexwire.tap import MetricsPort, parse_host_port

    if address is not None:
        return MetricsPort(parse_host_port(address), beyond_loopback=beyond_loopback)
    if beyond_loopback:
        raise InputError("--metrics-beyond-loopback needs --metrics")
    return None
