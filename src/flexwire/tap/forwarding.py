"""Forwarders decide which bytes of a client are sent on to the broker, and when."""

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
    """Bytes that are sent this many seconds after all bytes before them."""

    seconds: float
    data: bytes


class ForwardedRequests(NamedTuple):
    """The bytes of whole requests to forward, and the comment in the capture for each, if any.

    ``answers`` are the payloads with which the tap answers requests that are not sent on, by their
    place. With None the connection is closed there, and nothing after it is sent on. ``late`` is
    sent after ``outgoing``. If it ``silences`` the connection, nothing more is sent to the broker.
    """

    outgoing: bytes = b""
    comments: Sequence[bytes] = ()
    answers: Mapping[int, bytes | None] = _NO_ANSWERS
    late: Sequence[LateBytes] = ()
    silences: bool = False


class PassedResponse(NamedTuple):
    """The handling of a response: its payload as sent on, and further effects.

    It is sent ``seconds`` late. Only its first ``length`` bytes are sent, with its frame's length,
    and then the connection is closed. If it ``silences`` the connection, nothing is sent to the
    client, from this response on. The client's next requests are read ``muted`` seconds later.
    ``comment`` in the capture describes the action.
    """

    payload: bytes
    comment: bytes = b""
    seconds: float = 0.0
    length: int | None = None
    silences: bool = False
    muted: float = 0.0

    @property
    def is_plain(self) -> bool:
        """True if the payload is sent on whole and at once, without further effects."""
        return not (self.seconds or self.silences or self.muted) and self.length is None


_NOTHING = ForwardedRequests()


class Forwarder(Protocol):
    """Decides which bytes go to the broker, and when; together it gets all bytes of the client."""

    holds: bool
    """True if requests wait here until they are whole."""

    def at_once(self, data: bytes) -> bytes:
        """Return the bytes to forward among those that just came."""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Return the bytes to forward for requests that are whole now."""

    def beginning(self, data: bytes) -> ForwardedRequests:
        """Return the bytes to forward of a request that waits and will not be kept whole."""

    def rest(self, data: bytes) -> bytes:
        """Return the bytes to forward among those that will not be a whole request."""

    def alters(self, request: RequestFrame) -> bool:
        """Return whether the response to such a request may be altered, and has to be whole."""

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:
        """Return the handling of a response on its way to the client."""


class _UnalteredResponses:
    """Passes all responses on."""

    def alters(self, request: RequestFrame) -> bool:  # noqa: ARG002  # as `Forwarder` has it
        """Return False."""
        return False

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:  # noqa: ARG002  # the same
        """Return the response unchanged."""
        return PassedResponse(payload)


class DirectForwarder(_UnalteredResponses):
    """Forwards everything at once."""

    holds = False

    def at_once(self, data: bytes) -> bytes:
        """Return the bytes unchanged."""
        return data

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:  # noqa: ARG002  # as `Forwarder` has it
        """Return nothing: they were sent on already."""
        return _NOTHING

    def beginning(self, data: bytes) -> ForwardedRequests:  # noqa: ARG002  # the same
        """Return nothing: it was sent on already."""
        return _NOTHING

    def rest(self, data: bytes) -> bytes:  # noqa: ARG002  # as `Forwarder` has it
        """Return nothing: it was sent on already."""
        return b""


class StampingForwarder(_UnalteredResponses):
    """Forwards requests once they are whole, with the header tags that the stamper adds."""

    holds = True

    def __init__(self, stamper: Stamper, statistics: TapStatistics) -> None:
        self._stamper = stamper
        self._statistics = statistics

    def at_once(self, data: bytes) -> bytes:  # noqa: ARG002  # as `Forwarder` has it
        """Return nothing, because a partial frame may be one to stamp."""
        return b""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Return stamped requests, where possible, and comments with their tags."""
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
        """Return the bytes unchanged, and count that they are not stamped."""
        self._statistics.unstamped_too_large += 1
        return ForwardedRequests(data)

    def rest(self, data: bytes) -> bytes:
        """Return the bytes unchanged: they are still the client's own."""
        return data
