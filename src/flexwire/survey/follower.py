"""Follow growing captures: how far they were read, and the state that the next read needs.

An offset says for each file how many of its bytes were read. The offset counts only whole blocks.
A follower keeps the state of all connections at that offset in memory. Another follower loads the
state from a file that the first one wrote (`flexwire.survey.saved_stream`), or rebuilds it by
reading the files up to the offset.
"""

from __future__ import annotations

import logging
import pickle
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from flexwire.capture.files.blocks import WholeBlocks
from flexwire.capture.files.reading import PcapHead
from flexwire.capture.reassembly.segments import FileNotes, FilePosition, SegmentReader
from flexwire.errors import DATA_LOST, CaptureError, StorageError
from flexwire.storage.file_search import list_captures
from flexwire.storage.filesystems import local_path, scheme_of
from flexwire.storage.local import compress, decompress
from flexwire.survey.follower_state import FollowerState, build_step_rows
from flexwire.survey.pieces import COMPRESSED
from flexwire.survey.request import look_at_files, make_opener
from flexwire.survey.saved_state import SavedStateError
from flexwire.survey.saved_stream import FollowedFile, SavedStream
from flexwire.tables.frames import TableRows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.request import AnalysisRequest, FileLook
    from flexwire.survey.saved_stream import StreamStates
    from flexwire.tables.records import Rows
    from flexwire.tables.row_filter import RowFilter

    FileOffsets = dict[str, int]


HELD_BYTES: Final = 32 << 20
"""The largest number of bytes that are held to find out which connections a stretch contains.

The stretch's task then gets the state of only these connections.
"""

_LOOKED_AT_ONCE: Final = 1000
_GROW: Final = {"", "hdfs"}  # In any other store, a file appears as a whole or not at all.
# This is the size of a section's header. The header of a pcap file is shorter.
_BEGUN_BYTES: Final = 28
_LOGGER = logging.getLogger("flexwire")


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file. Without a ``start``, the part begins where the file begins."""

    source: InputFile
    start: FilePosition | None
    stop: FilePosition


@dataclass(frozen=True, slots=True)
class Stretch:
    """Parts of files that one task reads, and the state at their start."""

    state: bytes
    parts: tuple[FilePart, ...]


def decode_stretch(
    request: AnalysisRequest, row_filter: RowFilter, stretch: Stretch
) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of the frames that end in a stretch, each batch with its table's name."""
    # The driver pickled this state for this task.
    state: FollowerState = pickle.loads(decompress(stretch.state))  # noqa: S301 - we wrote these bytes ourselves
    tables = TableRows(
        row_filter,
        release=request.release,
        show_credentials=request.show_credentials,
        record_bytes=request.record_bytes,
        inflation=request.inflation,
    )
    for part in stretch.parts:
        for item in _reader(request, part):
            if isinstance(item, FileNotes):
                if item.error is not None:
                    raise item.error
                continue
            yield from build_step_rows(state.take(item), request, row_filter, tables)


def _reader(request: AnalysisRequest, part: FilePart) -> SegmentReader:
    return SegmentReader(
        [part.source.name],
        chunk_bytes=request.chunk_bytes,
        start=part.start,
        stop=part.stop,
        opener=make_opener([part.source]),
        show_credentials=request.show_credentials,
    )


class CaptureFollower:
    """Read the captures in some paths repeatedly, as they grow and as new captures appear.

    Files are read one after the other, in the order of their first segments. Gzip-compressed files
    are skipped. With ``fails_on_loss``, `CaptureError` is raised if a file was removed or truncated
    before it was read completely. Otherwise the follower continues with the remaining files. With
    ``states``, each batch saves its state there, and a new follower continues from that state. If
    this fails, the follower prints a warning and reads the files again.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        request: AnalysisRequest,
        row_filter: RowFilter,
        *,
        fails_on_loss: bool = True,
        states: StreamStates | None = None,
    ) -> None:
        self._paths = list(paths)
        self._request = request
        self._row_filter = row_filter
        self._fails_on_loss = fails_on_loss
        self._files = _FollowedFiles(request)
        # For each file: the end of its whole blocks, and the number of bytes that it had at that
        # time.
        self._whole: dict[str, WholeBlocks] = {}
        self._sizes: dict[str, int] = {}
        self._was_listed = False
        self._state = FollowerState(request, row_filter)
        self._positions: dict[str, FilePosition] = {}
        self._at: FileOffsets | None = {}
        self._states = states
        # The offset of the last saved state, if that state was read.
        self._last_saved: FileOffsets | None = None
        # The last offset whose state could not be used.
        self._refused: FileOffsets | None = None
        self._last_stretches: tuple[FileOffsets, FileOffsets, list[Stretch]] | None = None

    def latest(
        self,
        start: Mapping[str, int] | None,
        most_bytes: int | None = None,
        most_files: int | None = None,
        *,
        until: Mapping[str, int] | None = None,
    ) -> FileOffsets:
        """Return the offset up to which to read after ``start``.

        If ``start`` is None, the last known offset is used. The returned offset adds at most
        ``most_bytes``, but at least one block, in at most ``most_files`` files. With ``until``,
        nothing after that offset is added, and no other file.
        """
        if start is None:
            start = self._last_known()
        elif self._at == {} and not self._go_on_from(start):
            self._forget_last()
        files = self._files.find(self._paths)
        self._check_gone(start, {whole.name for whole in files})
        ends: FileOffsets = {}
        left, files_left, has_more = most_bytes, most_files, False
        for file in files:
            begin = end = start.get(file.name, 0)
            size = file.size if until is None else min(file.size, until.get(file.name, 0))
            # The next file is read only after the rest of this file.
            if not has_more and files_left != 0 and not self._is_cut(file, begin):
                end, has_more = self._end(file, begin, size, left)
            if end > begin:
                left = None if left is None else left - (end - begin)
                has_more = has_more or (left is not None and left <= 0)
                files_left = None if files_left is None else files_left - 1
            if end:
                ends[file.name] = end
        self._sizes = {whole.name: whole.size for whole in files}
        self._was_listed = True
        return dict(sorted(ends.items()))

    @property
    def sizes(self) -> FileOffsets | None:
        """The sizes of the files at the last call of `latest`, or None before it.

        A size is the offset up to which a file could be read if it consisted of whole blocks.
        """
        return dict(sorted(self._sizes.items())) if self._was_listed else None

    def _end(self, file: InputFile, begin: int, size: int, most: int | None) -> tuple[int, bool]:
        """Return the place up to which to read a file, and whether the file may contain more."""
        if scheme_of(file.url) not in _GROW:
            return max(begin, size), False
        whole = self._whole.get(file.name)
        if whole is None or whole.end != begin:
            whole = WholeBlocks(file.name)
        if size <= begin:
            return begin, False
        if whole.end < begin:
            whole.look(file.open, begin)
        was_sound = whole.damage is None
        has_more = whole.look(file.open, size, most)
        if was_sound and whole.damage is not None:
            _LOGGER.warning(
                "%s: stopped reading at byte %d: %s", file.name, whole.end, whole.damage
            )
        self._whole[file.name] = whole
        return max(begin, whole.end), has_more

    def _check_gone(self, start: Mapping[str, int], there: set[str]) -> None:
        for name, begin in start.items():
            if name in there:
                continue
            self._whole.pop(name, None)
            if self._sizes.get(name, 0) > begin:
                self._lose(name, f"the file no longer exists, and was read only up to byte {begin}")

    def _is_cut(self, file: InputFile, begin: int) -> bool:
        if file.size >= begin:
            return False
        self._lose(file.name, f"the file has {file.size} bytes, but was read up to byte {begin}")
        return True

    def _lose(self, name: str, reason: str) -> None:
        if self._fails_on_loss:
            reason = f"{reason}; to continue with the remaining data, set failOnDataLoss to false"
            raise CaptureError(reason, source=name).under(DATA_LOST)
        _LOGGER.warning("%s: %s", name, reason)

    def stretches(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Stretch]:
        """Return the bytes added to files between two offsets, as one stretch for each task."""
        begin, stop = dict(start), dict(end)
        if self._last_stretches is not None and self._last_stretches[:2] == (begin, stop):
            return self._last_stretches[2]
        if self._at != begin and not self._go_on_from(begin):
            self._state, self._positions = FollowerState(self._request, self._row_filter), {}
            for _ in self._advance({}, begin, makes_stretches=False):
                pass
        # If this fails, the state must be rebuilt.
        self._at = None
        stretches = list(self._advance(begin, stop))
        self._at = stop
        self._positions = {name: self._positions[name] for name in stop if name in self._positions}
        self._last_stretches = begin, stop, stretches
        self._keep_state(begin, stop)
        return stretches

    def _keep_state(self, start: FileOffsets, end: FileOffsets) -> None:
        """Save the state at the end of a batch for another follower."""
        if self._states is None:
            return
        files = {
            name: FollowedFile(read, self._files.begins_us(name), self._positions.get(name))
            for name, read in end.items()
        }
        try:
            self._states.keep(start, end, SavedStream(files, self._state).to_bytes())
        except (SavedStateError, StorageError) as error:
            _LOGGER.warning(
                "cannot save the state of the stream, so a restart reads the files again: %s",
                error,
            )

    def _go_on_from(self, offset: Mapping[str, int]) -> bool:
        """Load the saved state at an offset. Return whether a usable state exists."""
        if self._states is None or not offset or offset == self._refused:
            return False
        try:
            data = self._states.read(offset)
            if data is None:
                raise SavedStateError("no state was saved for this offset")  # noqa: TRY301 - reported like other errors
            saved = SavedStream.from_bytes(data, self._request, self._row_filter)
            if saved.offset != offset:
                raise SavedStateError("the state belongs to another offset")  # noqa: TRY301 - as above
            self._check_complete(saved)
        except (SavedStateError, StorageError) as error:
            self._refused = dict(offset)
            _LOGGER.warning(
                "cannot use the saved state of the stream, so the files are read again: %s",
                error,
            )
            return False
        self._state, self._at = saved.state, dict(offset)
        self._positions = {
            name: file.position for name, file in saved.files.items() if file.position is not None
        }
        self._files.know(saved.files)
        self._whole |= {
            name: whole
            for name, position in self._positions.items()
            if (whole := _whole_up_to(position, offset[name])) is not None
        }
        return True

    def _check_complete(self, saved: SavedStream) -> None:
        """Raise `SavedStateError` if a state lacks bytes that files may still contain."""
        if saved.is_complete:
            return
        sizes = {file.name: file.size for file in self._list_files()}
        if all(sizes.get(name, -1) >= file.read for name, file in saved.files.items()):
            raise SavedStateError("the state does not include bytes that may be credentials")
        _LOGGER.warning(
            "the saved state of the stream does not include bytes that may be credentials, and "
            "some files are gone, so these bytes are missing from unfinished frames"
        )

    def _last_known(self) -> FileOffsets:
        """Return the last offset that was read, or otherwise the offset of the last saved state."""
        if self._states is not None and self._at == {} and self._last_saved is None:
            self._last_saved = {}
            # Otherwise this error is raised when the stream continues.
            with suppress(SavedStateError, StorageError):
                data = self._states.read(None)
                if data is not None:
                    saved = SavedStream.from_bytes(data, self._request, self._row_filter)
                    self._files.know(saved.files)
                    self._last_saved = saved.offset
        known = self._at
        if not known:
            sizes = {file.name: file.size for file in self._list_files()}
            known = {
                name: read
                for name, read in (self._last_saved or {}).items()
                if read <= sizes.get(name, -1)
            }
        return {**known, **{name: whole.end for name, whole in self._whole.items()}}

    def _forget_last(self) -> None:
        """Forget the last saved state, because this stream does not continue from it."""
        if self._last_saved:
            self._files, self._last_saved = _FollowedFiles(self._request), {}

    def _list_files(self) -> Iterator[InputFile]:
        for path in self._paths:
            yield from _listed(path)

    def _advance(
        self, start: FileOffsets, end: FileOffsets, *, makes_stretches: bool = True
    ) -> Iterator[Stretch]:
        """Move the state from one offset to another."""
        files = {file.name: file for file in self._files.find(self._paths)}
        for name in end.keys() - files.keys():
            if end[name] > start.get(name, 0):
                self._lose(
                    name, f"the file no longer exists, but must be read up to byte {end[name]}"
                )
        builder = _StretchBuilder(self._request, self._state, makes_stretches=makes_stretches)
        for name, file in files.items():
            stop = end.get(name, 0)
            if stop <= start.get(name, 0) or self._is_cut(file, stop):
                continue
            position = self._positions.get(name)
            if position is None or not position.is_end:
                part = FilePart(file, position, FilePosition(name, stop))
                self._positions[name] = yield from builder.read(part)
        yield from builder.finish()


SAMPLED: Final = (
    "the file states that it contains only a part of the traffic; to read the file, set "
    "acceptSampled to true (all counts then cover only this part)"
)
"""The reason why a capture of only a part of the traffic is not read by default."""


class _FollowedFiles:
    """The files in some paths, in the order in which they are read."""

    def __init__(self, request: AnalysisRequest) -> None:
        self._skips = request.skip_unreadable
        self._takes_sampled = request.takes_sampled
        # For each file: its size at the last check, and its beginning. None means that the file is
        # not a capture.
        self._begins: dict[str, tuple[int, int | None]] = {}

    def know(self, files: Mapping[str, FollowedFile]) -> None:
        """Add the beginnings of files from a follower that has already examined them."""
        self._begins |= {
            name: (file.read, file.begins_us) for name, file in files.items() if file.begins_us
        }

    def begins_us(self, name: str) -> int | None:
        """Return the time at which a file begins, if that is known."""
        return self._begins.get(name, (0, None))[1]

    def find(self, paths: Iterable[str | Path]) -> list[InputFile]:
        """Return the files that have begun.

        Raises `CaptureError` for a file that is not a capture.
        """
        files = {file.name: file for path in paths for file in _listed(path)}
        self._look([file for file in files.values() if not self._is_known(file)])
        times = {name: self._begins[name][1] for name in files if name in self._begins}
        begun = [(first_us, name) for name, first_us in times.items() if first_us is not None]
        return [files[name] for _, name in sorted(begun)]

    def _is_known(self, file: InputFile) -> bool:
        size, first_us = self._begins.get(file.name, (-1, 0))
        return bool(first_us) or size == file.size or file.size < _BEGUN_BYTES

    def _look(self, files: list[InputFile]) -> None:
        for look in _looks(files):
            file = look.source
            if look.error is not None:
                if not self._skips:
                    raise look.error
                _LOGGER.warning("%s: cannot be read: %s", file.name, look.error.reason)
            if look.marks.part is not None and not self._takes_sampled:
                raise CaptureError(SAMPLED, source=file.name)
            first_us = None if look.error is not None else look.first_us
            self._begins[file.name] = file.size, first_us


def _looks(files: list[InputFile]) -> Iterator[FileLook]:
    """Yield the results for files, except removed files, which the next listing will omit."""
    for first in range(0, len(files), _LOOKED_AT_ONCE):
        some = files[first : first + _LOOKED_AT_ONCE]
        try:
            yield from look_at_files(some)
        except StorageError:
            for file in some:
                with suppress(StorageError):
                    yield from look_at_files([file])


def _whole_up_to(position: FilePosition, read: int) -> WholeBlocks | None:
    """Return where a file's whole blocks end, if this is known without reading the file."""
    head = position.head
    if head is None or position.offset != read:
        return None
    return WholeBlocks(position.file, read, order=head.order, is_pcap=isinstance(head, PcapHead))


def _listed(path: str | Path) -> list[InputFile]:
    try:
        files = list_captures([path])
    except CaptureError:
        # The first file does not exist yet.
        if scheme_of(str(path)) or not local_path(str(path)).is_dir():
            raise
        files = []
    return [file for file in files if not file.name.endswith(COMPRESSED)]


class _StretchBuilder:
    """Build stretches from parts that are read one after the other."""

    def __init__(
        self, request: AnalysisRequest, state: FollowerState, *, makes_stretches: bool
    ) -> None:
        self._request = request
        self._state = state
        self._makes_stretches = makes_stretches
        self._held: list[SegmentColumns] = []
        self._size = 0
        self._start_state: bytes | None = None
        self._parts: list[FilePart] = []

    def read(self, part: FilePart) -> Generator[Stretch, None, FilePosition]:
        """Read a part and return its end."""
        reader, here = _reader(self._request, part), part.start
        for item in reader:
            if isinstance(item, FileNotes):
                _report(item)
                continue
            self._hold(item)
            stop = reader.position
            if self._size >= self._request.range_bytes and stop is not None:
                self._parts.append(replace(part, start=here, stop=stop))
                yield from self.finish()
                here = stop
        end = reader.position or part.stop
        if here is None or here.offset < part.stop.offset:
            self._parts.append(replace(part, start=here))
        return end

    def _hold(self, segments: SegmentColumns) -> None:
        self._size += segments.weight
        if self._start_state is not None or not self._makes_stretches:
            self._state.take(segments)
        else:
            self._held.append(segments)
            if self._size > HELD_BYTES:
                self._begin(None)

    def _begin(self, keys: set[str] | None) -> None:
        self._start_state = compress(self._state.pickled(keys))
        for segments in self._held:
            self._state.take(segments)
        self._held = []

    def finish(self) -> Iterator[Stretch]:
        """Yield the part since the last stretch, if it contains any segments."""
        if self._makes_stretches and (self._held or self._start_state is not None):
            if self._start_state is None:
                keys = (
                    segments.keys[key]
                    for segments in self._held
                    for key in set(segments.key.tolist())
                )
                self._begin(set(keys))
            yield Stretch(self._start_state or b"", tuple(self._parts))
        self._start_state, self._parts, self._size = None, [], 0


def _report(notes: FileNotes) -> None:
    """Warn about packets in a part that should contain segments but do not."""
    if notes.error is not None:
        raise notes.error
    for reason, packets in notes.unreadable.packets.items():
        _LOGGER.warning("%s: %d packets cannot be read: %s", notes.file, packets, reason)
