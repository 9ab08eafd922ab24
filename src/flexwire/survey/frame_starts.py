"""Guess, from the bytes of a connection, where frames begin in its segments.

The connection began before the part of the capture that is read.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flexwire.capture.reassembly.framing import (
    REQUEST_HEAD_BYTES,
    RESPONSE_HEAD_BYTES,
    SHORTEST_HEAD,
    TLS_FIRST_TYPE,
    TLS_HEAD_BYTES,
    TLS_LAST_TYPE,
    TLS_MAJOR,
    TLS_NEWEST,
    looks_like_request,
    looks_like_response,
    possible_correlation_ids,
    tls_record_length,
)
from flexwire.versions import HIGHEST
from flexwire.wire.segment_layout import ACK, HALF_MODULUS, MODULUS, PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.files.packets import Direction
    from flexwire.capture.reassembly.connections import BrokerEnds
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.columnar.arrays import NumpyArray


_LENGTH = struct.Struct(">i")
DIRECTIONS: tuple[Direction, Direction] = ("request", "response")
# The largest number of requests that are assumed to be pending, and the smallest number of frames
# that form a chain.
_IDS_APART, _CHAIN = 64, 4
_MOST_IDS = 256
_MOST_ROWS = 64
# The numbers of bytes that are searched for a frame that begins within a segment: first after the
# bytes from before the part, and second before the first frame that begins a segment.
_SEARCHED, _BEFORE = 1 << 20, 1 << 16
# The number of bytes that are searched for TLS records, which hold a few records.
_SEARCHED_FOR_TLS = 1 << 16


class ConnectionGuess(NamedTuple):
    """A guess about the state of a connection at the start of a part.

    ``firsts`` holds the next sequence number of each end. If ``shows_tls`` is true, the bytes
    look like TLS, and no frames are expected in them.
    """

    client: str
    broker: str
    firsts: dict[Direction, int]
    shows_tls: bool


class KeySegments:
    """The segments of one key in a chunk."""

    def __init__(self, segments: SegmentColumns, rows: NumpyArray, limit: int) -> None:
        self.segments = segments
        self._limit = limit
        self._rows = rows
        self._is_high = segments.is_high[rows].astype(np.bool_)
        self._sizes = segments.payload_size[rows]

    def flags(self, place: int) -> int:
        """Return the flags of one of these segments."""
        return int(self.segments.flags[self._rows[place]])

    def start(self, key: str, brokers: BrokerEnds) -> ConnectionGuess | None:
        """Return the guessed state of the connection, or None if nothing can be guessed."""
        low, high = key.split("|")
        first_low, first_high = self._first(of_high=False), self._first(of_high=True)
        if first_low is None or first_high is None:
            return None
        is_high = self._client_is_high(key, brokers)
        client, broker = (high, low) if is_high else (low, high)
        sequences = (first_high, first_low) if is_high else (first_low, first_high)
        shows_tls = any(
            _SentBytes(self, of_high=of_high, first=first).shows_tls()
            for of_high, first in ((False, first_low), (True, first_high))
        )
        return ConnectionGuess(
            client, broker, dict(zip(DIRECTIONS, sequences, strict=True)), shows_tls
        )

    def before_frames(
        self, direction: Direction, *, client_is_high: bool, first: int, least: int
    ) -> int | None:
        """Return how many bytes of a direction precede its first frame, or None if unknown.

        ``first`` is the sequence number of the first byte of the direction. At least ``least``
        bytes come before the direction's first frame.
        """
        is_request = direction == "request"
        stream = _SentBytes(self, of_high=client_is_high == is_request, first=first)
        if is_request:
            return stream.first_frame(self._asks, least)
        ids = self._request_ids(of_high=client_is_high)
        if ids:
            return stream.first_frame(partial(self._answers, ids=ids), least)
        # The requests for these responses were sent before the part.
        return 0 if not least and stream.leads_to_end(0, self._limit) else None

    def _first(self, *, of_high: bool) -> int | None:
        """Return the next sequence number of an end."""
        rows = np.flatnonzero(self._is_high == of_high)
        if len(rows):
            return int(self.segments.sequence[self._rows[rows[0]]])
        # If no request is pending, the other end has acknowledged everything that this end has
        # sent.
        first = self._rows[0]
        acknowledged = int(self.segments.acknowledgment[first])
        return acknowledged if self.segments.flags[first] & ACK and acknowledged else None

    def _client_is_high(self, key: str, brokers: BrokerEnds) -> bool:
        segment = self.segments.segment(int(self._rows[0]))
        client = brokers.client(segment)
        low, high = key.split("|")
        if client is not None:
            return client == high
        asks = [
            sum(self._surely_asks(row) for row in self.with_payload(of_high=of_high)[:_MOST_ROWS])
            for of_high in (False, True)
        ]
        if asks[0] != asks[1]:
            return asks[1] > asks[0]
        high_port, low_port = (int(end.rpartition(":")[2]) for end in (high, low))
        return high_port > low_port

    def with_payload(self, *, of_high: bool) -> list[int]:
        """Return the rows of the segments of one end that have a payload."""
        rows: list[int] = self._rows[(self._is_high == of_high) & (self._sizes > 0)].tolist()
        return rows

    def head(self, row: int, size: int) -> bytes:
        """Return the first ``size`` bytes of a payload, or the whole payload if it is shorter."""
        at = int(self.segments.payload_at[row])
        head = self.segments.data[at : at + min(size, int(self.segments.payload_size[row]))]
        return head.tobytes()

    def _asks(self, head: bytes) -> bool:
        return bool(looks_like_request(head, self._limit))

    def _surely_asks(self, row: int) -> bool:
        """Return whether a payload is certainly a request, and not a response with a low id."""
        head = self.head(row, REQUEST_HEAD_BYTES)
        if len(head) < SHORTEST_HEAD or not self._asks(head):
            return False
        return possible_correlation_ids(head)[1] > HIGHEST

    def _request_ids(self, *, of_high: bool) -> list[int]:
        """Return the lowest and the highest correlation id of some requests."""
        ids = []
        for row in self.with_payload(of_high=of_high):
            head = self.head(row, REQUEST_HEAD_BYTES)
            if len(head) >= SHORTEST_HEAD and looks_like_request(head, self._limit):
                ids.append(possible_correlation_ids(head)[0])
                if len(ids) == _MOST_IDS:
                    break
        return [min(ids), max(ids)] if ids else []

    def _answers(self, head: bytes, ids: list[int]) -> bool:
        if not ids or not looks_like_response(head, self._limit):
            return False
        (answers,) = _LENGTH.unpack_from(head, PREFIX_LENGTH)
        return bool(ids[0] - _IDS_APART <= answers <= ids[1])


class _SentBytes:
    """The bytes that one end sent in a chunk, by their distance from the first byte."""

    def __init__(self, rows: KeySegments, *, of_high: bool, first: int) -> None:
        self.rows = rows.with_payload(of_high=of_high)
        self._whole = rows
        positions = (rows.segments.sequence[self.rows] - first) % MODULUS
        self._position: dict[int, int] = dict(zip(self.rows, positions.tolist(), strict=True))
        order = np.argsort(positions, kind="stable")
        self._starts: list[int] = positions[order].tolist()
        sizes = rows.segments.payload_size[self.rows]
        self._end = int((positions + sizes).max()) if self.rows else 0
        self._in_order = [self.rows[place] for place in order.tolist()]

    def first_frame(self, is_frame: Callable[[bytes], bool], least: int) -> int | None:
        """Return where the first frame at or after ``least`` begins, or None if unknown."""
        for row in self.rows:
            at = self._position[row]
            if least <= at < HALF_MODULUS and self._leads_on(at, is_frame, sure=True):
                return self._earliest(at, is_frame, least)
        data = np.frombuffer(self._peek(least, _SEARCHED), np.uint8)
        for place in _lengths(data)[0].tolist():
            if self._leads_on(least + place, is_frame, sure=False):
                return least + int(place)
        return None

    def shows_tls(self) -> bool:
        """Return whether a TLS record is followed by another record, or ends with the last byte."""
        data = np.frombuffer(self._peek(0, _SEARCHED_FOR_TLS), np.uint8)
        likely = (data[1:-1] == TLS_MAJOR) & (data[2:] <= TLS_NEWEST)
        likely &= (data[:-2] >= TLS_FIRST_TYPE) & (data[:-2] <= TLS_LAST_TYPE)
        for place in np.flatnonzero(likely).tolist():
            length = tls_record_length(self._peek(place, TLS_HEAD_BYTES))
            if length is not None:
                end = place + length
                if (
                    end == self._end
                    or tls_record_length(self._peek(end, TLS_HEAD_BYTES)) is not None
                ):
                    return True
        return False

    def leads_to_end(self, at: int, limit: int) -> bool:
        """Return whether each length leads to the next response, from ``at`` to the last byte."""
        for _ in range(_MOST_ROWS):
            head = self._peek(at, RESPONSE_HEAD_BYTES)
            if not looks_like_response(head, limit):
                return False
            at += PREFIX_LENGTH + _LENGTH.unpack_from(head)[0]
            if at == self._end:
                return True
        return False

    def _leads_on(self, at: int, is_frame: Callable[[bytes], bool], *, sure: bool) -> bool:
        """Return whether a frame begins at a place, and more frames follow where its length ends.

        If the length ends after the last known byte, the place counts as the start of a frame only
        if it is ``sure``.
        """
        for number in range(_CHAIN):
            head = self._peek(at, REQUEST_HEAD_BYTES)
            if len(head) < SHORTEST_HEAD:
                # The chain covers all known bytes.
                return number > 1 or (number == 1 and sure)
            if not is_frame(head):
                return False
            at += PREFIX_LENGTH + _LENGTH.unpack_from(head)[0]
        return True

    def _earliest(self, at: int, is_frame: Callable[[bytes], bool], least: int) -> int:
        """Return the start of the chain of frames that leads to ``at``."""
        begin = max(least, at - _BEFORE)
        data = self._peek(begin, at - begin)
        if len(data) < at - begin:
            return at
        places, lengths = _lengths(np.frombuffer(data, np.uint8))
        ends = {at}
        inside = places + PREFIX_LENGTH + lengths <= at - begin
        for place, length in zip(
            places[inside][::-1].tolist(), lengths[inside][::-1].tolist(), strict=True
        ):
            if begin + place + PREFIX_LENGTH + length in ends:
                head = self._peek(begin + place, REQUEST_HEAD_BYTES)
                if is_frame(head):
                    ends.add(begin + place)
        return min(ends)

    def _peek(self, at: int, size: int) -> bytes:
        peeked = b""
        place = bisect_right(self._starts, at) - 1
        while len(peeked) < size and 0 <= place < len(self._starts):
            inside = at + len(peeked) - self._starts[place]
            if inside < 0:
                break
            part = self._whole.head(self._in_order[place], inside + size - len(peeked))[inside:]
            if not part:
                break
            peeked += part
            place += 1
        return peeked


def _lengths(data: NumpyArray) -> tuple[NumpyArray, NumpyArray]:
    """Return the places of all numbers that may be the length of a frame, and these numbers."""
    if len(data) < SHORTEST_HEAD:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # The search does not find frames of 16 MiB or more.
    first = np.flatnonzero(data[:-3] == 0)
    words = data[first[:, None] + np.arange(1, 4)].astype(np.int64)
    lengths = words[:, 0] << 16 | words[:, 1] << 8 | words[:, 2]
    likely = lengths >= PREFIX_LENGTH
    return first[likely], lengths[likely]
