"""The correlation ids for which a response is due on a connection."""

from __future__ import annotations

import struct
from typing import Literal

MAX_WAITING = 10_000
"""The oldest is forgotten beyond this: Produce with acks 0 is never answered."""

_CORRELATION_ID = struct.Struct(">i")
_IN_REQUEST = 4  # behind the api key and version, in a payload
_IN_RESPONSE_HEAD = 4  # behind the length prefix
_IN_FLIGHT = 1000


class Waiting:
    """Correlation ids of requests on one connection that await their response."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._any_request = False

    def note(self, direction: Literal["request", "response"], payload: bytes) -> None:
        """Take in a frame."""
        counts = self._counts
        if direction == "request":
            if len(payload) < _IN_REQUEST + _CORRELATION_ID.size:
                return
            self._any_request = True
            (correlation_id,) = _CORRELATION_ID.unpack_from(payload, _IN_REQUEST)
            counts[correlation_id] = counts.get(correlation_id, 0) + 1
            if len(counts) > MAX_WAITING:
                del counts[next(iter(counts))]
        elif len(payload) >= _CORRELATION_ID.size:
            (correlation_id,) = _CORRELATION_ID.unpack_from(payload)
            count = counts.pop(correlation_id, 0)
            if count > 1:
                counts[correlation_id] = count - 1

    def expects(self, head: bytes) -> bool:
        """Whether a request awaits the response frame that begins with ``head``."""
        return _CORRELATION_ID.unpack_from(head, _IN_RESPONSE_HEAD)[0] in self._counts

    def follows(self, head: bytes) -> bool:
        """Whether the response may answer a request from before those that were seen.

        Clients count correlation ids upwards, so its id is a little below theirs; where no
        request was seen at all, anything may.
        """
        if not self._any_request:
            return True
        if not self._counts:
            return False
        correlation_id: int = _CORRELATION_ID.unpack_from(head, _IN_RESPONSE_HEAD)[0]
        return 0 < next(iter(self._counts)) - correlation_id <= _IN_FLIGHT
