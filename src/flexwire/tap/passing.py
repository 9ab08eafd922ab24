"""How a client's bytes go on to its broker: as they come, or stamped and so held until whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from flexwire.capture.files.comments import stamp_comment
from flexwire.protocol.frames import framed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.protocol import Turn
    from flexwire.tap.stamping import Stamper
    from flexwire.tap.statistics import TapStatistics


class Passed(NamedTuple):
    """What goes on of whole requests, and the comment that the capture has of each, if any."""

    outgoing: bytes = b""
    comments: Sequence[bytes] = ()


_NOTHING = Passed()


class Passing(Protocol):
    """What goes on to the broker, and when: together it is all that came."""

    holds: bool
    """Whether requests wait here until they are whole."""

    def at_once(self, data: bytes) -> bytes:
        """Of bytes that just came."""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> Passed:
        """Of requests that are whole now."""

    def rest(self, data: bytes) -> bytes:
        """Of bytes that will not be a whole request."""


class AsTheyCome:
    """All goes on at once."""

    holds = False

    def at_once(self, data: bytes) -> bytes:
        """As it is."""
        return data

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> Passed:  # noqa: ARG002  # as `Passing` has it
        """They went on already."""
        return _NOTHING

    def rest(self, data: bytes) -> bytes:  # noqa: ARG002  # as `Passing` has it
        """It went on already."""
        return b""


class Stamped:
    """Requests go on once they are whole, with the header tags that the stamper adds."""

    holds = True

    def __init__(self, stamper: Stamper, statistics: TapStatistics) -> None:
        self._stamper = stamper
        self._statistics = statistics

    def at_once(self, data: bytes) -> bytes:  # noqa: ARG002  # as `Passing` has it
        """Nothing: who knows what it is."""
        return b""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> Passed:
        """Stamped where they can be, and comments that say with which tags."""
        stamped = [self._stamper.stamp(*one) for one in zip(payloads, turns, strict=True)]
        self._statistics.count_stamped(one.reason for one in stamped)
        comments = [
            stamp_comment(turn.request.correlation_id, one.added)
            if turn.request is not None and one.added
            else b""
            for turn, one in zip(turns, stamped, strict=True)
        ]
        return Passed(b"".join(framed(one.payload) for one in stamped), comments)

    def rest(self, data: bytes) -> bytes:
        """As it is: it is still what the client said."""
        return data
