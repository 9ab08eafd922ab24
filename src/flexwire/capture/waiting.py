"""The correlation ids for which a response is due, as far as it helps to find where one begins.

Where a direction's bytes lost their frames, a response is recognized by the correlation id that a
request waits for. Frames are not understood yet at that point (`flexwire.protocol.conversation`
does that afterwards), so every request counts here, those that are never answered too.
"""

from __future__ import annotations

import struct
from typing import Literal

from flexwire.protocol.in_flight import InFlight

_CORRELATION_ID = struct.Struct(">i")
_IN_REQUEST = 4  # after the api key and version, in a payload
_IN_RESPONSE_HEAD = 4  # after the length prefix
_IDS_APART = 1000


class Waiting:
    """Correlation ids of requests on one connection that await their response."""

    def __init__(self) -> None:
        self._in_flight: InFlight[int] = InFlight()
        self._any_request = False

    def note(self, direction: Literal["request", "response"], payload: bytes) -> None:
        """Take in a frame."""
        start = _IN_REQUEST if direction == "request" else 0
        if len(payload) < start + _CORRELATION_ID.size:
            return
        (correlation_id,) = _CORRELATION_ID.unpack_from(payload, start)
        if direction == "request":
            self._any_request = True
            self._in_flight.add(correlation_id, correlation_id)
        else:
            self._in_flight.take(correlation_id)

    def expects(self, head: bytes) -> bool:
        """Whether a request awaits the response frame that begins with ``head``."""
        return self._in_flight.first(_id_in(head)) is not None

    def follows(self, head: bytes) -> bool:
        """Whether the response may answer a request from before those that were seen.

        Clients count correlation ids upwards, so its id is a little below theirs; where no
        request was seen at all, anything may.
        """
        if not self._any_request:
            return True
        oldest = self._in_flight.oldest_id
        return oldest is not None and 0 < oldest - _id_in(head) <= _IDS_APART


def _id_in(head: bytes) -> int:
    correlation_id: int = _CORRELATION_ID.unpack_from(head, _IN_RESPONSE_HEAD)[0]
    return correlation_id
