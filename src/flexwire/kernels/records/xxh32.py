"""XXH32, the checksum in lz4 frames."""

from __future__ import annotations

from flexwire.kernels.machine import load_uint8, make_loader, part
from flexwire.kernels.memory import inlined
from flexwire.wire.frame_layout import (
    XXH_PRIME_1,
    XXH_PRIME_2,
    XXH_PRIME_3,
    XXH_PRIME_4,
    XXH_PRIME_5,
)

load_uint32_native = make_loader(32, swap=False, signed=False)

_MASK = 0xFFFFFFFF
_STRIPE = 16


@inlined
def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


@inlined
def _round(lane: int, position: int) -> int:
    """Give a lane with the four bytes at a position taken in."""
    return _rotate(lane + load_uint32_native(position) * XXH_PRIME_2, 13) * XXH_PRIME_1


@part
def xxh32(position: int, end: int) -> int:
    """Give XXH32 with seed 0 of the bytes from ``position`` to ``end``, from 0 to 2^32 - 1."""
    size = end - position
    value = XXH_PRIME_5
    if size >= _STRIPE:
        first, second, third, fourth = XXH_PRIME_1 + XXH_PRIME_2, XXH_PRIME_2, 0, -XXH_PRIME_1
        while end - position >= _STRIPE:
            first = _round(first, position)
            second = _round(second, position + 4)
            third = _round(third, position + 8)
            fourth = _round(fourth, position + 12)
            position += _STRIPE
        value = _rotate(first, 1) + _rotate(second, 7) + _rotate(third, 12) + _rotate(fourth, 18)
    value += size
    while end - position >= 4:
        value = _rotate(value + load_uint32_native(position) * XXH_PRIME_3, 17) * XXH_PRIME_4
        position += 4
    while position < end:
        value = _rotate(value + load_uint8(position) * XXH_PRIME_5, 11) * XXH_PRIME_1
        position += 1
    value &= _MASK
    value = (value ^ value >> 15) * XXH_PRIME_2 & _MASK
    value = (value ^ value >> 13) * XXH_PRIME_3 & _MASK
    return value ^ value >> 16
