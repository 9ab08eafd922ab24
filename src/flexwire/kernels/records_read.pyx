# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds record batches of magic 2 and reads their records into columns.

Before a batch is begun every column has room for all its bytes, so that nothing has to be asked
within it. A batch counts as a whole or not at all.
"""

from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from flexwire.kernels.batches cimport (
    COMPRESSION_MASK,
    DONE,
    GROW,
    LEAST_HEADER,
    LEAST_RECORD,
    LENGTH_END,
    MAGIC,
    NO_TIMESTAMP,
    REFUSED,
    ZSTD,
    Batch,
    BatchHeader,
    BytesColumn,
    Range,
    Record,
    Status,
    Text,
    begin_record,
    crc32c_begin,
    is_intact,
    is_possible,
    is_wanted,
    offset_of,
    pass_headers,
    read_record,
    read_text,
    timestamp_of,
    wants_all,
)
from flexwire.kernels.cursor cimport (
    Cursor,
    copy_chunks,
    likely,
    load_int16,
    load_int32,
    load_int64,
    load_uint32,
    unlikely,
)

cdef enum:
    SPARE = 64
    LONG = 512             # a longer text is copied by the system
    COUNT_REFUSED = -1     # reading refuses a batch of so many records
    MAGIC_AT = 16          # in batches and messages of every magic
    LEAST_MESSAGE = 26     # the smallest message of magic 0, with its offset and size
    LEAST_MESSAGE_1 = 34   # of magic 1, which has a timestamp too

cdef extern from *:
    """
    #define FIRST_MILLISECOND (-62135596800000LL)
    #define LAST_MILLISECOND 253402300799999LL
    #define NO_MOMENT INT64_MIN
    """
    const int64_t FIRST_MILLISECOND, LAST_MILLISECOND, NO_MOMENT

cdef enum Ending:
    FULL, AT_END, OTHER

# One run of bytes with batches, and the table that they go into.
cdef struct Scan:
    const uint8_t *data
    int64_t position
    int64_t end
    Batch *table
    int64_t capacity
    int64_t count
    int64_t checks_crc

# Many runs of bytes, none of whose batches runs over into the next.
cdef struct PiecesScan:
    const uint8_t *data
    int64_t pieces
    const int64_t *starts
    const int64_t *ends
    int64_t piece
    int64_t position
    Batch *table
    int64_t capacity
    int64_t count
    int64_t checks_crc

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


# Finding batches.

cdef inline bint is_sound(const uint8_t *at, int64_t remaining) noexcept nogil:
    """Return whether what begins here is a whole batch of magic 2 whose header no one refuses."""
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


cdef inline void put_batch(Batch *batch, const uint8_t *at, int64_t position) noexcept nogil:
    """Put what a sound header says into a row of the table."""
    cdef const BatchHeader *header = <const BatchHeader *> at
    batch.position = position
    batch.size = <int64_t> load_int32(header.batch_length) + LENGTH_END
    batch.base_offset = load_int64(header.base_offset)
    batch.partition_leader_epoch = load_int32(header.partition_leader_epoch)
    batch.crc = load_uint32(header.crc)
    batch.attributes = load_int16(header.attributes)
    batch.last_offset_delta = load_int32(header.last_offset_delta)
    batch.base_timestamp = load_int64(header.base_timestamp)
    batch.max_timestamp = load_int64(header.max_timestamp)
    batch.producer_id = load_int64(header.producer_id)
    batch.producer_epoch = load_int16(header.producer_epoch)
    batch.base_sequence = load_int32(header.base_sequence)
    batch.count = load_int32(header.record_count)
    batch.start = at + sizeof(BatchHeader)
    batch.end = at + batch.size


cdef Ending scan_batches(Scan *scan) noexcept nogil:
    """Put the batches into the table, from the position on, and move that on."""
    scan.checks_crc = True
    while scan.position != scan.end:
        if scan.count == scan.capacity:
            return FULL
        if not is_sound(scan.data + scan.position, scan.end - scan.position):
            return OTHER
        put_batch(&scan.table[scan.count], scan.data + scan.position, scan.position)
        scan.position += scan.table[scan.count].size
        scan.count += 1
    return AT_END


cdef inline int64_t extent(const uint8_t *at, int64_t remaining) noexcept nogil:
    """Return how many bytes `flexwire.records.decode` is done with after what begins here.

    Those of one batch or message, if its length can be one and it is whole; else all that remain.
    """
    cdef const BatchHeader *header = <const BatchHeader *> at
    cdef int64_t size
    cdef int64_t[3] least = [LEAST_MESSAGE, LEAST_MESSAGE_1, sizeof(BatchHeader)]
    if remaining > MAGIC_AT and header.magic <= MAGIC:
        size = <int64_t> load_int32(header.batch_length) + LENGTH_END
        if least[header.magic] <= size <= remaining:
            return size
    return remaining


cdef inline void put_refused(
    Batch *batch, const uint8_t *at, int64_t position, int64_t size
) noexcept nogil:
    """Put what is not for the kernels into a row of the table: it is not to be read."""
    batch.position = position
    batch.size = size
    batch.attributes = 0
    batch.count = COUNT_REFUSED
    batch.start = at
    batch.end = at + size


cdef inline bint put_piece_batch(
    Batch *batch, const uint8_t *at, int64_t position, int64_t remaining
) noexcept nogil:
    """Put what begins here into a row of the table; False where it is not to be read."""
    if is_sound(at, remaining) and load_int32((<const BatchHeader *> at).record_count) != 0:
        put_batch(batch, at, position)
        return True
    put_refused(batch, at, position, extent(at, remaining))
    return False


cdef Ending scan_all_pieces(PiecesScan *scan) noexcept nogil:
    """Put all batches of all pieces into the table, from the position in the piece on.

    What is not a whole sound batch with records has a row too, which is refused and to be skipped.
    """
    cdef Batch *batch
    scan.checks_crc = True
    while scan.piece < scan.pieces:
        while scan.position < scan.ends[scan.piece]:
            if scan.count == scan.capacity:
                return FULL
            batch = &scan.table[scan.count]
            batch.is_skipped = not put_piece_batch(
                batch, scan.data + scan.position, scan.position, scan.ends[scan.piece] - scan.position
            )
            batch.rows = 0
            batch.piece = scan.piece
            scan.position += batch.size
            scan.count += 1
        scan.piece += 1
        if scan.piece < scan.pieces:
            scan.position = scan.starts[scan.piece]
    return AT_END


# Putting it into columns.

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
    cdef Record found
    cdef int64_t offset, timestamp
    if unlikely(not read_record(record, &found, roomy) or found.headers > rows.budget):
        return False
    rows.budget -= found.headers
    offset, timestamp = offset_of(batch, &found), timestamp_of(batch, &found)
    if unlikely(not rows.are_all_wanted and not is_wanted(wanted, offset, timestamp)):
        return pass_headers(record, found.headers)
    if unlikely(not read_headers(record, found.headers, rows, roomy) or record.at != record.end):
        return False
    rows.headers += found.headers
    if wanted.offsets != NULL:
        wanted.offsets[rows.count] = offset
    if wanted.timestamps != NULL:
        wanted.timestamps[rows.count] = moment_of(timestamp)
        rows.no_moments += moment_of(timestamp) == NO_MOMENT
    put_text(&rows.keys, &found.key, roomy)
    put_text(&rows.values, &found.value, roomy)
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


# For Python: over words that NumPy holds, as `flexwire.columnar` lays them out.

def scan(size_t words):
    """Find the next batches of a `Scan`; return how it ended: FULL, AT_END or OTHER."""
    cdef Ending ending
    with nogil:
        ending = scan_batches(<Scan *> words)
    return <int> ending


def scan_pieces(size_t words):
    """Find the next batches of a `PiecesScan`; return how it ended: FULL or AT_END."""
    cdef Ending ending
    with nogil:
        ending = scan_all_pieces(<PiecesScan *> words)
    return <int> ending


def read(size_t words):
    """Read batches of a `Reading` into columns; return how it ended: DONE, GROW or REFUSED."""
    cdef Status status
    with nogil:
        status = read_batches(<Reading *> words)
    return <int> status
