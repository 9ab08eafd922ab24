"""Compressing the records of a batch, as Kafka's Java writes them."""

from __future__ import annotations

import zlib

import cramjam

from flexwire.arguments import to_int
from flexwire.errors import EncodeError, short
from flexwire.records.attributes import Compression
from flexwire.records.inflate import GZIP_WBITS, XERIAL_MAGIC
from flexwire.records.lz4_checksum import header_checksum, with_old_checksum
from flexwire.wire.frame_layout import (
    LZ4_INDEPENDENT,
    LZ4_LEAST_SIZE,
    LZ4_MAGIC,
    LZ4_SIZE_SHIFT,
    LZ4_STORED,
    LZ4_VERSION,
    lz4_block_size,
)

# Kafka's own ranges of `compression.gzip.level` and its like.
_LEVELS = {
    Compression.GZIP: range(1, 10),
    Compression.LZ4: range(1, 18),
    Compression.ZSTD: range(-131072, 23),
}
_ZSTD_LEVEL = 3

# The version of the framing, and the oldest that can read it.
_XERIAL_VERSIONS = bytes([0, 0, 0, 1, 0, 0, 0, 1])
_XERIAL_BLOCK = 1 << 15

# Version 1, independent blocks (Kafka's Java takes no others), each of 64 KiB at most.
_LZ4_HEADER = LZ4_MAGIC.to_bytes(4, "little") + bytes(
    [LZ4_VERSION | LZ4_INDEPENDENT, LZ4_LEAST_SIZE << LZ4_SIZE_SHIFT]
)
_LZ4_BLOCK = lz4_block_size(LZ4_LEAST_SIZE)
_LZ4_END = bytes(4)


def deflate(compression: Compression, data: bytes, *, level: int | None, magic: int) -> bytes:
    """Compress ``data``; without a level, at Kafka's default.

    Snappy is written in xerial framing, and lz4 in magic 0 with the header checksum of old clients,
    because that is what their readers want. Raises `EncodeError` for a level that the compression
    type does not have.

    >>> deflate(Compression.SNAPPY, b"flex", level=None, magic=2).hex(" ", -4)
    '82534e41 50505900 00000001 00000001 00000006 040c666c 6578'
    """
    if compression is Compression.NONE and level is None:
        return data
    level = checked_level(compression, level)
    if compression is Compression.GZIP:
        deflater = zlib.compressobj(-1 if level is None else level, wbits=GZIP_WBITS)
        return deflater.compress(data) + deflater.flush()
    if compression is Compression.SNAPPY:
        return _deflate_snappy(data)
    if compression is Compression.LZ4:
        frame = _deflate_lz4(data) if level is None else _deflate_lz4_at(level, data)
        return with_old_checksum(frame) if magic == 0 else frame
    if compression is Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL if level is None else level))
    return data


def checked_level(compression: Compression, level: int | None) -> int | None:
    """Give a level that the compression type has, or None; raises `EncodeError`."""
    if level is None:
        return None
    level = to_int(level, "level")
    if level not in _LEVELS.get(compression, ()):
        raise EncodeError(_wrong_level(compression, level), path="level")
    return level


def _wrong_level(compression: Compression, level: int) -> str:
    levels = _LEVELS.get(compression)
    if levels is None:
        return f"{compression} has no levels; leave it out"
    known = f"{levels.start} to {levels.stop - 1}"
    return f"level {short(level)} is not in {known}, those of {compression}"


def _deflate_snappy(data: bytes) -> bytes:
    parts = [XERIAL_MAGIC, _XERIAL_VERSIONS]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += [len(block).to_bytes(4, "big"), block]
    return b"".join(parts)


def _deflate_lz4(data: bytes) -> bytes:
    parts = [_LZ4_HEADER, bytes([header_checksum(_LZ4_HEADER[4:])])]
    for start in range(0, len(data), _LZ4_BLOCK):
        raw = data[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(raw, store_size=False))
        if len(block) < len(raw):
            parts += [len(block).to_bytes(4, "little"), block]
        else:
            parts += [(len(raw) | LZ4_STORED).to_bytes(4, "little"), raw]
    return b"".join([*parts, _LZ4_END])


def _deflate_lz4_at(level: int, data: bytes) -> bytes:
    # The block function knows no levels, and the frame function no independent blocks.
    frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    frame.compress(data)
    return bytes(frame.finish())
