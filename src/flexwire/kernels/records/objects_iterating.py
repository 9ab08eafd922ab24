"""Iterates over record batches: reads some ahead, and gives them one by one.

The iterator is an object of a class that is made of these functions: as many batches have one
record, what a step costs beside a batch counts. Nothing here runs Python code while an iterator is
changed, so no other step can come between.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    TYPE,
    bytes_address,
    bytes_size,
    clear_error,
    kernel,
    load_uint32,
    load_word,
    object_free,
    object_init,
    object_malloc,
    part,
    py_decref,
    py_incref,
    store_word,
    vectorcall,
)
from flexwire.kernels.objects.layout import C_END, C_SCRATCH
from flexwire.kernels.records.crc import HAS_CRC, crc_of
from flexwire.kernels.records.objects_arguments import fall_back, local_call, take_integer
from flexwire.kernels.records.objects_batches import (
    count_ahead,
    make_batch,
    size_of,
    take_arguments,
)
from flexwire.kernels.records.objects_layout import (
    C_BEGIN,
    C_CHECK_CRC,
    C_DATA,
    C_MAX_INFLATED,
    C_NUMBER,
    C_SHARED,
    F_DATA,
    I_AT,
    I_CHECK_CRC,
    I_COUNT,
    I_DATA,
    I_ITEMS,
    I_MAX_INFLATED,
    I_PARTIAL,
    I_POSITION,
    I_SHARED,
    ITERATOR,
    R_EXCEPTION,
    R_FALLBACK,
    R_ITERATOR,
    R_NEXT,
    R_TRUE,
)
from flexwire.wire.batch_layout import CRC_AT, CRC_START

_HAS_CRC = int(HAS_CRC)


@part
def keep_object(iterator: int, word: int, value: int) -> None:
    """Have an iterator keep an object."""
    py_incref(value)
    store_word(iterator + word, value)


@part
def make_iterator(call: int) -> int:
    """Make an iterator over the data from the position on; 0 where there is no memory for it."""
    shared = load_word(call + C_SHARED)
    made = object_malloc(ITERATOR)
    if made == 0:
        return 0
    made = object_init(made, load_word(shared + R_ITERATOR))
    keep_object(made, I_DATA, load_word(call + C_DATA))
    keep_object(made, I_CHECK_CRC, load_word(call + C_CHECK_CRC))
    keep_object(made, I_MAX_INFLATED, load_word(call + C_MAX_INFLATED))
    store_word(made + I_SHARED, load_word(shared + R_NEXT))
    store_word(made + I_POSITION, load_word(call) - load_word(call + C_BEGIN))
    store_word(made + I_PARTIAL, 0)
    empty(made)
    return made


@part
def empty(iterator: int) -> None:
    """Leave an iterator without batches that were read ahead."""
    store_word(iterator + I_ITEMS, 0)
    store_word(iterator + I_AT, 0)
    store_word(iterator + I_COUNT, 0)


@part
def read_ahead(call: int, iterator: int) -> bool:
    """Read batches from the position on into an iterator that has none; False without memory."""
    batch = load_word(call)
    is_checked = load_word(call + C_CHECK_CRC) == load_word(load_word(call + C_SHARED) + R_TRUE)
    count = count_ahead(batch, load_word(call + C_END)) if _HAS_CRC or not is_checked else 0
    if count == 0:
        return True
    items = object_malloc(8 * count)
    if items == 0:
        return False
    store_word(iterator + I_ITEMS, items)
    for index in range(count):
        size = size_of(batch)
        if is_checked and crc_of(batch + CRC_START, batch + size) != load_uint32(batch + CRC_AT):
            return True
        made = make_batch(call, batch, size)
        if made == 0:
            return False
        store_word(items + 8 * index, made)
        store_word(iterator + I_COUNT, index + 1)
        batch += size
    return True


@part
def drop_ahead(iterator: int) -> None:
    """Free the batches that were read ahead and not given, if any."""
    items, count = load_word(iterator + I_ITEMS), load_word(iterator + I_COUNT)
    for index in range(load_word(iterator + I_AT), count):
        py_decref(load_word(items + 8 * index))
    if items:
        object_free(items)
    empty(iterator)


@kernel
def iterate(itself: int, arguments: int, count: int) -> int:
    """Give an iterator over the batches from a position on.

    A C function of the kind METH_FASTCALL: ``itself`` holds the shared words' address. Arguments
    are the data, the position, and of `flexwire.records.decode_batches` whether crcs are checked
    and what records may inflate to.
    """
    shared, call = load_word(bytes_address(itself)), local_call()
    if count == 4 and take_arguments(call, arguments, shared):
        limit = load_word(arguments + 24)
        store_word(call + C_MAX_INFLATED, limit)
        if take_integer(call, limit, C_NUMBER) and load_word(call + C_NUMBER) >= 0:
            made = make_iterator(call)
            if made and read_ahead(call, made):
                return made
            if made:
                py_decref(made)
    return fall_back(shared, arguments, count)


@part
def resume(call: int, iterator: int) -> bool:
    """Take in where an iterator is; False where it is not in its data."""
    data, position = load_word(iterator + I_DATA), load_word(iterator + I_POSITION)
    begin, size = bytes_address(data), bytes_size(data)
    store_word(call, begin + position)
    store_word(call + C_BEGIN, begin)
    store_word(call + C_END, begin + size)
    store_word(call + C_DATA, data)
    store_word(call + C_SHARED, load_word(iterator + I_SHARED))
    store_word(call + C_CHECK_CRC, load_word(iterator + I_CHECK_CRC))
    store_word(call + C_MAX_INFLATED, load_word(iterator + I_MAX_INFLATED))
    return 0 <= position < size


@part
def give(iterator: int) -> int:
    """Give the next of the batches that were read ahead."""
    at = load_word(iterator + I_AT)
    batch = load_word(load_word(iterator + I_ITEMS) + 8 * at)
    data = load_word(batch + load_word(load_word(iterator + I_SHARED) + F_DATA))
    store_word(iterator + I_AT, at + 1)
    store_word(iterator + I_POSITION, load_word(iterator + I_POSITION) + bytes_size(data))
    return batch


@kernel
def next_batch(iterator: int, _unused: int, _also_unused: int) -> int:
    """Give the next batch; 0 at the end. What no kernel is sure of, Python's code reads.

    A class's function of the kind iternextfunc.
    """
    if load_word(iterator + I_AT) < load_word(iterator + I_COUNT):
        return give(iterator)
    call = local_call()
    drop_ahead(iterator)
    if not resume(call, iterator):
        return 0
    if read_ahead(call, iterator):
        if load_word(iterator + I_COUNT):
            return give(iterator)
    shared = load_word(iterator + I_SHARED)
    drop_ahead(iterator)
    if not clear_error(load_word(shared + R_EXCEPTION)):
        return 0
    store_word(call + C_SCRATCH, iterator)
    return vectorcall(load_word(shared + R_FALLBACK), call + C_SCRATCH, 1, 0)


@kernel
def drop_iterator(iterator: int, _unused: int, _also_unused: int) -> int:
    """Free an iterator, and what it keeps. A class's function of the kind destructor."""
    drop_ahead(iterator)
    py_decref(load_word(iterator + I_DATA))
    py_decref(load_word(iterator + I_CHECK_CRC))
    py_decref(load_word(iterator + I_MAX_INFLATED))
    partial = load_word(iterator + I_PARTIAL)
    if partial:
        py_decref(partial)
    # An object of a class that was made at run time keeps it.
    made_of = load_word(iterator + TYPE)
    object_free(iterator)
    py_decref(made_of)
    return 0
