"""What both kernels for records stand on: arguments as numbers, and CPython's tuples.

The items of a tuple are not at the same place in every version, so they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from numba import types

from flexwire.native.layout import C_SCRATCH
from flexwire.native.machine import (
    load_int32_native,
    load_uint8,
    load_word,
    long_as,
    part,
    store_word,
)
from flexwire.native.records_layout import C_SHARED, R_INT

if TYPE_CHECKING:
    from collections.abc import Callable

TYPE = 8  # of any object
LIST_SIZE, LIST_ITEMS = 16, 24
_WORD = types.int64

tuple_new = cast("Callable[[int], int]", types.ExternalFunction("PyTuple_New", _WORD(_WORD)))
tuple_size = cast("Callable[[int], int]", types.ExternalFunction("PyTuple_Size", _WORD(_WORD)))
# Gives a reference that the tuple keeps.
tuple_get = cast(
    "Callable[[int, int], int]", types.ExternalFunction("PyTuple_GetItem", _WORD(_WORD, _WORD))
)
# Takes the reference over.
tuple_set = cast(
    "Callable[[int, int, int], int]",
    types.ExternalFunction("PyTuple_SetItem", types.int32(_WORD, _WORD, _WORD)),
)
compare_memory = cast(
    "Callable[[int, int, int], int]",
    types.ExternalFunction("memcmp", types.int32(_WORD, _WORD, _WORD)),
)


_ALL_BUT_SIGN = 2**63 - 1
# How many groups of 7 bits a number of 32 or 64 bits has, and the most the last of them can be.
GROUPS_32, LAST_32 = 5, 0x0F
GROUPS_64, LAST_64 = 10, 0x01


@part
def read_wide(position: int, end: int, groups: int, last: int) -> tuple[int, int]:
    """Read a zig-zag varint of any length; gives the position behind it too.

    That is -1 for one that is cut off, overlong, or too large.
    """
    raw = 0
    for group in range(groups):
        if position >= end:
            return 0, -1
        byte = load_uint8(position)
        position += 1
        raw |= (byte & 0x7F) << (7 * group)
        if byte < 0x80:
            if (byte == 0 and group > 0) or (byte > last and group == groups - 1):
                return 0, -1
            return (raw >> 1 & _ALL_BUT_SIGN) ^ -(raw & 1), position
    return 0, -1


@part
def take_integer(call: int, value: int, word: int) -> bool:
    """Put the number that an exact int is into a word of the call; False for any other."""
    if load_word(value + TYPE) != load_word(load_word(call + C_SHARED) + R_INT):
        return False
    store_word(call + word, long_as(value, call + C_SCRATCH))
    return load_int32_native(call + C_SCRATCH) == 0
