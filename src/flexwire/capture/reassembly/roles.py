"""Which end of a connection is the client, when the capture did not see which one opened it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.capture.reassembly.plausible import (
    SHORTEST_HEAD,
    correlation_ids,
    looks_like_request,
    looks_like_responses,
)
from flexwire.versions import HIGHEST
from flexwire.wire.segment_layout import ACK, SYN

if TYPE_CHECKING:
    from flexwire.capture.files.model import Segment
    from flexwire.capture.reassembly.brokers import Brokers

HELD_SEGMENTS = 64
HELD_BYTES = 1024 * 1024
"""So much of a connection is held back, at most, until it is known which end is the client."""


class Roles:
    """Finds out which end of a connection is the client, from its first segments.

    Of these rules the first that applies decides. The client is

    1. the end that is not among the ``brokers``, where exactly one is;
    2. the sender of a SYN, or of what flexwire's own captures mark as a request;
    3. the end from which a request came whose correlation id came back from the other end;
    4. the only end that sent bytes that look like a request and not like a response;
    5. the client of an earlier connection on these ports (``known``);
    6. the end with the higher port.
    """

    def __init__(self, limit: int, brokers: Brokers, known: str | None = None) -> None:
        self.held: list[Segment] = []
        self._brokers = brokers
        self._known = known
        self._limit = limit
        self._held_bytes = 0
        self._asked: dict[str, set[int]] = {}
        self._sure: set[str] = set()

    def client(self, segment: Segment) -> str | None:
        """Hold the segment back; return which end is the client once that is known."""
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
        """Which end is the client, by what has been seen until now."""
        if len(self._sure) == 1:
            return next(iter(self._sure))
        if self._known is not None:
            return self._known
        first = self.held[0]
        # Of equal ports the end that spoke first is as good a guess as the other.
        return max(first.source, first.destination, key=_port)

    def _answers(self, segment: Segment) -> bool:
        if len(segment.payload) < SHORTEST_HEAD:
            return False
        as_request, as_response = correlation_ids(segment.payload)
        asked = self._asked.get(segment.destination, ())
        if as_response in asked and looks_like_responses(segment.payload, self._limit):
            return True
        if looks_like_request(segment.payload, self._limit):
            self._asked.setdefault(segment.source, set()).add(as_request)
            # Read as a response's correlation id, api key and version are the version alone for
            # Produce (api key 0): the first responses of a connection have ids like that.
            if as_response > HIGHEST:
                self._sure.add(segment.source)
        return False


def _port(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])
