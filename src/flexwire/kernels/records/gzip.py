"""Inflates gzip from memory to memory.

What is inflated here is what zlib inflates it to. What is damaged, has several members, or flags in
its header is refused, and zlib is asked. Nothing is read beyond ``stop``, nor written from ``room``
on; in between more is copied than is meant.

Bits are taken from a buffer of a word. ``bits`` is how many of it count; those above them are zero,
or what follows in the data, so that they can be put there again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types

from flexwire.kernels.machine import (
    copy_memory,
    intrinsic,
    load_uint8,
    load_word,
    make_local,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import CHUNK, copy_chunk, inlined
from flexwire.kernels.records.crc32 import crc32_of
from flexwire.kernels.records.gzip_codes import (
    BEGIN,
    CODE_LENGTHS,
    DISTANCE_BITS,
    DISTANCE_TABLE,
    END,
    LENGTH_BITS,
    LENGTHS,
    LITERAL,
    LITERAL_BITS,
    LITERAL_TABLE,
    LONGER,
    MEMORY,
    ROOM,
    SPECIAL,
    STOP,
    build,
    build_both,
    entry_at,
    load_uint16_native,
    ordered,
    set_fixed_lengths,
)
from flexwire.kernels.records.lz4 import repeat
from flexwire.kernels.records.xxh32 import load_uint32_native
from flexwire.wire.frame_layout import (
    DEFLATE_AGAIN,
    DEFLATE_DISTANCES,
    DEFLATE_DYNAMIC,
    DEFLATE_END,
    DEFLATE_FEW_ZEROS,
    DEFLATE_FIXED_DISTANCES,
    DEFLATE_FIXED_LITERALS,
    DEFLATE_LENGTH_CODES,
    DEFLATE_LITERALS,
    DEFLATE_MANY_ZEROS,
    DEFLATE_STORED,
    GZIP_HEADER_SIZE,
    GZIP_START,
    GZIP_TRAILER_SIZE,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_LITERAL_MASK, _DISTANCE_MASK = (1 << LITERAL_BITS) - 1, (1 << DISTANCE_BITS) - 1
# A distance has at most so many bits.
_DISTANCE_MOST = 28
# As many bytes of data and room let a symbol and all that is copied for it go without a look.
_SAFE_REST, _SAFE_ROOM = 32, 320
# How inflating a block ended, if it did.
(_GOES_ON, _AT_END, _REFUSED) = range(3)
_memory = make_local(MEMORY)


@intrinsic
def _down(typing_context: Any, word: Any, count: Any) -> Any:
    """Shift a word down by the lowest six bits of ``count``, with zeros from above."""
    del typing_context, word, count

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        mask = ir.Constant(ir.IntType(64), 63)
        return builder.lshr(arguments[0], builder.and_(arguments[1], mask))

    return types.int64(types.int64, types.int64), code


down: Callable[[int, int], int] = _down


@inlined
def _extra(buffer: int, entry: int) -> int:
    """Give what an entry stands for, with the extra bits that are in the buffer."""
    taken = buffer & ((1 << (entry & 63)) - 1)
    return (entry >> 16) + (taken >> (entry >> 8 & 15))


@part
def _refill(source: int, stop: int, buffer: int, bits: int) -> tuple[int, int, int]:
    """Fill the buffer, to 48 bits at least if the data has them."""
    if stop - source >= 8:
        buffer |= load_word(source) << bits
        return source + (63 - bits >> 3), buffer, bits | 56
    while bits < 48 and source < stop:
        buffer |= load_uint8(source) << bits
        source += 1
        bits += 8
    return source, buffer, bits


@inlined
def _copy_match(target: int, distance: int, length: int, room: int) -> None:
    """Copy a match, and up to 40 bytes more; ``room`` is that far away at least."""
    source, end = target - distance, target + length
    if distance >= CHUNK:
        copy_chunk(target, source)
        while end - target > CHUNK:
            target += CHUNK
            source += CHUNK
            copy_chunk(target, source)
    elif distance >= 8:
        while target < end:
            store_word(target, load_word(source))
            target += 8
            source += 8
    else:
        repeat(target, distance, length, room)


@inlined
def _further(table: int, entry: int, buffer: int) -> int:
    """Give the entry in the second table that an entry of the first points to."""
    return entry_at(table, (entry >> 16) + (buffer & ((1 << (entry >> 8 & 15)) - 1)))


@inlined
def _take_literal(table: int, buffer: int, bits: int) -> tuple[int, int, int, int]:
    """Give the next entry, the buffer as it is, and buffer and bits after it."""
    entry = entry_at(table, buffer & _LITERAL_MASK)
    return entry, buffer, down(buffer, entry), bits - entry


@inlined
def _fill(source: int, buffer: int, bits: int) -> tuple[int, int, int]:
    """Fill the buffer, to 56 bits at least; only the lowest six bits of ``bits`` count."""
    buffer |= load_word(source) << (bits & 63)
    return source + 7 - (bits >> 3 & 7), buffer, bits | 56


@part
def _inflate_fast(
    source: int, buffer: int, bits: int, target: int, memory: int
) -> tuple[int, int, int, int, int]:
    """Inflate while there is enough of data and room for no further look.

    Gives source, buffer, bits and target, and how it ended. Within, only the lowest six bits of
    ``bits`` count, as an entry is subtracted whole.
    """
    literals, distances = memory + LITERAL_TABLE, memory + DISTANCE_TABLE
    begin, room = load_word(memory + BEGIN), load_word(memory + ROOM)
    last_source, last_target = load_word(memory + STOP) - _SAFE_REST, room - _SAFE_ROOM
    ended = _GOES_ON
    while source <= last_source and target <= last_target:
        source, buffer, bits = _fill(source, buffer, bits)
        entry, saved, buffer, bits = _take_literal(literals, buffer, bits)
        if entry & LITERAL:
            store_int8(target, entry >> 16)
            target += 1
            entry, saved, buffer, bits = _take_literal(literals, buffer, bits)
            if entry & LITERAL:
                store_int8(target, entry >> 16)
                target += 1
                entry, saved, buffer, bits = _take_literal(literals, buffer, bits)
                if entry & LITERAL:
                    store_int8(target, entry >> 16)
                    target += 1
                    continue
        if entry & SPECIAL:
            if entry & LONGER:
                entry = _further(literals, entry, buffer)
                saved = buffer
                buffer = down(buffer, entry)
                bits -= entry
                if entry & LITERAL:
                    store_int8(target, entry >> 16)
                    target += 1
                    continue
            if entry & SPECIAL:
                ended = _AT_END if entry & END else _REFUSED
                break
        length = _extra(saved, entry)
        if bits & 63 < _DISTANCE_MOST:
            source, buffer, bits = _fill(source, buffer, bits)
        entry = entry_at(distances, buffer & _DISTANCE_MASK)
        if entry & LONGER:
            buffer = down(buffer, entry)
            bits -= entry
            entry = _further(distances, entry, buffer)
        distance = _extra(buffer, entry)
        buffer = down(buffer, entry)
        bits -= entry
        if entry & SPECIAL or distance > target - begin:
            ended = _REFUSED
            break
        _copy_match(target, distance, length, room)
        target += length
    return source, buffer, bits & 63, target, ended


@part
def _inflate_rest(
    source: int, buffer: int, bits: int, target: int, memory: int
) -> tuple[int, int, int, int, int]:
    """Inflate to the end of the block, with a look at data and room for each symbol."""
    literals, distances = memory + LITERAL_TABLE, memory + DISTANCE_TABLE
    begin, room = load_word(memory + BEGIN), load_word(memory + ROOM)
    stop = load_word(memory + STOP)
    while True:
        source, buffer, bits = _refill(source, stop, buffer, bits)
        entry = entry_at(literals, buffer & _LITERAL_MASK)
        if entry & LONGER:
            buffer, bits = down(buffer, LITERAL_BITS), bits - LITERAL_BITS
            entry = _further(literals, entry, buffer)
        length = _extra(buffer, entry)
        buffer, bits = down(buffer, entry), bits - (entry & 63)
        if entry & LITERAL and bits >= 0 and target < room:
            store_int8(target, entry >> 16)
            target += 1
            continue
        if entry & END and bits >= 0:
            return source, buffer, bits, target, _AT_END
        if entry & (LITERAL | SPECIAL):
            break
        entry = entry_at(distances, buffer & _DISTANCE_MASK)
        if entry & LONGER:
            buffer, bits = down(buffer, DISTANCE_BITS), bits - DISTANCE_BITS
            entry = _further(distances, entry, buffer)
        distance = _extra(buffer, entry)
        buffer, bits = down(buffer, entry), bits - (entry & 63)
        if entry & SPECIAL or bits < 0 or distance > target - begin or length > room - target:
            break
        repeat(target, distance, length, room)
        target += length
    return source, buffer, bits, target, _REFUSED


@part
def _read_lengths(
    source: int, stop: int, buffer: int, bits: int, memory: int, count: int
) -> tuple[int, int, int]:
    """Read so many lengths of codewords by the table of lengths; bits of -1 if they are refused."""
    lengths, place, last = memory + CODE_LENGTHS, 0, -1
    while place < count:
        source, buffer, bits = _refill(source, stop, buffer, bits)
        entry = entry_at(memory + DISTANCE_TABLE, buffer & ((1 << LENGTH_BITS) - 1))
        buffer, bits = down(buffer, entry), bits - (entry & 63)
        symbol, times = entry >> 16, 1
        if symbol < DEFLATE_AGAIN:
            last = symbol
        else:
            width, least = 2, 3
            if symbol == DEFLATE_FEW_ZEROS:
                last, width = 0, 3
            elif symbol == DEFLATE_MANY_ZEROS:
                last, width, least = 0, 7, 11
            times = least + (buffer & ((1 << width) - 1))
            buffer, bits = down(buffer, width), bits - width
        if bits < 0 or last < 0 or times > count - place:
            return source, buffer, -1
        for _ in range(times):
            store_int8(lengths + place, last)
            place += 1
    return source, buffer, bits


@part
def _read_codes(
    source: int, stop: int, buffer: int, bits: int, memory: int
) -> tuple[int, int, int]:
    """Read the codes of a block and build their tables; bits of -1 if they are refused."""
    lengths = memory + CODE_LENGTHS
    literals, distances = DEFLATE_END + 1 + (buffer & 31), 1 + (buffer >> 5 & 31)
    given = 4 + (buffer >> 10 & 15)
    buffer, bits = down(buffer, 14), bits - 14
    if bits < 0 or literals > DEFLATE_LITERALS or distances > DEFLATE_DISTANCES:
        return source, buffer, -1
    for place in range(DEFLATE_LENGTH_CODES):
        source, buffer, bits = _refill(source, stop, buffer, bits)
        length = 0
        if place < given:
            length = buffer & 7
            buffer, bits = down(buffer, 3), bits - 3
        store_int8(lengths + ordered(place), length)
    count = literals + distances
    if bits < 0 or not build(memory, LENGTHS, lengths, DEFLATE_LENGTH_CODES):
        return source, buffer, -1
    source, buffer, bits = _read_lengths(source, stop, buffer, bits, memory, count)
    if bits < 0 or load_uint8(lengths + DEFLATE_END) == 0:
        return source, buffer, -1
    if not build_both(memory, literals, distances):
        return source, buffer, -1
    return source, buffer, bits


@part
def _inflate_stored(source: int, stop: int, target: int, room: int) -> int:
    """Copy a block that is stored as it is; gives its size, -1 if it is refused."""
    if stop - source < 4:
        return -1
    size = load_uint16_native(source)
    if size ^ load_uint16_native(source + 2) != 0xFFFF:
        return -1
    if size > stop - source - 4 or size > room - target:
        return -1
    copy_memory(target, source + 4, size)
    return size


@part
def inflate_blocks(source: int, stop: int, target: int, room: int) -> tuple[int, int]:
    """Inflate blocks up to the last; gives the positions after it and after what they made.

    The first position is -1 where they are refused.
    """
    memory = _memory()
    store_word(memory + BEGIN, target)
    store_word(memory + ROOM, room)
    store_word(memory + STOP, stop)
    buffer = bits = is_last = 0
    while not is_last:
        source, buffer, bits = _refill(source, stop, buffer, bits)
        is_last, kind = buffer & 1, buffer >> 1 & 3
        buffer, bits = down(buffer, 3), bits - 3
        if bits < 0 or kind > DEFLATE_DYNAMIC:
            return -1, 0
        if kind == DEFLATE_STORED:
            source -= bits >> 3
            buffer = bits = 0
            size = _inflate_stored(source, stop, target, room)
            if size < 0:
                return -1, 0
            source += 4 + size
            target += size
            continue
        if kind == DEFLATE_DYNAMIC:
            source, buffer, bits = _read_codes(source, stop, buffer, bits, memory)
        else:
            set_fixed_lengths(memory)
            if not build_both(memory, DEFLATE_FIXED_LITERALS, DEFLATE_FIXED_DISTANCES):
                return -1, 0
        if bits < 0:
            return -1, 0
        source, buffer, bits, target, ended = _inflate_fast(source, buffer, bits, target, memory)
        if ended == _GOES_ON:
            source, buffer, bits, target, ended = _inflate_rest(
                source, buffer, bits, target, memory
            )
        if ended == _REFUSED:
            return -1, 0
    return source - (bits >> 3), target


@part
def inflate_member(source: int, stop: int, target: int, room: int) -> int:
    """Inflate the gzip member from ``source`` to ``stop``, which is all that is there.

    Gives the address after what it made; -1 where it is refused, or there is too little room.
    """
    if stop - source < GZIP_HEADER_SIZE + GZIP_TRAILER_SIZE:
        return -1
    # With no flags, which are its fourth byte.
    if load_uint32_native(source) != GZIP_START:
        return -1
    trailer = stop - GZIP_TRAILER_SIZE
    size = load_uint32_native(trailer + 4)
    if size > room - target:
        return -1
    source, end = inflate_blocks(source + GZIP_HEADER_SIZE, stop, target, room)
    if source != trailer or end - target != size:
        return -1
    if crc32_of(target, end) != load_uint32_native(trailer):
        return -1
    return end
