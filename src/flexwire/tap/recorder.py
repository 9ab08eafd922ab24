"""Write one connection to the capture, without credentials.

Credentials are left out of the capture, and frames that cannot be written are counted.

`flexwire.protocol.credentials` determines what counts as a credential, also for tables and the
report. A body that may contain a credential but cannot be decoded is replaced completely, as long
as its connection may be authenticating. A body with more than `flexwire.tap.limits.MOST_DECODED`
bytes is also replaced completely.
"""

from __future__ import annotations

import logging
import operator
import secrets
import struct
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Final

from flexwire.codec import message
from flexwire.errors import CaptureError, CodecError, FrameError, UnknownMessageError
from flexwire.protocol import is_believable, parse_response
from flexwire.protocol.apis import is_released
from flexwire.protocol.credentials import (
    carries_credentials,
    hides_credentials,
    make_filler,
    may_be_quoted,
    may_hide_credentials,
    withhold,
)
from flexwire.protocol.frames import to_frame
from flexwire.tap.limits import FEWEST_IN_FLIGHT, MOST_DECODED, beginning
from flexwire.tap.log_limit import LogLimiter
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.files.packets import Direction
    from flexwire.capture.files.pcapng import TappedConnection
    from flexwire.protocol.conversation import Turn
    from flexwire.protocol.frames import FrameGroup, TruncatedFrame
    from flexwire.tap.frame_filter import FrameFilter, LazyCapture
    from flexwire.tap.metrics import TapStatistics


# The api key, the version and the correlation id. A response contains only the correlation id.
_REQUEST_HEAD: Final = 8
_RESPONSE_HEAD: Final = 4
_API: Final = struct.Struct(">hh")
_UNREADABLE: Final = (FrameError, CodecError, UnknownMessageError)


def withhold_credentials(payload: bytes, turn: Turn, *, asked_plainly: bool = False) -> bytes:
    """Return a frame's payload for the capture, without credentials but with the same length.

    For a response, ``asked_plainly`` is true if nothing in its request was withheld.
    """
    request = turn.request
    if turn.kind == "unread" or request is None:
        # An unread frame may be a token, which has no request and is on a guarded connection.
        return make_filler(len(payload)) if turn.is_guarded else payload
    if turn.is_guarded and not is_believable(request):
        return make_filler(len(payload))
    if not hides_credentials(request.message_name, payload):
        return payload
    if turn.kind == "request":
        name, version, start = request.message_name, request.api_version, request.body_offset
    else:
        try:
            frame = parse_response(beginning(payload), request.api_key, request.api_version)
        except _UNREADABLE:
            return payload[:_RESPONSE_HEAD] + make_filler(len(payload) - _RESPONSE_HEAD)
        name, version, start = frame.message_name, frame.body_version, frame.body_offset
    hidden = _body(payload, turn, (name, version, start), asked_plainly=asked_plainly)
    return payload if hidden is None else payload[:start] + hidden


class CredentialMask:
    """Withhold credentials in a connection's frames, and remember requests without credentials.

    A broker's error message may quote the request, so the message is kept only if the request
    contained no credentials.
    """

    def __init__(self) -> None:
        # The pairs of the requests without credentials, oldest first. If a request is forgotten,
        # the capture only lacks an error message.
        self._plain: dict[int, None] = {}

    def shown(self, payload: bytes, turn: Turn) -> bytes:
        """Return a frame's payload for the capture.

        A payload without credentials is returned unchanged.
        """
        request, pair = turn.request, turn.pair
        if request is None or pair is None or not may_be_quoted(request.message_name):
            return withhold_credentials(payload, turn)
        if turn.kind != "request":
            is_plain = pair in self._plain
            self._plain.pop(pair, None)
            return withhold_credentials(payload, turn, asked_plainly=is_plain)
        shown = withhold_credentials(payload, turn)
        if shown is payload:
            if len(self._plain) >= FEWEST_IN_FLIGHT:
                del self._plain[next(iter(self._plain))]
            self._plain[pair] = None
        return shown


def withhold_rest(data: bytes, *, is_request: bool) -> bytes:
    """Return the bytes of an incomplete frame, keeping only its length and header.

    If a client's frame does not begin like a request, it may be a token, which has no header.
    """
    head = PREFIX_LENGTH
    if not is_request:
        head += _RESPONSE_HEAD
    elif len(data) >= PREFIX_LENGTH + _API.size:
        head += _REQUEST_HEAD if is_released(*_API.unpack_from(data, PREFIX_LENGTH)) else 0
    return data[:head] + make_filler(len(data) - len(data[:head]))


def withhold_beginning(data: bytes, turn: Turn, *, is_request: bool) -> bytes:
    """Return a frame's length and beginning for the capture, unchanged if they are safe.

    A request's header is kept, because it contains no credentials. The rest is kept if neither the
    message nor the connection can contain credentials.
    """
    request = turn.request
    if request is None or not is_believable(request):
        return withhold_rest(data, is_request=is_request)
    if not turn.is_guarded and not may_hide_credentials(request.message_name):
        return data
    head = data[: PREFIX_LENGTH + (request.body_offset if is_request else _RESPONSE_HEAD)]
    return head + make_filler(len(data) - len(head))


def _body(
    payload: bytes, turn: Turn, place: tuple[str, int, int], *, asked_plainly: bool
) -> bytes | None:
    """Return the replacement for a body and the bytes after it, or None to keep them.

    ``place`` contains the name of the message, its version, and the start of its body.
    """
    name, version, start = place
    hidden = make_filler(len(payload) - start)
    if len(payload) > MOST_DECODED:
        # Finding out which of a million configurations are secret would take too long here.
        return hidden
    try:
        body, end = message(name).decode_prefix(payload, version, start)
    except (CodecError, UnknownMessageError):
        return hidden if turn.is_guarded or carries_credentials(name) else None
    if not withhold(body, keep_length=True, asked_plainly=asked_plainly):
        return None
    written = body.encode(version)
    # A message that was read leniently may be shorter when it is encoded again, and the bytes after
    # the body may be anything.
    return written + make_filler(len(payload) - end) if len(written) == end - start else hidden


_OF: Final = 1 << 53


def is_sampled(share: float) -> bool:
    """Return whether the next connection is captured. Each connection is chosen separately."""
    return secrets.randbelow(_OF) < share * _OF


@dataclass(slots=True)
class NoCapture:
    """Stands in for the capture of a connection that is not captured, and only counts."""

    statistics: TapStatistics

    def send(
        self,
        direction: Direction,  # noqa: ARG002  # a capture's `send` has this argument
        data: bytes,
        timestamp_us: int | None = None,  # noqa: ARG002  # a capture's `send` has this argument
        *,
        frames: int = 1,
        comments: Sequence[bytes] = (),  # noqa: ARG002  # a capture's `send` has this argument
    ) -> None:
        """Count the frames."""
        if data:
            self.statistics.unsampled_frames += frames
            self.statistics.unsampled_bytes += len(data)

    def send_beginning(
        self, direction: Direction, data: bytes, missing: int, timestamp_us: int | None = None
    ) -> None:
        """Count the bytes of a frame that was not kept completely."""
        self.send(direction, data, timestamp_us)
        self.statistics.unsampled_bytes += missing

    def close(self, *, reset: bool = False, by_broker: bool = False) -> None:
        """Do nothing."""


log = logging.getLogger("flexwire.tap")

# The largest number of requests for which one packet carries comments.
_COMMENTED_TOGETHER: Final = 64


class Recorder:
    """Write a connection to its capture, and count the frames that could not be written.

    A connection is not closed if its capture fails, because a full disk must not separate clients
    from their brokers.
    """

    def __init__(
        self,
        capture: TappedConnection | NoCapture | LazyCapture,
        statistics: TapStatistics,
        name: str,
        *,
        withholds: bool,
        frame_filter: FrameFilter | None = None,
        saying: LogLimiter | None = None,
    ) -> None:
        self._capture = capture
        self._statistics = statistics
        self._name = name
        self._withholds = withholds
        self._withholding = CredentialMask()
        self._filter = frame_filter
        self._saying = saying or LogLimiter(log)

    def frames(
        self,
        direction: Direction,
        frames: FrameGroup,
        turns: Sequence[Turn],
        at_us: int,
        comments: Sequence[bytes] = (),
    ) -> None:
        """Write frames that arrived together, with their roles in the conversation."""
        if self._filter is not None:
            frames, takes = self._filter.select(frames, turns)
            turns, comments = list(compress(turns, takes)), list(compress(comments, takes))
        whole, payloads = frames
        if not payloads:
            return
        if self._withholds:
            shown = [self._withholding.shown(*both) for both in zip(payloads, turns, strict=True)]
            hidden = sum(map(operator.is_not, shown, payloads))
            if hidden:
                self._statistics.withheld += hidden
                whole, payloads = b"".join(map(to_frame, shown)), shown
        if not any(comments):
            # Frames that arrived together are written with a single system call.
            self._write(direction, whole, at_us, len(payloads))
            return
        for start in range(0, len(payloads), _COMMENTED_TOGETHER):
            part = slice(start, start + _COMMENTED_TOGETHER)
            data = b"".join(map(to_frame, payloads[part]))
            written = [comment for comment in comments[part] if comment]
            self._write(direction, data, at_us, len(payloads[part]), written)

    def piece(self, direction: Direction, data: bytes, at_us: int, *, may_be_secret: bool) -> None:
        """Write bytes that are not frames."""
        hidden = self._withholds and may_be_secret
        self._write(direction, make_filler(len(data)) if hidden else data, at_us)

    def broken_off(self, direction: Direction, frame: TruncatedFrame, turn: Turn) -> None:
        """Write the bytes of a frame that will not be completed, if the frame would be captured.

        ``turn`` is the role of the frame in the conversation.
        """
        self._statistics.broken_off += 1
        self._saying.say(
            logging.INFO, "incomplete frames", f"{self._name}: a {direction} is incomplete"
        )
        if self._filter is not None and not self._filter.takes_beginning(direction, frame, turn):
            return
        if self._withholds:
            data = withhold_rest(frame.data, is_request=direction == "request")
            frame = frame._replace(data=data)
        self._write_beginning(direction, frame, None)

    def shortened(
        self, direction: Direction, frame: TruncatedFrame, turn: Turn, at_us: int
    ) -> None:
        """Write the beginning of a frame that was not kept completely, with its ``turn``."""
        if self._filter is not None and not self._filter.takes_beginning(direction, frame, turn):
            return
        if self._withholds:
            data = withhold_beginning(frame.data, turn, is_request=direction == "request")
            if data is not frame.data:
                self._statistics.withheld += 1
                frame = frame._replace(data=data)
        self._write_beginning(direction, frame, at_us)

    def _write_beginning(
        self, direction: Direction, frame: TruncatedFrame, at_us: int | None
    ) -> None:
        if not frame.missing:
            self._write(direction, frame.data, at_us)
            return
        self._statistics.shortened_frames += 1
        self._statistics.shortened_bytes += frame.missing
        try:
            self._capture.send_beginning(direction, frame.data, frame.missing, at_us)
        except CaptureError as error:
            self._not_captured(error, 1)

    def close(self, *, reset: bool, by_broker: bool) -> None:
        """Write how the connection ended."""
        try:
            self._capture.close(reset=reset, by_broker=by_broker)
        except CaptureError as error:
            self._statistics.unended += 1
            line = f"{self._name}: the end of the connection is not captured: {error}"
            self._saying.say(logging.ERROR, "connections whose end is not captured", line)

    def _write(
        self,
        direction: Direction,
        data: bytes,
        at_us: int | None = None,
        frames: int = 1,
        comments: Sequence[bytes] = (),
    ) -> None:
        try:
            self._capture.send(direction, data, at_us, frames=frames, comments=comments)
        except CaptureError as error:
            self._not_captured(error, frames)

    def _not_captured(self, error: CaptureError, frames: int) -> None:
        self._statistics.capture_failures += frames
        line = f"{self._name}: not captured: {error}"
        self._saying.say(logging.ERROR, "frames that are not captured", line, count=frames)
