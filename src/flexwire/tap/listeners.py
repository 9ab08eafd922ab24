"""The tap's listeners, one for each address that brokers advertise. Listeners are opened on demand.

asyncio's own server does not report handshakes that fail. Connections are therefore accepted here.
The code that receives the connections performs the handshake and counts the result.

The port for each broker's address is stored in a small file, and is not computed from the node id.
An address may be advertised without a node id, and a range of ports should not have to be as wide
as the range of node ids.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.client.notation import HIGHEST_PORT, HostPort, parse_host_port
from flexwire.client.tls import HANDSHAKE_SECONDS
from flexwire.errors import ArgumentError, TapError
from flexwire.storage.local import writing
from flexwire.tap.log_limit import LogLimiter

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path


log = logging.getLogger("flexwire.tap")

_BACKLOG: Final = 100
# asyncio waits equally long if the process cannot open more files.
_RETRY_SECONDS: Final = 1.0


class Listener:
    """Accept clients at an IP address until closed. Call ``accepted`` with each socket.

    With port 0, any free port is used. Raises `OSError` if listening fails.
    """

    def __init__(self, host: str, port: int, accepted: Callable[[socket.socket], None]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        self._accepted = accepted
        self._accepting = asyncio.create_task(self._accept())

    @property
    def port(self) -> int:
        """The port of the listener."""
        port: int = self._socket.getsockname()[1]
        return port

    async def close(self) -> None:
        """Accept no more clients."""
        self._accepting.cancel()
        with suppress(asyncio.CancelledError):
            await self._accepting
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._socket)
            except OSError as error:
                # The client has left the queue, or the process cannot open more files.
                log.warning("cannot accept a client: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._accepted(client)


async def resolve_host(address: HostPort) -> str:
    """Return the IP address at which to listen for a host name.

    Raises `OSError` or `ValueError` if the host has no IP address.
    """
    addresses = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    # IPv4 is preferred, because a client that knows only the name will try IPv4 sooner or later.
    addresses.sort(key=lambda address_info: address_info[0] is not socket.AF_INET)
    return str(addresses[0][4][0])


async def connect_protocol(
    client: socket.socket, protocol: asyncio.Protocol, tls: ssl.SSLContext | None, patience: float
) -> asyncio.Transport:
    """Connect a protocol to an accepted socket, with a handshake if ``tls`` is given.

    ``patience`` is the time within which a peer must close the TLS session. Raises `OSError` (or
    its subclass `ssl.SSLError`) if the handshake fails. The socket is then closed.
    """
    secured: dict[str, Any] = {}
    if tls is not None:
        secured = {
            "ssl": tls,
            "ssl_handshake_timeout": HANDSHAKE_SECONDS,
            "ssl_shutdown_timeout": patience,
        }
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, client, **secured)
    return transport


_MOST_FILE_BYTES: Final = 1024 * 1024


class PortRange(NamedTuple):
    """The ports from ``first`` to ``last``."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def parse_port_range(text: str) -> PortRange:
    """Return the range in a string ``first-last``. Raises `ArgumentError` for any other text.

    >>> parse_port_range("19100-19199")
    PortRange(first=19100, last=19199)
    """
    first, dash, last = text.partition("-")
    numbers = [int(part) for part in (first, last) if part.isascii() and part.isdigit()]
    if not dash or len(numbers) != 2 or not 0 < numbers[0] <= numbers[1] <= HIGHEST_PORT:  # noqa: PLR2004  # these are the two ends of the range
        raise ArgumentError(f"expected a port range such as 19100-19199, got {text!r}")
    return PortRange(*numbers)


class StablePorts:
    """The ports in a range, and the broker's address for each port.

    The ports are stored in a file, so that they stay the same in every run. A new address gets the
    lowest port that no other address has. Ports in the file that are outside the range are
    forgotten. Raises `TapError` for a file that cannot be read or has other content.
    """

    def __init__(self, ports: PortRange, path: Path) -> None:
        self.range = ports
        self.path = path
        ports_of_file = _read(path)
        self._ports = {
            address: port
            for address, port in ports_of_file.items()
            if ports.first <= port <= ports.last
        }

    @property
    def addresses(self) -> tuple[HostPort, ...]:
        """The addresses that have a port."""
        return tuple(self._ports)

    def candidates(self, address: HostPort) -> Iterator[int]:
        """Yield the port of the address, and then the ports that no address has."""
        if address in self._ports:
            yield self._ports[address]
        taken = set(self._ports.values())
        yield from (
            port for port in range(self.range.first, self.range.last + 1) if port not in taken
        )

    def keep(self, address: HostPort, port: int) -> None:
        """Record the port of an address. Raises `OSError` if the file cannot be written."""
        if self._ports.get(address) == port:
            return
        self._ports[address] = port
        text = json.dumps(
            {
                str(known_address): self._ports[known_address]
                for known_address in sorted(self._ports)
            },
            indent=2,
        )
        with writing(self.path) as growing:
            growing.write_text(text + "\n", encoding="utf-8")


def _read(path: Path) -> dict[HostPort, int]:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_FILE_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TapError(f"{path}: cannot read: {error.strerror or error}") from error
    try:
        return _parsed(data)
    except (ValueError, TypeError, AttributeError, RecursionError, TapError) as error:
        raise TapError(
            f"{path}: expected broker addresses, each with a port: {error}; delete the file to "
            "assign new ports"
        ) from error


def _parsed(data: bytes) -> dict[HostPort, int]:
    if len(data) > _MOST_FILE_BYTES:
        raise ValueError(f"more than {_MOST_FILE_BYTES} bytes")
    entries = json.loads(data)
    ports = {parse_host_port(address): port for address, port in entries.items()}
    are_ports = all(type(port) is int and 0 < port <= HIGHEST_PORT for port in ports.values())
    if not are_ports or len(set(ports.values())) < len(entries):
        raise ValueError("each broker needs its own port, from 1 to 65535")
    return ports


# A response may contain any number of addresses, and each of them needs a listener.
_MOST_LISTENERS: Final = 1000


class Listeners:
    """Listen at one host, at a separate port for each broker, until closed.

    The ports for brokers follow the first port. If such a port is in use, any free port is used.
    With ``stable`` ports, the listeners use the ports of that range, and the same ports in the next
    run. ``accepted`` is called with the socket of every client, and the broker for its port.
    """

    def __init__(self, accepted: Callable[[socket.socket, HostPort], None]) -> None:
        self.stable: StablePorts | None = None
        self._accepted = accepted
        self._first = HostPort("", 0)
        self._open_ones: dict[HostPort, Listener] = {}
        self._saying = LogLimiter(log)

    async def resolve(self, listen: HostPort) -> None:
        """Find the IP address to listen at. Raises `TapError` if the host has none."""
        try:
            # A name may have several addresses, and each address would have a different free port.
            self._first = HostPort(await resolve_host(listen), listen.port)
        except (OSError, ValueError) as error:
            raise TapError(f"cannot listen on {listen}: {error}") from error

    def start(self, upstream: HostPort) -> None:
        """Listen for the first broker, and for brokers that had a port. Raises `TapError`."""
        try:
            self._open_ones[upstream] = self._serve(upstream, self._first.port)
        except OSError as error:
            raise TapError(f"cannot listen on {self._first}: {error}") from error
        # A client that knows a broker's listener from the last run connects to it first.
        for address in () if self.stable is None else self.stable.addresses:
            self._open(address)

    async def close(self) -> None:
        """Stop listening."""
        for listener in self._open_ones.values():
            await listener.close()
        self._open_ones.clear()
        self._saying.close()

    @property
    def host(self) -> str:
        """The IP address of all listeners."""
        return self._first.host

    @property
    def addresses(self) -> dict[HostPort, HostPort]:
        """The tap's listener for each broker's address."""
        return {
            upstream: HostPort(self.host, listener.port)
            for upstream, listener in self._open_ones.items()
        }

    def port_for(self, address: HostPort) -> int | None:
        """Return the port for a broker's address. Open it if needed. Return None if that fails."""
        listener = self._open_ones.get(address) or self._open(address)
        return None if listener is None else listener.port

    def _serve(self, upstream: HostPort, port: int) -> Listener:
        return Listener(self.host, port, lambda client: self._accepted(client, upstream))

    def _open(self, address: HostPort) -> Listener | None:
        if len(self._open_ones) >= _MOST_LISTENERS:
            self._say_none(address, f"there are {len(self._open_ones)} already")
            return None
        listener = None
        for port in self._ports_for(address):
            try:
                listener = self._serve(address, port)
                break
            except OSError as error:
                if not port or error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                    self._say_none(address, str(error))
                    return None
        if listener is None:
            self._say_none(address, "no port is free")
            return None
        self._open_ones[address] = listener
        log.info("clients reach %s through port %d", address, listener.port)
        if self.stable is not None:
            try:
                self.stable.keep(address, listener.port)
            except OSError as error:
                log.error("cannot save the port of %s for later runs: %s", address, error)  # noqa: TRY400  # the message is enough
        return listener

    def _say_none(self, address: HostPort, reason: str) -> None:
        # A broker may advertise new addresses in every response.
        line = f"no listener for {address}: {reason}"
        self._saying.say(logging.ERROR, "addresses without a listener", line)

    def _ports_for(self, address: HostPort) -> Iterator[int]:
        if self.stable is not None:
            yield from self.stable.candidates(address)
            return
        following = self._first.port + len(self._open_ones)
        if self._first.port and following <= HIGHEST_PORT:
            yield following
        yield 0
