"""Read pcap and pcapng files, compressed or uncompressed, one packet after another."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from flexwire.capture.files.packets import (
    FRAME_COMMENTS,
    SAMPLE_BYTES,
    CapturedPacket,
    UnreadableBytes,
)
from flexwire.errors import CaptureError
from flexwire.wire.packet_layout import (
    BLOCK_FRAME,
    BLOCK_HEAD,
    ENHANCED_PACKET,
    INTERFACE,
    MAX_BLOCK_BYTES,
    MAX_INTERFACES,
    MAX_TIMESTAMP_US,
    MILLION,
    OLD_PACKET,
    OPTION_COMMENT,
    OPTION_HEAD,
    OPTION_TSOFFSET,
    OPTION_TSRESOL,
    SIMPLE_FIELDS,
    SIMPLE_PACKET,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Protocol

    from _typeshed import WriteableBuffer

    # A function that opens a file by name for reading, starting at a given byte. It raises OSError
    # if the file cannot be opened.
    Opener = Callable[[str, int], BinaryIO | io.BufferedReader[Any]]

    # A function that is called with the body of a decryption secrets block and its byte order.
    OnSecrets = Callable[[bytes, str], None]

    class ByteStream(Protocol):
        """A source of a file's bytes.

        `read` returns as many bytes as requested, except at the end.
        """

        def read(self, size: int, /) -> bytes:
            """Return the next bytes, or b"" at the end."""


# The dpkt package reads only the first section and the first interface of a pcapng file, allocates
# any length that a block declares, and does not return a packet's length on the network.

STEP_BYTES = 64 * 1024
"""The number of bytes that are decompressed and buffered at a time."""

READ_AHEAD = 1024 * 1024
DAMAGE = (OSError, EOFError, zlib.error)
"""The errors that can occur when a damaged file is read."""


_GZIP_MAGIC = b"\x1f\x8b"
SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
PCAP_MAGICS = {
    bytes.fromhex("d4c3b2a1"): ("<", MILLION),
    bytes.fromhex("a1b2c3d4"): (">", MILLION),
    bytes.fromhex("4d3cb2a1"): ("<", 1_000_000_000),
    bytes.fromhex("a1b23c4d"): (">", 1_000_000_000),
}
BYTE_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}
SECRETS = 10
"""The type of a decryption secrets block."""
_PACKETS = (OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET)


def begins_as_capture(head: bytes) -> bool:
    """Return whether these bytes begin an uncompressed pcap or pcapng file."""
    return head[:4] == SECTION_MAGIC or head[:4] in PCAP_MAGICS


def read_packets(
    path: str | Path, opener: Opener | None = None, on_secrets: OnSecrets | None = None
) -> Iterator[CapturedPacket | UnreadableBytes]:
    """Yield every packet of a pcap or pcapng file, in order. ``.gz`` files are decompressed.

    Raises `CaptureError` if the file cannot be opened or is in neither format. A truncated or
    damaged file yields the packets before the damage, and then one `UnreadableBytes` that gives the
    place of the damage. ``on_secrets`` is called with the secrets in a pcapng file.
    """
    with open_capture(str(path), opener) as (file, _):
        yield from packets_of(str(path), file, on_secrets)


def packets_of(
    name: str, file: ByteStream, on_secrets: OnSecrets | None = None
) -> Iterator[CapturedPacket | UnreadableBytes]:
    """Yield the packets of an open, uncompressed file, as `read_packets` does."""
    source = ForwardReader(name, file)
    yield from packets_in(begin_blocks(source), source, on_secrets)


def packets_in(
    blocks: CaptureBlocks, source: ForwardReader, on_secrets: OnSecrets | None = None
) -> Iterator[CapturedPacket | UnreadableBytes]:
    """Yield the packets from the current place of ``source``, as `read_packets` does."""
    if isinstance(blocks, PcapngBlocks):
        blocks.on_secrets = on_secrets
    try:
        for packet in blocks:
            if packet is not None:
                yield packet
    except DamagedError as damage:
        yield damage.unreadable(source)


@contextmanager
def open_capture(
    name: str, opener: Opener | None = None, start: int = 0
) -> Iterator[tuple[io.BufferedReader[Any], bool]]:
    """Open a file for forward reading, decompressed. Also return whether the file is compressed.

    A ``start`` other than 0 is possible only for an uncompressed file.
    """
    try:
        file = _opened(name, start) if opener is None else _buffered(opener(name, start))
    except OSError as error:
        reason = f"cannot open: {error.strerror or error}"
        raise CaptureError(reason, source=name) from error
    with file:
        if start:
            yield file, False
            return
        try:
            magic = file.peek(2)[:2]
        except OSError as error:
            reason = f"cannot read: {error.strerror or error}"
            raise CaptureError(reason, source=name) from error
        if magic == _GZIP_MAGIC:
            yield io.BufferedReader(_GzipContent(file), STEP_BYTES), True
        else:
            yield file, False


def _opened(name: str, start: int) -> io.BufferedReader[Any]:
    file = io.BufferedReader(io.FileIO(name), READ_AHEAD)
    if start:
        file.seek(start)
    return file


def _buffered(file: BinaryIO | io.BufferedReader[Any]) -> io.BufferedReader[Any]:
    if isinstance(file, io.BufferedReader):
        return file
    return io.BufferedReader(_Raw(file), READ_AHEAD)


class _Raw(io.RawIOBase):
    """The stream that an opener returns, in the form that `io.BufferedReader` needs."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, room: WriteableBuffer, /) -> int:
        view = memoryview(room)
        data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class _GzipContent(io.RawIOBase):
    """The decompressed content of a gzip file.

    If zlib finds damage in a piece of the content, the decompressed bytes of that piece are lost.
    Pieces are therefore independent of the read size, so that every reader gets the same bytes
    before the damage. Every later read raises the same error, so that no bytes are returned that
    gzip derives from the damaged rest.
    """

    def __init__(self, file: BinaryIO | io.BufferedReader) -> None:
        self._file = gzip.open(file)  # noqa: SIM115 - it only owns a file that is already open
        self._left = memoryview(b"")
        self._damage: BaseException | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, room: WriteableBuffer, /) -> int:
        view = memoryview(room)
        if self._damage is not None:
            raise self._damage
        if not self._left:
            try:
                self._left = memoryview(self._file.read1(STEP_BYTES))
            except DAMAGE as damage:
                self._damage = damage
                raise
        count = min(len(view), len(self._left))
        view[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


class DamagedError(Exception):
    """Damage that makes the rest of a file unreadable: its place and the reason."""

    def __init__(self, reason: str, data: bytes = b"") -> None:
        self.reason = reason
        self.data = data
        super().__init__(reason)

    def unreadable(self, source: ForwardReader) -> UnreadableBytes:
        """Return the note on the damaged file."""
        sample = self.data[:SAMPLE_BYTES]
        return UnreadableBytes(source.name, source.block, self.reason, None, sample, len(self.data))


def _ended(read_bytes: int, expected: int, data: bytes = b"") -> DamagedError:
    return DamagedError(f"the file ends after {read_bytes} of {expected} bytes", data)


class ForwardReader:
    """A file that is read forward, in pieces that never extend past the end of the file."""

    def __init__(self, name: str, file: ByteStream) -> None:
        self.name = name
        self.offset = 0
        self.block = 0  # The start of the current block or packet record.
        self._file = file

    def take(self, size: int) -> bytes:
        """Return exactly ``size`` bytes."""
        data = self._read(size)
        if len(data) < size:
            raise _ended(len(data), size, data)
        return data

    def start(self, size: int) -> bytes:
        """Return the first ``size`` bytes of the next block, or b"" at the end of the file."""
        self.block = self.offset
        data = self._read(size)
        if data and len(data) < size:
            raise _ended(len(data), size, data)
        return data

    def skip(self, size: int) -> None:
        """Skip ``size`` bytes."""
        skipped = 0
        while skipped < size:
            data = self._read(min(size - skipped, STEP_BYTES))
            if not data:
                raise _ended(skipped, size)
            skipped += len(data)

    def _read(self, size: int) -> bytes:
        try:
            data = self._file.read(min(size, STEP_BYTES))
            if size > STEP_BYTES:
                # A length that comes from damaged bytes must not be allocated at once, so bytes are
                # skipped in pieces.
                parts = [data]
                missing = size - len(data)
                while missing and parts[-1]:
                    parts.append(self._file.read(min(missing, STEP_BYTES)))
                    missing -= len(parts[-1])
                data = b"".join(parts)
        except DAMAGE as error:
            raise DamagedError(f"cannot read the rest of the file: {error}") from error
        self.offset += len(data)
        return data


class PcapHead(NamedTuple):
    """The head of a pcap file, which determines how its records are read."""

    order: str
    per_second: int
    linktype: int

    @property
    def to_us(self) -> int:
        """The number of timestamp units in a microsecond."""
        return self.per_second // MILLION


class PcapRecords:
    """The packets of a pcap file, starting at a record."""

    def __init__(self, source: ForwardReader, head: PcapHead | bytes) -> None:
        self._source = source
        self._head = head

    def __iter__(self) -> Iterator[CapturedPacket | None]:
        """Read one record per step.

        The first step reads the file's head, unless the head is already known.
        """
        source = self._source
        if not isinstance(self._head, PcapHead):
            order, per_second = PCAP_MAGICS[self._head]
            # The upper half of the link type describes the checksum that follows each packet.
            linktype = struct.unpack(f"{order}HHiIII", source.take(20))[5] & 0xFFFF
            self._head = PcapHead(order, per_second, linktype)
            yield None
        order, per_second, linktype = self._head
        record = struct.Struct(f"{order}IIII")
        to_us = self._head.to_us
        while head := source.start(record.size):
            seconds, fraction, captured, original = record.unpack(head)
            if captured > MAX_BLOCK_BYTES:
                raise DamagedError(f"the packet length exceeds the limit: {captured}", head)
            data = source.take(captured)
            timestamp_us = seconds * MILLION + fraction // to_us
            yield CapturedPacket(timestamp_us, linktype, data, original, source.block)

    @property
    def head(self) -> PcapHead | None:
        """The head of the file, or None until it has been read."""
        return self._head if isinstance(self._head, PcapHead) else None


class Interface(NamedTuple):
    """A network interface on which packets were captured."""

    linktype: int
    snaplen: int
    per_second: int
    offset_seconds: int

    def timestamp_us(self, high: int, low: int) -> int:
        """Return the time of a packet, given the two halves of its number of ticks."""
        ticks = high << 32 | low
        if self.per_second != MILLION:
            ticks = ticks * MILLION // self.per_second
        return ticks + self.offset_seconds * MILLION


class SectionHead(NamedTuple):
    """The facts about a section of a pcapng file, as stated by its blocks so far."""

    order: str
    interfaces: tuple[Interface, ...]
    last_us: int


def options_in(body: bytes, position: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield the code and value of each option in a block, starting at a position.

    Raises `DamagedError` for an option that extends past the end of the block.
    """
    while position + OPTION_HEAD <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, position)
        if code == 0:
            return
        if size > len(body) - position - OPTION_HEAD:
            raise DamagedError(f"option {code} extends past the end of its block", body)
        position += OPTION_HEAD
        yield code, body[position : position + size]
        position += size + -size % 4


class Section:
    """A section of a pcapng file: its byte order and its interfaces."""

    def __init__(self, source: ForwardReader, head: SectionHead) -> None:
        self._source = source
        self.order = order = head.order
        self.head = struct.Struct(f"{order}II")
        self._enhanced = struct.Struct(f"{order}IIIII")
        self._old = struct.Struct(f"{order}HHIIII")
        self.interfaces = list(head.interfaces)
        # A simple packet block does not contain a time. The time of the previous packet is the best
        # estimate.
        self.last_us = head.last_us

    @property
    def known(self) -> SectionHead:
        """The facts that another reader needs to continue from here."""
        return SectionHead(self.order, tuple(self.interfaces), self.last_us)

    def add_interface(self, body: bytes) -> None:
        """Add the interface that an interface description block describes."""
        if len(body) < 8:  # noqa: PLR2004 - the size of link type, reserved bytes and snaplen
            raise DamagedError("an interface description is too short for its fields", body)
        if len(self.interfaces) >= MAX_INTERFACES:
            raise DamagedError(f"a section has more than {MAX_INTERFACES} interfaces", body)
        linktype, _, snaplen = struct.unpack_from(f"{self.order}HHI", body)
        per_second, offset_seconds = MILLION, 0
        for code, value in options_in(body, 8, self.order):
            if code == OPTION_TSRESOL and len(value) == 1:
                # The highest bit indicates whether the resolution is a power of two or of ten.
                per_second = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
            elif code == OPTION_TSOFFSET and len(value) == 8:  # noqa: PLR2004 - the size of an int64
                offset_seconds = struct.unpack(f"{self.order}q", value)[0]
        self.interfaces.append(Interface(linktype, snaplen, per_second, offset_seconds))

    def packet(self, kind: int, body: bytes) -> CapturedPacket | UnreadableBytes:
        """Return the packet in a packet block. Damage in one block does not affect other blocks."""
        layout = self._enhanced if kind == ENHANCED_PACKET else self._old
        if kind == SIMPLE_PACKET:
            return self._simple_packet(body)
        if len(body) < layout.size:
            return self._unreadable("a packet block is too short for its fields", body)
        if kind == ENHANCED_PACKET:
            number, high, low, captured, original = layout.unpack_from(body)
        else:
            number, _, high, low, captured, original = layout.unpack_from(body)
        if number >= len(self.interfaces):
            return self._unreadable(f"no block describes interface {number} of a packet", body)
        interface = self.interfaces[number]
        if captured > len(body) - layout.size:
            return self._unreadable(
                f"a packet declares {captured} bytes, but only {len(body) - layout.size} "
                "remain in the block",
                body,
            )
        timestamp_us = interface.timestamp_us(high, low)
        if not 0 <= timestamp_us < MAX_TIMESTAMP_US:
            return self._unreadable(f"the packet's time, {timestamp_us} µs, is out of range", body)
        self.last_us = timestamp_us
        end = layout.size + captured
        comments = self._comments(body, end + -end % 4)
        begins = (FRAME_COMMENTS[comment] for comment in comments if comment in FRAME_COMMENTS)
        return CapturedPacket(
            timestamp_us,
            interface.linktype,
            body[layout.size : end],
            original,
            self._source.block,
            next(begins, None),
            comments,
        )

    def _comments(self, body: bytes, options: int) -> tuple[bytes, ...]:
        """Return the comments on a packet up to the first damaged option."""
        comments: list[bytes] = []
        if len(body) < options + OPTION_HEAD:
            return ()
        # The packet precedes its options, and is complete.
        with suppress(DamagedError):
            for code, value in options_in(body, options, self.order):
                if code == OPTION_COMMENT:
                    comments.append(value)
        return tuple(comments)

    def _simple_packet(self, body: bytes) -> CapturedPacket | UnreadableBytes:
        if len(body) < SIMPLE_FIELDS:
            return self._unreadable("a packet block is too short for its fields", body)
        if not self.interfaces:
            return self._unreadable("no block describes interface 0 of a packet", body)
        interface = self.interfaces[0]
        original: int = struct.unpack_from(f"{self.order}I", body)[0]
        captured = min(original, interface.snaplen or original, len(body) - SIMPLE_FIELDS)
        data = body[SIMPLE_FIELDS : SIMPLE_FIELDS + captured]
        return CapturedPacket(self.last_us, interface.linktype, data, original, self._source.block)

    def _unreadable(self, reason: str, body: bytes) -> UnreadableBytes:
        source = self._source
        return UnreadableBytes(
            source.name, source.block, reason, None, body[:SAMPLE_BYTES], len(body) + BLOCK_FRAME
        )


class PcapngBlocks:
    """The packets of a pcapng file, starting from a block."""

    def __init__(self, source: ForwardReader, head: SectionHead | None = None) -> None:
        self._source = source
        self.section = None if head is None else Section(source, head)
        self.on_secrets: OnSecrets | None = None

    def __iter__(self) -> Iterator[CapturedPacket | UnreadableBytes | None]:
        """Read one block per step, and return None if it is not a packet block.

        The first step reads the file's first section header, unless a section is already known.
        """
        source, section = self._source, self.section
        if section is None:
            section = self.section = _start_section(source, source.take(4))
            yield None
        while head := source.start(BLOCK_HEAD):
            if head[:4] == SECTION_MAGIC:
                section = self.section = _start_section(source, head[4:])
                yield None
                continue
            kind, length = section.head.unpack(head)
            if length < BLOCK_FRAME or length % 4:
                raise DamagedError(f"invalid block length: {length}", head)
            takes = self.on_secrets if kind == SECRETS and length <= MAX_BLOCK_BYTES else None
            if takes is not None:
                takes(source.take(length - BLOCK_FRAME), section.order)
                _end_block(source, section, length)
                yield None
                continue
            if kind not in _PACKETS and kind != INTERFACE:
                source.skip(length - BLOCK_FRAME)
                _end_block(source, section, length)
                yield None
                continue
            if length > MAX_BLOCK_BYTES:
                raise DamagedError(f"the block length exceeds the limit: {length}", head)
            body = source.take(length - BLOCK_FRAME)
            _end_block(source, section, length)
            if kind == INTERFACE:
                section.add_interface(body)
                yield None
            else:
                yield section.packet(kind, body)

    def tell_time(self, last_us: int) -> None:
        """Set the time of the last packet, if another reader has already read packets."""
        if self.section is not None:
            self.section.last_us = last_us

    @property
    def head(self) -> SectionHead | None:
        """The facts about the section, or None until the section header has been read."""
        return None if self.section is None else self.section.known


Head = PcapHead | SectionHead
CaptureBlocks = PcapRecords | PcapngBlocks


def begin_blocks(source: ForwardReader) -> CaptureBlocks:
    """Start reading a file. Raises `CaptureError` if the file is not a capture."""
    try:
        magic = source.take(4)
    except DamagedError as damage:
        raise CaptureError(damage.reason, source=source.name, offset=0) from damage
    if magic in PCAP_MAGICS:
        return PcapRecords(source, magic)
    if magic == SECTION_MAGIC:
        return PcapngBlocks(source)
    raise CaptureError(
        f"neither pcap nor pcapng: the file begins with {magic.hex(' ')}",
        source=source.name,
        offset=0,
    )


def resume_blocks(source: ForwardReader, head: Head) -> CaptureBlocks:
    """Continue reading a file at the start of a block, with the facts from earlier blocks."""
    if isinstance(head, PcapHead):
        return PcapRecords(source, head)
    return PcapngBlocks(source, head)


def _start_section(source: ForwardReader, length_bytes: bytes) -> Section:
    magic = source.take(4)
    if magic not in BYTE_ORDERS:
        raise DamagedError(f"invalid byte order in a section header: {magic.hex(' ')}", magic)
    section = Section(source, SectionHead(BYTE_ORDERS[magic], (), 0))
    (length,) = struct.unpack(f"{section.order}I", length_bytes)
    if length < 28 or length % 4:  # noqa: PLR2004 - the size of the fields in a section header
        raise DamagedError(f"invalid section header length: {length}", length_bytes)
    major, _ = struct.unpack(f"{section.order}HH", source.take(4))
    if major != 1:
        raise DamagedError(f"expected pcapng version 1, got version {major}")
    source.skip(length - 20)
    _end_block(source, section, length)
    return section


def _end_block(source: ForwardReader, section: Section, length: int) -> None:
    trailer = source.take(4)
    (again,) = struct.unpack(f"{section.order}I", trailer)
    if again != length:
        raise DamagedError(
            f"a block begins with the length {length} but ends with {again}", trailer
        )
