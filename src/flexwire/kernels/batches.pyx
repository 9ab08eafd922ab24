"""Finds record batches of magic 2 in bytes, and answers questions about a table of them.

The input is bytes and a table, which is an array of `flexwire.columnar.batch_table.BATCH`. `scan`
fills a row for each batch in one range of bytes, and `scan_pieces` does it for many ranges. `skip`,
`group`, `bounds` and `bound_inflated` then read the table. Bytes that should be a batch, but are
not a complete valid batch of magic 2, are refused: `scan` stops before them, and `scan_pieces`
gives them a row of their own.
"""

from cpython.buffer cimport PyBuffer_Release
from libc.stdint cimport int64_t, uint8_t, uint32_t

from flexwire.kernels.cursor cimport load_int16, load_int32, load_int64, load_uint32

crc32c_begin()

cdef enum:
    COUNT_REFUSED = -1     # reading refuses a batch with this many records
    MAGIC_AT = 16          # the offset of the magic in batches and messages of every magic
    # the size of the smallest message of magic 0, including its offset and size
    LEAST_MESSAGE = 26
    LEAST_MESSAGE_1 = 34   # the same for magic 1, which also has a timestamp

    # For lz4 and zstd frames. Their magic is in the order of the bytes, which is big-endian.
    LZ4 = 3
    LZ4_MAGIC = 0x04224D18
    LZ4_VERSION_MASK = 0xC0
    LZ4_VERSION = 0x40
    LZ4_BLOCK_CHECKSUM = 0x10
    LZ4_CONTENT_SIZE = 0x08
    LZ4_CONTENT_CHECKSUM = 0x04
    LZ4_DICTIONARY = 0x01
    LZ4_SIZE_SHIFT = 4
    LZ4_LEAST_SIZE = 4
    LZ4_MOST_SIZE = 7
    LZ4_LENGTH_MASK = 0x7FFFFFFF
    LZ4_MOST_RATIO = 255
    ZSTD_MAGIC = 0x28B52FFD
    ZSTD_BLOCK_SIZE = 1 << 17
    ZSTD_RLE = 1
    ZSTD_COMPRESSED = 2
    ZSTD_RESERVED = 3
    CONTENT_CHECKSUM = 4   # in the descriptor of a frame

cdef enum Ending:
    FULL, AT_END, OTHER

# A range of bytes with batches, and the table for these.
cdef struct Scan:
    const uint8_t *data
    int64_t position
    int64_t end
    Batch *table
    int64_t capacity
    int64_t count

# Several ranges of bytes. No batch continues from one range into the next one.
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


cdef inline void put_batch(Batch *batch, const uint8_t *at, int64_t position) noexcept nogil:
    """Put the fields of a valid header into a row of the table."""
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
    """Put the batches from the position on into the table, and advance the position."""
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
    """Return how many bytes `flexwire.records.decode` would read here.

    These are the bytes of one batch or message, if its length is possible and it is complete.
    Otherwise they are all remaining bytes.
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
    """Put a batch that kernels must not read into a row of the table."""
    batch.position = position
    batch.size = size
    batch.attributes = 0
    batch.count = COUNT_REFUSED
    batch.start = at
    batch.end = at + size


cdef inline bint put_piece_batch(
    Batch *batch, const uint8_t *at, int64_t position, int64_t remaining
) noexcept nogil:
    """Put the batch that begins here into a row; return False if kernels must not read it."""
    if is_sound(at, remaining) and load_int32((<const BatchHeader *> at).record_count) != 0:
        put_batch(batch, at, position)
        return True
    put_refused(batch, at, position, extent(at, remaining))
    return False


cdef Ending scan_all_pieces(PiecesScan *scan) noexcept nogil:
    """Put all batches of all pieces into the table, starting at the position in the current piece.

    Bytes that are not a complete valid batch with records get a row too, which says that they are
    refused.
    """
    cdef Batch *batch
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


# The functions for Python.

def scan(const uint8_t[::1] data, int64_t position, table not None):
    """Find the batches in data, starting at a position.

    Returns the number of batches in the table, the position after them, and whether the bytes there
    are not for kernels. If this is false, either the data or the table ends there.
    """
    cdef Scan run
    cdef Table batches
    cdef Ending ending = AT_END
    cdef int64_t row
    if data.shape[0] == 0:
        return 0, position, False
    hold_table(&batches, table)
    try:
        run.data, run.position, run.end = &data[0], position, data.shape[0]
        run.table, run.capacity, run.count = batches.rows, batches.count, 0
        with nogil:
            ending = scan_batches(&run)
            for row in range(run.count):
                batches.rows[row].is_skipped = batches.rows[row].rows = 0
        return run.count, run.position, ending == OTHER
    finally:
        PyBuffer_Release(&batches.view)


def scan_pieces(
    const uint8_t[::1] data,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    int64_t piece,
    int64_t position,
    table not None,
):
    """Find the batches in pieces of data, starting at a position in one of the pieces.

    Returns the number of batches in the table, and the piece and the position in it after them.
    """
    cdef PiecesScan run
    cdef Table batches
    hold_table(&batches, table)
    try:
        run.data, run.starts, run.ends = &data[0], &starts[0], &ends[0]
        run.pieces, run.piece, run.position = starts.shape[0], piece, position
        run.table, run.capacity, run.count = batches.rows, batches.count, 0
        with nogil:
            scan_all_pieces(&run)
        return run.count, run.piece, run.position
    finally:
        PyBuffer_Release(&batches.view)


def skip(table not None, int64_t lowest, int64_t highest, int64_t earliest):
    """Mark the batches without offsets from lowest to highest, or without times from earliest on.

    The base timestamp is that of the first record. It need not be the lowest, so it is not used.
    """
    cdef Table batches
    cdef Batch *batch
    cdef int64_t row
    hold_table(&batches, table)
    with nogil:
        for row in range(batches.count):
            batch = &batches.rows[row]
            batch.is_skipped = (
                batch.base_offset > highest
                or batch.base_offset + batch.last_offset_delta < lowest
                or batch.max_timestamp < earliest
            )
    PyBuffer_Release(&batches.view)


def group(table not None, int64_t enough):
    """Allow each batch as many records as it has bytes, and count the first group of a table.

    Returns how many batches have ``enough`` bytes together (or all of them), and whether any of
    these is compressed.
    """
    cdef Table batches
    cdef int64_t row = 0, size = 0
    cdef bint is_compressed = False
    hold_table(&batches, table)
    with nogil:
        while row < batches.count and (row == 0 or size < enough):
            batches.rows[row].budget = batches.rows[row].size
            size += batches.rows[row].size
            is_compressed |= (batches.rows[row].attributes & COMPRESSION_MASK) != 0
            row += 1
    PyBuffer_Release(&batches.view)
    return row, is_compressed


def bounds(table not None):
    """Return the most records of the wanted batches, their bytes, and the largest size."""
    cdef Table batches
    cdef int64_t row, size, rows = 0, total = 0, largest = 0
    hold_table(&batches, table)
    with nogil:
        for row in range(batches.count):
            if not batches.rows[row].is_skipped:
                size = batches.rows[row].end - batches.rows[row].start
                rows += min(max(batches.rows[row].count, 0), size // LEAST_RECORD)
                total += size
                largest = max(largest, size)
    PyBuffer_Release(&batches.view)
    return rows, total, largest


def crcs(const uint8_t[::1] data):
    """Return the crc of data, computed by each method of this processor, the fastest last."""
    cdef uint32_t[3] values
    cdef const uint8_t *at = &data[0] if data.shape[0] else NULL
    cdef int count = crc32c_each_way(at, at + data.shape[0], values)
    return [values[way] for way in range(count)]


# The largest inflated size of lz4 and zstd batches, as in `flexwire.records.compression`.

cdef inline int64_t load_little(const uint8_t *at) noexcept nogil:
    """Return a number of four bytes in little-endian order."""
    return at[0] | at[1] << 8 | at[2] << 16 | <int64_t> at[3] << 24


cdef int64_t bound_lz4(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return a size that inflated lz4 frames cannot exceed, or -1 if they are refused."""
    cdef int64_t bound = 0
    cdef int64_t block, size, stored
    cdef int flags, code, after
    while at < end:
        if end - at < 7 or load_uint32(at) != LZ4_MAGIC:
            return -1
        flags, code = at[4], at[5] >> LZ4_SIZE_SHIFT & LZ4_MOST_SIZE
        if flags & LZ4_VERSION_MASK != LZ4_VERSION or flags & LZ4_DICTIONARY:
            return -1
        if code < LZ4_LEAST_SIZE:
            return -1
        block = <int64_t> 1 << (8 + 2 * code)
        after = 4 if flags & LZ4_BLOCK_CHECKSUM else 0
        at += 15 if flags & LZ4_CONTENT_SIZE else 7
        while True:
            if end - at < 4:
                return -1
            size = load_little(at)
            if size == 0:
                break
            stored = size & LZ4_LENGTH_MASK
            bound += stored if size != stored else min(block, stored * LZ4_MOST_RATIO)
            at += 4 + stored + after
        at += 8 if flags & LZ4_CONTENT_CHECKSUM else 4
    return bound


cdef inline int64_t header_size_of(int descriptor) noexcept nogil:
    """Return the size of a frame header with its magic, from the byte after the magic."""
    cdef int is_single = descriptor >> 5 & 1
    cdef int content_size = descriptor >> 6
    cdef int dictionary_id = descriptor & 3
    cdef int64_t size = 6 - is_single + (1 << content_size if content_size else is_single)
    return size + (4 if dictionary_id == 3 else dictionary_id)


cdef int64_t bound_zstd(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return a size that inflated zstd frames cannot exceed, or -1 if they are refused."""
    cdef int64_t bound = 0
    cdef int64_t size
    cdef int descriptor, kind
    cdef bint is_last
    while at < end:
        if end - at < 5 or load_uint32(at) != ZSTD_MAGIC:
            return -1
        descriptor = at[4]
        at += header_size_of(descriptor)
        is_last = False
        while not is_last:
            if end - at < 3:
                return -1
            is_last, kind = at[0] & 1, at[0] >> 1 & 3
            size = (at[0] | at[1] << 8 | at[2] << 16) >> 3
            if kind == ZSTD_RESERVED:
                return -1
            at += 3 + (1 if kind == ZSTD_RLE else size)
            bound += ZSTD_BLOCK_SIZE if kind == ZSTD_COMPRESSED else size
        if descriptor & CONTENT_CHECKSUM:
            at += 4
    return bound


def bound_inflated(table, int64_t[::1] bounds):
    """Put the limit of each lz4 and zstd batch into its row of the table, or -1 if it is refused.

    The limits of other batches, and of batches that are skipped, do not change.
    """
    cdef Table batches
    cdef Batch *batch
    cdef int64_t row
    hold_table(&batches, table)
    for row in range(batches.count):
        batch = &batches.rows[row]
        if batch.is_skipped:
            continue
        if batch.attributes & COMPRESSION_MASK == ZSTD:
            bounds[row] = bound_zstd(batch.start, batch.end)
        elif batch.attributes & COMPRESSION_MASK == LZ4:
            bounds[row] = bound_lz4(batch.start, batch.end)
    PyBuffer_Release(&batches.view)
