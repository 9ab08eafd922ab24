"""Hashes the values of a column of bytes, and says of each whether it is UTF-8."""

from __future__ import annotations

from flexwire.kernels.columns.hashing_layout import (
    FIRST_MIX,
    MIX_SHIFT,
    SECOND_MIX,
    TAKE,
    TAKE_SHIFT,
    V_DATA,
    V_HASHES,
    V_OFFSETS,
    V_ROWS,
    V_TEXTS,
)
from flexwire.kernels.machine import (
    kernel,
    load_int32_native,
    load_uint8,
    load_word,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import inlined
from flexwire.kernels.wire.text import HIGH_BITS, is_utf8

# A shift of a signed word brings its sign along.
_TAKEN, _MIXED = (1 << (64 - TAKE_SHIFT)) - 1, (1 << (64 - MIX_SHIFT)) - 1


@inlined
def take(code: int, word: int) -> int:
    """Take a word of the value in."""
    code = (code ^ word) * TAKE
    return code ^ (code >> TAKE_SHIFT & _TAKEN)


@inlined
def last_word(position: int, rest: int, size: int) -> int:
    """Give the last bytes of a value, fewer than a word has, with zeros above them."""
    if size >= 8:
        return load_word(position + rest - 8) >> (64 - 8 * rest) & ((1 << (8 * rest)) - 1)
    word = 0
    for place in range(rest):
        word |= load_uint8(position + place) << (8 * place)
    return word


@inlined
def mix(code: int) -> int:
    """Have every bit hang on all others."""
    code = (code ^ (code >> MIX_SHIFT & _MIXED)) * FIRST_MIX
    code = (code ^ (code >> MIX_SHIFT & _MIXED)) * SECOND_MIX
    return code ^ (code >> MIX_SHIFT & _MIXED)


@kernel
def sum_values(call: int, _unused: int, _also_unused: int) -> int:
    """Put the hash of each value into V_HASHES, and into V_TEXTS whether it is UTF-8; gives 0.

    The hash is that of `flexwire.spark.sums.values.hash_of`.
    """
    data, offsets = load_word(call + V_DATA), load_word(call + V_OFFSETS)
    hashes, texts = load_word(call + V_HASHES), load_word(call + V_TEXTS)
    start = load_int32_native(offsets)
    for row in range(load_word(call + V_ROWS)):
        stop = load_int32_native(offsets + 4 * row + 4)
        size = stop - start
        position, end = data + start, data + stop
        code, seen = size * TAKE, 0
        while end - position >= 8:
            word = load_word(position)
            seen |= word
            code = take(code, word)
            position += 8
        if position < end:
            word = last_word(position, end - position, size)
            seen |= word
            code = take(code, word)
        store_word(hashes + 8 * row, mix(code))
        is_text = seen & HIGH_BITS == 0 or is_utf8(data + start, size)
        store_int8(texts + row, 1 if is_text else 0)
        start = stop
    return 0
