"""Writes Python objects as messages: one kernel, driven by a program, for every schema.

A value is borrowed from its object, and held while anything of it is written: what runs Python
code (a UUID does) could let another thread change what is being encoded.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    LIST_ITEMS,
    LIST_SIZE,
    TYPE,
    as_bits,
    as_double,
    bytes_address,
    bytes_from,
    bytes_size,
    call_kernel,
    clear_error,
    copy_memory,
    dict_size,
    float_as,
    kernel,
    load_int32_native,
    load_word,
    long_as,
    mem_free,
    mem_malloc,
    part,
    py_decref,
    py_incref,
    rich_compare,
    store_int8,
    store_int64,
    store_word,
    unicode_as_utf8,
    vectorcall,
)
from flexwire.kernels.objects.layout import (
    C_END,
    C_GLOBALS,
    C_KEY,
    C_OUT,
    C_PLACE,
    C_SCRATCH,
    C_VALUE,
    CALL,
    D_DOUBLE,
    D_EMPTY_BYTES,
    D_EMPTY_LIST,
    D_INT,
    D_NEVER,
    D_NONE,
    D_SAME,
    G_BYTES,
    G_DICT,
    G_EXCEPTION,
    G_FALLBACK,
    G_FALSE,
    G_FLOAT,
    G_INT,
    G_KERNEL,
    G_LIST,
    G_ROOT,
    G_SIXTEEN,
    G_STR,
    G_TO_BYTES,
    G_TRUE,
    G_UUID,
    G_UUID_INT,
    O_DEFAULT,
    O_ELEMENT,
    O_NULLABLE,
    O_SLOT,
    O_STRUCT,
    O_TAG,
    O_VALUE,
    OPERATION,
    S_ABSENT,
    S_ABSENTS,
    S_FLEXIBLE,
    S_INLINE,
    S_INLINES,
    S_TAGGED,
    S_TAGGEDS,
    S_UNKNOWN,
)
from flexwire.kernels.objects.output import reserve, write_bytes, write_count
from flexwire.kernels.objects.unknown_tags import UNSURE, next_tag, write_unknown
from flexwire.kernels.wire.lengths import NULL, STRING_WIDTH, WIDTH
from flexwire.kernels.wire.numbers import UUID_SIZE, is_in_range, store_number
from flexwire.kernels.wire.operations import (
    ARRAY,
    BOOL,
    BYTES,
    FLOAT64,
    NULLABLE_STRUCT,
    SECTION,
    STRING,
    STRUCT,
    TAGGED_STRUCT,
)
from flexwire.kernels.wire.tags import header_size, likely_header, write_header
from flexwire.kernels.wire.varint import write_varint
from flexwire.wire.limits import HIGHEST_TAG, LONGEST, LONGEST_STRING, VARINT_BYTES

_FIRST_OUT = 256


@part
def write_integer(code: int, value: int, call: int) -> bool:
    """Write an exact int that is in its type's range."""
    shared = load_word(call + C_GLOBALS)
    if load_word(value + TYPE) != load_word(shared + G_INT):
        return False
    overflow = call + C_SCRATCH
    number = long_as(value, overflow)
    if load_int32_native(overflow):
        return False
    position = reserve(call, 8)
    if position == 0 or not is_in_range(code, number):
        return False
    store_word(call, store_number(code, position, number))
    return True


@part
def write_other_fixed(code: int, value: int, call: int) -> bool:
    """Write a boolean, a double or a UUID."""
    shared = load_word(call + C_GLOBALS)
    position = reserve(call, UUID_SIZE)
    if position == 0:
        return False
    if code == BOOL:
        truth = value == load_word(shared + G_TRUE)
        if not truth and value != load_word(shared + G_FALSE):
            return False
        store_int8(position, 1 if truth else 0)
        store_word(call, position + 1)
        return True
    if code == FLOAT64:
        if load_word(value + TYPE) != load_word(shared + G_FLOAT):
            return False
        store_int64(position, as_bits(float_as(value)))
        store_word(call, position + 8)
        return True
    if load_word(value + TYPE) != load_word(shared + G_UUID):
        return False
    number = load_word(value + load_word(shared + G_UUID_INT))
    if number == 0 or load_word(number + TYPE) != load_word(shared + G_INT):
        return False
    # Of an exact int, so that no other code runs; it gives as many bytes as asked for, or an error.
    store_word(call + C_KEY, number)
    store_word(call + C_VALUE, load_word(shared + G_SIXTEEN))
    raw = vectorcall(load_word(shared + G_TO_BYTES), call + C_KEY, 2, 0)
    if raw == 0:
        return False
    sound = write_bytes(call, bytes_address(raw), UUID_SIZE)
    py_decref(raw)
    return sound


@part
def write_text(call: int, operation: int, value: int, is_string: bool) -> bool:
    """Write an exact str or bytes."""
    shared = load_word(call + C_GLOBALS)
    if not is_string:
        if load_word(value + TYPE) != load_word(shared + G_BYTES):
            return False
        count = bytes_size(value)
        if count > LONGEST or not write_count(call, operation, count, WIDTH):
            return False
        return write_bytes(call, bytes_address(value), count)
    if load_word(value + TYPE) != load_word(shared + G_STR):
        return False
    size = call + C_SCRATCH
    text = unicode_as_utf8(value, size)
    if text == 0:
        return False
    count = load_word(size)
    if count > LONGEST_STRING or not write_count(call, operation, count, STRING_WIDTH):
        return False
    return write_bytes(call, text, count)


@part
def write_inner(call: int, operation: int, value: int) -> bool:
    """Write the structure that a field or element is."""
    inner = load_word(load_word(call + C_GLOBALS) + G_KERNEL)
    return call_kernel(inner, call, load_word(operation + O_STRUCT), value) == 1


@part
def write_array(call: int, operation: int, value: int) -> bool:
    """Write an exact list."""
    if load_word(value + TYPE) != load_word(load_word(call + C_GLOBALS) + G_LIST):
        return False
    count = load_word(value + LIST_SIZE)
    if count > LONGEST or not write_count(call, operation, count, WIDTH):
        return False
    element = load_word(operation + O_ELEMENT)
    none = load_word(load_word(call + C_GLOBALS))
    for index in range(count):
        if index >= load_word(value + LIST_SIZE):
            return False
        item = load_word(load_word(value + LIST_ITEMS) + 8 * index)
        if item == none:
            return False
        py_incref(item)
        if element == STRUCT:
            sound = write_inner(call, operation, item)
        elif element >= STRING:
            sound = write_text(call, operation, item, element == STRING)
        elif element == BOOL or element >= FLOAT64:
            sound = write_other_fixed(element, item, call)
        else:
            sound = write_integer(element, item, call)
        py_decref(item)
        if not sound:
            return False
    return load_word(value + LIST_SIZE) == count


@part
def write_null(call: int, operation: int, code: int) -> bool:
    """Write null, where that may be."""
    if not load_word(operation + O_NULLABLE):
        return False
    if code >= NULLABLE_STRUCT:
        position = reserve(call, 1)
        if position == 0:
            return False
        store_int8(position, 0 if code == TAGGED_STRUCT else -1)
        store_word(call, position + 1)
        return True
    return write_count(call, operation, NULL, STRING_WIDTH if code == STRING else WIDTH)


@part
def write_value(call: int, operation: int, value: int) -> bool:
    """Write the value of any field."""
    code = load_word(operation)
    if code < STRING:
        if code == BOOL or code >= FLOAT64:
            return write_other_fixed(code, value, call)
        return write_integer(code, value, call)
    if value == load_word(load_word(call + C_GLOBALS)):
        return write_null(call, operation, code)
    if code <= BYTES:
        return write_text(call, operation, value, code == STRING)
    if code == ARRAY:
        return write_array(call, operation, value)
    if code != STRUCT:
        position = reserve(call, 1)
        if position == 0:
            return False
        store_int8(position, 1)
        store_word(call, position + 1)
    return write_inner(call, operation, value)


@part
def is_default(call: int, operation: int, value: int) -> int:
    """Say whether a tagged or absent field has its default: 1, 0, or -1 for an error.

    0 also where that is unclear: what is not a value of the field cannot be written either.
    """
    how, default = load_word(operation + O_DEFAULT), load_word(operation + O_VALUE)
    shared = load_word(call + C_GLOBALS)
    if how == D_NONE:
        return value == load_word(shared)
    if how == D_SAME:
        return value == default
    if how == D_NEVER:
        return 0
    kind = load_word(value + TYPE)
    if how == D_INT:
        overflow = call + C_SCRATCH
        if kind != load_word(shared + G_INT):
            return 0
        number = long_as(value, overflow)
        return number == default and not load_int32_native(overflow)
    if how == D_EMPTY_LIST:
        return kind == load_word(shared + G_LIST) and load_word(value + LIST_SIZE) == 0
    if how == D_EMPTY_BYTES:
        return kind == load_word(shared + G_BYTES) and bytes_size(value) == 0
    if how == D_DOUBLE:
        return kind == load_word(shared + G_FLOAT) and float_as(value) == as_double(default)
    if kind != load_word(default + TYPE):
        return 0
    return rich_compare(value, default, 2)


@part
def write_field(call: int, operation: int, message: int) -> bool:
    """Write one field of an object, held while it is written."""
    value = load_word(message + load_word(operation + O_SLOT))
    if value == 0:
        return False
    py_incref(value)
    sound = write_value(call, operation, value)
    py_decref(value)
    return sound


@part
def is_at_default(call: int, operation: int, message: int) -> int:
    """Say whether a field of an object has its default: 1, 0, or -1 for an error."""
    value = load_word(message + load_word(operation + O_SLOT))
    if value == 0:
        return -1
    py_incref(value)
    same = is_default(call, operation, value)
    py_decref(value)
    return same


@part
def write_tags(call: int, structure: int, message: int, unknown: int) -> bool:
    """Write a tag section: known fields that are not at their defaults and unknown, ascending."""
    tagged = load_word(structure + S_TAGGED)
    operation = load_word(structure + S_TAGGEDS)
    present = 0
    for index in range(tagged):
        at_default = is_at_default(call, operation + index * OPERATION, message)
        if at_default < 0:
            return False
        if at_default == 0:
            present |= 1 << index
    others = dict_size(unknown)
    count = others
    for index in range(tagged):
        count += present >> index & 1
    position = reserve(call, VARINT_BYTES)
    if position == 0:
        return False
    store_word(call, write_varint(position, count))
    if others:
        return write_all_tags(call, structure, message, present, unknown)
    for index in range(tagged):
        if present >> index & 1 and not write_tagged(call, operation + index * OPERATION, message):
            return False
    return True


@part
def write_all_tags(call: int, structure: int, message: int, present: int, unknown: int) -> bool:
    """Write the tagged fields that are present, and the unknown ones between them."""
    operation = load_word(structure + S_TAGGEDS)
    left, place, tag = dict_size(unknown), 0, -1
    for index in range(load_word(structure + S_TAGGED) + 1):
        is_last = index == load_word(structure + S_TAGGED)
        if not is_last and not present >> index & 1:
            operation += OPERATION
            continue
        # Each that comes before this field; the next is looked at again before the next field.
        until = HIGHEST_TAG if is_last else load_word(operation + O_TAG)
        while True:
            found = next_tag(call, structure, unknown, place, tag)
            if found == UNSURE:
                return False
            if found > until:
                break
            if not write_unknown(call, found):
                return False
            tag, place, left = found, load_word(call + C_PLACE), left - 1
        if not is_last and not write_tagged(call, operation, message):
            return False
        operation += OPERATION
    return left == 0


@part
def write_tagged(call: int, operation: int, message: int) -> bool:
    """Write one tagged field: its header, then its value, whose size is known once it is written.

    The value is written where it stands after most headers, and moved where it has another.
    """
    reserved = likely_header(SECTION)
    position = reserve(call, reserved)
    if position == 0:
        return False
    begin = position - load_word(call + C_OUT)
    store_word(call, position + reserved)
    if not write_field(call, operation, message) or reserve(call, 2 * VARINT_BYTES) == 0:
        return False
    position = load_word(call + C_OUT) + begin
    tag, size = load_word(operation + O_TAG), load_word(call) - position - reserved
    header = header_size(SECTION, tag, size)
    if header != reserved:
        copy_memory(position + header, position + reserved, size)
    store_word(call, write_header(position, SECTION, tag, size) + size)
    return True


@kernel
def write_struct(call: int, structure: int, message: int) -> int:
    """Write a structure of exactly its class: its fields, then its tag section."""
    if load_word(message + TYPE) != load_word(structure):
        return 0
    operation = load_word(structure + S_ABSENTS)
    for _ in range(load_word(structure + S_ABSENT)):
        if is_at_default(call, operation, message) != 1:
            return 0
        operation += OPERATION
    operation = load_word(structure + S_INLINES)
    for _ in range(load_word(structure + S_INLINE)):
        if not write_field(call, operation, message):
            return 0
        operation += OPERATION
    unknown = load_word(message + load_word(structure + S_UNKNOWN))
    if unknown == 0 or load_word(unknown + TYPE) != load_word(load_word(call + C_GLOBALS) + G_DICT):
        return 0
    if not load_word(structure + S_FLEXIBLE):
        return 1 if dict_size(unknown) == 0 else 0
    py_incref(unknown)
    sound = write_tags(call, structure, message, unknown)
    py_decref(unknown)
    return 1 if sound else 0


@kernel
def encode(itself: int, arguments: int, count: int) -> int:
    """Encode one message; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL: ``itself`` is the program, the argument is the message.
    """
    shared = load_word(bytes_address(itself))
    fallback = load_word(shared + G_FALLBACK)
    if count != 1:
        return vectorcall(fallback, arguments, count, 0)
    call = mem_malloc(CALL)
    out = mem_malloc(_FIRST_OUT)
    made = 0
    if call != 0 and out != 0:
        store_word(call, out)
        store_word(call + C_END, out + _FIRST_OUT)
        store_word(call + C_OUT, out)
        store_word(call + C_GLOBALS, shared)
        inner = load_word(shared + G_KERNEL)
        sound = call_kernel(inner, call, load_word(shared + G_ROOT), load_word(arguments))
        out = load_word(call + C_OUT)
        if sound:
            made = bytes_from(out, load_word(call) - out)
    mem_free(out)
    mem_free(call)
    if made == 0:
        if not clear_error(load_word(shared + G_EXCEPTION)):
            return 0
        return vectorcall(fallback, arguments, count, 0)
    return made
