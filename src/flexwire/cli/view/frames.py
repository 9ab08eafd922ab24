"""The frames of a capture for the screen: a limited number, with fields on request."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from flexwire.capture.messages import PacketFrame, UnusedBytes, read_frames
from flexwire.cli.captured_frames import FittingFrames, frame_row
from flexwire.cli.explain import frame_sections, section_lines
from flexwire.cli.frames import shown_frame
from flexwire.errors import CaptureError, FlexwireError
from flexwire.facts.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.cli.captured_frames import FrameRow
    from flexwire.cli.frames import ShownFrame

MOST_FRAMES: Final = 20_000
"""The maximum number of frames for which rows are kept."""
HELD_BYTES: Final = 32 << 20
"""The maximum number of payload bytes that are kept."""
MOST_LINES: Final = 5_000
"""The maximum number of lines for the fields of one frame."""


class ViewedCapture:
    """A capture file that is read once.

    ``rows`` contains the first frames after ``skip`` frames.
    """

    def __init__(self, path: Path, only: CaptureFilter, skip: int = 0) -> None:
        self.path = path
        self.rows: list[FrameRow] = []
        self.connections: Counter[str] = Counter()
        self.only = only
        self._skip = skip
        self._fitting = 0
        self._frames = FittingFrames(path, only)
        self._held: dict[tuple[str, str, int], PacketFrame] = {}
        self._held_bytes = 0

    def read(self) -> Iterator[FrameRow]:
        """Read the capture to its end, only once, and yield the rows that are kept.

        Raises `CaptureError` for a file that is not a capture.
        """
        for item in self._frames.read():
            self._fitting += 1
            if self._skip < self._fitting <= self._skip + MOST_FRAMES:
                yield self._keep(item)

    def _keep(self, item: PacketFrame) -> FrameRow:
        row = frame_row(self._fitting, item)
        self.rows.append(row)
        self.connections[row.connection] += 1
        size = len(item.frame.payload)
        if self._held_bytes + size <= HELD_BYTES:
            self._held_bytes += size
            self._held[row.place] = item
        return row

    def is_held(self, row: FrameRow) -> bool:
        """Return whether a frame can be shown without reading the capture again."""
        return row.place in self._held

    def lines(self, row: FrameRow) -> Iterator[str]:
        """Yield the fields of a frame in no more than about `MOST_LINES` lines.

        A frame that cannot be read becomes a line with the reason. Raises `CaptureError` if the
        file has changed.
        """
        item = self._held.get(row.place) or self._find(row)
        try:
            shown = shown_frame(item.frame, item.turn)
            for number, line in enumerate(_section_lines(shown)):
                if number == MOST_LINES:
                    yield f"… and more: flexwire explain shows the whole frame ({row.size} bytes)"
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
        raise CaptureError(f"{self.path}: the frame no longer exists, because the file has changed")

    @property
    def summary(self) -> str:
        """A sentence with the number of frames that were read and the number of hidden frames."""
        parts = [
            f"{plural(len(self.rows), 'frame')} on {plural(len(self.connections), 'connection')}"
        ]
        if self._skip:
            parts.append(f"{min(self._skip, self._fitting):,} skipped")
        if more := self._fitting - min(self._skip, self._fitting) - len(self.rows):
            parts.append(f"{more:,} more: --skip {self._skip + len(self.rows)} shows them")
        if self.only:
            parts.append(f"{self._frames.left_out:,} do not match: {self.only}")
        unused = sorted(self._frames.unused.items())
        parts += [f"{count:,} not read ({kind})" for kind, count in unused]
        return "; ".join(parts)


def _section_lines(shown: ShownFrame) -> Iterator[str]:
    yield shown.where or ""
    for section in frame_sections(shown):
        yield from section_lines(section)
        if section.explanation.error is not None:
            yield f"{type(section.explanation.error).__name__}: {section.explanation.error}"
