"""Frames on a connection: an int32 length, followed by that number of payload bytes.

This module is for bytes that arrive in order and without gaps, as from a socket. In a capture,
bytes may be missing; in this case, `flexwire.capture.reassembly.framing` finds the frames again.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from flexwire.errors import FrameError
from flexwire.wire.segment_layout import PREFIX_LENGTH

SENT_FRAME_LIMIT: Final = 104_857_600
"""The longest frame payload that flexwire sends or receives.

A broker accepts this size by default (``socket.request.max.bytes``), and clients request less than
this in one response (``fetch.max.bytes``).
"""
DEFAULT_FRAME_LIMIT: Final = SENT_FRAME_LIMIT
"""The old name of `SENT_FRAME_LIMIT`, which works until the next release."""

_LENGTH: Final = struct.Struct(">i")
# Pieces shorter than the first size are joined, up to the second size. TLS returns at most 16 KiB
# in one read, in a block of memory that is larger than the data.
_SMALL: Final = 64 * 1024
_ENOUGH: Final = 1024 * 1024

BEGINNING_BYTES: Final = 4096
"""The number of bytes that are kept of a shortened frame: its length, its header, and the beginning
of its body.
"""


def begins_with_length(data: bytes) -> bool:
    r"""Return whether the first four bytes are the number of bytes after them, as in a frame.

    >>> begins_with_length(b"\0\0\0\2hi"), begins_with_length(b"\0\0\0\2hi!")
    (True, False)
    """
    if len(data) < PREFIX_LENGTH:
        return False
    return bool(_LENGTH.unpack_from(data)[0] == len(data) - PREFIX_LENGTH)


def to_frame(payload: bytes) -> bytes:
    r"""Return a frame: the length and the payload.

    >>> to_frame(b"hi")
    b'\x00\x00\x00\x02hi'
    """
    return _LENGTH.pack(len(payload)) + payload


class FrameGroup(NamedTuple):
    """Frames that arrived together: their bytes on the connection, and the payload of each."""

    whole: bytes
    payloads: list[bytes]


class TruncatedFrame(NamedTuple):
    """The first bytes of a frame, and the length of the whole frame.

    ``missing`` is the number of bytes that follow the first bytes.
    """

    data: bytes
    missing: int

    @property
    def payload(self) -> bytes:
        """The kept bytes of the frame's payload."""
        return self.data[PREFIX_LENGTH:]


class FrameBudget:
    """The total number of bytes of incomplete frames that all connections hold.

    A limit for each connection does not limit the sum over a thousand connections. This class does
    not enforce ``limit``: while the budget ``is_full``, the object that holds a frame must shorten
    the frame (`FrameSplitter.shorten`).
    """

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    @property
    def is_full(self) -> bool:
        """True if more bytes are held than allowed."""
        return self.held > self.limit


_NOTHING: Final = FrameGroup(b"", [])


class FrameSplitter:
    r"""Divide one direction of a connection into the payloads of its frames, as bytes arrive.

    The splitter holds at most one incomplete frame, with a payload of at most ``limit`` bytes. A
    negative length, or a length above the limit, cannot belong to a frame. In this case, the
    payloads before it are returned, `error` is set, and every later `feed` raises this error. The
    bytes that begin with that length remain in `pending`.

    If a ``room`` is given, the held bytes are counted in this budget. The caller may keep only the
    beginning of a frame that `is_too_long`: after `shorten`, pass the bytes to `skip` until that
    frame ends.

    >>> splitter = FrameSplitter()
    >>> splitter.feed(b"\0\0\0\2hi\0\0\0\3m")
    [b'hi']
    >>> splitter.pending
    b'\x00\x00\x00\x03m'
    """

    def __init__(
        self,
        limit: int = SENT_FRAME_LIMIT,
        room: FrameBudget | None = None,
        most_kept: int | None = None,
    ) -> None:
        self.limit = limit
        self.most_kept = most_kept
        """The maximum number of bytes that are kept of one frame, or None for all bytes."""
        self._room = FrameBudget(limit + PREFIX_LENGTH) if room is None else room
        self.error: FrameError | None = None
        # The pieces as they arrived. They are joined only when the frame is complete, because a
        # growing buffer would be copied each time.
        self._parts: list[bytes | bytearray] = []
        self._length = 0
        # While `pending` is shorter than this, the length of the frame is unknown.
        self._wanted = PREFIX_LENGTH
        # The number of bytes of the frame that have arrived but are not in the parts.
        self._missing = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Process bytes. Return the payloads, without lengths, of the frames that are now complete.

        Raises `FrameError` if the very first length cannot belong to a frame.
        """
        return self.cut(data).payloads

    def cut(self, data: bytes) -> FrameGroup:
        """Do the same as `feed`, but also return the frames' bytes.

        Frames that arrived in one piece are not copied.
        """
        if self.error is not None:
            # These bytes are not added to the pending bytes, because after an error, no frame
            # limits their number.
            raise self.error
        if self._parts:
            self._add(data)
            if self._length < self._wanted:
                return _NOTHING
            data = b"".join(self._parts)
        payloads = []
        start = 0
        self._wanted = PREFIX_LENGTH
        while len(data) - start >= PREFIX_LENGTH:
            (length,) = _LENGTH.unpack_from(data, start)
            if not 0 <= length <= self.limit:
                self.error = FrameError(self._refusal(length))
                break
            end = start + PREFIX_LENGTH + length
            if end > len(data):
                self._wanted = end - start
                break
            payloads.append(data[start + PREFIX_LENGTH : end])
            start = end
        self._hold(data, start)
        if self.error is not None and not payloads:
            raise self.error
        return FrameGroup(data if start == len(data) else data[:start], payloads)

    def reach(self, data: bytes, most: int) -> int:
        r"""Return how many of the next bytes are needed to complete at most ``most`` frames.

        The result is the size of ``data`` if it completes fewer frames, or if a length in it cannot
        belong to a frame. This method does not process the bytes.

        >>> splitter = FrameSplitter()
        >>> splitter.reach(b"\0\0\0\2hi\0\0\0\1m\0\0", most=1)
        6
        """
        begun = self.peek(0, PREFIX_LENGTH)
        start = -self.pending_length
        for _ in range(most):
            if start < 0:
                prefix = begun + data[: PREFIX_LENGTH - len(begun)]
            else:
                prefix = data[start : start + PREFIX_LENGTH]
            length = int.from_bytes(prefix, "big", signed=True)
            if len(prefix) < PREFIX_LENGTH or not 0 <= length <= self.limit:
                return len(data)
            start += PREFIX_LENGTH + length
            if start >= len(data):
                return len(data)
        return start

    def _hold(self, data: bytes, start: int) -> None:
        """Keep the bytes after the frames that were cut from ``data``.

        ``data`` contains all bytes so far.
        """
        if start or not self._parts:
            self.clear()
            if start < len(data):
                self._add(data[start:])

    def clear(self) -> None:
        """Drop the held bytes, and subtract them from the budget."""
        self._room.held -= self._length
        self._parts.clear()
        self._length = self._missing = 0

    @property
    def is_too_long(self) -> bool:
        """True if more bytes are held than allowed, for this frame or for all frames together."""
        if self._length <= BEGINNING_BYTES or self.error is not None:
            return False
        return self._room.is_full or (self.most_kept is not None and self._length > self.most_kept)

    @property
    def is_shortened(self) -> bool:
        """True if only the beginning of the incomplete frame is kept."""
        return self._missing > 0

    def shorten(self) -> None:
        """Keep only the beginning of the incomplete frame. Use `skip` for the remaining bytes."""
        beginning, length = self.peek(0, BEGINNING_BYTES), self._length
        self.clear()
        self._add(beginning)
        self._missing = length - len(beginning)

    def skip(self, data: bytes) -> tuple[TruncatedFrame | None, bytes]:
        """Process bytes while the frame `is_shortened`, without keeping any of them.

        Returns the frame as soon as it has ended, and the bytes after it.
        """
        left = self._wanted - self.pending_length
        if len(data) < left:
            self._missing += len(data)
            return None, b""
        over = TruncatedFrame(self.pending, self._missing + left)
        self.clear()
        self._wanted = PREFIX_LENGTH
        return over, data[left:]

    def _add(self, data: bytes) -> None:
        self._length += len(data)
        self._room.held += len(data)
        last = self._parts[-1] if self._parts else None
        if len(data) >= _SMALL:
            self._parts.append(data)
        elif isinstance(last, bytearray) and len(last) < _ENOUGH:
            # Without this, a frame that arrives byte by byte would become one object per byte.
            last += data
        else:
            self._parts.append(bytearray(data))

    @property
    def pending(self) -> bytes:
        """The kept bytes of the incomplete frame, including its length."""
        return b"".join(self._parts)

    @property
    def pending_length(self) -> int:
        """The number of bytes of the incomplete frame that have arrived, whether kept or not."""
        return self._length + self._missing

    def rest(self) -> TruncatedFrame | None:
        """Return the kept part of the incomplete frame, or None if no frame has begun."""
        return TruncatedFrame(self.pending, self._missing) if self._length else None

    def peek(self, start: int, stop: int) -> bytes:
        """Return a part of `pending`."""
        pieces = []
        for part in self._parts:
            if stop <= 0:
                break
            if start < len(part):
                pieces.append(part[max(start, 0) : stop])
            start -= len(part)
            stop -= len(part)
        return b"".join(pieces)

    def _refusal(self, length: int) -> str:
        if length < 0:
            return f"a frame cannot have {length} bytes; this is not Kafka's protocol"
        return f"a frame of {length} bytes is longer than the limit of {self.limit}"
