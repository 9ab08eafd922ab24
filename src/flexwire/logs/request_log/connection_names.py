"""The names that brokers give connections: both ends, and a number that tells the next one apart.

``local:port-remote:port-n`` up to 3.9, and ``local:port-remote:port-processor-n`` in 4.x. Addresses
are as Java writes them: an IPv6 one is not in brackets, and has its zone after a "%".
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

_NAME = re.compile(r"(.+):(\d{1,5})-(.+):(\d{1,5})((?:-\d{1,10}){1,2})")

# Two IPv6 addresses with zones take fewer characters.
_LONGEST = 256


class Ends(NamedTuple):
    """A connection as the tables have it: its name there, its ends, client and broker."""

    name: str
    client: str
    broker: str


NOWHERE = Ends("?>?", "?", "?")
"""What is said where a line was cut before its connection, or does not say one."""


def ends(connection: str) -> Ends:
    """Give the ends of a connection by its name in a broker's log.

    >>> ends("10.0.0.1:9092-10.0.0.9:50000-2-7").name
    '10.0.0.9:50000>10.0.0.1:9092#7'
    >>> ends("0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:50000-3").client
    '[::1]:50000'
    >>> ends("elsewhere").name
    '?>?'
    """
    return _ends(connection) if len(connection) <= _LONGEST else NOWHERE


# A log may name as many as it likes, each of `_LONGEST`.
@lru_cache(maxsize=8192)
def _ends(connection: str) -> Ends:
    found = _NAME.fullmatch(connection)
    if found is None:
        return NOWHERE
    broker, client = _end(found[1], found[2]), _end(found[3], found[4])
    return Ends(f"{client}>{broker}#{found[5].rpartition('-')[2]}", client, broker)


def _end(host: str, port: str) -> str:
    try:
        known = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return f"{host}:{port}"
    return f"[{known}]:{port}" if known.version == 6 else f"{known}:{port}"  # noqa: PLR2004 - of IP
