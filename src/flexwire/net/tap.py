"""The tap: a proxy before every broker of a cluster that captures what passes through."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import flexwire
from flexwire.capture.kept_files import NO_LIMIT, KeepLimit
from flexwire.capture.pcapng import PcapngWriter
from flexwire.capture.sampling import sampling_comment
from flexwire.errors import CaptureError, TapError
from flexwire.net.brokers import Brokers
from flexwire.net.ends import FLUSH_SECONDS, End
from flexwire.net.handshakes import outcome, why
from flexwire.net.host_port import HIGHEST_PORT, HostPort, is_address, is_unspecified
from flexwire.net.listening import Listener, begin, resolved
from flexwire.net.openmetrics import openmetrics
from flexwire.net.passing import AsTheyCome, Passing, Stamped
from flexwire.net.ports import PortRange, StablePorts
from flexwire.net.recording import Recorder
from flexwire.net.relay import Relay
from flexwire.net.sampling import Uncaptured, check_share, is_drawn
from flexwire.net.securing import PLAIN, TapContexts, TapSecurity
from flexwire.net.stamping import Stamper, Stamping
from flexwire.net.statistics import TapStatistics
from flexwire.protocol import DEFAULT_FRAME_LIMIT

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from types import TracebackType

    from flexwire.capture.pcapng import TappedConnection

log = logging.getLogger("flexwire.tap")

DEFAULT_FILE_BYTES: Final = 64 * 1024 * 1024
# A response may name as many addresses as its sender likes; each costs a listener.
_MOST_LISTENERS: Final = 1000
# Different reasons why connections ended that are logged; the counts go on.
_MOST_SAID: Final = 1000


class _Client(NamedTuple):
    """A client whose handshake is over."""

    end: End
    peer: HostPort
    host: str
    """By which it reaches the tap."""


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

    A ``listen`` port of 0 takes any free port. ``out`` is a directory; ``max_bytes`` is the size of
    one capture file, and ``keep`` how much of this run's stays there. With ``ports`` brokers'
    listeners are in that range, and in the next run at the same ports, by a file in ``out``. Of all
    connections the share ``sample`` is captured, each as a whole, and each file says so.
    ``stamping`` says which tags request headers are sent on with; comments in the capture hold
    them, beside what the client sent.
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
        security: TapSecurity = PLAIN,
        advertised_host: str | None = None,
        keep_addresses: bool = False,
        stamping: Stamping | None = None,
        keep: KeepLimit = NO_LIMIT,
        ports: PortRange | None = None,
        sample: float = 1.0,
    ) -> None:
        self.stats = TapStatistics()
        self._listen = HostPort(*listen)
        self._upstream = HostPort(*upstream)
        self._out = Path(out)
        self._max_bytes = max_bytes
        self._prefix = prefix
        self._frame_limit = frame_limit
        self._security = security
        self._contexts = TapContexts(PLAIN)
        # A certificate is for a name, which the address that it stands for is not.
        named = security.listen is not None and not is_address(self._listen.host)
        self._advertised_host = advertised_host or (self._listen.host if named else None)
        self._keep_addresses = keep_addresses
        self._stamping = stamping
        self._keep = keep
        self._ports = ports
        self._sample = check_share(sample)
        self._stable: StablePorts | None = None
        self._writer: PcapngWriter | None = None
        self._listeners: dict[HostPort, Listener] = {}
        self._connections: set[asyncio.Task[None]] = set()
        # Accepted, and not yet begun: a task that is cancelled before it runs closes nothing.
        self._waiting: set[socket.socket] = set()
        self._closing = False
        self._brokers = Brokers(self.stats)
        self._said: set[str] = set()
        # Open connections of each client's host.
        self._clients: Counter[str] = Counter()

    async def start(self) -> None:
        """Begin to listen.

        Raises `TapError` when it cannot, `TlsError` for certificates and keys, `CaptureError` for
        the directory.
        """
        self._security.check()
        self._contexts = TapContexts(self._security)
        theirs = self._security.upstream
        if theirs is not None and theirs.name is not None:
            self._brokers.names[self._upstream] = theirs.name
        self._brokers.tls = self._contexts.upstream
        if self._ports is not None:
            name = f"{self._prefix}-ports-{self._ports.first}.json"
            self._stable = StablePorts(self._ports, self._out / name)
        writer = PcapngWriter(
            self._out,
            prefix=self._prefix,
            max_bytes=self._max_bytes,
            keep=self._keep,
            comment=sampling_comment(self._sample) if self._sample < 1 else b"",
        )
        try:
            # A name may have several addresses, and would get a different free port on each.
            self._listen = HostPort(await resolved(self._listen), self._listen.port)
            self._listeners[self._upstream] = self._serve(self._upstream, self._listen.port)
        except (OSError, ValueError) as error:
            writer.close()
            raise TapError(f"cannot listen on {self._listen}: {error}") from error
        self._writer = writer
        # A client that knows a broker's listener of the last run comes there first.
        for address in () if self._stable is None else self._stable.addresses:
            self._open(address)

    async def close(self) -> None:
        """End every connection and close the capture; a second call does nothing."""
        self._closing = True
        # First the connections: while one runs, it may open a listener more.
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for listener in self._listeners.values():
            await listener.close()
        for client in self._waiting:
            client.close()
        self._waiting.clear()
        self._listeners.clear()
        self._brokers.close()
        if self._writer is not None:
            self._writer.close()
            self._count_files(self._writer)

    def rotate(self) -> None:
        """Go on in the next capture file, so that those until now are finished."""
        if self._writer is None:
            return
        try:
            ended = self._writer.rotate()
        except CaptureError as error:
            log.error("the capture goes on in the same file: %s", error)  # noqa: TRY400  # the reason says all
            return
        if ended:
            log.info("the capture goes on in %s", self._writer.paths[-1].name)

    def counts(self) -> TapStatistics:
        """`stats` as they are now, with what became of capture files."""
        if self._writer is not None:
            self._count_files(self._writer)
        return self.stats

    def openmetrics(self) -> bytes:
        """`counts`, and how many there are now of some things, for a monitor."""
        gauges = {
            "clients": len(self._clients),
            "listeners": len(self._listeners),
            "capture_files": len(self.capture_paths),
        }
        return openmetrics(self.counts(), gauges, flexwire.__version__)

    def _count_files(self, writer: PcapngWriter) -> None:
        for file in writer.kept.removed:
            self.stats.removed_files += 1
            self.stats.removed_frames += file.frames
            self.stats.removed_bytes += file.size
        writer.kept.removed.clear()
        lost, writer.lost_frames = writer.lost_frames, 0
        if lost:
            self.stats.capture_failures += lost
            log.error("%d frames were in capture files that are gone", lost)

    @property
    def listen_address(self) -> HostPort:
        """Where clients bootstrap, with the port that was really taken."""
        return HostPort(self._listen.host, self._listeners[self._upstream].port)

    @property
    def listeners(self) -> dict[HostPort, HostPort]:
        """Each broker's address as the cluster advertises it, and the tap's listener for it."""
        return {
            upstream: HostPort(self._listen.host, listener.port)
            for upstream, listener in self._listeners.items()
        }

    @property
    def capture_paths(self) -> list[Path]:
        """The capture files written so far, without those that made room for later ones."""
        return [] if self._writer is None else list(self._writer.paths)

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

    def _serve(self, upstream: HostPort, port: int) -> Listener:
        def accepted(client: socket.socket) -> None:
            if self._closing:
                client.close()
                return
            self._waiting.add(client)
            task = asyncio.create_task(self._connection(client, upstream))
            self._connections.add(task)
            task.add_done_callback(self._ended)

        return Listener(self._listen.host, port, accepted)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stats.failures += 1
            log.error("a connection was closed by a defect in the tap", exc_info=error)

    async def _connection(self, accepted: socket.socket, upstream: HostPort) -> None:
        self._waiting.discard(accepted)
        self.stats.connections += 1
        self.stats.open_connections += 1
        number = self.stats.connections
        try:
            client = await self._begin(accepted)
            if client is not None:
                await self._with_client(client, upstream, number)
        finally:
            self.stats.open_connections -= 1

    async def _with_client(self, client: _Client, upstream: HostPort, number: int) -> None:
        host = client.peer.host
        self._clients[host] += 1
        try:
            broker = await self._brokers.connect(upstream)
            if broker is None:
                return
            try:
                await self._relay(client, broker, upstream, number)
            finally:
                await broker.close(self._patience)
        finally:
            self._clients[host] -= 1
            if not self._clients[host]:
                del self._clients[host]
            await client.end.close(self._patience)

    async def _begin(self, client: socket.socket) -> _Client | None:
        """A client, once its handshake is over; None where that failed."""
        tls = self._contexts.listen
        try:
            # Asked for now: a transport with TLS has forgotten it when it is closed.
            near, own = _host_port(client.getpeername()), _host_port(client.getsockname())
        except OSError:
            client.close()
            return None  # it left at once
        try:
            end = End(over_tls=tls is not None)
            await begin(client, end, tls, FLUSH_SECONDS)
            return _Client(end, near, self._host_for(end, own))
        except OSError as error:
            kind = outcome(error)
            setattr(self.stats, kind, getattr(self.stats, kind) + 1)
            self._say_once(f"{near.host}: closed, as TLS could not be begun: {why(error)}")
            return None

    def _say_once(self, told: str) -> None:
        """Log what clients repeat many times a second; how often it came is in the counts."""
        level = logging.DEBUG
        if told not in self._said and len(self._said) < _MOST_SAID:
            self._said.add(told)
            level = logging.WARNING
        log.log(level, "%s", told)

    @property
    def _patience(self) -> float:
        return 0.0 if self._closing else FLUSH_SECONDS

    async def _relay(self, client: _Client, broker: End, upstream: HostPort, number: int) -> None:
        peer = broker.known("peername")
        if peer is None or self._writer is None:
            # The broker left before its name was asked.
            self.stats.unreachable += 1
            return
        near, far = client.peer, _host_port(peer)
        name = f"{near} → {upstream}"
        try:
            capture = self._begin_capture(self._writer, near, far)
        except CaptureError as error:
            # Better no connection than one whose missing start shows nowhere.
            self.stats.not_captured += 1
            log.error("%s: closed, as it cannot be captured: %s", name, error)  # noqa: TRY400  # the reason says all
            return

        def route(address: HostPort) -> HostPort:
            return address if self._keep_addresses else self._route(address, client.host)

        passing: Passing = AsTheyCome()
        if self._stamping is not None:
            passing = Stamped(Stamper(self._stamping, str(near), number), self.stats)
        relay = Relay(
            client.end,
            broker,
            Recorder(capture, self.stats, name, withholds=self._security.withholds),
            passing,
            route=route,
            statistics=self.stats,
            frame_limit=self._frame_limit,
            name=name,
        )
        await relay.run()
        if relay.refused is not None:
            self._say_once(f"{upstream}: closed, as TLS could not be begun: {relay.refused}")
        if relay.asked_for_tickets and not self._keep_addresses:
            self._say_once(
                "a client asks for GSSAPI, which holds only where the tap has the broker's own "
                "name (--keep-addresses): its ticket is for the name that it connects to"
            )

    def _begin_capture(
        self, writer: PcapngWriter, near: HostPort, far: HostPort
    ) -> TappedConnection | Uncaptured:
        if is_drawn(self._sample):
            return writer.open_connection(client=near, server=far)
        self.stats.unsampled_connections += 1
        return Uncaptured(self.stats)

    def _route(self, address: HostPort, host: str) -> HostPort:
        """The tap's own address for a broker's, at the host by which the client reaches the tap."""
        listener = self._listeners.get(address) or self._open(address)
        if listener is None:
            self.stats.not_rerouted += 1
            return address
        return HostPort(host, listener.port)

    def _host_for(self, client: End, own: HostPort) -> str:
        if self._advertised_host is not None:
            return self._advertised_host
        asked = self._contexts.name_asked_for(client.known("ssl_object"))
        if asked is not None:
            return asked
        return own.host if is_unspecified(self._listen.host) else self._listen.host

    def _open(self, address: HostPort) -> Listener | None:
        if len(self._listeners) >= _MOST_LISTENERS:
            log.error("no listener for %s: there are %d already", address, len(self._listeners))
            return None
        listener = None
        for port in self._ports_for(address):
            try:
                listener = self._serve(address, port)
                break
            except OSError as error:
                if not port or error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                    log.error("no listener for %s: %s", address, error)  # noqa: TRY400  # the reason says all
                    return None
        if listener is None:
            log.error("no listener for %s: no port is free for it", address)
            return None
        self._listeners[address] = listener
        log.info("%s is reached through port %d", address, listener.port)
        if self._stable is not None:
            try:
                self._stable.keep(address, listener.port)
            except OSError as error:
                log.error("a later run may give %s another port: %s", address, error)  # noqa: TRY400  # the reason says all
        return listener

    def _ports_for(self, address: HostPort) -> Iterator[int]:
        if self._stable is not None:
            yield from self._stable.candidates(address)
            return
        following = self._listen.port + len(self._listeners)
        if self._listen.port and following <= HIGHEST_PORT:
            yield following
        yield 0


def _host_port(name: Any) -> HostPort:
    # A link-local IPv6 address carries its interface, which a packet has no place for.
    return HostPort(name[0].partition("%")[0], name[1])
