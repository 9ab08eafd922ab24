"""Read the frames of a capture one by one, for the command `view` and the tool ``frames``."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flexwire.capture.messages import OPEN_CONNECTIONS, PacketFrame, UnusedBytes, read_frames
from flexwire.facts.units import moment_at, shorten
from flexwire.protocol.frames import FrameGroup, to_frame
from flexwire.tap.frame_filter import FrameFilter, TopicNames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.capture.files.comments import CaptureFilter

LONGEST_CLIENT_ID: Final = 200
"""The maximum number of characters of a client id that a row shows."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A frame: its place in the capture, and its header.

    ``number`` counts the frames that match the filter, starting at 1. ``name`` is the name of the
    message, or the reason why there is no message. ``version`` and ``correlation_id`` are None if
    they are unknown.
    """

    number: int
    connection: str
    direction: str
    index: int
    timestamp_us: int
    size: int
    name: str
    version: int | None
    correlation_id: int | None
    client_id: str | None

    @property
    def place(self) -> tuple[str, str, int]:
        """The place of the frame in its capture."""
        return self.connection, self.direction, self.index

    @property
    def form(self) -> dict[str, Any]:
        """The row as JSON, without its number."""
        return {
            "time": time_text(self.timestamp_us, "%Y-%m-%dT%H:%M:%S.%fZ"),
            "connection": self.connection,
            "direction": self.direction,
            "index": self.index,
            "bytes": self.size,
            "message": self.name,
            "version": self.version,
            "correlationId": self.correlation_id,
            "clientId": self.client_id,
        }


@dataclass(slots=True)
class LeftOut:
    """The numbers of frames that do not match, as `FrameFilter` counts them."""

    filtered_frames: int = 0
    filtered_bytes: int = 0


class FittingFrames:
    """The frames of a capture that match a filter. ``unused`` counts all other bytes by kind."""

    def __init__(self, path: Path, only: CaptureFilter) -> None:
        self.unused: Counter[str] = Counter()
        self._path = path
        self._only = only
        self._counts = LeftOut()

    @property
    def left_out(self) -> int:
        """The number of frames so far that do not match."""
        return self._counts.filtered_frames

    def read(self) -> Iterator[PacketFrame]:
        """Yield the frames that match, in the order of `read_frames`.

        Raises `CaptureError` for a file that is not a capture.
        """
        topics = TopicNames()
        filters: OrderedDict[str, FrameFilter] = OrderedDict()
        for item in read_frames([self._path]):
            if isinstance(item, UnusedBytes):
                self.unused[item.kind] += 1
                continue
            name = item.frame.connection
            frame_filter = filters.pop(name, None)
            filters[name] = frame_filter or FrameFilter(self._only, topics, self._counts)
            if len(filters) > OPEN_CONNECTIONS:
                filters.popitem(last=False)
            if _takes(filters[name], item):
                yield item


def _takes(frame_filter: FrameFilter, item: PacketFrame) -> bool:
    payload = item.frame.payload
    group = FrameGroup(to_frame(payload), [payload])
    return frame_filter.select(group, [item.turn])[1][0]


def frame_row(number: int, item: PacketFrame) -> FrameRow:
    """Return the row of a frame."""
    frame, turn = item
    request = turn.request
    is_damaged = frame.error is not None or turn.error is not None
    version = None if request is None else request.api_version
    if turn.kind == "token":
        name = "SASL token"
    elif request is None:
        name = "damaged" if is_damaged else "response without its request"
    else:
        name = request.message_name
        if turn.kind == "response":
            name = f"{request.api_name}Response"
        name += " (damaged)" if is_damaged else ""
    client_id = None if request is None else request.client_id
    return FrameRow(
        number,
        frame.connection,
        frame.direction,
        frame.index,
        frame.timestamp_us,
        frame.size,
        name,
        version,
        turn.correlation_id if request is None else request.correlation_id,
        None if client_id is None else shorten(client_id, LONGEST_CLIENT_ID),
    )


def time_text(timestamp_us: int, form: str) -> str:
    """Return a UTC time in the format ``form``, or a number for times after the year 9999.

    >>> time_text(1_700_000_000_123_456, "%H:%M:%S.%f"), time_text(2**62, "%H")
    ('22:13:20.123456', '4611686018427387904')
    """
    try:
        return moment_at(timestamp_us).strftime(form)
    except OverflowError:
        # A capture can contain any number as a timestamp.
        return str(timestamp_us)
