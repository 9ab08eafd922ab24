"""Inflating the records of a batch, never beyond a limit.

Every codec refuses before it allocates: lz4 and zstd by walking their block headers, snappy by the
size it declares against the most its format can expand, gzip by streaming.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from threading import local
from typing import TYPE_CHECKING

import cramjam

with suppress(ImportError):
    import zstandard

from flexwire.errors import RecordError
from flexwire.records.attributes import Compression
from flexwire.records.bounds import lz4_bound, zstd_bound
from flexwire.records.lz4_checksum import with_right_checksum

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

# The longest element of snappy's format makes 64 bytes of 3.
_SNAPPY_MOST_RATIO = 22
XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16

GZIP_WBITS = 31
# What follows a member is copied when it ends, so a million empty members would take forever.
# Kafka's clients write one.
_GZIP_MOST_MEMBERS = 64


def inflate(compression: Compression, data: bytes, *, magic: int, limit: int) -> bytes:
    """Inflate ``data``; the result has at most ``limit`` bytes.

    Raises `RecordError` where the data is damaged, cut off, followed by something else, or would
    inflate beyond the limit.

    >>> inflate(Compression.SNAPPY, bytes.fromhex("04 0c 666c6578"), magic=2, limit=100)
    b'flex'
    """
    try:
        if compression is Compression.GZIP:
            return _inflate_gzip(data, limit)
        if compression is Compression.SNAPPY:
            return _inflate_snappy(data, limit)
        if compression is Compression.LZ4:
            frame = with_right_checksum(data) if magic == 0 else data
            return _inflate_blocks(cramjam.lz4, frame, lz4_bound(frame), limit)
        if compression is Compression.ZSTD:
            return _inflate_blocks(cramjam.zstd, data, zstd_bound(data), limit)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise RecordError(f"the {compression} data is damaged: {error}") from None
    return data


def inflate_into(
    compression: Compression, data: memoryview, room: memoryview, *, bound: int | None = None
) -> int:
    """Inflate ``data`` of a record batch into a room; gives how many bytes there are then.

    ``bound`` is what `flexwire.records.bounds` gives for the data, if it is known, and below 0 for
    what is refused there.

    It gives -1 where `inflate` must do it: there is too little room, the data is damaged, or it
    is of another codec. What stands in the room then means nothing.
    """
    try:
        if (run := _DECLARED.get(compression)) is not None:
            return run(data, room)
        bound_of, codec = _BOUNDED.get(compression, (None, None))
        if bound_of is None or codec is None:
            return -1
        bound = bound_of(data) if bound is None else bound
        if not 0 <= bound <= len(room):
            return -1
        if compression is Compression.ZSTD and (size := _inflate_zstd_into(data, room)) >= 0:
            return size
        return int(codec.decompress_into(data, room))
    except (RecordError, cramjam.DecompressionError, zlib.error):
        return -1


def _beyond(limit: int) -> RecordError:
    reason = f"the records inflate beyond {limit} bytes; if that is meant, raise max_inflated"
    return RecordError(reason)


def _inflate_blocks(codec: ModuleType, data: bytes, bound: int, limit: int) -> bytes:
    if bound <= limit:
        return bytes(codec.decompress(data))
    room = bytearray(limit)
    try:
        size = codec.decompress_into(data, room)
    except cramjam.DecompressionError as error:
        raise RecordError(f"{_beyond(limit).reason} ({error})") from None
    return bytes(memoryview(room)[:size])


def _inflate_gzip(data: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    for _ in range(_GZIP_MOST_MEMBERS):
        member = zlib.decompressobj(GZIP_WBITS)
        part = member.decompress(data, room + 1)
        room -= len(part)
        if room < 0:
            raise _beyond(limit)
        if not member.eof:
            raise RecordError("the gzip data is cut off")
        parts.append(part)
        data = member.unused_data
        if not data:
            return b"".join(parts)
    raise RecordError(f"gzip data of more than {_GZIP_MOST_MEMBERS} members")


def _inflate_gzip_into(data: memoryview, room: memoryview) -> int:
    # A member ends with its size, and zlib is quicker if it knows where to stop.
    declared = int.from_bytes(data[-4:], "little")
    if declared > len(room):
        return -1
    member = zlib.decompressobj(GZIP_WBITS)
    inflated = member.decompress(data, declared + 1)
    if not member.eof or member.unused_data:
        return -1
    room[: len(inflated)] = inflated
    return len(inflated)


def _inflate_zstd_into(data: memoryview, room: memoryview) -> int:
    """Inflate one frame by the context that this thread keeps; -1 where cramjam is to be asked.

    The bound of all frames is known to fit into the room.
    """
    if not _HAS_CONTEXTS:
        return -1
    context = getattr(_KEPT, "context", None)
    if context is None:
        context = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
        _KEPT.context = context
    frame = context.decompressobj()
    try:
        inflated = frame.decompress(data)
    except zstandard.ZstdError:
        return -1
    if not frame.eof or frame.unused_data:
        return -1
    room[: len(inflated)] = inflated
    return len(inflated)


def _inflate_snappy(data: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    for block in _snappy_blocks(data):
        _check_snappy(block, room, limit)
        parts.append(bytes(cramjam.snappy.decompress_raw(block)))
        room -= len(parts[-1])
    return b"".join(parts)


def _inflate_snappy_into(data: memoryview, room: memoryview) -> int:
    used = 0
    for block in _snappy_blocks(data):
        size = _check_snappy(block, len(room) - used, len(room))
        # Of no bytes there is nothing to write to.
        if size:
            cramjam.snappy.decompress_raw_into(block, room[used : used + size])
        elif cramjam.snappy.decompress_raw(block):
            return -1
        used += size
    return used


def _snappy_blocks(data: bytes | memoryview) -> Iterator[bytes | memoryview]:
    """Give the raw blocks in snappy data, which may be in the framing that Kafka's Java writes."""
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield data
        return
    position = 0
    while position < len(data):
        # A stream may be several written one after the other, each with its header.
        is_header = data[position : position + len(XERIAL_MAGIC)] == XERIAL_MAGIC
        if is_header and position + _XERIAL_HEADER_SIZE <= len(data):
            position += _XERIAL_HEADER_SIZE
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if position + size > len(data):
            raise RecordError("the snappy data is cut off")
        yield data[position : position + size]
        position += size


def _check_snappy(block: bytes | memoryview, room: int, limit: int) -> int:
    """Give the size that a block declares; `RecordError` where it cannot be, or has no room."""
    declared: int = cramjam.snappy.decompress_raw_len(block)
    if declared > len(block) * _SNAPPY_MOST_RATIO:
        raise RecordError(f"{len(block)} bytes of snappy data declare {declared} when inflated")
    if declared > room:
        raise _beyond(limit)
    return declared


# Making a context costs as much as inflating a batch of 12 kB; one is not for two threads at once.
_KEPT = local()
# The most bytes of a frame's window, which a context gets memory for because the frame says so.
_MOST_WINDOW = 8 << 20
_HAS_CONTEXTS = "zstandard" in globals()
# The codecs that say how much they inflate to.
_DECLARED = {
    Compression.GZIP: _inflate_gzip_into,
    Compression.SNAPPY: _inflate_snappy_into,
}
# The codecs whose frames say in advance how much they inflate to at most.
_BOUNDED = {
    Compression.LZ4: (lz4_bound, cramjam.lz4),
    Compression.ZSTD: (zstd_bound, cramjam.zstd),
}
