"""The output for Python objects: a block of memory that grows, and bytes that are added to it."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from flexwire.kernels.cursor cimport likely

cdef extern from "output.h":
    ctypedef struct Output:
        uint8_t *begin
        uint8_t *at
        uint8_t *end

    uint8_t *grow(Output *out, int64_t count)

cdef extern from "Python.h":
    void *PyMem_Malloc(size_t size)
    void PyMem_Free(void *memory)


cdef inline bint begin_output(Output *out, int64_t size) noexcept:
    """Allocate memory for the first bytes; `PyMem_Free` of its start releases it."""
    out.begin = <uint8_t *> PyMem_Malloc(size)
    out.at = out.begin
    out.end = out.begin + size if out.begin != NULL else NULL
    return out.begin != NULL


cdef inline uint8_t *reserve(Output *out, int64_t count) noexcept:
    """Make room for this many bytes; return where to write them, or NULL without memory."""
    return out.at if likely(count <= out.end - out.at) else grow(out, count)


cdef inline bint write_bytes(Output *out, const char *source, int64_t size) noexcept:
    """Write bytes unchanged."""
    cdef uint8_t *at = reserve(out, size)
    if at == NULL:
        return False
    memcpy(at, source, size)
    out.at = at + size
    return True
