# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Writes columns as the records of record batches, and crcs into the headers of batches.

A record is measured before it is written, and room is asked for once. Offsets that point outside of a
column are refused, and so is a delta that does not fit.
"""

from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from flexwire.kernels.batches cimport (
    DONE,
    GROW,
    REFUSED,
    BatchHeader,
    Status,
    crc32c,
    crc32c_begin,
)
from flexwire.kernels.cursor cimport store_uint32, write_zigzag, zigzag_size

cdef enum:
    NULL_TEXT = -1
    WRONG = -2

# A column of bytes to be written, as Arrow has it.
cdef struct Source:
    const uint8_t *data
    int64_t size
    const int32_t *offsets
    const uint8_t *valid   # in bits; NULL where nothing is null
    int64_t bit            # the first of them

# Where a batch begins and ends in what is written.
cdef struct Extent:
    int64_t start
    int64_t end

cdef struct Writing:
    int64_t first          # rows from here
    int64_t rows           # to here are written
    int64_t each           # so many to a batch
    int64_t gap            # bytes left for the header of a batch
    const int64_t *offsets
    const int64_t *timestamps
    int64_t base_offset
    int64_t base_timestamp
    const int32_t *header_offsets  # NULL: there are no record headers
    int64_t headers
    uint8_t *out
    int64_t capacity
    int64_t used
    Extent *table
    int64_t batches
    Source key
    Source value
    Source header_key
    Source header_value

crc32c_begin()


cdef inline bint is_difference(int64_t value, int64_t base) noexcept nogil:
    """Return whether the difference of two numbers fits in 64 bits."""
    if base >= 0:
        return value >= INT64_MIN + base
    return value <= INT64_MAX + base


cdef inline int64_t length_of(const Source *column, int64_t row) noexcept nogil:
    """Return the length of a row of a column of bytes: NULL_TEXT, or WRONG where that cannot be."""
    cdef int64_t bit = column.bit + row
    cdef int32_t start, end
    if column.valid != NULL and not column.valid[bit >> 3] >> (bit & 7) & 1:
        return NULL_TEXT
    start, end = column.offsets[row], column.offsets[row + 1]
    if start < 0 or start > end or end > column.size:
        return WRONG
    return end - start


cdef inline int64_t size_of(int64_t length) noexcept nogil:
    """Return how many bytes a length and what it counts take."""
    return zigzag_size(length) + max(length, 0)


cdef inline uint8_t *write_text(
    uint8_t *at, const Source *column, int64_t row, int64_t length
) noexcept nogil:
    """Write a row of a column of bytes; return where it ends."""
    at = write_zigzag(at, length)
    if length > 0:
        memcpy(at, column.data + column.offsets[row], length)
        at += length
    return at


cdef int64_t size_of_headers(const Writing *writing, int64_t first, int64_t last) noexcept nogil:
    """Return how many bytes record headers take; -1 where they cannot be written."""
    cdef int64_t size = 0
    cdef int64_t header, key, value
    for header in range(first, last):
        key = length_of(&writing.header_key, header)
        value = length_of(&writing.header_value, header)
        if key < 0 or value == WRONG:
            return -1
        size += size_of(key) + size_of(value)
    return size


cdef Status write_record(Writing *writing, int64_t row) noexcept nogil:
    """Write the record of a row: DONE, GROW, or REFUSED."""
    cdef int64_t timestamp = writing.timestamps[row]
    cdef int64_t offset = writing.offsets[row]
    cdef int64_t key = length_of(&writing.key, row)
    cdef int64_t value = length_of(&writing.value, row)
    cdef int64_t first = 0
    cdef int64_t last = 0
    cdef int64_t header, headers, size, whole
    cdef uint8_t *at
    if not is_difference(timestamp, writing.base_timestamp):
        return REFUSED
    if not is_difference(offset, writing.base_offset):
        return REFUSED
    timestamp -= writing.base_timestamp
    offset -= writing.base_offset
    if not INT32_MIN <= offset <= INT32_MAX or key == WRONG or value == WRONG:
        return REFUSED
    if writing.header_offsets != NULL:
        first, last = writing.header_offsets[row], writing.header_offsets[row + 1]
        if first < 0 or first > last or last > writing.headers:
            return REFUSED
    headers = size_of_headers(writing, first, last)
    if headers < 0:
        return REFUSED
    size = 1 + zigzag_size(timestamp) + zigzag_size(offset)
    size += size_of(key) + size_of(value) + zigzag_size(last - first) + headers
    if size > INT32_MAX:
        return REFUSED
    whole = zigzag_size(size) + size
    if whole > writing.capacity - writing.used:
        return GROW
    at = write_zigzag(writing.out + writing.used, size)
    at[0] = 0
    at = write_zigzag(at + 1, timestamp)
    at = write_zigzag(at, offset)
    at = write_text(at, &writing.key, row, key)
    at = write_text(at, &writing.value, row, value)
    at = write_zigzag(at, last - first)
    for header in range(first, last):
        key = length_of(&writing.header_key, header)
        value = length_of(&writing.header_value, header)
        at = write_text(at, &writing.header_key, header, key)
        at = write_text(at, &writing.header_value, header, value)
    writing.used += whole
    return DONE


cdef Status write_batch(Writing *writing, int64_t first, int64_t last) noexcept nogil:
    """Write the records of one batch: DONE, GROW, or REFUSED."""
    cdef int64_t row
    cdef Status status
    writing.base_offset, writing.base_timestamp = writing.offsets[first], writing.timestamps[first]
    for row in range(first, last):
        status = write_record(writing, row)
        if status != DONE:
            return status
    return DONE


cdef Status write_batches(Writing *writing) noexcept nogil:
    """Write batches up to the first that has no room, or cannot be written."""
    cdef int64_t last, used
    cdef Extent *extent
    cdef Status status
    while writing.first < writing.rows:
        used = writing.used
        last = min(writing.first + writing.each, writing.rows)
        if writing.gap > writing.capacity - used:
            return GROW
        writing.used += writing.gap
        status = write_batch(writing, writing.first, last)
        if status != DONE:
            writing.used = used
            return status
        extent = &writing.table[writing.batches]
        extent.start, extent.end = used, writing.used
        writing.batches += 1
        writing.first = last
    return DONE


cdef void seal_batches(const Writing *writing) noexcept nogil:
    """Put the crc into the header of each batch."""
    cdef int64_t number
    cdef BatchHeader *header
    for number in range(writing.batches):
        header = <BatchHeader *> (writing.out + writing.table[number].start)
        store_uint32(header.crc, crc32c(header.attributes, writing.out + writing.table[number].end))


# For Python: over words that NumPy holds.

def write(size_t words):
    """Write batches of a `Writing`; return how it ended: DONE, GROW or REFUSED."""
    cdef Status status
    with nogil:
        status = write_batches(<Writing *> words)
    return <int> status


def seal(size_t words):
    """Put the crc into each batch of a `Writing`; return 1, as it can be computed everywhere."""
    with nogil:
        seal_batches(<Writing *> words)
    return 1
