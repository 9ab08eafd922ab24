"""Find block boundaries in a capture file, and the end of a growing file's complete part.

Nothing marks the boundary between two blocks, but the length of each block leads to the next one.
The reader assumes that a block begins wherever a chain of blocks begins. This assumption is only a
guess, because a payload may itself contain a capture. A reader that started from a known place then
verifies the guess. The guess is correct if a block ends at the guessed place, and if no block
before that place changed the facts in the file's head.

Only the lengths of blocks are read here. A block is not read until it has been written completely.
Nothing is read after a block with an impossible length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import (
    BYTE_ORDERS,
    PCAP_MAGICS,
    SECTION_MAGIC,
    STEP_BYTES,
    DamagedError,
    ForwardReader,
    PcapHead,
    Section,
    SectionHead,
    begin_blocks,
    open_capture,
)
from flexwire.errors import CaptureError
from flexwire.wire.packet_layout import (
    BLOCK_FRAME,
    BLOCK_HEAD,
    ENHANCED_PACKET,
    MAX_BLOCK_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from flexwire.capture.files.reading import ByteStream, Head, Opener
    from flexwire.columnar.arrays import NumpyArray


CHAIN: Final = 64
"""The largest number of consecutive blocks that are checked."""

SEARCHED_BYTES: Final = 4 << 20
"""The number of bytes that are searched to find the start of a block."""

_ALIGNED: Final = 4
_RECORD: Final = 16
# A record may begin at any byte. Records are smaller than the largest block.
_RECORDS_BYTES: Final = 1 << 20
_SURE: Final = 8
# The times of the packets in one file differ by a few years at most.
_SECONDS_APART: Final = 1 << 28
_MOST_BLOCKS_BEFORE: Final = 1000


class FileHead(NamedTuple):
    """The head of a file, and the time of its first packet."""

    head: Head
    first_us: int


def read_file_head(name: str, opener: Opener | None = None) -> FileHead | None:
    """Read a file up to its first packet.

    Return None if that packet is far away, or if the file is gzip-compressed. Raises `CaptureError`
    if the file cannot be opened or is not a capture.
    """
    with open_capture(name, opener) as (file, is_compressed):
        if is_compressed:
            return None
        blocks = begin_blocks(ForwardReader(name, file))
        try:
            for number, item in enumerate(blocks):
                if isinstance(item, CapturedPacket) and blocks.head is not None:
                    return FileHead(blocks.head, item.timestamp_us)
                if number > _MOST_BLOCKS_BEFORE:
                    break
        except DamagedError:
            pass
    return None


def guess_boundary(
    name: str, file_head: FileHead, offset: int, opener: Opener | None = None
) -> int | None:
    """Return the start of the first block with a packet at or after ``offset``."""
    # The size of every block in a pcapng file is a multiple of four.
    offset += -offset % _ALIGNED if isinstance(file_head.head, SectionHead) else 0
    try:
        with open_capture(name, opener, offset) as (file, _):
            data = file.read(SEARCHED_BYTES)
    except (CaptureError, OSError):
        return None
    at = _first_block(data, file_head.head) if isinstance(file_head.head, SectionHead) else None
    if isinstance(file_head.head, PcapHead):
        at = _first_record(data[:_RECORDS_BYTES], file_head.head, file_head.first_us)
    return None if at is None else offset + at


def _first_block(data: bytes, head: SectionHead) -> int | None:
    words = np.frombuffer(data, f"{head.order}u4", len(data) // _ALIGNED)
    for place in np.flatnonzero(words == ENHANCED_PACKET).tolist():
        if _is_packet(data, place * _ALIGNED, head) and _leads_on(words, place):
            return int(place) * _ALIGNED
    return None


def _leads_on(words: NumpyArray, place: int) -> bool:
    """Return whether a chain of blocks begins at a particular 32-bit word.

    Each block contains its own length twice.
    """
    for _ in range(CHAIN):
        if place + 1 >= len(words):
            return True
        length = int(words[place + 1])
        end = place + length // _ALIGNED
        if length < BLOCK_FRAME or length % _ALIGNED:
            return False
        if end > len(words):
            return length <= MAX_BLOCK_BYTES
        if words[end - 1] != length:
            return False
        place = end
    return True


def _is_packet(data: bytes, at: int, head: SectionHead) -> bool:
    """Return whether a complete packet with a plausible time begins at a particular place."""
    if at + BLOCK_HEAD > len(data):
        return False
    (length,) = struct.unpack_from(f"{head.order}I", data, at + _ALIGNED)
    if not BLOCK_FRAME <= length <= len(data) - at:
        return False
    section = Section(ForwardReader("", _NOTHING), head)
    body = data[at + BLOCK_HEAD : at + length - _ALIGNED]
    return isinstance(section.packet(ENHANCED_PACKET, body), CapturedPacket)


class _EmptyFile:
    def read(self, _size: int, /) -> bytes:
        return b""


_NOTHING: Final = _EmptyFile()


def _first_record(data: bytes, head: PcapHead, first_us: int) -> int | None:
    if len(data) < _RECORD:
        return None
    first = first_us // 1_000_000
    count = len(data) - _RECORD + 1
    seconds, fraction, captured, original = (
        _every_word(data, start, count, head.order) for start in range(0, _RECORD, 4)
    )
    apart = np.abs(seconds - first)
    likely = (apart < _SECONDS_APART) & (fraction < head.per_second) & (captured > 0)
    likely &= (captured <= original) & (captured <= MAX_BLOCK_BYTES)
    for place in np.flatnonzero(likely).tolist():
        at, chain = place, 0
        while chain < CHAIN and at < count and likely[at]:
            at += _RECORD + int(captured[at])
            chain += 1
        # Any length can lead past the end of the bytes, but an invalid length hardly ever leads
        # exactly to their end.
        if chain == CHAIN or at == len(data) or (at >= count and chain >= _SURE):
            return int(place)
    return None


def _every_word(data: bytes, start: int, count: int, order: str) -> NumpyArray:
    """Return the 32-bit numbers that begin at each byte from ``start`` on."""
    words = np.empty(count, np.int64)
    for shift in range(_ALIGNED):
        size = (count - shift + _ALIGNED - 1) // _ALIGNED
        if size > 0:
            words[shift::_ALIGNED] = np.frombuffer(data, f"{order}u4", size, start + shift)
    return words


_MAGIC: Final = 4
_PCAP_HEAD: Final = 24


@dataclass(slots=True)
class WholeBlocks:
    """A file that is complete up to ``end``. Call `look` again when the file has grown.

    ``damage`` explains why nothing after ``end`` can be read.
    """

    name: str
    end: int = 0
    damage: str | None = None
    order: str = ""
    is_pcap: bool = False

    def look(
        self,
        opens: Callable[[int], AbstractContextManager[ByteStream]],
        size: int,
        most: int | None = None,
    ) -> bool:
        """Look for more complete blocks in the first ``size`` bytes, for at most ``most`` bytes.

        If any block is complete, at least one block is read. Returns whether the file may contain
        more complete blocks. ``opens`` opens the file at a given byte. Raises `CaptureError` if the
        file is not a capture.
        """
        begin = self.end
        stop = size if most is None else min(size, begin + most)
        if self.damage is not None or size - begin < _MAGIC:
            return False
        with opens(begin) as file:
            while self.end < stop:
                length = self._length(file)
                end = self.end + length
                if not length or end > size:
                    return False
                if end > stop and self.end > begin:
                    return True
                self.end = end
        return self.end < size

    def _length(self, file: ByteStream) -> int:
        """Skip the next block, and return its length, or 0 if the length is unknown."""
        if not self.end:
            return self._first(file.read(_MAGIC), file)
        if self.is_pcap:
            head = file.read(_RECORD)
            if len(head) < _RECORD:
                return 0
            (captured,) = struct.unpack_from(f"{self.order}8xI", head)
            if captured > MAX_BLOCK_BYTES:
                return self._damaged(f"the packet length exceeds the limit: {captured}")
            return _passed(file, len(head), _RECORD + int(captured))
        return self._block(file.read(_MAGIC), file)

    def _first(self, magic: bytes, file: ByteStream) -> int:
        if magic in PCAP_MAGICS:
            self.is_pcap, self.order = True, PCAP_MAGICS[magic][0]
            return _passed(file, len(magic), _PCAP_HEAD)
        if magic == SECTION_MAGIC:
            return self._block(magic, file)
        raise CaptureError(
            f"neither pcap nor pcapng: the file begins with {magic.hex(' ')}",
            source=self.name,
            offset=0,
        )

    def _block(self, kind: bytes, file: ByteStream) -> int:
        rest = file.read(BLOCK_FRAME - _MAGIC)
        if len(rest) < BLOCK_FRAME - _MAGIC:
            return 0
        if kind == SECTION_MAGIC:
            self.order = BYTE_ORDERS.get(rest[_MAGIC:], "")
            if not self.order:
                magic = rest[_MAGIC:].hex(" ")
                return self._damaged(f"invalid byte order in a section header: {magic}")
        (length,) = struct.unpack_from(f"{self.order}I", rest)
        if length < BLOCK_FRAME or length % _ALIGNED:
            return self._damaged(f"invalid block length: {length}")
        return _passed(file, BLOCK_FRAME, int(length))

    def _damaged(self, reason: str) -> int:
        self.damage = reason
        return 0


def _passed(file: ByteStream, read: int, length: int) -> int:
    """Skip the rest of a block of which only a part has been read."""
    left = length - read
    while left > 0 and (data := file.read(min(left, STEP_BYTES))):
        left -= len(data)
    return length
