"""What the capture gets of one connection: frames as their senders sent them, and all else.

Credentials are not in it where they are withheld, and what cannot be written is counted.
"""

from __future__ import annotations

import logging
import operator
from itertools import compress
from typing import TYPE_CHECKING, Final

from flexwire.errors import CaptureError
from flexwire.protocol.credentials import filler
from flexwire.protocol.frames import framed
from flexwire.tap.saying import Saying
from flexwire.tap.withholding import Withholding, withheld_beginning, withheld_rest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.files.pcapng import Direction, TappedConnection
    from flexwire.protocol import Turn
    from flexwire.protocol.frames import Beginning, Frames
    from flexwire.tap.filtering import FrameFilter, WhenKept
    from flexwire.tap.sampling import Uncaptured
    from flexwire.tap.statistics import TapStatistics

log = logging.getLogger("flexwire.tap")

# The comments of so many requests stand on one packet.
_COMMENTED_TOGETHER: Final = 64


class Recorder:
    """Writes one connection to its capture, and counts what could not be written.

    A capture that fails cuts nobody off: a full disk must not keep clients from their brokers.
    """

    def __init__(
        self,
        capture: TappedConnection | Uncaptured | WhenKept,
        statistics: TapStatistics,
        name: str,
        *,
        withholds: bool,
        kept: FrameFilter | None = None,
        saying: Saying | None = None,
    ) -> None:
        self._capture = capture
        self._statistics = statistics
        self._name = name
        self._withholds = withholds
        self._withholding = Withholding()
        self._kept = kept
        self._saying = saying or Saying(log)

    def frames(
        self,
        direction: Direction,
        frames: Frames,
        turns: Sequence[Turn],
        at_us: int,
        comments: Sequence[bytes] = (),
    ) -> None:
        """Write frames that came together, and what their conversation says they are."""
        if self._kept is not None:
            frames, takes = self._kept.kept(frames, turns)
            turns, comments = list(compress(turns, takes)), list(compress(comments, takes))
        whole, payloads = frames
        if not payloads:
            return
        if self._withholds:
            shown = [self._withholding.shown(*both) for both in zip(payloads, turns, strict=True)]
            hidden = sum(map(operator.is_not, shown, payloads))
            if hidden:
                self._statistics.withheld += hidden
                whole, payloads = b"".join(map(framed, shown)), shown
        if not any(comments):
            # Frames that came together are written together: one call of the system for all.
            self._write(direction, whole, at_us, len(payloads))
            return
        for start in range(0, len(payloads), _COMMENTED_TOGETHER):
            part = slice(start, start + _COMMENTED_TOGETHER)
            data = b"".join(map(framed, payloads[part]))
            said = [one for one in comments[part] if one]
            self._write(direction, data, at_us, len(payloads[part]), said)

    def piece(self, direction: Direction, data: bytes, at_us: int, *, may_be_secret: bool) -> None:
        """Write bytes that are not frames."""
        hidden = self._withholds and may_be_secret
        self._write(direction, filler(len(data)) if hidden else data, at_us)

    def broken_off(self, direction: Direction, frame: Beginning, turn: Turn) -> None:
        """Write what there is of a frame that will not be whole, and would be captured if it was.

        ``turn`` is what its conversation says of that.
        """
        self._statistics.broken_off += 1
        self._saying.say(
            logging.INFO, "frames that broke off", f"{self._name}: a {direction} broke off"
        )
        if self._kept is not None and not self._kept.takes_beginning(direction, frame, turn):
            return
        if self._withholds:
            data = withheld_rest(frame.data, is_request=direction == "request")
            frame = frame._replace(data=data)
        self._write_beginning(direction, frame, None)

    def shortened(self, direction: Direction, frame: Beginning, turn: Turn, at_us: int) -> None:
        """Write the beginning of a frame that was not kept whole; ``turn`` is as above."""
        if self._kept is not None and not self._kept.takes_beginning(direction, frame, turn):
            return
        if self._withholds:
            data = withheld_beginning(frame.data, turn, is_request=direction == "request")
            if data is not frame.data:
                self._statistics.withheld += 1
                frame = frame._replace(data=data)
        self._write_beginning(direction, frame, at_us)

    def _write_beginning(self, direction: Direction, frame: Beginning, at_us: int | None) -> None:
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
            told = f"{self._name}: its end is not captured: {error}"
            self._saying.say(logging.ERROR, "connections whose end is not captured", told)

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
        told = f"{self._name}: not captured: {error}"
        self._saying.say(logging.ERROR, "frames that are not captured", told, count=frames)
