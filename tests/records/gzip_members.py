"""Make gzip members: all kinds that zlib writes, and members that are made by hand, bit by bit."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HEADER = bytes.fromhex("1f8b0800 00000000 00ff")
END = 256
# The order of the code length code's lengths, from RFC 1951.
ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
STRATEGIES = (
    zlib.Z_DEFAULT_STRATEGY,
    zlib.Z_FILTERED,
    zlib.Z_HUFFMAN_ONLY,
    zlib.Z_RLE,
    zlib.Z_FIXED,
)


def written(content: bytes) -> Iterator[bytes]:
    """Yield zlib's output for each level, strategy and memory size, in one block or several."""
    for level in (0, 1, 3, 6, 9):
        for strategy in STRATEGIES if level else (zlib.Z_DEFAULT_STRATEGY,):
            for memory in (1, 9):
                made = zlib.compressobj(level, zlib.DEFLATED, 31, memory, strategy)
                yield made.compress(content) + made.flush()
    for flush in (zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_PARTIAL_FLUSH):
        made = zlib.compressobj(6, zlib.DEFLATED, 31)
        half = len(content) // 2
        first = made.compress(content[:half]) + made.flush(flush)
        yield first + made.compress(content[half:]) + made.flush()


def member(stream: bytes, content: bytes) -> bytes:
    """Return a deflate stream as a gzip member with a correct CRC and size."""
    return HEADER + stream + trailer(content)


def trailer(content: bytes) -> bytes:
    """Return the bytes that follow the stream in the member."""
    return zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")


def codewords(lengths: Sequence[int]) -> dict[int, str]:
    """Return the canonical code for these lengths, with the first bit first; RFC 1951, 3.2.2."""
    code, made = 0, {}
    for length in range(1, 16):
        for symbol, its in enumerate(lengths):
            if its == length:
                made[symbol] = f"{code:0{length}b}"[-length:]
                code += 1
        code <<= 1
    return made


def number(value: int, width: int) -> str:
    """Return the bits of a number, lowest first."""
    return f"{value:0{width}b}"[::-1] if width else ""


def to_bytes(bits: str) -> bytes:
    """Return bits as bytes, with the first bit as the lowest."""
    return b"".join(
        int(bits[start : start + 8][::-1], 2).to_bytes(1, "little")
        for start in range(0, len(bits), 8)
    )


def dynamic(
    literals: Sequence[int],
    distances: Sequence[int],
    data: str = "",
    *,
    lengths: str | None = None,
    code: Sequence[int] = (4,) * 16 + (0, 0, 0),
    counts: tuple[int, int] | None = None,
) -> str:
    """Return the bits of a last block with its own codes, whose lengths are given in full.

    ``code`` is the code for ``lengths``, and ``counts`` are the numbers of symbols that the block
    declares; both are correct by default.
    """
    if lengths is None:
        words = codewords(code)
        lengths = "".join(words[length] for length in (*literals, *distances))
    many, few = counts or (len(literals), len(distances))
    head = number(many - 257, 5) + number(few - 1, 5) + number(len(ORDER) - 4, 4)
    return "101" + head + "".join(number(code[one], 3) for one in ORDER) + lengths + data


def symbols(given: Iterable[int], lengths: Sequence[int]) -> str:
    """Return the bits for symbols in the code with these lengths."""
    words = codewords(lengths)
    return "".join(words[one] for one in given)


def stored(content: bytes) -> bytes:
    """Return a stored block that is not the last."""
    size = len(content)
    return b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + content
