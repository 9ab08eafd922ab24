"""Frames of many connections in arrays: one row per frame, in the order of their discovery."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from flexwire.capture.reassembly.connections import CapturedFrame
from flexwire.columnar.program import allocate
from flexwire.extras import needed_by
from flexwire.kernels import load_kernel

with needed_by("flexwire.capture.reassembly", "columnar"):
    import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.reassembly.segments import FileOrigins
    from flexwire.columnar.arrays import NumpyArray


Item = TypeVar("Item")


def pick_rows(by_row: dict[int, Item], rows: NumpyArray) -> dict[int, Item]:
    """Return the items for some rows; the keys are the new places of these rows."""
    if not by_row:
        return {}
    places = {row: place for place, row in enumerate(rows.tolist())}
    return {places[row]: item for row, item in by_row.items() if row in places}


@dataclass(frozen=True, slots=True, eq=False)
class FrameColumns:
    """Frames with the fields of `CapturedFrame`. ``connection`` is an index into ``connections``.

    ``connection`` is int32, ``is_response`` bool, and ``index``, ``time_us``, ``first_us``,
    ``size``, ``start`` and ``stop`` are int64. The payload of a row is ``data[start:stop]``, and
    ``data`` contains uint8. ``error`` contains the rows with an error, and ``unplaced`` contains
    the rows that are not placed. ``file`` is the capture file that contains these frames. If the
    frames come from several files, ``origins`` contains the files.
    """

    connection: NumpyArray
    is_response: NumpyArray
    index: NumpyArray
    time_us: NumpyArray
    first_us: NumpyArray
    size: NumpyArray
    start: NumpyArray
    stop: NumpyArray
    connections: list[str]
    data: NumpyArray
    file: str
    error: dict[int, str] = field(default_factory=dict)
    unplaced: set[int] = field(default_factory=set)
    origins: FileOrigins | None = None

    def __len__(self) -> int:
        return len(self.connection)

    def payload(self, row: int) -> bytes:
        """Return the payload of a frame."""
        return self.data[self.start[row] : self.stop[row]].tobytes()

    def frame(self, row: int) -> CapturedFrame:
        """Return the frame in a row as an object."""
        return CapturedFrame(
            connection=self.connections[self.connection[row]],
            direction="response" if self.is_response[row] else "request",
            timestamp_us=int(self.time_us[row]),
            first_us=int(self.first_us[row]),
            index=int(self.index[row]),
            size=int(self.size[row]),
            payload=self.payload(row),
            error=self.error.get(row),
            is_placed=row not in self.unplaced,
        )

    def take(self, rows: NumpyArray) -> FrameColumns:
        """Return some of the frames, in the order of ``rows``."""
        error = pick_rows(self.error, rows)
        unplaced = set(pick_rows(dict.fromkeys(self.unplaced), rows))
        columns = ("connection", "is_response", "index", "time_us", "first_us", "size")
        some = {name: getattr(self, name)[rows] for name in (*columns, "start", "stop")}
        origins = None if self.origins is None else self.origins.take(rows)
        return replace(self, **some, error=error, unplaced=unplaced, origins=origins)

    @classmethod
    def from_frames(
        cls, frames: Sequence[CapturedFrame], file: str, connections: list[str] | None = None
    ) -> FrameColumns:
        """Convert frames to arrays.

        ``connections`` are the known connections. New connections are appended to the list.
        """
        names = [] if connections is None else connections
        numbers = {name: number for number, name in enumerate(names)}
        for frame in frames:
            if numbers.setdefault(frame.connection, len(numbers)) == len(names):
                names.append(frame.connection)
        stop = np.fromiter(
            accumulate(len(frame.payload) for frame in frames), np.int64, len(frames)
        )
        start = np.concatenate((np.zeros(1, np.int64), stop))[:-1]

        def column(name: str) -> NumpyArray:
            return np.fromiter((getattr(frame, name) for frame in frames), np.int64, len(frames))

        return cls(
            connection=np.array([numbers[frame.connection] for frame in frames], np.int32),
            is_response=np.array([frame.direction == "response" for frame in frames], np.bool_),
            index=column("index"),
            time_us=column("timestamp_us"),
            first_us=column("first_us"),
            size=column("size"),
            start=start,
            stop=stop,
            connections=names,
            data=np.frombuffer(b"".join(frame.payload for frame in frames), np.uint8),
            file=file,
            error={row: frame.error for row, frame in enumerate(frames) if frame.error is not None},
            unplaced={row for row, frame in enumerate(frames) if not frame.is_placed},
        )


def gather_bytes(data: NumpyArray, starts: NumpyArray, offsets: NumpyArray) -> NumpyArray:
    """Return bytes of ``data`` that begin at ``starts``, with sizes that follow from ``offsets``.

    ``offsets`` is an int32 array with one more item than ``starts``. Each byte string is copied to
    its offset.
    """
    copied = allocate(int(offsets[-1]))
    frames = load_kernel("frames")
    if len(copied) and frames is not None:
        data, starts = np.ascontiguousarray(data), np.ascontiguousarray(starts, np.int64)
        frames.gather(data, starts, offsets, copied)
    elif len(copied):
        for row in np.flatnonzero(np.diff(offsets)).tolist():
            size = offsets[row + 1] - offsets[row]
            copied[offsets[row] : offsets[row + 1]] = data[starts[row] : starts[row] + size]
    return copied


def join_frames(
    columns: list[tuple[FrameColumns, NumpyArray]],
    connections: list[str],
    file: str,
    *,
    in_order: bool = False,
) -> tuple[FrameColumns, NumpyArray]:
    """Return all frames in one object, and the segment of each frame.

    Several parts are sorted by the order of their segments. A single part is sorted only if
    ``in_order``.
    """
    columns = [part for part in columns if len(part[0])]
    if len(columns) == 1:
        (frames, segments), *_ = columns
        if not in_order or (segments[1:] >= segments[:-1]).all():
            return columns[0]
        order = np.argsort(segments, kind="stable")
        return frames.take(order), segments[order]
    if not columns:
        return FrameColumns.from_frames([], file, connections), np.zeros(0, np.int64)
    parts = [frames for frames, _ in columns]
    segments = np.concatenate([segments for _, segments in columns])
    order = np.argsort(segments, kind="stable")
    rows = np.cumsum([0, *map(len, parts)])
    bases = np.cumsum([0, *(len(part.data) for part in parts)])
    error: dict[int, str] = {}
    unplaced: set[int] = set()
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    for part, first in zip(parts, rows[:-1], strict=True):
        error |= {int(back[first + row]): reason for row, reason in part.error.items()}
        unplaced |= {int(back[first + row]) for row in part.unplaced}

    def column(name: str) -> NumpyArray:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    def places(name: str) -> NumpyArray:
        moved = [getattr(part, name) + base for part, base in zip(parts, bases[:-1], strict=True)]
        return np.concatenate(moved)[order]

    frames = FrameColumns(
        connection=column("connection"),
        is_response=column("is_response"),
        index=column("index"),
        time_us=column("time_us"),
        first_us=column("first_us"),
        size=column("size"),
        start=places("start"),
        stop=places("stop"),
        connections=connections,
        data=np.concatenate([part.data for part in parts]),
        file=file,
        error=error,
        unplaced=unplaced,
    )
    return frames, segments[order]
