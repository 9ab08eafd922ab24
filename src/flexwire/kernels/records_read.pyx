"""Reads the records of record batches into columns.

Takes a table of batches (`batches.pxd`) and columns with room. Every column has room for all bytes of a
batch before the batch begins, so nothing is asked within it. A batch counts whole or not at all. The
kernel stops before a batch that has no room, and refuses one with a wrong crc or a record with any
fault; the caller reads that batch into objects.
"""

from cpython.buffer cimport PyBuffer_Release
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from flexwire.kernels.batches cimport (
    DONE,
    GROW,
    LEAST_HEADER,
    LEAST_RECORD,
    NO_TIMESTAMP,
    REFUSED,
    Batch,
    BatchHeader,
    BytesColumn,
    Range,
    Record,
    Status,
    Table,
    Text,
    begin_record,
    crc32c_begin,
    hold_batches,
    is_intact,
    is_possible,
    is_wanted,
    offset_of,
    pass_headers,
    read_record,
    read_text,
    set_limits,
    timestamp_of,
    wants_all,
)
from flexwire.kernels.cursor cimport (
    Cursor,
    copy_chunks,
    likely,
    unlikely,
)

cdef enum:
    SPARE = 64
    LONG = 512             # a longer text is copied by the system

cdef extern from *:
    """
    #define FIRST_MILLISECOND (-62135596800000LL)
    #define LAST_MILLISECOND 253402300799999LL
    #define NO_MOMENT INT64_MIN
    """
    const int64_t FIRST_MILLISECOND, LAST_MILLISECOND, NO_MOMENT

# What reading takes and gives.
cdef struct Reading:
    Range wanted
    BytesColumn key
    BytesColumn value
    BytesColumn header_key
    BytesColumn header_value

crc32c_begin()

# A column of bytes while a batch is read into it: a function's own, and so in registers.
cdef struct Filling:
    uint8_t *data          # NULL where it is not wanted
    int64_t used
    int32_t *end           # of the next row
    int8_t *valid
    int64_t nulls

# The rows that a batch becomes, while it is read.
cdef struct Rows:
    Filling keys
    Filling values
    Filling header_keys
    Filling header_values
    int64_t count
    int64_t headers
    int64_t no_moments
    int64_t budget         # the record headers that are still allowed
    bint are_all_wanted


cdef inline Filling begun(const BytesColumn *column, int64_t row) noexcept nogil:
    """Return where the next text of a column goes."""
    cdef Filling filling
    filling.data, filling.nulls = column.data, 0
    if column.data != NULL:
        filling.used = column.offsets[row]
        filling.end, filling.valid = column.offsets + row + 1, column.valid + row
    return filling


cdef inline void put_text(Filling *column, const Text *text, bint roomy) noexcept nogil:
    """Put a text into the next row of a column, if it is wanted; there is room for it."""
    if column.data == NULL:
        return
    if text.size < 0:
        column.valid[0] = 0
        column.nulls += 1
    else:
        column.valid[0] = 1
        if roomy and likely(text.size <= LONG):
            copy_chunks(column.data + column.used, text.at, text.size)
        else:
            memcpy(column.data + column.used, text.at, text.size)
        column.used += text.size
    column.end[0] = <int> column.used
    column.valid += 1
    column.end += 1


cdef inline bint read_headers(Cursor *record, int64_t count, Rows *rows, bint roomy) noexcept nogil:
    """Read the headers of a record into columns."""
    cdef Text key, value
    while count > 0:
        if unlikely(not read_text(record, &key, roomy) or key.size < 0):
            return False
        if unlikely(not read_text(record, &value, roomy)):
            return False
        put_text(&rows.header_keys, &key, roomy)
        put_text(&rows.header_values, &value, roomy)
        count -= 1
    return True


cdef inline int64_t moment_of(int64_t timestamp) noexcept nogil:
    """Return a timestamp in microseconds; NO_MOMENT of -1, and outside of the years 1 to 9999."""
    if likely(FIRST_MILLISECOND <= timestamp <= LAST_MILLISECOND and timestamp != NO_TIMESTAMP):
        return 1000 * timestamp
    return NO_MOMENT


cdef inline Rows begin_rows(const Reading *reading) noexcept nogil:
    """Return the rows that a batch begins with: those of the batches before it."""
    cdef const Range *wanted = &reading.wanted
    cdef Rows rows
    rows.keys = begun(&reading.key, wanted.rows)
    rows.values = begun(&reading.value, wanted.rows)
    rows.header_keys = begun(&reading.header_key, wanted.headers)
    rows.header_values = begun(&reading.header_value, wanted.headers)
    rows.count, rows.headers, rows.no_moments = wanted.rows, wanted.headers, 0
    rows.are_all_wanted = wants_all(wanted)
    return rows


cdef inline bint read_row(
    const Reading *reading, const Batch *batch, Cursor *record, Rows *rows, bint roomy
) noexcept nogil:
    """Read a record into the next row, if it is wanted; False where it is refused."""
    cdef const Range *wanted = &reading.wanted
    cdef Record fields
    cdef int64_t offset, timestamp
    if unlikely(not read_record(record, &fields, roomy) or fields.headers > rows.budget):
        return False
    rows.budget -= fields.headers
    offset, timestamp = offset_of(batch, &fields), timestamp_of(batch, &fields)
    if unlikely(not rows.are_all_wanted and not is_wanted(wanted, offset, timestamp)):
        return pass_headers(record, fields.headers)
    if unlikely(not read_headers(record, fields.headers, rows, roomy) or record.at != record.end):
        return False
    rows.headers += fields.headers
    if wanted.offsets != NULL:
        wanted.offsets[rows.count] = offset
    if wanted.timestamps != NULL:
        wanted.timestamps[rows.count] = moment_of(timestamp)
        rows.no_moments += moment_of(timestamp) == NO_MOMENT
    put_text(&rows.keys, &fields.key, roomy)
    put_text(&rows.values, &fields.value, roomy)
    rows.count += 1
    if wanted.header_offsets != NULL:
        wanted.header_offsets[rows.count] = <int32_t> rows.headers
    return True


cdef inline bint read_rows(
    const Reading *reading, const Batch *batch, Cursor *rest, int64_t *count, Rows *rows,
    const uint8_t *last, bint roomy
) noexcept nogil:
    """Read records up to one that ends beyond ``last``; False where one is refused."""
    cdef Cursor record, after
    while count[0] > 0:
        after = rest[0]
        if unlikely(not begin_record(&after, &record)):
            return False
        if unlikely(record.end > last):
            return True
        rest.at = after.at
        count[0] -= 1
        if unlikely(not read_row(reading, batch, &record, rows, roomy)):
            return False
    return True


cdef bint read_batch(Reading *reading, Batch *batch) noexcept nogil:
    """Read the records of a batch for which there is room; False where it is refused."""
    cdef Range *wanted = &reading.wanted
    cdef Rows rows = begin_rows(reading)
    cdef Cursor rest
    cdef int64_t count = batch.count
    cdef const uint8_t *readable = batch.end
    if not is_possible(batch):
        return False
    if batch.start == wanted.data + batch.position + sizeof(BatchHeader):
        readable = wanted.data_end
    rest.at, rest.end = batch.start, batch.end
    rows.budget = batch.budget - count
    # Written once and compiled twice: all but the last records of the data are roomy.
    if not (
        read_rows(reading, batch, &rest, &count, &rows, readable - SPARE, True)
        and read_rows(reading, batch, &rest, &count, &rows, readable, False)
    ):
        return False
    if rest.at != rest.end:
        return False
    batch.rows = rows.count - wanted.rows
    wanted.rows = rows.count
    wanted.no_moments += rows.no_moments
    reading.key.nulls += rows.keys.nulls
    reading.value.nulls += rows.values.nulls
    if wanted.header_offsets != NULL:
        wanted.headers = rows.headers
        reading.header_key.nulls += rows.header_keys.nulls
        reading.header_value.nulls += rows.header_values.nulls
    return True


cdef inline bint has_room(const BytesColumn *column, int64_t row, int64_t size) noexcept nogil:
    """Return whether a column has room for so many bytes after its last row."""
    return column.data == NULL or size <= column.capacity - column.offsets[row]


cdef bint has_room_for(const Reading *reading, const Batch *batch) noexcept nogil:
    """Return whether every column has room for all that a batch could hold."""
    cdef const Range *wanted = &reading.wanted
    cdef int64_t size = batch.end - batch.start
    return (
        # A batch that says more is refused.
        min(batch.count, size // LEAST_RECORD) <= wanted.rows_capacity - wanted.rows
        and size // LEAST_HEADER <= wanted.headers_capacity - wanted.headers
        and has_room(&reading.key, wanted.rows, size)
        and has_room(&reading.value, wanted.rows, size)
        and has_room(&reading.header_key, wanted.headers, size)
        and has_room(&reading.header_value, wanted.headers, size)
    )


cdef Status read_batches(Reading *reading) noexcept nogil:
    """Read batches up to the first that has no room, or is refused."""
    cdef Range *wanted = &reading.wanted
    cdef Batch *batch
    while wanted.first < wanted.batches:
        batch = &wanted.table[wanted.first]
        if not batch.is_skipped:
            if not has_room_for(reading, batch):
                return GROW
            if not (is_intact(wanted, batch) and read_batch(reading, batch)):
                batch.rows = 0
                return REFUSED
        wanted.first += 1
    return DONE


cdef class RecordColumns:
    """The columns of some records, in rooms that ``allocate`` gives: buffers of Arrow."""

    cdef Reading reading
    cdef object allocate
    cdef readonly dict rooms

    def __cinit__(self, allocate, limits, int64_t rows):
        cdef Range *wanted = &self.reading.wanted
        memset(&self.reading, 0, sizeof(Reading))
        self.allocate, self.rooms = allocate, {}
        set_limits(wanted, limits)
        wanted.rows_capacity = rows

    cdef void *room(self, name, int64_t size) except? NULL:
        """Make room; it begins with zeros, as offsets do."""
        buffer = self.rooms[name] = self.allocate(max(size, <int64_t> sizeof(int64_t)))
        cdef size_t address = buffer.address
        (<int64_t *> address)[0] = 0
        return <void *> address

    cdef int begin(self, BytesColumn *column, name, int64_t rows, int64_t size) except -1:
        """Make room for a column of bytes."""
        column.data = <uint8_t *> self.room((name, "data"), size + SPARE)
        column.offsets = <int32_t *> self.room((name, "offsets"), 4 * rows + 4)
        column.valid = <int8_t *> self.room((name, "valid"), rows)
        column.capacity = size
        return 0

    def add_offset(self):
        """Have offsets read."""
        cdef Range *wanted = &self.reading.wanted
        wanted.offsets = <int64_t *> self.room("offset", 8 * wanted.rows_capacity)

    def add_timestamp(self):
        """Have timestamps read, in microseconds."""
        cdef Range *wanted = &self.reading.wanted
        wanted.timestamps = <int64_t *> self.room("timestamp", 8 * wanted.rows_capacity)

    def add_key(self, int64_t size):
        """Have keys read, of so many bytes."""
        self.begin(&self.reading.key, "key", self.reading.wanted.rows_capacity, size)

    def add_value(self, int64_t size):
        """Have values read, of so many bytes."""
        self.begin(&self.reading.value, "value", self.reading.wanted.rows_capacity, size)

    def count_headers(self, int64_t headers):
        """Allow so many record headers."""
        self.reading.wanted.headers_capacity = headers

    def add_headers(self, int64_t key_size, int64_t value_size):
        """Have record headers read, their keys and values of so many bytes."""
        cdef Range *wanted = &self.reading.wanted
        cdef int64_t headers = wanted.headers_capacity
        wanted.header_offsets = <int32_t *> self.room("headers", 4 * wanted.rows_capacity + 4)
        self.begin(&self.reading.header_key, "header key", headers, key_size)
        self.begin(&self.reading.header_value, "header value", headers, value_size)

    def read(self, table not None, int64_t first, const uint8_t[::1] data, bint check_crc):
        """Read batches of a table, from the first on; ``data`` is what their positions count from.

        Returns the row of the batch where it stopped, and whether that was refused; else it has no
        room, or is none.
        """
        cdef Range *wanted = &self.reading.wanted
        cdef Table batches
        cdef Status status
        hold_batches(wanted, &batches, table, first, data)
        wanted.check_crc = check_crc
        with nogil:
            status = read_batches(&self.reading)
        PyBuffer_Release(&batches.view)
        return wanted.first, status == REFUSED

    @property
    def rows(self):
        """How many records there are so far."""
        return self.reading.wanted.rows

    @property
    def headers(self):
        """How many record headers there are so far."""
        return self.reading.wanted.headers

    def nulls(self, name):
        """Return how many rows of a column are null."""
        if name == "timestamp":
            return self.reading.wanted.no_moments
        return self.column(name).nulls

    def used(self, name):
        """Return how many bytes of a column of bytes are used; 0 where it is not read."""
        cdef const Range *wanted = &self.reading.wanted
        cdef const BytesColumn *column = self.column(name)
        if column.data == NULL:
            return 0
        return column.offsets[wanted.rows if name in ("key", "value") else wanted.headers]

    cdef const BytesColumn *column(self, name) except NULL:
        """Find a column of bytes."""
        if name == "key":
            return &self.reading.key
        if name == "value":
            return &self.reading.value
        if name == "header key":
            return &self.reading.header_key
        if name == "header value":
            return &self.reading.header_value
        raise KeyError(name)
