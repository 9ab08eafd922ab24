"""Compress the records of a batch as Kafka's Java code does, and inflate them up to a limit.

For every codec, data that is too large is refused before memory is allocated. For lz4 and zstd, the
headers of the blocks are read. For snappy, the declared size is compared with the largest expansion
that the format allows. Gzip data is inflated as a stream.

Lz4 and zstd divide their content into blocks of limited size. The block headers therefore set an
upper limit for the size of the content, which is known before anything is inflated or allocated.

Python itself includes gzip. The other codecs come from cramjam, which may not be installed.
Without cramjam, records with these codecs raise `MissingExtraError`.

Clients that wrote magic 0 included the frame's magic number in the header checksum (KAFKA-3160). A
reader of the lz4 format refuses such a frame, so the one invalid byte of the frame is corrected.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from importlib import import_module
from threading import local
from typing import TYPE_CHECKING, Any

from flexwire.arguments import to_int
from flexwire.errors import EncodeError, RecordError, short
from flexwire.extras import MissingModule, import_optional
from flexwire.records.record import Compression
from flexwire.wire.frame_layout import (
    LZ4_BLOCK_CHECKSUM,
    LZ4_CONTENT_CHECKSUM,
    LZ4_CONTENT_SIZE,
    LZ4_DICTIONARY,
    LZ4_INDEPENDENT,
    LZ4_LEAST_SIZE,
    LZ4_LENGTH_MASK,
    LZ4_MAGIC,
    LZ4_MOST_SIZE,
    LZ4_SIZE_SHIFT,
    LZ4_STORED,
    LZ4_VERSION,
    LZ4_VERSION_MASK,
    XXH_PRIME_1,
    XXH_PRIME_2,
    XXH_PRIME_3,
    XXH_PRIME_4,
    XXH_PRIME_5,
    ZSTD_BLOCK_SIZE,
    ZSTD_COMPRESSED,
    ZSTD_MAGIC,
    ZSTD_RESERVED,
    ZSTD_RLE,
    lz4_block_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


cramjam: Any = import_optional("snappy, lz4 or zstd compression", "records", "cramjam")
# The error messages of cramjam, or of Python's zlib, for damaged data.
_DAMAGED: tuple[type[Exception], ...] = (
    zlib.error,
    *(() if isinstance(cramjam, MissingModule) else (cramjam.DecompressionError,)),
)
_LZ4_MAGIC = LZ4_MAGIC.to_bytes(4, "little")
_LZ4_MOST_RATIO = 255

_ZSTD_MAGIC = ZSTD_MAGIC.to_bytes(4, "little")
_ZSTD_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZES = (0, 2, 4, 8)


def lz4_header_size(data: bytes | memoryview, start: int = 0) -> int:
    """Return the size of the frame header at ``start``, including its checksum byte.

    Raises `RecordError` if no frame header begins at ``start``, or if the header has another
    version or requires a dictionary.
    """
    if data[start : start + 4] != _LZ4_MAGIC or len(data) < start + 7:
        raise RecordError("expected an lz4 frame header")
    flags = data[start + 4]
    if flags & LZ4_VERSION_MASK != LZ4_VERSION or flags & LZ4_DICTIONARY:
        raise RecordError(
            f"lz4 frame flags {flags:#04x} declare an unknown version or a dictionary"
        )
    return 15 if flags & LZ4_CONTENT_SIZE else 7


def lz4_bound(data: bytes | memoryview) -> int:
    """Return an upper limit of the inflated size of the lz4 frames in ``data``."""
    bound = position = 0
    while position < len(data):
        start = position
        position += lz4_header_size(data, start)
        code = data[start + 5] >> LZ4_SIZE_SHIFT & LZ4_MOST_SIZE
        if code < LZ4_LEAST_SIZE:
            raise RecordError("an lz4 frame has an invalid block size")
        after_block = 4 if data[start + 4] & LZ4_BLOCK_CHECKSUM else 0
        while size := _little(data, position, 4, "lz4"):
            stored = size & LZ4_LENGTH_MASK
            position += 4 + stored + after_block
            most = min(lz4_block_size(code), stored * _LZ4_MOST_RATIO)
            bound += stored if size & LZ4_STORED else most
        position += 8 if data[start + 4] & LZ4_CONTENT_CHECKSUM else 4
    return bound


def zstd_bound(data: bytes | memoryview) -> int:
    """Return an upper limit of the inflated size of the zstd frames in ``data``."""
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
                raise RecordError("a zstd block has the reserved type")
            position += 3 + (1 if kind == ZSTD_RLE else size)
            bound += ZSTD_BLOCK_SIZE if kind == ZSTD_COMPRESSED else size
        position += 4 if descriptor & 0x04 else 0
    return bound


def _little(data: bytes | memoryview, position: int, size: int, name: str) -> int:
    if position + size > len(data):
        raise RecordError(f"the {name} frame is cut off")
    return int.from_bytes(data[position : position + size], "little")


_LONGEST = 15


def with_right_checksum(data: bytes) -> bytes:
    """Return the frame with the header checksum that the lz4 format requires.

    Raises `RecordError` if the checksum is neither correct nor the checksum of old clients.
    """
    last = lz4_header_size(data) - 1
    if len(data) <= last:
        raise RecordError("the lz4 frame header is cut off")
    right = header_checksum(data[4:last])
    if data[last] == right:
        return data
    if data[last] != header_checksum(data[:last]):
        raise RecordError(f"lz4 header checksum is {data[last]:#04x}, expected {right:#04x}")
    return data[:last] + bytes([right]) + data[last + 1 :]


def with_old_checksum(data: bytes) -> bytes:
    """Return the frame with the header checksum that old clients expect."""
    last = lz4_header_size(data) - 1
    return data[:last] + bytes([header_checksum(data[:last])]) + data[last + 1 :]


def header_checksum(data: bytes) -> int:
    """Return the checksum byte for a frame header. ``data`` begins with the header's flags."""
    return xxh32_short(data) >> 8 & 0xFF


def xxh32_short(data: bytes) -> int:
    """Return XXH32 with seed 0. For at most 15 bytes, as here, the algorithm is simpler.

    >>> hex(xxh32_short(b""))
    '0x2cc5d05'
    """
    if len(data) > _LONGEST:
        raise ValueError(f"got {len(data)} bytes, expected at most {_LONGEST}")
    value = XXH_PRIME_5 + len(data)
    whole = len(data) & ~3
    for index in range(0, whole, 4):
        lane = int.from_bytes(data[index : index + 4], "little")
        value = _rotate(value + lane * XXH_PRIME_3, 17) * XXH_PRIME_4
    for byte in data[whole:]:
        value = _rotate(value + byte * XXH_PRIME_5, 11) * XXH_PRIME_1
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * XXH_PRIME_2 & 0xFFFFFFFF
    value = (value ^ value >> 13) * XXH_PRIME_3 & 0xFFFFFFFF
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


with suppress(ImportError):
    import zstandard

# Unlike all faster libraries, zlib_ng accepts exactly the input that zlib accepts.
try:
    fast_zlib: Any = import_module("zlib_ng.zlib_ng")
except ImportError:
    fast_zlib = zlib

# The longest element in snappy's format expands 3 bytes to 64 bytes.
_SNAPPY_MOST_RATIO = 22
XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16

GZIP_WBITS = 31
# At the end of each gzip member, the bytes after the member are copied, so a million empty members
# would take forever. Kafka's clients write a single member.
_GZIP_MOST_MEMBERS = 64


def inflate(compression: Compression, data: bytes, *, magic: int, limit: int) -> bytes:
    """Inflate ``data`` to at most ``limit`` bytes.

    Raises `RecordError` if the data is damaged, cut off, followed by other bytes, or larger than
    the limit when inflated.

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
            return _inflate_blocks("lz4", frame, lz4_bound(frame), limit)
        if compression is Compression.ZSTD:
            return _inflate_blocks("zstd", data, zstd_bound(data), limit)
    except _DAMAGED as error:
        raise RecordError(f"the {compression} data is damaged: {error}") from None
    return data


def inflate_into(
    compression: Compression, data: memoryview, room: memoryview, *, bound: int | None = None
) -> int:
    """Inflate ``data`` of a record batch into a buffer. Return the number of bytes.

    ``bound`` is the upper limit from `lz4_bound` or `zstd_bound`, if it is known. ``bound`` is
    negative if that function refuses the data.

    The result is -1 if `inflate` must be used instead, because the buffer is too small, the data is
    damaged, or the data has another codec. In this case the content of the buffer is undefined.
    """
    try:
        if (run := _DECLARED.get(compression)) is not None:
            return run(data, room)
        bound_of, name = _BOUNDED.get(compression, (None, ""))
        if bound_of is None:
            return -1
        bound = bound_of(data) if bound is None else bound
        if not 0 <= bound <= len(room):
            return -1
        if compression is Compression.ZSTD and (size := _inflate_zstd_into(data, room)) >= 0:
            return size
        return int(getattr(cramjam, name).decompress_into(data, room))
    except (RecordError, *_DAMAGED, fast_zlib.error):
        return -1


def _beyond(limit: int) -> RecordError:
    reason = f"the records inflate to more than {limit} bytes; to allow them, raise max_inflated"
    return RecordError(reason)


def _inflate_blocks(name: str, data: bytes, bound: int, limit: int) -> bytes:
    codec = getattr(cramjam, name)
    if bound <= limit:
        return bytes(codec.decompress(data))
    room = bytearray(limit)
    try:
        size = codec.decompress_into(data, room)
    except _DAMAGED as error:
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
    raise RecordError(f"the gzip data has more than {_GZIP_MOST_MEMBERS} members")


def _inflate_gzip_into(data: memoryview, room: memoryview) -> int:
    # A member ends with its size, and zlib is faster if it knows the size in advance.
    declared = int.from_bytes(data[-4:], "little")
    if declared > len(room):
        return -1
    member = fast_zlib.decompressobj(GZIP_WBITS)
    inflated = member.decompress(data, declared + 1)
    if not member.eof or member.unused_data:
        return -1
    room[: len(inflated)] = inflated
    return len(inflated)


def _inflate_zstd_into(data: memoryview, room: memoryview) -> int:
    """Inflate one frame with this thread's cached context. Return -1 if cramjam must be used.

    The caller has checked that the content of all frames fits into the buffer.
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
        # An empty buffer has no address to which data could be written.
        if size:
            cramjam.snappy.decompress_raw_into(block, room[used : used + size])
        elif cramjam.snappy.decompress_raw(block):
            return -1
        used += size
    return used


def _snappy_blocks(data: bytes | memoryview) -> Iterator[bytes | memoryview]:
    """Yield the raw blocks in snappy data, with or without the framing of Kafka's Java."""
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield data
        return
    position = 0
    while position < len(data):
        # A stream may consist of several streams, each with a header of its own.
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
    """Return a block's declared size. Raises `RecordError` if it is impossible or too large."""
    declared: int = cramjam.snappy.decompress_raw_len(block)
    if declared > len(block) * _SNAPPY_MOST_RATIO:
        raise RecordError(f"{len(block)} bytes of snappy data cannot inflate to {declared} bytes")
    if declared > room:
        raise _beyond(limit)
    return declared


# Creating a context takes as long as inflating a batch of 12 kB, and two threads cannot share a
# context.
_KEPT = local()
# The largest window of a frame that is accepted. A context allocates as much memory as the frame
# demands.
_MOST_WINDOW = 8 << 20
_HAS_CONTEXTS = "zstandard" in globals()
# The codecs whose data contains its inflated size.
_DECLARED = {
    Compression.GZIP: _inflate_gzip_into,
    Compression.SNAPPY: _inflate_snappy_into,
}
# The codecs whose frames set an upper limit for their inflated size.
_BOUNDED = {
    Compression.LZ4: (lz4_bound, "lz4"),
    Compression.ZSTD: (zstd_bound, "zstd"),
}

# The ranges that Kafka allows for `compression.gzip.level` and similar settings.
_LEVELS = {
    Compression.GZIP: range(1, 10),
    Compression.LZ4: range(1, 18),
    Compression.ZSTD: range(-131072, 23),
}
_ZSTD_LEVEL = 3

# The version of the framing, and the oldest version that can read it.
_XERIAL_VERSIONS = bytes([0, 0, 0, 1, 0, 0, 0, 1])
_XERIAL_BLOCK = 1 << 15

# Version 1 with independent blocks (Kafka's Java accepts no others), each of at most 64 KiB.
_LZ4_HEADER = LZ4_MAGIC.to_bytes(4, "little") + bytes(
    [LZ4_VERSION | LZ4_INDEPENDENT, LZ4_LEAST_SIZE << LZ4_SIZE_SHIFT]
)
_LZ4_BLOCK = lz4_block_size(LZ4_LEAST_SIZE)
_LZ4_END = bytes(4)


def deflate(compression: Compression, data: bytes, *, level: int | None, magic: int) -> bytes:
    """Compress ``data``. Without a level, Kafka's default is used.

    Snappy data is written in xerial framing. Lz4 data in magic 0 has the header checksum of old
    clients, because their readers require it. Raises `EncodeError` for a level that the compression
    type does not support.

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
    """Return a level that the compression type supports, or None.

    Raises `EncodeError` for other levels.
    """
    if level is None:
        return None
    level = to_int(level, "level")
    if level not in _LEVELS.get(compression, ()):
        raise EncodeError(_wrong_level(compression, level), path="level")
    return level


def _wrong_level(compression: Compression, level: int) -> str:
    levels = _LEVELS.get(compression)
    if levels is None:
        return f"{compression} does not support levels; leave out the level"
    range_text = f"{levels.start} to {levels.stop - 1}"
    return f"level {short(level)} is outside the range for {compression}, {range_text}"


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
    # The function for blocks supports no levels, and the function for frames cannot write
    # independent blocks.
    frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    frame.compress(data)
    return bytes(frame.finish())
