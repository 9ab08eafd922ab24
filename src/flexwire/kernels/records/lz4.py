"""Inflates lz4 frames from memory to memory.

What is inflated here is what the lz4 library inflates it to. What is damaged, of another version,
or only perhaps sound is refused, and the library is asked: its decoders differ in how strictly they
take the end of a block, so here the strictest rules hold. Nothing is read beyond ``stop``, nor
written from ``room`` on; in between more is copied than is meant, because eight bytes are copied
sooner than seven.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    copy_memory,
    load_uint8,
    load_word,
    make_loader,
    make_storer,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import inlined
from flexwire.kernels.records.xxh32 import load_uint32_native, xxh32
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
    LZ4_VERSION,
    LZ4_VERSION_MASK,
)

_load_uint16_native = make_loader(16, swap=False, signed=False)
_store_int16_native = make_storer(16, swap=False)

_LEAST_FRAME = 11
# Of the flags: version 1, no dictionary, and no bit that has no meaning yet.
_KNOWN_MASK, _KNOWN = LZ4_VERSION_MASK | 0x02 | LZ4_DICTIONARY, LZ4_VERSION
# Of the byte after them.
_SIZE_MASK = LZ4_MOST_SIZE << LZ4_SIZE_SHIFT

# A length of 15 in a token goes on after it; a match is this much longer than it says.
_LONG, _LEAST_MATCH = 15, 4
# A match begins at least 12 bytes before the end of the room, and ends 5 before it. Of the block,
# there are its offset, a token and 5 bytes after it.
_MATCH_ROOM, _LAST_LITERALS, _MATCH_REST = 12, 5, 8
# As many bytes of block and room make a short sequence safe without a further look.
_SAFE_REST, _SAFE_ROOM = 32, 64


@inlined
def _copy_two_words(target: int, source: int) -> None:
    store_word(target, load_word(source))
    store_word(target + 8, load_word(source + 8))


@part
def _long_length(source: int, stop: int, length: int) -> tuple[int, int]:
    """Read on a length; gives it and the position after it, -1 if the block ends within it."""
    while source < stop:
        byte = load_uint8(source)
        source += 1
        length += byte
        if byte != 0xFF:
            return length, source
    return 0, -1


@part
def repeat(target: int, offset: int, length: int, room: int) -> None:
    """Copy from ``offset`` bytes before the target; what is copied may begin with what it makes."""
    end = target + length
    distance = offset
    while distance < 8:
        distance += offset
    # The pattern once more, until a whole word of it stands before the target.
    ready = min(end, target + distance - offset)
    while target < ready:
        store_int8(target, load_uint8(target - offset))
        target += 1
    while end - target >= 8:
        store_word(target, load_word(target - distance))
        target += 8
    # Of a match that ended before the pattern stood, a word would begin before what there is.
    if target == end:
        return
    if room - target >= 8:
        store_word(target, load_word(target - distance))
    else:
        while target < end:
            store_int8(target, load_uint8(target - distance))
            target += 1


@part
def _inflate_block(source: int, stop: int, target: int, window: int, room: int) -> int:
    """Inflate a block; gives the address after what it made, -1 if the library has to do it.

    Matches may reach back to ``window``.
    """
    while source < stop:
        token = load_uint8(source)
        source += 1
        literals, length = token >> 4, token & 0x0F
        if literals < _LONG and stop - source >= _SAFE_REST and room - target >= _SAFE_ROOM:
            _copy_two_words(target, source)
            source += literals
            target += literals
            offset = _load_uint16_native(source)
            source += 2
            if length < _LONG and 8 <= offset <= target - window:
                _copy_two_words(target, target - offset)
                _store_int16_native(target + 16, _load_uint16_native(target + 16 - offset))
                target += length + _LEAST_MATCH
                continue
        else:
            if literals == _LONG:
                literals, source = _long_length(source, stop, literals)
                if source < 0:
                    return -1
            if literals > stop - source or literals > room - target:
                return -1
            copy_memory(target, source, literals)
            source += literals
            target += literals
            if source == stop:
                return target
            if stop - source < _MATCH_REST or room - target < _MATCH_ROOM:
                return -1
            offset = _load_uint16_native(source)
            source += 2
        if length == _LONG:
            length, source = _long_length(source, stop, length)
            if source < 0:
                return -1
        length += _LEAST_MATCH
        if offset == 0 or offset > target - window or length > room - _LAST_LITERALS - target:
            return -1
        repeat(target, offset, length, room)
        target += length
    return -1


@part
def _read_header(source: int, stop: int) -> tuple[int, int, int]:
    """Read a frame header; gives the position after it, its flags, and the size of its blocks.

    The position is -1 if there is no frame header, or one for the library.
    """
    if stop - source < _LEAST_FRAME or load_uint32_native(source) != LZ4_MAGIC:
        return -1, 0, 0
    flags, sizes = load_uint8(source + 4), load_uint8(source + 5)
    code = sizes >> LZ4_SIZE_SHIFT
    if flags & _KNOWN_MASK != _KNOWN or sizes & ~_SIZE_MASK != 0 or code < LZ4_LEAST_SIZE:
        return -1, 0, 0
    end = source + (14 if flags & LZ4_CONTENT_SIZE else 6)
    if end >= stop or xxh32(source + 4, end) >> 8 & 0xFF != load_uint8(end):
        return -1, 0, 0
    return end + 1, flags, 1 << (8 + 2 * code)


@part
def _inflate_blocks(
    source: int, stop: int, target: int, room: int, flags: int, most: int
) -> tuple[int, int]:
    """Inflate the blocks of a frame; gives the positions after their end mark and what they made.

    ``most`` is the size that no block passes. The first position is -1 for a frame to be refused.
    """
    begin = target
    while stop - source >= 4:
        size = load_uint32_native(source)
        source += 4
        if size == 0:
            return source, target
        stored = size & LZ4_LENGTH_MASK
        if stored == 0 or stored > most or stored > stop - source:
            return -1, 0
        if size != stored:
            if stored > room - target:
                return -1, 0
            copy_memory(target, source, stored)
            target += stored
        else:
            window = target if flags & LZ4_INDEPENDENT else begin
            end = source + stored
            target = _inflate_block(source, end, target, window, min(room, target + most))
            if target < 0:
                return -1, 0
        source += stored
        if flags & LZ4_BLOCK_CHECKSUM:
            if stop - source < 4 or load_uint32_native(source) != xxh32(source - stored, source):
                return -1, 0
            source += 4
    return -1, 0


@part
def inflate_frames(source: int, stop: int, target: int, room: int) -> int:
    """Inflate the lz4 frames from ``source`` to ``stop``, which are all that is there.

    Gives the address after what they made; -1 where they are refused, or there is too little room.
    """
    while source < stop:
        header = source
        source, flags, most = _read_header(source, stop)
        if source < 0:
            return -1
        begin = target
        source, target = _inflate_blocks(source, stop, target, room, flags, most)
        if source < 0:
            return -1
        if flags & LZ4_CONTENT_SIZE and load_word(header + 6) != target - begin:
            return -1
        if flags & LZ4_CONTENT_CHECKSUM:
            if stop - source < 4 or load_uint32_native(source) != xxh32(begin, target):
                return -1
            source += 4
    return target
