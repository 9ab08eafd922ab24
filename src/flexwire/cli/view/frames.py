"""The frames of a capture as a screen shows them: a bounded number, and fields on request."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.capture.messages import OPEN_CONNECTIONS, PacketFrame, UnusedBytes, read_frames
from flexwire.cli.explain import frame_sections, section_lines
from flexwire.cli.frames import shown_frame
from flexwire.errors import CaptureError, FlexwireError
from flexwire.facts.units import plural, shorten
from flexwire.protocol.frames import FrameGroup, to_frame
from flexwire.tap.frame_filter import FrameFilter, TopicNames
from flexwire.tap.metrics import TapStatistics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.cli.frames import ShownFrame

MOST_FRAMES: Final = 20_000
"""The most frames of which a row is kept."""
HELD_BYTES: Final = 32 << 20
"""The most bytes of payloads that are kept."""
MOST_LINES: Final = 5_000
"""The most lines of the fields of one frame."""
LONGEST_VALUE: Final = 200
"""The most characters of a client id in a row."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A frame: where it is in the capture, and what its header says.

    ``number`` counts the frames that fit the filter from 1. ``name`` is the message, or says why
    there is none. ``version`` and ``correlation_id`` are None if they are not known.
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
        """Where the frame is in its capture."""
        return self.connection, self.direction, self.index


class ViewedCapture:
    """A capture file whose frames are read once; ``rows`` are the first of them after ``skip``."""

    def __init__(self, path: Path, only: CaptureFilter, skip: int = 0) -> None:
        self.path = path
        self.rows: list[FrameRow] = []
        self.connections: Counter[str] = Counter()
        self._only = only
        self._skip = skip
        self._fitting = 0
        self._statistics = TapStatistics()
        self._unused: Counter[str] = Counter()
        self._held: dict[tuple[str, str, int], PacketFrame] = {}
        self._held_bytes = 0

    def read(self) -> Iterator[FrameRow]:
        """Read the capture to its end, and yield the rows that are kept. It is read once.

        Raises `CaptureError` for a file that is no capture.
        """
        topics = TopicNames()
        filters: OrderedDict[str, FrameFilter] = OrderedDict()
        for item in read_frames([self.path]):
            if isinstance(item, UnusedBytes):
                self._unused[item.kind] += 1
                continue
            name = item.frame.connection
            frame_filter = filters.pop(name, None)
            filters[name] = frame_filter or FrameFilter(self._only, topics, self._statistics)
            if len(filters) > OPEN_CONNECTIONS:
                filters.popitem(last=False)
            if self._takes(filters[name], item):
                self._fitting += 1
                if self._skip < self._fitting <= self._skip + MOST_FRAMES:
                    yield self._keep(item)

    def _takes(self, frame_filter: FrameFilter, item: PacketFrame) -> bool:
        payload = item.frame.payload
        group = FrameGroup(to_frame(payload), [payload])
        return frame_filter.select(group, [item.turn])[1][0]

    def _keep(self, item: PacketFrame) -> FrameRow:
        row = _row(self._fitting, item)
        self.rows.append(row)
        self.connections[row.connection] += 1
        size = len(item.frame.payload)
        if self._held_bytes + size <= HELD_BYTES:
            self._held_bytes += size
            self._held[row.place] = item
        return row

    def is_held(self, row: FrameRow) -> bool:
        """Return whether the frame can be shown without reading the capture again."""
        return row.place in self._held

    def lines(self, row: FrameRow) -> Iterator[str]:
        """Yield the fields of a frame as lines, at most about `MOST_LINES`.

        A frame that cannot be read becomes a line that says why. Raises `CaptureError` if the file
        has changed.
        """
        item = self._held.get(row.place) or self._find(row)
        try:
            shown = shown_frame(item.frame, item.turn)
            for number, line in enumerate(_section_lines(shown)):
                if number == MOST_LINES:
                    yield f"… and more: flexwire explain shows all of a frame of {row.size} bytes"
                    return
                yield line
        except FlexwireError as error:
            yield f"{type(error).__name__}: {error}"

    def _find(self, row: FrameRow) -> PacketFrame:
        for item in read_frames([self.path]):
            if not isinstance(item, UnusedBytes):
                frame = item.frame
                if (frame.connection, frame.direction, frame.index) == row.place:
                    return item
        raise CaptureError(f"{self.path}: the frame is not there any more; the file has changed")

    @property
    def summary(self) -> str:
        """The frames that were read, and counts of those that are not shown."""
        parts = [
            f"{plural(len(self.rows), 'frame')} on {plural(len(self.connections), 'connection')}"
        ]
        if self._skip:
            parts.append(f"{min(self._skip, self._fitting):,} skipped")
        if more := self._fitting - min(self._skip, self._fitting) - len(self.rows):
            parts.append(f"{more:,} more: --skip {self._skip + len(self.rows)} shows them")
        if self._only:
            left_out = self._statistics.filtered_frames
            parts.append(f"{left_out:,} do not fit: {self._only}")
        parts += [f"{count:,} not read ({kind})" for kind, count in sorted(self._unused.items())]
        return "; ".join(parts)


def _section_lines(shown: ShownFrame) -> Iterator[str]:
    yield shown.where or ""
    for section in frame_sections(shown):
        yield from section_lines(section)
        if section.explanation.error is not None:
            yield f"{type(section.explanation.error).__name__}: {section.explanation.error}"


def _row(number: int, item: PacketFrame) -> FrameRow:
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
        None if client_id is None else shorten(client_id, LONGEST_VALUE),
    )
