"""Reads record batches into Python objects: headers and crcs, and then their records.

A batch of ten records takes no longer than Python's code for its header would. So all of a batch
that is wholly sound is made here, and of what is not nothing: `flexwire.records.decode` reads it.
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
    gc_untrack,
    kernel,
    list_new,
    load_int16,
    load_int32,
    load_int64,
    load_uint32,
    load_word,
    long_from,
    part,
    py_decref,
    py_incref,
    store_word,
    tuple_new,
    tuple_set,
    type_alloc,
)
from flexwire.kernels.objects.layout import C_END
from flexwire.kernels.objects.making import make_integer, take
from flexwire.kernels.records.crc import HAS_CRC, crc_of
from flexwire.kernels.records.objects_arguments import (
    fall_back,
    local_call,
    take_integer,
    take_likely,
)
from flexwire.kernels.records.objects_layout import (
    C_APPEND_TIME,
    C_BASE_OFFSET,
    C_BASE_TIMESTAMP,
    C_BEGIN,
    C_BUDGET,
    C_CHECK_CRC,
    C_COUNT,
    C_DATA,
    C_MAX_INFLATED,
    C_NUMBER,
    C_OFFSET_OBJECT,
    C_SHARED,
    C_TIMESTAMP_OBJECT,
    F_ATTRIBUTES,
    F_BASE_OFFSET,
    F_BASE_TIMESTAMP,
    F_CHECK_CRC,
    F_COUNT,
    F_CRC,
    F_DATA,
    F_EPOCH,
    F_LAST_DELTA,
    F_LAST_OFFSET,
    F_LENGTH,
    F_MAGIC,
    F_MAX_INFLATED,
    F_MAX_TIMESTAMP,
    F_POSITION,
    F_PRODUCER,
    F_PRODUCER_EPOCH,
    F_RECORDS,
    F_SEQUENCE,
    R_BATCH,
    R_BYTES,
    R_EXCEPTION,
    R_FALSE,
    R_INT,
    R_NONE,
    R_TRUE,
)
from flexwire.kernels.records.objects_reading import can_hold, read_all, read_into
from flexwire.kernels.records.scanning import is_sound
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
    MAX_TIMESTAMP_AT,
    PARTITION_LEADER_EPOCH_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORD_BATCH,
    RECORD_COUNT_AT,
    TIMESTAMP_TYPE_MASK,
)

_HAS_CRC = int(HAS_CRC)
# How far to read ahead, in bytes: enough that a call costs little beside the batches it gives.
_AHEAD = 1 << 15


@part
def put_number(call: int, made: int, field: int, number: int) -> bool:
    """Make a field of a batch an int."""
    shared = load_word(call + C_SHARED)
    value = make_integer(shared, number)
    store_word(made + load_word(shared + field), value)
    return value != 0


@part
def put_object(call: int, made: int, field: int, value: int) -> None:
    """Make a field of a batch an object that others have too."""
    py_incref(value)
    store_word(made + load_word(load_word(call + C_SHARED) + field), value)


@part
def put_again(call: int, made: int, field: int, number: int, before: int, is_same: bool) -> bool:
    """Make a field of a batch an int, the one that a field before is if their numbers are equal."""
    if not is_same:
        return put_number(call, made, field, number)
    put_object(call, made, field, load_word(made + load_word(load_word(call + C_SHARED) + before)))
    return True


@part
def put_header(call: int, made: int, batch: int) -> bool:
    """Make the fields of a batch those that its header has."""
    first, delta = load_int64(batch + BASE_OFFSET_AT), load_int32(batch + LAST_OFFSET_DELTA_AT)
    base, newest = load_int64(batch + BASE_TIMESTAMP_AT), load_int64(batch + MAX_TIMESTAMP_AT)
    return (
        put_number(call, made, F_BASE_OFFSET, first)
        and put_again(call, made, F_LAST_OFFSET, first + delta, F_BASE_OFFSET, delta == 0)
        and put_number(call, made, F_LENGTH, load_int32(batch + BATCH_LENGTH_AT))
        and put_number(call, made, F_EPOCH, load_int32(batch + PARTITION_LEADER_EPOCH_AT))
        and put_number(call, made, F_MAGIC, RECORD_BATCH)
        and put_number(call, made, F_CRC, load_uint32(batch + CRC_AT))
        and put_number(call, made, F_ATTRIBUTES, load_int16(batch + ATTRIBUTES_AT))
        and put_number(call, made, F_LAST_DELTA, delta)
        and put_number(call, made, F_BASE_TIMESTAMP, base)
        and put_again(call, made, F_MAX_TIMESTAMP, newest, F_BASE_TIMESTAMP, newest == base)
        and put_number(call, made, F_PRODUCER, load_int64(batch + PRODUCER_ID_AT))
        and put_number(call, made, F_PRODUCER_EPOCH, load_int16(batch + PRODUCER_EPOCH_AT))
        and put_number(call, made, F_SEQUENCE, load_int32(batch + BASE_SEQUENCE_AT))
        and put_number(call, made, F_COUNT, load_int32(batch + RECORD_COUNT_AT))
    )


@part
def make_batch(call: int, batch: int, size: int) -> int:
    """Make the object for a batch; 0 where there is no memory for it."""
    shared, whole = load_word(call + C_SHARED), load_word(call + C_DATA)
    made = type_alloc(load_word(shared + R_BATCH), 0)
    if made == 0:
        return 0
    if size == load_word(call + C_END) - load_word(call + C_BEGIN):
        data = whole
        py_incref(data)
    else:
        data = bytes_from(batch, size)
    store_word(made + load_word(shared + F_DATA), data)
    check_crc = take(shared, load_word(call + C_CHECK_CRC))
    store_word(made + load_word(shared + F_CHECK_CRC), check_crc)
    put_object(call, made, F_MAX_INFLATED, load_word(call + C_MAX_INFLATED))
    store_word(made + load_word(shared + F_RECORDS), take(shared, load_word(shared + R_NONE)))
    position = batch - load_word(call + C_BEGIN)
    if data and put_number(call, made, F_POSITION, position) and put_header(call, made, batch):
        return made
    py_decref(made)
    return 0


@part
def size_of(batch: int) -> int:
    """Give the bytes of a batch that is sound."""
    return load_int32(batch + BATCH_LENGTH_AT) + LENGTH_END


@part
def count_ahead(batch: int, end: int) -> int:
    """Give how many batches to read at once; 0 where what begins here is no sound one.

    A compressed one stands alone: what its records inflate to may be kept as long as those that
    were read with it.
    """
    count, left = 0, _AHEAD
    while is_sound(batch, end - batch):
        size = size_of(batch)
        is_compressed = load_int16(batch + ATTRIBUTES_AT) & COMPRESSION_MASK != 0
        if count and (is_compressed or size > left):
            break
        count += 1
        if is_compressed or size > left:
            break
        left -= size
        batch += size
    return count


@part
def take_arguments(call: int, arguments: int, shared: int) -> bool:
    """Take in data, a position in it, and whether crcs are checked."""
    data, check_crc = load_word(arguments), load_word(arguments + 16)
    if load_word(data + TYPE) != load_word(shared + R_BYTES):
        return False
    if check_crc != load_word(shared + R_TRUE) and check_crc != load_word(shared + R_FALSE):
        return False
    store_word(call + C_SHARED, shared)
    if not take_integer(call, load_word(arguments + 8), C_NUMBER):
        return False
    position, size = load_word(call + C_NUMBER), bytes_size(data)
    if position < 0 or position > size:
        return False
    begin = bytes_address(data)
    store_word(call, begin + position)
    store_word(call + C_END, begin + size)
    store_word(call + C_BEGIN, begin)
    store_word(call + C_DATA, data)
    store_word(call + C_CHECK_CRC, check_crc)
    return True


@part
def is_for_all(call: int, batch: int, end: int) -> bool:
    """Whether a batch is sound and not compressed, and has room for the records it declares."""
    if not is_sound(batch, end - batch):
        return False
    stop = batch + size_of(batch)
    if load_int16(batch + ATTRIBUTES_AT) & COMPRESSION_MASK != 0:
        return False
    store_word(call, batch + HEADER_SIZE)
    store_word(call + C_END, stop)
    store_word(call + C_BUDGET, stop - batch)
    return can_hold(call, load_int32(batch + RECORD_COUNT_AT))


@part
def count_all(call: int, batch: int, end: int) -> int:
    """Give how many records there are in the batches up to the first that is for others."""
    count = 0
    while is_for_all(call, batch, end):
        count += load_int32(batch + RECORD_COUNT_AT)
        batch += size_of(batch)
    return count


@part
def read_one_of_all(call: int, batch: int, items: int, count: int) -> bool:
    """Read the records of a batch, if its crc is right, into places that are empty."""
    is_checked = load_word(call + C_CHECK_CRC) == load_word(load_word(call + C_SHARED) + R_TRUE)
    stop = load_word(call + C_END)
    if is_checked and crc_of(batch + CRC_START, stop) != load_uint32(batch + CRC_AT):
        return False
    store_word(call + C_OFFSET_OBJECT, 0)
    store_word(call + C_TIMESTAMP_OBJECT, 0)
    append_time = 0
    if load_int16(batch + ATTRIBUTES_AT) & TIMESTAMP_TYPE_MASK:
        append_time = long_from(load_int64(batch + MAX_TIMESTAMP_AT))
        if append_time == 0:
            return False
    store_word(call + C_APPEND_TIME, append_time)
    store_word(call + C_BASE_OFFSET, load_int64(batch + BASE_OFFSET_AT))
    store_word(call + C_BASE_TIMESTAMP, load_int64(batch + BASE_TIMESTAMP_AT))
    is_read = read_into(call, items, count)
    if append_time:
        py_decref(append_time)
    return is_read


@part
def drop(items: int, count: int) -> None:
    """Empty places again, as far as they were filled."""
    for index in range(count):
        one = load_word(items + 8 * index)
        if one == 0:
            return
        store_word(items + 8 * index, 0)
        py_decref(one)


@part
def read_fetch_list(call: int) -> int:
    """Read records from the position on into a list, and leave the position after them."""
    shared, batch, end = load_word(call + C_SHARED), load_word(call), load_word(call + C_END)
    is_checked = load_word(call + C_CHECK_CRC) == load_word(shared + R_TRUE)
    total = count_all(call, batch, end) if _HAS_CRC or not is_checked else 0
    found = list_new(total)
    if found == 0:
        return 0
    gc_untrack(found)
    items, done = load_word(found + LIST_ITEMS), 0
    while (_HAS_CRC or not is_checked) and is_for_all(call, batch, end):
        count = load_int32(batch + RECORD_COUNT_AT)
        if not read_one_of_all(call, batch, items + 8 * done, count):
            drop(items + 8 * done, count)
            # The rest of its room stays empty.
            store_word(found + LIST_SIZE, done)
            if clear_error(load_word(shared + R_EXCEPTION)):
                break
            py_decref(found)
            return 0
        batch = load_word(call + C_END)
        done += count
    store_word(call, batch)
    return found


@part
def with_position(call: int, found: int) -> int:
    """Give a tuple of what was found and the position after it, or 0 without memory."""
    position = long_from(load_word(call) - load_word(call + C_BEGIN))
    made = tuple_new(2)
    if made == 0 or position == 0:
        if made:
            py_decref(made)
        if position:
            py_decref(position)
        py_decref(found)
        return 0
    tuple_set(made, 0, found)
    tuple_set(made, 1, position)
    return made


@kernel
def read_fetch(itself: int, arguments: int, count: int) -> int:
    """Read the records of batches from a position on: a list, and the position after them.

    It stops before a batch that is not sound, or is compressed. A C function of the kind
    METH_FASTCALL: ``itself`` holds the shared words' address. Arguments are the data, the position,
    and whether crcs are checked.
    """
    shared, call = load_word(bytes_address(itself)), local_call()
    if count == 3 and take_arguments(call, arguments, shared):
        found = read_fetch_list(call)
        if found:
            found = with_position(call, found)
        if found:
            return found
    return fall_back(shared, arguments, count)


@part
def take_field(call: int, batch: int, field: int, likely: int, word: int) -> int:
    """Put a field of a batch that is an exact int into a word of the call; gives the int, or 0."""
    value = load_word(batch + load_word(load_word(call + C_SHARED) + field))
    if value != 0 and take_likely(call, value, likely, word):
        return value
    return 0


@part
def take_batch(call: int, batch: int, shared: int) -> bool:
    """Take in what a batch says of its records, if they are not compressed.

    Mostly that is what its bytes say; but anyone may have changed it.
    """
    store_word(call + C_SHARED, shared)
    data, append_time = load_word(batch + load_word(shared + F_DATA)), 0
    if data == 0 or load_word(data + TYPE) != load_word(shared + R_BYTES):
        return False
    size, begin = bytes_size(data), bytes_address(data)
    if size < HEADER_SIZE:
        return False
    magic = take_field(call, batch, F_MAGIC, RECORD_BATCH, C_NUMBER)
    if magic == 0 or load_word(call + C_NUMBER) != RECORD_BATCH:
        return False
    attributes = load_int16(begin + ATTRIBUTES_AT)
    if take_field(call, batch, F_ATTRIBUTES, attributes, C_NUMBER) == 0:
        return False
    attributes = load_word(call + C_NUMBER)
    if attributes & TIMESTAMP_TYPE_MASK:
        append_time = load_word(batch + load_word(shared + F_MAX_TIMESTAMP))
        if append_time == 0 or load_word(append_time + TYPE) != load_word(shared + R_INT):
            return False
    store_word(call + C_DATA, data)
    store_word(call + C_APPEND_TIME, append_time)
    store_word(call, begin + HEADER_SIZE)
    store_word(call + C_END, begin + size)
    store_word(call + C_BUDGET, size)
    first, base = load_int64(begin + BASE_OFFSET_AT), load_int64(begin + BASE_TIMESTAMP_AT)
    count = load_int32(begin + RECORD_COUNT_AT)
    offset = take_field(call, batch, F_BASE_OFFSET, first, C_BASE_OFFSET)
    timestamp = take_field(call, batch, F_BASE_TIMESTAMP, base, C_BASE_TIMESTAMP)
    store_word(call + C_OFFSET_OBJECT, offset)
    store_word(call + C_TIMESTAMP_OBJECT, timestamp)
    return (
        attributes & COMPRESSION_MASK == 0
        and offset != 0
        and timestamp != 0
        and take_field(call, batch, F_COUNT, count, C_COUNT) != 0
    )


@part
def read_held(call: int) -> int:
    """Read the records of a batch that was taken in.

    The collector may run on the way, and with it Python code that gives the batch other fields.
    """
    data, append_time = load_word(call + C_DATA), load_word(call + C_APPEND_TIME)
    offset, timestamp = load_word(call + C_OFFSET_OBJECT), load_word(call + C_TIMESTAMP_OBJECT)
    py_incref(data)
    py_incref(offset)
    py_incref(timestamp)
    if append_time:
        py_incref(append_time)
    made = read_all(call)
    py_decref(data)
    py_decref(offset)
    py_decref(timestamp)
    if append_time:
        py_decref(append_time)
    return made


@part
def keep(batch: int, slot: int, made: int) -> None:
    """Have a batch keep its records."""
    before = load_word(batch + slot)
    py_incref(made)
    store_word(batch + slot, made)
    if before:
        py_decref(before)


@kernel
def read_batch(itself: int, arguments: int, count: int) -> int:
    """Give the records of a batch, which keeps them; what is out of the ordinary falls back.

    A C function of the kind METH_FASTCALL: ``itself`` holds the shared words' address. The argument
    is a `flexwire.records.RecordBatch`.
    """
    shared, call = load_word(bytes_address(itself)), local_call()
    if count != 1:
        return fall_back(shared, arguments, count)
    batch = load_word(arguments)
    if load_word(batch + TYPE) == load_word(shared + R_BATCH):
        kept = load_word(batch + load_word(shared + F_RECORDS))
        if kept != 0 and kept != load_word(shared + R_NONE):
            py_incref(kept)
            return kept
        if take_batch(call, batch, shared):
            made = read_held(call)
            if made:
                keep(batch, load_word(shared + F_RECORDS), made)
                return made
    return fall_back(shared, arguments, count)
