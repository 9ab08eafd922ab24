"""Writes a list of records as the body of a record batch.

Nothing here runs Python code, so that no other thread can change what is being written.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    LIST_ITEMS,
    LIST_SIZE,
    TYPE,
    bytes_address,
    bytes_from,
    bytes_size,
    clear_error,
    copy_memory,
    kernel,
    load_word,
    long_from,
    mem_free,
    mem_malloc,
    part,
    py_decref,
    store_int8,
    store_word,
    tuple_get,
    tuple_new,
    tuple_set,
    tuple_size,
    vectorcall,
)
from flexwire.kernels.objects.layout import C_END, C_OUT
from flexwire.kernels.objects.output import reserve
from flexwire.kernels.records.objects_arguments import take_integer
from flexwire.kernels.records.objects_layout import (
    C_BASE_OFFSET,
    C_BASE_TIMESTAMP,
    C_NEWEST,
    C_NUMBER,
    C_SHARED,
    CALL,
    R_BYTES,
    R_CLASS,
    R_EXCEPTION,
    R_FALLBACK,
    R_HEADERS,
    R_KEY,
    R_LIST,
    R_NONE,
    R_OFFSET,
    R_TIMESTAMP,
    R_TUPLE,
    R_VALUE,
)
from flexwire.kernels.wire.lengths import NULL
from flexwire.kernels.wire.varint import write_zigzag, zigzag_size
from flexwire.wire.limits import INT32_MAX, INT32_MIN, INT64_MIN, VARLONG_BYTES

_FIRST_OUT = 4096


@part
def write_bytes(call: int, value: int) -> bool:
    """Write an exact bytes object with its length in front, or null for None."""
    shared = load_word(call + C_SHARED)
    if value == load_word(shared + R_NONE):
        position = reserve(call, 1)
        if position == 0:
            return False
        store_word(call, write_zigzag(position, NULL))
        return True
    if value == 0 or load_word(value + TYPE) != load_word(shared + R_BYTES):
        return False
    size = bytes_size(value)
    if size > INT32_MAX:
        return False
    position = reserve(call, size + VARLONG_BYTES)
    if position == 0:
        return False
    position = write_zigzag(position, size)
    copy_memory(position, bytes_address(value), size)
    store_word(call, position + size)
    return True


@part
def write_headers(call: int, headers: int) -> bool:
    """Write an exact list of exact tuples of two."""
    shared = load_word(call + C_SHARED)
    if headers == 0 or load_word(headers + TYPE) != load_word(shared + R_LIST):
        return False
    count = load_word(headers + LIST_SIZE)
    position = reserve(call, VARLONG_BYTES)
    if position == 0 or count > INT32_MAX:
        return False
    store_word(call, write_zigzag(position, count))
    for index in range(count):
        header = load_word(load_word(headers + LIST_ITEMS) + 8 * index)
        if load_word(header + TYPE) != load_word(shared + R_TUPLE) or tuple_size(header) != 2:
            return False
        key = tuple_get(header, 0)
        if key == load_word(shared + R_NONE):
            return False
        if not write_bytes(call, key) or not write_bytes(call, tuple_get(header, 1)):
            return False
    return True


@part
def write_fields(call: int, record: int) -> bool:
    """Write what is in a record after its length."""
    shared = load_word(call + C_SHARED)
    value = load_word(record + load_word(shared + R_TIMESTAMP))
    if value == 0 or not take_integer(call, value, C_NUMBER):
        return False
    timestamp, base = load_word(call + C_NUMBER), load_word(call + C_BASE_TIMESTAMP)
    if timestamp > load_word(call + C_NEWEST):
        store_word(call + C_NEWEST, timestamp)
    delta = timestamp - base
    if (timestamp ^ base) & (timestamp ^ delta) < 0:
        return False
    value = load_word(record + load_word(shared + R_OFFSET))
    if value == 0 or not take_integer(call, value, C_NUMBER):
        return False
    offset, base = load_word(call + C_NUMBER), load_word(call + C_BASE_OFFSET)
    from_base = offset - base
    if (offset ^ base) & (offset ^ from_base) < 0 or not INT32_MIN <= from_base <= INT32_MAX:
        return False
    position = reserve(call, 1 + 2 * VARLONG_BYTES)
    if position == 0:
        return False
    store_int8(position, 0)
    store_word(call, write_zigzag(write_zigzag(position + 1, delta), from_base))
    return (
        write_bytes(call, load_word(record + load_word(shared + R_KEY)))
        and write_bytes(call, load_word(record + load_word(shared + R_VALUE)))
        and write_headers(call, load_word(record + load_word(shared + R_HEADERS)))
    )


@part
def write_record(call: int, record: int, width: int) -> int:
    """Write one record; gives how wide its length was, 0 for what is out of the ordinary.

    The length is known once the record is written, and mostly as wide as that of the one before.
    """
    if load_word(record + TYPE) != load_word(load_word(call + C_SHARED) + R_CLASS):
        return 0
    if reserve(call, width) == 0:
        return 0
    start = load_word(call) - load_word(call + C_OUT)
    store_word(call, load_word(call) + width)
    if not write_fields(call, record) or reserve(call, VARLONG_BYTES) == 0:
        return 0
    begin = load_word(call + C_OUT) + start
    size = load_word(call) - begin - width
    if size > INT32_MAX:
        return 0
    needed = zigzag_size(size)
    if needed != width:
        copy_memory(begin + needed, begin + width, size)
        store_word(call, begin + needed + size)
    write_zigzag(begin, size)
    return needed


@part
def write_all(call: int, records: int) -> int:
    """Write the records; gives a tuple of the bytes and the newest timestamp, or 0."""
    width = 1
    for index in range(load_word(records + LIST_SIZE)):
        width = write_record(call, load_word(load_word(records + LIST_ITEMS) + 8 * index), width)
        if width == 0:
            return 0
    begin = load_word(call + C_OUT)
    made, newest = tuple_new(2), long_from(load_word(call + C_NEWEST))
    body = bytes_from(begin, load_word(call) - begin)
    if made == 0 or newest == 0 or body == 0:
        for one in (made, newest, body):
            if one:
                py_decref(one)
        return 0
    tuple_set(made, 0, body)
    tuple_set(made, 1, newest)
    return made


@part
def start(call: int, arguments: int, shared: int) -> bool:
    """Take the arguments of `write_records` in, and make room for the first bytes."""
    store_word(call + C_OUT, 0)
    store_word(call + C_SHARED, shared)
    records = load_word(arguments)
    if load_word(records + TYPE) != load_word(shared + R_LIST):
        return False
    if load_word(records + LIST_SIZE) == 0:
        return False
    sound = take_integer(call, load_word(arguments + 8), C_BASE_OFFSET)
    sound = sound and take_integer(call, load_word(arguments + 16), C_BASE_TIMESTAMP)
    out = mem_malloc(_FIRST_OUT)
    store_word(call, out)
    store_word(call + C_OUT, out)
    store_word(call + C_END, out + _FIRST_OUT)
    store_word(call + C_NEWEST, INT64_MIN)
    return sound and out != 0


@kernel
def write_records(itself: int, arguments: int, count: int) -> int:
    """Write all records of a batch; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL: ``itself`` holds the shared words' address. Arguments
    are those of `flexwire.records.body_writing.write_records`, three.
    """
    shared = load_word(bytes_address(itself))
    call = mem_malloc(CALL)
    made = 0
    if call != 0 and count == 3:
        if start(call, arguments, shared):
            made = write_all(call, load_word(arguments))
        mem_free(load_word(call + C_OUT))
    mem_free(call)
    if made == 0:
        if not clear_error(load_word(shared + R_EXCEPTION)):
            return 0
        return vectorcall(load_word(shared + R_FALLBACK), arguments, count, 0)
    return made
