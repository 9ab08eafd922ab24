"""Writes a list of records as the body of a record batch, or as a whole batch.

The input is an exact list of exact records, whose fields have exactly the classes of decoded
records. Anything else is refused, and so is a compressed batch or a number that is too large. The
fallback, which is Python code, then writes the records or raises an error. No Python code runs
here, so with a GIL no other thread can change the records. Without a GIL, the kernel holds
references to what it reads.
"""

from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MIN, int64_t, uint8_t
from libc.string cimport memcpy, memmove, memset

from flexwire.kernels.batches cimport (
    COMPRESSION_MASK,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    crc32c,
    crc32c_begin,
)
from flexwire.kernels.cursor cimport (
    store_uint16,
    store_uint32,
    store_uint64,
    write_zigzag,
    zigzag_size,
)
from flexwire.kernels.objects cimport *
from flexwire.kernels.output cimport Output, PyMem_Free, begin_output, reserve
from flexwire.kernels.record_objects cimport Classes, RecordCall, RecordSlots, subtract_overflows

cdef enum:
    FIRST_SIZE = 4096      # the first size of the output, in bytes
    VARLONG = 10           # the largest number of bytes of a number

crc32c_begin()

# The data for writing a list of records, and the additional data for a batch.
cdef struct Writing:
    const RecordSlots *slots
    Output out
    Py_ssize_t count       # the number of records
    int64_t base_offset
    int64_t base_timestamp
    int64_t newest         # the newest timestamp
    int64_t last_offset
    int64_t attributes
    int64_t partition_leader_epoch
    int64_t producer_id
    int64_t producer_epoch
    int64_t base_sequence


cdef bint write_field(Output *out, PyObject *record, Py_ssize_t slot) noexcept:
    """Write the key or value of a record."""
    cdef PyObject *value = lend_field(record, slot)
    cdef bint is_written = write_text(out, value)
    give_back(value)
    return is_written


cdef bint write_text(Output *out, PyObject *value) noexcept:
    """Write an exact bytes object after its length, or null for None."""
    cdef Py_ssize_t size
    cdef uint8_t *at
    if value == <PyObject *> None:
        at = reserve(out, 1)
        if at == NULL:
            return False
        out.at = write_zigzag(at, -1)
        return True
    if value == NULL or not PyBytes_CheckExact(value):
        return False
    size = PyBytes_GET_SIZE(value)
    if size > INT32_MAX:
        return False
    at = reserve(out, size + VARLONG)
    if at == NULL:
        return False
    at = write_zigzag(at, size)
    memcpy(at, PyBytes_AS_STRING(value), size)
    out.at = at + size
    return True


cdef bint write_header_of(Output *out, PyObject *header) noexcept:
    """Write a record header, which is an exact tuple of two items."""
    return (
        header != NULL and PyTuple_CheckExact(header) and PyTuple_GET_SIZE(header) == 2
        and PyTuple_GET_ITEM(header, 0) != <PyObject *> None
        and write_text(out, PyTuple_GET_ITEM(header, 0))
        and write_text(out, PyTuple_GET_ITEM(header, 1))
    )


cdef bint write_headers(Output *out, PyObject *headers) noexcept:
    """Write an exact list of record headers."""
    cdef Py_ssize_t index, count
    cdef PyObject *header
    cdef bint is_written
    cdef uint8_t *at
    if headers == NULL or not PyList_CheckExact(headers):
        return False
    count = PyList_GET_SIZE(headers)
    at = reserve(out, VARLONG)
    if at == NULL or count > INT32_MAX:
        return False
    out.at = write_zigzag(at, count)
    for index in range(count):
        header = lend_item(headers, index)
        is_written = write_header_of(out, header)
        give_back(header)
        if not is_written:
            return False
    return True


cdef inline bint take(PyObject *record, Py_ssize_t slot, int64_t *number) noexcept:
    """Read the number in a field of an object."""
    cdef PyObject *value = lend_field(record, slot)
    cdef bint is_taken = value != NULL and to_int64(value, number)
    give_back(value)
    return is_taken


cdef bint write_fields(Writing *writing, PyObject *record) noexcept:
    """Write the part of a record after its length."""
    cdef const RecordSlots *slots = writing.slots
    cdef Output *out = &writing.out
    cdef int64_t timestamp, offset, timestamp_delta, offset_delta
    cdef PyObject *headers
    cdef bint is_written
    cdef uint8_t *at
    if not take(record, slots.timestamp, &timestamp) or not take(record, slots.offset, &offset):
        return False
    if timestamp > writing.newest:
        writing.newest = timestamp
    if subtract_overflows(timestamp, writing.base_timestamp, &timestamp_delta):
        return False
    if subtract_overflows(offset, writing.base_offset, &offset_delta):
        return False
    if not INT32_MIN <= offset_delta <= INT32_MAX:
        return False
    at = reserve(out, 1 + 2 * VARLONG)
    if at == NULL:
        return False
    at[0] = 0
    out.at = write_zigzag(write_zigzag(at + 1, timestamp_delta), offset_delta)
    if not write_field(out, record, slots.key) or not write_field(out, record, slots.value):
        return False
    headers = lend_field(record, slots.headers)
    is_written = write_headers(out, headers)
    give_back(headers)
    return is_written


cdef int write_record(Writing *writing, PyObject *record, int width) noexcept:
    """Write one record; return the size of its length, or 0 for unusual objects.

    The length is known only after the record is written, and is usually as wide as that of the
    record before.
    """
    cdef Output *out = &writing.out
    cdef int64_t begin = out.at - out.begin
    cdef int64_t size
    cdef int needed
    cdef uint8_t *at
    if record == NULL or Py_TYPE(record) != writing.slots.type or reserve(out, width) == NULL:
        return 0
    out.at += width
    if not write_fields(writing, record) or reserve(out, VARLONG) == NULL:
        return 0
    at = out.begin + begin
    size = out.at - at - width
    if size > INT32_MAX:
        return 0
    needed = zigzag_size(size)
    if needed != width:
        memmove(at + needed, at + width, size)
        out.at = at + needed + size
    write_zigzag(at, size)
    return needed


cdef bint write_each(Writing *writing, PyObject *records) noexcept:
    """Write the records, one after another."""
    cdef int width = 1
    cdef Py_ssize_t index
    cdef PyObject *record
    for index in range(writing.count):
        record = lend_item(records, index)
        width = write_record(writing, record, width)
        give_back(record)
        if width == 0:
            return False
    return True


cdef bint begin(Writing *writing, PyObject *records) noexcept:
    """Allocate memory for the first bytes, if the argument is an exact list that is not empty."""
    if not PyList_CheckExact(records):
        return False
    writing.newest, writing.count = INT64_MIN, PyList_GET_SIZE(records)
    if writing.count == 0:
        return False
    return begin_output(&writing.out, FIRST_SIZE)


# Writing only the body.

cdef PyObject *make_body(Writing *writing) noexcept:
    """Make a tuple of the bytes and the newest timestamp; a new reference, or NULL."""
    cdef Output *out = &writing.out
    cdef PyObject *item
    cdef PyObject *result = PyTuple_New(2)
    if result == NULL:
        return NULL
    item = PyBytes_FromStringAndSize(<const char *> out.begin, out.at - out.begin)
    if item != NULL:
        PyTuple_SET_ITEM(result, 0, item)
        item = PyLong_FromLongLong(writing.newest)
    if item != NULL:
        PyTuple_SET_ITEM(result, 1, item)
        return result
    Py_DECREF(result)
    return NULL


cdef object write_records(object itself, PyObject **arguments, Py_ssize_t count):
    """Write all records of a batch; the fallback handles unusual calls."""
    cdef RecordCall call = <RecordCall> itself
    cdef Writing writing
    cdef PyObject *result = NULL
    writing.slots = &call.classes.record
    if count == 3 and begin(&writing, arguments[0]):
        if (
            to_int64(arguments[1], &writing.base_offset)
            and to_int64(arguments[2], &writing.base_timestamp)
            and write_each(&writing, arguments[0])
        ):
            result = make_body(&writing)
        PyMem_Free(writing.out.begin)
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


# Writing a whole batch.

cdef bint take_or(
    PyObject *value, PyObject *record, Py_ssize_t slot, int64_t *number
) noexcept:
    """Read a number that is given, or the number of a record if it is None."""
    if value == <PyObject *> None:
        return take(record, slot, number)
    return to_int64(value, number)


cdef bint take_bases(Writing *writing, PyObject **arguments) noexcept:
    """Set the fields of the header that come from the first and the last record."""
    cdef PyObject *first = lend_item(arguments[0], 0)
    cdef PyObject *last = lend_item(arguments[0], writing.count - 1)
    cdef bint is_taken = take_bases_of(writing, arguments, first, last)
    give_back(first)
    give_back(last)
    return is_taken


cdef bint take_bases_of(
    Writing *writing, PyObject **arguments, PyObject *first, PyObject *last
) noexcept:
    """Set the same fields from these two records."""
    cdef const RecordSlots *slots = writing.slots
    cdef int64_t delta
    if first == NULL or Py_TYPE(first) != slots.type:
        return False
    if last == NULL or Py_TYPE(last) != slots.type:
        return False
    return (
        take_or(arguments[2], first, slots.offset, &writing.base_offset)
        and take_or(arguments[3], last, slots.offset, &writing.last_offset)
        and take_or(arguments[4], first, slots.timestamp, &writing.base_timestamp)
        and not subtract_overflows(writing.last_offset, writing.base_offset, &delta)
        and 0 <= delta <= INT32_MAX
    )


cdef inline bint take_within(PyObject *value, int bits, int64_t *number) noexcept:
    """Read a number that is given, if it has at most this many bits."""
    return to_int64(value, number) and number[0] >> (bits - 1) in (0, -1)


cdef bint take_given(Writing *writing, PyObject **arguments) noexcept:
    """Read the fields of the header that do not come from records."""
    if arguments[5] != <PyObject *> None and not to_int64(arguments[5], &writing.newest):
        return False
    return (
        take_within(arguments[1], 16, &writing.attributes)
        and not writing.attributes & COMPRESSION_MASK
        and take_within(arguments[6], 32, &writing.partition_leader_epoch)
        and to_int64(arguments[7], &writing.producer_id)
        and take_within(arguments[8], 16, &writing.producer_epoch)
        and take_within(arguments[9], 32, &writing.base_sequence)
    )


cdef void write_header(const Writing *writing) noexcept:
    """Write the header of a batch in front of its records."""
    cdef BatchHeader *header = <BatchHeader *> writing.out.begin
    cdef int64_t last_delta = writing.last_offset - writing.base_offset
    store_uint64(header.base_offset, writing.base_offset)
    store_uint32(header.batch_length, writing.out.at - writing.out.begin - LENGTH_END)
    store_uint32(header.partition_leader_epoch, writing.partition_leader_epoch)
    header.magic = MAGIC
    store_uint16(header.attributes, writing.attributes)
    store_uint32(header.last_offset_delta, last_delta)
    store_uint64(header.base_timestamp, writing.base_timestamp)
    store_uint64(header.max_timestamp, writing.newest)
    store_uint64(header.producer_id, writing.producer_id)
    store_uint16(header.producer_epoch, writing.producer_epoch)
    store_uint32(header.base_sequence, writing.base_sequence)
    store_uint32(header.record_count, writing.count)
    store_uint32(header.crc, crc32c(header.attributes, writing.out.at))


cdef PyObject *write_whole(Writing *writing, PyObject **arguments) noexcept:
    """Write a batch as bytes; a new reference, or NULL for unusual objects."""
    cdef Output *out = &writing.out
    if not take_bases(writing, arguments):
        return NULL
    memset(out.begin, 0, sizeof(BatchHeader))
    out.at += sizeof(BatchHeader)
    # The newest timestamp is known only after the records are written.
    if not write_each(writing, arguments[0]) or not take_given(writing, arguments):
        return NULL
    if out.at - out.begin - LENGTH_END > INT32_MAX:
        return NULL
    write_header(writing)
    return PyBytes_FromStringAndSize(<const char *> out.begin, out.at - out.begin)


cdef object write_batch(object itself, PyObject **arguments, Py_ssize_t count):
    """Write a batch that is not compressed; the fallback handles unusual calls.

    The ten arguments are those of `flexwire.records.encode.write_plain_batch`.
    """
    cdef RecordCall call = <RecordCall> itself
    cdef Writing writing
    cdef PyObject *result
    writing.slots = &call.classes.record
    if count == 10 and begin(&writing, arguments[0]):
        result = write_whole(&writing, arguments)
        PyMem_Free(writing.out.begin)
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


# The functions for Python. If they refuse a call, their fallbacks are called with the same
# arguments.

cdef PyMethodDef WRITE_RECORDS = method("write_records", <void *> write_records)
cdef PyMethodDef WRITE_BATCH = method("write_batch", <void *> write_batch)


def records_writer(Classes classes, fallback):
    """Return `flexwire.records.body.write_records`, implemented with kernels."""
    return PyCFunction_NewEx(&WRITE_RECORDS, RecordCall(classes, fallback), NULL)


def batch_writer(Classes classes, fallback):
    """Return `flexwire.records.encode.write_plain_batch`, implemented with kernels."""
    return PyCFunction_NewEx(&WRITE_BATCH, RecordCall(classes, fallback), NULL)
