"""Make lz4 frames of every kind, with the lz4 library and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cramjam

from flexwire.records.compression import header_checksum

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

MAGIC = b"\x04\x22\x4d\x18"
INDEPENDENT, BLOCK_CHECKSUM, CONTENT_SIZE, CONTENT_CHECKSUM = 0x20, 0x10, 0x08, 0x04
RAW = 1 << 31


def header(flags: int, size_code: int = 4, content_size: int = 0) -> bytes:
    """Return a frame header with a correct checksum."""
    head = bytes([0x40 | flags, size_code << 4])
    if flags & CONTENT_SIZE:
        head += content_size.to_bytes(8, "little")
    return MAGIC + head + bytes([header_checksum(head)])


def frame(*blocks: bytes, flags: int = INDEPENDENT, size_code: int = 4) -> bytes:
    """Return a frame of compressed blocks."""
    parts = [len(block).to_bytes(4, "little") + block for block in blocks]
    return header(flags, size_code) + b"".join(parts) + bytes(4)


def contents(source: random.Random) -> Iterator[bytes]:
    """Yield contents that compress differently: runs of each period, text, noise, and mixtures."""
    yield from (b"", b"x", b"flexwire", bytes(100_000), source.randbytes(70_000))
    for period in (*range(1, 20), 31, 64):
        pattern = source.randbytes(period)
        yield (pattern * 400)[: source.randrange(20, 400 * period)]
    words = [source.randbytes(source.randrange(1, 12)) for _ in range(50)]
    for size in (10, 100, 3000, 40_000):
        yield b"".join(source.choices(words, k=size))
        yield b"".join(
            source.choice(words) * source.choice([1, 1, 9, 90]) for _ in range(size // 9)
        )


def library_frames(content: bytes) -> Iterator[bytes]:
    """Yield the frames that the library writes, with and without each of its options."""
    yield bytes(cramjam.lz4.compress(content))
    for level in (1, 4, 12):
        for checksum in (False, True):
            for linked in (False, True):
                compressor = cramjam.lz4.Compressor(
                    level=level, content_checksum=checksum, block_linked=linked
                )
                compressor.compress(content)
                yield bytes(compressor.finish())
