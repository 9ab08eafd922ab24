"""The tap: a proxy before every broker of a cluster that captures what passes through."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypedDict, Unpack

import flexwire
from flexwire.arguments import to_int
from flexwire.capture.files.comments import ALL_FRAMES, CaptureFilter
from flexwire.capture.files.kept_files import NO_LIMIT, KeepLimit
from flexwire.client.notation import HostPort
from flexwire.protocol import SENT_FRAME_LIMIT
from flexwire.tap.connections import DEFAULT_FILE_BYTES, Carrier, Carries, Manner
from flexwire.tap.limits import MOST_HELD
from flexwire.tap.listeners import Listeners, PortRange, StablePorts
from flexwire.tap.metrics import openmetrics
from flexwire.tap.processes import Processes
from flexwire.tap.recording import check_share
from flexwire.tap.security import PLAIN, TapSecurity, secured

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from flexwire.tap.metrics import MetricsPort, TapStatistics
    from flexwire.tap.stamping import Stamping


class Tap:
    """A proxy before one cluster: ``async with Tap(listen, upstream, out) as tap: …``.

    Clients bootstrap at `listen_address`. In responses each broker's address is replaced by a
    listener of the tap, opened when the address is first seen and kept while the tap runs: on the
    ports after the first one, or on any free port where that is taken. So every connection to any
    broker of the cluster passes through.

    The capture holds what the client sent and what the broker really sent, before rewriting,
    between the client's address and that of the broker it was passed on to. So a capture reads as
    if taken on the broker's machine, and the addresses in it are the cluster's own.

    With ``security`` it listens with TLS, on every listener, and connects with TLS to every broker,
    by the name that the broker advertises. What it captures is then plain, and by default without
    credentials. Without, TLS is passed on and captured but not read: see `TapStatistics.tls`.

    Its own listeners are advertised by ``advertised_host``, or the name that the client asked for
    by TLS (SNI), or the address in ``listen``. A tap that stands beside each broker, at the
    broker's own name and port, is to ``keep_addresses`` as they are.

    Of frames that are not yet whole at most ``most_held`` bytes are held, over all connections.
    Beyond that frames pass, and the capture has only their beginning; both are counted
    (`TapStatistics.shortened_frames`).

    A ``listen`` port of 0 takes any free port. ``out`` is a directory; ``max_bytes`` is the size of
    one capture file, and ``keep`` how much of this run's stays there. With ``ports`` brokers'
    listeners are in that range, and in the next run at the same ports, by a file in ``out``. Of all
    connections the share ``sample`` is captured, each as a whole, and ``only`` some of their
    frames; each file says so.
    ``stamping`` says which tags request headers are sent on with; comments in the capture hold
    them, beside what the client sent. Several ``processes`` take turns with clients, each with
    capture files of its own; a script that starts such a tap is to be importable, as
    `multiprocessing` has it.
    """

    def __init__(  # noqa: PLR0913  # the options of a program
        self,
        listen: HostPort | tuple[str, int],
        upstream: HostPort | tuple[str, int],
        out: Path,
        *,
        max_bytes: int = DEFAULT_FILE_BYTES,
        prefix: str = "tap",
        frame_limit: int = SENT_FRAME_LIMIT,
        most_held: int = MOST_HELD,
        security: TapSecurity = PLAIN,
        advertised_host: str | None = None,
        keep_addresses: bool = False,
        stamping: Stamping | None = None,
        keep: KeepLimit = NO_LIMIT,
        ports: PortRange | None = None,
        sample: float = 1.0,
        only: CaptureFilter = ALL_FRAMES,
        processes: int = 1,
    ) -> None:
        self._how = Manner(
            HostPort(*listen),
            HostPort(*upstream),
            Path(out),
            max_bytes=max_bytes,
            prefix=prefix,
            frame_limit=frame_limit,
            most_held=to_int(most_held, "most_held", least=1)
            // to_int(processes, "processes", least=1),
            security=security,
            advertised_host=advertised_host,
            keep_addresses=keep_addresses,
            stamping=stamping,
            keep=keep,
            sample=check_share(sample),
            only=only,
        )
        self._ports = ports
        self._listeners = Listeners(self._accepted)
        self._carrier: Carries = Carrier(self._how, self._listeners.port_for)
        if processes > 1:
            self._carrier = Processes(self._how, processes, self._listeners.port_for)
        self._accepted_count = 0

    async def start(self) -> None:
        """Begin to listen.

        Raises `TapError` when it cannot, `TlsError` for certificates and keys, `CaptureError` for
        the directory.
        """
        how = self._how
        how.security.check()
        if self._ports is not None:
            name = f"{how.prefix}-ports-{self._ports.first}.json"
            self._listeners.stable = StablePorts(self._ports, how.out / name)
        await self._listeners.resolve(how.listen)
        await self._carrier.start(self._listeners.host)
        try:
            self._listeners.start(how.upstream)
        except BaseException:
            await self._carrier.close()
            raise

    async def close(self) -> None:
        """End every connection and close the capture; a second call does nothing."""
        # First the connections: while one runs, it may open a listener more.
        await self._carrier.close()
        await self._listeners.close()

    def rotate(self) -> None:
        """Go on in the next capture file, so that those until now are finished."""
        self._carrier.rotate()

    @property
    def stats(self) -> TapStatistics:
        """What is counted while it runs."""
        return self._carrier.stats

    def counts(self) -> TapStatistics:
        """`stats` as they are now, with what became of capture files."""
        return self._carrier.counts()

    def openmetrics(self) -> bytes:
        """`counts`, and how many there are now of some things, for a monitor."""
        gauges = {
            "clients": self._carrier.clients,
            "listeners": len(self.listeners),
            "capture_files": len(self.capture_paths),
        }
        return openmetrics(self.counts(), gauges, flexwire.__version__)

    @property
    def listen_address(self) -> HostPort:
        """Where clients bootstrap, with the port that was really taken."""
        return self.listeners[self._how.upstream]

    @property
    def listeners(self) -> dict[HostPort, HostPort]:
        """Each broker's address as the cluster advertises it, and the tap's listener for it."""
        return self._listeners.addresses

    @property
    def capture_paths(self) -> list[Path]:
        """The capture files written so far, without those that made room for later ones."""
        return self._carrier.capture_paths

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _accepted(self, client: socket.socket, upstream: HostPort) -> None:
        self._accepted_count += 1
        self._carrier.take(client, upstream, self._accepted_count)


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
