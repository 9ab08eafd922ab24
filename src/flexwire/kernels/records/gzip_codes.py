"""Tables by which the codes of deflate are read, from the lengths of their codewords.

A table is looked up by the next bits of a block. An entry has 32 bits: in the lowest eight how many
bits to take, extra bits among them, in the next four how many of these are the codeword's, in the
upper half what it stands for, and between them what it is. Longer codewords go on in a second table
behind the first, of which an entry says where and how wide it is.

What zlib refuses is refused: lengths that are not those of a code, or leave codewords without a
meaning. Only distances may do so, where there is one or none.
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
from flexwire.kernels.records.xxh32 import load_uint32_native
from flexwire.wire.frame_layout import (
    DEFLATE_DISTANCES,
    DEFLATE_END,
    DEFLATE_FIXED_DISTANCES,
    DEFLATE_FIXED_LITERALS,
    DEFLATE_LITERALS,
    DEFLATE_LONGEST_CODE,
    DEFLATE_LONGEST_LENGTH_CODE,
    DEFLATE_LONGEST_MATCH,
)

load_uint16_native = make_loader(16, swap=False, signed=False)
store_int16_native = make_storer(16, swap=False)
store_entry = make_storer(32, swap=False)

# What an entry is, where it is not a length or a distance.
LITERAL, SPECIAL, LONGER, END = 1 << 31, 1 << 15, 1 << 14, 1 << 13
_NONE = SPECIAL
_MEANING, _CODEWORD = 16, 8
# What a table is of.
(LENGTHS, LITERALS, DISTANCES) = range(3)
# How many bits the first table is looked up by, and how many entries there are at most with those
# behind it: so many that a code with as many symbols, and codewords as long as may be, has a place.
LITERAL_BITS, DISTANCE_BITS = 11, 8
LITERAL_ENTRIES, DISTANCE_ENTRIES = 2342, 402
LENGTH_BITS = DEFLATE_LONGEST_LENGTH_CODE

# The memory of a block: two tables (that of lengths stands where distances will), the lengths of
# codewords, the symbols by these, how many have each.
LITERAL_TABLE = 0
DISTANCE_TABLE = LITERAL_TABLE + 4 * LITERAL_ENTRIES
CODE_LENGTHS = DISTANCE_TABLE + 4 * DISTANCE_ENTRIES
_SYMBOLS = CODE_LENGTHS + DEFLATE_FIXED_LITERALS + DEFLATE_FIXED_DISTANCES
_COUNTS = _SYMBOLS + 2 * DEFLATE_FIXED_LITERALS
_PLACES = _COUNTS + 8 * (DEFLATE_LONGEST_CODE + 1)
# And what holds for all blocks: where the data stops, what is inflated begins, and its room ends.
STOP = _PLACES + 8 * (DEFLATE_LONGEST_CODE + 1)
BEGIN, ROOM = STOP + 8, STOP + 16
MEMORY = STOP + 24


@inlined
def _table_of(memory: int, kind: int) -> tuple[int, int, int]:
    """Give where a table is, how many bits it is looked up by, and how many entries it may have."""
    if kind == LITERALS:
        return memory + LITERAL_TABLE, LITERAL_BITS, LITERAL_ENTRIES
    bits = DISTANCE_BITS if kind == DISTANCES else LENGTH_BITS
    return memory + DISTANCE_TABLE, bits, DISTANCE_ENTRIES


@inlined
def ordered(place: int) -> int:
    """Give the symbol whose length stands at a place before the lengths of a block."""
    if place < 4:
        return (16 + place) % 19
    step = (place - 4) >> 1
    return 7 - step if place & 1 else 8 + step


@part
def meaning(kind: int, symbol: int) -> int:
    """Give the entry of a symbol, without the bits of its codeword."""
    if kind == LENGTHS:
        return symbol << _MEANING
    if kind == DISTANCES:
        if symbol >= DEFLATE_DISTANCES:
            return _NONE
        if symbol < 4:
            return symbol + 1 << _MEANING
        extra = (symbol >> 1) - 1
        return ((2 + (symbol & 1) << extra) + 1 << _MEANING) + extra
    if symbol < DEFLATE_END:
        return LITERAL | symbol << _MEANING
    if symbol == DEFLATE_END:
        return SPECIAL | END
    if symbol >= DEFLATE_LITERALS:
        return _NONE
    if symbol == DEFLATE_LITERALS - 1:
        return DEFLATE_LONGEST_MATCH << _MEANING
    # Eight lengths of a symbol each, then four symbols for each number of extra bits.
    step = symbol - DEFLATE_END - 1
    if step < 8:
        return step + 3 << _MEANING
    extra = (step >> 2) - 1
    return ((4 + (step & 3) << extra) + 3 << _MEANING) + extra


@part
def _sort(memory: int, lengths: int, count: int) -> int:
    """Sort the symbols by the lengths of their codewords, and count these.

    Gives how much of all codewords is not used, in parts of 2^15; below 0 if there are too many.
    """
    for length in range(DEFLATE_LONGEST_CODE + 1):
        store_word(memory + _COUNTS + 8 * length, 0)
    for symbol in range(count):
        counted = memory + _COUNTS + 8 * load_uint8(lengths + symbol)
        store_word(counted, load_word(counted) + 1)
    left, place = 1 << DEFLATE_LONGEST_CODE, 0
    for length in range(1, DEFLATE_LONGEST_CODE + 1):
        of_length = load_word(memory + _COUNTS + 8 * length)
        store_word(memory + _PLACES + 8 * length, place)
        place += of_length
        left -= of_length << (DEFLATE_LONGEST_CODE - length)
    for symbol in range(count):
        length = load_uint8(lengths + symbol)
        if length:
            at = memory + _PLACES + 8 * length
            store_int16_native(memory + _SYMBOLS + 2 * load_word(at), symbol)
            store_word(at, load_word(at) + 1)
    return left


@inlined
def _next(codeword: int, length: int) -> int:
    """Give the codeword after one that is not the last; their first bit is the lowest."""
    bit = 1 << (length - 1)
    while codeword & bit:
        bit >>= 1
    return codeword & (bit - 1) | bit


@part
def _entry(memory: int, kind: int, place: int, bits: int) -> int:
    """Give the entry of the symbol at a place of those that are sorted."""
    symbol = load_uint16_native(memory + _SYMBOLS + 2 * place)
    return meaning(kind, symbol) + bits + (bits << _CODEWORD)


@part
def _fill_incomplete(memory: int, kind: int, left: int) -> bool:
    """Fill the table of a code that has one distance or none; False for any other."""
    table, bits, _ = _table_of(memory, kind)
    count = 1 << (DEFLATE_LONGEST_CODE - 1)
    is_one = left == count and load_word(memory + _COUNTS + 8) == 1
    if kind != DISTANCES or not (is_one or left == 2 * count):
        return False
    for number in range(1 << bits):
        entry = _NONE
        if is_one and number & 1 == 0:
            entry = _entry(memory, kind, 0, 1)
        store_entry(table + 4 * number, entry)
    return True


@part
def _fill_longer(memory: int, kind: int, codeword: int, place: int, length: int) -> bool:
    """Fill the tables behind the first, from a codeword on that is longer than it is wide."""
    table, bits, entries = _table_of(memory, kind)
    size, prefix = 1 << bits, -1
    start = end = size
    remaining = load_word(memory + _COUNTS + 8 * length)
    while True:
        if codeword & (size - 1) != prefix:
            prefix, start = codeword & (size - 1), end
            width = length - bits
            used = remaining
            while used < 1 << width:
                width += 1
                used = (used << 1) + load_word(memory + _COUNTS + 8 * (bits + width))
            end = start + (1 << width)
            if end > entries:
                return False
            pointer = SPECIAL | LONGER | start << _MEANING | width << _CODEWORD | bits
            store_entry(table + 4 * prefix, pointer)
        entry = _entry(memory, kind, place, length - bits)
        at = start + (codeword >> bits)
        while at < end:
            store_entry(table + 4 * at, entry)
            at += 1 << (length - bits)
        if codeword == (1 << length) - 1:
            return True
        codeword = _next(codeword, length)
        place += 1
        remaining -= 1
        while remaining == 0:
            length += 1
            remaining = load_word(memory + _COUNTS + 8 * length)


@part
def build(memory: int, kind: int, lengths: int, count: int) -> bool:
    """Build the table of a code of ``count`` symbols; False where zlib, or a doubt, refuses it."""
    table, bits, _ = _table_of(memory, kind)
    left = _sort(memory, lengths, count)
    if left:
        return _fill_incomplete(memory, kind, left)
    codeword = place = length = 0
    remaining, size = 0, 1
    while True:
        while remaining == 0:
            length += 1
            remaining = load_word(memory + _COUNTS + 8 * length)
            if length > bits:
                # Some of the lengths left have codewords, or the code would be complete.
                while remaining == 0:
                    length += 1
                    remaining = load_word(memory + _COUNTS + 8 * length)
                return _fill_longer(memory, kind, codeword, place, length)
            copy_memory(table + 4 * size, table, 4 * size)
            size <<= 1
        store_entry(table + 4 * codeword, _entry(memory, kind, place, length))
        if codeword == size - 1:
            break
        codeword = _next(codeword, length)
        place += 1
        remaining -= 1
    while size < 1 << bits:
        copy_memory(table + 4 * size, table, 4 * size)
        size <<= 1
    return True


@part
def build_both(memory: int, literals: int, distances: int) -> bool:
    """Build the tables of a block from lengths: of so many literals, then of so many distances."""
    lengths = memory + CODE_LENGTHS
    return build(memory, LITERALS, lengths, literals) and build(
        memory, DISTANCES, lengths + literals, distances
    )


@part
def set_fixed_lengths(memory: int) -> None:
    """Set the lengths of the codewords that every block without lengths of its own has."""
    lengths = memory + CODE_LENGTHS
    for symbol in range(DEFLATE_FIXED_LITERALS):
        length = 8
        if 144 <= symbol < DEFLATE_END:
            length = 9
        elif DEFLATE_END <= symbol < 280:
            length = 7
        store_int8(lengths + symbol, length)
    for symbol in range(DEFLATE_FIXED_DISTANCES):
        store_int8(lengths + DEFLATE_FIXED_LITERALS + symbol, 5)


@inlined
def entry_at(table: int, number: int) -> int:
    """Give an entry."""
    return load_uint32_native(table + 4 * number)
