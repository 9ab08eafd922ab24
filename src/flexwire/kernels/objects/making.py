"""Makes objects: by CPython's functions, and without a call where its objects are known to stay.

None, the booleans and small ints are there as long as the interpreter. Before Python 3.12 their
references are counted all the same, in their first word.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    bytes_from,
    gc_untrack,
    load_word,
    long_from,
    object_init,
    object_malloc,
    part,
    py_decref,
    py_incref,
    store_word,
    type_alloc,
    vectorcall,
)
from flexwire.kernels.memory import inlined
from flexwire.kernels.objects.layout import (
    C_GLOBALS,
    C_SCRATCH,
    G_COUNTED,
    G_FROM_BYTES,
    G_IS_SAFE,
    G_SMALL,
    G_UUID,
    G_UUID_INT,
    G_UUID_SAFE,
    S_CLASS,
    S_SIZE,
    SMALLEST,
    SMALLS,
)
from flexwire.kernels.wire.numbers import UUID_SIZE


@inlined
def take(shared: int, lasting: int) -> int:
    """Take a reference to an object that stays as long as the interpreter."""
    if load_word(shared + G_COUNTED):
        store_word(lasting, load_word(lasting) + 1)
    return lasting


@inlined
def make_integer(shared: int, number: int) -> int:
    """Make an int; a new reference, or 0."""
    small = number - SMALLEST
    if 0 <= small < SMALLS:
        return take(shared, load_word(load_word(shared + G_SMALL) + 8 * small))
    return long_from(number)


@inlined
def make_empty(structure: int) -> int:
    """Make an object of a structure's class, in whose fields stands what stood there before.

    All of them are filled or emptied before anything else sees it; 0 without memory.
    """
    made = object_malloc(load_word(structure + S_SIZE))
    if made == 0:
        return 0
    return object_init(made, load_word(structure + S_CLASS))


@part
def make_uuid(call: int, position: int) -> int:
    """Make a UUID of the 16 bytes at ``position``, as its constructor does; 0 without memory."""
    shared = load_word(call + C_GLOBALS)
    raw = bytes_from(position, UUID_SIZE)
    if raw == 0:
        return 0
    store_word(call + C_SCRATCH, raw)
    number = vectorcall(load_word(shared + G_FROM_BYTES), call + C_SCRATCH, 1, 0)
    py_decref(raw)
    if number == 0:
        return 0
    made = type_alloc(load_word(shared + G_UUID), 0)
    if made == 0:
        py_decref(number)
        return 0
    # It holds a number and a name: nothing that the collector could find.
    gc_untrack(made)
    is_safe = load_word(shared + G_IS_SAFE)
    py_incref(is_safe)
    store_word(made + load_word(shared + G_UUID_INT), number)
    store_word(made + load_word(shared + G_UUID_SAFE), is_safe)
    return made
