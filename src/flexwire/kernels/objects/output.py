"""Where a message is written: a block of memory that grows."""

from __future__ import annotations

from flexwire.kernels.machine import copy_memory, load_word, mem_realloc, part, store_word
from flexwire.kernels.objects.layout import C_END, C_OUT, O_COMPACT
from flexwire.kernels.wire.lengths import WIDEST, put_length


@part
def reserve(call: int, count: int) -> int:
    """Make room for ``count`` bytes and give the address to write at; 0 without memory."""
    position, end = load_word(call), load_word(call + C_END)
    if count <= end - position:
        return position
    out = load_word(call + C_OUT)
    used = position - out
    size = 2 * (end - out) + count
    grown = mem_realloc(out, size)
    if grown == 0:
        return 0
    store_word(call + C_OUT, grown)
    store_word(call + C_END, grown + size)
    store_word(call, grown + used)
    return grown + used


@part
def write_count(call: int, operation: int, count: int, width: int) -> bool:
    """Write a length or count, or `NULL`."""
    position = reserve(call, WIDEST)
    if position == 0:
        return False
    store_word(call, put_length(position, load_word(operation + O_COMPACT), width, count, True))
    return True


@part
def write_bytes(call: int, source: int, count: int) -> bool:
    """Write bytes as they are."""
    position = reserve(call, count)
    if position == 0:
        return False
    copy_memory(position, source, count)
    store_word(call, position + count)
    return True
