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
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import inlined
from flexwire.kernels.wire.text import is_utf8

# A shift of a signed word brings its sign along.
_TAKEN, _MIXED = (1 << (64 - TAKE_SHIFT)) - 1, (1 << (64 - MIX_SHIFT)) - 1


@inlined
def _take(code: int, word: int) -> int:
    code = (code ^ word) * TAKE
    return code ^ (code >> TAKE_SHIFT & _TAKEN)


@part
def hash_of(position: int, size: int) -> int:
    """Give the hash of bytes, the same as `flexwire.spark.sums.values.hash_of`."""
    code = size * TAKE
    end = position + size
    while end - position >= 8:
        code = _take(code, load_word(position))
        position += 8
    rest = end - position
    if rest > 0:
        word = 0
        if size >= 8:
            word = load_word(end - 8) >> (64 - 8 * rest) & ((1 << (8 * rest)) - 1)
        else:
            for place in range(rest):
                word |= load_uint8(position + place) << (8 * place)
        code = _take(code, word)
    code = (code ^ (code >> MIX_SHIFT & _MIXED)) * FIRST_MIX
    code = (code ^ (code >> MIX_SHIFT & _MIXED)) * SECOND_MIX
    return code ^ (code >> MIX_SHIFT & _MIXED)


@kernel
def sum_values(call: int, _unused: int, _also_unused: int) -> int:
    """Put the hash of each value into V_HASHES, and into V_TEXTS whether it is UTF-8; gives 0."""
    data, offsets = load_word(call + V_DATA), load_word(call + V_OFFSETS)
    hashes, texts = load_word(call + V_HASHES), load_word(call + V_TEXTS)
    start = load_int32_native(offsets)
    for row in range(load_word(call + V_ROWS)):
        stop = load_int32_native(offsets + 4 * row + 4)
        store_word(hashes + 8 * row, hash_of(data + start, stop - start))
        store_int8(texts + row, 1 if is_utf8(data + start, stop - start) else 0)
        start = stop
    return 0
