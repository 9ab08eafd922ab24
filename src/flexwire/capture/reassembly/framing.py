"""Split one direction of a connection into frames, and find frames again after damage.

A frame begins where the frame before it ends, so one lost length hides all later frames. After lost
bytes, pieces are held, and a guess by the caller decides whether a frame begins at a piece.

Frames have no marker at their start, so the caller can only guess. The guess is needed only where a
capture begins within a connection or lacks the length of a frame, and it is made only for bytes at
the start of a segment. The guess can be wrong in these ways:

- A frame that begins in the middle of a segment is not found. The next frame that begins with a
  segment is found.
- Other bytes are mistaken for a request if they contain its api key, version and client id by
  chance (about one segment of random bytes in 10¹¹). They are mistaken for an expected response if
  they begin with a length and the expected correlation id (one in 10¹⁰ for each expected response).
  They are mistaken for another response if a second response follows at the place that their length
  indicates (one in 10¹²). Bytes that are not random, especially arrays of small integers, are
  mistaken for frames more often. After such a mistake, the frames up to the end of the invalid
  length are lost, and bytes that do not form a frame are returned instead.
- A response to a request sent before the capture is not found if the response is longer than 16
  MiB, if the capture ends within it, or if the client does not increase its correlation ids from
  request to request.

The module also contains the messages about bytes that cannot be decoded as Kafka.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from copy import copy
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.files.packets import SAMPLE_BYTES
from flexwire.protocol.apis import is_released
from flexwire.protocol.headers import request_header_version
from flexwire.schema.catalog import per_catalog
from flexwire.wire.segment_layout import PREFIX_LENGTH, REQUEST_HEAD, RESPONSE_HEAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.reassembly.streams import SideResult, StreamPiece


HEAD_BYTES = 32
"""The number of bytes at the start of each direction that are examined."""

_HTTP_METHODS = b"GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE"
# The first bytes of a stream in each protocol, sent by either end (RFC 8446, 9110, 9113, 4253,
# 5321; the manuals of PostgreSQL, MySQL, MongoDB, ZooKeeper and AMQP). The first match is reported.
_BEGINNINGS = [
    ("TLS", rb"[\x14-\x17]\x03[\x00-\x04]"),
    ("HTTP", rb"(?:%s) |HTTP/[12]|PRI \* HTTP/2" % _HTTP_METHODS),
    ("SSH", rb"SSH-[12]"),
    ("AMQP", rb"AMQP"),
    ("SMTP or FTP", rb"220[ -]|EHLO |HELO "),
    ("Redis", rb"\*\d+\r\n\$\d"),
    # A startup packet of protocol 3, or a request for TLS, for GSSAPI, or for cancellation.
    ("PostgreSQL", rb"\x00\x00..(?:\x00\x03\x00[\x00-\x02][a-z_]|\x04\xd2\x16[\x2e-\x30])"),
    ("MySQL", rb"..\x00\x00\x0a\d+\.\d+\.\d"),
    # This message's header ends with the number of OP_MSG or OP_QUERY.
    ("MongoDB", rb"...\x00.{8}(?:\xdd\x07|\xd4\x07)\x00\x00"),
    # A session request: version 0, zxid, timeout, session id, and a 16-byte password.
    ("ZooKeeper", rb"\x00\x00\x00[\x2c\x2d]\x00{4}.{8}\x00"),
    ("zeros", rb"\x00{8}"),
]
# A TLS record: its type, its version, and the length of its content (RFC 8446, section 5).
_TLS_RECORD = re.compile(rb"[\x14-\x17]\x03[\x00-\x04](..)", re.DOTALL)
TLS_HEAD_BYTES, TLS_FIRST_TYPE, TLS_LAST_TYPE, TLS_MAJOR, TLS_NEWEST = 5, 0x14, 0x17, 3, 4
_LONGEST_TLS = (1 << 14) + 2048
_PATTERNS = [(name, re.compile(pattern, re.DOTALL)) for name, pattern in _BEGINNINGS]
_SHORTEST_TEXT = 8


def looks_like(*heads: bytes) -> str | None:
    """Return the protocol of the first byte string that can be recognized.

    >>> looks_like(b"", bytes.fromhex("160303007a"))
    'TLS'
    >>> looks_like(bytes.fromhex("00000017001200030000")) is None
    True
    """
    for name, pattern in _PATTERNS:
        if any(pattern.match(head) for head in heads):
            return name
    return "text" if any(map(_is_text, heads)) else None


def tls_record_length(head: bytes) -> int | None:
    """Return the length of the TLS record that begins with these bytes, including its header.

    >>> tls_record_length(bytes.fromhex("1703030010"))
    21
    """
    match = _TLS_RECORD.match(head)
    length = 0 if match is None else int.from_bytes(match[1])
    return TLS_HEAD_BYTES + length if 0 < length <= _LONGEST_TLS else None


def _is_text(head: bytes) -> bool:
    line = head.rstrip(b"\r\n\t")
    return len(line) >= _SHORTEST_TEXT and all(
        byte in b"\t\r\n" or ord(" ") <= byte <= ord("~") for byte in line
    )


# The length, the api key, the api version and the correlation id. Except in header version 0, a
# client id follows.
_HEAD = struct.Struct(">ihhi")
_CLIENT_ID_LENGTH = struct.Struct(">h")
_RESPONSE_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")

SHORTEST_HEAD = REQUEST_HEAD
"""The number of bytes in a request up to the end of its correlation id, including the length
prefix.
"""

RESPONSE_HEAD_BYTES = RESPONSE_HEAD
"""The number of bytes in a response that contain its length and correlation id."""

_SHORTEST_RESPONSE = RESPONSE_HEAD - PREFIX_LENGTH
LIKELY_LENGTH = 16 * 1024 * 1024
"""The largest accepted length of a response to an unknown request. The bytes of such a response
have to be held.
"""

# A Java client numbers its requests to all brokers with a single counter.
_IDS_APART = 100
_CLIENT_ID_SAMPLE = 48

REQUEST_HEAD_BYTES = _HEAD.size + _CLIENT_ID_LENGTH.size + _CLIENT_ID_SAMPLE
"""This many bytes are enough to decide whether a request begins with them."""


def looks_like_request(head: bytes, limit: int) -> bool | None:
    """Return whether a frame that begins with ``head`` is a request of a released version.

    ``head`` begins with the length prefix. None means that there are too few bytes to decide.
    `REQUEST_HEAD_BYTES` are always enough.
    """
    if len(head) < _HEAD.size:
        return None
    length, api_key, api_version, correlation_id = _HEAD.unpack_from(head)
    rest = length + PREFIX_LENGTH - _HEAD.size
    if not 0 <= rest <= limit or correlation_id < 0 or not is_released(api_key, api_version):
        return False
    return _client_id_follows(head, rest) if _has_client_id(api_key, api_version) else True


@per_catalog
@lru_cache(maxsize=4096)
def _has_client_id(api_key: int, api_version: int) -> bool:
    return request_header_version(api_key, api_version) > 0


def _client_id_follows(head: bytes, rest: int) -> bool | None:
    start = _HEAD.size + _CLIENT_ID_LENGTH.size
    if len(head) < start:
        return None
    (length,) = _CLIENT_ID_LENGTH.unpack_from(head, _HEAD.size)
    if not -1 <= length <= rest - _CLIENT_ID_LENGTH.size:
        return False
    sample = max(0, min(length, _CLIENT_ID_SAMPLE))
    if len(head) < start + sample:
        return None
    # A client id is text, so control characters indicate that this is not one.
    return min(head[start : start + sample], default=ord(" ")) >= ord(" ")


def looks_like_response(head: bytes, limit: int) -> bool | None:
    """Return whether ``head`` begins with the length and correlation id of a response.

    None means that there are too few bytes to decide. `RESPONSE_HEAD_BYTES` are always enough. Many
    other bytes also match, so more evidence is needed: a request that expects the response, or the
    bytes that follow.
    """
    if len(head) < _RESPONSE_HEAD.size:
        return None
    length, correlation_id = _RESPONSE_HEAD.unpack_from(head)
    return bool(_SHORTEST_RESPONSE <= length <= limit and correlation_id >= 0)


def looks_like_responses(head: bytes, limit: int) -> bool | None:
    """Return whether each length leads to another response until ``head`` ends.

    None means that there are too few bytes to decide.
    """
    if len(head) < _RESPONSE_HEAD.size:
        return None
    position = 0
    while position + _RESPONSE_HEAD.size <= len(head):
        if not looks_like_response(head[position : position + _RESPONSE_HEAD.size], limit):
            return False
        position += PREFIX_LENGTH + _LENGTH.unpack_from(head, position)[0]
    return True


def leads_to_a_response(peek: Callable[[int, int], bytes], size: int) -> bool | None:
    """Return whether ``size`` bytes begin with a response, judging by the bytes after its end.

    The next response must begin there, with a slightly higher correlation id, because clients
    increase the id with each request. If there is no next response, the bytes must end exactly
    there, because segments often end with a frame. None means that there are too few bytes to
    decide. ``peek(start, count)`` returns some of the bytes.
    """
    length, correlation_id = _RESPONSE_HEAD.unpack(peek(0, _RESPONSE_HEAD.size))
    if not _SHORTEST_RESPONSE <= length <= LIKELY_LENGTH:
        return False
    end = PREFIX_LENGTH + length
    if size == end:
        return True
    following = peek(end, _RESPONSE_HEAD.size) if end < size else b""
    if len(following) < _RESPONSE_HEAD.size:
        return None
    next_length, next_id = _RESPONSE_HEAD.unpack(following)
    is_next = 0 < next_id - correlation_id <= _IDS_APART
    return bool(is_next and _SHORTEST_RESPONSE <= next_length <= LIKELY_LENGTH)


def possible_correlation_ids(head: bytes) -> tuple[int, int]:
    """Return the correlation ids in ``head``, read as a request and as a response.

    ``head`` must contain at least `SHORTEST_HEAD` bytes.
    """
    return _HEAD.unpack_from(head)[3], _RESPONSE_HEAD.unpack_from(head)[1]


CAPTURED_FRAME_LIMIT = 256 * 1024 * 1024
"""The length of the longest payload that is accepted for a frame in a capture. By default, brokers
accept payloads of up to 100 MiB.
"""
DEFAULT_FRAME_LIMIT = CAPTURED_FRAME_LIMIT
"""The old name of `CAPTURED_FRAME_LIMIT`, until the next release."""

SURELY_TLS = 4
"""In one of 10⁷ cases, this many pieces of random bytes all begin like a TLS record."""


class FramedBytes(NamedTuple):
    """A frame, or other bytes with the reason. ``size`` is the number of these bytes on the wire.

    If ``is_placed`` is true, the start of the frame is known, and ``payload`` begins with its
    header. ``lost`` is the number of bytes of the frame that are missing from the capture.
    ``first_us`` and ``timestamp_us`` are the times of the first and the last captured byte.
    """

    first_us: int
    timestamp_us: int
    size: int
    payload: bytes
    error: str | None
    is_placed: bool = True
    lost: int = 0


class PieceBuffer:
    """Consecutive pieces of a stream, without gaps, whose bytes can be read together."""

    def __init__(self) -> None:
        self.pieces: list[StreamPiece] = []

    @property
    def size(self) -> int:
        """The number of held bytes."""
        return self.pieces[-1].end - self.pieces[0].position if self.pieces else 0

    def peek(self, start: int, count: int) -> bytes:
        """Return ``count`` bytes that begin at ``start``, or fewer if there are no more."""
        # If all pieces were joined at every read, the time would grow quadratically with their
        # size.
        if not self.pieces:
            return b""
        position = self.pieces[0].position + start
        index = bisect_right(self.pieces, position, key=attrgetter("position")) - 1
        parts = []
        while count > 0 and index < len(self.pieces):
            piece = self.pieces[index]
            part = piece.data[position - piece.position :][:count]
            parts.append(part)
            count -= len(part)
            position += len(part)
            index += 1
        return b"".join(parts)


class Framer:
    """Split the pieces of one stream into frames.

    Every byte of the stream counts in the ``size`` of exactly one `FramedBytes`. After an invalid
    length, or a gap that hides the next length, frames resume at the first piece that begins a
    frame. Such a piece is marked in the capture, or ``begins`` returns true for it. ``begins``
    receives the bytes that start with the piece, and returns None if there are too few bytes to
    decide.
    """

    def __init__(
        self, begins: Callable[[PieceBuffer], bool | None], *, synchronized: bool, limit: int
    ) -> None:
        self.ever_synchronized = synchronized
        self._tls_records = 0
        self._begins = begins
        self._limit = limit
        self._found: list[FramedBytes] = []
        self._reset()
        self._why: str | None = None
        self._last_length = -1
        if not synchronized:
            self._why = "the capture starts in the middle of the connection"

    def feed(self, pieces: list[StreamPiece]) -> list[FramedBytes]:
        """Add the next pieces of the stream. Return the frames that these pieces complete."""
        for piece in pieces:
            self._take(piece)
        framed, self._found = self._found, []
        return framed

    def finish(self) -> list[FramedBytes]:
        """End the connection and return the incomplete frames."""
        self._decide(final=True)
        if self._why is not None:
            self._report_skipped()
        elif self._seen and self._length is None:
            self._emit(f"the connection ended after {self._seen} of the 4 bytes of a frame length")
        elif self._seen:
            self._emit(f"the connection ended after {self._seen} of a frame's {self._length} bytes")
        framed, self._found = self._found, []
        return framed

    def rest(self, pieces: list[StreamPiece]) -> list[FramedBytes]:
        """Return the frames that these last pieces would complete or cut, but change nothing."""
        same, held = copy(self), PieceBuffer()
        held.pieces = self._candidates.pieces.copy()
        vars(same).update(_buffer=self._buffer.copy(), _found=[], _candidates=held)
        return [*same.feed(pieces), *same.finish()]

    @property
    def is_within(self) -> bool:
        """True if the held bytes belong to a frame whose end is known."""
        return self._length is not None

    @property
    def is_framing(self) -> bool:
        """True if it is known where frames begin and no byte of the current frame is lost."""
        return self._why is None and not self._lost

    def held(self) -> tuple[bytes, int, int]:
        """Return the held bytes of an incomplete frame, and the frame's first and last time."""
        return bytes(self._buffer), self._first_us, self._last_us

    def _reset(self) -> None:
        # If it is known where frames begin: the bytes of the current frame with its prefix, up to
        # the first lost byte. During a search for a frame: a sample of the skipped bytes.
        self._buffer = bytearray()
        self._seen = 0
        self._lost = 0
        self._length: int | None = None  # The length includes the length prefix.
        self._first_us = 0
        self._last_us = 0
        self._candidates = PieceBuffer()

    @property
    def is_seeking(self) -> bool:
        """True if it is unknown where frames begin, and no bytes are held to find out."""
        return self._why is not None and not self._candidates.pieces

    @property
    def is_tls(self) -> bool:
        """True if bytes without frames begin with so many TLS records that they must be TLS."""
        return self._tls_records >= SURELY_TLS

    @property
    def has_sample(self) -> bool:
        """True if the sample of skipped bytes is large enough."""
        return len(self._buffer) >= SAMPLE_BYTES

    def pass_over(self, went: SideResult) -> None:
        """Continue after bytes in which another object did not find the start of a frame.

        No bytes are kept.
        """
        if went.size:
            self._seen += went.size
            self._first_us = min(self._first_us, went.first_us)
            self._last_us = max(self._last_us, went.last_us)

    def seek(self) -> None:
        """Continue another framer's search for a frame in this new framer, without held bytes."""
        self._why, self._seen, self._buffer = "", 1, bytearray(SAMPLE_BYTES)

    def skip(self, went: SideResult) -> None:
        """Continue after frames that another object has cut."""
        if went.frames:
            self._last_length = went.length
        self._reset()
        self._buffer += went.held
        self._seen = len(went.held)
        self._first_us, self._last_us = went.first_us, went.last_us
        if self._seen >= PREFIX_LENGTH:
            (self._last_length,) = _LENGTH.unpack_from(went.held)
            self._length = PREFIX_LENGTH + self._last_length

    def _take(self, piece: StreamPiece) -> None:
        if self._why is not None:
            self._seek(piece)
        elif piece.lost:
            self._lose(piece)
        else:
            self._frame(piece.data, piece.timestamp_us)

    def _note_lost(self, piece: StreamPiece) -> None:
        """Record the time of lost bytes, if a packet shows the time or no other time is known."""
        if piece.seen or not self._seen:
            self._note_time(piece.timestamp_us)

    def _note_time(self, timestamp_us: int) -> None:
        # If bytes arrive out of order, an early part of the frame may arrive late.
        if self._seen:
            self._first_us = min(self._first_us, timestamp_us)
            self._last_us = max(self._last_us, timestamp_us)
        else:
            self._first_us = self._last_us = timestamp_us

    def _frame(self, data: bytes, timestamp_us: int) -> None:
        position = self._whole_frames(data, timestamp_us)
        while position < len(data):
            self._note_time(timestamp_us)
            if self._length is None:
                part = data[position : position + PREFIX_LENGTH - self._seen]
                self._buffer += part
                self._seen += len(part)
                position += len(part)
                following = data[position : position + HEAD_BYTES]
                if self._seen == PREFIX_LENGTH and not self._start_frame(following):
                    self._seen += len(data) - position
                    self._buffer += data[position : position + SAMPLE_BYTES]
                    return
            else:
                stop = min(len(data), position + self._length - self._seen)
                self._keep(data, position, stop)
                self._seen += stop - position
                position = stop
            if self._seen == self._length:
                self._complete()

    def _whole_frames(self, data: bytes, timestamp_us: int) -> int:
        """Return the complete frames at the start of ``data``, and the place where they end."""
        # Most frames are complete, so no copy is needed to join their parts.
        position = 0
        if self._seen:
            return position
        while position + PREFIX_LENGTH < len(data):
            (length,) = _LENGTH.unpack_from(data, position)
            stop = position + PREFIX_LENGTH + length
            if not 0 < length <= self._limit or stop > len(data):
                break
            payload = data[position + PREFIX_LENGTH : stop]
            size = PREFIX_LENGTH + length
            self._found.append(FramedBytes(timestamp_us, timestamp_us, size, payload, None))
            self._last_length = length
            position = stop
        return position

    def _keep(self, data: bytes, position: int, stop: int) -> None:
        if not self._lost:
            self._buffer += memoryview(data)[position:stop]

    def _start_frame(self, following: bytes) -> bool:
        (length,) = _LENGTH.unpack(self._buffer)
        # A SASL token may be empty (KIP-43), but two empty tokens in a row are a run of zeros.
        plausible = 0 <= length <= self._limit and (length or self._last_length)
        if plausible:
            self._length = PREFIX_LENGTH + length
            self._last_length = length
            return True
        self._last_length = -1
        self._why = (
            f"{length} is not a valid frame length{_resemblance(bytes(self._buffer) + following)}"
        )
        return False

    def _complete(self) -> None:
        if self._lost:
            self._emit(f"{self._lost} of {self._length} bytes are missing from the capture")
        else:
            self._emit(None)

    def _lose(self, piece: StreamPiece) -> None:
        lost = piece.lost
        self._note_lost(piece)
        if self._length is not None:
            # If the next frame begins after the gap, the length shows where.
            inside = min(lost, self._length - self._seen)
            self._lost += inside
            self._seen += inside
            lost -= inside
            if self._seen == self._length:
                self._complete()
            if not lost:
                return
            self._note_lost(piece)
        self._seen += lost
        self._lost += lost
        self._why = "the length of a frame is missing from the capture"

    def _seek(self, piece: StreamPiece) -> None:
        if not piece.lost and not piece.begins_frame:
            self._candidates.pieces.append(piece)
            self._decide(final=False)
            return
        self._decide(final=True)
        if self._why is None:
            self._take(piece)
            return
        if piece.begins_frame:
            self._candidates.pieces.append(piece)
            self._resume()
            return
        self._note_lost(piece)
        self._seen += piece.lost
        self._lost += piece.lost

    def _decide(self, *, final: bool) -> None:
        """Continue with the first candidate that begins a frame.

        ``final`` means that no more bytes follow.
        """
        while self._candidates.pieces:
            verdict = self._begins(self._candidates)
            if verdict:
                self._resume()
                return
            if verdict is None and not final:
                return
            self._skip(self._candidates.pieces.pop(0))

    def _resume(self) -> None:
        pieces, self._candidates = self._candidates.pieces, PieceBuffer()
        self._report_skipped()
        self._why = None
        self._last_length = -1
        self.ever_synchronized = True
        for piece in pieces:
            self._take(piece)

    def _skip(self, piece: StreamPiece) -> None:
        self._note_time(piece.timestamp_us)
        if not self.is_tls:
            self._tls_records += tls_record_length(piece.data[:TLS_HEAD_BYTES]) is not None
        self._seen += len(piece.data)
        self._buffer += piece.data[: max(0, SAMPLE_BYTES - len(self._buffer))]

    def _report_skipped(self) -> None:
        if not self._seen:
            return
        if self._lost == self._seen:
            self._emit(f"{self._lost} bytes are missing from the capture")
            return
        missing = (
            f" ({self._lost} of these bytes are missing from the capture)" if self._lost else ""
        )
        self._emit(f"no frame was found in {self._seen} bytes{missing}: {self._why}")

    def _emit(self, error: str | None) -> None:
        start = 0 if self._length is None else PREFIX_LENGTH
        stop = len(self._buffer) if error is None else start + SAMPLE_BYTES
        payload = bytes(memoryview(self._buffer)[start:stop])
        is_placed = self._length is not None
        times = self._first_us, self._last_us
        framed = FramedBytes(*times, self._seen, payload, error, is_placed, self._lost)
        self._found.append(framed)
        self._reset()


def _resemblance(head: bytes) -> str:
    protocol = looks_like(head)
    if protocol is None:
        return ""
    return f"; the data looks like {protocol}" + (
        ", which hides frames" if protocol == "TLS" else ""
    )
