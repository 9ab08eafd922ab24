"""The constants of lz4 and zstd frames in compressed record batches. All are little-endian.

The sources are the LZ4 frame format, RFC 8878 (zstd), and the xxHash specification.
"""

from __future__ import annotations

from typing import Final

LZ4_MAGIC: Final = 0x184D2204
# The flags in the byte after the magic: the version, and the parts that a frame contains.
LZ4_VERSION_MASK: Final = 0xC0
LZ4_VERSION: Final = 0x40
LZ4_INDEPENDENT: Final = 0x20
LZ4_BLOCK_CHECKSUM: Final = 0x10
LZ4_CONTENT_SIZE: Final = 0x08
LZ4_CONTENT_CHECKSUM: Final = 0x04
LZ4_DICTIONARY: Final = 0x01
# The next byte contains the largest block size: 4 to 7 for 64 KiB to 4 MiB.
LZ4_LEAST_SIZE, LZ4_MOST_SIZE = 4, 7
LZ4_SIZE_SHIFT: Final = 4
# The highest bit of a block's length is set if the block is not compressed.
LZ4_STORED: Final = 1 << 31
LZ4_LENGTH_MASK: Final = LZ4_STORED - 1

ZSTD_MAGIC: Final = 0xFD2FB528
ZSTD_BLOCK_SIZE: Final = 1 << 17
"""The largest size of an inflated block."""
ZSTD_RAW, ZSTD_RLE, ZSTD_COMPRESSED, ZSTD_RESERVED = range(4)
"""The types of zstd blocks."""

XXH_PRIME_1: Final = 0x9E3779B1
XXH_PRIME_2: Final = 0x85EBCA77
XXH_PRIME_3: Final = 0xC2B2AE3D
XXH_PRIME_4: Final = 0x27D4EB2F
XXH_PRIME_5: Final = 0x165667B1


def lz4_block_size(code: int) -> int:
    """Return the size of the largest block for a given code, from 4 to 7.

    >>> lz4_block_size(4), lz4_block_size(7)
    (65536, 4194304)
    """
    return 1 << (8 + 2 * code)
