"""A listening socket whose handshakes, where it has TLS, end in a connection or in a reason.

asyncio's own server says nothing of a handshake that fails. So connections are accepted here, and
each is begun by whoever takes it: what comes of it is theirs to count.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from flexwire.client.tls import HANDSHAKE_SECONDS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from flexwire.client.notation import HostPort

log = logging.getLogger("flexwire.tap")

_BACKLOG: Final = 100
# As asyncio waits where the process has no more files to open.
_RETRY_SECONDS: Final = 1.0


class Listener:
    """Accepts clients at an IP address until it is closed, and gives each socket to ``accepted``.

    A port of 0 takes a free one. Raises `OSError` where it cannot listen.
    """

    def __init__(self, host: str, port: int, accepted: Callable[[socket.socket], None]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        self._accepted = accepted
        self._accepting = asyncio.create_task(self._accept())

    @property
    def port(self) -> int:
        """The port that was really taken."""
        port: int = self._socket.getsockname()[1]
        return port

    async def close(self) -> None:
        """Accept no more."""
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
                # A client that left in the queue, or no more files.
                log.warning("a client was not accepted: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._accepted(client)


async def resolved(address: HostPort) -> str:
    """The IP address of a host to listen at; `OSError` or `ValueError` where it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    # A client that knows only the name tries IPv4 sooner or later, whichever it is.
    found.sort(key=lambda one: one[0] is not socket.AF_INET)
    return str(found[0][4][0])


async def begin(
    client: socket.socket, protocol: asyncio.Protocol, tls: ssl.SSLContext | None, patience: float
) -> asyncio.Transport:
    """Connect a protocol to a socket that was accepted, with a handshake where there is ``tls``.

    ``patience`` is how long a peer may take to end TLS. Raises `OSError` (an `ssl.SSLError` too)
    where the handshake fails; the socket is then closed.
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
