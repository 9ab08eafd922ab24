"""Remove bytes of unfinished frames that may be credentials from a saved state.

An unfinished frame is kept if its header names a message without credentials, or if its connection
certainly does not authenticate. Otherwise the bytes after its header count as missing from the
capture, and the frame's row has an error. The same applies to bytes that follow a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from flexwire.capture.reassembly.saved import PieceRecord
from flexwire.protocol import carries_credentials
from flexwire.protocol.headers import parse_correlation_id, read_released, response_name
from flexwire.protocol.sasl import HANDSHAKES, is_ticket
from flexwire.wire.segment_layout import CORRELATION_ID_SIZE, PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.capture.pairing.saved import PendingRecord
    from flexwire.capture.reassembly.saved import (
        AssemblerRecord,
        ConnectionRecord,
        DirectionRecord,
        FrameRecord,
        FramerRecord,
        SegmentRecord,
    )

MOST_HELD_BYTES: Final = 64 << 20
"""The largest number of bytes of unfinished frames in a state. The largest frames are left out
first.
"""
_WITHHELD: Final = "the bytes of this frame were withheld between two analyses"


def withhold(
    assemblers: Sequence[AssemblerRecord],
    pending: Iterable[PendingRecord],
    *,
    shows: bool,
    most: int | None = None,
) -> list[AssemblerRecord]:
    """Return records of connections, of limited size and without bytes that may be credentials.

    With ``shows``, credentials are kept and only the size is limited, to ``most`` bytes or, if
    ``most`` is None, to `MOST_HELD_BYTES`.
    """
    most = MOST_HELD_BYTES if most is None else most
    known = {one.name: one for one in pending}
    sizes = sorted(
        ((_size(one), record, place) for record, assembler in enumerate(assemblers)
         for place, one in enumerate(assembler.open)),
        reverse=True,
    )  # fmt: skip
    total, too_large = sum(size for size, *_ in sizes), set()
    for size, record, place in sizes:
        if total <= most:
            break
        too_large.add((record, place))
        total -= size
    return [
        replace(
            assembler,
            open=[
                _Withholder(
                    known.get(one.name), shows=shows, is_too_large=(record, place) in too_large
                ).apply(one)
                for place, one in enumerate(assembler.open)
            ],
        )
        for record, assembler in enumerate(assemblers)
    ]


def is_complete(before: Sequence[AssemblerRecord], after: Sequence[AssemblerRecord]) -> bool:
    """Return whether records after `withhold` still contain all bytes on which rows can depend.

    Rows show the sample of skipped bytes only if credentials are shown.
    """
    return all(
        one == _with_samples(kept, one)
        for assembler, others in zip(before, after, strict=True)
        for one, kept in zip(assembler.open, others.open, strict=True)
    )


def _with_samples(kept: ConnectionRecord, of: ConnectionRecord) -> ConnectionRecord:
    """Return a record with the samples of another record."""
    pairs = [(kept.request, of.request), (kept.response, of.response)]
    request, response = (
        one
        if one.framer is None or one.framer.why is None or other.framer is None
        else replace(one, framer=replace(one.framer, buffer=other.framer.buffer))
        for one, other in pairs
    )
    return replace(kept, request=request, response=response)


def held_bytes(assemblers: Iterable[AssemblerRecord]) -> int:
    """Return how many bytes of unfinished frames the records of connections contain."""
    return sum(_size(connection) for assembler in assemblers for connection in assembler.open)


def _size(connection: ConnectionRecord) -> int:
    return sum(map(len, _payloads(connection)))


def _payloads(connection: ConnectionRecord) -> Iterator[bytes]:
    for direction in (connection.request, connection.response):
        yield from (piece.data for piece in direction.stream.pending)
        if direction.framer is not None:
            # Otherwise the bytes are a sample of the bytes that were skipped.
            if direction.framer.why is None:
                yield direction.framer.buffer
            yield from (piece.data for piece in direction.framer.candidates)
    yield from (one.payload for one in (*connection.held, *(connection.beginning or ())))
    yield from (frame.payload for frame in connection.held_back)


class _Withholder:
    """Remove bytes from the record of one connection."""

    def __init__(self, known: PendingRecord | None, *, shows: bool, is_too_large: bool) -> None:
        self._asked = {} if known is None else {
            one.correlation_id: (one.api_key, one.api_version)
            for one in known.asked
            if not one.is_token
        }  # fmt: skip
        is_ruled_out = known is not None and known.is_open and not known.is_guarded
        self._is_shown = shows and not is_too_large
        self._is_too_large = is_too_large
        # Bytes that were not decoded may remain in the record.
        self._is_open = (shows or is_ruled_out) and not is_too_large

    def apply(self, connection: ConnectionRecord) -> ConnectionRecord:
        return replace(
            connection,
            request=self._direction(connection.request, is_request=True),
            response=self._direction(connection.response, is_request=False),
            held=self._segments(connection.held),
            beginning=None
            if connection.beginning is None
            else self._segments(connection.beginning),
            held_back=[self._frame(frame) for frame in connection.held_back],
        )

    def _direction(self, direction: DirectionRecord, *, is_request: bool) -> DirectionRecord:
        framer, stream = direction.framer, direction.stream
        if framer is not None and not self._is_shown:
            framer = self._framer(framer, is_request=is_request)
        if not self._is_open:
            stream = replace(stream, pending=[_lost(piece) for piece in stream.pending])
        return replace(direction, framer=framer, stream=stream)

    def _framer(self, framer: FramerRecord, *, is_request: bool) -> FramerRecord:
        if framer.why is not None:
            if self._is_open:
                return framer
            skipped = sum(len(piece.data) + piece.lost for piece in framer.candidates)
            return replace(
                framer,
                buffer=bytes(len(framer.buffer)),
                candidates=[],
                seen=framer.seen + skipped,
            )
        payload = framer.buffer[PREFIX_LENGTH:]
        if not payload:
            return framer
        kept = self._kept_request(payload) if is_request else self._kept_response(payload)
        if kept >= len(payload):
            return framer
        buffer = framer.buffer[: PREFIX_LENGTH + kept]
        # The bytes that were lost earlier come before the bytes that are left out now.
        return replace(framer, buffer=buffer, lost=framer.seen - len(buffer))

    def _kept_request(self, payload: bytes) -> int:
        """Return how many bytes of an unfinished request are kept."""
        request = read_released(payload)
        if request is None:
            return len(payload) if self._is_open else 0
        is_kept = not _is_secret(request.message_name) and not self._is_too_large
        return len(payload) if is_kept else request.body_offset

    def _kept_response(self, payload: bytes) -> int:
        if len(payload) < CORRELATION_ID_SIZE:
            return len(payload)
        asked = self._asked.get(parse_correlation_id(payload))
        if asked is None:
            return len(payload) if self._is_open else 0
        is_kept = not carries_credentials(response_name(*asked)) and not self._is_too_large
        return len(payload) if is_kept else CORRELATION_ID_SIZE

    def _segments(self, segments: list[SegmentRecord]) -> list[SegmentRecord]:
        """Return a connection's first segments, which show whether it begins with requests."""
        payloads = [one.payload for one in segments if one.payload]
        requests = [read_released(payload[PREFIX_LENGTH:]) for payload in payloads]
        names = [request.message_name for request in requests if request is not None]
        is_plain = bool(names) and not any(map(_is_secret, names))
        is_plain &= not any(is_ticket(payload[PREFIX_LENGTH:]) for payload in payloads)
        if self._is_shown or (is_plain and not self._is_too_large):
            return segments
        return [
            replace(one, payload=b"", missing=one.missing + len(one.payload)) for one in segments
        ]

    def _frame(self, frame: FrameRecord) -> FrameRecord:
        if self._is_shown or self._kept_response(frame.payload) >= len(frame.payload):
            return frame
        return replace(
            frame, payload=frame.payload[:CORRELATION_ID_SIZE], error=frame.error or _WITHHELD
        )


def _lost(piece: PieceRecord) -> PieceRecord:
    lost = piece.lost + len(piece.data)
    return PieceRecord(piece.position, b"", lost, piece.timestamp_us, False, True)


def _is_secret(message: str) -> bool:
    return message == HANDSHAKES or carries_credentials(message)
