"""Reads messages into Python objects: one kernel, driven by a program, for every schema.

Each length is compared with the bytes that remain before it is used. A function that makes an
object gives a new reference, or 0 for what is out of the ordinary.
"""

from __future__ import annotations

from flexwire.native.layout import (
    ARRAY,
    BOOL,
    BYTES,
    C_END,
    C_GLOBALS,
    C_SCRATCH,
    CALL,
    DEFAULT,
    FLOAT64,
    G_BYTES,
    G_EXCEPTION,
    G_FALLBACK,
    G_FALSE,
    G_KERNEL,
    G_MAKE_UUID,
    G_ROOT,
    G_TRUE,
    INT8,
    INT16,
    INT32,
    INT64,
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
    STRING,
    STRUCT,
    TAGGED_STRUCT,
    UINT16,
    UINT32,
    UUID,
)
from flexwire.native.machine import (
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
    load_int8,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint16,
    load_uint32,
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

_TYPE = 8  # of any object
_LIST_ITEMS = 24
_LONGEST_STRING = 32767
_LONGEST = 2**31 - 1
_REFUSED, _NULL = -2, -1


@part
def read_varint(call: int) -> int:
    """Read an unsigned varint; -2 for one that is cut off, overlong or above 32 bits."""
    position, end = load_word(call), load_word(call + C_END)
    value = 0
    for group in range(5):
        if position >= end:
            return _REFUSED
        byte = load_uint8(position)
        position += 1
        value |= (byte & 0x7F) << (7 * group)
        if byte < 0x80:
            if (byte == 0 and group > 0) or value >> 32:
                return _REFUSED
            store_word(call, position)
            return value
    return _REFUSED


@part
def read_count(call: int, operation: int, width: int) -> int:
    """Read a length or count: -1 for null where that may be, -2 for what may not be."""
    if load_word(operation + O_COMPACT):
        count = read_varint(call) - 1
        if count == _REFUSED - 1:
            return _REFUSED
    else:
        position = load_word(call)
        if width > load_word(call + C_END) - position:
            return _REFUSED
        count = load_int16(position) if width == 2 else load_int32(position)
        store_word(call, position + width)
    if count == _NULL and load_word(operation + O_NULLABLE):
        return _NULL
    if count < 0 or count > load_word(call + C_END) - load_word(call):
        return _REFUSED
    return count


@part
def read_fixed(code: int, call: int) -> int:
    """Read a value of fixed width; a new reference, or 0."""
    position = load_word(call)
    shared = load_word(call + C_GLOBALS)
    width = 8
    if code <= INT8:
        width = 1
    elif code <= UINT16:
        width = 2
    elif code <= UINT32:
        width = 4
    elif code == UUID:
        width = 16
    if width > load_word(call + C_END) - position:
        return 0
    store_word(call, position + width)
    if code == INT32:
        return long_from(load_int32(position))
    if code == INT16:
        return long_from(load_int16(position))
    if code == INT64:
        return long_from(load_int64(position))
    if code == BOOL:
        byte = load_uint8(position)
        if byte > 1:
            return 0
        value = load_word(shared + (G_TRUE if byte else G_FALSE))
        py_incref(value)
        return value
    if code == INT8:
        return long_from(load_int8(position))
    if code == UINT16:
        return long_from(load_uint16(position))
    if code == UINT32:
        return long_from(load_uint32(position))
    if code == FLOAT64:
        return float_from(as_double(load_int64(position)))
    return make_uuid(shared, position, call)


@part
def make_uuid(shared: int, position: int, call: int) -> int:
    """Make a UUID of the 16 bytes at ``position``."""
    raw = bytes_from(position, 16)
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
    count = read_count(call, operation, 2 if is_string else 4)
    return make_text(call, count, is_string)


@part
def make_text(call: int, count: int, is_string: bool) -> int:
    """Make a string or bytes of the next ``count`` bytes; None for -1."""
    if count == _NULL:
        none = load_word(load_word(call + C_GLOBALS))
        py_incref(none)
        return none
    if count == _REFUSED or (is_string and count > _LONGEST_STRING):
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
    count = read_count(call, operation, 4)
    if count == _NULL:
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
    items = load_word(made + _LIST_ITEMS)
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
    if load_word(operation + O_COMPACT):
        count = read_varint(call) - 1
        if count < 0 or count > load_word(call + C_END) - load_word(call):
            return 0
        return make_text(call, count, is_string)
    position = load_word(call)
    width = 2 if is_string else 4
    if width > load_word(call + C_END) - position:
        return 0
    count = load_int16(position) if is_string else load_int32(position)
    store_word(call, position + width)
    if count < 0 or count > load_word(call + C_END) - load_word(call):
        return 0
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
    tags = read_varint(call)
    previous = -1
    for _ in range(tags):
        tag = read_varint(call)
        size = read_varint(call)
        stop = load_word(call) + size
        end = load_word(call + C_END)
        if tag <= previous or tag > _LONGEST or size < 0 or size > end - load_word(call):
            return False
        previous = tag
        if is_refused(structure, tag):
            return False
        store_word(call + C_END, stop)
        sound = read_tagged(call, structure, made, tag, size)
        store_word(call + C_END, end)
        if not sound or load_word(call) != stop:
            return False
    return tags >= 0


@part
def is_refused(structure: int, tag: int) -> bool:
    """Whether the tag belongs to another version's field."""
    refused = load_word(structure + S_REFUSEDS)
    for index in range(load_word(structure + S_REFUSED)):
        if load_word(refused + 8 * index) == tag:
            return True
    return False


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
    if load_word(data + _TYPE) != load_word(shared + G_BYTES):
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
