"""Connections through the tap: from the accepted socket until all their bytes are captured."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import ssl
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from flexwire.capture.files.comments import (
    added_tags_comment,
    faults_comment,
    filter_comment,
    rehearsing_comment,
    sampling_comment,
)
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.capture.files.retention import KeptFiles
from flexwire.client.notation import HostPort, is_address, is_unspecified
from flexwire.client.tls import HANDSHAKE_SECONDS, classify_handshake, explain_failure
from flexwire.errors import CaptureError, TapError
from flexwire.protocol.frames import FrameBudget
from flexwire.tap.ends import FLUSH_SECONDS, End
from flexwire.tap.fault_forwarder import FaultForwarder, OldResponses
from flexwire.tap.forwarding import DirectForwarder, StampingForwarder
from flexwire.tap.frame_filter import FrameFilter, LazyCapture, TopicNames
from flexwire.tap.header_stamps import Stamper
from flexwire.tap.listeners import connect_protocol
from flexwire.tap.live import LiveReaders
from flexwire.tap.log_limit import LogLimiter
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.recorder import NoCapture, Recorder, is_sampled
from flexwire.tap.rehearsal import Rehearsal, RehearsingForwarder
from flexwire.tap.relay import Relay
from flexwire.tap.security import PLAIN, TapContexts

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.capture.files.pcapng import TappedConnection
    from flexwire.tap.config import TapConfig
    from flexwire.tap.fault_rules import Faults
    from flexwire.tap.forwarding import Forwarder
    from flexwire.tap.rehearsal import RehearsalPlan


log = logging.getLogger("flexwire.tap")

CONNECT_SECONDS: Final = 10.0


class BrokerConnector:
    """Connect to brokers, with TLS if `tls` is set, and check each broker's own name.

    `names` contains the names to check in certificates for addresses that no broker advertises.
    """

    def __init__(self, statistics: TapStatistics) -> None:
        self.tls: ssl.SSLContext | None = None
        self.names: dict[HostPort, str] = {}
        self._statistics = statistics
        # Addresses that could not be reached at the last attempt, with the number of failures since
        # they were last reached.
        self._unreachable: dict[HostPort, int] = {}

    async def connect(self, address: HostPort) -> End | None:
        """Return the end of a connection to a broker, or None if the broker is unreachable.

        Failures are counted and logged.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS + (HANDSHAKE_SECONDS if self.tls else 0)):
                loop = asyncio.get_running_loop()
                _, broker = await loop.create_connection(
                    lambda: End(over_tls=self.tls is not None), *address, **self._secured(address)
                )
        except (OSError, ValueError) as error:  # An impossible host raises a ValueError.
            self._failed(address, error)
            return None
        if failed := self._unreachable.pop(address, 0):
            log.info("%s is reachable again; %d connections were closed", address, failed)
        return broker

    def close(self) -> None:
        """Log the brokers that are still unreachable."""
        for address, failed in self._unreachable.items():
            log.info("%s is still unreachable; %d connections were closed", address, failed)
        self._unreachable.clear()

    def _secured(self, address: HostPort) -> dict[str, Any]:
        if self.tls is None:
            return {}
        return {
            "ssl": self.tls,
            "server_hostname": self.names.get(address, address.host),
            "ssl_handshake_timeout": HANDSHAKE_SECONDS,
            "ssl_shutdown_timeout": FLUSH_SECONDS,
        }

    def _failed(self, address: HostPort, error: Exception) -> None:
        reason: str | Exception = error or type(error).__name__
        shaking = ssl.SSLError | ConnectionAbortedError | ConnectionResetError
        if self.tls is not None and isinstance(error, shaking):
            self._statistics.broker_handshakes_failed += 1
            reason = explain_failure(error)
        else:
            self._statistics.unreachable += 1
        failed = self._unreachable[address] = self._unreachable.get(address, 0) + 1
        # Clients retry many times a second. The number of failures is logged when the broker is
        # reached again.
        level = logging.WARNING if failed == 1 else logging.DEBUG
        log.log(level, "cannot reach %s: %s", address, reason)


# The largest number of distinct reasons to log for the end of connections. Further reasons are only
# counted.
_MOST_SAID: Final = 1000


def file_comments(config: TapConfig, faults: Faults | None = None) -> tuple[bytes, ...]:
    """Return the comments on each capture file."""
    comments = [sampling_comment(config.sample)] if config.sample < 1 else []
    if config.stamping is not None and config.stamping.tags:
        comments.append(added_tags_comment(tag.tag for tag in config.stamping.tags))
    if config.rehearsal is not None:
        comments.append(rehearsing_comment(config.rehearsal.release))
    if faults is not None and faults.active:
        comments.append(faults_comment(map(str, faults.active), faults.seed))
    return (*comments, filter_comment(config.only)) if config.only else tuple(comments)


class ConnectionRunner(Protocol):
    """The part that runs clients' connections: this process, or several separate processes."""

    async def start(self, host: str) -> None:
        """Prepare for clients, which connect to listeners at the ``host``."""

    def take(self, client: socket.socket, upstream: HostPort, number: int) -> None:
        """Connect an accepted client to a broker, as the connection with the given ``number``."""

    def rotate(self) -> None:
        """Continue in the next capture file."""

    def rehearse(self, plan: RehearsalPlan) -> None:
        """Rehearse a release, with the known facts about the brokers.

        A tap with several processes can rehearse only from its start.
        """

    def end_rehearsal(self, reason: str) -> None:
        """Continue as a tap without a rehearsal."""

    @property
    def rehearsal(self) -> Rehearsal | None:
        """The current or the last rehearsal, or None if there was no rehearsal."""

    async def close(self) -> None:
        """End every connection and close the capture."""

    @property
    def stats(self) -> TapStatistics:
        """The counts so far."""

    def counts(self) -> TapStatistics:
        """Return the counts so far, including those of capture files."""

    @property
    def clients(self) -> int:
        """Return how many hosts have open connections."""

    @property
    def capture_paths(self) -> list[Path]:
        """The capture files of this run that exist."""


class _Client(NamedTuple):
    """A client after its handshake."""

    end: End
    peer: HostPort
    host: str
    """The host by which the client reaches the tap."""


class LocalRunner:
    """Run all connections in this process.

    ``port_for`` returns the tap's port for a broker's address, or None. ``on_end`` is called with
    the number of each connection that has ended. ``faults`` are applied to the connections.
    """

    def __init__(
        self,
        config: TapConfig,
        port_for: Callable[[HostPort], int | None],
        files: KeptFiles | None = None,
        on_end: Callable[[int], None] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._stats = TapStatistics()
        self._room = FrameBudget(config.most_held // config.processes)
        self._config = config
        self._port_for = port_for
        self._on_end = on_end
        self._files = KeptFiles(config.keep) if files is None else files
        self._contexts = TapContexts(PLAIN)
        # A certificate is valid for a name, but an address that was replaced is an IP address.
        named = config.security.listen is not None and not is_address(config.listen.host)
        self._advertised_host = config.advertised_host or (config.listen.host if named else None)
        self._host = ""
        self._writer: PcapngWriter | None = None
        self._live: LiveReaders | None = None
        self._connections: set[asyncio.Task[None]] = set()
        # Clients that were accepted but whose task has not started. A task that is canceled before
        # it runs closes nothing.
        self._waiting: set[socket.socket] = set()
        self._closing = False
        self._brokers = BrokerConnector(self.stats)
        self._topics = TopicNames()
        self._said: set[str] = set()
        self._saying = LogLimiter(log)
        self._rehearsal: Rehearsal | None = None
        self._faults = faults
        self._old_responses = OldResponses()
        # The number of open connections of each client's host.
        self._clients: Counter[str] = Counter()

    async def start(self, host: str) -> None:
        """Read the certificates and begin the capture.

        Raises `TlsError` and `CaptureError`, and `TapError` if the socket of ``live`` fails.
        """
        config = self._config
        self._host = host
        self._contexts = TapContexts(config.security)
        theirs = config.security.upstream
        if theirs is not None and theirs.name is not None:
            self._brokers.names[config.upstream] = theirs.name
        self._brokers.tls = self._contexts.upstream
        self._writer = PcapngWriter(
            config.out,
            prefix=config.prefix,
            max_bytes=config.max_bytes,
            keep=self._files,
            comment=file_comments(config, self._faults),
        )
        if config.live is not None:
            self._live = LiveReaders(config.live, self._writer, self.stats)
            try:
                self._live.start()
            except TapError:
                self._writer.close()
                raise

    @property
    def stats(self) -> TapStatistics:
        """The counts, which change while the runner is active."""
        return self._stats

    def take(self, client: socket.socket, upstream: HostPort, number: int) -> None:
        """Run a client's connection. If the runner was closed, close the client immediately."""
        if self._closing:
            client.close()
            return
        self._waiting.add(client)
        task = asyncio.create_task(self._connection(client, upstream, number))
        self._connections.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """End every connection and close the capture. Calling this again has no effect."""
        self._closing = True
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for client in self._waiting:
            client.close()
        self._waiting.clear()
        self._brokers.close()
        if self._live is not None:
            self._live.close()
        if self._writer is not None:
            self._writer.close()
            self._count_files(self._writer)
        self._saying.close()

    def rotate(self) -> None:
        """Continue in the next capture file, so that the earlier files are finished."""
        if self._writer is None:
            return
        try:
            ended = self._writer.rotate()
        except CaptureError as error:
            log.error("the capture continues in the same file: %s", error)  # noqa: TRY400  # the message is enough
            return
        if ended:
            log.info("the capture continues in %s", self._writer.paths[-1].name)

    def rehearse(self, plan: RehearsalPlan, *, quiet: bool = False) -> None:
        """Rehearse a release with all new connections. ``quiet`` is passed to `Rehearsal`.

        Raises `CaptureError` if there is a capture, but no file can record the rehearsal.
        """
        if self._writer is not None:
            self._writer.say(*file_comments(dataclasses.replace(self._config, rehearsal=plan)))
        self._rehearsal = Rehearsal(plan, self._config.only, quiet=quiet)

    def end_rehearsal(self, reason: str) -> None:
        """Pass all later requests on unchanged."""
        if self._rehearsal is not None:
            self._rehearsal.end(reason)

    @property
    def rehearsal(self) -> Rehearsal | None:
        """The current or the last rehearsal, or None if there was no rehearsal."""
        return self._rehearsal

    def counts(self) -> TapStatistics:
        """Return the current `stats`, including the counts of capture files."""
        if self._writer is not None:
            self._count_files(self._writer)
        return self.stats

    @property
    def clients(self) -> int:
        """Return how many hosts have open connections."""
        return len(self._clients)

    @property
    def capture_paths(self) -> list[Path]:
        """The capture files so far, except those that were removed to make room."""
        return [] if self._writer is None else list(self._writer.paths)

    def _count_files(self, writer: PcapngWriter) -> None:
        self.stats.count_removed(writer.kept)
        lost, writer.lost_frames = writer.lost_frames, 0
        if lost:
            self.stats.capture_failures += lost
            log.error(
                "%d frames are lost: their capture files were deleted or could not be closed",
                lost,
            )

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stats.failures += 1
            kind = "a connection was closed by a defect in the tap"
            self._saying.say(logging.ERROR, kind, kind, error=error)

    async def _connection(self, accepted: socket.socket, upstream: HostPort, number: int) -> None:
        self._waiting.discard(accepted)
        self.stats.connections += 1
        self.stats.open_connections += 1
        try:
            client = await self._begin(accepted)
            if client is not None:
                await self._with_client(client, upstream, number)
        finally:
            self.stats.open_connections -= 1
            if self._on_end is not None:
                self._on_end(number)

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
        """Return a client after its TLS handshake, or None if the handshake failed."""
        tls = self._contexts.listen
        try:
            # The value is read at this point, because a TLS transport forgets the value when it is
            # closed.
            near, own = _host_port(client.getpeername()), _host_port(client.getsockname())
        except OSError:
            client.close()
            return None  # The client has already left.
        try:
            end = End(over_tls=tls is not None)
            await connect_protocol(client, end, tls, FLUSH_SECONDS)
            return _Client(end, near, self._host_for(end, own))
        except OSError as error:
            kind = classify_handshake(error)
            setattr(self.stats, kind, getattr(self.stats, kind) + 1)
            self._say_once(
                f"{near.host}: connection closed, because TLS could not be started: "
                f"{explain_failure(error)}"
            )
            return None

    def _say_once(self, line: str) -> None:
        """Log an event that clients can cause many times a second.

        The counts contain the number of these events.
        """
        level = logging.DEBUG
        if line not in self._said and len(self._said) < _MOST_SAID:
            self._said.add(line)
            level = logging.WARNING
        log.log(level, "%s", line)

    @property
    def _patience(self) -> float:
        return 0.0 if self._closing else FLUSH_SECONDS

    async def _relay(self, client: _Client, broker: End, upstream: HostPort, number: int) -> None:
        peer = broker.extra_info("peername")
        if peer is None or self._writer is None:
            # The broker disconnected before its name could be read.
            self.stats.unreachable += 1
            return
        near, far = client.peer, _host_port(peer)
        name = f"{near} → {upstream}"
        try:
            capture = self._begin_capture(self._writer, near, far)
        except CaptureError as error:
            # Refusing a connection is better than capturing one whose missing start is not visible.
            self.stats.not_captured += 1
            line = f"{name}: connection closed, because it cannot be captured: {error}"
            self._saying.say(logging.ERROR, "connections that cannot be captured", line)
            return

        def route(address: HostPort) -> HostPort:
            return address if self._config.keep_addresses else self._route(address, client.host)

        relay = Relay(
            client.end,
            broker,
            self._recorder(capture, name),
            self._forwarder(near, number),
            route=route,
            statistics=self.stats,
            frame_limit=self._config.frame_limit,
            room=self._room,
            name=name,
            saying=self._saying,
        )
        await relay.run()
        if relay.refused is not None:
            self._say_once(
                f"{upstream}: connection closed, because TLS could not be started: {relay.refused}"
            )
        if relay.asked_for_tickets and not self._config.keep_addresses:
            self._say_once(
                "a client uses Kerberos (GSSAPI), whose tickets name the host that the client "
                "connects to; give the tap the broker's own name, and use --keep-addresses"
            )

    def _forwarder(self, peer: HostPort, number: int) -> Forwarder:
        if self._config.stamping is not None:
            stamper = Stamper(self._config.stamping, str(peer), number)
            return StampingForwarder(stamper, self.stats)
        if self._rehearsal is not None and self._rehearsal.over is None:
            return RehearsingForwarder(self._rehearsal, peer.host, self.stats, self._saying)
        if self._faults is not None:
            return FaultForwarder(
                self._faults, self._topics, self._old_responses, self.stats, self._saying
            )
        return DirectForwarder()

    def _begin_capture(
        self, writer: PcapngWriter, near: HostPort, far: HostPort
    ) -> TappedConnection | NoCapture | LazyCapture:
        if not is_sampled(self._config.sample):
            self.stats.unsampled_connections += 1
            return NoCapture(self.stats)
        if self._config.only:
            return LazyCapture(lambda at_us: writer.open_connection(near, far, timestamp_us=at_us))
        return writer.open_connection(near, far)

    def _recorder(self, capture: TappedConnection | NoCapture | LazyCapture, name: str) -> Recorder:
        frame_filter = None
        if isinstance(capture, LazyCapture):
            frame_filter = FrameFilter(self._config.only, self._topics, self.stats)
        withholds = self._config.security.withholds
        return Recorder(
            capture,
            self.stats,
            name,
            withholds=withholds,
            frame_filter=frame_filter,
            saying=self._saying,
        )

    def _route(self, address: HostPort, host: str) -> HostPort:
        """Return the tap's address for a broker, at the host that the client used for the tap."""
        port = self._port_for(address)
        if port is None:
            self.stats.not_rerouted += 1
            return address
        return HostPort(host, port)

    def _host_for(self, client: End, own: HostPort) -> str:
        if self._advertised_host is not None:
            return self._advertised_host
        asked = self._contexts.name_asked_for(client.extra_info("ssl_object"))
        if asked is not None:
            return asked
        return own.host if is_unspecified(self._host) else self._host


def _host_port(name: Any) -> HostPort:
    # A link-local IPv6 address includes its interface. A packet cannot contain the interface.
    return HostPort(name[0].partition("%")[0], name[1])
