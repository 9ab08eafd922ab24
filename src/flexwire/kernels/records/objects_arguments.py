"""What both kernels for records as objects share: arguments as numbers."""

from __future__ import annotations

from flexwire.kernels.machine import TYPE, load_int32_native, load_word, long_as, part, store_word
from flexwire.kernels.objects.layout import C_SCRATCH
from flexwire.kernels.records.objects_layout import C_SHARED, R_INT


@part
def take_integer(call: int, value: int, word: int) -> bool:
    """Put the number that an exact int is into a word of the call; False for any other."""
    if load_word(value + TYPE) != load_word(load_word(call + C_SHARED) + R_INT):
        return False
    store_word(call + word, long_as(value, call + C_SCRATCH))
    return load_int32_native(call + C_SCRATCH) == 0
