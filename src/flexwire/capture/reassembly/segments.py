"""Read capture files, and return their TCP segments in columns, chunk by chunk.

The kernel reads the packets that it can read with certainty. Every other block is read by the
objects of `flexwire.capture.files`. The segments and the notes are therefore the same as those of
`flexwire.capture.files.links`, and in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.files.links import (
    Skipped,
    UnreadablePacketError,
    read_segment,
    unreadable_packet,
)
from flexwire.capture.files.packets import Segment, UnreadableBytes
from flexwire.capture.files.reading import (
    STEP_BYTES,
    DamagedError,
    ForwardReader,
    PcapngBlocks,
    begin_blocks,
    open_capture,
    resume_blocks,
)
from flexwire.capture.reassembly.packet_scan import (
    BEGINS,
    FULL,
    PIECE,
    REFUSED,
    SHORT,
    FileNotes,
    FileWindow,
    PacketScan,
)
from flexwire.errors import CaptureError
from flexwire.extras import needed_by

with needed_by("flexwire.capture.reassembly", "columnar"):
    import numpy as np

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from flexwire.capture.files.packets import CapturedPacket
    from flexwire.capture.files.reading import Head, Opener
    from flexwire.columnar.arrays import NumpyArray


__all__ = ["OF_EACH", "FileNotes", "FileOrigins", "FilePosition", "SegmentColumns", "SegmentReader"]

CHUNK_BYTES = 32 * 1024 * 1024
_HEADERS = 64
OF_EACH = (
    *("key", "is_high", "timestamp_us", "sequence", "acknowledgment", "flags"),
    *("payload_at", "payload_size", "missing", "begins"),
)
"""The columns with one value for each segment."""


class ChunkTotals(NamedTuple):
    """The number of segments in a chunk, and the number of bytes in the segments' payloads."""

    rows: int
    payload_bytes: int

    @property
    def weight(self) -> int:
        """The approximate number of bytes that the chunk occupies in a file."""
        return self.payload_bytes + _HEADERS * self.rows


class FileOrigins(NamedTuple):
    """If there are several files, the file of each row, as an index into ``files``."""

    files: Sequence[str]
    of_row: NumpyArray

    def take(self, rows: NumpyArray) -> FileOrigins:
        """Return the file origins of some rows."""
        return FileOrigins(self.files, self.of_row[rows])


@dataclass(frozen=True, slots=True, eq=False)
class SegmentColumns:
    """The TCP segments of a chunk of a capture file, in the file's order.

    All arrays except ``data`` contain one value for each segment. ``key`` is an index into
    ``keys``, a list that all chunks of a reader share and that only grows. ``is_high`` is true if
    the sender is the end after the "|". The payload is
    ``data[payload_at : payload_at + payload_size]``. ``begins`` is an index into `BEGINS`.
    ``first_ordinal`` is the number of segments and unreadable packets that precede the chunk in the
    file. Unreadable packets among the chunk's segments precede the rows in ``unreadable_before``.

    If the segments come from several files, ``origins`` contains the file of each segment, and
    ``file`` is not used. In this case, ``clock_us`` contains the clock of the file at each segment.
    If the segments belong to a share of the connections, ``of_all`` contains the totals of the
    chunk with the segments of all shares.
    """

    file: str
    first_ordinal: int
    unreadable_before: Sequence[int]
    keys: list[str]
    data: NumpyArray
    key: NumpyArray
    is_high: NumpyArray
    timestamp_us: NumpyArray
    sequence: NumpyArray
    acknowledgment: NumpyArray
    flags: NumpyArray
    payload_at: NumpyArray
    payload_size: NumpyArray
    missing: NumpyArray
    begins: NumpyArray
    origins: FileOrigins | None = field(default=None, kw_only=True)
    clock_us: NumpyArray | None = field(default=None, kw_only=True)
    of_all: ChunkTotals | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.key)

    @property
    def weight(self) -> int:
        """The approximate number of bytes that the chunk occupies in the file."""
        return self.totals.weight

    @property
    def totals(self) -> ChunkTotals:
        """The number of segments in the chunk, and the number of bytes in their payloads."""
        return self.of_all or ChunkTotals(len(self), int(self.payload_size.sum()))

    @property
    def ordinal(self) -> NumpyArray:
        """The number of each segment among its file's segments and unreadable packets."""
        steps = np.ones(len(self) + 1, np.int64)
        steps[0] = self.first_ordinal
        np.add.at(steps, np.array(self.unreadable_before, np.int64), 1)
        return np.cumsum(steps)[:-1]

    def take(self, rows: NumpyArray) -> SegmentColumns:
        """Return some of the segments, without their ordinals."""
        some = {name: getattr(self, name)[rows] for name in OF_EACH}
        origins = None if self.origins is None else self.origins.take(rows)
        clock_us = None if self.clock_us is None else self.clock_us[rows]
        return replace(
            self, unreadable_before=(), origins=origins, clock_us=clock_us, of_all=None, **some
        )

    def segment(self, row: int) -> Segment:
        """Return the segment in a row, as `flexwire.capture.read_segments` returns it."""
        source, destination = self.keys[self.key[row]].split("|")
        if self.is_high[row]:
            source, destination = destination, source
        at = int(self.payload_at[row])
        return Segment(
            int(self.timestamp_us[row]),
            source,
            destination,
            int(self.sequence[row]),
            int(self.acknowledgment[row]),
            int(self.flags[row]),
            self.data[at : at + int(self.payload_size[row])].tobytes(),
            int(self.missing[row]),
            BEGINS[self.begins[row]],
        )


class FilePosition(NamedTuple):
    """A place between two blocks of a file, where a reader can start or stop.

    ``head`` contains the facts from earlier blocks that are needed to read later blocks.
    ``unreadable`` and ``skipped`` are the reasons that the file's notes already count separately.
    """

    file: str
    offset: int = 0
    ordinal: int = 0
    head: Head | None = None
    unreadable: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    is_end: bool = False


class SegmentReader:
    """Return the segments of capture files, chunk by chunk, and the notes after each file.

    ``start`` and ``stop`` are positions that another reader of the same files has returned. Only
    the part between these positions is read, and its keys are numbered anew. Use `FileNotes.add` to
    add the notes about a part of a file to those about the part before it. For a file that cannot
    be opened or is not a capture, the notes have an ``error``. A sample of unreadable bytes is kept
    only with ``show_credentials``, because the sample may contain credentials.

    ``opener`` is called with the name of a file and the byte to start at, and returns an object
    with a method ``read``. Without ``opener``, local files are read. A ``scan`` that was used
    before remembers the flows of the files that it has read.
    """

    def __init__(
        self,
        files: Sequence[str],
        *,
        chunk_bytes: int = CHUNK_BYTES,
        start: FilePosition | None = None,
        stop: FilePosition | None = None,
        opener: Opener | None = None,
        show_credentials: bool = False,
        scan: PacketScan | None = None,
    ) -> None:
        self._files = files
        self._chunk_bytes = chunk_bytes
        self._start = start
        self._stop = stop
        self._opener = opener
        self._show_credentials = show_credentials
        self._scan = PacketScan() if scan is None else scan
        self._reading: _FileReading | None = None
        self._position: FilePosition | None = start

    @property
    def keys(self) -> list[str]:
        """The connection keys, in the order in which they first appeared."""
        return self._scan.keys.keys

    @property
    def position(self) -> FilePosition | None:
        """The end of the returned segments. None before the first file or in a gzip file."""
        return self._position if self._reading is None else self._reading.position

    def __iter__(self) -> Iterator[SegmentColumns | FileNotes]:
        """Continue to read the files."""
        return self.chunks()

    def stop(self) -> None:
        """End the file at `position`.

        After that, only the notes about the returned segments follow.
        """
        if self._reading is not None:
            self._reading.stop()

    def chunks(self) -> Generator[SegmentColumns | FileNotes]:
        """Continue to read the files. Close the generator if you do not read everything."""
        start, stop = self._start, self._stop
        first = 0 if start is None else self._files.index(start.file) + start.is_end
        end = len(self._files) if stop is None else self._files.index(stop.file) + 1
        for number in range(first, end):
            file = self._files[number]
            here = start if start is not None and start.file == file else FilePosition(file)
            until = stop if stop is not None and stop.file == file else None
            notes = FileNotes(file)
            try:
                with open_capture(file, self._opener, here.offset) as (content, is_compressed):
                    last = None if until is None or until.is_end else until.offset
                    piece = STEP_BYTES if is_compressed else PIECE
                    window = FileWindow(content, self._chunk_bytes, here.offset, last, piece)
                    reading = _FileReading(self._scan, window, here, notes)
                    reading.can_be_cut = not is_compressed
                    reading.keeps_samples = self._show_credentials
                    self._reading = reading
                    yield from reading.chunks()
                    self._position = reading.position
            except CaptureError as error:
                notes.error = error
                self._position = FilePosition(file, is_end=True)
            self._reading = None
            yield notes


class _FileReading:
    """Read a file, or a part of a file."""

    def __init__(
        self, scan: PacketScan, window: FileWindow, start: FilePosition, notes: FileNotes
    ) -> None:
        self._scan = scan
        self._window = window
        self._file = start.file
        self._notes = notes
        self.can_be_cut = True
        self.keeps_samples = False
        self._ordinal = start.ordinal  # The ordinal of the chunk's first packet.
        self._unreadable_before: list[int] = []
        self._is_known = False  # True if the kernel has all the facts that it needs to start.
        self._is_read = False
        # The payload of a packet that is longer than a chunk is stored here.
        self._beyond = b""
        self._source = ForwardReader(start.file, window)
        self._source.offset = window.offset
        if start.head is None:
            self._blocks = begin_blocks(self._source)
        else:
            self._blocks = resume_blocks(self._source, start.head)
        self._steps = iter(self._blocks)
        notes.unreadable.know(start.unreadable)
        notes.skipped.know(start.skipped)
        scan.begin_file()
        scan.begin_rows(window.room)
        self._know()

    @property
    def position(self) -> FilePosition | None:
        """The place of the next block if a reader can start there, and None otherwise."""
        if self._is_read:
            return FilePosition(self._file, is_end=True)
        if not self.can_be_cut:
            return None
        if not self._is_begun:
            return FilePosition(self._file)
        self._tell()
        return FilePosition(
            self._file,
            self._window.offset,
            self._ordinal,
            self._blocks.head,
            tuple(self._notes.unreadable.packets),
            tuple(self._notes.skipped.packets),
        )

    @property
    def _is_begun(self) -> bool:
        """True if the file's head was read. A reader that starts within the file needs the head."""
        return self._blocks.head is not None

    def stop(self) -> None:
        """Stop reading."""
        self._window.stop()

    def chunks(self) -> Iterator[SegmentColumns]:
        """Continue to read, and count everything that is not a segment in the notes."""
        window, scan, notes = self._window, self._scan, self._notes
        # If a part ends within the head of the file, it includes the whole head, and the next part
        # begins after the head.
        while not self._is_read and not (window.is_stopped and self._is_begun):
            status = scan.run(window) if self._is_known else REFUSED
            if status == SHORT and window.fill():
                continue
            is_full = status == SHORT and window.is_full and window.position > 0
            if is_full or status == FULL or self._beyond:
                yield from self._chunk()
            elif not (window.is_stopped and self._is_begun):
                self._step()
        yield from self._chunk()
        notes.packets += scan.tell_all(notes.skipped)
        notes.unreadable, notes.skipped = notes.unreadable.counted(), notes.skipped.counted()

    def _step(self) -> None:
        """Read one block with the Python objects."""
        self._source.offset = self._window.offset
        self._tell()
        try:
            item = next(self._steps)
        except StopIteration:
            self._is_read = True
            return
        except DamagedError as damage:
            self._is_read = True
            item = damage.unreadable(self._source)
        if isinstance(item, UnreadableBytes):
            self._count(item)
        elif item is not None:
            self._take(item)
        self._know()

    def _tell(self) -> None:
        """Pass new facts from the kernel to the objects."""
        self._scan.tell_new(self._notes.skipped)
        if isinstance(self._blocks, PcapngBlocks) and self._is_known:
            self._blocks.tell_time(self._scan.last_us)

    def _know(self) -> None:
        """Pass new facts from the objects to the kernel."""
        if isinstance(self._blocks, PcapngBlocks):
            if self._blocks.section is not None:
                self._scan.know_section(self._blocks.section)
                self._is_known = True
        elif self._blocks.head is not None:
            self._scan.know_head(self._blocks.head)
            self._is_known = True

    def _take(self, packet: CapturedPacket) -> None:
        self._notes.packets += 1
        try:
            segment = read_segment(packet)
        except Skipped as skipped:
            self._notes.skipped.add(str(skipped), 1)
            return
        except UnreadablePacketError as error:
            self._count(unreadable_packet(self._file, packet, error))
            return
        at = self._window.put(segment.payload)
        if at is None:
            at, self._beyond = len(self._window.buffer), segment.payload
        # This number precedes the key of the current segment, because keys are numbered in the
        # order of their appearance.
        self._scan.flows.name()
        self._scan.put(segment, at)

    def _count(self, item: UnreadableBytes) -> None:
        self._notes.unreadable.add(item.reason, 1, item.data if self.keeps_samples else None)
        self._unreadable_before.append(self._scan.rows)

    def _chunk(self) -> Iterator[SegmentColumns]:
        """Yield the rows as a chunk. The next chunk begins with the bytes that are left."""
        scan, window = self._scan, self._window
        rows, columns, data = scan.rows, scan.columns(), window.data()
        if self._beyond:
            data = np.concatenate([window.buffer, np.frombuffer(self._beyond, np.uint8)])
            self._beyond = b""
        ordinal, unreadable_before = self._ordinal, self._unreadable_before
        self._ordinal += rows + len(unreadable_before)
        self._unreadable_before = []
        if not self._is_read:
            window.go_on(with_new_buffer=rows > 0)
            scan.begin_rows(window.room)
        if rows:
            time, flow, *others = columns
            key, is_high = scan.keys_of(flow)
            yield SegmentColumns(
                self._file,
                ordinal,
                unreadable_before,
                scan.keys.keys,
                data,
                key,
                is_high,
                time,
                *others,
            )
