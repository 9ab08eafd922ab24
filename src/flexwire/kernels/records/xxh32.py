"""XXH32, the checksum in lz4 frames."""

from __future__ import annotations

from flexwire.kernels.machine import load_uint8, make_loader, part
from flexwire.kernels.memory import inlined

load_uint32_native = make_loader(32, swap=False, signed=False)

_PRIME_1 = 0x9E3779B1
_PRIME_2 = 0x85EBCA77
_PRIME_3 = 0xC2B2AE3D
_PRIME_4 = 0x27D4EB2F
_PRIME_5 = 0x165667B1
_MASK = 0xFFFFFFFF
_STRIPE = 16


@inlined
def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


@inlined
def _round(lane: int, position: int) -> int:
    """Give a lane with the four bytes at a position taken in."""
    return _rotate(lane + load_uint32_native(position) * _PRIME_2, 13) * _PRIME_1


@part
def xxh32(position: int, end: int) -> int:
    """Give XXH32 with seed 0 of the bytes from ``position`` to ``end``, from 0 to 2^32 - 1."""
    size = end - position
    value = _PRIME_5
    if size >= _STRIPE:
        first, second, third, fourth = _PRIME_1 + _PRIME_2, _PRIME_2, 0, -_PRIME_1
        while end - position >= _STRIPE:
            first = _round(first, position)
            second = _round(second, position + 4)
            third = _round(third, position + 8)
            fourth = _round(fourth, position + 12)
            position += _STRIPE
        value = _rotate(first, 1) + _rotate(second, 7) + _rotate(third, 12) + _rotate(fourth, 18)
    value += size
    while end - position >= 4:
        value = _rotate(value + load_uint32_native(position) * _PRIME_3, 17) * _PRIME_4
        position += 4
    while position < end:
        value = _rotate(value + load_uint8(position) * _PRIME_5, 11) * _PRIME_1
        position += 1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16
