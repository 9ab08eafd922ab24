"""Reads messages into Python objects: one kernel, driven by a program, for every schema.

Each length is compared with the bytes that remain before it is used. A function that makes an
object gives a new reference, or 0 for what is out of the ordinary.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    LIST_ITEMS,
    TYPE,
    as_double,
    bytes_address,
    bytes_from,
    bytes_size,
    call_kernel,
    clear_error,
    dict_new,
    dict_set,
    float_from,
    gc_untrack,
    kernel,
    list_new,
    load_int64,
    load_uint8,
    load_word,
    long_from,
    mem_free,
    mem_malloc,
    part,
    py_decref,
    py_incref,
    store_word,
    type_alloc,
    unicode_decode,
    vectorcall,
)
from flexwire.kernels.objects.layout import (
    C_END,
    C_GLOBALS,
    C_SCRATCH,
    CALL,
    DEFAULT,
    G_BYTES,
    G_EXCEPTION,
    G_FALLBACK,
    G_FALSE,
    G_KERNEL,
    G_MAKE_UUID,
    G_ROOT,
    G_TRUE,
    M_DICT,
    M_LIST,
    M_SHARED,
    O_CODE,
    O_COMPACT,
    O_ELEMENT,
    O_NULLABLE,
    O_SLOT,
    O_STRUCT,
    O_TAG,
    OPERATION,
    S_DEFAULTS,
    S_FIELDS,
    S_FLEXIBLE,
    S_INLINE,
    S_INLINES,
    S_REFUSED,
    S_REFUSEDS,
    S_TAGGED,
    S_TAGGEDS,
    S_UNKNOWN,
)
from flexwire.kernels.wire.lengths import NULL, STRING_WIDTH, WIDTH, read_length
from flexwire.kernels.wire.numbers import UUID_SIZE, fixed_size, load_number
from flexwire.kernels.wire.operations import (
    ARRAY,
    BOOL,
    BYTES,
    FLOAT64,
    SECTION,
    STRING,
    STRUCT,
    TAGGED_STRUCT,
    UUID,
)
from flexwire.kernels.wire.tags import is_among, read_header
from flexwire.kernels.wire.varint import read_varint
from flexwire.wire.limits import HIGHEST_TAG, LONGEST_STRING

_REFUSED = -2


@part
def read_count(call: int, operation: int, nullable: int, width: int) -> int:
    """Read a length or count: `NULL` where that may be, -2 for what may not be."""
    end = load_word(call + C_END)
    count, position = read_length(
        load_word(operation + O_COMPACT), nullable, width, load_word(call), end
    )
    if position < 0 or count > end - position:
        return _REFUSED
    store_word(call, position)
    return count


@part
def read_fixed(code: int, call: int) -> int:
    """Read a value of fixed width; a new reference, or 0."""
    position = load_word(call)
    shared = load_word(call + C_GLOBALS)
    width = fixed_size(code)
    if width > load_word(call + C_END) - position:
        return 0
    store_word(call, position + width)
    if code == BOOL:
        byte = load_uint8(position)
        if byte > 1:
            return 0
        value = load_word(shared + (G_TRUE if byte else G_FALSE))
        py_incref(value)
        return value
    if code == FLOAT64:
        return float_from(as_double(load_int64(position)))
    if code == UUID:
        return make_uuid(shared, position, call)
    return long_from(load_number(code, position))


@part
def make_uuid(shared: int, position: int, call: int) -> int:
    """Make a UUID of the 16 bytes at ``position``."""
    raw = bytes_from(position, UUID_SIZE)
    if raw == 0:
        return 0
    argument = call + C_SCRATCH
    store_word(argument, raw)
    made = vectorcall(load_word(shared + G_MAKE_UUID), argument, 1, 0)
    py_decref(raw)
    return made


@part
def read_text(call: int, operation: int) -> int:
    """Read a string or bytes; a new reference, or 0."""
    is_string = load_word(operation + O_CODE) == STRING
    width = STRING_WIDTH if is_string else WIDTH
    count = read_count(call, operation, load_word(operation + O_NULLABLE), width)
    return make_text(call, count, is_string)


@part
def make_text(call: int, count: int, is_string: bool) -> int:
    """Make a string or bytes of the next ``count`` bytes; None for `NULL`."""
    if count == NULL:
        none = load_word(load_word(call + C_GLOBALS))
        py_incref(none)
        return none
    if count == _REFUSED or (is_string and count > LONGEST_STRING):
        return 0
    position = load_word(call)
    store_word(call, position + count)
    if is_string:
        return unicode_decode(position, count, 0)
    return bytes_from(position, count)


@part
def read_inner(call: int, operation: int) -> int:
    """Read the structure that a field or element is."""
    inner = load_word(load_word(call + C_GLOBALS) + G_KERNEL)
    return call_kernel(inner, call, load_word(operation + O_STRUCT), 0)


@part
def read_array(call: int, operation: int) -> int:
    """Read an array; a new reference, or 0."""
    count = read_count(call, operation, load_word(operation + O_NULLABLE), WIDTH)
    if count == NULL:
        none = load_word(load_word(call + C_GLOBALS))
        py_incref(none)
        return none
    if count == _REFUSED:
        return 0
    made = list_new(count)
    if made == 0:
        return 0
    # Messages are trees, as their classes say with gc=False; the collector need not look at them.
    # From here on, because what it knows it shows to other threads, and the list is still empty.
    gc_untrack(made)
    items = load_word(made + LIST_ITEMS)
    element = load_word(operation + O_ELEMENT)
    for index in range(count):
        if element < STRING:
            item = read_fixed(element, call)
        elif element == STRUCT:
            item = read_inner(call, operation)
        else:
            item = read_element_text(call, operation, element == STRING)
        if item == 0:
            py_decref(made)
            return 0
        store_word(items + 8 * index, item)
    return made


@part
def read_element_text(call: int, operation: int, is_string: bool) -> int:
    """Read a string or bytes that is an element: never null, and compact as its array is."""
    count = read_count(call, operation, 0, STRING_WIDTH if is_string else WIDTH)
    return make_text(call, count, is_string)


@part
def read_value(call: int, operation: int) -> int:
    """Read the value of any field; a new reference, or 0."""
    code = load_word(operation)
    if code < STRING:
        return read_fixed(code, call)
    if code <= BYTES:
        return read_text(call, operation)
    if code == ARRAY:
        return read_array(call, operation)
    if code != STRUCT:
        position = load_word(call)
        if position >= load_word(call + C_END):
            return 0
        marker = load_uint8(position)
        store_word(call, position + 1)
        if marker == (0 if code == TAGGED_STRUCT else 0xFF):
            none = load_word(load_word(call + C_GLOBALS))
            py_incref(none)
            return none
        if marker != 1:
            return 0
    return read_inner(call, operation)


@part
def make_defaults(structure: int, made: int) -> bool:
    """Make the fields that were not on the wire."""
    default = load_word(structure + S_DEFAULTS)
    for _ in range(load_word(structure + S_FIELDS)):
        slot = made + load_word(default + 16)
        if load_word(slot) == 0:
            how, value = load_word(default), load_word(default + 8)
            if how == M_SHARED:
                py_incref(value)
            elif how == M_LIST:
                value = list_new(0)
            elif how == M_DICT:
                value = dict_new()
            else:
                value = vectorcall(value, 0, 0, 0)
            if value == 0:
                return False
            store_word(slot, value)
        default += DEFAULT
    return True


@part
def read_tags(call: int, structure: int, made: int) -> bool:
    """Read a tag section; each tagged field has just the size it declares."""
    end = load_word(call + C_END)
    tags, position = read_varint(load_word(call), end)
    if position < 0:
        return False
    previous = -1
    for _ in range(tags):
        tag, size, position = read_header(SECTION, position, end)
        if position < 0 or tag <= previous or tag > HIGHEST_TAG or size > end - position:
            return False
        previous = tag
        # It may belong to another version's field.
        if is_among(tag, load_word(structure + S_REFUSEDS), load_word(structure + S_REFUSED)):
            return False
        store_word(call, position)
        position += size
        store_word(call + C_END, position)
        sound = read_tagged(call, structure, made, tag, size)
        store_word(call + C_END, end)
        if not sound or load_word(call) != position:
            return False
    store_word(call, position)
    return True


@part
def read_tagged(call: int, structure: int, made: int, tag: int, size: int) -> bool:
    """Read one tagged field, known or unknown."""
    operation = load_word(structure + S_TAGGEDS)
    for _ in range(load_word(structure + S_TAGGED)):
        if load_word(operation + O_TAG) == tag:
            value = read_value(call, operation)
            if value == 0:
                return False
            store_word(made + load_word(operation + O_SLOT), value)
            return True
        operation += OPERATION
    last = made + load_word(structure + S_UNKNOWN)
    unknown = load_word(last)
    if unknown == 0:
        unknown = dict_new()
        store_word(last, unknown)
    position = load_word(call)
    key, value = long_from(tag), bytes_from(position, size)
    store_word(call, position + size)
    sound = unknown != 0 and key != 0 and value != 0 and dict_set(unknown, key, value) == 0
    if key:
        py_decref(key)
    if value:
        py_decref(value)
    return sound


@kernel
def read_struct(call: int, structure: int, _value: int) -> int:
    """Read a structure: its fields, its tag section, and what was not on the wire.

    The fields are put where the class keeps them; its constructor would only copy them there.
    """
    made = type_alloc(load_word(structure), 0)
    if made == 0:
        return 0
    operation = load_word(structure + S_INLINES)
    for _ in range(load_word(structure + S_INLINE)):
        value = read_value(call, operation)
        if value == 0:
            py_decref(made)
            return 0
        store_word(made + load_word(operation + O_SLOT), value)
        operation += OPERATION
    sound = True
    if load_word(structure + S_FLEXIBLE):
        sound = read_tags(call, structure, made)
    if sound and make_defaults(structure, made):
        return made
    py_decref(made)
    return 0


@kernel
def decode(itself: int, arguments: int, count: int) -> int:
    """Decode one whole message; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL: ``itself`` is the program, the argument is bytes.
    """
    shared = bytes_address(itself)
    shared = load_word(shared)
    fallback = load_word(shared + G_FALLBACK)
    if count != 1:
        return vectorcall(fallback, arguments, count, 0)
    data = load_word(arguments)
    if load_word(data + TYPE) != load_word(shared + G_BYTES):
        return vectorcall(fallback, arguments, count, 0)
    call = mem_malloc(CALL)
    if call == 0:
        return vectorcall(fallback, arguments, count, 0)
    begin = bytes_address(data)
    end = begin + bytes_size(data)
    store_word(call, begin)
    store_word(call + C_END, end)
    store_word(call + C_GLOBALS, shared)
    made = call_kernel(load_word(shared + G_KERNEL), call, load_word(shared + G_ROOT), 0)
    if made != 0 and load_word(call) != end:
        py_decref(made)
        made = 0
    mem_free(call)
    if made == 0:
        if not clear_error(load_word(shared + G_EXCEPTION)):
            return 0
        return vectorcall(fallback, arguments, count, 0)
    return made
