"""The counts of a tap, and the port at which a monitoring system reads them.

The server in this module uses no library. The counts already exist, so a registry would only repeat
them. The server of prometheus-client uses a thread for each connection, and limits neither time nor
bytes. Anybody on the machine may read the metrics, so limits protect the tap's other work.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import operator
from contextlib import suppress
from dataclasses import astuple, dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from flexwire.client.notation import HostPort
from flexwire.errors import TapError
from flexwire.tap.listeners import Listener, connect_protocol, resolve_host
from flexwire.tap.log_limit import LogLimiter

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from flexwire.capture.files.retention import KeptFiles


@dataclass(slots=True)
class TapStatistics:
    """The counts of one run of the tap, over all connections.

    Bytes include the length prefixes of frames.
    """

    connections: int = 0
    """Clients that connected."""
    open_connections: int = 0
    """Connections that are open now."""
    unreachable: int = 0
    """Connections closed at once, because their broker could not be reached."""
    tls: int = 0
    """Connections that began with a TLS ClientHello. They are captured, but not readable."""
    not_tls: int = 0
    """Clients that sent something other than TLS to a listener with TLS. They are disconnected."""
    handshakes_failed: int = 0
    """Clients whose TLS handshake failed or took too long. The log says why."""
    handshakes_left: int = 0
    """Clients that left before their TLS handshake was over, as health checks do."""
    broker_handshakes_failed: int = 0
    """Connections closed at once, because TLS with their broker could not be started."""
    reset: int = 0
    """Connections that ended with a reset, from either side."""
    left_early: int = 0
    """Clients that ended their connection while they waited for a response, which is allowed."""
    broken_off: int = 0
    """Frames of either direction that ended before their length was reached."""
    requests: int = 0
    responses: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    not_requests: int = 0
    """Frames of clients that are not requests with a known api key. They are forwarded."""
    not_frames: int = 0
    """How often a direction of a connection stopped containing frames. Its bytes are forwarded."""
    unpaired: int = 0
    """Responses without their request, or too short to be responses. They are forwarded."""
    gssapi: int = 0
    """GSSAPI logins that began. Such logins work only if the tap has the broker's own name."""
    withheld: int = 0
    """Frames with credentials. The credentials are not in the capture."""
    rewritten: int = 0
    """Responses in which an advertised address was replaced."""
    undecodable: int = 0
    """Responses that may advertise addresses but did not decode. They are forwarded unchanged."""
    too_long_to_rewrite: int = 0
    """Frames that were forwarded before they were complete, because too much was held."""
    not_rerouted: int = 0
    """Advertised addresses that were not replaced, because no listener could be opened."""
    stamped: int = 0
    """Requests that were forwarded with header tags of the tap."""
    unstamped_not_flexible: int = 0
    """Requests that a stamping tap forwarded unchanged, because their version has no tags in the
    header, or because no release has it."""
    unstamped_tag_taken: int = 0
    """Requests that a stamping tap forwarded unchanged, because the client sent such a tag itself.
    """
    unstamped_too_large: int = 0
    """Requests that a stamping tap forwarded unchanged, because a broker would refuse their size.
    """
    unstamped_sasl: int = 0
    """Frames that a stamping tap forwarded unchanged: SASL, unreadable frames, and all later
    frames.
    """
    rehearsed_narrowed: int = 0
    """ApiVersions requests whose response lost versions that the rehearsed release lacks."""
    rehearsed_sent_on: int = 0
    """ApiVersions requests in a version that brokers lack, forwarded in the brokers' highest
    version.
    """
    rehearsed_unsupported: int = 0
    """ApiVersions requests that the tap refused, because the rehearsed release lacks their version.
    """
    rehearsed_closed: int = 0
    """Requests that the rehearsed release does not read. The tap closed their connections."""
    faults: int = 0
    """Requests and responses to which a fault was applied, as requested."""
    faults_impossible: int = 0
    """Frames that match a fault but were forwarded unchanged. The capture says why."""
    capture_failures: int = 0
    """Frames that were forwarded but are not in the capture, because it could not be written, or
    because a file was deleted while it was written.
    """
    shortened_frames: int = 0
    """Frames that were forwarded, but of which the capture contains only the beginning.

    Too many bytes were held: see `flexwire.tap.limits`.
    """
    shortened_bytes: int = 0
    """The bytes of shortened frames that are not in the capture."""
    not_captured: int = 0
    """Connections closed at once, because their capture could not be started."""
    unended: int = 0
    """Connections whose end is not in the capture, because it could not be written."""
    removed_files: int = 0
    """Capture files that were removed to make room for later ones, as requested."""
    removed_frames: int = 0
    """Frames in the capture files that were removed."""
    removed_bytes: int = 0
    """The total size of the capture files that were removed."""
    unsampled_connections: int = 0
    """Connections that were forwarded and not captured, as requested."""
    unsampled_frames: int = 0
    """Frames on unsampled connections. Bytes that are not frames count in pieces."""
    unsampled_bytes: int = 0
    """The bytes on unsampled connections."""
    filtered_frames: int = 0
    """Frames that were forwarded and not captured because of a filter."""
    filtered_bytes: int = 0
    """The bytes of frames that were not captured because of a filter."""
    live_readers_dropped: int = 0
    """Readers of the live capture that were closed because they read too slowly."""
    failures: int = 0
    """Connections closed by a defect in the tap. The log contains the traceback."""

    def count_stamped(self, reasons: Iterable[str | None]) -> None:
        """Count requests by the reason why they were not stamped, or as stamped without one."""
        for reason in reasons:
            name = reason or "stamped"
            setattr(self, name, getattr(self, name) + 1)

    def count_removed(self, files: KeptFiles) -> None:
        """Count the capture files that were removed."""
        for file in files.removed:
            self.removed_files += 1
            self.removed_frames += file.frames
            self.removed_bytes += file.size
        files.removed.clear()

    def __add__(self, other: TapStatistics) -> TapStatistics:
        """Return the sum of both objects."""
        return TapStatistics(*map(operator.add, astuple(self), astuple(other)))

    @property
    def is_captured(self) -> bool:
        """True if the capture contains all bytes that passed through the tap."""
        return not (
            self.capture_failures or self.not_captured or self.unended or self.shortened_frames
        )


CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PREFIX: Final = "flexwire_tap_"
_BYTES: Final = "bytes"
# All other counts only grow.
GAUGES: Final = frozenset({"open_connections"})


def openmetrics(counts: TapStatistics, gauges: Mapping[str, int], version: str) -> bytes:
    """Return the counts, additional ``gauges`` and flexwire's release as OpenMetrics text.

    >>> text = openmetrics(TapStatistics(), {"clients": 7}, "1").decode()
    >>> print(text[text.index("# TYPE flexwire_tap_clients") :])
    # TYPE flexwire_tap_clients gauge
    flexwire_tap_clients 7
    # TYPE flexwire_tap info
    flexwire_tap_info{version="1"} 1
    # EOF
    <BLANKLINE>
    """
    lines: list[str] = []
    for field in dataclasses.fields(TapStatistics):
        kind = "gauge" if field.name in GAUGES else "counter"
        lines += _family(field.name, kind, getattr(counts, field.name))
    for name, value in gauges.items():
        lines += _family(name, "gauge", value)
    family = _PREFIX.removesuffix("_")
    lines += [f"# TYPE {family} info", f'{family}_info{{version="{version}"}} 1', "# EOF", ""]
    return "\n".join(lines).encode()


def _family(name: str, kind: str, value: int) -> Iterator[str]:
    family = _PREFIX + name
    yield f"# TYPE {family} {kind}"
    if name.endswith(f"_{_BYTES}"):
        yield f"# UNIT {family} {_BYTES}"
    yield f"{family}{'_total' if kind == 'counter' else ''} {value}"


log = logging.getLogger("flexwire.tap")

MOST_HEAD_BYTES: Final = 8 * 1024
"""The largest size of a request. The rest of a longer request is not read."""
MOST_CONNECTIONS: Final = 16
"""The largest number of connections. Further connections are closed immediately."""
_SECONDS: Final = 5.0
_PATH: Final = b"/metrics"
_HEAD_ENDS: Final = b"\r\n\r\n"
_CLOSE_SECONDS: Final = 1.0


class MetricsPort:
    """Answer ``GET /metrics`` from `start` until `close`.

    The port is open only on loopback, unless ``beyond_loopback`` is true. With port 0, any free
    port is used. ``seconds`` is the time limit for a connection from its first byte to its last.
    """

    def __init__(
        self,
        address: HostPort | tuple[str, int],
        *,
        beyond_loopback: bool = False,
        seconds: float = _SECONDS,
    ) -> None:
        self._address = HostPort(*address)
        self._render: Callable[[], bytes] = bytes
        self._beyond_loopback = beyond_loopback
        self._seconds = seconds
        self._listener: Listener | None = None
        self._answering: dict[asyncio.Task[None], socket.socket] = {}
        self._saying = LogLimiter(log)

    @property
    def address(self) -> HostPort:
        """The address of the port, with its actual number."""
        return self._address

    async def start(self, render: Callable[[], bytes]) -> None:
        """Begin to answer requests with the result of ``render``.

        Raises `TapError` if listening fails, or if the address is not a loopback address and
        ``beyond_loopback`` is false.
        """
        self._render = render
        try:
            host = await resolve_host(self._address)
            if not self._beyond_loopback and not ip_address(host).is_loopback:
                raise TapError(
                    f"expected a loopback address for metrics, got {self._address}; use "
                    "--metrics-beyond-loopback to allow requests from other machines"
                )
            self._listener = Listener(host, self._address.port, self._accepted)
        except (OSError, ValueError) as error:
            raise TapError(f"cannot listen on {self._address} for metrics: {error}") from error
        self._address = HostPort(host, self._listener.port)

    async def close(self) -> None:
        """Stop answering requests."""
        if self._listener is not None:
            await self._listener.close()
        left = dict(self._answering)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for client in left.values():
            client.close()
        self._saying.close()

    def _accepted(self, client: socket.socket) -> None:
        if len(self._answering) >= MOST_CONNECTIONS:
            client.close()
            return
        task = asyncio.create_task(self._answer(client))
        self._answering[task] = client
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._answering.pop(task).close()
        if not task.cancelled() and (error := task.exception()) is not None:
            line = "metrics could not be served, because of a defect in the tap"
            self._saying.say(logging.ERROR, line, line, error=error)

    async def _answer(self, client: socket.socket) -> None:
        # A monitoring system that leaves early, sends too much or takes too long gets no more
        # bytes.
        with suppress(OSError, EOFError, asyncio.LimitOverrunError):
            loop = asyncio.get_running_loop()
            reader = asyncio.StreamReader(MOST_HEAD_BYTES, loop)
            protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
            transport = await connect_protocol(client, protocol, None, _CLOSE_SECONDS)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            try:
                async with asyncio.timeout(self._seconds):
                    head = await reader.readuntil(_HEAD_ENDS)
                    writer.write(self._answer_to(head))
                    await writer.drain()
            finally:
                await _close(writer)

    def _answer_to(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        target, _, protocol = rest.partition(b" ")
        if not protocol.startswith(b"HTTP/1."):
            return _response("400 Bad Request")
        if target.partition(b"?")[0] != _PATH:
            return _response("404 Not Found")
        if method not in {b"GET", b"HEAD"}:
            return _response("405 Method Not Allowed", b"", "Allow: GET, HEAD\r\n")
        body = self._render()
        whole = _response("200 OK", body, f"Content-Type: {CONTENT_TYPE}\r\n")
        return whole[: -len(body)] if method == b"HEAD" else whole


def _response(status: str, body: bytes = b"", fields: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\n{fields}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close after the written bytes are sent. Drop a peer that does not read them in time."""
    writer.close()
    closed = asyncio.ensure_future(writer.wait_closed())
    try:
        await asyncio.wait({closed}, timeout=_CLOSE_SECONDS)
    finally:
        if not closed.done():
            writer.transport.abort()
        with suppress(OSError):
            await closed
