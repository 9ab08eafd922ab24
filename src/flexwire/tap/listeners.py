"""The tap's listeners: one for each address that brokers advertise, opened when first seen."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final

from flexwire.client.notation import HIGHEST_PORT, HostPort
from flexwire.errors import TapError
from flexwire.tap.listening import Listener, resolved
from flexwire.tap.saying import Saying

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from flexwire.tap.ports import StablePorts

log = logging.getLogger("flexwire.tap")

# A response may name as many addresses as its sender likes; each costs a listener.
_MOST_LISTENERS: Final = 1000


class Listeners:
    """Listens at one host, at a port of its own for each broker, and keeps these while it runs.

    Brokers' ports are those after the first one, or any free one where that is taken; with
    ``stable`` ports they are in that range, and the same in the next run. ``accepted`` gets every
    client's socket, and the broker whose port it came to.
    """

    def __init__(self, accepted: Callable[[socket.socket, HostPort], None]) -> None:
        self.stable: StablePorts | None = None
        self._accepted = accepted
        self._first = HostPort("", 0)
        self._open_ones: dict[HostPort, Listener] = {}
        self._saying = Saying(log)

    async def resolve(self, listen: HostPort) -> None:
        """Find out at which IP address to listen; raises `TapError`."""
        try:
            # A name may have several addresses, and would get a different free port on each.
            self._first = HostPort(await resolved(listen), listen.port)
        except (OSError, ValueError) as error:
            raise TapError(f"cannot listen on {listen}: {error}") from error

    def start(self, upstream: HostPort) -> None:
        """Listen for the first broker, and for those that had a port before; raises `TapError`."""
        try:
            self._open_ones[upstream] = self._serve(upstream, self._first.port)
        except OSError as error:
            raise TapError(f"cannot listen on {self._first}: {error}") from error
        # A client that knows a broker's listener of the last run comes there first.
        for address in () if self.stable is None else self.stable.addresses:
            self._open(address)

    async def close(self) -> None:
        """Listen no more."""
        for listener in self._open_ones.values():
            await listener.close()
        self._open_ones.clear()
        self._saying.close()

    @property
    def host(self) -> str:
        """The IP address that all listen at."""
        return self._first.host

    @property
    def addresses(self) -> dict[HostPort, HostPort]:
        """Each broker's address, and where the tap listens for it."""
        return {
            upstream: HostPort(self.host, listener.port)
            for upstream, listener in self._open_ones.items()
        }

    def port_for(self, address: HostPort) -> int | None:
        """The port for a broker's address, which is opened if need be; None where it cannot be."""
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
            self._say_none(address, "no port is free for it")
            return None
        self._open_ones[address] = listener
        log.info("%s is reached through port %d", address, listener.port)
        if self.stable is not None:
            try:
                self.stable.keep(address, listener.port)
            except OSError as error:
                log.error("a later run may give %s another port: %s", address, error)  # noqa: TRY400  # the reason says all
        return listener

    def _say_none(self, address: HostPort, reason: str) -> None:
        # A broker may advertise new addresses with every answer.
        told = f"no listener for {address}: {reason}"
        self._saying.say(logging.ERROR, "addresses without a listener", told)

    def _ports_for(self, address: HostPort) -> Iterator[int]:
        if self.stable is not None:
            yield from self.stable.candidates(address)
            return
        following = self._first.port + len(self._open_ones)
        if self._first.port and following <= HIGHEST_PORT:
            yield following
        yield 0
