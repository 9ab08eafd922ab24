"""Where frames begin in the segments of a connection that goes on, guessed from their bytes."""

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
    correlation_ids,
    looks_like_request,
    looks_like_response,
    tls_record,
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
# So many requests may have been under way; so many frames have to follow one another.
_IDS_APART, _CHAIN = 64, 4
_MOST_IDS = 256
_MOST_ROWS = 64
# So much is looked through for a frame that begins within a segment: after the bytes from before
# the part, and in them before the first one that begins a segment.
_SEARCHED, _BEFORE = 1 << 20, 1 << 16
# Some records of TLS are in so much.
_SEARCHED_FOR_TLS = 1 << 16


class ConnectionGuess(NamedTuple):
    """Where a connection is supposed to stand at the start of a part.

    ``firsts`` are the sequence numbers that its ends go on with. If it ``is_hidden``, no frame is
    known to begin in it.
    """

    client: str
    broker: str
    firsts: dict[Direction, int]
    is_hidden: bool


class KeySegments:
    """The segments of one key in a chunk."""

    def __init__(self, segments: SegmentColumns, rows: NumpyArray, limit: int) -> None:
        self.segments = segments
        self._limit = limit
        self._rows = rows
        self._is_high = segments.is_high[rows].astype(np.bool_)
        self._sizes = segments.payload_size[rows]

    def flags(self, place: int) -> int:
        """The flags of the segment at a place among these."""
        return int(self.segments.flags[self._rows[place]])

    def start(self, key: str, brokers: BrokerEnds) -> ConnectionGuess | None:
        """Return where a connection is supposed to stand; None if nothing can be supposed."""
        low, high = key.split("|")
        first_low, first_high = self._first(of_high=False), self._first(of_high=True)
        if first_low is None or first_high is None:
            return None
        is_high = self._client_is_high(key, brokers)
        client, broker = (high, low) if is_high else (low, high)
        sequences = (first_high, first_low) if is_high else (first_low, first_high)
        is_hidden = any(
            _SentBytes(self, of_high=of_high, first=first).is_hidden()
            for of_high, first in ((False, first_low), (True, first_high))
        )
        return ConnectionGuess(
            client, broker, dict(zip(DIRECTIONS, sequences, strict=True)), is_hidden
        )

    def before_frames(
        self, direction: Direction, *, client_is_high: bool, first: int, least: int
    ) -> int | None:
        """Return how many bytes of a direction come before its first frame; None if not known.

        ``first`` is the sequence number of its first byte. At least ``least`` bytes come before.
        """
        is_request = direction == "request"
        stream = _SentBytes(self, of_high=client_is_high == is_request, first=first)
        if is_request:
            return stream.first_frame(self._asks, least)
        ids = self._request_ids(of_high=client_is_high)
        if ids:
            return stream.first_frame(partial(self._answers, ids=ids), least)
        # Their requests are from before the part.
        return 0 if not least and stream.is_whole(0, self._limit) else None

    def _first(self, *, of_high: bool) -> int | None:
        """The sequence number that an end goes on with."""
        its = np.flatnonzero(self._is_high == of_high)
        if len(its):
            return int(self.segments.sequence[self._rows[its[0]]])
        # What the other end has acknowledged is all that it sent, if nothing is under way.
        first = self._rows[0]
        acknowledged = int(self.segments.acknowledgment[first])
        return acknowledged if self.segments.flags[first] & ACK and acknowledged else None

    def _client_is_high(self, key: str, brokers: BrokerEnds) -> bool:
        segment = self.segments.segment(int(self._rows[0]))
        given = brokers.client(segment)
        low, high = key.split("|")
        if given is not None:
            return given == high
        asking = [
            sum(self._surely_asks(row) for row in self.with_payload(of_high=of_high)[:_MOST_ROWS])
            for of_high in (False, True)
        ]
        if asking[0] != asking[1]:
            return asking[1] > asking[0]
        high_port, low_port = (int(end.rpartition(":")[2]) for end in (high, low))
        return high_port > low_port

    def with_payload(self, *, of_high: bool) -> list[int]:
        """The rows of the segments of one end that have a payload."""
        found: list[int] = self._rows[(self._is_high == of_high) & (self._sizes > 0)].tolist()
        return found

    def head(self, row: int, size: int) -> bytes:
        """The first bytes of a payload, ``size`` of them or as many as there are."""
        at = int(self.segments.payload_at[row])
        head = self.segments.data[at : at + min(size, int(self.segments.payload_size[row]))]
        return head.tobytes()

    def _asks(self, head: bytes) -> bool:
        return bool(looks_like_request(head, self._limit))

    def _surely_asks(self, row: int) -> bool:
        """Whether it looks like a request, and is no response with a low correlation id."""
        head = self.head(row, REQUEST_HEAD_BYTES)
        if len(head) < SHORTEST_HEAD or not self._asks(head):
            return False
        return correlation_ids(head)[1] > HIGHEST

    def _request_ids(self, *, of_high: bool) -> list[int]:
        """Correlation ids of some requests, the lowest and the highest of them."""
        found = []
        for row in self.with_payload(of_high=of_high):
            head = self.head(row, REQUEST_HEAD_BYTES)
            if len(head) >= SHORTEST_HEAD and looks_like_request(head, self._limit):
                found.append(correlation_ids(head)[0])
                if len(found) == _MOST_IDS:
                    break
        return [min(found), max(found)] if found else []

    def _answers(self, head: bytes, ids: list[int]) -> bool:
        if not ids or not looks_like_response(head, self._limit):
            return False
        (answers,) = _LENGTH.unpack_from(head, PREFIX_LENGTH)
        return bool(ids[0] - _IDS_APART <= answers <= ids[1])


class _SentBytes:
    """What one end sent in a chunk, by the distance from its first byte there."""

    def __init__(self, rows: KeySegments, *, of_high: bool, first: int) -> None:
        self.rows = rows.with_payload(of_high=of_high)
        self._whole = rows
        positions = (rows.segments.sequence[self.rows] - first) % MODULUS
        self._position: dict[int, int] = dict(zip(self.rows, positions.tolist(), strict=True))
        order = np.argsort(positions, kind="stable")
        self._starts: list[int] = positions[order].tolist()
        sizes = rows.segments.payload_size[self.rows]
        self._end = int((positions + sizes).max()) if self.rows else 0
        self._in_order = [self.rows[one] for one in order.tolist()]

    def first_frame(self, is_frame: Callable[[bytes], bool], least: int) -> int | None:
        """Where the first frame begins that does so not before ``least``, as far as it is known."""
        for row in self.rows:
            at = self._position[row]
            if least <= at < HALF_MODULUS and self._leads_on(at, is_frame, sure=True):
                return self._earliest(at, is_frame, least)
        data = np.frombuffer(self._peek(least, _SEARCHED), np.uint8)
        for place in _lengths(data)[0].tolist():
            if self._leads_on(least + place, is_frame, sure=False):
                return least + int(place)
        return None

    def is_hidden(self) -> bool:
        """Whether a record of TLS leads to another, or to the end of all bytes."""
        data = np.frombuffer(self._peek(0, _SEARCHED_FOR_TLS), np.uint8)
        likely = (data[1:-1] == TLS_MAJOR) & (data[2:] <= TLS_NEWEST)
        likely &= (data[:-2] >= TLS_FIRST_TYPE) & (data[:-2] <= TLS_LAST_TYPE)
        for place in np.flatnonzero(likely).tolist():
            length = tls_record(self._peek(place, TLS_HEAD_BYTES))
            if length is not None:
                end = place + length
                if end == self._end or tls_record(self._peek(end, TLS_HEAD_BYTES)) is not None:
                    return True
        return False

    def is_whole(self, at: int, limit: int) -> bool:
        """Whether lengths lead from response to response, from a place to the end of all bytes."""
        for _ in range(_MOST_ROWS):
            head = self._peek(at, RESPONSE_HEAD_BYTES)
            if not looks_like_response(head, limit):
                return False
            at += PREFIX_LENGTH + _LENGTH.unpack_from(head)[0]
            if at == self._end:
                return True
        return False

    def _leads_on(self, at: int, is_frame: Callable[[bytes], bool], *, sure: bool) -> bool:
        """Whether a frame begins at a place, and others where it leads to.

        Where it leads out of what was seen, it does unless that is not ``sure``.
        """
        for number in range(_CHAIN):
            head = self._peek(at, REQUEST_HEAD_BYTES)
            if len(head) < SHORTEST_HEAD:
                # As far as was seen.
                return number > 1 or (number == 1 and sure)
            if not is_frame(head):
                return False
            at += PREFIX_LENGTH + _LENGTH.unpack_from(head)[0]
        return True

    def _earliest(self, at: int, is_frame: Callable[[bytes], bool], least: int) -> int:
        """Where the first of some frames begins that end where another begins: in a segment."""
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
        found = b""
        place = bisect_right(self._starts, at) - 1
        while len(found) < size and 0 <= place < len(self._starts):
            inside = at + len(found) - self._starts[place]
            if inside < 0:
                break
            part = self._whole.head(self._in_order[place], inside + size - len(found))[inside:]
            if not part:
                break
            found += part
            place += 1
        return found


def _lengths(data: NumpyArray) -> tuple[NumpyArray, NumpyArray]:
    """The places at which a length may stand that a frame can have, and these lengths."""
    if len(data) < SHORTEST_HEAD:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # A frame of 16 MiB and more is not looked for.
    first = np.flatnonzero(data[:-3] == 0)
    words = data[first[:, None] + np.arange(1, 4)].astype(np.int64)
    lengths = words[:, 0] << 16 | words[:, 1] << 8 | words[:, 2]
    likely = lengths >= PREFIX_LENGTH
    return first[likely], lengths[likely]
