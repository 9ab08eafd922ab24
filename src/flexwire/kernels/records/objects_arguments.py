"""What all kernels for records as objects share: arguments as numbers, and the way out."""

from __future__ import annotations

from flexwire.kernels.machine import (
    TYPE,
    clear_error,
    load_int32_native,
    load_word,
    long_as,
    make_local,
    part,
    store_word,
    vectorcall,
)
from flexwire.kernels.objects.layout import C_SCRATCH, SMALLEST, SMALLS
from flexwire.kernels.records.objects_layout import (
    C_SHARED,
    CALL,
    R_EXCEPTION,
    R_FALLBACK,
    R_INT,
    R_SMALL,
)

# The words of one call, there until the kernel returns.
local_call = make_local(CALL)


@part
def take_integer(call: int, value: int, word: int) -> bool:
    """Put the number that an exact int is into a word of the call; False for any other."""
    if load_word(value + TYPE) != load_word(load_word(call + C_SHARED) + R_INT):
        return False
    store_word(call + word, long_as(value, call + C_SCRATCH))
    return load_int32_native(call + C_SCRATCH) == 0


@part
def take_likely(call: int, value: int, likely: int, word: int) -> bool:
    """Do what `take_integer` does, without a call where it is the small int that is likely."""
    small = likely - SMALLEST
    if 0 <= small < SMALLS:
        lasting = load_word(load_word(call + C_SHARED) + R_SMALL) + 8 * small
        if value == load_word(lasting):
            store_word(call + word, likely)
            return True
    return take_integer(call, value, word)


@part
def fall_back(shared: int, arguments: int, count: int) -> int:
    """Give what the code gives that words every error; 0 for an error that is to be raised."""
    if not clear_error(load_word(shared + R_EXCEPTION)):
        return 0
    return vectorcall(load_word(shared + R_FALLBACK), arguments, count, 0)
