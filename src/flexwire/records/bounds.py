"""How much an LZ4 or Zstandard frame can inflate to, read from its block headers alone.

Both formats cut their content into blocks of bounded size, so walking the block headers gives a
size that the content cannot exceed, before anything is inflated or allocated.
"""

from __future__ import annotations

from flexwire.errors import RecordError
from flexwire.wire.frame_layout import (
    LZ4_BLOCK_CHECKSUM,
    LZ4_CONTENT_CHECKSUM,
    LZ4_CONTENT_SIZE,
    LZ4_DICTIONARY,
    LZ4_LEAST_SIZE,
    LZ4_LENGTH_MASK,
    LZ4_MAGIC,
    LZ4_MOST_SIZE,
    LZ4_SIZE_SHIFT,
    LZ4_STORED,
    LZ4_VERSION,
    LZ4_VERSION_MASK,
    ZSTD_BLOCK_SIZE,
    ZSTD_COMPRESSED,
    ZSTD_MAGIC,
    ZSTD_RESERVED,
    ZSTD_RLE,
    lz4_block_size,
)

_LZ4_MAGIC = LZ4_MAGIC.to_bytes(4, "little")
_LZ4_MOST_RATIO = 255

_ZSTD_MAGIC = ZSTD_MAGIC.to_bytes(4, "little")
_ZSTD_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZES = (0, 2, 4, 8)


def lz4_header_size(data: bytes | memoryview, start: int = 0) -> int:
    """Give the size of the frame header at ``start``, its checksum byte included.

    Raises `RecordError` where there is no frame header, or one of another version, or with a
    dictionary.
    """
    if data[start : start + 4] != _LZ4_MAGIC or len(data) < start + 7:
        raise RecordError("expected an lz4 frame header")
    flags = data[start + 4]
    if flags & LZ4_VERSION_MASK != LZ4_VERSION or flags & LZ4_DICTIONARY:
        raise RecordError(f"lz4 frame flags {flags:#04x} of another version or a dictionary")
    return 15 if flags & LZ4_CONTENT_SIZE else 7


def lz4_bound(data: bytes | memoryview) -> int:
    """Give a size that the lz4 frames in ``data`` cannot inflate beyond."""
    bound = position = 0
    while position < len(data):
        start = position
        position += lz4_header_size(data, start)
        code = data[start + 5] >> LZ4_SIZE_SHIFT & LZ4_MOST_SIZE
        if code < LZ4_LEAST_SIZE:
            raise RecordError("an lz4 frame names a block size that does not exist")
        after_block = 4 if data[start + 4] & LZ4_BLOCK_CHECKSUM else 0
        while size := _little(data, position, 4, "lz4"):
            stored = size & LZ4_LENGTH_MASK
            position += 4 + stored + after_block
            most = min(lz4_block_size(code), stored * _LZ4_MOST_RATIO)
            bound += stored if size & LZ4_STORED else most
        position += 8 if data[start + 4] & LZ4_CONTENT_CHECKSUM else 4
    return bound


def zstd_bound(data: bytes | memoryview) -> int:
    """Give a size that the zstd frames in ``data`` cannot inflate beyond."""
    bound = position = 0
    while position < len(data):
        if data[position : position + 4] != _ZSTD_MAGIC:
            raise RecordError("expected a zstd frame header")
        descriptor = _little(data, position + 4, 1, "zstd")
        single_segment = descriptor >> 5 & 1
        content_size = _ZSTD_CONTENT_SIZES[descriptor >> 6] or single_segment
        position += 6 - single_segment + _ZSTD_DICTIONARY_ID_SIZES[descriptor & 3] + content_size
        last = False
        while not last:
            block = _little(data, position, 3, "zstd")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            if kind == ZSTD_RESERVED:
                raise RecordError("a zstd block of the reserved type")
            position += 3 + (1 if kind == ZSTD_RLE else size)
            bound += ZSTD_BLOCK_SIZE if kind == ZSTD_COMPRESSED else size
        position += 4 if descriptor & 0x04 else 0
    return bound


def _little(data: bytes | memoryview, position: int, size: int, name: str) -> int:
    if position + size > len(data):
        raise RecordError(f"the {name} frame is cut off")
    return int.from_bytes(data[position : position + size], "little")
