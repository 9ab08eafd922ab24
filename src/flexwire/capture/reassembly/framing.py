"""Cuts one direction of a connection into frames, and finds them again after damage.

A frame begins where the one before it ends, so one lost length loses all that follow. Then pieces
are held, and each is tried as the beginning of a frame, until one convinces the caller's guess.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.files.model import SAMPLE_BYTES
from flexwire.capture.reassembly.resemblance import (
    HEAD_BYTES,
    TLS_HEAD_BYTES,
    looks_like,
    tls_record,
)
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.reassembly.lent import Went
    from flexwire.capture.reassembly.streams import Piece

DEFAULT_FRAME_LIMIT = 256 * 1024 * 1024
"""The longest payload taken for a frame's; brokers take 100 MiB by default."""

SURELY_TLS = 4
"""So many pieces that begin with a record of TLS are none by chance, one in 10⁷ of random bytes."""

_LENGTH = struct.Struct(">i")


class Found(NamedTuple):
    """A frame, or bytes that are not one and why; ``size`` counts all of them on the wire.

    ``is_placed``: it is known where the frame begins, so ``payload`` begins with its header.
    ``lost`` is how many of its bytes are missing from the capture. ``first_us`` and
    ``timestamp_us`` are when the first and the last of the captured bytes passed.
    """

    first_us: int
    timestamp_us: int
    size: int
    payload: bytes
    error: str | None
    is_placed: bool = True
    lost: int = 0


class Held:
    """Pieces of a stream, one after the other without a gap, whose bytes can be looked at."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []

    @property
    def size(self) -> int:
        """How many bytes are held."""
        return self.pieces[-1].end - self.pieces[0].position if self.pieces else 0

    def peek(self, start: int, count: int) -> bytes:
        """The bytes from ``start`` on, ``count`` of them or as many as there are."""
        # To join them all at every look would take time that grows with the square of their size.
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
    """Cuts the pieces of one stream into frames.

    Every byte of the stream is in the ``size`` of exactly one `Found`. After a length that no frame
    has, or a gap in which the next length is lost, frames begin again with the first piece that
    begins one: because the capture says so, or because ``begins`` takes it for one. ``begins`` is
    given the bytes from there on, and answers None if they are too few to tell.
    """

    def __init__(
        self, begins: Callable[[Held], bool | None], *, synchronized: bool, limit: int
    ) -> None:
        self.ever_synchronized = synchronized
        self._tls_records = 0
        self._begins = begins
        self._limit = limit
        self._found: list[Found] = []
        self._reset()
        self._why: str | None = None
        self._last_length = -1
        if not synchronized:
            self._why = "the capture begins within the connection"

    def feed(self, pieces: list[Piece]) -> list[Found]:
        """Take in what comes next in the stream; give out what it completes."""
        for piece in pieces:
            self._take(piece)
        found, self._found = self._found, []
        return found

    def finish(self) -> list[Found]:
        """The connection has ended: give out what is incomplete."""
        self._decide(final=True)
        if self._why is not None:
            self._report_skipped()
        elif self._seen and self._length is None:
            self._emit(f"the connection ended after {self._seen} of the 4 bytes of a length")
        elif self._seen:
            self._emit(f"the connection ended after {self._seen} of {self._length} bytes")
        found, self._found = self._found, []
        return found

    def rest(self, pieces: list[Piece]) -> list[Found]:
        """Return what these last pieces would complete or cut; the framer goes on as before."""
        same, held = copy(self), Held()
        held.pieces = self._candidates.pieces.copy()
        vars(same).update(_buffer=self._buffer.copy(), _found=[], _candidates=held)
        return [*same.feed(pieces), *same.finish()]

    @property
    def is_within(self) -> bool:
        """Whether a part of a frame is held, and where that frame ends is known."""
        return self._length is not None

    @property
    def is_framing(self) -> bool:
        """Whether it is known where frames begin, and no byte of this one is lost."""
        return self._why is None and not self._lost

    def held(self) -> tuple[bytes, int, int]:
        """What is held of a frame that is not whole, and when it was seen, if it is framing."""
        return bytes(self._buffer), self._first_us, self._last_us

    def _reset(self) -> None:
        # Framing: the bytes of the frame so far, its prefix included, up to the first lost one.
        # Seeking: a sample of what is skipped.
        self._buffer = bytearray()
        self._seen = 0
        self._lost = 0
        self._length: int | None = None  # prefix included
        self._first_us = 0
        self._last_us = 0
        self._candidates = Held()

    @property
    def is_seeking(self) -> bool:
        """Whether no frame is known to begin, and nothing waits to be told whether one does."""
        return self._why is not None and not self._candidates.pieces

    @property
    def is_tls(self) -> bool:
        """Whether bytes without frames are so often records of TLS that nothing else is likely."""
        return self._tls_records >= SURELY_TLS

    @property
    def has_sample(self) -> bool:
        """Whether of what is passed over nothing more is kept."""
        return len(self._buffer) >= SAMPLE_BYTES

    def pass_over(self, went: Went) -> None:
        """Go on after bytes that were seen elsewhere to begin no frame; nothing of them is kept."""
        if went.size:
            self._seen += went.size
            self._first_us = min(self._first_us, went.first_us)
            self._last_us = max(self._last_us, went.last_us)

    def seek(self) -> None:
        """Go on, as a new one, where another one seeks a frame and keeps nothing more."""
        self._why, self._seen, self._buffer = "", 1, bytearray(SAMPLE_BYTES)

    def skip(self, went: Went) -> None:
        """Go on after frames that were cut elsewhere."""
        if went.frames:
            self._last_length = went.length
        self._reset()
        self._buffer += went.held
        self._seen = len(went.held)
        self._first_us, self._last_us = went.first_us, went.last_us
        if self._seen >= PREFIX_LENGTH:
            (self._last_length,) = _LENGTH.unpack_from(went.held)
            self._length = PREFIX_LENGTH + self._last_length

    def _take(self, piece: Piece) -> None:
        if self._why is not None:
            self._seek(piece)
        elif piece.lost:
            self._lose(piece)
        else:
            self._frame(piece.data, piece.timestamp_us)

    def _note_lost(self, piece: Piece) -> None:
        """Note when lost bytes passed, where a packet shows it or nothing else is known."""
        if piece.seen or not self._seen:
            self._note_time(piece.timestamp_us)

    def _note_time(self, timestamp_us: int) -> None:
        # Out of order, an early part may have been seen late.
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
        """Take the frames that lie whole in ``data`` from its start on; return where they end."""
        # Most frames do, and need no copy of their own to collect their parts.
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
            self._found.append(Found(timestamp_us, timestamp_us, size, payload, None))
            self._last_length = length
            position = stop
        return position

    def _keep(self, data: bytes, position: int, stop: int) -> None:
        if not self._lost:
            self._buffer += memoryview(data)[position:stop]

    def _start_frame(self, following: bytes) -> bool:
        (length,) = _LENGTH.unpack(self._buffer)
        # A SASL token may be empty (KIP-43), but never two running: that is a run of zeros.
        plausible = 0 <= length <= self._limit and (length or self._last_length)
        if plausible:
            self._length = PREFIX_LENGTH + length
            self._last_length = length
            return True
        self._last_length = -1
        self._why = (
            f"no frame has a length of {length}{_resemblance(bytes(self._buffer) + following)}"
        )
        return False

    def _complete(self) -> None:
        if self._lost:
            self._emit(f"{self._lost} of {self._length} bytes are missing from the capture")
        else:
            self._emit(None)

    def _lose(self, piece: Piece) -> None:
        lost = piece.lost
        self._note_lost(piece)
        if self._length is not None:
            # The length says where the next frame begins, if that is after the gap.
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

    def _seek(self, piece: Piece) -> None:
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
        """Go on with the first candidate that begins a frame; ``final``: no more bytes follow."""
        while self._candidates.pieces:
            verdict = self._begins(self._candidates)
            if verdict:
                self._resume()
                return
            if verdict is None and not final:
                return
            self._skip(self._candidates.pieces.pop(0))

    def _resume(self) -> None:
        pieces, self._candidates = self._candidates.pieces, Held()
        self._report_skipped()
        self._why = None
        self._last_length = -1
        self.ever_synchronized = True
        for piece in pieces:
            self._take(piece)

    def _skip(self, piece: Piece) -> None:
        self._note_time(piece.timestamp_us)
        if not self.is_tls:
            self._tls_records += tls_record(piece.data[:TLS_HEAD_BYTES]) is not None
        self._seen += len(piece.data)
        self._buffer += piece.data[: max(0, SAMPLE_BYTES - len(self._buffer))]

    def _report_skipped(self) -> None:
        if not self._seen:
            return
        if self._lost == self._seen:
            self._emit(f"{self._lost} bytes are missing from the capture")
            return
        missing = f", {self._lost} of them missing from the capture" if self._lost else ""
        self._emit(f"{self._seen} bytes in which no frame was found{missing}: {self._why}")

    def _emit(self, error: str | None) -> None:
        start = 0 if self._length is None else PREFIX_LENGTH
        stop = len(self._buffer) if error is None else start + SAMPLE_BYTES
        payload = bytes(memoryview(self._buffer)[start:stop])
        is_placed = self._length is not None
        times = self._first_us, self._last_us
        found = Found(*times, self._seen, payload, error, is_placed, self._lost)
        self._found.append(found)
        self._reset()


def _resemblance(head: bytes) -> str:
    found = looks_like(head)
    if found is None:
        return ""
    return f"; it looks like {found}" + (", which hides frames" if found == "TLS" else "")
