"""Reads the records of record batches into columns.

The input is a table of batches (`batches.pxd`), and columns with room. Before a batch is read,
every column has room for all bytes of the batch, so that no room is requested while it is read. A
batch counts completely or not at all. The kernel stops before a batch for which there is no room.
It refuses a batch with a wrong crc or a record with any error, and the caller then reads that batch
as objects.
"""

from cpython.buffer cimport PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from flexwire.kernels.arrow cimport ArrowArray, Held, hold, release
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
    LONGEST,
    Cursor,
    copy_chunks,
    likely,
    unlikely,
)

cdef enum:
    SPARE = 64
    LONG = 512             # memcpy copies texts that are longer than this
    ROOMY = 4096           # a buffer of this many bytes is kept even if only few of them are used

cdef extern from *:
    """
    #define FIRST_MILLISECOND (-62135596800000LL)
    #define LAST_MILLISECOND 253402300799999LL
    #define NO_MOMENT INT64_MIN
    #define MARGIN 1.2
    """
    const int64_t FIRST_MILLISECOND, LAST_MILLISECOND, NO_MOMENT
    const double MARGIN

# Columns of bytes.
cdef enum:
    KEY, VALUE, HEADER_KEY, HEADER_VALUE

# The buffers of columns. From TEXTS on, there are three for each column of bytes.
cdef enum:
    OFFSET_ROOM, TIMESTAMP_ROOM, HEADER_ROOM, TEXT_ROOMS
    DATA = 0
    ENDS = 1
    VALIDITY = 2
    ROOMS_OF_TEXT = 3
    ROOMS = 15

# The input and the output of reading.
cdef struct Reading:
    Range wanted
    BytesColumn texts[4]   # NULL for columns that are not wanted

crc32c_begin()

# A column of bytes while a batch is read, in local variables so that it stays in registers.
cdef struct Filling:
    uint8_t *data          # NULL if the column is not wanted
    int64_t used
    int32_t *end           # the end of the next row
    int8_t *valid
    int64_t nulls

# The rows of a batch while it is read.
cdef struct Rows:
    Filling keys
    Filling values
    Filling header_keys
    Filling header_values
    int64_t count
    int64_t headers
    int64_t no_moments
    int64_t budget         # the number of record headers that are still allowed
    bint are_all_wanted


cdef inline Filling begun(const BytesColumn *column, int64_t row) noexcept nogil:
    """Return the place for the next text in a column."""
    cdef Filling filling
    filling.data, filling.nulls = column.data, 0
    if column.data != NULL:
        filling.used = column.offsets[row]
        filling.end, filling.valid = column.offsets + row + 1, column.valid + row
    return filling


cdef inline void put_text(Filling *column, const Text *text, bint roomy) noexcept nogil:
    """Put a text into a column's next row if it is wanted. There must be room for it."""
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
    """Return a timestamp in microseconds; NO_MOMENT for -1, and outside of the years 1 to 9999."""
    if likely(FIRST_MILLISECOND <= timestamp <= LAST_MILLISECOND and timestamp != NO_TIMESTAMP):
        return 1000 * timestamp
    return NO_MOMENT


cdef inline Rows begin_rows(const Reading *reading) noexcept nogil:
    """Return the number of rows at the start of a batch, which are those of earlier batches."""
    cdef const Range *wanted = &reading.wanted
    cdef Rows rows
    rows.keys = begun(&reading.texts[KEY], wanted.rows)
    rows.values = begun(&reading.texts[VALUE], wanted.rows)
    rows.header_keys = begun(&reading.texts[HEADER_KEY], wanted.headers)
    rows.header_values = begun(&reading.texts[HEADER_VALUE], wanted.headers)
    rows.count, rows.headers, rows.no_moments = wanted.rows, wanted.headers, 0
    rows.are_all_wanted = wants_all(wanted)
    return rows


cdef inline bint read_row(
    const Reading *reading, const Batch *batch, Cursor *record, Rows *rows, bint roomy
) noexcept nogil:
    """Read a record into the next row if it is wanted; return False if it is refused."""
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
    """Read records up to the first one that ends after ``last``; return False if one is refused."""
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
    """Read the records of a batch, for which there must be room; return False if it is refused."""
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
    # This code is compiled twice. All records except the last ones in the data are roomy.
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
    reading.texts[KEY].nulls += rows.keys.nulls
    reading.texts[VALUE].nulls += rows.values.nulls
    if wanted.header_offsets != NULL:
        wanted.headers = rows.headers
        reading.texts[HEADER_KEY].nulls += rows.header_keys.nulls
        reading.texts[HEADER_VALUE].nulls += rows.header_values.nulls
    return True


cdef inline bint has_room(const BytesColumn *column, int64_t row, int64_t size) noexcept nogil:
    """Return whether a column has room for this many bytes after its last row."""
    return column.data == NULL or size <= column.capacity - column.offsets[row]


cdef bint has_room_for(const Reading *reading, const Batch *batch) noexcept nogil:
    """Return whether every column has room for everything that a batch may contain."""
    cdef const Range *wanted = &reading.wanted
    cdef int64_t size = batch.end - batch.start
    return (
        # A batch that declares more than this is refused.
        min(batch.count, size // LEAST_RECORD) <= wanted.rows_capacity - wanted.rows
        and size // LEAST_HEADER <= wanted.headers_capacity - wanted.headers
        and has_room(&reading.texts[KEY], wanted.rows, size)
        and has_room(&reading.texts[VALUE], wanted.rows, size)
        and has_room(&reading.texts[HEADER_KEY], wanted.headers, size)
        and has_room(&reading.texts[HEADER_VALUE], wanted.headers, size)
    )


cdef Status read_batches(Reading *reading) noexcept nogil:
    """Read batches up to the first one that is refused or for which there is no room."""
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


cdef inline int64_t likely_size(double share, int64_t size, int64_t largest) noexcept nogil:
    """Return how much room to make: the likely size, and one more batch with any content."""
    return min(LONGEST, size, <int64_t> (share * MARGIN * size) + largest)


# Columns for Arrow.

_TEXTS = ("key", "value", "header key", "header value")


cdef inline void *begin_of(room) except NULL:
    """Return the address of bytes or a buffer."""
    if type(room) is bytes:
        return <void *> PyBytes_AS_STRING(room)
    return <void *> <size_t> room.address


cdef inline const void *new_bits(list objects, int64_t count) except NULL:
    """Make room for this many bits in memory that is added to objects."""
    bits = PyBytes_FromStringAndSize(NULL, (count + 7) // 8)
    objects.append(bits)
    return PyBytes_AS_STRING(bits)


cdef inline void pack(uint8_t *bits, const int8_t *flags, int64_t count) noexcept nogil:
    """Write one bit for each flag, starting with the lowest bit of a byte."""
    cdef int64_t number
    memset(bits, 0, (count + 7) // 8)
    for number in range(count):
        bits[number >> 3] |= <uint8_t> ((flags[number] != 0) << (number & 7))


cdef inline void pack_moments(uint8_t *bits, int64_t *moments, int64_t count) noexcept nogil:
    """Write one bit for each timestamp, which is 1 if it is valid; set the others to 0."""
    cdef int64_t number
    memset(bits, 0, (count + 7) // 8)
    for number in range(count):
        if moments[number] == NO_MOMENT:
            moments[number] = 0
        else:
            bits[number >> 3] |= <uint8_t> (1 << (number & 7))


cdef class RecordColumns:
    """The columns of some records, in Arrow buffers that ``allocate`` makes.

    If ``allocate`` is None, the buffers are bytes objects, which are made faster.
    """

    cdef Reading reading
    cdef object allocate
    cdef list rooms

    def __cinit__(self, allocate, columns, limits, bounds, dict shares):
        """Make room for the columns of batches, or at least of one batch.

        ``bounds`` has the largest number of rows in the batches, their bytes, and the bytes of the
        largest batch. ``shares`` says how much of the bytes of earlier batches each column needed.
        """
        cdef Range *wanted = &self.reading.wanted
        cdef int64_t rows, size, largest, headers
        cdef int number
        memset(&self.reading, 0, sizeof(Reading))
        self.allocate, self.rooms = allocate, [None] * ROOMS
        set_limits(wanted, limits)
        rows, size, largest = bounds
        # A record header has at least one byte for the length of its key, and one for the length of
        # its value.
        headers = likely_size(shares["headers"], size, largest) // LEAST_HEADER
        wanted.rows_capacity, wanted.headers_capacity = rows, headers
        if "offset" in columns:
            wanted.offsets = <int64_t *> self.room(OFFSET_ROOM, 8 * rows)
        if "timestamp" in columns:
            wanted.timestamps = <int64_t *> self.room(TIMESTAMP_ROOM, 8 * rows)
        if "headers" in columns:
            wanted.header_offsets = <int32_t *> self.room(HEADER_ROOM, 4 * rows + 4)
        for number in range(HEADER_VALUE + 1):
            if ("headers" if number >= HEADER_KEY else _TEXTS[number]) in columns:
                self.begin(
                    number, headers if number >= HEADER_KEY else rows,
                    likely_size(shares[_TEXTS[number]], size, largest),
                )

    cdef void *room(self, int number, int64_t size) except NULL:
        """Make a buffer that begins with zeros, as offsets do."""
        cdef void *begin
        size = max(size, <int64_t> sizeof(int64_t))
        room = PyBytes_FromStringAndSize(NULL, size) if self.allocate is None else self.allocate(size)
        self.rooms[number] = room
        begin = begin_of(room)
        (<int64_t *> begin)[0] = 0
        return begin

    cdef int begin(self, int text, int64_t rows, int64_t size) except -1:
        """Make room for a column of bytes."""
        cdef BytesColumn *column = &self.reading.texts[text]
        cdef int first = TEXT_ROOMS + ROOMS_OF_TEXT * text
        column.data = <uint8_t *> self.room(first + DATA, size + SPARE)
        column.offsets = <int32_t *> self.room(first + ENDS, 4 * rows + 4)
        column.valid = <int8_t *> self.room(first + VALIDITY, rows)
        column.capacity = size
        return 0

    def read(self, table not None, int64_t first, const uint8_t[::1] data, bint check_crc):
        """Read batches of a table from the first one on; positions are counted from ``data``.

        Returns the row of the batch at which reading stopped, and whether it was refused. If it was
        not, there is no room for it, or the table has ended.
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
        """The number of records so far."""
        return self.reading.wanted.rows

    def shares(self, int64_t size):
        """Return the room that each column needs for this many bytes of batches."""
        cdef double whole = max(size, 1)
        cdef const BytesColumn *column
        cdef int number
        shares = {"headers": LEAST_HEADER * self.reading.wanted.headers / whole}
        for number in range(HEADER_VALUE + 1):
            column = &self.reading.texts[number]
            if column.data != NULL:
                shares[_TEXTS[number]] = column.offsets[self.rows_of(number)] / whole
        return shares

    cdef int64_t rows_of(self, int text):
        """Return how many rows a column of bytes has so far."""
        return self.reading.wanted.headers if text >= HEADER_KEY else self.reading.wanted.rows

    def take_column(self, name, take, kind):
        """Pass a column to Arrow: ``take`` is called with the address of a C array and its type."""
        cdef ArrowArray array
        array.release = NULL
        try:
            self.put(&array, name)
            return take(<size_t> &array, kind)
        finally:
            release(&array)

    def take_batch(self, list columns, take, schema):
        """Pass columns to Arrow as one batch; items that are not names are used unchanged."""
        cdef ArrowArray array
        cdef Held *batch
        cdef Py_ssize_t number
        array.release = NULL
        try:
            batch = hold(&array, self.reading.wanted.rows, len(columns), [])
            for number in range(len(columns)):
                column = columns[number]
                if isinstance(column, str):
                    self.put(&batch.children[number], column)
                else:
                    column._export_to_c(<size_t> &batch.children[number])
            return take(<size_t> &array, schema)
        finally:
            release(&array)

    cdef int put(self, ArrowArray *array, name) except -1:
        """Put a column into a C array."""
        cdef const Range *wanted = &self.reading.wanted
        cdef Held *column
        cdef list objects = []
        if name == "key" or name == "value":
            return self.put_text(array, KEY if name == "key" else VALUE)
        if name == "headers":
            column = hold(array, wanted.rows, 1, objects)
            column.buffers[1] = self.held(objects, HEADER_ROOM, 4 * wanted.rows + 4)
            array.n_buffers, array = 2, column.children
            column = hold(array, wanted.headers, 2, [])
            self.put_text(&column.children[0], HEADER_KEY)
            return self.put_text(&column.children[1], HEADER_VALUE)
        column = hold(array, wanted.rows, 0, objects)
        array.n_buffers = 2
        if name == "offset":
            column.buffers[1] = self.held(objects, OFFSET_ROOM, 8 * wanted.rows)
            return 0
        if wanted.no_moments:
            array.null_count = wanted.no_moments
            column.buffers[0] = new_bits(objects, wanted.rows)
            pack_moments(<uint8_t *> column.buffers[0], wanted.timestamps, wanted.rows)
        column.buffers[1] = self.held(objects, TIMESTAMP_ROOM, 8 * wanted.rows)
        return 0

    cdef int put_text(self, ArrowArray *array, int text) except -1:
        """Put a column of bytes into a C array."""
        cdef const BytesColumn *read = &self.reading.texts[text]
        cdef int64_t rows = self.rows_of(text)
        cdef int first = TEXT_ROOMS + ROOMS_OF_TEXT * text
        cdef list objects = []
        cdef Held *column = hold(array, rows, 0, objects)
        array.n_buffers, array.null_count = 3, read.nulls
        if read.nulls:
            column.buffers[0] = new_bits(objects, rows)
            pack(<uint8_t *> column.buffers[0], read.valid, rows)
        column.buffers[1] = self.held(objects, first + ENDS, 4 * rows + 4)
        column.buffers[2] = self.held(objects, first + DATA, read.offsets[rows])
        return 0

    cdef const void *held(self, list objects, int number, int64_t size) except NULL:
        """Keep the first bytes of a buffer, or a copy of them if most of the buffer is empty."""
        room = self.rooms[number]
        # Otherwise the whole buffer would stay in memory as long as the column.
        if len(room) > 2 * size + ROOMY:
            room = PyBytes_FromStringAndSize(<const char *> begin_of(room), size)
        objects.append(room)
        return begin_of(room)
