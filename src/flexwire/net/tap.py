"""The tap: a proxy before every broker of a cluster that captures what passes through."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from flexwire.capture.pcapng import PcapngWriter
from flexwire.errors import CaptureError, TapError
from flexwire.net.host_port import HIGHEST_PORT, HostPort, parse_host_port
from flexwire.net.relay import CHUNK_BYTES, Relay, Streams, close_stream
from flexwire.net.stamping import Stamper, Stamping
from flexwire.net.statistics import TapStatistics
from flexwire.protocol import DEFAULT_FRAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

log = logging.getLogger("flexwire.tap")

DEFAULT_FILE_BYTES: Final = 64 * 1024 * 1024
_CONNECT_SECONDS: Final = 10.0
# A peer that reads nothing keeps what was sent to it in a buffer; this is how long it may.
_FLUSH_SECONDS: Final = 5.0
# A response may name as many addresses as its sender likes; each costs a listener.
_MOST_LISTENERS: Final = 1000


class Tap:
    """A proxy before one cluster: ``async with Tap(listen, upstream, out) as tap: …``.

    Clients bootstrap at `listen_address`. In responses each broker's address is replaced by a
    listener of the tap, opened when the address is first seen and kept while the tap runs: on the
    ports after the first one, or on any free port where that is taken. So every connection to any
    broker of the cluster passes through.

    The capture holds what the client sent and what the broker really sent, before rewriting,
    between the client's address and that of the broker it was passed on to. So a capture reads as
    if taken on the broker's machine, and the addresses in it are the cluster's own.

    TLS is passed on and captured but not read: see `TapStatistics.tls`. A ``listen`` port of 0
    takes any free port. ``out`` is a directory; ``max_bytes`` is the size of one capture file.
    ``stamping`` says which tags request headers are sent on with; comments in the capture hold
    them, beside what the client sent.
    """

    def __init__(  # the options of a program
        self,
        listen: HostPort | tuple[str, int],
        upstream: HostPort | tuple[str, int],
        out: Path,
        *,
        max_bytes: int = DEFAULT_FILE_BYTES,
        prefix: str = "tap",
        frame_limit: int = DEFAULT_FRAME_LIMIT,
        stamping: Stamping | None = None,
    ) -> None:
        self.stats = TapStatistics()
        self._listen = HostPort(*listen)
        self._upstream = HostPort(*upstream)
        self._out = Path(out)
        self._max_bytes = max_bytes
        self._prefix = prefix
        self._frame_limit = frame_limit
        self._stamping = stamping
        self._writer: PcapngWriter | None = None
        self._servers: dict[HostPort, asyncio.Server] = {}
        self._opening = asyncio.Lock()
        self._connections: set[asyncio.Task[None]] = set()
        self._closing = False
        # Addresses that could not be reached when last tried, and how often since they could.
        self._unreachable: dict[HostPort, int] = {}

    async def start(self) -> None:
        """Begin to listen. Raises `TapError` when it cannot, `CaptureError` for the directory."""
        writer = PcapngWriter(self._out, prefix=self._prefix, max_bytes=self._max_bytes)
        try:
            # A name may have several addresses, and would get a different free port on each.
            self._listen = HostPort(await _resolve(self._listen), self._listen.port)
            self._servers[self._upstream] = await self._serve(self._upstream, self._listen.port)
        except (OSError, ValueError) as error:
            writer.close()
            raise TapError(f"cannot listen on {self._listen}: {error}") from error
        self._writer = writer

    async def close(self) -> None:
        """End every connection and close the capture; a second call does nothing."""
        self._closing = True
        for server in self._servers.values():
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for server in self._servers.values():
            await server.wait_closed()
        self._servers.clear()
        for address, failed in self._unreachable.items():
            log.info("%s was not reached again; %d connections were closed", address, failed)
        self._unreachable.clear()
        if self._writer is not None:
            self._close_capture(self._writer)

    def _close_capture(self, writer: PcapngWriter) -> None:
        writer.close()
        lost, writer.lost_frames = writer.lost_frames, 0
        if lost:
            self.stats.capture_failures += lost
            log.error("%d frames were in capture files that are gone", lost)

    @property
    def listen_address(self) -> HostPort:
        """Where clients bootstrap, with the port that was really taken."""
        return HostPort(self._listen.host, _port(self._servers[self._upstream]))

    @property
    def listeners(self) -> dict[HostPort, HostPort]:
        """Each broker's address as the cluster advertises it, and the tap's listener for it."""
        return {
            upstream: HostPort(self._listen.host, _port(server))
            for upstream, server in self._servers.items()
        }

    @property
    def capture_paths(self) -> list[Path]:
        """The capture files written so far."""
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

    async def _serve(self, upstream: HostPort, port: int) -> asyncio.Server:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._closing:
                writer.transport.abort()
                return
            task = asyncio.create_task(self._connection((reader, writer), upstream))
            self._connections.add(task)
            task.add_done_callback(self._ended)

        return await asyncio.start_server(accept, self._listen.host, port, limit=CHUNK_BYTES)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stats.failures += 1
            log.error("a connection was closed by a defect in the tap", exc_info=error)

    async def _connection(self, client: Streams, upstream: HostPort) -> None:
        self.stats.connections += 1
        self.stats.open_connections += 1
        try:
            broker = await self._connect(upstream)
            if broker is None:
                return
            try:
                await self._relay(client, broker, upstream)
            finally:
                await close_stream(broker[1], self._patience)
        finally:
            self.stats.open_connections -= 1
            await close_stream(client[1], self._patience)

    @property
    def _patience(self) -> float:
        return 0.0 if self._closing else _FLUSH_SECONDS

    async def _connect(self, upstream: HostPort) -> Streams | None:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                broker = await asyncio.open_connection(*upstream, limit=CHUNK_BYTES)
        except (OSError, ValueError) as error:  # an impossible host is a ValueError
            self.stats.unreachable += 1
            failed = self._unreachable[upstream] = self._unreachable.get(upstream, 0) + 1
            # Clients try again many times a second; how often it failed is logged when it ends.
            level = logging.WARNING if failed == 1 else logging.DEBUG
            log.log(level, "cannot reach %s: %s", upstream, error or type(error).__name__)
            return None
        if failed := self._unreachable.pop(upstream, 0):
            log.info("%s is reached again; %d connections were closed", upstream, failed)
        return broker

    async def _relay(self, client: Streams, broker: Streams, upstream: HostPort) -> None:
        near, far = _peer(client[1]), _peer(broker[1])
        if near is None or far is None or self._writer is None:
            return  # the client, or the broker, left before its name was asked
        name = f"{near} → {upstream}"
        try:
            capture = self._writer.open_connection(client=near, server=far)
        except CaptureError as error:
            # Better no connection than one whose missing start shows nowhere.
            self.stats.not_captured += 1
            log.error("%s: closed, as it cannot be captured: %s", name, error)  # noqa: TRY400  # the reason says all
            return

        async def route(address: HostPort) -> HostPort:
            return await self._route(address, client[1])

        stamper = None
        if self._stamping is not None:
            stamper = Stamper(self._stamping, str(near), self.stats.connections)
        relay = Relay(
            client,
            broker,
            capture,
            route=route,
            statistics=self.stats,
            frame_limit=self._frame_limit,
            name=name,
            stamper=stamper,
        )
        await relay.run()

    async def _route(self, address: HostPort, client: asyncio.StreamWriter) -> HostPort:
        """The tap's own address for a broker's, as the client can reach it."""
        async with self._opening:
            server = self._servers.get(address) or await self._open(address)
        if server is None:
            self.stats.not_rerouted += 1
            return address
        host = self._listen.host
        if _is_unspecified(host):
            host = client.get_extra_info("sockname")[0]
        return HostPort(host, _port(server))

    async def _open(self, address: HostPort) -> asyncio.Server | None:
        if len(self._servers) >= _MOST_LISTENERS:
            log.error("no listener for %s: there are %d already", address, len(self._servers))
            return None
        following = self._listen.port + len(self._servers)
        preferred = following if self._listen.port and following <= HIGHEST_PORT else 0
        try:
            try:
                server = await self._serve(address, preferred)
            except OSError as error:
                if not preferred or error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                    raise
                server = await self._serve(address, 0)
        except OSError as error:
            log.error("no listener for %s: %s", address, error)  # noqa: TRY400  # the reason says all
            return None
        self._servers[address] = server
        log.info("%s is reached through port %d", address, _port(server))
        return server


async def run_tap(
    listen: str | HostPort,
    upstream: str | HostPort,
    out: Path,
    *,
    max_bytes: int = DEFAULT_FILE_BYTES,
    stamping: Stamping | None = None,
    ready: Callable[[Tap], None] | None = None,
) -> TapStatistics:
    """Run a tap until SIGINT or SIGTERM; then the capture is closed and the counts returned.

    ``ready`` is called once clients can connect. Raises `TapError` when the tap cannot start.
    """
    listen = parse_host_port(listen) if isinstance(listen, str) else listen
    upstream = parse_host_port(upstream) if isinstance(upstream, str) else upstream
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Without handlers (Windows, threads) a cancelled task stops the tap as cleanly.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop.set)
            handled.append(number)
    try:
        async with Tap(listen, upstream, out, max_bytes=max_bytes, stamping=stamping) as tap:
            if ready is not None:
                ready(tap)
            await stop.wait()
        return tap.stats
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def _resolve(address: HostPort) -> str:
    found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    # A client that knows only the name tries IPv4 sooner or later, whichever it is.
    found.sort(key=lambda one: one[0] is not socket.AF_INET)
    return str(found[0][4][0])


def _port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def _peer(writer: asyncio.StreamWriter) -> HostPort | None:
    peer: Any = writer.get_extra_info("peername")
    # A link-local IPv6 address carries its interface, which a packet has no place for.
    return HostPort(peer[0].partition("%")[0], peer[1]) if peer else None


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
