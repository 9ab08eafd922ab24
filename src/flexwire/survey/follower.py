"""Captures that grow: how far they are read, and the state that the next reading needs.

An offset says of each file how many of its bytes were read, whole blocks of them. The state of all
connections there is held in memory as long as a follower lives; another one makes it again from the
files, up to the offset.

There is no end that could say something of the whole. So a row says what was captured up to the
last byte of its frame, and no later: it is the same wherever the captures are cut. Rows that differ
in what was known by then, as of a connection's first frame, are decoded apart from one another.
"""

from __future__ import annotations

import logging
import pickle
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from flexwire.capture.files.blocks import WholeBlocks
from flexwire.capture.reassembly.segments import FileNotes, FilePosition, SegmentReader
from flexwire.errors import CaptureError, StorageError
from flexwire.storage.file_search import list_captures
from flexwire.storage.filesystems import local_path, scheme_of
from flexwire.storage.local import compress, decompress
from flexwire.survey.follower_state import FollowerState, rows_of
from flexwire.survey.pieces import COMPRESSED
from flexwire.survey.request import look_at_files, make_opener
from flexwire.tables.frames import TableRows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.request import AnalysisRequest
    from flexwire.tables.records import Rows
    from flexwire.tables.row_filter import RowFilter

    FileOffsets = dict[str, int]


HELD_BYTES: Final = 32 << 20
"""Of so many bytes it is known which connections they show before a task is told of these."""

_GROW: Final = {"", "hdfs"}  # a file of any other store is there as a whole, or not at all
_BEGUN_BYTES: Final = 28  # of a section's header; that of a pcap file has fewer
_LOGGER = logging.getLogger("flexwire")


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file; it begins with the file where it has no ``start``."""

    source: InputFile
    start: FilePosition | None
    stop: FilePosition


@dataclass(frozen=True, slots=True)
class Stretch:
    """Parts of files that one task reads, and the state before them."""

    state: bytes
    parts: tuple[FilePart, ...]


def stretch_rows(
    asked: AnalysisRequest, wanted: RowFilter, stretch: Stretch
) -> Iterator[tuple[str, Rows]]:
    """Give the rows of the frames that end in a stretch, each batch with its table's name."""
    # It was pickled for this very task.
    state: FollowerState = pickle.loads(decompress(stretch.state))  # noqa: S301 - see above
    tables = TableRows(
        wanted,
        release=asked.release,
        show_credentials=asked.show_credentials,
        record_bytes=asked.record_bytes,
        inflation=asked.inflation,
    )
    for part in stretch.parts:
        for item in _reader(asked, part):
            if isinstance(item, FileNotes):
                if item.error is not None:
                    raise item.error
                continue
            yield from rows_of(state.take(item), asked, wanted, tables)


def _reader(asked: AnalysisRequest, part: FilePart) -> SegmentReader:
    return SegmentReader(
        [part.source.name],
        chunk_bytes=asked.chunk_bytes,
        start=part.start,
        stop=part.stop,
        opener=make_opener([part.source]),
        show_credentials=asked.show_credentials,
    )


class CaptureFollower:
    """Reads the captures in some paths again and again, as they grow and others come.

    Files are read one after the other, in the order of their first segments. Those that are gzip'd
    are left alone. With ``fails_on_loss`` it is a `CaptureError` where a file is gone, or was cut
    off, before all of it was read; otherwise what is left is read.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        asked: AnalysisRequest,
        wanted: RowFilter,
        *,
        fails_on_loss: bool = True,
    ) -> None:
        self._paths = list(paths)
        self._asked = asked
        self._wanted = wanted
        self._fails_on_loss = fails_on_loss
        self._found = _FollowedFiles(asked)
        # How far each file was whole, and how many bytes it had.
        self._whole: dict[str, WholeBlocks] = {}
        self._sizes: dict[str, int] = {}
        self._state = FollowerState(asked, wanted)
        self._positions: dict[str, FilePosition] = {}
        self._at: FileOffsets | None = {}
        self._given: tuple[FileOffsets, FileOffsets, list[Stretch]] | None = None

    def latest(
        self,
        start: Mapping[str, int] | None,
        most_bytes: int | None = None,
        most_files: int | None = None,
        *,
        until: Mapping[str, int] | None = None,
    ) -> FileOffsets:
        """Give the offset up to which is to be read after ``start``; None for the last one given.

        At most so many bytes are added, but a block at least, in so many files. With ``until``
        nothing after that is given, nor of other files.
        """
        if start is None:
            start = {name: one.end for name, one in self._whole.items()}
        files = self._found.find(self._paths)
        self._check_gone(start, {one.name for one in files})
        ends: FileOffsets = {}
        left, files_left, has_more = most_bytes, most_files, False
        for file in files:
            begin = end = start.get(file.name, 0)
            size = file.size if until is None else min(file.size, until.get(file.name, 0))
            # What follows in another file is not read before the rest of this one.
            if not has_more and files_left != 0 and not self._is_cut(file, begin):
                end, has_more = self._end(file, begin, size, left)
            if end > begin:
                left = None if left is None else left - (end - begin)
                has_more = has_more or (left is not None and left <= 0)
                files_left = None if files_left is None else files_left - 1
            if end:
                ends[file.name] = end
        self._sizes = {one.name: one.size for one in files}
        return dict(sorted(ends.items()))

    def _end(self, file: InputFile, begin: int, size: int, most: int | None) -> tuple[int, bool]:
        """Up to where a file is to be read, and whether it may have more."""
        if scheme_of(file.url) not in _GROW:
            return max(begin, size), False
        known = self._whole.get(file.name)
        if known is None or known.end != begin:
            known = WholeBlocks(file.name)
        if size <= begin:
            return begin, False
        if known.end < begin:
            known.look(file.open, begin)
        was_sound = known.damage is None
        has_more = known.look(file.open, size, most)
        if was_sound and known.damage is not None:
            _LOGGER.warning("%s, byte %d: not read on: %s", file.name, known.end, known.damage)
        self._whole[file.name] = known
        return max(begin, known.end), has_more

    def _check_gone(self, start: Mapping[str, int], there: set[str]) -> None:
        for name, begin in start.items():
            if name in there:
                continue
            self._whole.pop(name, None)
            if self._sizes.get(name, 0) > begin:
                self._lose(name, f"it is gone, and was read up to byte {begin} only")

    def _is_cut(self, file: InputFile, begin: int) -> bool:
        if file.size >= begin:
            return False
        self._lose(file.name, f"it has {file.size} bytes, and was read up to byte {begin}")
        return True

    def _lose(self, name: str, reason: str) -> None:
        if self._fails_on_loss:
            reason = f"{reason}; to go on with what is left, set failOnDataLoss to false"
            raise CaptureError(reason, source=name)
        _LOGGER.warning("%s: %s", name, reason)

    def stretches(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Stretch]:
        """Give what was added to files between two offsets, a stretch for each task."""
        begin, stop = dict(start), dict(end)
        if self._given is not None and self._given[:2] == (begin, stop):
            return self._given[2]
        if self._at != begin:
            self._state, self._positions = FollowerState(self._asked, self._wanted), {}
            for _ in self._advance({}, begin, gives=False):
                pass
        # Where this fails, all is to be made again.
        self._at = None
        found = list(self._advance(begin, stop))
        self._at = stop
        self._positions = {name: self._positions[name] for name in stop if name in self._positions}
        self._given = begin, stop, found
        return found

    def _advance(
        self, start: FileOffsets, end: FileOffsets, *, gives: bool = True
    ) -> Iterator[Stretch]:
        """Bring the state from one offset to another."""
        files = {one.name: one for one in self._found.find(self._paths)}
        for name in end.keys() - files.keys():
            if end[name] > start.get(name, 0):
                self._lose(name, f"it is gone, and is to be read up to byte {end[name]}")
        making = _StretchBuilder(self._asked, self._state, gives=gives)
        for name, file in files.items():
            stop = end.get(name, 0)
            if stop <= start.get(name, 0) or self._is_cut(file, stop):
                continue
            known = self._positions.get(name)
            if known is None or not known.is_end:
                part = FilePart(file, known, FilePosition(name, stop))
                self._positions[name] = yield from making.read(part)
        yield from making.finish()


SAMPLED: Final = (
    "it holds a part of what passed, as it says: set acceptSampled to true to read it, and do "
    "not take what is counted for the whole"
)
"""Why a capture is not read unasked."""


class _FollowedFiles:
    """The files in some paths, in their order."""

    def __init__(self, asked: AnalysisRequest) -> None:
        self._skips = asked.skip_unreadable
        self._takes_sampled = asked.takes_sampled
        # When a file of this size begins; None where it is no capture.
        self._begins: dict[str, tuple[int, int | None]] = {}

    def find(self, paths: Iterable[str | Path]) -> list[InputFile]:
        """Give those that have begun. Raises `CaptureError` for one that is not a capture."""
        found = {one.name: one for path in paths for one in _listed(path)}
        self._look([one for one in found.values() if not self._is_known(one)])
        times = {name: self._begins[name][1] for name in found if name in self._begins}
        kept = [(first_us, name) for name, first_us in times.items() if first_us is not None]
        return [found[name] for _, name in sorted(kept)]

    def _is_known(self, file: InputFile) -> bool:
        size, first_us = self._begins.get(file.name, (-1, 0))
        return bool(first_us) or size == file.size or file.size < _BEGUN_BYTES

    def _look(self, files: list[InputFile]) -> None:
        for file in files:
            # One that is gone by now is listed no more next time.
            with suppress(StorageError):
                (look,) = look_at_files([file])
                if look.error is not None:
                    if not self._skips:
                        raise look.error
                    _LOGGER.warning("%s: not read: %s", file.name, look.error.reason)
                if look.marks.part is not None and not self._takes_sampled:
                    raise CaptureError(SAMPLED, source=file.name)
                first_us = None if look.error is not None else look.first_us
                self._begins[file.name] = file.size, first_us


def _listed(path: str | Path) -> list[InputFile]:
    try:
        found = list_captures([path])
    except CaptureError:
        # The first file is still to come.
        if scheme_of(str(path)) or not local_path(str(path)).is_dir():
            raise
        found = []
    return [one for one in found if not one.name.endswith(COMPRESSED)]


class _StretchBuilder:
    """Stretches while they are made, from parts that are read one after the other."""

    def __init__(self, asked: AnalysisRequest, state: FollowerState, *, gives: bool) -> None:
        self._asked = asked
        self._state = state
        self._gives = gives
        self._held: list[SegmentColumns] = []
        self._size = 0
        self._begun: bytes | None = None
        self._parts: list[FilePart] = []

    def read(self, part: FilePart) -> Generator[Stretch, None, FilePosition]:
        """Read a part; returns where it ended."""
        reader, here = _reader(self._asked, part), part.start
        for item in reader:
            if isinstance(item, FileNotes):
                _tell(item)
                continue
            self._hold(item)
            stop = reader.position
            if self._size >= self._asked.range_bytes and stop is not None:
                self._parts.append(replace(part, start=here, stop=stop))
                yield from self.finish()
                here = stop
        end = reader.position or part.stop
        if here is None or here.offset < part.stop.offset:
            self._parts.append(replace(part, start=here))
        return end

    def _hold(self, segments: SegmentColumns) -> None:
        self._size += segments.weight
        if self._begun is not None or not self._gives:
            self._state.take(segments)
        else:
            self._held.append(segments)
            if self._size > HELD_BYTES:
                self._begin(None)

    def _begin(self, keys: set[str] | None) -> None:
        self._begun = compress(self._state.pickled(keys))
        for one in self._held:
            self._state.take(one)
        self._held = []

    def finish(self) -> Iterator[Stretch]:
        """Give what was read since the last stretch, if it has any segments."""
        if self._gives and (self._held or self._begun is not None):
            if self._begun is None:
                shown = (one.keys[key] for one in self._held for key in set(one.key.tolist()))
                self._begin(set(shown))
            yield Stretch(self._begun or b"", tuple(self._parts))
        self._begun, self._parts, self._size = None, [], 0


def _tell(notes: FileNotes) -> None:
    """Tell how many packets of a part give nothing that should."""
    if notes.error is not None:
        raise notes.error
    for reason, packets in notes.unreadable.packets.items():
        _LOGGER.warning("%s: %d packets are not read: %s", notes.file, packets, reason)
