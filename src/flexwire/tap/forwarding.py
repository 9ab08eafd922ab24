"""Forwarders: what goes on to the broker of a client's bytes, and when."""

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
    """Bytes that go on so many seconds after all that comes before them."""

    seconds: float
    data: bytes


class ForwardedRequests(NamedTuple):
    """The bytes of whole requests to forward, and the comment in the capture for each, if any.

    ``answers`` are the payloads with which the tap answers requests that do not go on, by their
    place; with None the connection is closed there, and nothing after it goes on. ``late`` goes on
    after ``outgoing``. If it ``silences`` the connection, nothing more goes on to the broker.
    """

    outgoing: bytes = b""
    comments: Sequence[bytes] = ()
    answers: Mapping[int, bytes | None] = _NO_ANSWERS
    late: Sequence[LateBytes] = ()
    silences: bool = False


class PassedResponse(NamedTuple):
    """What becomes of a response: its payload as it goes on, and what else happens.

    It goes on ``seconds`` late. Only its first ``length`` bytes go on, its frame's length among
    them, and then the connection is closed. If it ``silences`` the connection, nothing goes on to
    the client, from this response on. The client's next requests are read ``muted`` seconds later.
    ``comment`` says in the capture what was done.
    """

    payload: bytes
    comment: bytes = b""
    seconds: float = 0.0
    length: int | None = None
    silences: bool = False
    muted: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether the payload goes on whole and at once, and nothing else happens."""
        return not (self.seconds or self.silences or self.muted) and self.length is None


_NOTHING = ForwardedRequests()


class Forwarder(Protocol):
    """What goes on to the broker, and when: together it is all that came."""

    holds: bool
    """Whether requests wait here until they are whole."""

    def at_once(self, data: bytes) -> bytes:
        """Return what to forward of bytes that just came."""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Return what to forward of requests that are whole now."""

    def beginning(self, data: bytes) -> ForwardedRequests:
        """Return what to forward of a request that waits and will not be kept whole."""

    def rest(self, data: bytes) -> bytes:
        """Return what to forward of bytes that will not be a whole request."""

    def alters(self, request: RequestFrame) -> bool:
        """Return whether the response to such a request may be altered, and has to be whole."""

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:
        """Return what becomes of a response on its way to the client."""


class _UnalteredResponses:
    """All responses pass."""

    def alters(self, request: RequestFrame) -> bool:  # noqa: ARG002  # as `Forwarder` has it
        """Return that none is altered."""
        return False

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:  # noqa: ARG002  # the same
        """Return it as it came."""
        return PassedResponse(payload)


class DirectForwarder(_UnalteredResponses):
    """All goes on at once."""

    holds = False

    def at_once(self, data: bytes) -> bytes:
        """Return the bytes as they are."""
        return data

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:  # noqa: ARG002  # as `Forwarder` has it
        """They went on already."""
        return _NOTHING

    def beginning(self, data: bytes) -> ForwardedRequests:  # noqa: ARG002  # the same
        """It went on already."""
        return _NOTHING

    def rest(self, data: bytes) -> bytes:  # noqa: ARG002  # as `Forwarder` has it
        """It went on already."""
        return b""


class StampingForwarder(_UnalteredResponses):
    """Requests go on once they are whole, with the header tags that the stamper adds."""

    holds = True

    def __init__(self, stamper: Stamper, statistics: TapStatistics) -> None:
        self._stamper = stamper
        self._statistics = statistics

    def at_once(self, data: bytes) -> bytes:  # noqa: ARG002  # as `Forwarder` has it
        """Nothing: who knows what it is."""
        return b""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Stamped where they can be, and comments that say with which tags."""
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
        """Return the bytes as they are, and count that they are not stamped."""
        self._statistics.unstamped_too_large += 1
        return ForwardedRequests(data)

    def rest(self, data: bytes) -> bytes:
        """Return the bytes as they are: they are still what the client sent."""
        return data
