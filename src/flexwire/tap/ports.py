"""Ports for brokers' listeners: the same in every run, so that clients that know them come back.

Which port a broker's address has is kept in a small file and not computed from its node id: an
address may be advertised without one, and a range of ports is not to be as wide as node ids are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.client.notation import HIGHEST_PORT, HostPort, parse_host_port
from flexwire.errors import ArgumentError, TapError
from flexwire.storage.local import writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_FILE_BYTES: Final = 1024 * 1024


class PortRange(NamedTuple):
    """Ports from ``first`` to ``last``."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def parse_port_range(text: str) -> PortRange:
    """Read ``first-last``. Raises `ArgumentError` for others.

    >>> parse_port_range("19100-19199")
    PortRange(first=19100, last=19199)
    """
    first, dash, last = text.partition("-")
    numbers = [int(one) for one in (first, last) if one.isascii() and one.isdigit()]
    if not dash or len(numbers) != 2 or not 0 < numbers[0] <= numbers[1] <= HIGHEST_PORT:  # noqa: PLR2004  # both ends
        raise ArgumentError(f"expected ports as 19100-19199, got {text!r}")
    return PortRange(*numbers)


class StablePorts:
    """Which port of a range each broker's address has, from run to run, in one file.

    An address that was never seen gets the lowest port that no other one has. What a file says of
    ports outside the range is forgotten. Raises `TapError` for a file that cannot be read, or is
    not such a file.
    """

    def __init__(self, ports: PortRange, path: Path) -> None:
        self.range = ports
        self.path = path
        found = _read(path)
        self._known = {
            address: port for address, port in found.items() if ports.first <= port <= ports.last
        }

    @property
    def addresses(self) -> tuple[HostPort, ...]:
        """The addresses that have a port."""
        return tuple(self._known)

    def candidates(self, address: HostPort) -> Iterator[int]:
        """The port that the address has, and then those that no address has."""
        if address in self._known:
            yield self._known[address]
        taken = set(self._known.values())
        yield from (
            port for port in range(self.range.first, self.range.last + 1) if port not in taken
        )

    def keep(self, address: HostPort, port: int) -> None:
        """Note which port an address got; `OSError` where that cannot be written."""
        if self._known.get(address) == port:
            return
        self._known[address] = port
        text = json.dumps({str(one): self._known[one] for one in sorted(self._known)}, indent=2)
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
            f"{path}: expected brokers' addresses and the port of each: {error}; remove it to "
            "give ports anew"
        ) from error


def _parsed(data: bytes) -> dict[HostPort, int]:
    if len(data) > _MOST_FILE_BYTES:
        raise ValueError(f"more than {_MOST_FILE_BYTES} bytes")
    said = json.loads(data)
    found = {parse_host_port(address): port for address, port in said.items()}
    are_ports = all(type(port) is int and 0 < port <= HIGHEST_PORT for port in found.values())
    if not are_ports or len(set(found.values())) < len(said):
        raise ValueError("expected each port once")
    return found
