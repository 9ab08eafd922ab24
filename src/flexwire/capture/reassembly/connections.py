"""Facts about a connection: its endpoints, its bytes, how it ended, and whether it is Kafka.

If the caller specified brokers, these alone decide which connections are Kafka connections.
Otherwise the content of the frames decides (see `flexwire.capture.reassembly.evidence`).

Any stream that begins with a small number appears to contain frames, and a header of zeros is the
header of a Produce request. A single header therefore proves nothing. Each of the following is so
rare in other protocols that a single occurrence is proof:

- a request of a released version whose body can be decoded by its spec;
- a response that can be decoded by its spec as the response to a request of a released version;
- an ApiVersions request with a client id and a version newer than all released ones: a client of a
  newer Kafka sends it first (KIP-511);
- among frames with missing parts: two request headers with the same client id, or a request header
  whose correlation id was returned in a response.

An empty client id is only two zero bytes, which other protocols send as well. A request with an
empty client id is evidence if its body contains many nonzero bytes. If the body contains only a few
nonzero bytes, the request is evidence only together with a second request, or with its response.
Lost or damaged bytes are not evidence for or against Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from flexwire.capture.files.links import endpoint_name
from flexwire.capture.reassembly.framing import (
    HEAD_BYTES,
    SHORTEST_HEAD,
    looks_like,
    looks_like_request,
    looks_like_responses,
    possible_correlation_ids,
)
from flexwire.errors import CaptureError, CodecError, FrameError, UnknownMessageError
from flexwire.protocol import RequestFrame, parse_response, read_request
from flexwire.protocol.apis import is_released
from flexwire.protocol.headers import decodes, has_newest_header, parse_correlation_id
from flexwire.versions import HIGHEST
from flexwire.wire.segment_layout import ACK, FIN, RST, SYN

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from flexwire.capture.files.packets import Direction, Segment
    from flexwire.capture.reassembly.framing import FramedBytes
    from flexwire.capture.reassembly.streams import HandoffResult, SideResult, Stream, StreamPiece
    from flexwire.protocol import Conversation, Turn


MOST_AWAITED = 1000
"""The largest number of requests that are remembered because their responses could be evidence.
Beyond this number, the oldest request is forgotten.
"""

MOST_READ = 8 * 1024 * 1024
"""The longest frame that is read completely. Of a longer frame, only the header is used."""

_UNREADABLE = (CodecError, FrameError, UnknownMessageError)
# The only request that clients send in versions that are not released yet (KIP-511).
_NEGOTIATED = "ApiVersionsRequest"
# No request or response begins with this many zeros.
_LEADING = 64
# The numbers of nonzero bytes that make a body evidence: by itself, or together with other
# evidence. A few numbers, or a timestamp, have fewer nonzero bytes, and may decode by chance.
_MUCH, _SOME = 8, 4


class AwaitedRequest(NamedTuple):
    """A request that is not enough evidence by itself."""

    request: RequestFrame
    is_whole: bool


class KafkaEvidence:
    """Read the frames of one connection until one of them shows that the connection is Kafka.

    ``found`` then describes this evidence in a few words. ``hint`` describes weaker evidence, which
    is enough if one end is known to be a broker: one request header with a client id, or one body
    that decodes.
    """

    def __init__(self) -> None:
        self.found: str | None = None
        self.hint: str | None = None
        self._asked: dict[int, AwaitedRequest] = {}
        # The latest request that could be decoded, and the latest request with missing parts.
        self._decoded: RequestFrame | None = None
        self._cut: RequestFrame | None = None

    def see(self, direction: Direction, payload: bytes, *, is_whole: bool) -> None:
        """Process a frame. Unless it ``is_whole``, ``payload`` contains only the captured bytes."""
        # By chance, zeros decode as many different messages.
        if self.found is not None or not any(payload[:_LEADING]):
            return
        is_whole = is_whole and len(payload) <= MOST_READ
        if direction == "request":
            self._see_request(payload, is_whole=is_whole)
        elif self._asked:
            self._see_response(payload, is_whole=is_whole)

    def _see_request(self, payload: bytes, *, is_whole: bool) -> None:
        try:
            request = read_request(payload)
        except _UNREADABLE:
            return
        if not _is_text(request.client_id):
            return
        if is_released(request.api_key, request.api_version):
            self._weigh(request, payload, is_whole=is_whole)
        elif (
            request.client_id
            and request.message_name == _NEGOTIATED
            # A broker reads less of this header, but the client's own header has the newest layout.
            and has_newest_header(payload)
        ):
            self.found = f"{_named(request)}, newer than any released version"

    def _weigh(self, request: RequestFrame, payload: bytes, *, is_whole: bool) -> None:
        name = _named(request)
        body = payload[request.body_offset :]
        is_sound = is_whole and decodes(request.message_name, body, request.api_version)
        said = len(body) - body.count(0)
        has_client_id = request.header_version > 0 and request.client_id != ""
        if is_sound and (has_client_id or said >= _MUCH):
            self.found = f"{name} decodes"
            return
        if has_client_id:
            self.hint = self.hint or f"a header of {name}"
        elif is_sound and said >= _SOME:
            self.hint = self.hint or f"{name} decodes"
        if is_sound and said:
            self._note_decoded(request, name)
        elif not is_whole and request.client_id:
            self._note_cut(request, name)
        self._asked[request.correlation_id] = AwaitedRequest(request, is_whole)
        if len(self._asked) > MOST_AWAITED:
            del self._asked[next(iter(self._asked))]

    def _note_decoded(self, request: RequestFrame, name: str) -> None:
        other, self._decoded = self._decoded, request
        if other is not None and other.correlation_id != request.correlation_id:
            self.found = f"{name} and an earlier {_named(other)} decode"

    def _note_cut(self, request: RequestFrame, name: str) -> None:
        other, self._cut = self._cut, request
        if (
            other is not None
            and other.client_id == request.client_id
            and other.correlation_id != request.correlation_id
        ):
            self.found = f"headers of {_named(other)} and {name} contain the same client id"

    def _see_response(self, payload: bytes, *, is_whole: bool) -> None:
        try:
            asked = self._asked.get(parse_correlation_id(payload))
            if asked is None:
                return
            request = asked.request
            name = _named(request)
            if is_whole:
                response = parse_response(payload, request.api_key, request.api_version)
                body = payload[response.body_offset :]
                if decodes(response.message_name, body, response.body_version):
                    self.found = f"the response to {name} decodes"
                    return
        except _UNREADABLE:
            return
        # A complete response that does not decode is not a Kafka response, even if its header looks
        # valid.
        if request.client_id and not asked.is_whole:
            self.found = f"a header of {name} and a response have the same correlation id"


def _named(request: RequestFrame) -> str:
    return f"{request.message_name} v{request.api_version}"


def _is_text(client_id: str | None) -> bool:
    return client_id is None or all(sign >= " " for sign in client_id)


HELD_SEGMENTS = 64
HELD_BYTES = 1024 * 1024
"""The largest number of a connection's bytes that are held until the client is known."""


class Roles:
    """Determine which end of a connection is the client, from the connection's first segments.

    The first of these rules that applies decides. The client is

    1. the end that is not among the ``brokers``, if exactly one end is;
    2. the sender of a SYN, or of a payload that flexwire's own captures mark as a request;
    3. the end that sent a request whose correlation id the other end returned;
    4. the only end that sent bytes that look like a request and not like a response;
    5. the client of an earlier connection on these ports (``known``);
    6. the end with the higher port.
    """

    def __init__(self, limit: int, brokers: BrokerEnds, known: str | None = None) -> None:
        self.held: list[Segment] = []
        self._brokers = brokers
        self._known = known
        self._limit = limit
        self._held_bytes = 0
        self._asked: dict[str, set[int]] = {}
        self._sure: set[str] = set()

    def client(self, segment: Segment) -> str | None:
        """Hold the segment back. Return the end that is the client as soon as it is known."""
        self.held.append(segment)
        self._held_bytes += len(segment.payload)
        given = self._brokers.client(segment)
        if given is not None:
            return given
        if segment.flags & SYN:
            return segment.destination if segment.flags & ACK else segment.source
        if segment.begins is not None:
            return segment.source if segment.begins == "request" else segment.destination
        if self._answers(segment):
            return segment.destination
        if len(self.held) >= HELD_SEGMENTS or self._held_bytes >= HELD_BYTES:
            return self.guess()
        return None

    def guess(self) -> str:
        """Return the end that is probably the client, according to the segments so far."""
        if len(self._sure) == 1:
            return next(iter(self._sure))
        if self._known is not None:
            return self._known
        first = self.held[0]
        # If the ports are equal, the end that sent first is as good a guess as the other.
        return max(first.source, first.destination, key=_port)

    def _answers(self, segment: Segment) -> bool:
        if len(segment.payload) < SHORTEST_HEAD:
            return False
        as_request, as_response = possible_correlation_ids(segment.payload)
        asked = self._asked.get(segment.destination, ())
        if as_response in asked and looks_like_responses(segment.payload, self._limit):
            return True
        if looks_like_request(segment.payload, self._limit):
            self._asked.setdefault(segment.source, set()).add(as_request)
            # If the first bytes of a Produce request (api key 0) are read as a correlation id, the
            # result is the version. A connection's first responses have such small ids.
            if as_response > HIGHEST:
                self._sure.add(segment.source)
        return False


def _port(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])


HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class BrokerEnds:
    """The endpoints that were given as brokers: a port on any host, or a host and a port.

    Without any endpoints, the object is false, and excludes no connection.

    >>> given = BrokerEnds.parse([9092], ["[::0001]:19092"])
    >>> [given.has(end) for end in ("10.0.0.1:9092", "[::1]:19092", "10.0.0.1:19092")]
    [True, True, False]
    """

    ports: frozenset[int] = frozenset()
    ends: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, ports: Iterable[int], brokers: Iterable[str]) -> Self:
        """Return brokers from ports, and from strings such as "10.0.0.1:9092" or "[::1]:9092".

        Raises `CaptureError` for any other string: captures contain addresses, not names.
        """
        ports = frozenset(ports)
        for port in ports:
            if not 0 < port <= HIGHEST_PORT:
                raise CaptureError(f"a port must be from 1 to {HIGHEST_PORT}, got {port}")
        return cls(ports, frozenset(map(parse_end, brokers)))

    def __bool__(self) -> bool:
        """Return whether any endpoints were given."""
        return bool(self.ports or self.ends)

    def named(self) -> tuple[str, ...]:
        """Return all endpoints that were given, ports first.

        >>> BrokerEnds.parse([19092, 9092], ["10.0.0.1:9093"]).named()
        ('port 9092', 'port 19092', '10.0.0.1:9093')
        """
        return (*(f"port {port}" for port in sorted(self.ports)), *sorted(self.ends))

    def has(self, end: str) -> bool:
        """Return whether an endpoint, in the notation of `Segment`, was given."""
        return end in self.ends or int(end.rpartition(":")[2]) in self.ports

    def client(self, segment: Segment) -> str | None:
        """Return the end that is the client, if only the other end was given as a broker."""
        if not self:
            return None
        sends, receives = self.has(segment.source), self.has(segment.destination)
        if sends == receives:
            return None
        return segment.destination if sends else segment.source


def parse_end(text: str) -> str:
    """Return the endpoint that a user specified, in the notation of `Segment`.

    >>> parse_end("[2001:DB8:0::1]:9092")
    '[2001:db8::1]:9092'
    """
    host, colon, port = text.strip().rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(host[1:-1] if is_bracketed else host)
        # An IPv6 address contains colons, so without brackets the port may be missing.
        sound = is_bracketed == (address.version == 6) and "%" not in host  # noqa: PLR2004
    except ValueError:
        sound = False
    if not (sound and colon and port.isascii() and port.isdecimal()) or not (
        0 < int(port[:6]) <= HIGHEST_PORT
    ):
        raise CaptureError(
            f"expected the address and port of a broker, such as 10.0.0.1:9092 or [::1]:9092, got"
            f" {text!r}; a capture contains addresses, not host names"
        )
    return endpoint_name(address.packed, int(port))


KAFKA = "Kafka"
"""The value of ``looks_like`` for a Kafka connection if neither end was given as a broker."""


class CapturedFrame(msgspec.Struct, frozen=True, gc=False):
    """A frame of a connection, or bytes of a connection that are not a complete frame.

    ``connection`` has the form "10.0.0.9:50000>10.0.0.1:9092", client first. For later connections
    on the same ports, it ends with "#2" and so on. ``index`` numbers the frames of one direction
    from 0. ``payload`` does not include the length prefix, but ``size`` does. The sizes of all
    frames add up to the size of the stream. ``first_us`` and ``timestamp_us`` are the times of the
    frame's first and last byte. If there is an ``error``, ``payload`` contains at most 1,024 of the
    bytes. They start with the header if ``is_placed`` is true, and otherwise anywhere in the frame.
    """

    connection: str
    direction: Direction
    timestamp_us: int
    first_us: int
    index: int
    size: int
    payload: bytes
    error: str | None = None
    is_placed: bool = True


class CapturedConnection(msgspec.Struct, frozen=True, gc=False):
    """A connection that has ended, or that was open when its capture ended.

    ``client`` and ``broker`` are the two ends of the connection, such as "10.0.0.9:50000". If the
    connection is not Kafka, ``client`` is the end whose bytes would be the requests.
    ``seen_from_start`` is true if the connection's SYN was captured. ``closed_by`` is the end whose
    FIN, or RST (``reset``), came first.

    ``request_bytes`` and ``response_bytes`` are the total sizes of the connection's frames,
    including frames with an error. Of these bytes, ``lost_bytes`` are missing from the capture,
    ``early_bytes`` precede the first segment of their direction, and ``unreadable_bytes`` are the
    remaining bytes of frames with an error. Two counts cover bytes outside frames:
    ``repeated_bytes`` had been captured before, and ``late_bytes`` arrived after they had been
    given up as lost. Every byte of the segments is therefore counted: ``captured_bytes`` is the
    number of frame bytes that were not lost, plus the repeated and the late bytes.

    ``evidence`` explains why the connection is or is not considered Kafka. ``reads_as_kafka`` is
    true if some of its bytes can be decoded as Kafka, so that its headers can be trusted.
    ``looks_like`` is the name of another protocol that the bytes resemble. The name is "Kafka" if
    brokers were given and neither end is one of them, but the connection can be decoded as Kafka.
    The remaining fields, the client and facts from earlier analyses, are set after the survey has
    read the frames.
    """

    connection: str
    client: str
    broker: str
    first_us: int
    last_us: int
    seen_from_start: bool
    closed_by: Literal["client", "broker"] | None
    reset: bool
    request_frames: int
    response_frames: int
    request_bytes: int
    response_bytes: int
    lost_bytes: int
    captured_bytes: int
    repeated_bytes: int
    late_bytes: int
    early_bytes: int
    unreadable_bytes: int
    is_kafka: bool
    reads_as_kafka: bool
    evidence: str
    looks_like: str | None
    client_instance_id: str | None = None
    client_id: str | None = None
    client_software_name: str | None = None
    client_software_version: str | None = None
    began_in: str | None = None
    answered_indexes: tuple[int, ...] | None = None


class _Verdict(NamedTuple):
    reads: bool
    is_kafka: bool
    reason: str
    resembles: str | None


class Account:
    """Count the segments and frames of one connection. `close` returns the facts about it."""

    def __init__(self, brokers: BrokerEnds) -> None:
        self.evidence = KafkaEvidence()
        self._brokers = brokers
        self._first_us: int | None = None
        self._last_us = 0
        self.is_paused = False  # True from a call to `pause` until the next segment arrives.
        self.has_syn = self._is_marked = self._reset = False
        self._ended_by: str | None = None
        self._heads: dict[Direction, bytes] = {"request": b"", "response": b""}
        self._frames: dict[Direction, int] = {"request": 0, "response": 0}
        self._bytes: dict[Direction, int] = {"request": 0, "response": 0}
        # The counts at the last pause.
        self._bytes_before: dict[Direction, int] = {"request": 0, "response": 0}
        self._lost = self._captured = 0
        self._repeated = self._late = self._early = self._unreadable = 0

    def note_segment(self, segment: Segment) -> None:
        """Count a segment; segments must come in the order of the capture."""
        flags = segment.flags
        if self._first_us is None:
            self._first_us = segment.timestamp_us
        self.is_paused = False
        self._last_us = segment.timestamp_us
        self._captured += len(segment.payload)
        if flags & SYN:
            self.has_syn = True
        if segment.begins is not None:
            self._is_marked = True
        if flags & (FIN | RST) and self._ended_by is None:
            self._ended_by = segment.source
            self._reset = bool(flags & RST)

    def note_result(self, taken: HandoffResult) -> None:
        """Count segments that the fast path has processed, and the complete frames in them."""
        if not taken.segments:
            return
        self._last_us = taken.time_us
        self._captured += taken.captured
        self._is_marked = self._is_marked or taken.is_marked
        went: dict[Direction, SideResult] = {"request": taken.request, "response": taken.response}
        for direction, progress in went.items():
            self._frames[direction] += progress.frames
            self._bytes[direction] += progress.sizes

    def note_pieces(self, direction: Direction, pieces: Iterable[StreamPiece]) -> None:
        """Count the next pieces of a stream."""
        head = self._heads[direction]
        for piece in pieces:
            if len(head) < HEAD_BYTES:
                head += piece.data[:HEAD_BYTES]
        self._heads[direction] = head

    def note_frame(self, direction: Direction, framed: FramedBytes) -> None:
        """Count a frame, or bytes that are not a complete frame."""
        self._frames[direction] += 1
        self._bytes[direction] += framed.size
        self._lost += framed.lost
        if framed.error is not None:
            self._unreadable += framed.size - framed.lost
        if framed.is_placed and self.evidence.found is None:
            self.evidence.see(direction, framed.payload, is_whole=framed.error is None)

    def note_stream(self, stream: Stream) -> None:
        """Count the bytes of a direction that belong to no frame, after the direction has ended."""
        self._repeated += stream.repeated
        self._late += stream.late
        # Early bytes have already been counted as a frame with an error.
        self._early += stream.early
        self._unreadable -= stream.early

    def pause(self, connection: str, client: str, broker: str) -> CapturedConnection | None:
        """Return the facts about the connection since the last pause, and restart the counts.

        Returns None if no segment of the connection was captured since the last pause.
        """
        if self._first_us is None:
            return None
        so_far = self.close(connection, client, broker)
        self.is_paused, self._first_us = True, None
        for direction, size in self._bytes.items():
            self._bytes_before[direction] += size
        self._frames = {"request": 0, "response": 0}
        self._bytes = {"request": 0, "response": 0}
        self._lost = self._captured = 0
        self._repeated = self._late = self._early = self._unreadable = 0
        return so_far

    def close(self, connection: str, client: str, broker: str) -> CapturedConnection:
        """Return the facts about the connection since the last pause."""
        judged = self._judge(client, broker)
        ended_by: Literal["client", "broker"] | None = None
        if self._ended_by is not None:
            ended_by = "client" if self._ended_by == client else "broker"
        return CapturedConnection(
            connection=connection,
            client=client,
            broker=broker,
            first_us=self._last_us if self._first_us is None else self._first_us,
            last_us=self._last_us,
            seen_from_start=self.has_syn,
            closed_by=ended_by,
            reset=self._reset,
            request_frames=self._frames["request"],
            response_frames=self._frames["response"],
            request_bytes=self._bytes["request"],
            response_bytes=self._bytes["response"],
            lost_bytes=self._lost,
            captured_bytes=self._captured,
            repeated_bytes=self._repeated,
            late_bytes=self._late,
            early_bytes=self._early,
            unreadable_bytes=self._unreadable,
            is_kafka=judged.is_kafka,
            reads_as_kafka=judged.reads,
            evidence=judged.reason,
            looks_like=judged.resembles,
        )

    def _judge(self, client: str, broker: str) -> _Verdict:
        found = self.evidence.found
        given = [end for end in (broker, client) if self._brokers.has(end)]
        if found is None and (given or self._is_marked):
            # If one end is known to be a broker, less evidence is enough. On the other side of a
            # tap, there is always a broker.
            found = self.evidence.hint
        resembles = looks_like(*self._heads.values()) if found is None else None
        if given:
            return _judge_given(given[0], found, resembles)
        if self._brokers:
            reason = "neither end was given as a broker"
            if found is None:
                return _Verdict(False, False, reason, resembles)
            return _Verdict(True, False, f"{reason}, but the data reads as Kafka: {found}", KAFKA)
        if found is not None:
            return _Verdict(True, True, found, None)
        return self._judge_unread(resembles)

    def _judge_unread(self, resembles: str | None) -> _Verdict:
        if self._bytes["request"] or self._bytes_before["request"]:
            return _Verdict(False, False, "no request on the connection reads as Kafka", resembles)
        if not (self._bytes["response"] or self._bytes_before["response"]):
            return _Verdict(False, False, "nothing was sent", None)
        if self._is_marked:
            return _Verdict(False, True, "the tap captured only responses on the connection", None)
        return _Verdict(False, False, "no request on the connection was captured", resembles)


def _judge_given(end: str, finding: str | None, resembles: str | None) -> _Verdict:
    reason = f"{end} was given as a broker"
    if finding is not None:
        return _Verdict(True, True, f"{reason}, and {finding}", None)
    nothing = "nothing on the connection reads as Kafka"
    if resembles is not None:
        return _Verdict(False, False, f"{reason}, but {nothing}", resembles)
    return _Verdict(False, True, f"{reason}; {nothing}", None)


def hear(frame: CapturedFrame, conversation: Conversation) -> Turn:
    """Process the next frame of a connection. Return the frame's role in the conversation."""
    is_request, payload, seen = frame.direction == "request", frame.payload, frame.timestamp_us
    error, is_placed = frame.error, frame.is_placed
    if error is None:
        take = conversation.request if is_request else conversation.response
        return take(payload, seen)
    # A frame that is truncated, or damaged after its header, still has a readable header.
    if is_request:
        return conversation.damaged_request(payload, error, seen, is_placed=is_placed)
    return conversation.damaged_response(error, payload, seen, is_placed=is_placed)
