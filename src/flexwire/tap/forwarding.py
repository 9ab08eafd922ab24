"""Forwarders decide which of a client's bytes are forwarded to the broker, and when."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from flexwire.capture.files.comments import stamp_comment
from flexwire.protocol.frames import to_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexwire.protocol import RequestFrame, Turn
    from flexwire.tap.header_stamps import Stamper
    from flexwire.tap.metrics import TapStatistics


_NO_ANSWERS: Final[Mapping[int, bytes | None]] = MappingProxyType({})


class LateBytes(NamedTuple):
    """Bytes that are sent some seconds after all bytes before them."""

    seconds: float
    data: bytes


class ForwardedRequests(NamedTuple):
    """The bytes to forward for complete requests, and the comments on them for the capture.

    ``answers`` contains the payloads with which the tap itself answers requests, by the position of
    the request. If such a payload is None, the connection is closed at that request, and no later
    bytes are forwarded. ``late`` is sent after ``outgoing``. If ``silences`` is true, nothing more
    is sent to the broker.
    """

    outgoing: bytes = b""
    comments: Sequence[bytes] = ()
    answers: Mapping[int, bytes | None] = _NO_ANSWERS
    late: Sequence[LateBytes] = ()
    silences: bool = False


class PassedResponse(NamedTuple):
    """How to treat a response: the payload to forward, and further effects.

    The payload is sent after a delay of ``seconds``. If ``length`` is given, only this many bytes
    are sent, with the length prefix of the whole frame, and the connection is then closed. If
    ``silences`` is true, the client gets neither this response nor any later bytes. The client's
    next requests are read after a pause of ``muted`` seconds. ``comment`` describes the action in
    the capture.
    """

    payload: bytes
    comment: bytes = b""
    seconds: float = 0.0
    length: int | None = None
    silences: bool = False
    muted: float = 0.0

    @property
    def is_plain(self) -> bool:
        """True if the payload is sent completely and immediately, without further effects."""
        return not (self.seconds or self.silences or self.muted) and self.length is None


_NOTHING = ForwardedRequests()


class Forwarder(Protocol):
    """Decide which bytes go to the broker, and when.

    All bytes from the client pass through this object.
    """

    holds: bool
    """True if requests wait in this object until they are complete."""

    def at_once(self, data: bytes) -> bytes:
        """Return the bytes to forward among those that have just arrived."""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Return the bytes to forward for requests that are now complete."""

    def beginning(self, data: bytes) -> ForwardedRequests:
        """Return the bytes to forward from a waiting request that is too long to be kept."""

    def rest(self, data: bytes) -> bytes:
        """Return the bytes to forward among those that will not become a complete request."""

    def alters(self, request: RequestFrame) -> bool:
        """Return whether a response to this kind of request may change, and so must be complete."""

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:
        """Return what to do with a response on its way to the client."""


class _UnalteredResponses:
    """Pass all responses on without changes."""

    def alters(self, request: RequestFrame) -> bool:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return False."""
        return False

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return the response unchanged."""
        return PassedResponse(payload)


class DirectForwarder(_UnalteredResponses):
    """Forward all bytes immediately."""

    holds = False

    def at_once(self, data: bytes) -> bytes:
        """Return the bytes unchanged."""
        return data

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return nothing, because the requests were already forwarded."""
        return _NOTHING

    def beginning(self, data: bytes) -> ForwardedRequests:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return nothing, because the bytes were already forwarded."""
        return _NOTHING

    def rest(self, data: bytes) -> bytes:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return nothing, because the bytes were already forwarded."""
        return b""


class StampingForwarder(_UnalteredResponses):
    """Forward requests when they are complete, with the header tags that the stamper adds."""

    holds = True

    def __init__(self, stamper: Stamper, statistics: TapStatistics) -> None:
        self._stamper = stamper
        self._statistics = statistics

    def at_once(self, data: bytes) -> bytes:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return nothing, because an incomplete frame may be a request to stamp."""
        return b""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Return the requests, stamped where possible, and comments with their tags."""
        stamped = [self._stamper.stamp(*request) for request in zip(payloads, turns, strict=True)]
        self._statistics.count_stamped(request.reason for request in stamped)
        comments = [
            stamp_comment(turn.request.correlation_id, request.added)
            if turn.request is not None and request.added
            else b""
            for turn, request in zip(turns, stamped, strict=True)
        ]
        return ForwardedRequests(
            b"".join(to_frame(request.payload) for request in stamped), comments
        )

    def beginning(self, data: bytes) -> ForwardedRequests:
        """Return the bytes unchanged, and count a request that is not stamped."""
        self._statistics.unstamped_too_large += 1
        return ForwardedRequests(data)

    def rest(self, data: bytes) -> bytes:
        """Return the bytes unchanged, as the client sent them."""
        return data
