"""Columns that are passed from C to Arrow without a copy, through Arrow's C data interface.

A column holds references to the Python objects that own its buffers, until Arrow releases it.
"""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memset

cdef extern from *:
    """
    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children, *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    """
    ctypedef struct ArrowArray "struct ArrowArray":
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data

# The parts of a column, followed by its children.
cdef struct Held:
    PyObject *objects
    const void *buffers[3]
    ArrowArray *children
    ArrowArray **pointers


cdef inline void release_column(ArrowArray *array) noexcept nogil:
    """Release a column, its children, and the objects that own its memory."""
    cdef Held *held = <Held *> array.private_data
    cdef int64_t number
    for number in range(array.n_children):
        release(array.children[number])
    with gil:
        Py_DECREF(<object> held.objects)
    PyMem_RawFree(held)
    array.release = NULL


cdef inline void release(ArrowArray *array) noexcept nogil:
    """Release a column unless it is already released or belongs to Arrow."""
    if array.release != NULL:
        array.release(array)


cdef inline Held *hold(
    ArrowArray *array, int64_t length, int64_t children, list objects
) except NULL:
    """Begin a column with this many rows and children and no buffers, which holds objects."""
    cdef size_t each = sizeof(ArrowArray) + sizeof(ArrowArray *)
    cdef Held *held = <Held *> PyMem_RawCalloc(1, sizeof(Held) + <size_t> children * each)
    cdef int64_t number
    if held == NULL:
        raise MemoryError
    held.children = <ArrowArray *> (held + 1)
    held.pointers = <ArrowArray **> (held.children + children)
    for number in range(children):
        held.pointers[number] = &held.children[number]
    memset(array, 0, sizeof(ArrowArray))
    Py_INCREF(objects)
    held.objects = <PyObject *> objects
    array.length, array.n_buffers, array.n_children = length, 1, children
    array.buffers, array.children = held.buffers, held.pointers
    array.release, array.private_data = release_column, held
    return held
