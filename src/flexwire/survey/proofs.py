"""Whether a connection stood where a piece of its capture supposed, and what follows if it did.

What kernels make of a lent connection depends on how both ends stand, and on the segments. Only
sequence numbers, and what is held of frames, decide what they take. So if these were as supposed,
the same became of the connection as in the piece. Of a frame that crosses
into the piece, its first bytes are held, and the piece has its tail: it has to be whole exactly
where the piece supposed that the next one begins. Where no frame is known to begin, bytes are
passed over that surely begin none, whatever was before them.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.reassembly.course import NOTED_FRAMES
from flexwire.kernels.capture.framing_layout import FRAMES
from flexwire.survey.supposed import HEAD_BYTES, MARK, MARK_ID
from flexwire.wire.limits import INT64_MIN
from flexwire.wire.segment_layout import CORRELATION_ID_IN_REQUEST, PREFIX_LENGTH

if TYPE_CHECKING:
    from flexwire.capture.reassembly.streams import Lent, Standing, Taken, Went
    from flexwire.survey.supposed import Run

_NUMBER = struct.Struct(">i")

Payloads = tuple[bytes | None, bytes | None]
"""Of requests and of responses the first frame's, if there is one."""


class UnprovenError(Exception):
    """The whole has to be surveyed in order: what was found out of a piece is of no use."""


class OverlapError(UnprovenError):
    """Files overlap in time and show the same connections, so they have to be merged."""


class Crossed(NamedTuple):
    """A frame that crossed into the piece: its payload, and when what was held was last seen."""

    payload: bytes
    last_us: int


class Proof(NamedTuple):
    """What truly became of a connection; ``indexes`` are to be added to those of its frames."""

    connection: str
    taken: Taken
    indexes: tuple[int, int]
    crossed: tuple[Crossed | None, Crossed | None]


def prove(lent: Lent, run: Run, payloads: Payloads, limit: int) -> Proof | None:
    """Say what became of a connection that stands as ``lent``; None if it is not as supposed."""
    said, taken = run.lent, run.taken
    request = _End(lent.request, said.request, taken.request, limit)
    response = _End(lent.response, said.response, taken.response, limit)
    ends = (request, response)
    if lent.client != said.client or not all(one.goes_on() for one in ends):
        return None
    for one, is_crossing, payload in zip(ends, run.is_crossing, payloads, strict=True):
        if one.seeks:
            continue
        if not (one.crosses(payload) if is_crossing else one.is_same()):
            return None
    noted = _noted(run, request.crossed, response.crossed)
    if noted is None:
        return None
    return Proof(
        lent.connection,
        replace(taken, noted=noted, request=request.went, response=response.went),
        (request.index, response.index),
        (request.crossed, response.crossed),
    )


class _End:
    """One end: how it truly stood, how it was said to, and how far it has come since."""

    def __init__(self, true: Standing, said: Standing, went: Went, limit: int) -> None:
        self._true, self._said, self._limit = true, said, limit
        self.went = went
        self.index = true.next_index - said.next_index
        self.crossed: Crossed | None = None

    @property
    def seeks(self) -> bool:
        """Whether no frame is known to begin in it."""
        return self._said.seeks != FRAMES

    def goes_on(self) -> bool:
        """Whether its bytes are those that follow."""
        true, said, went = self._true, self._said, self.went
        if true.sequence != said.sequence or true.seeks != said.seeks:
            return False
        return went.size <= true.room and not (went.repeated and true.before < said.before)

    def is_same(self) -> bool:
        """Whether what is held of a frame is what was said."""
        true, said = self._true, self._said
        return true.held == said.held and (
            not true.held or (true.first_us, true.last_us) == (said.first_us, said.last_us)
        )

    def crosses(self, payload: bytes | None) -> bool:
        """Whether the frame that is held goes on as was said; ``payload`` if it became whole."""
        true, went = self._true, self.went
        known = self._said.held[HEAD_BYTES:]
        tail = went.held[HEAD_BYTES:] if payload is None else payload[len(MARK) :]
        if not (true.held.endswith(known) and tail.startswith(known)):
            return False
        following = tail[len(known) :]
        frame = true.held + following
        if len(frame) < PREFIX_LENGTH:
            length = None
        else:
            (length,) = _NUMBER.unpack_from(frame)
            if not 0 < length <= self._limit:
                return False
        if payload is None:
            if length is not None and length + PREFIX_LENGTH <= len(frame):
                return False
            self._grow(frame, following)
            return True
        if length is None or length + PREFIX_LENGTH != len(frame) or not following:
            return False
        # In the piece it had its own length, and a mark.
        sizes = went.sizes - len(payload) - PREFIX_LENGTH + len(frame)
        last = length if went.frames == 1 else went.length
        self.went = went._replace(sizes=sizes, length=last)
        self.crossed = Crossed(frame[PREFIX_LENGTH:], true.last_us if true.held else INT64_MIN)
        return True

    def _grow(self, frame: bytes, following: bytes) -> None:
        true, went = self._true, self.went
        first_us, last_us = went.first_us, went.last_us
        if true.held:
            first_us, last_us = min(true.first_us, first_us), max(true.last_us, last_us)
        elif not following:
            first_us, last_us = true.first_us, true.last_us
        self.went = went._replace(held=frame, first_us=first_us, last_us=last_us)


def _noted(
    run: Run, request: Crossed | None, response: Crossed | None
) -> list[tuple[bool, int]] | None:
    """The correlation ids noted, with those of frames that crossed; None where one is not sure."""
    noted = list(run.taken.noted)
    for is_request, crossed in ((True, request), (False, response)):
        places = [place for place, one in enumerate(noted) if one == (is_request, MARK_ID)]
        if crossed is None:
            continue
        if not places and run.frames > NOTED_FRAMES:
            # Others came after it.
            continue
        if len(places) != 1 or run.frames > NOTED_FRAMES:
            return None
        noted[places[0] : places[0] + 1] = [
            (is_request, one) for one in correlation_ids(crossed.payload, is_request=is_request)
        ]
    return noted


def correlation_ids(payload: bytes, *, is_request: bool) -> list[int]:
    """The correlation id of a frame; none where it ends before."""
    start = CORRELATION_ID_IN_REQUEST if is_request else 0
    if len(payload) < start + _NUMBER.size:
        return []
    return [_NUMBER.unpack_from(payload, start)[0]]
