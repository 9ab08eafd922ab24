"""The files of a capture in their order, the positions of cuts in them, and readers for them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from flexwire.capture.reassembly.merging import MergedReader, MergePosition, QueuedFile
from flexwire.capture.reassembly.segments import FilePosition, SegmentReader
from flexwire.survey.request import MergePlan, make_opener, make_reader

if TYPE_CHECKING:
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.request import AnalysisRequest, FileLook, RangeContext


CutPosition = FilePosition | MergePosition | None
"""The position where a range begins or ends. ``None`` stands for the start or the end of the
capture.
"""


class CaptureFiles(Protocol):
    """The files of a capture, in the order in which they are read."""

    def until(self, stop: CutPosition, rows: int) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """Return the files of the next range, which ends at ``stop`` after ``rows`` segments."""


class SequentialFiles:
    """Files that are read one after the other.

    There can be a million files. The files of a piece are therefore found by name, without a
    search through all files.
    """

    def __init__(self, files: list[InputFile]) -> None:
        self._files = files
        self._places = {file.name: place for place, file in enumerate(files)}
        self._start: FilePosition | None = None

    def between(self, start: FilePosition | None, stop: FilePosition | None) -> list[InputFile]:
        """Return the files from ``start`` to ``stop``; ``None`` means the first or last file."""
        first = 0 if start is None else self._places[start.file]
        end = len(self._files) if stop is None else self._places[stop.file] + 1
        return self._files[first:end]

    def until(
        self, stop: CutPosition, _rows: int
    ) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """Return the files of the next range, as `CaptureFiles` describes."""
        end = stop if isinstance(stop, FilePosition) else None
        within, self._start = self.between(self._start, end), end
        return tuple(within), None


class MergedFiles:
    """Files that are merged by time."""

    def __init__(self, request: AnalysisRequest, looks: list[FileLook]) -> None:
        self._request = request
        # The clock of a file begins at 0.
        self._queue = sorted(QueuedFile(max(0, look.first_us), look.source.name) for look in looks)
        sources = {look.source.name: look.source for look in looks}
        self._sources = {queued.file: sources[queued.file] for queued in self._queue}
        self._start = MergePosition((), 0)

    def reader(self) -> MergedReader:
        """Return a reader of all files."""
        return _make_merged_reader(self._request, self._queue, tuple(self._sources.values()))

    def until(self, stop: CutPosition, rows: int) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """Return the files of the next range, as `CaptureFiles` describes."""
        start = self._start
        is_last = not isinstance(stop, MergePosition)
        if isinstance(stop, MergePosition):
            self._start = stop
        last = len(self._queue) if is_last else self._start.begun
        begun = tuple(self._queue[start.begun : last])
        names = [progress.position.file for progress in start.under_way]
        names += [queued.file for queued in begun]
        within = tuple(self._sources[name] for name in names)
        return within, MergePlan(begun, None if is_last else rows)


def make_range_reader(
    request: AnalysisRequest, context: RangeContext, start: CutPosition
) -> SegmentReader | MergedReader:
    """Return a reader of the segments of a range that begins at ``start``."""
    merge_plan = context.merge_plan
    if merge_plan is not None:
        place = start if isinstance(start, MergePosition) else None
        return _make_merged_reader(
            request, merge_plan.queued, context.files, place, merge_plan.rows
        )
    start = start if isinstance(start, FilePosition) else None
    stop = context.stop if isinstance(context.stop, FilePosition) else None
    return make_reader(request, list(context.files), start, stop)


def _make_merged_reader(
    request: AnalysisRequest,
    queued: list[QueuedFile] | tuple[QueuedFile, ...],
    files: tuple[InputFile, ...],
    start: MergePosition | None = None,
    rows: int | None = None,
) -> MergedReader:
    return MergedReader(
        queued,
        under_way=() if start is None else start.under_way,
        rows=rows,
        chunk_bytes=request.chunk_bytes,
        most_skipped=request.range_bytes,
        opener=partial(make_opener, files),
        show_credentials=request.show_credentials,
    )
