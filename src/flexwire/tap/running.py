"""A tap as a program: it runs until a signal says that it is over."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from flexwire.tap.securing import PLAIN, TapSecurity, secured
from flexwire.tap.tap import Tap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.capture.files.kept_files import KeepLimit
    from flexwire.client.notation import HostPort
    from flexwire.tap.metrics import MetricsPort
    from flexwire.tap.ports import PortRange
    from flexwire.tap.stamping import Stamping
    from flexwire.tap.statistics import TapStatistics

_INPUT: Final = 0
_LOG: Final = logging.getLogger(__name__)
_LAID_OPEN: Final = (
    "clients reach the tap under TLS, and from it on there is none: of SASL PLAIN and OAUTHBEARER "
    "whoever is between the tap and the brokers reads passwords and tokens; --upstream ssl://… "
    "hides them"
)


class TapOptions(TypedDict, total=False):
    """What else `Tap` takes."""

    max_bytes: int
    prefix: str
    frame_limit: int
    most_held: int
    advertised_host: str | None
    keep_addresses: bool
    stamping: Stamping | None
    keep: KeepLimit
    ports: PortRange | None
    sample: float
    only: CaptureFilter
    processes: int


async def run_tap(  # the parts of a program
    listen: str | HostPort,
    upstream: str | HostPort,
    out: Path,
    *,
    security: TapSecurity = PLAIN,
    metrics: MetricsPort | None = None,
    ready: Callable[[Tap], None] | None = None,
    **options: Unpack[TapOptions],
) -> TapStatistics:
    """Run a tap until SIGINT or SIGTERM; then the capture is closed and the counts returned.

    SIGHUP has it go on in the next capture file, or stop where it says that the terminal is gone.
    Addresses may have their security protocol, as in ``ssl://127.0.0.1:19093``. ``ready`` is called
    once clients can connect. ``metrics`` is started and closed with the tap, and gives its counts.
    Raises what `Tap.start` and `MetricsPort.start` raise.
    """
    listen, upstream, security = secured(listen, upstream, security)
    if security.lays_credentials_open:
        _LOG.warning(_LAID_OPEN)
    stop = asyncio.Event()
    at_terminal = os.isatty(_INPUT)
    tap = Tap(listen, upstream, out, security=security, **options)

    def hung_up() -> None:
        # Of a terminal that is gone nothing more comes, Ctrl-C neither.
        if at_terminal and not os.isatty(_INPUT):
            stop.set()
        else:
            tap.rotate()

    with _handled({"SIGINT": stop.set, "SIGTERM": stop.set, "SIGHUP": hung_up}):
        try:
            async with tap:
                if metrics is not None:
                    await metrics.start(tap.openmetrics)
                if ready is not None:
                    ready(tap)
                await stop.wait()
        finally:
            if metrics is not None:
                await metrics.close()
    return tap.counts()


@contextmanager
def _handled(handlers: dict[str, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    handled = []
    for name, handler in handlers.items():
        # Without handlers (Windows, threads) a cancelled task stops the tap as cleanly.
        with suppress(NotImplementedError, RuntimeError, ValueError, AttributeError):
            number = getattr(signal, name)
            loop.add_signal_handler(number, handler)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
