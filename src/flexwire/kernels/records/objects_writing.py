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
    copy_memory,
    kernel,
    load_word,
    long_from,
    mem_free,
    mem_malloc,
    part,
    py_decref,
    store_int8,
    store_int16,
    store_int32,
    store_int64,
    store_word,
    tuple_get,
    tuple_new,
    tuple_set,
    tuple_size,
)
from flexwire.kernels.objects.layout import C_END, C_OUT
from flexwire.kernels.objects.output import reserve
from flexwire.kernels.records.crc import HAS_CRC, crc_of
from flexwire.kernels.records.objects_arguments import fall_back, local_call, take_integer
from flexwire.kernels.records.objects_layout import (
    C_ATTRIBUTES,
    C_BASE_OFFSET,
    C_BASE_TIMESTAMP,
    C_EPOCH,
    C_LAST,
    C_NEWEST,
    C_NUMBER,
    C_PRODUCER,
    C_PRODUCER_EPOCH,
    C_SEQUENCE,
    C_SHARED,
    R_BYTES,
    R_CLASS,
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
from flexwire.wire.batch_layout import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_LENGTH_AT,
    COMPRESSION_MASK,
    CRC_AT,
    CRC_START,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LENGTH_END,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PARTITION_LEADER_EPOCH_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORD_BATCH,
    RECORD_COUNT_AT,
)
from flexwire.wire.limits import INT32_MAX, INT32_MIN, INT64_MIN, VARLONG_BYTES

_HAS_CRC = int(HAS_CRC)
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
def write_each(call: int, records: int) -> bool:
    """Write the records, one after the other."""
    width = 1
    for index in range(load_word(records + LIST_SIZE)):
        width = write_record(call, load_word(load_word(records + LIST_ITEMS) + 8 * index), width)
        if width == 0:
            return False
    return True


@part
def write_all(call: int, records: int) -> int:
    """Write the records; gives a tuple of the bytes and the newest timestamp, or 0."""
    if not write_each(call, records):
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
def start(call: int, records: int, shared: int) -> bool:
    """Make room for the first bytes, if there is an exact list of something."""
    store_word(call + C_OUT, 0)
    store_word(call + C_SHARED, shared)
    if load_word(records + TYPE) != load_word(shared + R_LIST):
        return False
    if load_word(records + LIST_SIZE) == 0:
        return False
    out = mem_malloc(_FIRST_OUT)
    store_word(call, out)
    store_word(call + C_OUT, out)
    store_word(call + C_END, out + _FIRST_OUT)
    store_word(call + C_NEWEST, INT64_MIN)
    return out != 0


@kernel
def write_records(itself: int, arguments: int, count: int) -> int:
    """Write all records of a batch; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL: ``itself`` holds the shared words' address. Arguments
    are those of `flexwire.records.body.write_records`, three.
    """
    shared, call = load_word(bytes_address(itself)), local_call()
    made = 0
    if count == 3:
        if (
            start(call, load_word(arguments), shared)
            and take_integer(call, load_word(arguments + 8), C_BASE_OFFSET)
            and take_integer(call, load_word(arguments + 16), C_BASE_TIMESTAMP)
        ):
            made = write_all(call, load_word(arguments))
        mem_free(load_word(call + C_OUT))
    if made == 0:
        return fall_back(shared, arguments, count)
    return made


@part
def take_or(call: int, value: int, record: int, slot: int, word: int) -> bool:
    """Put a number that is given into a word of the call; that of a record where it is None."""
    shared = load_word(call + C_SHARED)
    if value == load_word(shared + R_NONE):
        value = load_word(record + load_word(shared + slot))
    return value != 0 and take_integer(call, value, word)


@part
def take_bases(call: int, arguments: int) -> bool:
    """Take in what the header of a batch has of its first and its last record."""
    records = load_word(arguments)
    kind = load_word(load_word(call + C_SHARED) + R_CLASS)
    items = load_word(records + LIST_ITEMS)
    first, last = load_word(items), load_word(items + 8 * (load_word(records + LIST_SIZE) - 1))
    if load_word(first + TYPE) != kind or load_word(last + TYPE) != kind:
        return False
    if not (
        take_or(call, load_word(arguments + 16), first, R_OFFSET, C_BASE_OFFSET)
        and take_or(call, load_word(arguments + 24), last, R_OFFSET, C_LAST)
        and take_or(call, load_word(arguments + 32), first, R_TIMESTAMP, C_BASE_TIMESTAMP)
    ):
        return False
    end, base = load_word(call + C_LAST), load_word(call + C_BASE_OFFSET)
    delta = end - base
    return (end ^ base) & (end ^ delta) >= 0 and 0 <= delta <= INT32_MAX


@part
def take_within(call: int, value: int, bits: int, word: int) -> bool:
    """Put a number that is given into a word of the call, if it has no more than so many bits."""
    if not take_integer(call, value, word):
        return False
    above = load_word(call + word) >> (bits - 1)
    return above == 0 or above == -1


@part
def take_given(call: int, arguments: int) -> bool:
    """Take in what the header of a batch has that is not of its records."""
    newest = load_word(arguments + 40)
    return (
        (
            newest == load_word(load_word(call + C_SHARED) + R_NONE)
            or take_integer(call, newest, C_NEWEST)
        )
        and take_within(call, load_word(arguments + 8), 16, C_ATTRIBUTES)
        and load_word(call + C_ATTRIBUTES) & COMPRESSION_MASK == 0
        and take_within(call, load_word(arguments + 48), 32, C_EPOCH)
        and take_integer(call, load_word(arguments + 56), C_PRODUCER)
        and take_within(call, load_word(arguments + 64), 16, C_PRODUCER_EPOCH)
        and take_within(call, load_word(arguments + 72), 32, C_SEQUENCE)
    )


@part
def write_header(call: int, batch: int, end: int, count: int) -> None:
    """Write the header of a batch before its records."""
    base = load_word(call + C_BASE_OFFSET)
    store_int64(batch + BASE_OFFSET_AT, base)
    store_int32(batch + BATCH_LENGTH_AT, end - batch - LENGTH_END)
    store_int32(batch + PARTITION_LEADER_EPOCH_AT, load_word(call + C_EPOCH))
    store_int8(batch + MAGIC_AT, RECORD_BATCH)
    store_int16(batch + ATTRIBUTES_AT, load_word(call + C_ATTRIBUTES))
    store_int32(batch + LAST_OFFSET_DELTA_AT, load_word(call + C_LAST) - base)
    store_int64(batch + BASE_TIMESTAMP_AT, load_word(call + C_BASE_TIMESTAMP))
    store_int64(batch + MAX_TIMESTAMP_AT, load_word(call + C_NEWEST))
    store_int64(batch + PRODUCER_ID_AT, load_word(call + C_PRODUCER))
    store_int16(batch + PRODUCER_EPOCH_AT, load_word(call + C_PRODUCER_EPOCH))
    store_int32(batch + BASE_SEQUENCE_AT, load_word(call + C_SEQUENCE))
    store_int32(batch + RECORD_COUNT_AT, count)
    store_int32(batch + CRC_AT, crc_of(batch + CRC_START, end))


@part
def write_whole(call: int, arguments: int) -> int:
    """Write a batch as bytes; 0 for what is out of the ordinary."""
    records = load_word(arguments)
    if not take_bases(call, arguments):
        return 0
    store_word(call, load_word(call) + HEADER_SIZE)
    # The newest timestamp is known once the records are written.
    if not write_each(call, records) or not take_given(call, arguments):
        return 0
    batch, end = load_word(call + C_OUT), load_word(call)
    if end - batch - LENGTH_END > INT32_MAX:
        return 0
    write_header(call, batch, end, load_word(records + LIST_SIZE))
    return bytes_from(batch, end - batch)


@kernel
def write_batch(itself: int, arguments: int, count: int) -> int:
    """Write a batch that is not compressed; what is out of the ordinary goes to the fallback.

    A C function of the kind METH_FASTCALL: ``itself`` holds the shared words' address. Arguments
    are those of `flexwire.records.encode.write_plain_batch`, ten.
    """
    shared, call = load_word(bytes_address(itself)), local_call()
    made = 0
    if count == 10 and _HAS_CRC:
        if start(call, load_word(arguments), shared):
            made = write_whole(call, arguments)
        mem_free(load_word(call + C_OUT))
    if made == 0:
        return fall_back(shared, arguments, count)
    return made
