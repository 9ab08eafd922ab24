"""What both kernels for records stand on: arguments as numbers, and CPython's tuples.

The items of a tuple are not at the same place in every version, so they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from numba import types

from flexwire.native.layout import C_SCRATCH
from flexwire.native.machine import load_int32_native, load_word, long_as, part, store_word
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


@part
def take_integer(call: int, value: int, word: int) -> bool:
    """Put the number that an exact int is into a word of the call; False for any other."""
    if load_word(value + TYPE) != load_word(load_word(call + C_SHARED) + R_INT):
        return False
    store_word(call + word, long_as(value, call + C_SCRATCH))
    return load_int32_native(call + C_SCRATCH) == 0
