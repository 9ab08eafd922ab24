"""Write the traffic of a proxy as pcapng files that Wireshark can open."""

from __future__ import annotations

import os
import secrets
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Self

from flexwire.capture.files.packets import FRAME_COMMENTS, SegmentHeaders, SocketAddress, endpoints
from flexwire.capture.files.retention import NO_LIMIT, FinishedFile, KeepLimit, KeptFiles
from flexwire.closeable import Closeable
from flexwire.errors import CaptureError
from flexwire.storage.local import (
    create_private_file,
    lock_while_open,
    make_private_directory,
)
from flexwire.wire.packet_layout import (
    ENHANCED_PACKET,
    INTERFACE,
    OPTION_COMMENT,
    OPTION_TSRESOL,
    SECTION,
)
from flexwire.wire.segment_layout import ACK, FIN, PSH, RST, SYN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from io import FileIO
    from pathlib import Path

    from flexwire.capture.files.packets import Direction

_Bytes = bytes | memoryview
# The headers, the payload of the TCP segment, the number of bytes missing at the payload's end, and
# the block's options.
_Packet = tuple[bytes, memoryview, int, bytes]

SEGMENT_BYTES = 60 * 1024
"""The number of payload bytes in one written segment, less than the 65,495 that an IP packet can
hold."""

UNACKNOWLEDGED_BYTES = 1024 * 1024
"""After this many bytes in one direction, the receiver's acknowledgment is written as a packet of
its own.
"""

LINKTYPE_RAW = 101
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_UNKNOWN_LENGTH = 0xFFFFFFFFFFFFFFFF
_OPTION_USERAPPL = 4
_MICROSECONDS = 6
# The block's type and length, the interface, both halves of the time, and the captured and the
# original length.
_PACKET_HEAD = struct.Struct("<7I")
_BLOCK_END = struct.Struct("<I")
_PACKETS_TOGETHER = 17  # Together these pieces hold 1 MiB of a long frame.
# Pieces of at least this many bytes are written separately. Joining shorter pieces is faster.
_LONG = 16 * 1024
_NOTHING = memoryview(b"")
_PACKET_OVERHEAD = 80 + 64  # an upper bound for the block, options, and IPv6 and TCP headers
_LENGTH = struct.Struct(">i")
# The largest number of digits in a file's number. Files with longer numbers were written by other
# programs and are ignored.
_MOST_DIGITS = 9


def block(kind: int, body: bytes) -> bytes:
    """Return a pcapng block."""
    length = struct.pack("<I", 12 + len(body))
    return b"".join((struct.pack("<I", kind), length, body, length))


def option(code: int, value: bytes) -> bytes:
    """Return an option of a block. Code 0 ends the options."""
    return struct.pack("<HH", code, len(value)) + value + b"\x00" * (-len(value) % 4)


_NO_MORE_OPTIONS = option(0, b"")
_BEGINS_FRAME = {
    direction: option(OPTION_COMMENT, comment) for comment, direction in FRAME_COMMENTS.items()
}


def _file_header(comments: Sequence[bytes]) -> bytes:
    section = struct.pack("<IHHQ", _BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
    section += b"".join(option(OPTION_COMMENT, comment) for comment in comments if comment)
    section += option(_OPTION_USERAPPL, b"flexwire") + _NO_MORE_OPTIONS
    # A snaplen of 0 means that packets are never truncated.
    interface = struct.pack("<HHI", LINKTYPE_RAW, 0, 0)
    interface += option(OPTION_TSRESOL, bytes([_MICROSECONDS])) + _NO_MORE_OPTIONS
    return block(SECTION, section) + block(INTERFACE, interface)


def _packet_block(packet: _Packet, timestamp_us: int) -> tuple[_Bytes, ...]:
    headers, payload, missing, options = packet
    size = len(headers) + len(payload)
    padding = -size % 4
    length = _PACKET_HEAD.size + size + padding + len(options) + _BLOCK_END.size
    head = _PACKET_HEAD.pack(
        ENHANCED_PACKET,
        length,
        0,
        timestamp_us >> 32 & 0xFFFFFFFF,
        timestamp_us & 0xFFFFFFFF,
        size,
        size + missing,
    )
    return head + headers, payload, bytes(padding) + options + _BLOCK_END.pack(length)


def _write_whole(file: FileIO, pieces: Sequence[_Bytes]) -> int:
    """Write pieces one after the other, and return the number of written bytes."""
    size = left = sum(map(len, pieces))
    if size < _LONG:
        pieces = [b"".join(pieces)]
    while left:
        # An unbuffered write may write only some bytes, for instance when the disk becomes full.
        written = os.writev(file.fileno(), pieces)
        left -= written
        pieces = _after(pieces, written) if left else ()
    return size


def _after(pieces: Sequence[_Bytes], written: int) -> list[_Bytes]:
    """Return the pieces without the bytes that have already been written."""
    rest: list[_Bytes] = []
    for piece in pieces:
        if written < len(piece):
            rest.append(memoryview(piece)[written:])
        written = max(0, written - len(piece))
    return rest


def _is_deleted(file: FileIO) -> bool:
    try:
        return os.fstat(file.fileno()).st_nlink == 0
    except OSError:
        # A network file system may report a full disk through an error from `fstat`.
        return True


def _now_us() -> int:
    return time.time_ns() // 1000


class PcapngWriter(Closeable):
    """A directory of pcapng files ``tap-00001.pcapng``, ``tap-00002.pcapng``, … .

    A new file begins if the next frame, or a group of frames that arrived together, would make the
    current file larger than ``max_bytes``. A group is never split, so a group larger than that gets
    its own file. A new file gets the next free name: numbers continue after the highest number in
    the directory. Files from earlier runs are not changed, and several writers may use the same
    directory. Only the owner can read the files; if the writer creates the directory, only the
    owner can read that too. With a ``keep`` limit, the oldest finished files of this writer are
    removed to make room, and are listed in ``kept.removed``. ``comment`` is one comment or several,
    and each file contains all of them.

    In each file, the first payload of each stream has a comment that marks the beginning of a
    frame. The frames in each file can therefore be read without the other files. A stream without
    frames, such as TLS, has this comment only at its start.

    A frame is passed to the operating system before `TappedConnection.send` returns, so none of it
    is lost if the process is killed. ``copy_to`` is called with the blocks of each frame that is
    written. If a write fails, `CaptureError` is raised. The file then still ends with a complete
    block, and every later write tries again, in a new file if necessary. If a file is deleted while
    it is being written, the writer continues in another file and counts the deleted frames. A
    writer must not be used by several threads at once.
    """

    def __init__(
        self,
        directory: Path,
        *,
        prefix: str = "tap",
        max_bytes: int = 64 * 1024 * 1024,
        keep: KeepLimit | KeptFiles = NO_LIMIT,
        comment: bytes | tuple[bytes, ...] = (),
    ) -> None:
        self.directory = directory
        self.prefix = prefix
        self.max_bytes = max_bytes
        self.kept = keep if isinstance(keep, KeptFiles) else KeptFiles(keep)
        self.paths: list[Path] = []
        """The files that this writer has written and has not removed."""
        self.lost_frames = 0
        """The number of frames whose file was deleted or could not be closed."""
        self.copy_to: Callable[[bytes], None] | None = None
        self.told = 0
        """How often each stream was asked to mark its frames. This happens once in each file."""
        self._frames = 0  # the number of frames in the current file
        self._file: FileIO | None = None
        self._size = 0
        self._header = _file_header((comment,) if isinstance(comment, bytes) else comment)
        self._header_size = len(self._header)
        self._number = self._highest_number()
        self._next_file()

    def open_connection(
        self,
        client: tuple[str, int],
        server: tuple[str, int],
        *,
        timestamp_us: int | None = None,
        initial_sequences: tuple[int, int] | None = None,
        has_frames: bool = True,
    ) -> TappedConnection:
        """Write a three-way handshake and return the object that writes the connection's frames.

        Hosts must be IP addresses. A name raises `ValueError`. ``initial_sequences`` are the
        initial sequence numbers of the client and the server. By default, they are random, as in
        TCP, so that a second connection on the same ports does not look like a retransmission of
        the first. If ``has_frames`` is false, no comment marks the beginnings of frames.
        """
        near, far = endpoints(client, server)
        first, second = initial_sequences or (secrets.randbits(32), secrets.randbits(32))
        sides = _TappedSide.between(near, far, first), _TappedSide.between(far, near, second)
        for side in sides:
            side.sends_frames = has_frames
        connection = TappedConnection(self, *sides)
        connection.handshake(_now_us() if timestamp_us is None else timestamp_us)
        return connection

    @property
    def header(self) -> bytes:
        """The blocks at the beginning of each file."""
        return self._header

    def tell_again(self) -> None:
        """Mark the beginning of a frame again in each stream, in the same file."""
        self.told += 1

    def rotate(self) -> bool:
        """Continue in the next file, so that both files contain complete frames.

        Returns whether a file was finished. An empty file is not finished, but remains in use.
        Raises `CaptureError` if the next file cannot be created. The next frames are then written
        to the same file.
        """
        if self._file is None or self._size == self._header_size:
            return False
        self._next_file()
        return True

    def say(self, *comments: bytes) -> None:
        """Continue in the next file. Write these comments to that file and to all later ones.

        Raises the `CaptureError` of `rotate`. The comments of the files then do not change.
        """
        before = self._header
        self._header = _file_header(comments)
        self._header_size = len(self._header)
        try:
            self._next_file()
        except CaptureError:
            self._header, self._header_size = before, len(before)
            raise
        if self.copy_to is not None:
            self.copy_to(self._header)

    def write_packets(
        self, packets: Iterable[_Packet], estimate: int, timestamp_us: int, frames: int = 0
    ) -> None:
        """Append packets to the current file, or to the next one if ``estimate`` bytes do not fit.

        ``frames`` is the number of frames in the packets.
        """
        if self._file is None:
            raise CaptureError("the writer is closed", source=str(self.directory))
        # Each file must be readable without the others, and a reader can start only at the start of
        # a frame. Every frame is therefore completely in one file. Sequence numbers continue in the
        # next file, so that a reader of both files can join them without a gap. A repeated
        # handshake would start a new connection.
        is_full = self._size > self._header_size and self._size + estimate > self.max_bytes
        if is_full or _is_deleted(self._file):
            self._next_file()
        self._make_room(estimate)
        start = self._size
        try:
            # A system call takes longer than writing the bytes of a small packet, so several
            # packets are written together. A long frame is written in parts, which avoids a copy of
            # it in memory.
            pieces: list[_Bytes] = []
            copied: list[_Bytes] = []
            for number, packet in enumerate(packets, 1):
                pieces += _packet_block(packet, timestamp_us)
                if number % _PACKETS_TOGETHER == 0:
                    self._append(self._file, pieces)
                    copied += pieces if self.copy_to is not None else ()
                    pieces.clear()
            self._append(self._file, pieces)
        except OSError as error:
            self._cut(self._file, start)
            reason = f"cannot write: {error.strerror or error}"
            raise CaptureError(reason, source=str(self.paths[-1]), offset=start) from error
        self._frames += frames
        if self.copy_to is not None:
            self.copy_to(b"".join([*copied, *pieces]))

    def _make_room(self, estimate: int) -> None:
        for path in self.kept.make_room(self._size + estimate):
            self.paths.remove(path)

    def _append(self, file: FileIO, pieces: list[_Bytes]) -> None:
        self._size += _write_whole(file, pieces)

    def close(self) -> None:
        """Close the file. Connections that are still open end without a FIN, as in any capture."""
        if self._file is not None:
            file, self._file = self._file, None
            self._finish(file)

    def _highest_number(self) -> int:
        numbers = (
            path.stem[len(self.prefix) + 1 :]
            for path in self.directory.glob("*.pcapng")
            if path.stem.startswith(f"{self.prefix}-")
        )
        ours = (n for n in numbers if n.isascii() and n.isdigit() and len(n) <= _MOST_DIGITS)
        return max(map(int, ours), default=0)

    def _next_file(self) -> None:
        try:
            make_private_directory(self.directory)
            number, path, file = self._create()
        except OSError as error:
            reason = f"cannot create the next file: {error.strerror or error}"
            raise CaptureError(reason, source=str(self.directory)) from error
        try:
            _write_whole(file, [self._header])
        except OSError as error:
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                # A file without its header is harmless, because the next file gets another name.
                path.unlink()
            reason = f"cannot write: {error.strerror or error}"
            raise CaptureError(reason, source=str(path)) from error
        self.close()
        self._file = file
        self._size = self._header_size
        self._number = number
        self.told += 1
        self.paths.append(path)
        self.kept.begin(path)
        self._make_room(0)

    def _create(self) -> tuple[int, Path, FileIO]:
        """Create the next file whose name is free. Another writer may be using the directory."""
        number = self._number
        while True:
            number += 1
            path = self.directory / f"{self.prefix}-{number:05}.pcapng"
            with suppress(FileExistsError):
                # The file is unbuffered, because buffered content is lost when the process is
                # killed.
                file = create_private_file(path)
                lock_while_open(file)
                return number, path, file

    def _finish(self, file: FileIO) -> None:
        """Close a file. If the frames in the file cannot be written, count them as lost."""
        is_lost = _is_deleted(file)
        try:
            if not is_lost:
                status = os.fstat(file.fileno())
                inode = (status.st_dev, status.st_ino)
                self.kept.add(FinishedFile(self.paths[-1], inode, status.st_size, self._frames))
            file.close()
        except OSError:
            # Some file systems report a full disk only when a file is closed.
            is_lost = True
        if is_lost:
            self.lost_frames += self._frames
        self._frames = 0

    def _cut(self, file: FileIO, size: int) -> None:
        """Remove a partly written frame, so that the file ends with a complete block."""
        try:
            os.ftruncate(file.fileno(), size)
            file.seek(size)
        except OSError:
            # The incomplete end remains in the file, and the next frames go to a new file: readers
            # accept a file with an incomplete end, but no blocks after it.
            self._size = self._header_size + self.max_bytes
        else:
            self._size = size


@dataclass(slots=True)
class _TappedSide:
    """One endpoint of a captured connection."""

    headers: SegmentHeaders  # The headers of the segments that this endpoint sends.
    sequence: int  # The sequence number of the next byte that this endpoint sends.
    acknowledged: int = 0  # The number up to which the other endpoint has acknowledged bytes.
    packets: int = 0
    # true if all bytes that this endpoint has sent so far are complete frames
    sends_frames: bool = True
    # the value of the writer's ``told`` when this endpoint last marked the beginning of a frame
    told_in: int = 0

    @classmethod
    def between(cls, own: SocketAddress, other: SocketAddress, sequence: int) -> Self:
        return cls(SegmentHeaders(own, other), sequence)


def _are_frames(data: bytes, missing: int) -> bool:
    """Return whether the data and the missing bytes after it consist of complete frames."""
    position = 0
    while position + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        if length < 0:
            return False
        position += _LENGTH.size + length
    return position == len(data) + missing


class TappedConnection:
    """One connection through a proxy, written as if a network card had seen it."""

    def __init__(self, writer: PcapngWriter, client: _TappedSide, server: _TappedSide) -> None:
        self._writer = writer
        self._client = client
        self._server = server
        self.closed = False

    def handshake(self, timestamp_us: int) -> None:
        """Write the three packets of the handshake: SYN, SYN and ACK, and ACK."""
        client, server = self._client, self._server
        packets = [self._packet(client, server, SYN)]
        client.sequence += 1
        packets.append(self._packet(server, client, SYN | ACK))
        server.sequence += 1
        packets.append(self._packet(client, server, ACK))
        self._write(packets, timestamp_us)

    def send(
        self,
        direction: Direction,
        data: bytes,
        timestamp_us: int | None = None,
        *,
        frames: int = 1,
        comments: Sequence[bytes] = (),
    ) -> None:
        """Write a frame with its length prefix, several frames, or a truncated frame.

        Frames that are sent together have the same time and are in the same file. ``timestamp_us``
        is in microseconds since the epoch. The default is the current time. ``frames`` is the
        number of frames, which is needed to count lost frames. ``comments`` are attached to the
        packet in which the frames begin.
        """
        self._send(direction, data, timestamp_us, frames=frames, comments=comments)

    def send_beginning(
        self, direction: Direction, data: bytes, missing: int, timestamp_us: int | None = None
    ) -> None:
        """Write the beginning of a frame, and record how many more bytes were left out.

        Readers see the other bytes as they would in a capture with a snaplen: as packets without
        their payload.
        """
        self._send(direction, data, timestamp_us, missing=missing)

    def _send(
        self,
        direction: Direction,
        data: bytes,
        timestamp_us: int | None,
        *,
        missing: int = 0,
        frames: int = 1,
        comments: Sequence[bytes] = (),
    ) -> None:
        if self.closed:
            raise CaptureError("the connection is closed", source=str(self._writer.directory))
        if not data:
            return
        sender, receiver = self._client, self._server
        if direction == "response":
            sender, receiver = receiver, sender
        size = len(data) + missing
        said = b"".join(option(OPTION_COMMENT, comment) for comment in comments if comment)
        # One more packet is needed if the payload ends within a segment, and one more in any case
        # for the receiver's last acknowledgment.
        count = -(-size // SEGMENT_BYTES) + bool(missing) + 1
        estimate = len(data) + len(said) + count * _PACKET_OVERHEAD
        end = sender.sequence + size
        begins = _BEGINS_FRAME[direction] if sender.sends_frames else b""
        sender.sends_frames = sender.sends_frames and _are_frames(data, missing)
        packets = self._segments(sender, receiver, data, begins, said)
        if missing:
            packets = chain(packets, self._empty_segments(sender, receiver, missing))
        at_us = _now_us() if timestamp_us is None else timestamp_us
        try:
            self._writer.write_packets(packets, estimate, at_us, frames)
        except CaptureError:
            # After missing bytes, the next beginning of a frame is marked again.
            sender.told_in = 0
            raise
        finally:
            # If writing fails, the sequence numbers still advance, so that every reader notices
            # that bytes are missing.
            sender.sequence = end

    def miss(self, direction: Direction, size: int) -> None:
        """Record that this many bytes are unknown, so that readers notice that they are missing."""
        sender = self._client if direction == "request" else self._server
        sender.sequence += size
        sender.sends_frames = False

    def close(
        self,
        *,
        reset: bool = False,
        by_broker: bool = False,
        timestamp_us: int | None = None,
    ) -> None:
        """Write a FIN from each side (the client's first, unless ``by_broker``), or a single RST.

        Calling this again has no effect.
        """
        if self.closed:
            return
        self.closed = True
        first, other = self._client, self._server
        if by_broker:
            first, other = other, first
        if reset:
            packets = [self._packet(first, other, RST | ACK)]
        else:
            packets = [self._packet(first, other, FIN | ACK)]
            first.sequence += 1
            packets.append(self._packet(other, first, FIN | ACK))
            other.sequence += 1
            packets.append(self._packet(first, other, ACK))
        self._write(packets, _now_us() if timestamp_us is None else timestamp_us)

    def _write(self, packets: list[_Packet], timestamp_us: int) -> None:
        self._writer.write_packets(packets, len(packets) * _PACKET_OVERHEAD, timestamp_us)

    def _segments(
        self, sender: _TappedSide, receiver: _TappedSide, data: bytes, begins: bytes, said: bytes
    ) -> Iterator[_Packet]:
        # The writer iterates over the packets only after it has chosen their file.
        if sender.told_in == self._writer.told:
            begins = b""
        sender.told_in = self._writer.told
        # The comment that marks the beginning of a frame comes first, because readers look for it.
        options = begins + said
        options += _NO_MORE_OPTIONS if options else b""
        view = memoryview(data)
        for start in range(0, len(data), SEGMENT_BYTES):
            payload = view[start : start + SEGMENT_BYTES]
            flags = ACK | PSH if start + SEGMENT_BYTES >= len(data) else ACK
            yield self._packet(sender, receiver, flags, payload, options)
            options = b""
            sender.sequence += len(payload)
            yield from self._acknowledged(sender, receiver)

    def _empty_segments(
        self, sender: _TappedSide, receiver: _TappedSide, missing: int
    ) -> Iterator[_Packet]:
        for start in range(0, missing, SEGMENT_BYTES):
            size = min(SEGMENT_BYTES, missing - start)
            yield self._packet(sender, receiver, ACK, missing=size)
            sender.sequence += size
            yield from self._acknowledged(sender, receiver)

    def _acknowledged(self, sender: _TappedSide, receiver: _TappedSide) -> Iterator[_Packet]:
        if sender.sequence - sender.acknowledged >= UNACKNOWLEDGED_BYTES:
            yield self._packet(receiver, sender, ACK)

    def _packet(
        self,
        sender: _TappedSide,
        receiver: _TappedSide,
        flags: int,
        payload: memoryview = _NOTHING,
        options: bytes = b"",
        missing: int = 0,
    ) -> _Packet:
        if flags & ACK:
            receiver.acknowledged = receiver.sequence
        sender.packets += 1
        headers = sender.headers.make(
            sender.sequence,
            receiver.sequence if flags & ACK else 0,
            flags,
            payload,
            sender.packets,
            missing,
        )
        return headers, payload, missing, options
