"""Reads the records of a record batch into Python objects.

A varint that is not one, or cut off, moves the position beyond the record's end: what follows it is
refused there, at the latest because the record does not end where it says. A function that makes an
object gives a new reference, or 0 for what is out of the ordinary.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    LIST_ITEMS,
    TYPE,
    bytes_address,
    bytes_from,
    bytes_size,
    compare_memory,
    gc_untrack,
    kernel,
    list_new,
    load_word,
    part,
    py_decref,
    py_incref,
    store_word,
    tuple_new,
    type_alloc,
)
from flexwire.kernels.objects.layout import C_END, C_POSITION
from flexwire.kernels.objects.making import make_integer, take
from flexwire.kernels.records.objects_arguments import fall_back, local_call, take_integer
from flexwire.kernels.records.objects_layout import (
    C_APPEND_TIME,
    C_BASE_OFFSET,
    C_BASE_TIMESTAMP,
    C_BUDGET,
    C_COUNT,
    C_OFFSET_OBJECT,
    C_SHARED,
    C_TIMESTAMP_OBJECT,
    KEYS,
    LONGEST_KEY,
    R_BYTES,
    R_CLASS,
    R_HEADERS,
    R_INT,
    R_KEY,
    R_KEYS,
    R_NONE,
    R_OFFSET,
    R_TIMESTAMP,
    R_TUPLE_ITEMS,
    R_VALUE,
)
from flexwire.kernels.wire.lengths import NULL
from flexwire.kernels.wire.varint import read_zigzag_varint, read_zigzag_varlong, signed
from flexwire.wire.batch_layout import LEAST_RECORD, LEAST_RECORD_HEADER


@part
def take_varint(call: int, stop: int) -> int:
    """Read a signed varint, and move the position after it."""
    raw, position = read_zigzag_varint(load_word(call), stop)
    store_word(call, position if position >= 0 else stop + 1)
    return signed(raw)


@part
def take_varlong(call: int, stop: int) -> int:
    """Read a signed varlong, and move the position after it."""
    raw, position = read_zigzag_varlong(load_word(call), stop)
    store_word(call, position if position >= 0 else stop + 1)
    return signed(raw)


@part
def read_bytes(call: int, stop: int, none: int) -> int:
    """Read a key or value; None for null where ``none`` is that, refused where it is 0."""
    length = take_varint(call, stop)
    position = load_word(call)
    if length == NULL and none:
        return take(load_word(call + C_SHARED), none)
    if length < 0 or length > stop - position:
        return 0
    store_word(call, position + length)
    return bytes_from(position, length)


@part
def read_key(call: int, stop: int, index: int) -> int:
    """Read a header's key; the one made last in its place if it is that, which is faster."""
    if index >= KEYS:
        return read_bytes(call, stop, 0)
    place = load_word(call + C_SHARED) + R_KEYS + 8 * index
    likely = load_word(place)
    if likely:
        position = load_word(call)
        length = take_varint(call, stop)
        begin = load_word(call)
        if (
            length == bytes_size(likely)
            and length <= stop - begin
            and compare_memory(begin, bytes_address(likely), length) == 0
        ):
            store_word(call, begin + length)
            py_incref(likely)
            return likely
        store_word(call, position)
    made = read_bytes(call, stop, 0)
    if made and bytes_size(made) <= LONGEST_KEY:
        py_incref(made)
        store_word(place, made)
        if likely:
            py_decref(likely)
    return made


@part
def read_header(call: int, stop: int, none: int, index: int) -> int:
    """Read a record header: a tuple of its key and value."""
    made = tuple_new(2)
    if made == 0:
        return 0
    gc_untrack(made)
    items = made + load_word(load_word(call + C_SHARED) + R_TUPLE_ITEMS)
    key = read_key(call, stop, index)
    if key != 0:
        store_word(items, key)
        value = read_bytes(call, stop, none)
        if value != 0:
            store_word(items + 8, value)
            return made
    py_decref(made)
    return 0


@part
def read_headers(call: int, stop: int, none: int) -> int:
    """Read the headers of a record, a list."""
    count = take_varint(call, stop)
    budget = load_word(call + C_BUDGET)
    if count < 0 or count > (stop - load_word(call)) // LEAST_RECORD_HEADER or count > budget:
        return 0
    store_word(call + C_BUDGET, budget - count)
    made = list_new(count)
    if made == 0:
        return 0
    # Nothing a record holds can be part of a circle; the collector need not look at it.
    gc_untrack(made)
    items = load_word(made + LIST_ITEMS)
    for index in range(count):
        header = read_header(call, stop, none, index)
        if header == 0:
            py_decref(made)
            return 0
        store_word(items + 8 * index, header)
    return made


@part
def put_sum(call: int, place: int, base: int, delta: int, likely: int) -> bool:
    """Put base and delta together, unless they overflow; ``likely`` is the base's object, or 0."""
    if delta == 0 and likely:
        py_incref(likely)
        store_word(place, likely)
        return True
    total = base + delta
    if (base ^ total) & (delta ^ total) < 0:
        return False
    number = make_integer(load_word(call + C_SHARED), total)
    store_word(place, number)
    return number != 0


@part
def read_fields(call: int, stop: int, made: int) -> bool:
    """Read what is in a record after its length and attributes."""
    shared = load_word(call + C_SHARED)
    none = load_word(shared + R_NONE)
    timestamp, slot = take_varlong(call, stop), made + load_word(shared + R_TIMESTAMP)
    base, likely = load_word(call + C_BASE_TIMESTAMP), load_word(call + C_TIMESTAMP_OBJECT)
    if not put_sum(call, slot, base, timestamp, likely):
        return False
    append_time = load_word(call + C_APPEND_TIME)
    if append_time:
        py_decref(load_word(slot))
        py_incref(append_time)
        store_word(slot, append_time)
    offset, slot = take_varint(call, stop), made + load_word(shared + R_OFFSET)
    base, likely = load_word(call + C_BASE_OFFSET), load_word(call + C_OFFSET_OBJECT)
    if not put_sum(call, slot, base, offset, likely):
        return False
    key = read_bytes(call, stop, none)
    store_word(made + load_word(shared + R_KEY), key)
    if key == 0:
        return False
    value = read_bytes(call, stop, none)
    store_word(made + load_word(shared + R_VALUE), value)
    if value == 0:
        return False
    headers = read_headers(call, stop, none)
    store_word(made + load_word(shared + R_HEADERS), headers)
    return headers != 0 and load_word(call) == stop


@part
def read_record(call: int, end: int) -> int:
    """Read one record."""
    size = take_varint(call, end)
    position = load_word(call)
    if size < 0 or size > end - position:
        return 0
    made = type_alloc(load_word(load_word(call + C_SHARED) + R_CLASS), 0)
    if made == 0:
        return 0
    # The record's attributes: no bit of them has a meaning yet, and Kafka ignores them.
    store_word(call, position + 1)
    if read_fields(call, position + size, made):
        return made
    py_decref(made)
    return 0


@part
def can_hold(call: int, count: int) -> bool:
    """Whether as many records as are declared can stand up to the end, within the budget."""
    remaining = load_word(call + C_END) - load_word(call)
    return 0 <= count <= remaining // LEAST_RECORD and count <= load_word(call + C_BUDGET)


@part
def read_into(call: int, items: int, count: int) -> bool:
    """Read so many records, which must fill the data, into places that are empty."""
    end = load_word(call + C_END)
    store_word(call + C_BUDGET, load_word(call + C_BUDGET) - count)
    for index in range(count):
        record = read_record(call, end)
        if record == 0:
            return False
        store_word(items + 8 * index, record)
    return load_word(call) == end


@part
def read_all(call: int) -> int:
    """Read the records, which must fill the data."""
    count = load_word(call + C_COUNT)
    if not can_hold(call, count):
        return 0
    made = list_new(count)
    if made == 0:
        return 0
    gc_untrack(made)
    if read_into(call, load_word(made + LIST_ITEMS), count):
        return made
    py_decref(made)
    return 0


@part
def read_arguments(call: int, arguments: int, shared: int) -> bool:
    """Take the arguments of `read_records` in."""
    data, start = load_word(arguments), load_word(arguments + 8)
    append_time = load_word(arguments + 48)
    if load_word(data + TYPE) != load_word(shared + R_BYTES):
        return False
    if append_time == load_word(shared + R_NONE):
        append_time = 0
    elif load_word(append_time + TYPE) != load_word(shared + R_INT):
        return False
    store_word(call + C_APPEND_TIME, append_time)
    store_word(call + C_SHARED, shared)
    store_word(call + C_OFFSET_OBJECT, load_word(arguments + 24))
    store_word(call + C_TIMESTAMP_OBJECT, load_word(arguments + 32))
    size = bytes_size(data)
    sound = (
        take_integer(call, start, C_POSITION)
        and take_integer(call, load_word(arguments + 16), C_COUNT)
        and take_integer(call, load_word(arguments + 24), C_BASE_OFFSET)
        and take_integer(call, load_word(arguments + 32), C_BASE_TIMESTAMP)
        and take_integer(call, load_word(arguments + 40), C_BUDGET)
    )
    if not sound or load_word(call) < 0 or load_word(call) > size:
        return False
    begin = bytes_address(data)
    store_word(call, begin + load_word(call))
    store_word(call + C_END, begin + size)
    return True


@kernel
def read_records(itself: int, arguments: int, count: int) -> int:
    """Read all records of a batch; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL: ``itself`` holds the shared words' address. Arguments
    are those of `flexwire.records.body.read_records`, seven.
    """
    shared, call = load_word(bytes_address(itself)), local_call()
    if count == 7 and read_arguments(call, arguments, shared):
        made = read_all(call)
        if made:
            return made
    return fall_back(shared, arguments, count)
