"""The correlation ids for which a response is due, as far as it helps to find where one begins.

Where a direction's bytes lost their frames, a response is recognized by the correlation id that a
request waits for. Frames are not understood yet at that point (`flexwire.protocol.conversation`
does that afterwards), so every request counts here, those that are never answered too.

Clients have a handful of requests under way, so the last frames of a connection are enough to know
which ones; and only they are kept, because most connections never need them.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final, Literal

from flexwire.protocol.conversation import InFlight
from flexwire.wire.segment_layout import CORRELATION_ID_IN_REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTED_FRAMES: Final = 512
"""So many frames of a connection are remembered, both directions together."""

_CORRELATION_ID = struct.Struct(">i")
_IN_RESPONSE_HEAD = 4  # after the length prefix
_IDS_APART = 1000


class Waiting:
    """Correlation ids of requests on one connection that await their response."""

    def __init__(self) -> None:
        self._noted: deque[tuple[bool, int]] = deque(maxlen=NOTED_FRAMES)
        self._any_request = False
        self._known: InFlight[int] | None = None

    @property
    def any_request(self) -> bool:
        """Whether a request was seen."""
        return self._any_request

    def note(self, direction: Literal["request", "response"], payload: bytes) -> None:
        """Take in a frame."""
        is_request = direction == "request"
        start = CORRELATION_ID_IN_REQUEST if is_request else 0
        if len(payload) >= start + _CORRELATION_ID.size:
            self.note_ids([(is_request, _CORRELATION_ID.unpack_from(payload, start)[0])])

    def note_ids(self, frames: Iterable[tuple[bool, int]]) -> None:
        """Take in frames one after the other: whether each is a request, and its correlation id."""
        self._known = None
        for frame in frames:
            self._any_request = self._any_request or frame[0]
            self._noted.append(frame)

    def expects(self, head: bytes) -> bool:
        """Whether a request awaits the response frame that begins with ``head``."""
        return self._in_flight().first(_id_in(head)) is not None

    def follows(self, head: bytes) -> bool:
        """Whether the response may answer a request from before those that were seen.

        Clients count correlation ids upwards, so its id is a little below theirs; where no
        request was seen at all, anything may.
        """
        if not self._any_request:
            return True
        oldest = self._in_flight().oldest_id
        return oldest is not None and 0 < oldest - _id_in(head) <= _IDS_APART

    def _in_flight(self) -> InFlight[int]:
        if self._known is None:
            self._known = InFlight()
            for is_request, correlation_id in self._noted:
                if is_request:
                    self._known.add(correlation_id, correlation_id)
                else:
                    self._known.take(correlation_id)
        return self._known


def _id_in(head: bytes) -> int:
    correlation_id: int = _CORRELATION_ID.unpack_from(head, _IN_RESPONSE_HEAD)[0]
    return correlation_id
