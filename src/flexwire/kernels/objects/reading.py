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
    gc_disable,
    gc_enable,
    gc_untrack,
    kernel,
    keyword_kernel,
    list_new,
    load_int16,
    load_int32,
    load_int32_native,
    load_int64,
    load_uint8,
    load_word,
    long_as,
    long_from,
    make_local,
    part,
    py_decref,
    py_incref,
    store_word,
    tuple_get,
    tuple_size,
    unicode_decode,
    vectorcall,
)
from flexwire.kernels.memory import inlined
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
    G_NONE,
    G_ROOT,
    G_TRUE,
    LARGE,
    M_DICT,
    M_LASTING,
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
    S_FLEXIBLE,
    S_INLINE,
    S_INLINES,
    S_OTHERS,
    S_REFUSED,
    S_REFUSEDS,
    S_TAGGED,
    S_TAGGEDS,
    S_UNKNOWN,
    V_COUNT,
    V_EXCEPTION,
    V_FALLBACK,
    V_INT,
    V_NAME,
    V_VERSIONS,
)
from flexwire.kernels.objects.making import make_empty, make_integer, make_uuid, take
from flexwire.kernels.wire.lengths import NULL, STRING_WIDTH, WIDTH, read_length
from flexwire.kernels.wire.numbers import fixed_size, load_number
from flexwire.kernels.wire.operations import (
    ARRAY,
    BOOL,
    BYTES,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    SECTION,
    STRING,
    STRUCT,
    TAGGED_STRUCT,
)
from flexwire.kernels.wire.tags import is_among, read_header
from flexwire.kernels.wire.varint import read_varint
from flexwire.wire.limits import HIGHEST_TAG, LONGEST_STRING

_REFUSED = -2
local_call = make_local(CALL)


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


@inlined
def read_number(shared: int, code: int, position: int, end: int) -> tuple[int, int]:
    """Read a boolean or integer; a new reference, or 0, and the position after it."""
    if code == INT32:
        if end - position < 4:
            return 0, position
        return make_integer(shared, load_int32(position)), position + 4
    if code == INT16:
        if end - position < 2:
            return 0, position
        return make_integer(shared, load_int16(position)), position + 2
    width = fixed_size(code)
    if end - position < width:
        return 0, position
    return make_number(shared, code, load_number(code, position)), position + width


@inlined
def make_number(shared: int, code: int, number: int) -> int:
    """Make the boolean or int that was read; a new reference, or 0."""
    if code != BOOL:
        return make_integer(shared, number)
    if number > 1:
        return 0
    return take(shared, load_word(shared + (G_TRUE if number else G_FALSE)))


@part
def read_wide(code: int, call: int) -> int:
    """Read a double or UUID; a new reference, or 0."""
    position = load_word(call)
    width = fixed_size(code)
    if width > load_word(call + C_END) - position:
        return 0
    store_word(call, position + width)
    if code == FLOAT64:
        return float_from(as_double(load_int64(position)))
    return make_uuid(call, position)


@part
def make_null(call: int) -> int:
    """Take a reference to None."""
    shared = load_word(call + C_GLOBALS)
    return take(shared, load_word(shared + G_NONE))


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
        return make_null(call)
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
        return make_null(call)
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
    if element <= INT64:
        if not read_numbers(call, element, items, count):
            py_decref(made)
            return 0
        return made
    for index in range(count):
        if element < STRING:
            item = read_wide(element, call)
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
def read_numbers(call: int, element: int, items: int, count: int) -> bool:
    """Read the booleans or integers of an array into the items of a list."""
    shared = load_word(call + C_GLOBALS)
    position, width = load_word(call), fixed_size(element)
    if count > (load_word(call + C_END) - position) // width:
        return False
    for index in range(count):
        item = make_number(shared, element, load_number(element, position))
        if item == 0:
            return False
        store_word(items + 8 * index, item)
        position += width
    store_word(call, position)
    return True


@part
def read_element_text(call: int, operation: int, is_string: bool) -> int:
    """Read a string or bytes that is an element: never null, and compact as its array is."""
    count = read_count(call, operation, 0, STRING_WIDTH if is_string else WIDTH)
    return make_text(call, count, is_string)


@part
def read_value(call: int, operation: int) -> int:
    """Read the value of any field; a new reference, or 0."""
    code = load_word(operation)
    if code <= INT64:
        shared = load_word(call + C_GLOBALS)
        value, position = read_number(shared, code, load_word(call), load_word(call + C_END))
        store_word(call, position)
        return value
    if code < STRING:
        return read_wide(code, call)
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
            return make_null(call)
        if marker != 1:
            return 0
    return read_inner(call, operation)


@part
def make_default(shared: int, default: int) -> int:
    """Make a field that was not on the wire; a new reference, or 0."""
    how, value = load_word(default), load_word(default + 8)
    if how == M_DICT:
        return dict_new()
    if how == M_LASTING:
        return take(shared, value)
    if how == M_LIST:
        return list_new(0)
    if how == M_SHARED:
        py_incref(value)
        return value
    return vectorcall(value, 0, 0, 0)


@part
def make_others(shared: int, structure: int, made: int, are_empty: bool) -> bool:
    """Make the fields that were not on the wire: all that are not inline, or the empty ones."""
    default = load_word(structure + S_DEFAULTS)
    others = load_word(structure + S_OTHERS)
    for index in range(others):
        slot = made + load_word(default + 16)
        if not are_empty or load_word(slot) == 0:
            value = make_default(shared, default)
            store_word(slot, value)
            if value == 0:
                if not are_empty:
                    empty(made, default + 16, others - index, DEFAULT)
                return False
        default += DEFAULT
    return True


@part
def empty(made: int, slots: int, count: int, apart: int) -> None:
    """Empty fields, whose places stand so far apart."""
    for index in range(count):
        store_word(made + load_word(slots + apart * index), 0)


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


@part
def read_inline(call: int, structure: int, made: int) -> bool:
    """Read the fields that are not tagged; where that fails, none is left that is not emptied."""
    shared, end = load_word(call + C_GLOBALS), load_word(call + C_END)
    operation, inline = load_word(structure + S_INLINES), load_word(structure + S_INLINE)
    position = load_word(call)
    for index in range(inline):
        code = load_word(operation)
        if code <= INT64:
            value, position = read_number(shared, code, position, end)
        else:
            store_word(call, position)
            value = read_value(call, operation)
            position = load_word(call)
        if value == 0:
            empty(made, operation + O_SLOT, inline - index, OPERATION)
            return False
        store_word(made + load_word(operation + O_SLOT), value)
        operation += OPERATION
    store_word(call, position)
    return True


@part
def read_others(call: int, structure: int, made: int) -> bool:
    """Read the tag section, if there is one, and make what was not on the wire."""
    shared, position = load_word(call + C_GLOBALS), load_word(call)
    if not load_word(structure + S_FLEXIBLE):
        return make_others(shared, structure, made, False)
    # Most tag sections are empty.
    if position < load_word(call + C_END) and load_uint8(position) == 0:
        store_word(call, position + 1)
        return make_others(shared, structure, made, False)
    empty(made, load_word(structure + S_DEFAULTS) + 16, load_word(structure + S_OTHERS), DEFAULT)
    return read_tags(call, structure, made) and make_others(shared, structure, made, True)


@kernel
def read_struct(call: int, structure: int, _value: int) -> int:
    """Read a structure: its fields, its tag section, and what was not on the wire.

    The fields are put where the class keeps them; its constructor would only copy them there.
    """
    made = make_empty(structure)
    if made == 0:
        return 0
    if not read_inline(call, structure, made):
        others = load_word(structure + S_OTHERS)
        empty(made, load_word(structure + S_DEFAULTS) + 16, others, DEFAULT)
    elif read_others(call, structure, made):
        return made
    py_decref(made)
    return 0


@part
def decode_bytes(call: int, shared: int, data: int) -> int:
    """Decode one whole message, which is to be bytes; a new reference, or 0."""
    if load_word(data + TYPE) != load_word(shared + G_BYTES):
        return 0
    begin = bytes_address(data)
    end = begin + bytes_size(data)
    store_word(call, begin)
    store_word(call + C_END, end)
    store_word(call + C_GLOBALS, shared)
    # Of what is made it could free nothing, however often it looked.
    was_on = gc_disable() if end - begin >= LARGE else 0
    made = call_kernel(load_word(shared + G_KERNEL), call, load_word(shared + G_ROOT), 0)
    if was_on:
        gc_enable()
    if made != 0 and load_word(call) != end:
        py_decref(made)
        return 0
    return made


@kernel
def decode(itself: int, arguments: int, count: int) -> int:
    """Decode one whole message; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL: ``itself`` is the program, the argument is bytes.
    """
    shared = load_word(bytes_address(itself))
    if count == 1:
        made = decode_bytes(local_call(), shared, load_word(arguments))
        if made != 0:
            return made
        if not clear_error(load_word(shared + G_EXCEPTION)):
            return 0
    return vectorcall(load_word(shared + G_FALLBACK), arguments, count, 0)


@part
def version_of(call: int, method: int, arguments: int, count: int, names: int) -> int:
    """Give what the calls of a version share, if a call is of bytes and a version; else 0."""
    if names:
        if count != 1 or tuple_size(names) != 1:
            return 0
        # A name in a call is the one string of its kind; another goes to the fallback.
        if tuple_get(names, 0) != load_word(method + V_NAME):
            return 0
    elif count != 2:
        return 0
    version = load_word(arguments + 8)
    if load_word(version + TYPE) != load_word(method + V_INT):
        return 0
    number = long_as(version, call + C_SCRATCH)
    if load_int32_native(call + C_SCRATCH) or not 0 <= number < load_word(method + V_COUNT):
        return 0
    return load_word(load_word(method + V_VERSIONS) + 8 * number)


@keyword_kernel
def decode_version(itself: int, arguments: int, count: int, names: int) -> int:
    """Decode one whole message of a version; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL and METH_KEYWORDS, of bytes and a version.
    """
    method, call = load_word(bytes_address(itself)), local_call()
    shared = version_of(call, method, arguments, count, names)
    if shared != 0:
        made = decode_bytes(call, shared, load_word(arguments))
        if made != 0:
            return made
        if not clear_error(load_word(method + V_EXCEPTION)):
            return 0
    return vectorcall(load_word(method + V_FALLBACK), arguments, count, names)
