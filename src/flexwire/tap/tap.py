"""The tap: a proxy before every broker of a cluster that captures what passes through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

import flexwire
from flexwire.arguments import to_int
from flexwire.capture.files.comments import ALL_FRAMES, CaptureFilter
from flexwire.capture.files.kept_files import NO_LIMIT, KeepLimit
from flexwire.client.notation import HostPort
from flexwire.protocol import DEFAULT_FRAME_LIMIT
from flexwire.tap.carrying import DEFAULT_FILE_BYTES, Carrier, Carries, Manner
from flexwire.tap.limits import MOST_HELD
from flexwire.tap.listeners import Listeners
from flexwire.tap.openmetrics import openmetrics
from flexwire.tap.ports import PortRange, StablePorts
from flexwire.tap.processes import Processes
from flexwire.tap.sampling import check_share
from flexwire.tap.securing import PLAIN, TapSecurity

if TYPE_CHECKING:
    import socket
    from types import TracebackType

    from flexwire.tap.stamping import Stamping
    from flexwire.tap.statistics import TapStatistics


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
        frame_limit: int = DEFAULT_FRAME_LIMIT,
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
