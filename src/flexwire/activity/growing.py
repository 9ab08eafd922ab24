"""Growing capture files: read the segments that were added since the last time.

A file is read up to its last complete block, and the next reading continues from there. A block is
not read until it has been completely written. If a file is damaged, the rest of the file is not
read, and a note states the reason. A gzip-compressed file is read only once.
"""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.arguments import refuse, to_list
from flexwire.capture.files.blocks import WholeBlocks, read_file_head
from flexwire.capture.files.comments import part_in
from flexwire.capture.files.links import (
    Skipped,
    UnreadablePacketError,
    read_segment,
    read_segments,
    unreadable_packet,
)
from flexwire.capture.files.packets import Segment, UnreadableBytes
from flexwire.capture.files.reading import (
    DamagedError,
    ForwardReader,
    begin_blocks,
    open_capture,
    resume_blocks,
)
from flexwire.errors import CaptureError, StorageError
from flexwire.storage.file_search import capture_paths
from flexwire.storage.filesystems import reason_of
from flexwire.storage.input_file import LocalRange

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from flexwire.capture.files.reading import CaptureBlocks, Head

_GONE: Final = (FileNotFoundError, NotADirectoryError)
_MOST_NOTES: Final = 1000
_BEGUN_BYTES: Final = 4  # enough to distinguish a capture from other files


@dataclass(slots=True)
class _GrowingFile:
    """A capture file, and the offset up to which it was read.

    ``first_us`` is None until the file contains a packet.
    """

    path: Path
    inode: tuple[int, int]
    whole: WholeBlocks
    head: Head | None = None
    first_us: int | None = None
    is_compressed: bool = False
    is_over: bool = False
    error: CaptureError | None = None
    unreadable: int = 0


class GrowingCaptures:
    """Read the captures in the given paths repeatedly, while they grow and new captures appear.

    ``paths`` are files, directories and patterns. ``notes`` contains at most 1,000 messages for the
    user, each message only once per file.
    """

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths = to_list(paths, "paths", "a list of paths")
        for path in self._paths:
            if not isinstance(path, str | Path):
                raise refuse("paths", "a str or Path", path)
        self._files: dict[Path, _GrowingFile] = {}
        self.notes: list[str] = []

    def poll(self, *, must_exist: bool = False) -> Iterator[Segment]:
        """Yield the added segments, file by file, in the order of the files' first packets.

        A directory without captures yields no segments. Raises `CaptureError` for a path that does
        not exist. With ``must_exist``, also raises `CaptureError` if no file is a capture. Raises
        `StorageError` for an object store.
        """
        paths = self._list(must_exist=must_exist)
        self._files = {path: file for path, file in self._files.items() if path in paths}
        for path in paths:
            self._look(path)
        errors = [file.error for file in self._files.values()]
        if must_exist and errors and errors[0] is not None and all(errors):
            raise errors[0]
        begun = [file for file in self._files.values() if file.first_us is not None]
        for file in sorted(begun, key=lambda file: (file.first_us or 0, file.path)):
            if not file.is_over:
                yield from self._read(file)

    def unfinished(self) -> list[str]:
        """Return a note for each file that ends within a packet.

        Call this method when files no longer grow.
        """
        texts = []
        for file in self._files.values():
            with suppress(StorageError):
                left = 0 if file.is_over else _size(file.path) - file.whole.end
                if left > 0:
                    texts.append(f"{file.path}: the last {left} bytes are not a complete packet")
        return texts

    def _list(self, *, must_exist: bool) -> dict[Path, None]:
        paths: dict[Path, None] = {}
        for given in self._paths:
            try:
                paths |= dict.fromkeys(capture_paths([given]))
            except CaptureError:
                # Either the first file does not exist yet, or the last file was removed.
                if must_exist or not Path(given).is_dir():
                    raise
        return paths

    def _look(self, path: Path) -> None:
        """Record a new file, or a known file name that now refers to a different file."""
        try:
            status = path.stat()
        except _GONE:
            self._files.pop(path, None)
            return
        file = self._files.get(path)
        if file is None or file.inode != (status.st_dev, status.st_ino):
            file = _GrowingFile(path, (status.st_dev, status.st_ino), WholeBlocks(str(path)))
            self._files[path] = file
        elif status.st_size < file.whole.end and not file.is_over:
            self._give_up(file, f"the file is shorter than the {file.whole.end} bytes read before")
        if file.first_us is None and not file.is_over and status.st_size:
            self._begin(file, status.st_size)

    def _begin(self, file: _GrowingFile, size: int) -> None:
        name = str(file.path)
        try:
            with open_capture(name) as (content, is_compressed):
                part = part_in(content)
            head = None if is_compressed else read_file_head(name)
        except CaptureError as error:
            # If a file is too short to be recognized, its writer has only just started.
            if size >= _BEGUN_BYTES and file.path.exists():
                file.error = error
                self._give_up(file, error.reason)
            return
        if part is not None:
            self._note(f"{name}: the file states that it contains only a part of the traffic")
        if is_compressed:
            file.is_compressed, file.first_us = True, 0
        elif head is not None:
            file.first_us = head.first_us
        else:
            self._check(file)

    def _check(self, file: _GrowingFile) -> None:
        """Record damage before the first packet.

        If there is no damage, the first packet has not been written yet.
        """
        try:
            self._grow(file)
        except StorageError:
            return
        # The same blocks will be read again later.
        file.whole = WholeBlocks(str(file.path), damage=file.whole.damage)

    def _read(self, file: _GrowingFile) -> Iterator[Segment]:
        try:
            if file.is_compressed:
                file.is_over = True
                yield from self._segments(file, read_segments(file.path))
            else:
                yield from self._read_on(file)
        except DamagedError as damage:
            self._give_up(file, damage.reason)
        except (CaptureError, StorageError) as error:
            if file.path.exists():
                self._give_up(file, str(error))

    def _grow(self, file: _GrowingFile) -> int:
        """Find the end of a file's complete part, and return where the previous reading ended."""
        begin, size = file.whole.end, _size(file.path)
        file.whole.look(lambda start: _open_part(file.path, start, size), size)
        if file.whole.damage is not None:
            self._give_up(file, file.whole.damage)
        return begin

    def _read_on(self, file: _GrowingFile) -> Iterator[Segment]:
        begin = self._grow(file)
        if file.whole.end == begin:
            return
        with _open_part(file.path, begin, file.whole.end) as content:
            reader = ForwardReader(str(file.path), content)
            blocks = begin_blocks(reader) if file.head is None else resume_blocks(reader, file.head)
            yield from self._segments(file, segments_of(str(file.path), blocks))
            file.head = blocks.head

    def _segments(
        self, file: _GrowingFile, items: Iterable[Segment | UnreadableBytes]
    ) -> Iterator[Segment]:
        for item in items:
            if isinstance(item, Segment):
                yield item
                continue
            file.unreadable += 1
            if file.unreadable == 1:
                self._note(f"{file.path}, byte {item.offset}: cannot be read: {item.reason}")

    def _note(self, text: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(text)

    def _give_up(self, file: _GrowingFile, reason: str) -> None:
        file.is_over = True
        self._note(f"{file.path}: stopped reading: {reason}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise _cannot_read(path, reason_of(error)) from error


def _open_part(path: Path, start: int, stop: int) -> io.BufferedReader:
    """Open part of a file. The file's size and modification time can change during reading."""
    try:
        file = io.FileIO(path)
    except OSError as error:
        raise _cannot_read(path, reason_of(error)) from error
    file.seek(start)
    part = LocalRange(file, stop - start, changes_freely, partial(_cannot_read, path))
    return io.BufferedReader(part)


def changes_freely(_: os.stat_result) -> None:
    """Accept a changed file, because bytes that have already been read remain valid."""


def _cannot_read(path: Path, reason: str) -> StorageError:
    return StorageError(reason, url=str(path), tried="read")


def segments_of(name: str, blocks: CaptureBlocks) -> Iterator[Segment | UnreadableBytes]:
    """Yield the segments in the given blocks, and any blocks without a readable segment."""
    for packet in blocks:
        if packet is None:
            continue
        if isinstance(packet, UnreadableBytes):
            yield packet
            continue
        with suppress(Skipped):
            try:
                yield read_segment(packet)
            except UnreadablePacketError as error:
                yield unreadable_packet(name, packet, error)
