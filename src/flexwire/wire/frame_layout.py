"""The numbers of lz4, zstd and gzip, which compressed record batches hold; little-endian all.

Sources: the LZ4 frame format, RFC 8878 (zstd), RFC 1951 and 1952 (gzip), and the xxHash
specification.
"""

from __future__ import annotations

from typing import Final

LZ4_MAGIC: Final = 0x184D2204
# The flags, in the byte after the magic: the version, and the parts of a frame.
LZ4_VERSION_MASK: Final = 0xC0
LZ4_VERSION: Final = 0x40
LZ4_INDEPENDENT: Final = 0x20
LZ4_BLOCK_CHECKSUM: Final = 0x10
LZ4_CONTENT_SIZE: Final = 0x08
LZ4_CONTENT_CHECKSUM: Final = 0x04
LZ4_DICTIONARY: Final = 0x01
# The byte after that says how large blocks may be: 4 to 7 for 64 KiB to 4 MiB.
LZ4_LEAST_SIZE, LZ4_MOST_SIZE = 4, 7
LZ4_SIZE_SHIFT: Final = 4
# The highest bit of the length before a block says that the block is stored uncompressed.
LZ4_STORED: Final = 1 << 31
LZ4_LENGTH_MASK: Final = LZ4_STORED - 1

ZSTD_MAGIC: Final = 0xFD2FB528
ZSTD_BLOCK_SIZE: Final = 1 << 17
"""The most bytes that a block inflates to."""
ZSTD_RAW, ZSTD_RLE, ZSTD_COMPRESSED, ZSTD_RESERVED = range(4)
"""The types of blocks."""

GZIP_START: Final = 0x088B1F
"""A member's first three bytes: what it is, and that it is deflated."""
GZIP_HEADER_SIZE, GZIP_TRAILER_SIZE = 10, 8
"""The header without flags; the trailer is a CRC-32, and the size that there is inflated."""
CRC32_POLYNOMIAL: Final = 0xEDB88320
"""x^31 to x^0, the lowest power in the highest bit, without x^32."""
DEFLATE_STORED, DEFLATE_FIXED, DEFLATE_DYNAMIC = range(3)
"""The types of blocks."""
# The codes of one block: of lengths of codes, of literals and match lengths, of distances.
DEFLATE_LENGTH_CODES: Final = 19
DEFLATE_LITERALS, DEFLATE_DISTANCES = 286, 30
"""The most symbols that mean something; the fixed codes have two more of each."""
DEFLATE_FIXED_LITERALS, DEFLATE_FIXED_DISTANCES = 288, 32
DEFLATE_END: Final = 256
"""The symbol after the literals: the block ends."""
DEFLATE_LONGEST_CODE, DEFLATE_LONGEST_LENGTH_CODE = 15, 7
DEFLATE_LONGEST_MATCH: Final = 258
# How many symbols a symbol of the code of lengths stands for: the last one again, or zeros.
DEFLATE_AGAIN, DEFLATE_FEW_ZEROS, DEFLATE_MANY_ZEROS = 16, 17, 18

XXH_PRIME_1: Final = 0x9E3779B1
XXH_PRIME_2: Final = 0x85EBCA77
XXH_PRIME_3: Final = 0xC2B2AE3D
XXH_PRIME_4: Final = 0x27D4EB2F
XXH_PRIME_5: Final = 0x165667B1


def lz4_block_size(code: int) -> int:
    """Return the bytes of the largest block for a code, 4 to 7.

    >>> lz4_block_size(4), lz4_block_size(7)
    (65536, 4194304)
    """
    return 1 << (8 + 2 * code)
