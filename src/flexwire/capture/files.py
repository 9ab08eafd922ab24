"""Reads pcap and pcapng files, compressed or not, packet by packet."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.model import FRAME_COMMENTS, SAMPLE_BYTES, CapturedPacket, Unreadable
from flexwire.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.capture.model import Direction

# dpkt reads the first section and the first interface of a pcapng file only, allocates whatever
# length a block declares, and does not give a packet's length on the network.

MAX_BLOCK_BYTES = 16 * 1024 * 1024
"""A longer packet or block is damage; libpcap's own limit for a packet is 256 KiB."""

MAX_INTERFACES = 65536
_CHUNK = 64 * 1024
_READ_AHEAD = 1024 * 1024
_MILLION = 1_000_000
_MAX_TIMESTAMP_US = 253_402_300_800_000_000  # the year 10000, where datetime ends

_GZIP_MAGIC = b"\x1f\x8b"
_SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
_PCAP_MAGICS = {
    bytes.fromhex("d4c3b2a1"): ("<", _MILLION),
    bytes.fromhex("a1b2c3d4"): (">", _MILLION),
    bytes.fromhex("4d3cb2a1"): ("<", 1_000_000_000),
    bytes.fromhex("a1b23c4d"): (">", 1_000_000_000),
}
_BYTE_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}

_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_SECTION = 0x0A0D0D0A
_OPTION_COMMENT, _OPTION_TSRESOL, _OPTION_TSOFFSET = 1, 9, 14


def read_packets(path: Path) -> Iterator[CapturedPacket | Unreadable]:
    """Every packet of a pcap or pcapng file, in order; ``.gz`` content is uncompressed.

    `CaptureError` if the file cannot be opened or is neither. A file that is cut off or damaged
    gives the packets before the damage and then one `Unreadable` that says where it is.
    """
    source = _Source(path)
    with source.open():
        try:
            magic = source.take(4)
        except _DamagedError as damage:
            raise CaptureError(damage.reason, source=source.name, offset=0) from damage
        if magic in _PCAP_MAGICS:
            reader = _read_pcap(source, *_PCAP_MAGICS[magic])
        elif magic == _SECTION_MAGIC:
            reader = _read_pcapng(source)
        else:
            raise CaptureError(
                f"neither pcap nor pcapng: the file begins with {magic.hex(' ')}",
                source=source.name,
                offset=0,
            )
        try:
            yield from reader
        except _DamagedError as damage:
            yield damage.unreadable(source)


class _DamagedError(Exception):
    """Where and why the rest of a file cannot be read."""

    def __init__(self, reason: str, data: bytes = b"") -> None:
        self.reason = reason
        self.data = data
        super().__init__(reason)

    def unreadable(self, source: _Source) -> Unreadable:
        sample = self.data[:SAMPLE_BYTES]
        return Unreadable(source.name, source.block, self.reason, None, sample, len(self.data))


def _ended(found: int, expected: int, data: bytes = b"") -> _DamagedError:
    return _DamagedError(f"the file ends after {found} of {expected} bytes", data)


class _Source:
    """A file read forward in pieces no longer than what it really holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.offset = 0
        self.block = 0  # where the block or packet record begins that is being read
        self._file: io.BufferedIOBase

    @contextmanager
    def open(self) -> Iterator[None]:
        try:
            file = io.BufferedReader(io.FileIO(self.path), _READ_AHEAD)
        except OSError as error:
            reason = f"cannot open: {error.strerror or error}"
            raise CaptureError(reason, source=self.name) from error
        with file:
            try:
                magic = file.peek(2)[:2]
            except OSError as error:
                reason = f"cannot read: {error.strerror or error}"
                raise CaptureError(reason, source=self.name) from error
            self._file = file
            if magic == _GZIP_MAGIC:
                self._file = gzip.open(file)  # noqa: SIM115 - it owns nothing but the open file
            yield

    def take(self, size: int) -> bytes:
        """Exactly ``size`` bytes."""
        data = self._read(size)
        if len(data) < size:
            raise _ended(len(data), size, data)
        return data

    def start(self, size: int) -> bytes:
        """The first ``size`` bytes of the next block, or b"" at the end of the file."""
        self.block = self.offset
        data = self._read(size)
        if data and len(data) < size:
            raise _ended(len(data), size, data)
        return data

    def skip(self, size: int) -> None:
        """Pass over ``size`` bytes."""
        skipped = 0
        while skipped < size:
            data = self._read(min(size - skipped, _CHUNK))
            if not data:
                raise _ended(skipped, size)
            skipped += len(data)

    def _read(self, size: int) -> bytes:
        try:
            data = self._file.read(min(size, _CHUNK))
            if size > _CHUNK:
                # In pieces: a length that damage made up must not be allocated at once.
                parts = [data]
                missing = size - len(data)
                while missing and parts[-1]:
                    parts.append(self._file.read(min(missing, _CHUNK)))
                    missing -= len(parts[-1])
                data = b"".join(parts)
        except (OSError, EOFError, zlib.error) as error:
            raise _DamagedError(f"cannot read on: {error}") from error
        self.offset += len(data)
        return data


def _read_pcap(
    source: _Source, order: str, per_second: int
) -> Iterator[CapturedPacket | Unreadable]:
    # The upper half of the link type is about frame check sequences, which follow the packet.
    linktype = struct.unpack(f"{order}HHiIII", source.take(20))[5] & 0xFFFF
    record = struct.Struct(f"{order}IIII")
    to_us = per_second // _MILLION
    while head := source.start(record.size):
        seconds, fraction, captured, original = record.unpack(head)
        if captured > MAX_BLOCK_BYTES:
            raise _DamagedError(f"a packet of {captured} bytes is declared", head)
        data = source.take(captured)
        timestamp_us = seconds * _MILLION + fraction // to_us
        yield CapturedPacket(timestamp_us, linktype, data, original, source.block)


class _Interface(NamedTuple):
    linktype: int
    snaplen: int
    per_second: int
    offset_seconds: int

    def timestamp_us(self, high: int, low: int) -> int:
        ticks = high << 32 | low
        if self.per_second != _MILLION:
            ticks = ticks * _MILLION // self.per_second
        return ticks + self.offset_seconds * _MILLION


class _Section:
    """A section of a pcapng file: its byte order and its interfaces."""

    def __init__(self, source: _Source, order: str) -> None:
        self._source = source
        self.order = order
        self.head = struct.Struct(f"{order}II")
        self._enhanced = struct.Struct(f"{order}IIIII")
        self._old = struct.Struct(f"{order}HHIIII")
        self._interfaces: list[_Interface] = []
        # A simple packet block carries no time; the packet before it is the best witness.
        self._last_us = 0

    def add_interface(self, body: bytes) -> None:
        if len(body) < 8:  # noqa: PLR2004 - link type, reserved, snaplen
            raise _DamagedError("an interface description ends before its options", body)
        if len(self._interfaces) >= MAX_INTERFACES:
            raise _DamagedError(f"a section with more than {MAX_INTERFACES} interfaces", body)
        linktype, _, snaplen = struct.unpack_from(f"{self.order}HHI", body)
        per_second, offset_seconds = _MILLION, 0
        for code, value in self._options(body, 8):
            if code == _OPTION_TSRESOL and len(value) == 1:
                # The top bit says whether it is a power of two or of ten.
                per_second = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
            elif code == _OPTION_TSOFFSET and len(value) == 8:  # noqa: PLR2004 - an int64
                offset_seconds = struct.unpack(f"{self.order}q", value)[0]
        self._interfaces.append(_Interface(linktype, snaplen, per_second, offset_seconds))

    def _options(self, body: bytes, position: int) -> Iterator[tuple[int, bytes]]:
        while position + 4 <= len(body):
            code, size = struct.unpack_from(f"{self.order}HH", body, position)
            if code == 0:
                return
            if size > len(body) - position - 4:
                raise _DamagedError(f"option {code} ends beyond its block", body)
            yield code, body[position + 4 : position + 4 + size]
            position += 4 + size + -size % 4

    def packet(self, kind: int, body: bytes) -> CapturedPacket | Unreadable:
        """The packet of a packet block; what is wrong inside the block spoils nothing else."""
        layout = self._enhanced if kind == _ENHANCED_PACKET else self._old
        if kind == _SIMPLE_PACKET:
            return self._simple_packet(body)
        if len(body) < layout.size:
            return self._unreadable("a packet block ends within its own fields", body)
        if kind == _ENHANCED_PACKET:
            number, high, low, captured, original = layout.unpack_from(body)
        else:
            number, _, high, low, captured, original = layout.unpack_from(body)
        if number >= len(self._interfaces):
            return self._unreadable(f"interface {number} is not described", body)
        interface = self._interfaces[number]
        if captured > len(body) - layout.size:
            return self._unreadable(
                f"{captured} bytes declared but {len(body) - layout.size} remain in the block", body
            )
        timestamp_us = interface.timestamp_us(high, low)
        if not 0 <= timestamp_us < _MAX_TIMESTAMP_US:
            return self._unreadable(f"the time, {timestamp_us} µs, is out of range", body)
        self._last_us = timestamp_us
        end = layout.size + captured
        begins = self._begins(body, end + -end % 4)
        return CapturedPacket(
            timestamp_us,
            interface.linktype,
            body[layout.size : end],
            original,
            self._source.block,
            begins,
        )

    def _begins(self, body: bytes, options: int) -> Direction | None:
        """What begins with a packet, by the comments on it."""
        if len(body) < options + 4:
            return None
        try:
            for code, value in self._options(body, options):
                if code == _OPTION_COMMENT and value in FRAME_COMMENTS:
                    return FRAME_COMMENTS[value]
        except _DamagedError:
            # The packet stands before its options and is whole.
            return None
        return None

    def _simple_packet(self, body: bytes) -> CapturedPacket | Unreadable:
        if len(body) < 4:  # noqa: PLR2004 - the original length
            return self._unreadable("a packet block ends within its own fields", body)
        if not self._interfaces:
            return self._unreadable("interface 0 is not described", body)
        interface = self._interfaces[0]
        original: int = struct.unpack_from(f"{self.order}I", body)[0]
        captured = min(original, interface.snaplen or original, len(body) - 4)
        data = body[4 : 4 + captured]
        return CapturedPacket(self._last_us, interface.linktype, data, original, self._source.block)

    def _unreadable(self, reason: str, body: bytes) -> Unreadable:
        source = self._source
        return Unreadable(
            source.name, source.block, reason, None, body[:SAMPLE_BYTES], len(body) + 12
        )


def _read_pcapng(source: _Source) -> Iterator[CapturedPacket | Unreadable]:
    section = _start_section(source, source.take(4))
    while head := source.start(8):
        if head[:4] == _SECTION_MAGIC:
            section = _start_section(source, head[4:])
            continue
        kind, length = section.head.unpack(head)
        if length < 12 or length % 4:  # noqa: PLR2004 - type, length, length
            raise _DamagedError(f"a block of {length} bytes is declared", head)
        if kind not in (_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET):
            source.skip(length - 12)
            _end_block(source, section, length)
            continue
        if length > MAX_BLOCK_BYTES:
            raise _DamagedError(f"a block of {length} bytes is declared", head)
        body = source.take(length - 12)
        _end_block(source, section, length)
        if kind == _INTERFACE:
            section.add_interface(body)
        else:
            yield section.packet(kind, body)


def _start_section(source: _Source, length_bytes: bytes) -> _Section:
    magic = source.take(4)
    if magic not in _BYTE_ORDERS:
        raise _DamagedError(f"a section's byte order is given as {magic.hex(' ')}", magic)
    section = _Section(source, _BYTE_ORDERS[magic])
    (length,) = struct.unpack(f"{section.order}I", length_bytes)
    if length < 28 or length % 4:  # noqa: PLR2004 - the fields of a section header
        raise _DamagedError(f"a section header of {length} bytes is declared", length_bytes)
    major, _ = struct.unpack(f"{section.order}HH", source.take(4))
    if major != 1:
        raise _DamagedError(f"pcapng of version {major}; version 1 is read")
    source.skip(length - 20)
    _end_block(source, section, length)
    return section


def _end_block(source: _Source, section: _Section, length: int) -> None:
    trailer = source.take(4)
    (again,) = struct.unpack(f"{section.order}I", trailer)
    if again != length:
        raise _DamagedError(f"a block of {length} bytes ends with the length {again}", trailer)
