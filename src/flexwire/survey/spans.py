"""Where the ranges of a capture lie: in files that are read one after the other, or merged."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from flexwire.capture.reassembly.merging import Front, MergedReader, Waiting
from flexwire.capture.reassembly.segments import Position, SegmentReader
from flexwire.survey.inputs import opener, reader_of
from flexwire.survey.survey_parts import AtOnce

if TYPE_CHECKING:
    from flexwire.storage.source import Source
    from flexwire.survey.inputs import Look
    from flexwire.survey.survey_parts import Asked, Known

Place = Position | Front | None
"""Where a range begins or ends: None at the start and at the end of the capture."""


class Files(Protocol):
    """The files of a capture, in its order."""

    def until(self, stop: Place, rows: int) -> tuple[tuple[Source, ...], AtOnce | None]:
        """Give the files of the next range, which ends there after so many segments."""


class InTurn:
    """Files that are read one after the other, of which any row is found by where it lies.

    There may be a million, so that nobody goes through all their names for each piece.
    """

    def __init__(self, files: list[Source]) -> None:
        self._files = files
        self._places = {one.name: place for place, one in enumerate(files)}
        self._start: Position | None = None

    def between(self, start: Position | None, stop: Position | None) -> list[Source]:
        """The files from one position to another; None is the start or the end of all."""
        first = 0 if start is None else self._places[start.file]
        end = len(self._files) if stop is None else self._places[stop.file] + 1
        return self._files[first:end]

    def until(self, stop: Place, _rows: int) -> tuple[tuple[Source, ...], AtOnce | None]:
        """See `Files`."""
        end = stop if isinstance(stop, Position) else None
        within, self._start = self.between(self._start, end), end
        return tuple(within), None


class Merging:
    """Files that are merged by time."""

    def __init__(self, asked: Asked, looks: list[Look]) -> None:
        self._asked = asked
        # A clock begins at 0.
        found = [(Waiting(max(0, one.first_us), one.source.name), one.source) for one in looks]
        found.sort(key=lambda one: one[0])
        self._waiting = [waiting for waiting, _ in found]
        self._sources = {source.name: source for _, source in found}
        self._front = Front((), 0)

    def reader(self) -> MergedReader:
        """Read all of them."""
        return _merged(self._asked, self._waiting, tuple(self._sources.values()))

    def until(self, stop: Place, rows: int) -> tuple[tuple[Source, ...], AtOnce | None]:
        """See `Files`."""
        before = self._front
        is_last = not isinstance(stop, Front)
        if isinstance(stop, Front):
            self._front = stop
        last = len(self._waiting) if is_last else self._front.begun
        waiting = tuple(self._waiting[before.begun : last])
        names = [one.position.file for one in before.under_way] + [one.file for one in waiting]
        within = tuple(self._sources[name] for name in names)
        return within, AtOnce(waiting, None if is_last else rows)


def reader_between(asked: Asked, known: Known, start: Place) -> SegmentReader | MergedReader:
    """Read the segments of a range that begins there."""
    at_once = known.at_once
    if at_once is not None:
        front = start if isinstance(start, Front) else None
        return _merged(asked, at_once.waiting, known.files, front, at_once.rows)
    start = start if isinstance(start, Position) else None
    stop = known.stop if isinstance(known.stop, Position) else None
    return reader_of(asked, list(known.files), start, stop)


def _merged(
    asked: Asked,
    waiting: list[Waiting] | tuple[Waiting, ...],
    files: tuple[Source, ...],
    start: Front | None = None,
    rows: int | None = None,
) -> MergedReader:
    return MergedReader(
        waiting,
        under_way=() if start is None else start.under_way,
        rows=rows,
        chunk_bytes=asked.chunk_bytes,
        most_skipped=asked.range_bytes,
        opener=partial(opener, files),
        show_credentials=asked.show_credentials,
    )
