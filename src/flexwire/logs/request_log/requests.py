"""The requests in the lines of brokers' logs: completed, refused or cut off.

A line has this form: ``RequestHeader(apiKey=…) -- {…},response:{…} from connection …;totalTime:…``

A connection has the form ``local:port-remote:port-n`` up to 3.9, and
``local:port-remote:port-processor-n`` in 4.x. Addresses are written as in Java: an IPv6 address has
no brackets, and its zone follows a "%".
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

# Even two IPv6 addresses with zones are shorter than this.
_LONGEST = 256


class LoggedConnection(NamedTuple):
    """A connection as the tables show it: its name, the client's end, and the broker's end."""

    name: str
    client: str
    broker: str


NOWHERE = LoggedConnection("?>?", "?", "?")
"""The connection that is recorded if a line contains none, or was cut off before it."""


def ends(connection: str) -> LoggedConnection:
    """Return the two ends of a connection, given its name in a broker's log.

    >>> ends("10.0.0.1:9092-10.0.0.9:50000-2-7").name
    '10.0.0.9:50000>10.0.0.1:9092#7'
    >>> ends("0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:50000-3").client
    '[::1]:50000'
    >>> ends("elsewhere").name
    '?>?'
    """
    return _ends(connection) if len(connection) <= _LONGEST else NOWHERE


# A log may contain any number of connections, each with a name of up to `_LONGEST` characters.
@lru_cache(maxsize=8192)
def _ends(connection: str) -> LoggedConnection:
    match = _NAME.fullmatch(connection)
    if match is None:
        return NOWHERE
    broker, client = _end(match[1], match[2]), _end(match[3], match[4])
    return LoggedConnection(f"{client}>{broker}#{match[5].rpartition('-')[2]}", client, broker)


def _end(host: str, port: str) -> str:
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return f"{host}:{port}"
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"  # noqa: PLR2004 - the number of the IP version


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
    """The content of a line. ``header`` is the API key, version, correlation id and client id."""

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
    """Return the text after "Completed request:", or None if no header of a known API follows."""
    head = _HEAD.match(text)
    if head is None:
        return None
    key = _api_keys().get(head[1])
    version, correlation_id = int(head[2]), int(head[4])
    is_short = -(1 << 15) <= version < 1 << 15
    if key is None or not is_short or not -(1 << 31) <= correlation_id < 1 << 31:
        return None
    # The client id is printed without quotes, so null looks the same as the string "null".
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
    """Return API keys by their Java names, such as PRODUCE and LEADER_AND_ISR."""
    keys: dict[str, int] = {}
    bundled = catalog()
    for entry in map(bundled.entry, bundled.names()):
        if entry.type is MessageType.REQUEST and entry.api_key is not None:
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", entry.name.removesuffix("Request"))
            keys[words.upper()] = entry.api_key
    return keys


_Int16 = Annotated[int, msgspec.Meta(ge=-(1 << 15), lt=1 << 15)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
_LONGEST_MS: Final = 1e9
_NOTHING: Final = (b'""', b"null", b"")
_HEADER: Final = re.compile(rb'"requestHeader":(\{[^{}]*\})')
_FORWARDED: Final = re.compile(rb'"isForwarded":true')
_UNKNOWN: Final = "unknown"

CUT: Final = "the line is cut off, or is not the JSON that a broker writes"
TOO_LONG: Final = "the line is too long"
NO_TIME: Final = "the line contains no time"
NOT_UTF8: Final = "the line is not UTF-8"
UNREADABLE: Final = "the line is cut off or damaged before the end of its request's header"
DAMAGED_GZIP: Final = "the gzip file ends early or is damaged"


class LoggedHeader(msgspec.Struct, rename="camel", gc=False):
    """The header of a request, as the broker read it.

    Header version 3 contains a client instance id (KIP-1313), in Kafka's text form of UUIDs. A line
    is used even if its instance id is invalid. An empty client id is treated as missing, because a
    broker reads null as an empty client id (Kafka's pull request 11385) and logs an empty string.
    """

    request_api_key: _Int16
    request_api_version: _Int16
    correlation_id: _Int32
    client_id: str | None = None
    request_api_version_deprecated: bool = False
    client_instance_id: object = None

    def __post_init__(self) -> None:
        """Treat an empty client id as missing."""
        self.client_id = self.client_id or None


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
    """A request and its response, with the facts that a line contains.

    Bodies are JSON or, if ``is_text``, text. A body is None if the line does not contain it: the
    response to a request with acks 0, or any body in a line that was cut off. The line was written
    at ``time_us``, which is ``total_us`` after the request arrived. ``error`` explains why only the
    header is known. The code that reads the bodies sets ``client_instance_id``, from the header or
    from the bodies.
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
    client_instance_id: str | None = None


class RefusedRequest(msgspec.Struct, gc=False):
    """A request that a broker refused to read, according to the broker's own log.

    The broker then closed the connection.
    """

    offset: int
    time_us: int
    ends: LoggedConnection
    api_key: int
    api_version: int
    reason: str


class BadLine(msgspec.Struct, gc=False):
    """A line, or the end of a file, that cannot be used, and the reason."""

    reason: str


Item: TypeAlias = LoggedRequest | RefusedRequest | BadLine | None
"""The content of a line, or None if the line is about something else."""


class RequestLogReader:
    """Read the lines of one file in order. Local times in the lines are in the time zone ``zone``.

    Both loggers may write to the same file, because often only the output of a container is
    available.
    """

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._refusals = Refusals(zone)

    def wait_after(self, line: Line) -> None:
        """Allow the next line to complete ``line``, which has already been read."""
        self._refusals.read(line)

    def read(self, lines: Iterable[Line]) -> Iterator[Item]:
        """Yield the content of each line. Lines of the next piece only complete earlier ones."""
        for line in lines:
            if not line.is_next:
                yield self._said(line)
            elif not self._refusals.waits_at(line.offset):
                return
            elif line.text and COMPLETED not in line.text:
                request = self._refusals.ended_by(line)
                if request is not None:
                    yield request
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
                # A line may be cut off in the middle of a character.
                return _header_only(line, body, time_us) or BadLine(NOT_UTF8)
        if body.startswith(b"{"):
            return _of_json(line, body, time_us)
        return _of_text(line, body, time_us)


def _of_json(line: Line, body: bytes, time_us: int) -> Item:
    try:
        # The layout may add text after the JSON.
        content = _JSON.decode(body[: body.rfind(b"}") + 1])
        connection = ends(content.connection)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _header_only(line, body, time_us) or BadLine(TOO_LONG if line.is_cut else UNREADABLE)
    software = content.client_information
    request, response = bytes(content.request), bytes(content.response)
    return LoggedRequest(
        line.offset,
        content.request_header,
        time_us,
        _micros(content.total_time_ms),
        connection,
        None if request in _NOTHING else request,
        None if response in _NOTHING else response,
        content.principal,
        content.listener,
        content.security_protocol,
        _known(software.software_name),
        _known(software.software_version),
        content.is_forwarded,
        has_response=response not in _NOTHING,
    )


def _header_only(line: Line, body: bytes, time_us: int) -> LoggedRequest | None:
    """Return the header in a line whose end is missing.

    The header is known because it is at the beginning of the line.
    """
    match = _HEADER.search(body)
    if match is None:
        return None
    try:
        header = _HEADERS.decode(match[1])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    nothing = (None,) * 7
    is_forwarded = _FORWARDED.search(body, 0, match.start()) is not None
    why = TOO_LONG if line.is_cut else CUT
    return LoggedRequest(
        line.offset, header, time_us, 0, NOWHERE, *nothing, is_forwarded, True, error=why
    )


def _of_text(line: Line, body: bytes, time_us: int) -> Item:
    content: TextLine | None = parse_text(body.decode("utf-8", "replace"))
    if content is None:
        return BadLine(UNREADABLE)
    header = LoggedHeader(*content.header)
    return LoggedRequest(
        line.offset,
        header,
        time_us,
        _micros(content.total_ms),
        ends(content.connection),
        content.request,
        content.response,
        content.principal,
        content.listener,
        content.security_protocol,
        _known(content.software_name),
        _known(content.software_version),
        has_response=content.has_response,
        is_text=True,
        error=CUT if content.is_cut else None,
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
# A refused request is described by two lines. The two lines are adjacent, unless other threads
# write lines between them.
APART: Final = 1 << 20
"""The second line begins no more than this many bytes after the first one."""
_FROM: Final = re.compile(rb"Exception while processing request from (\S+)")


def waiting_line(tail: bytes) -> int | None:
    r"""Return the start of the line in ``tail`` that the next line after ``tail`` may complete.

    ``tail`` must end with a line end. It must contain more than `APART` bytes, or begin at the
    start of a line. The result is an offset from the end of ``tail``, so it is negative; it is None
    if there is no such line.

    >>> waiting_line(b"a\nException while processing request from x\n")
    -42
    """
    lines = tail.split(b"\n")[:-1]
    at = 0
    for line in reversed(lines):
        at -= len(line) + 1
        if line and COMPLETED not in line:
            waits = _FROM.search(line) is not None and _REFUSED.search(line) is None
            return at if waits and -at <= APART else None
    return None


class Refusals:
    """Read a broker's own log, in which two lines together describe a refused request."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._before: tuple[Line, bytes] | None = None

    def waits_at(self, offset: int) -> bool:
        """Return whether a line at ``offset`` may complete the line before it."""
        return self._before is not None and offset - self._before[0].offset <= APART

    def ended_by(self, line: Line) -> Item:
        """Return the content of a line and the line before it, or None for a separate line."""
        return None if _FROM.search(line.text) else self.read(line)

    def read(self, line: Line) -> Item:
        """Return the content of a line together with the line before it."""
        before = self._before if self.waits_at(line.offset) else None
        self._before = None
        whose = _FROM.search(line.text)
        refusal = _REFUSED.search(line.text)
        if whose is not None and refusal is None:
            self._before = line, whose[1]
            return None
        if refusal is None or (before is None and whose is None):
            return BadLine(DAMAGED_GZIP) if line.offset < 0 else None
        where = (line, whose[1]) if whose is not None else before
        assert where is not None  # noqa: S101 - one of the two values is set
        first, name = where
        time_us = self._zone.moment(first.text[: first.text.find(name)], first.seen_us)
        time_us = first.seen_us if time_us is None else time_us
        key, version = int(refusal[1]), int(refusal[2])
        if time_us is None or not (key < 1 << 15 and -(1 << 15) <= version < 1 << 15):
            return BadLine(NO_TIME if time_us is None else UNREADABLE)
        return RefusedRequest(
            first.offset,
            time_us,
            ends(name.decode("utf-8", "replace")),
            key,
            version,
            refusal[0].decode("utf-8", "replace"),
        )
