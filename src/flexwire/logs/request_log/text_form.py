"""The lines of 2.7 and earlier, which are text: header, times and whose, and bodies as they are.

``RequestHeader(apiKey=…) -- {…},response:{…} from connection …;totalTime:…``
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.spec import MessageType

_HEAD: Final = re.compile(
    r"RequestHeader\(apiKey=(\w+), apiVersion=(-?\d{1,5}), clientId=(.*?), "
    r"correlationId=(-?\d{1,10})\) -- ",
    re.DOTALL,
)
_TAIL: Final = re.compile(
    r" from connection (\S+);totalTime:([0-9.eE+-]+),(?:[a-zA-Z]+:[0-9.eE+-]+,)*"
    r"securityProtocol:(\w+),principal:(.*),listener:([^,]*?)"
    r"(?:,clientInformation:ClientInformation\(softwareName=([^,]*), softwareVersion=([^,)]*)\).*)?"
    r"(?: \([\w.$]+\))?",
    re.DOTALL,
)
_TAIL_START: Final = " from connection "
_RESPONSE: Final = ",response:"


class TextLine(NamedTuple):
    """What a line says: the header's api key, version, correlation id and client id, and so on."""

    header: tuple[int, int, int, str | None]
    connection: str = ""
    total_ms: float = 0.0
    security_protocol: str | None = None
    principal: str | None = None
    listener: str | None = None
    software_name: str = "unknown"
    software_version: str = "unknown"
    request: bytes | None = None
    response: bytes | None = None
    has_response: bool = True
    is_cut: bool = False


def parse_text(text: str) -> TextLine | None:
    """Read a line after "Completed request:"; None where it has no header of a known API."""
    head = _HEAD.match(text)
    if head is None:
        return None
    key = _api_keys().get(head[1])
    version, correlation_id = int(head[2]), int(head[4])
    is_short = -(1 << 15) <= version < 1 << 15
    if key is None or not is_short or not -(1 << 31) <= correlation_id < 1 << 31:
        return None
    # A client id is as it was sent: one that is null is not told from "null".
    header = key, version, correlation_id, None if head[3] == "null" else head[3]
    at = text.rfind(_TAIL_START, head.end())
    tail = None if at < 0 else _TAIL.fullmatch(text, at)
    if tail is None:
        return TextLine(header, is_cut=True)
    connection, total, protocol, principal, listener, name, number = tail.groups()
    try:
        total_ms = float(total)
    except ValueError:
        return TextLine(header, is_cut=True)
    request, _, response = text[head.end() : at].partition(_RESPONSE)
    return TextLine(
        header,
        connection,
        total_ms,
        protocol,
        principal,
        listener,
        name or "unknown",
        number or "unknown",
        request.encode(),
        response.encode() or None,
        has_response=bool(response),
    )


@per_catalog
@lru_cache(maxsize=1)
def _api_keys() -> dict[str, int]:
    """The api keys by their names in Java: PRODUCE, LEADER_AND_ISR."""
    found: dict[str, int] = {}
    bundled = catalog()
    for one in map(bundled.entry, bundled.names()):
        if one.type is MessageType.REQUEST and one.api_key is not None:
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", one.name.removesuffix("Request"))
            found[words.upper()] = one.api_key
    return found
