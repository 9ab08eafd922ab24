"""Record batches of magic 2: their header, a row in the table of batches, and a record.

Each length is compared with the remaining bytes of its record before it is used. If the kernel is
not sure, it refuses. `flexwire.records` then reads the batch and raises the error.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint32_t

from flexwire.kernels.cursor cimport (
    Cursor,
    left,
    load_int16,
    load_int32,
    load_int64,
    load_uint32,
    read_int32,
    read_int64,
    read_size,
    take,
    unlikely,
)

cdef extern from "crc32c.h" nogil:
    void crc32c_begin()
    uint32_t crc32c(const uint8_t *at, const uint8_t *end)
    int crc32c_each_way(const uint8_t *at, const uint8_t *end, uint32_t *crcs)

cdef extern from *:
    """
    #define HALF (1LL << 62)
    """
    const int64_t HALF     # the sum of two numbers below this fits in 64 bits

cdef enum:
    MAGIC = 2
    LENGTH_END = 12        # the bytes that the length of a batch does not include
    COMPRESSION_MASK = 0x07
    ZSTD = 4
    APPEND_TIME_MASK = 0x08
    CONTROL_MASK = 0x20
    LEAST_RECORD = 7
    LEAST_HEADER = 2
    NO_TIMESTAMP = -1

# The header of a batch. All numbers are big-endian.
cdef packed struct BatchHeader:
    uint8_t base_offset[8]
    uint8_t batch_length[4]
    uint8_t partition_leader_epoch[4]
    uint8_t magic
    uint8_t crc[4]
    uint8_t attributes[2]
    uint8_t last_offset_delta[4]
    uint8_t base_timestamp[8]
    uint8_t max_timestamp[8]
    uint8_t producer_id[8]
    uint8_t producer_epoch[2]
    uint8_t base_sequence[4]
    uint8_t record_count[4]

# A row in the table of batches. For NumPy, it is `flexwire.columnar.batch_table.BATCH`.
cdef struct Batch:
    int64_t position
    int64_t size
    int64_t base_offset
    int64_t partition_leader_epoch
    int64_t crc
    int64_t attributes
    int64_t last_offset_delta
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int64_t producer_epoch
    int64_t base_sequence
    int64_t count
    const uint8_t *start  # the start of its records, in the data or inflated
    const uint8_t *end
    int64_t budget        # the largest number of records and record headers that it may have
    int64_t rows          # the number of rows that were made from it
    int64_t is_skipped
    int64_t piece         # the number of its piece, if several pieces of data are scanned

# A table of batches that is held, so that its memory does not move.
cdef struct Table:
    Py_buffer view
    Batch *rows
    int64_t count

# A column of bytes. After its capacity there are SPARE additional bytes that have no meaning.
cdef struct BytesColumn:
    uint8_t *data         # NULL if the column is not wanted
    int64_t capacity
    int32_t *offsets
    int8_t *valid         # one byte for each row
    int64_t nulls

# The batches to read, and which of their records are wanted.
cdef struct Range:
    Batch *table
    int64_t first         # the first batch to read
    int64_t batches       # the end of the batches to read
    int64_t rows
    int64_t rows_capacity
    int64_t *offsets
    int64_t *timestamps   # in microseconds
    int64_t lowest_offset
    int64_t highest_offset
    int64_t lowest_timestamp
    int64_t highest_timestamp
    int32_t *header_offsets
    int64_t headers
    int64_t headers_capacity
    const uint8_t *data   # the positions of batches are counted from here
    int64_t check_crc
    int64_t no_moments
    const uint8_t *data_end

# A key or a value: its address and its size, which is -1 for null.
cdef struct Text:
    const uint8_t *at
    int64_t size

cdef struct Record:
    int64_t timestamp_delta
    int64_t offset_delta
    Text key
    Text value
    int64_t headers

cdef enum Status:
    DONE, GROW, REFUSED


cdef inline bint is_sound(const uint8_t *at, int64_t remaining) noexcept nogil:
    """Return whether a whole batch of magic 2 with a valid header begins here."""
    cdef const BatchHeader *header = <const BatchHeader *> at
    cdef int64_t size, last_delta
    if remaining < <int64_t> sizeof(BatchHeader) or header.magic != MAGIC:
        return False
    size = <int64_t> load_int32(header.batch_length) + LENGTH_END
    last_delta = load_int32(header.last_offset_delta)
    return (
        <int64_t> sizeof(BatchHeader) <= size <= remaining
        and (load_int16(header.attributes) & COMPRESSION_MASK) <= ZSTD
        and last_delta >= 0
        and load_int64(header.base_offset) <= INT64_MAX - last_delta
    )


cdef inline int64_t size_of(const BatchHeader *header) noexcept nogil:
    """Return the size of a valid batch in bytes."""
    return <int64_t> load_int32(header.batch_length) + LENGTH_END


cdef inline bint is_compressed(const BatchHeader *header) noexcept nogil:
    """Return whether the records of a batch are compressed."""
    return load_int16(header.attributes) & COMPRESSION_MASK != 0


cdef inline bint has_right_crc(const BatchHeader *header, const uint8_t *end) noexcept nogil:
    """Return whether the crc of a batch matches its bytes."""
    return crc32c(header.attributes, end) == load_uint32(header.crc)


cdef inline int hold_table(Table *table, object array) except -1:
    """Take a table of batches from its array, whose view `PyBuffer_Release` releases."""
    PyObject_GetBuffer(array, &table.view, PyBUF_WRITABLE)
    if table.view.len % <Py_ssize_t> sizeof(Batch):
        PyBuffer_Release(&table.view)
        raise ValueError("an array of batches")
    table.rows = <Batch *> table.view.buf
    table.count = table.view.len // <Py_ssize_t> sizeof(Batch)
    return 0


cdef inline int set_limits(Range *wanted, limits) except -1:
    """Set which records are wanted: the lowest and highest offset, then timestamps."""
    (
        wanted.lowest_offset, wanted.highest_offset,
        wanted.lowest_timestamp, wanted.highest_timestamp,
    ) = limits
    return 0


cdef inline int hold_batches(
    Range *wanted, Table *batches, object table, int64_t first, const uint8_t[::1] data
) except -1:
    """Take a table of batches to read from the first one; their positions are counted from data."""
    hold_table(batches, table)
    wanted.table, wanted.first, wanted.batches = batches.rows, first, batches.count
    wanted.data, wanted.data_end = &data[0], &data[0] + data.shape[0]
    return 0


cdef inline bint wants_all(const Range *wanted) noexcept nogil:
    """Return whether the ranges of offsets and timestamps have no limits."""
    return (
        wanted.lowest_offset == INT64_MIN and wanted.highest_offset == INT64_MAX
        and wanted.lowest_timestamp == INT64_MIN and wanted.highest_timestamp == INT64_MAX
    )


cdef inline bint is_wanted(const Range *wanted, int64_t offset, int64_t timestamp) noexcept nogil:
    """Return whether a record is in the ranges."""
    return (
        wanted.lowest_offset <= offset <= wanted.highest_offset
        and wanted.lowest_timestamp <= timestamp <= wanted.highest_timestamp
    )


cdef inline bint is_intact(const Range *wanted, const Batch *batch) noexcept nogil:
    """Return whether the crc of a batch matches its bytes, if crcs are checked."""
    cdef const uint8_t *at = wanted.data + batch.position
    if not wanted.check_crc:
        return True
    return crc32c((<const BatchHeader *> at).attributes, at + batch.size) == batch.crc


cdef inline bint is_possible(const Batch *batch) noexcept nogil:
    """Return whether so many records fit in the batch, and no sum of its numbers overflows."""
    return (
        0 <= batch.count <= (batch.end - batch.start) // LEAST_RECORD
        and batch.count <= batch.budget
        and -HALF <= batch.base_offset < HALF
        and -HALF <= batch.base_timestamp < HALF
    )


cdef inline int64_t offset_of(const Batch *batch, const Record *record) noexcept nogil:
    """Return the offset of a record."""
    return batch.base_offset + record.offset_delta


cdef inline int64_t timestamp_of(const Batch *batch, const Record *record) noexcept nogil:
    """Return the timestamp of a record, or the batch's if the broker has set it."""
    if batch.attributes & APPEND_TIME_MASK:
        return batch.max_timestamp
    return batch.base_timestamp + record.timestamp_delta


# If a record is `roomy`, SPARE bytes after its end may be read. A number may then end after the
# record. This is noticed at the next text, or at the end of the record.

cdef inline bint read_text(Cursor *record, Text *text, bint roomy) noexcept nogil:
    """Find a key or value."""
    if unlikely(not read_size(record, &text.size, roomy)):
        return False
    text.at = record.at
    return text.size < 0 or take(record, text.size) != NULL


cdef inline bint read_fields(Cursor *record, Record *fields, bint roomy) noexcept nogil:
    """Read a record up to its headers. No bit of its attributes has a meaning yet."""
    return (
        take(record, 1) != NULL
        and read_int64(record, &fields.timestamp_delta, roomy)
        and read_int32(record, &fields.offset_delta, roomy)
        and read_text(record, &fields.key, roomy)
        and read_text(record, &fields.value, roomy)
        and read_size(record, &fields.headers, roomy)
        and 0 <= fields.headers <= left(record) // LEAST_HEADER
    )


cdef inline bint read_record(Cursor *record, Record *fields, bint roomy) noexcept nogil:
    """Read a record up to its headers; False if a sum with its timestamp delta would overflow."""
    return read_fields(record, fields, roomy) and -HALF <= fields.timestamp_delta < HALF


cdef inline bint begin_record(Cursor *batch, Cursor *record) noexcept nogil:
    """Find the start and end of a batch's next record, and move the batch's cursor after it."""
    cdef int64_t size
    record[0] = batch[0]
    if unlikely(not read_size(record, &size, False) or size < LEAST_RECORD - 1):
        return False
    if unlikely(size > left(record)):
        return False
    batch.at = record.end = record.at + size
    return True


cdef inline bint pass_headers(Cursor *record, int64_t count) noexcept nogil:
    """Skip record headers. The record must end after them."""
    cdef Text text
    while count > 0:
        if unlikely(not read_text(record, &text, False) or text.size < 0):
            return False
        if unlikely(not read_text(record, &text, False)):
            return False
        count -= 1
    return record.at == record.end


cdef inline bint walk_record(Cursor *batch, int64_t *budget, Record *fields) noexcept nogil:
    """Read the next record of a batch, and skip its headers, of which it has at most ``budget``."""
    cdef Cursor record
    if unlikely(not begin_record(batch, &record) or not read_record(&record, fields, False)):
        return False
    if unlikely(fields.headers > budget[0] or not pass_headers(&record, fields.headers)):
        return False
    budget[0] -= fields.headers
    return True
