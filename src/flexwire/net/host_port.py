"""Addresses as people write them and as brokers advertise them."""

from __future__ import annotations

from typing import NamedTuple

from flexwire.errors import TapError

HIGHEST_PORT = 65535


class HostPort(NamedTuple):
    """A host, by name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str) -> HostPort:
    """Read ``host:port``; an IPv6 address stands in brackets. Raises `TapError` for others.

    >>> parse_host_port("127.0.0.1:9092"), str(parse_host_port("[::1]:9092"))
    (HostPort(host='127.0.0.1', port=9092), '[::1]:9092')
    """
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT):
        raise TapError(f"expected host:port, as 127.0.0.1:9092, got {text!r}")
    return HostPort(host, int(port))
