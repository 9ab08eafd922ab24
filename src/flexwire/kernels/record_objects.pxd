"""Records and batches as Python objects: their classes, and where these store their fields."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint8_t

from flexwire.kernels.cursor cimport Cursor
from flexwire.kernels.objects cimport (
    Py_False,
    Py_NewRef,
    Py_True,
    PyBytes_AS_STRING,
    PyBytes_CheckExact,
    PyBytes_GET_SIZE,
    PyLong_FromLongLong,
    to_int64,
)

cdef enum:
    # the number of record header keys that are kept, mostly those that are needed next
    KEYS = 16
    LONGEST_KEY = 64       # the longest key that is kept, in bytes

cdef extern from * nogil:
    # Each of these returns whether it overflows.
    bint add_overflows "__builtin_add_overflow"(int64_t left, int64_t right, int64_t *total)
    bint subtract_overflows "__builtin_sub_overflow"(int64_t left, int64_t right, int64_t *rest)

# The offsets, in bytes, at which an object of each class stores its fields.
cdef struct RecordSlots:
    PyTypeObject *type
    Py_ssize_t offset
    Py_ssize_t timestamp
    Py_ssize_t key
    Py_ssize_t value
    Py_ssize_t headers

cdef struct BatchSlots:
    PyTypeObject *type
    Py_ssize_t position
    Py_ssize_t data
    Py_ssize_t base_offset
    Py_ssize_t last_offset
    Py_ssize_t batch_length
    Py_ssize_t magic
    Py_ssize_t crc
    Py_ssize_t attributes
    Py_ssize_t max_timestamp
    Py_ssize_t base_timestamp
    Py_ssize_t partition_leader_epoch
    Py_ssize_t last_offset_delta
    Py_ssize_t producer_id
    Py_ssize_t producer_epoch
    Py_ssize_t base_sequence
    Py_ssize_t record_count
    Py_ssize_t check_crc
    Py_ssize_t max_inflated
    Py_ssize_t records

# Bytes with batches, and options for reading them.
cdef struct Source:
    PyObject *data
    const uint8_t *begin
    Cursor rest
    PyObject *check_crc
    PyObject *max_inflated


cdef class Classes:
    cdef RecordSlots record
    cdef BatchSlots batch
    cdef object record_class
    cdef object batch_class
    cdef int take_batch(self, dict slots) except -1
    cdef PyObject *keys[KEYS]


cdef class RecordCall:
    """The data of a C function for records: the classes, and the fallback."""

    cdef Classes classes
    cdef object fallback


cdef inline bint take_source(PyObject **arguments, Source *source) noexcept:
    """Read the arguments: data, a position in it, and whether crcs are checked."""
    cdef int64_t position
    if not PyBytes_CheckExact(arguments[0]):
        return False
    if arguments[2] != Py_True and arguments[2] != Py_False:
        return False
    if not to_int64(arguments[1], &position):
        return False
    if not 0 <= position <= PyBytes_GET_SIZE(arguments[0]):
        return False
    source.data, source.check_crc, source.max_inflated = arguments[0], arguments[2], NULL
    source.begin = <const uint8_t *> PyBytes_AS_STRING(arguments[0])
    source.rest.at = source.begin + position
    source.rest.end = source.begin + PyBytes_GET_SIZE(arguments[0])
    return True


cdef inline PyObject *make_sum(int64_t base, int64_t delta, PyObject *likely) noexcept:
    """Make the int base + delta, or NULL if it overflows. ``likely`` is the base's int, or NULL."""
    cdef int64_t total
    if delta == 0 and likely != NULL:
        return Py_NewRef(likely)
    return NULL if add_overflows(base, delta, &total) else PyLong_FromLongLong(total)
