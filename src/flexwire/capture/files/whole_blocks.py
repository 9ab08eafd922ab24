"""How far a capture file that grows is whole: up to the end of the last block that is all there.

Only the lengths of blocks are looked at. What a writer has not finished is not read yet; after a
block whose length cannot be one, nothing is.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.capture.files.reading import BYTE_ORDERS, PCAP_MAGICS, SECTION_MAGIC, STEP_BYTES
from flexwire.errors import CaptureError
from flexwire.kernels.capture.packets_layout import BLOCK_FRAME, MAX_BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from flexwire.capture.files.reading import Readable

_MAGIC: Final = 4
_PCAP_HEAD: Final = 24
_RECORD: Final = 16
_ALIGNED: Final = 4


@dataclass(slots=True)
class WholeBlocks:
    """A file, which is whole up to ``end``; `look` finds out again as it grows.

    ``damage`` says why nothing after that can be read.
    """

    name: str
    end: int = 0
    damage: str | None = None
    order: str = ""
    is_pcap: bool = False

    def look(
        self,
        opens: Callable[[int], AbstractContextManager[Readable]],
        size: int,
        most: int | None = None,
    ) -> bool:
        """Go on within the ``size`` bytes that the file has, by ``most`` at most or one block.

        Says whether the file may have more whole blocks. ``opens`` opens it at a byte. Raises
        `CaptureError` if it is not a capture.
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

    def _length(self, file: Readable) -> int:
        """The length of the next block, which is passed over; 0 where it cannot be told."""
        if not self.end:
            return self._first(file.read(_MAGIC), file)
        if self.is_pcap:
            head = file.read(_RECORD)
            if len(head) < _RECORD:
                return 0
            (captured,) = struct.unpack_from(f"{self.order}8xI", head)
            if captured > MAX_BLOCK_BYTES:
                return self._damaged(f"a packet of {captured} bytes is declared")
            return _passed(file, len(head), _RECORD + int(captured))
        return self._block(file.read(_MAGIC), file)

    def _first(self, magic: bytes, file: Readable) -> int:
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

    def _block(self, kind: bytes, file: Readable) -> int:
        rest = file.read(BLOCK_FRAME - _MAGIC)
        if len(rest) < BLOCK_FRAME - _MAGIC:
            return 0
        if kind == SECTION_MAGIC:
            self.order = BYTE_ORDERS.get(rest[_MAGIC:], "")
            if not self.order:
                return self._damaged(f"a section's byte order is given as {rest[_MAGIC:].hex(' ')}")
        (length,) = struct.unpack_from(f"{self.order}I", rest)
        if length < BLOCK_FRAME or length % _ALIGNED:
            return self._damaged(f"a block of {length} bytes is declared")
        return _passed(file, BLOCK_FRAME, int(length))

    def _damaged(self, reason: str) -> int:
        self.damage = reason
        return 0


def _passed(file: Readable, read: int, length: int) -> int:
    """Pass over the rest of a block, of which some bytes were read."""
    left = length - read
    while left > 0 and (data := file.read(min(left, STEP_BYTES))):
        left -= len(data)
    return length
