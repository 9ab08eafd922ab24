"""Lines of brokers' logs as requests: completed, refused, or cut off.

``RequestHeader(apiKey=…) -- {…},response:{…} from connection …;totalTime:…``

``local:port-remote:port-n`` up to 3.9, and ``local:port-remote:port-processor-n`` in 4.x. Addresses
are as Java writes them: an IPv6 one is not in brackets, and has its zone after a "%".
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias

import msgspec

from flexwire.logs.request_log.recognition import COMPLETED
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.logs.request_log.lines import Line
    from flexwire.logs.request_log.times import Zone


_NAME = re.compile(r"(.+):(\d{1,5})-(.+):(\d{1,5})((?:-\d{1,10}){1,2})")

# Two IPv6 addresses with zones take fewer characters.
_LONGEST = 256


class LoggedConnection(NamedTuple):
    """A connection as the tables have it: its name there, its ends, client and broker."""

    name: str
    client: str
    broker: str


NOWHERE = LoggedConnection("?>?", "?", "?")
"""What is said where a line was cut before its connection, or does not say one."""


def ends(connection: str) -> LoggedConnection:
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
def _ends(connection: str) -> LoggedConnection:
    found = _NAME.fullmatch(connection)
    if found is None:
        return NOWHERE
    broker, client = _end(found[1], found[2]), _end(found[3], found[4])
    return LoggedConnection(f"{client}>{broker}#{found[5].rpartition('-')[2]}", client, broker)


def _end(host: str, port: str) -> str:
    try:
        known = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return f"{host}:{port}"
    return f"[{known}]:{port}" if known.version == 6 else f"{known}:{port}"  # noqa: PLR2004 - of IP


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


_Int16 = Annotated[int, msgspec.Meta(ge=-(1 << 15), lt=1 << 15)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
_LONGEST_MS: Final = 1e9
_NOTHING: Final = (b'""', b"null", b"")
_HEADER: Final = re.compile(rb'"requestHeader":(\{[^{}]*\})')
_FORWARDED: Final = re.compile(rb'"isForwarded":true')
_UNKNOWN: Final = "unknown"

CUT: Final = "the line is cut off, or is not the JSON that a broker writes"
TOO_LONG: Final = "the line is longer than is read"
NO_TIME: Final = "the line has no time"
NOT_UTF8: Final = "the line is not UTF-8"
UNREADABLE: Final = "the line is cut off or damaged before the end of its request's header"
DAMAGED_GZIP: Final = "the gzip'd file ends early or is damaged"


class LoggedHeader(msgspec.Struct, rename="camel", gc=False):
    """The header of a request, as the broker read it."""

    request_api_key: _Int16
    request_api_version: _Int16
    correlation_id: _Int32
    client_id: str | None = None
    request_api_version_deprecated: bool = False


class _JsonSoftware(msgspec.Struct, rename="camel", frozen=True, gc=False):
    software_name: str = _UNKNOWN
    software_version: str = _UNKNOWN


class _JsonLine(msgspec.Struct, rename="camel", gc=False):
    request_header: LoggedHeader
    is_forwarded: bool = False
    request: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
    connection: str = ""
    total_time_ms: float = 0.0
    security_protocol: str | None = None
    principal: str | None = None
    listener: str | None = None
    client_information: _JsonSoftware = _JsonSoftware()


_JSON: Final = msgspec.json.Decoder(_JsonLine)
_HEADERS: Final = msgspec.json.Decoder(LoggedHeader)


class LoggedRequest(msgspec.Struct, gc=False):
    """A request and its response, as a line has them.

    Bodies are JSON, or what text has (``is_text``), and None where there is none: of a response to
    acks 0, and of a line that was cut. ``time_us`` is when the line was written, which is
    ``total_us`` after the request came. ``error``: why nothing but the header is known.
    """

    offset: int
    header: LoggedHeader
    time_us: int
    total_us: int
    ends: LoggedConnection
    request: bytes | None
    response: bytes | None
    principal: str | None
    listener: str | None
    security_protocol: str | None
    software_name: str | None
    software_version: str | None
    is_forwarded: bool = False
    has_response: bool = True
    is_text: bool = False
    error: str | None = None


class RefusedRequest(msgspec.Struct, gc=False):
    """A request that a broker refused to read, as its own log says, and then closed."""

    offset: int
    time_us: int
    ends: LoggedConnection
    api_key: int
    api_version: int
    reason: str


class BadLine(msgspec.Struct, gc=False):
    """A line, or the end of a file, of which nothing is used, and why."""

    reason: str


Item: TypeAlias = LoggedRequest | RefusedRequest | BadLine | None
"""What a line says; None where it is about something else."""


class RequestLogReader:
    """Reads lines of one file in order, whose local times are of ``zone``.

    Both loggers may write to one file: what a container prints is often all that a broker says.
    """

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._refusals = Refusals(zone)

    def read(self, lines: Iterable[Line]) -> Iterator[Item]:
        """Give what each line says; of the next piece's what ends what was begun, and no more."""
        for line in lines:
            if not line.is_next:
                yield self._said(line)
            elif not self._refusals.waits_at(line.offset):
                return
            elif line.text and COMPLETED not in line.text:
                found = self._refusals.ended_by(line)
                if found is not None:
                    yield found
                return

    def _said(self, line: Line) -> Item:
        at = line.text.find(COMPLETED)
        return self._refusals.read(line) if at < 0 else self._request(line, at)

    def _request(self, line: Line, at: int) -> Item:
        text = line.text
        time_us = self._zone.moment(text[:at], line.seen_us)
        if time_us is None:
            time_us = line.seen_us
        if time_us is None:
            return BadLine(NO_TIME)
        body = text[at + len(COMPLETED) :].lstrip()
        if not text.isascii():
            try:
                body.decode()
            except UnicodeDecodeError:
                # The last character of a line that was cut may be half of one.
                return _header_only(line, body, time_us) or BadLine(NOT_UTF8)
        if body.startswith(b"{"):
            return _of_json(line, body, time_us)
        return _of_text(line, body, time_us)


def _of_json(line: Line, body: bytes, time_us: int) -> Item:
    try:
        # Behind it the layout may have more.
        found = _JSON.decode(body[: body.rfind(b"}") + 1])
        connection = ends(found.connection)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _header_only(line, body, time_us) or BadLine(TOO_LONG if line.is_cut else UNREADABLE)
    software = found.client_information
    request, response = bytes(found.request), bytes(found.response)
    return LoggedRequest(
        line.offset,
        found.request_header,
        time_us,
        _micros(found.total_time_ms),
        connection,
        None if request in _NOTHING else request,
        None if response in _NOTHING else response,
        found.principal,
        found.listener,
        found.security_protocol,
        _known(software.software_name),
        _known(software.software_version),
        found.is_forwarded,
        has_response=response not in _NOTHING,
    )


def _header_only(line: Line, body: bytes, time_us: int) -> LoggedRequest | None:
    """What a line says whose end is missing: the header comes first."""
    found = _HEADER.search(body)
    if found is None:
        return None
    try:
        header = _HEADERS.decode(found[1])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    nothing = (None,) * 7
    is_forwarded = _FORWARDED.search(body, 0, found.start()) is not None
    why = TOO_LONG if line.is_cut else CUT
    return LoggedRequest(
        line.offset, header, time_us, 0, NOWHERE, *nothing, is_forwarded, True, error=why
    )


def _of_text(line: Line, body: bytes, time_us: int) -> Item:
    found: TextLine | None = parse_text(body.decode("utf-8", "replace"))
    if found is None:
        return BadLine(UNREADABLE)
    header = LoggedHeader(*found.header)
    return LoggedRequest(
        line.offset,
        header,
        time_us,
        _micros(found.total_ms),
        ends(found.connection),
        found.request,
        found.response,
        found.principal,
        found.listener,
        found.security_protocol,
        _known(found.software_name),
        _known(found.software_version),
        has_response=found.has_response,
        is_text=True,
        error=CUT if found.is_cut else None,
    )


def _known(name: str) -> str | None:
    return None if name == _UNKNOWN else name


def _micros(milliseconds: float) -> int:
    if not math.isfinite(milliseconds):
        return 0
    return round(min(max(milliseconds, 0.0), _LONGEST_MS) * 1000)


_REFUSED: Final = re.compile(
    rb"Received request for api with key (\d{1,5}) \([^)]{0,64}\) "
    rb"and unsupported version (-?\d{1,5})"
)
# Of a request that was refused two lines tell, next to each other but for completed ones: another
# thread's. They are looked for so far.
_APART: Final = 1 << 20
_FROM: Final = re.compile(rb"Exception while processing request from (\S+)")


class Refusals:
    """Reads a broker's own log, which says on two lines whose request it could not read."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._before: tuple[Line, bytes] | None = None

    def waits_at(self, offset: int) -> bool:
        """Whether a line that begins there may say what the one before it began."""
        return self._before is not None and offset - self._before[0].offset <= _APART

    def ended_by(self, line: Line) -> Item:
        """Give what a line says with the one before it; None for what it says alone."""
        return None if _FROM.search(line.text) else self.read(line)

    def read(self, line: Line) -> Item:
        """Give what a line says, with the line before it."""
        before = self._before if self.waits_at(line.offset) else None
        self._before = None
        whose = _FROM.search(line.text)
        found = _REFUSED.search(line.text)
        if whose is not None and found is None:
            self._before = line, whose[1]
            return None
        if found is None or (before is None and whose is None):
            return BadLine(DAMAGED_GZIP) if line.offset < 0 else None
        where = (line, whose[1]) if whose is not None else before
        assert where is not None  # noqa: S101 - one of them is there, see above
        first, name = where
        time_us = self._zone.moment(first.text[: first.text.find(name)], first.seen_us)
        time_us = first.seen_us if time_us is None else time_us
        key, version = int(found[1]), int(found[2])
        if time_us is None or not (key < 1 << 15 and -(1 << 15) <= version < 1 << 15):
            return BadLine(NO_TIME if time_us is None else UNREADABLE)
        return RefusedRequest(
            first.offset,
            time_us,
            ends(name.decode("utf-8", "replace")),
            key,
            version,
            found[0].decode("utf-8", "replace"),
        )
