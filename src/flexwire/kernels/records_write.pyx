"""Writes columns as the records of record batches, and crcs into the headers of batches.

The input is offsets, timestamps and Arrow arrays. Each record is measured before it is written, and
room is checked once. A batch is refused if an offset points outside of its column, or if a delta or
a size is too large. The caller then writes that batch from objects.
"""

from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

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

# A column of bytes to write, in the form of Arrow.
cdef struct Source:
    const uint8_t *data
    int64_t size
    const int32_t *offsets
    const uint8_t *valid   # in bits, or NULL if nothing is null
    int64_t bit            # the number of the first bit

# The start and end of a batch in the output.
cdef struct Extent:
    int64_t start
    int64_t end

cdef struct Writing:
    int64_t first          # the first row to write
    int64_t rows           # the end of the rows to write
    int64_t each           # the number of rows in a batch
    int64_t gap            # the number of bytes to leave for the header of a batch
    const int64_t *offsets
    const int64_t *timestamps
    int64_t base_offset
    int64_t base_timestamp
    const int32_t *header_offsets  # NULL if there are no record headers
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
    """Return the length of a row of bytes: NULL_TEXT for null, WRONG if it is impossible."""
    cdef int64_t bit = column.bit + row
    cdef int32_t start, end
    if column.valid != NULL and not column.valid[bit >> 3] >> (bit & 7) & 1:
        return NULL_TEXT
    start, end = column.offsets[row], column.offsets[row + 1]
    if start < 0 or start > end or end > column.size:
        return WRONG
    return end - start


cdef inline int64_t size_of(int64_t length) noexcept nogil:
    """Return how many bytes a length and the bytes after it take."""
    return zigzag_size(length) + max(length, 0)


cdef inline uint8_t *write_text(
    uint8_t *at, const Source *column, int64_t row, int64_t length
) noexcept nogil:
    """Write a row of a column of bytes; return its end."""
    at = write_zigzag(at, length)
    if length > 0:
        memcpy(at, column.data + column.offsets[row], length)
        at += length
    return at


cdef int64_t size_of_headers(const Writing *writing, int64_t first, int64_t last) noexcept nogil:
    """Return how many bytes record headers take, or -1 if they cannot be written."""
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
    """Write the record of a row; return DONE, GROW or REFUSED."""
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
    """Write the records of one batch; return DONE, GROW or REFUSED."""
    cdef int64_t row
    cdef Status status
    writing.base_offset, writing.base_timestamp = writing.offsets[first], writing.timestamps[first]
    for row in range(first, last):
        status = write_record(writing, row)
        if status != DONE:
            return status
    return DONE


cdef Status write_batches(Writing *writing) noexcept nogil:
    """Write batches up to the first one that cannot be written or for which there is no room."""
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


# The functions for Python.

cdef const void *memory_of(object buffer, int64_t skipped, int64_t least, list held) except? NULL:
    """Return an address in an Arrow buffer of at least ``least`` bytes, or NULL for None."""
    if buffer is None:
        return NULL
    cdef int64_t size = buffer.size
    if skipped < 0 or least < 0 or size - skipped < least:
        raise ValueError("a buffer that is too short")
    held.append(buffer)
    cdef size_t address = buffer.address
    return <const uint8_t *> address + skipped


cdef int set_source(Source *source, object array, list held) except -1:
    """Set a column of bytes, which is a binary Arrow array."""
    cdef int64_t first = array.offset, rows = len(array)
    valid, offsets, data = array.buffers()
    source.data = <const uint8_t *> memory_of(data, 0, 0, held)
    source.size = data.size if data is not None else 0
    if rows:
        source.offsets = <const int32_t *> memory_of(offsets, 4 * first, 4 * rows + 4, held)
        if source.offsets == NULL:
            raise ValueError("a column without offsets")
    if array.null_count:
        source.valid = <const uint8_t *> memory_of(valid, 0, (first + rows + 7) // 8, held)
        source.bit = first
    return 0


cdef class RecordWriter:
    """Writes rows as the records of batches, from offsets, timestamps and Arrow arrays.

    ``headers`` is a list array without nulls, and its structs have the given keys and values. It is
    None if no record has headers.
    """

    cdef Writing writing
    cdef list held
    cdef const int64_t[::1] offsets
    cdef const int64_t[::1] timestamps

    def __cinit__(
        self,
        const int64_t[::1] offsets not None,
        const int64_t[::1] timestamps not None,
        key,
        value,
        headers=None,
        header_key=None,
        header_value=None,
    ):
        cdef Writing *writing = &self.writing
        memset(writing, 0, sizeof(Writing))
        self.held, self.offsets, self.timestamps = [], offsets, timestamps
        if not offsets.shape[0] == timestamps.shape[0] == len(key) == len(value):
            raise ValueError("columns of several lengths")
        if offsets.shape[0] == 0:
            return
        writing.offsets, writing.timestamps = &offsets[0], &timestamps[0]
        set_source(&writing.key, key, self.held)
        set_source(&writing.value, value, self.held)
        if headers is not None:
            writing.headers = len(header_key)
            if writing.headers != len(header_value) or len(headers) != len(key):
                raise ValueError("columns of several lengths")
            writing.header_offsets = <const int32_t *> memory_of(
                headers.buffers()[1], 4 * headers.offset, 4 * len(headers) + 4, self.held
            )
            set_source(&writing.header_key, header_key, self.held)
            set_source(&writing.header_value, header_value, self.held)

    def write(
        self,
        int64_t first,
        int64_t last,
        int64_t each,
        int64_t gap,
        uint8_t[::1] out not None,
        int64_t[:, ::1] extents not None,
    ):
        """Write rows from the first to the last one to ``out``, with ``each`` rows in a batch.

        Before each batch, ``gap`` bytes are left for its header. The start and end of each batch
        are written to ``extents``. Returns the number of batches that were written, up to the first
        one that cannot be written or for which there is no room.
        """
        cdef Writing *writing = &self.writing
        cdef int64_t batches = (last - first + each - 1) // each if each > 0 else -1
        if not 0 <= first < last <= self.offsets.shape[0] or gap < 0:
            raise ValueError("rows that there are not")
        if not 0 <= batches <= extents.shape[0] or extents.shape[1] != 2:
            raise ValueError("extents for fewer batches")
        writing.first, writing.rows, writing.each, writing.gap = first, last, each, gap
        writing.out, writing.capacity, writing.used = &out[0], out.shape[0], 0
        writing.table, writing.batches = <Extent *> &extents[0, 0], 0
        with nogil:
            write_batches(writing)
        return writing.batches


def seal(uint8_t[::1] out not None, const int64_t[:, ::1] extents not None):
    """Put the crc into each batch's header in ``out``; ``extents`` has their starts and ends."""
    cdef int64_t number, start, end
    cdef BatchHeader *header
    for number in range(extents.shape[0]):
        start, end = extents[number, 0], extents[number, 1]
        if not 0 <= start <= end - <int64_t> sizeof(BatchHeader) <= end <= out.shape[0]:
            raise ValueError("a batch that is not there")
        header = <BatchHeader *> &out[start]
        store_uint32(header.crc, crc32c(header.attributes, &out[0] + end))
