"""Reads record batches into Python objects: headers and crcs, and then their records.

The input is bytes with batches, or a batch object. A batch of ten records takes no longer than
Python would take for its header. The kernel therefore reads a batch either completely or not at
all. A batch that is compressed or has any error is refused, and the fallback,
`flexwire.records.decode`, reads it. An object is stored in its place as soon as it exists, so that
releasing the root releases everything that was refused.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp

from flexwire.kernels.batches cimport (
    APPEND_TIME_MASK,
    COMPRESSION_MASK,
    LEAST_RECORD,
    MAGIC,
    BatchHeader,
    Record,
    Text,
    begin_record,
    crc32c_begin,
    has_right_crc,
    is_compressed,
    is_sound,
    read_fields,
    read_text,
    size_of,
)
from flexwire.kernels.cursor cimport Cursor, left, load_int16, load_int32, load_int64
from flexwire.kernels.objects cimport *
from flexwire.kernels.record_objects cimport (
    KEYS,
    LONGEST_KEY,
    BatchSlots,
    Classes,
    RecordCall,
    RecordSlots,
    Source,
    make_sum,
    take_source,
)

cdef extern from "Python.h":
    void Py_SET_SIZE(PyObject *items, Py_ssize_t size)

crc32c_begin()

# The data for making the records of one batch. Objects are borrowed, and NULL if they do not exist.
cdef struct Reading:
    const RecordSlots *slots
    PyObject **keys
    int64_t base_offset
    int64_t base_timestamp
    int64_t budget         # the number of objects that may be made
    PyObject *offset       # the base offset
    PyObject *timestamp    # the base timestamp
    PyObject *append_time  # the timestamp for all records

# Records.

cdef inline PyObject *make_bytes(const Text *text) noexcept:
    """Make a key or value (None for null); a new reference, or NULL."""
    if text.size < 0:
        return Py_NewRef(<PyObject *> None)
    return PyBytes_FromStringAndSize(<const char *> text.at, text.size)


cdef PyObject *make_key(PyObject **keys, const Text *text, int64_t index) noexcept:
    """Make the key of a header.

    If the last key in its place is equal, reuse it, which is faster.
    """
    cdef PyObject *result
    # Without a GIL, all threads would write to these places.
    cdef bint is_kept = not WITHOUT_GIL and index < KEYS and text.size <= LONGEST_KEY
    cdef PyObject *last = keys[index] if is_kept else NULL
    if last != NULL and PyBytes_GET_SIZE(last) == text.size:
        if memcmp(PyBytes_AS_STRING(last), text.at, text.size) == 0:
            return Py_NewRef(last)
    result = PyBytes_FromStringAndSize(<const char *> text.at, text.size)
    if result != NULL and is_kept:
        keys[index] = Py_NewRef(result)
        Py_XDECREF(last)
    return result


cdef bint read_header(
    Cursor *record, PyObject **keys, int64_t index, PyObject **where
) noexcept:
    """Read a record header as a tuple of its key and its value."""
    cdef Text text
    cdef PyObject *item
    where[0] = PyTuple_New(2)
    if where[0] == NULL:
        return False
    PyObject_GC_UnTrack(where[0])
    if not read_text(record, &text, False) or text.size < 0:
        return False
    item = make_key(keys, &text, index)
    if item == NULL:
        return False
    PyTuple_SET_ITEM(where[0], 0, item)
    if not read_text(record, &text, False):
        return False
    item = make_bytes(&text)
    if item == NULL:
        return False
    PyTuple_SET_ITEM(where[0], 1, item)
    return True


cdef bint read_headers(
    Cursor *record, Reading *reading, int64_t count, PyObject **where
) noexcept:
    """Read the headers of a record as a list."""
    cdef int64_t index
    cdef bint is_read
    cdef PyObject *header
    if count > reading.budget:
        return False
    reading.budget -= count
    where[0] = make_list(count)
    if where[0] == NULL:
        return False
    for index in range(count):
        header = NULL
        is_read = read_header(record, reading.keys, index, &header)
        if header == NULL:
            return False
        PyList_SET_ITEM(where[0], index, header)
        if not is_read:
            return False
    return True


cdef bint read_object(Cursor *batch, Reading *reading, PyObject **where) noexcept:
    """Read the next record of a batch."""
    cdef const RecordSlots *slots = reading.slots
    cdef Cursor cursor
    cdef Record record
    cdef PyObject *result
    cdef PyObject *timestamp
    if not begin_record(batch, &cursor) or not read_fields(&cursor, &record, False):
        return False
    result = PyType_GenericAlloc(slots.type, 0)
    where[0] = result
    if result == NULL:
        return False
    timestamp = make_sum(reading.base_timestamp, record.timestamp_delta, reading.timestamp)
    if reading.append_time != NULL and timestamp != NULL:
        Py_DECREF(timestamp)
        timestamp = Py_NewRef(reading.append_time)
    field_at(result, slots.timestamp)[0] = timestamp
    field_at(result, slots.offset)[0] = make_sum(
        reading.base_offset, record.offset_delta, reading.offset
    )
    field_at(result, slots.key)[0] = make_bytes(&record.key)
    field_at(result, slots.value)[0] = make_bytes(&record.value)
    if (
        field_at(result, slots.timestamp)[0] == NULL or field_at(result, slots.offset)[0] == NULL
        or field_at(result, slots.key)[0] == NULL or field_at(result, slots.value)[0] == NULL
    ):
        return False
    return (
        read_headers(&cursor, reading, record.headers, field_at(result, slots.headers))
        and cursor.at == cursor.end
    )


cdef inline bint can_hold(const Cursor *batch, const Reading *reading, int64_t count) noexcept:
    """Return whether this many records fit into the remaining bytes and into the budget."""
    return 0 <= count <= left(batch) // LEAST_RECORD and count <= reading.budget


cdef bint read_into(
    Cursor *batch, Reading *reading, PyObject *records, int64_t first, int64_t count
) noexcept:
    """Read this many records, which must fill the data, into empty places of a list."""
    cdef int64_t index
    cdef PyObject *record
    cdef bint is_read
    reading.budget -= count
    for index in range(first, first + count):
        record = NULL
        is_read = read_object(batch, reading, &record)
        if record == NULL:
            return False
        PyList_SET_ITEM(records, index, record)
        if not is_read:
            return False
    return batch.at == batch.end


cdef PyObject *read_all(Cursor *batch, Reading *reading, int64_t count) noexcept:
    """Read the records, which must fill the data, as a list; a new reference, or NULL."""
    cdef PyObject *records
    if not can_hold(batch, reading, count):
        return NULL
    records = make_list(count)
    if records == NULL:
        return NULL
    if read_into(batch, reading, records, 0, count):
        return records
    Py_DECREF(records)
    return NULL


cdef bint take_records(
    PyObject **arguments, Cursor *batch, Reading *reading, int64_t *count
) noexcept:
    """Read the seven arguments of `flexwire.records.body.read_records`."""
    cdef int64_t start, size
    if not PyBytes_CheckExact(arguments[0]):
        return False
    if not (
        to_int64(arguments[1], &start)
        and to_int64(arguments[2], count)
        and to_int64(arguments[3], &reading.base_offset)
        and to_int64(arguments[4], &reading.base_timestamp)
        and to_int64(arguments[5], &reading.budget)
    ):
        return False
    reading.offset, reading.timestamp = arguments[3], arguments[4]
    reading.append_time = NULL
    if arguments[6] != <PyObject *> None:
        if not PyLong_CheckExact(arguments[6]):
            return False
        reading.append_time = arguments[6]
    size = PyBytes_GET_SIZE(arguments[0])
    if not 0 <= start <= size:
        return False
    batch.at = <const uint8_t *> PyBytes_AS_STRING(arguments[0]) + start
    batch.end = batch.at - start + size
    return True


cdef object read_records(object itself, PyObject **arguments, Py_ssize_t count):
    """Read all records of a batch; the fallback handles unusual calls."""
    cdef RecordCall call = <RecordCall> itself
    cdef Reading reading
    cdef Cursor batch
    cdef int64_t records = 0
    cdef PyObject *result
    reading.slots, reading.keys = &call.classes.record, call.classes.keys
    if count == 7 and take_records(arguments, &batch, &reading, &records):
        result = read_all(&batch, &reading, records)
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


# Reading the records of all batches.

cdef bint begin_plain(const Cursor *rest, Cursor *batch, Reading *reading) noexcept:
    """Find the next batch if it is valid, not compressed, and its records have room."""
    cdef const BatchHeader *header = <const BatchHeader *> rest.at
    if not is_sound(rest.at, left(rest)) or is_compressed(header):
        return False
    batch.at = rest.at + sizeof(BatchHeader)
    batch.end = rest.at + size_of(header)
    reading.budget = size_of(header)
    reading.base_offset = load_int64(header.base_offset)
    reading.base_timestamp = load_int64(header.base_timestamp)
    return can_hold(batch, reading, load_int32(header.record_count))


cdef int64_t count_plain(Cursor rest) noexcept:
    """Return the number of records in the batches before the first one that kernels do not read."""
    cdef Cursor batch
    cdef Reading reading
    cdef int64_t count = 0
    while begin_plain(&rest, &batch, &reading):
        count += load_int32((<const BatchHeader *> rest.at).record_count)
        rest.at = batch.end
    return count


cdef bint read_plain(
    const BatchHeader *header, Cursor *batch, Reading *reading, PyObject *records, int64_t first
) noexcept:
    """Read the records of a batch into empty places of a list."""
    cdef bint is_read
    reading.offset = reading.timestamp = reading.append_time = NULL
    if load_int16(header.attributes) & APPEND_TIME_MASK:
        reading.append_time = PyLong_FromLongLong(load_int64(header.max_timestamp))
        if reading.append_time == NULL:
            return False
    is_read = read_into(batch, reading, records, first, load_int32(header.record_count))
    Py_XDECREF(reading.append_time)
    return is_read


cdef void drop(PyObject *records, int64_t first, int64_t count) noexcept:
    """Empty the places of a list that were filled."""
    cdef int64_t index
    cdef PyObject *record
    for index in range(first, first + count):
        record = PyList_GET_ITEM(records, index)
        if record == NULL:
            return
        PyList_SET_ITEM(records, index, NULL)
        Py_DECREF(record)


cdef PyObject *read_batches(Source *source, Reading *reading) noexcept:
    """Read records, starting at the position, as a list; set the position after them."""
    cdef Cursor *rest = &source.rest
    cdef Cursor batch
    cdef const BatchHeader *header
    cdef int64_t count
    cdef int64_t done = 0
    cdef PyObject *records = make_list(count_plain(rest[0]))
    if records == NULL:
        return NULL
    while begin_plain(rest, &batch, reading):
        header = <const BatchHeader *> rest.at
        count = load_int32(header.record_count)
        if (
            (source.check_crc == Py_True and not has_right_crc(header, batch.end))
            or not read_plain(header, &batch, reading, records, done)
        ):
            drop(records, done, count)
            # The rest of the list's space stays empty.
            Py_SET_SIZE(records, done)
            if PyErr_Occurred() == NULL or PyErr_ExceptionMatches(<PyObject *> Exception):
                PyErr_Clear()
                break
            Py_DECREF(records)
            return NULL
        rest.at = batch.end
        done += count
    return records


cdef PyObject *with_position(PyObject *records, int64_t position) noexcept:
    """Make a tuple of records (which it then owns) and the position; NULL without memory."""
    cdef PyObject *number
    cdef PyObject *result = PyTuple_New(2)
    if result == NULL:
        Py_DECREF(records)
        return NULL
    PyTuple_SET_ITEM(result, 0, records)
    number = PyLong_FromLongLong(position)
    if number == NULL:
        Py_DECREF(result)
        return NULL
    PyTuple_SET_ITEM(result, 1, number)
    return result


cdef object read_fetch(object itself, PyObject **arguments, Py_ssize_t count):
    """Read records from a position on; return a list of them, and the position after them.

    It stops before a batch that is not valid, or that is compressed. The arguments are the data,
    the position, and whether crcs are checked.
    """
    cdef RecordCall call = <RecordCall> itself
    cdef Source source
    cdef Reading reading
    cdef PyObject *result
    reading.slots, reading.keys = &call.classes.record, call.classes.keys
    if count == 3 and take_source(arguments, &source):
        result = read_batches(&source, &reading)
        if result != NULL:
            result = with_position(result, source.rest.at - source.begin)
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


# Reading the records of one batch, which stores them.

cdef PyObject *field_of(PyObject *batch, Py_ssize_t slot, int64_t *number) noexcept:
    """Read the number in a field of a batch; return the field, or NULL if it is not such an int."""
    cdef PyObject *value = field_at(batch, slot)[0]
    return value if value != NULL and to_int64(value, number) else NULL


cdef bint take_batch(
    PyObject *owner, const BatchSlots *slots, Cursor *batch, Reading *reading, int64_t *count
) noexcept:
    """Read those fields of a batch that describe its records, if these are not compressed.

    Usually they have the values in its bytes, but anybody may have changed them.
    """
    cdef PyObject *data = field_at(owner, slots.data)[0]
    cdef int64_t magic, attributes
    if data == NULL or not PyBytes_CheckExact(data):
        return False
    if PyBytes_GET_SIZE(data) < <Py_ssize_t> sizeof(BatchHeader):
        return False
    if field_of(owner, slots.magic, &magic) == NULL or magic != MAGIC:
        return False
    if field_of(owner, slots.attributes, &attributes) == NULL or attributes & COMPRESSION_MASK:
        return False
    reading.append_time = NULL
    if attributes & APPEND_TIME_MASK:
        reading.append_time = field_at(owner, slots.max_timestamp)[0]
        if reading.append_time == NULL or not PyLong_CheckExact(reading.append_time):
            return False
    batch.at = <const uint8_t *> PyBytes_AS_STRING(data)
    batch.end = batch.at + PyBytes_GET_SIZE(data)
    reading.budget = left(batch)
    batch.at += sizeof(BatchHeader)
    reading.offset = field_of(owner, slots.base_offset, &reading.base_offset)
    reading.timestamp = field_of(owner, slots.base_timestamp, &reading.base_timestamp)
    return (
        reading.offset != NULL and reading.timestamp != NULL
        and field_of(owner, slots.record_count, count) != NULL
    )


cdef PyObject *read_held(
    PyObject *data, Cursor *batch, Reading *reading, int64_t count
) noexcept:
    """Read the records of a batch whose fields were read.

    In the meantime the collector may run, and may run Python code that sets other fields in the
    batch.
    """
    cdef PyObject *records
    cdef PyObject *held[4]
    cdef int index
    held[:] = [data, reading.offset, reading.timestamp, reading.append_time]
    for index in range(4):
        if held[index] != NULL:
            Py_INCREF(held[index])
    records = read_all(batch, reading, count)
    for index in range(4):
        Py_XDECREF(held[index])
    return records


cdef PyObject *read_once(PyObject *owner, const BatchSlots *slots, Reading *reading) noexcept:
    """Return the records that a batch stores, reading them if necessary; NULL if refused."""
    cdef Cursor batch
    cdef int64_t count = 0
    cdef PyObject *result = field_at(owner, slots.records)[0]
    cdef PyObject *before
    if result != NULL and result != <PyObject *> None:
        return Py_NewRef(result)
    if not take_batch(owner, slots, &batch, reading, &count):
        return NULL
    result = read_held(field_at(owner, slots.data)[0], &batch, reading, count)
    if result != NULL:
        before = field_at(owner, slots.records)[0]
        field_at(owner, slots.records)[0] = Py_NewRef(result)
        Py_XDECREF(before)
    return result


cdef object read_batch(object itself, PyObject **arguments, Py_ssize_t count):
    """Return the records of a batch, which stores them; the fallback handles unusual calls."""
    cdef RecordCall call = <RecordCall> itself
    cdef const BatchSlots *slots = &call.classes.batch
    cdef Reading reading
    cdef Turn turn
    cdef PyObject *result
    if count == 1 and Py_TYPE(arguments[0]) == slots.type:
        reading.slots, reading.keys = &call.classes.record, call.classes.keys
        begin_turn(&turn, arguments[0])
        result = read_once(arguments[0], slots, &reading)
        end_turn(&turn)
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


# The functions for Python. If they refuse a call, their fallbacks are called with the same
# arguments.

cdef PyMethodDef READ_RECORDS = method("read_records", <void *> read_records)
cdef PyMethodDef READ_FETCH = method("read_fetch", <void *> read_fetch)
cdef PyMethodDef READ_BATCH = method("read_batch", <void *> read_batch)


def records_reader(Classes classes, fallback):
    """Return `flexwire.records.body.read_records`, implemented with kernels."""
    return PyCFunction_NewEx(&READ_RECORDS, RecordCall(classes, fallback), NULL)


def fetch_reader(Classes classes, fallback):
    """Return the function that reads the records of all valid, uncompressed batches."""
    return PyCFunction_NewEx(&READ_FETCH, RecordCall(classes, fallback), NULL)


def batch_reader(Classes classes, fallback):
    """Return `flexwire.records.batch.read_and_keep`, implemented with kernels."""
    return PyCFunction_NewEx(&READ_BATCH, RecordCall(classes, fallback), NULL)
