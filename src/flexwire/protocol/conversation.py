"""A conversation: the frames of one connection, each interpreted in light of the earlier frames.

The bytes of a frame do not show its kind. The last request decides whether a frame is a request or
a bare SASL token. A response identifies its request only by a correlation id, and clients reuse
these ids. Bytes that cannot be decoded may be a credential until the connection has shown that
they are not. This module makes all these decisions: pass the payloads of a connection to a
`Conversation` in order. For each frame, it returns the frame's kind and the pair to which the frame
belongs.

A request that expects a response and that response share a ``pair``, a number that is unique
within the connection. The two can therefore be joined immediately, if both are present
(``Turn.request``), or later by connection and pair, as Spark joins rows. Bodies are decoded
elsewhere, except where the body decides whether the request is answered.

A response has only the correlation id of its request, and a client may reuse an id. If several
requests with the same id are waiting, the oldest is answered first, because a broker answers the
requests of a connection in order. Some requests are never answered, so the oldest is dropped if
more requests wait than a limit allows.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeVar

from flexwire.codec import message
from flexwire.errors import CodecError, DecodeError, FrameError, UnknownMessageError
from flexwire.protocol.apis import is_released
from flexwire.protocol.headers import parse_correlation_id
from flexwire.protocol.sasl import Authentication, SaslExchange, is_believable
from flexwire.schema.catalog import catalog
from flexwire.wire.cursor import Reader
from flexwire.wire.segment_layout import CORRELATION_ID_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.protocol.headers import RequestFrame


DEFAULT_IN_FLIGHT: Final = 10_000
"""The maximum number of requests in flight that are remembered. Clients have only a few requests in
flight at a time; the limit is for requests that are never answered.
"""

T = TypeVar("T")


class InFlight(Generic[T]):
    """Items by correlation id, in the order in which they arrived, with a limit.

    If there are more than ``most`` items, the oldest item is removed and counted in ``forgotten``.
    A request without a correlation id is stored under None.
    """

    def __init__(self, most: int = DEFAULT_IN_FLIGHT) -> None:
        self.most = most
        self.forgotten = 0
        self._serial = 0
        # Serial numbers record the order of arrival across all correlation ids.
        self._waiting: dict[int, tuple[int | None, T]] = {}
        self._serials: dict[int | None, deque[int]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        """Yield all waiting items, the oldest first."""
        return (item for _, item in self._waiting.values())

    def items(self) -> Iterator[tuple[int | None, T]]:
        """Yield all waiting items with their correlation ids, the oldest first."""
        yield from self._waiting.values()

    @property
    def oldest_id(self) -> int | None:
        """The correlation id of the item that has waited longest, or None if no item is waiting."""
        return next((correlation_id for correlation_id, _ in self._waiting.values()), None)

    def add(self, correlation_id: int | None, item: T) -> None:
        """Add an item to the waiting items."""
        if len(self._waiting) >= self.most:
            self.forgotten += 1
            self.take(next(iter(self._waiting.values()))[0])
        self._serial += 1
        self._waiting[self._serial] = correlation_id, item
        self._serials.setdefault(correlation_id, deque()).append(self._serial)

    def first(self, correlation_id: int | None) -> T | None:
        """Return the oldest item with this id without removing it, or None if there is none."""
        serials = self._serials.get(correlation_id)
        return self._waiting[serials[0]][1] if serials else None

    def take(self, correlation_id: int | None) -> T | None:
        """Remove and return the oldest item with this id, or return None if no item has this id."""
        serials = self._serials.get(correlation_id)
        if not serials:
            return None
        serial = serials.popleft()
        if not serials:
            del self._serials[correlation_id]
        return self._waiting.pop(serial)[1]


ASKS_FOR_RESPONSE: Final = ("ProduceRequest", "Acks")
"""The only request that may expect no response, and the field that is then 0."""

_UNREADABLE = (FrameError, CodecError, UnknownMessageError)


class Turn(NamedTuple):
    """The role of a frame in its conversation.

    The ``kind`` "token" is a frame of a SASL exchange, from the client or the broker; it is never
    decoded. "unread" is a frame that is damaged or could not be decoded; in that case, ``error`` is
    the reason. ``request`` is the request itself, or the request that a response answers. It is
    None if no such request is waiting. ``pair`` is the number that a request and its response
    share, or None for a request that expects no response. A damaged frame also has ``request``,
    ``correlation_id`` and ``pair`` if its header can be read. ``is_guarded`` is true if bytes that
    cannot be decoded may be a credential (`Authentication`).
    """

    kind: Literal["request", "response", "token", "unread"]
    is_guarded: bool
    request: RequestFrame | None = None
    correlation_id: int | None = None
    pair: int | None = None
    error: str | None = None


class PendingPairs(NamedTuple):
    """The waiting frames of a conversation.

    ``asked`` contains the correlation ids and pairs of requests; the id of a token is None.
    ``early`` contains the correlation ids, pairs and times of responses without a request.
    """

    asked: list[tuple[int | None, int]]
    early: list[tuple[int, int, int]]


class _PendingRequest(NamedTuple):
    """A request that waits for its response. For a client's token, the request is None."""

    pair: int
    request: RequestFrame | None


class _EarlyResponse(NamedTuple):
    """A response for which no request was waiting."""

    pair: int
    seen: int


class Conversation:
    """Receive the frames of one connection in order, and return the role of each.

    A response answers the oldest waiting request with its correlation id, so the n-th response with
    an id answers the n-th request with this id. Requests that expect no response
    (`expects_response`) do not count, nor do frames that cannot be decoded. At most ``in_flight``
    requests wait. If another request arrives, the oldest is removed and counted in ``forgotten``.
    ``unpaired`` counts responses without a request.

    The client id belongs to the connection and may be sent only once (KIP-1313). If a request has
    no client id in its header, its ``request`` contains the last client id that was sent, if any.

    If parts of a capture are missing, a request can follow its response. In that case, the request
    is assigned the pair of the response if, by the caller's clock, it was ``seen`` no later than
    the response. Without a clock, the order of the calls decides.
    """

    def __init__(
        self,
        in_flight: int = DEFAULT_IN_FLIGHT,
        authentication: Authentication | None = None,
        most_read: int | None = None,
        client_id: str | None = None,
        *,
        is_exchanging: bool = False,
    ) -> None:
        """Initialize. ``authentication`` and ``client_id`` are known from earlier frames.

        ``is_exchanging``, also known from earlier frames, means that bare tokens may follow.

        ``most_read`` limits how many bytes of a frame are decoded, for callers that must not
        block. For a longer request, only the header and the beginning of the body are decoded.
        """
        self.unpaired = 0
        self._exchange = SaslExchange(is_exchanging=is_exchanging)
        self.authentication = authentication or Authentication()
        # The last client id that is not null, in a frame that is certainly a request.
        self.client_id = client_id
        self._most_read = most_read
        self._asked: InFlight[_PendingRequest] = InFlight(in_flight)
        self._early: InFlight[_EarlyResponse] = InFlight(in_flight)
        self._pairs = 0
        self._frames = 0

    @property
    def forgotten(self) -> int:
        """The number of requests that were dropped while waiting."""
        return self._asked.forgotten

    @property
    def in_flight(self) -> int:
        """The maximum number of requests that may wait."""
        return self._asked.most

    @in_flight.setter
    def in_flight(self, most: int) -> None:
        self._asked.most = most

    def unanswered(self) -> list[RequestFrame]:
        """Return the requests that are waiting for their responses, oldest first."""
        return [pending.request for pending in self._asked if pending.request is not None]

    def resume_request(self, request: RequestFrame) -> int:
        """Add a request that was read elsewhere and expects a response. Return its pair.

        The requests of a connection must be added oldest first, before any frame.
        """
        pair = self._new_pair()
        self._asked.add(request.correlation_id, _PendingRequest(pair, request))
        return pair

    def resume_token(self) -> None:
        """Add a client's token. The token waits for the broker's answer."""
        self._wait_for_token()

    @property
    def is_exchanging(self) -> bool:
        """True if bare tokens may follow."""
        return self._exchange.is_exchanging

    def waiting(self) -> PendingPairs:
        """Return the waiting frames by correlation id, the oldest first."""
        asked = [(number, pending.pair) for number, pending in self._asked.items()]
        early = [
            (number, one.pair, one.seen)
            for number, one in self._early.items()
            if number is not None
        ]
        return PendingPairs(asked, early)

    def resume_response(self, correlation_id: int, seen: int) -> int:
        """Add a response for which no request was waiting, and return its pair."""
        pair = self._new_pair()
        self._early.add(correlation_id, _EarlyResponse(pair, seen))
        return pair

    def request(self, payload: bytes, seen: int | None = None) -> Turn:
        """Process a frame of the client. A request waits for its response, if it expects one."""
        seen = self._moment(seen)
        is_whole = self._most_read is None or len(payload) <= self._most_read
        start = payload if is_whole else payload[: self._most_read]
        try:
            request = self._parsed(start)
        except _UNREADABLE as error:
            return self._unread(None, payload, str(error))
        self.authentication.see(request, payload, is_whole=is_whole)
        if request is None:
            return Turn("token", self._is_guarded, pair=self._wait_for_token())
        is_answered = expects_response(request, start, is_whole=is_whole)
        pair = self._wait(request, seen) if is_answered else None
        return Turn("request", self._is_guarded, request, request.correlation_id, pair)

    def response(self, payload: bytes, seen: int | None = None) -> Turn:
        """Process a frame of the broker. The request that the frame answers no longer waits."""
        seen = self._moment(seen)
        try:
            return self._respond(payload, seen)
        except FrameError as error:
            return Turn("unread", self._is_guarded, error=str(error))

    def _respond(self, payload: bytes, seen: int) -> Turn:
        correlation_id, asked = self._find(payload)
        self._asked.take(correlation_id)
        if asked is None:
            self.unpaired += 1
            pair = self._new_pair()
            self._early.add(correlation_id, _EarlyResponse(pair, seen))
            return Turn("response", self._is_guarded, None, correlation_id, pair)
        if asked.request is None:
            return Turn("token", self._is_guarded, pair=asked.pair)
        # Brokers answer in order, so tokens that precede the request will no longer be answered.
        while (token := self._asked.first(None)) is not None and token.pair < asked.pair:
            self._asked.take(None)
        return Turn("response", self._is_guarded, asked.request, correlation_id, asked.pair)

    def damaged_request(
        self, payload: bytes, reason: str, seen: int | None = None, *, is_placed: bool
    ) -> Turn:
        """Process the rest of a client's frame.

        If ``is_placed``, the bytes begin with the frame's header.

        If the header can be read and its version is released, the frame becomes the ``request`` and
        a response is expected. Other bytes must not count as a request.
        """
        seen = self._moment(seen)
        if not is_placed:
            return self._unread(None, payload, reason)
        try:
            request = self._parsed(payload)
        except _UNREADABLE:
            return self._unread(None, payload, reason)
        if request is None:
            self._wait_for_token()
        if request is None or not is_released(request.api_key, request.api_version):
            return self._unread(None, payload, reason)
        is_answered = expects_response(request, payload, is_whole=False)
        pair = self._wait(request, seen) if is_answered else None
        turn = self._unread(request, payload, reason)
        return turn._replace(correlation_id=request.correlation_id, pair=pair)

    def damaged_response(
        self, reason: str, payload: bytes = b"", seen: int | None = None, *, is_placed: bool = False
    ) -> Turn:
        """Process the rest of a broker's frame.

        If ``is_placed``, the bytes begin with the frame's header.

        If the header can be read, the request that the frame answers no longer waits.
        """
        seen = self._moment(seen)
        unread = Turn("unread", self._is_guarded, error=reason)
        if not is_placed or len(payload) < CORRELATION_ID_SIZE:
            return unread
        turn = self._respond(payload, seen)
        return unread if turn.kind == "token" else turn._replace(kind="unread", error=reason)

    def expected(self, head: bytes) -> RequestFrame | None:
        """Return the request that a response with these first bytes will answer, or None.

        The first 4 bytes of the payload are enough. Raises `FrameError` if there are fewer bytes
        and no token is waiting for an answer.
        """
        _, asked = self._find(head)
        return None if asked is None else asked.request

    @property
    def _is_guarded(self) -> bool:
        return not self.authentication.is_ruled_out

    def _moment(self, seen: int | None) -> int:
        self._frames += 1
        return self._frames if seen is None else seen

    def _parsed(self, payload: bytes) -> RequestFrame | None:
        """Read a request. For a request without a client id, use the connection's client id."""
        request = self._exchange.parse(payload)
        if request is None or request.client_id == self.client_id:
            return request
        if request.client_id is None:
            return replace(request, client_id=self.client_id)
        if is_believable(request):
            self.client_id = request.client_id
        return request

    def _wait(self, request: RequestFrame, seen: int) -> int:
        """Keep a request pending, unless its response arrived earlier. Return its pair."""
        pair = self._answered_early(request.correlation_id, seen)
        if pair is None:
            pair = self._new_pair()
            pending = request if self._most_read is None else request.without_header()
            self._asked.add(request.correlation_id, _PendingRequest(pair, pending))
        return pair

    def _wait_for_token(self) -> int:
        pair = self._new_pair()
        self._asked.add(None, _PendingRequest(pair, None))
        return pair

    def _new_pair(self) -> int:
        self._pairs += 1
        return self._pairs

    def _unread(self, request: RequestFrame | None, payload: bytes, reason: str) -> Turn:
        self.authentication.see(request, payload, is_whole=False)
        return Turn("unread", self._is_guarded, request, error=reason)

    def _answered_early(self, correlation_id: int, seen: int) -> int | None:
        """Return the pair of a response that arrived before its request was known."""
        while (early := self._early.take(correlation_id)) is not None:
            # The other responses answered requests from before the capture.
            if seen <= early.seen:
                return early.pair
        return None

    def _find(self, payload: bytes) -> tuple[int | None, _PendingRequest | None]:
        # The broker's answer to a token contains no correlation id, and may be shorter than one.
        token = self._asked.first(None)
        try:
            correlation_id = parse_correlation_id(payload)
        except FrameError:
            if token is None:
                raise
            return None, token
        asked = self._asked.first(correlation_id)
        return (None, token) if asked is None and token is not None else (correlation_id, asked)


def expects_response(request: RequestFrame, payload: bytes, *, is_whole: bool = True) -> bool:
    """Return whether a broker answers the request. Only Produce with acks 0 receives no response.

    A Produce request that cannot be decoded counts as answered. Unless ``is_whole`` is true, the
    payload is only the known beginning; the request then counts as answered unless this beginning
    contains acks 0.
    """
    if request.message_name != ASKS_FOR_RESPONSE[0]:
        return True
    acks = _acks(request, payload)
    if acks != 0 or not is_whole:
        # The bytes after acks are irrelevant or unknown.
        return acks != 0
    kind = message(request.message_name)
    try:
        kind.decode_prefix(payload, request.api_version, request.body_offset)
    except (CodecError, UnknownMessageError):
        return True
    return False


def _acks(request: RequestFrame, payload: bytes) -> int | None:
    """Return the field that is 0 if no response is wanted, or None if the field cannot be read."""
    if request.api_version not in catalog().entry(request.message_name).versions:
        return None
    reader = Reader(payload, request.body_offset)
    with suppress(DecodeError):
        for field in message(request.message_name).definition.schema(request.api_version).inline:
            value = field.type.read(reader)
            if field.name == ASKS_FOR_RESPONSE[1]:
                return int(value)
    return None
