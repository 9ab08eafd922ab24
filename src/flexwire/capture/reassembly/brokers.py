"""Which ends of connections are brokers, where the caller has said so."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self

from flexwire.capture.files.links import endpoint_name
from flexwire.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.files.model import Segment

HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Brokers:
    """Ends of connections that were given as brokers: by port, whatever the host, or by both.

    With no end given it is false, and says nothing about any end.

    >>> given = Brokers.parse([9092], ["[::0001]:19092"])
    >>> [given.has(end) for end in ("10.0.0.1:9092", "[::1]:19092", "10.0.0.1:19092")]
    [True, True, False]
    """

    ports: frozenset[int] = frozenset()
    ends: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, ports: Iterable[int], brokers: Iterable[str]) -> Self:
        """Brokers by ports, and by texts such as "10.0.0.1:9092" or "[::1]:9092".

        Raises `CaptureError` for anything else: a capture has addresses and no names.
        """
        ports = frozenset(ports)
        for port in ports:
            if not 0 < port <= HIGHEST_PORT:
                raise CaptureError(f"a port is a number from 1 to {HIGHEST_PORT}, got {port}")
        return cls(ports, frozenset(map(parse_end, brokers)))

    def __bool__(self) -> bool:
        """Whether any end was given."""
        return bool(self.ports or self.ends)

    def named(self) -> tuple[str, ...]:
        """All that was given, ports first.

        >>> Brokers.parse([19092, 9092], ["10.0.0.1:9093"]).named()
        ('port 9092', 'port 19092', '10.0.0.1:9093')
        """
        return (*(f"port {one}" for one in sorted(self.ports)), *sorted(self.ends))

    def has(self, end: str) -> bool:
        """Whether an end, as `Segment` writes it, was given."""
        return end in self.ends or int(end.rpartition(":")[2]) in self.ports

    def client(self, segment: Segment) -> str | None:
        """The end that is the client, where exactly the other one was given as a broker."""
        if not self:
            return None
        sends, receives = self.has(segment.source), self.has(segment.destination)
        if sends == receives:
            return None
        return segment.destination if sends else segment.source


def parse_end(text: str) -> str:
    """An end of a connection as `Segment` writes it, from one as a person writes it.

    >>> parse_end("[2001:DB8:0::1]:9092")
    '[2001:db8::1]:9092'
    """
    host, colon, port = text.strip().rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(host[1:-1] if is_bracketed else host)
        # An IPv6 address has colons of its own, so one without brackets may lack the port.
        sound = is_bracketed == (address.version == 6) and "%" not in host  # noqa: PLR2004
    except ValueError:
        sound = False
    if not (sound and colon and port.isascii() and port.isdecimal()) or not (
        0 < int(port[:6]) <= HIGHEST_PORT
    ):
        raise CaptureError(
            f"expected the address and port of a broker, as 10.0.0.1:9092 or [::1]:9092, got"
            f" {text!r}; a capture has addresses, not host names"
        )
    return endpoint_name(address.packed, int(port))
