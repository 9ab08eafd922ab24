"""Parse addresses and header tags."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final, NamedTuple

from flexwire.arguments import refuse
from flexwire.errors import TapError

HIGHEST_PORT: Final = 65535
# Kafka's security protocols. The value is true for the protocols that use TLS. A proxy forwards
# SASL, both with and without TLS.
_PROTOCOLS: Final = {"PLAINTEXT": False, "SASL_PLAINTEXT": False, "SSL": True, "SASL_SSL": True}


class HostPort(NamedTuple):
    """A host, given by its name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str) -> HostPort:
    """Return the host and port in ``host:port``. Raises `TapError` for any other text.

    An IPv6 address must be in brackets.

    >>> parse_host_port("127.0.0.1:9092"), str(parse_host_port("[::1]:9092"))
    (HostPort(host='127.0.0.1', port=9092), '[::1]:9092')
    """
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT):
        raise TapError(f"expected host:port, such as 127.0.0.1:9092, got {text!r}")
    return HostPort(host, int(port))


class ListenerAddress(NamedTuple):
    """An address in the form that Kafka's ``listeners`` uses, with its security protocol."""

    address: HostPort
    is_tls: bool


def parse_listener(text: str) -> ListenerAddress:
    """Return the address in ``ssl://host:port``. An address without a protocol is plaintext.

    Raises `TapError` for any other text.

    >>> parse_listener("SSL://broker-1:9093").is_tls, parse_listener("broker-1:9092").is_tls
    (True, False)
    """
    protocol, separator, rest = text.strip().rpartition("://")
    if not separator:
        return ListenerAddress(parse_host_port(text), is_tls=False)
    if protocol.upper() not in _PROTOCOLS:
        names = ", ".join(f"{protocol_name.lower()}://" for protocol_name in _PROTOCOLS)
        raise TapError(f"expected one of {names}, got {protocol + separator!r}")
    return ListenerAddress(parse_host_port(rest), _PROTOCOLS[protocol.upper()])


def is_address(host: str) -> bool:
    """Return whether a host is an IP address rather than a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_unspecified(host: str) -> bool:
    """Return whether a host, such as 0.0.0.0, stands for all addresses of a machine."""
    return is_address(host) and ip_address(host).is_unspecified


_HEX: Final = "hex:"
_FORM: Final = "NUMBER=TEXT or NUMBER=hex:DIGITS"
_NUMBER: Final = re.compile(r"[0-9]{1,10}")


def split_header_tag(text: str) -> tuple[int, str | bytes]:
    r"""Return the tag and its value. A hexadecimal value becomes bytes. Raises `ArgumentError`.

    >>> split_header_tag("10042=from here"), split_header_tag("10043=hex:00 ff")
    ((10042, 'from here'), (10043, b'\x00\xff'))
    """
    number, separator, value = text.partition("=")
    if not separator or not _NUMBER.fullmatch(number):
        raise refuse("header tag", _FORM, text)
    try:
        # A lone surrogate, which a command line may contain, cannot be encoded in UTF-8.
        value.encode()
        parsed = bytes.fromhex(value.removeprefix(_HEX)) if value.startswith(_HEX) else value
    except ValueError:
        raise refuse("header tag", _FORM, text) from None
    return int(number), parsed
