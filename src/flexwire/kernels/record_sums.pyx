"""Counts and digests the records in batches, without making columns of them.

The input is a table of batches (`batches.pxd`). `RecordSummer` counts records and adds up their
sizes. `BatchDigester` finds for each batch the number of bytes in its keys and values, how many of
these are null, its oldest and newest record, and a hash of each key. A batch counts completely or
not at all. If one of its records is refused, the records before it are read again and subtracted.
The caller then reads the batch as objects.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from flexwire.kernels.batches cimport (
    CONTROL_MASK,
    DONE,
    GROW,
    NO_TIMESTAMP,
    REFUSED,
    Batch,
    Range,
    Record,
    Status,
    Table,
    Text,
    crc32c_begin,
    hold_batches,
    is_intact,
    is_possible,
    is_wanted,
    offset_of,
    set_limits,
    timestamp_of,
    walk_record,
    wants_all,
)
from flexwire.kernels.cursor cimport Cursor, unlikely
from flexwire.kernels.hashing cimport (
    FIRST_MIX,
    MIX_SHIFT,
    SECOND_MIX,
    TAKE,
    last_word,
    mixed,
    taken,
    word_at,
)

cdef enum:
    # the number of places where a sum is searched, so that hostile sizes cannot make the search
    # long
    MOST_PLACES = 32
    HALF_CLASSES = 64      # the number of size classes up to each power of two
    EXACT = 128            # each smaller size is a class of its own
    SIZES = 26 * HALF_CLASSES

# The facts that the records of a sum have in common, and their totals. Sizes are as in a record:
# twice the size, or 1 for null. They are 0 if sums do not distinguish them.
cdef struct Sum:
    int64_t fact
    int64_t key_size
    int64_t value_size
    int64_t records
    int64_t key_bytes
    int64_t value_bytes

# The sums are in an array. An index finds the sum for a record. The index has a power of two of
# numbers, and `mask` is one less than that. Each number is 0, or the number of a sum plus one.
cdef struct Summing:
    Range wanted
    Sum *sums
    int64_t used
    int64_t capacity
    int64_t *index
    int64_t mask
    int64_t by_key         # -1 if the size of the key distinguishes sums, and 0 otherwise
    int64_t by_value

# The totals of the records in a batch. A tombstone has a key and a null value. The timestamps are
# the lowest and the highest one in milliseconds, ignoring -1.
cdef struct Digest:
    int64_t records
    int64_t key_bytes
    int64_t value_bytes
    int64_t null_keys
    int64_t tombstones
    int64_t headers
    int64_t oldest
    int64_t newest

# The key of a record: 128 bits of its hash, the offset of the record, and its size.
cdef struct Key:
    uint64_t first_hash
    uint64_t second_hash
    int64_t offset
    int64_t record_size

cdef struct Digesting:
    Range wanted
    Digest *digests        # one digest for each row of the table
    Key *keys
    int64_t used
    int64_t capacity
    uint64_t seed
    int64_t *sizes         # the number of records in each class of sizes

crc32c_begin()


cdef inline int64_t size_of(const Text *text) noexcept nogil:
    """Return the size of a key or value, which is 0 for null."""
    return text.size if text.size > 0 else 0


cdef inline int64_t wire_size(const Text *text) noexcept nogil:
    """Return the size of a key or value as in a record: twice the size, or 1 for null."""
    return 2 * text.size if text.size >= 0 else 1


# Sums of records.

cdef Sum *find_sum(Summing *summing, int64_t fact, int64_t key, int64_t value) noexcept nogil:
    """Find or create a sum; return NULL if there is no room for it."""
    cdef uint64_t code = (
        (<uint64_t> key * FIRST_MIX ^ <uint64_t> value) * SECOND_MIX ^ <uint64_t> fact * FIRST_MIX
    )
    cdef uint64_t place = code >> 32 ^ code
    cdef int64_t *number
    cdef Sum *total
    cdef int looked
    for looked in range(MOST_PLACES):
        number = &summing.index[(place + <uint64_t> looked) & <uint64_t> summing.mask]
        if number[0] == 0:
            if summing.used == summing.capacity:
                return NULL
            total = &summing.sums[summing.used]
            summing.used += 1
            number[0] = summing.used
            total.fact, total.key_size, total.value_size = fact, key, value
            total.records = total.key_bytes = total.value_bytes = 0
            return total
        total = &summing.sums[number[0] - 1]
        if total.key_size == key and total.value_size == value and total.fact == fact:
            return total
    return NULL


cdef Status add_records(
    Summing *summing, const Batch *batch, int64_t *records, int64_t sign
) noexcept nogil:
    """Add the first ``records`` records of a batch, multiplied by ``sign``, to their sums.

    If this ends early, with REFUSED or GROW, ``records`` becomes the number that were added.
    """
    cdef const Range *wanted = &summing.wanted
    cdef bint are_all_wanted = wants_all(wanted)
    cdef int64_t budget = batch.budget - batch.count
    cdef int64_t number, key, value
    cdef Sum *total = NULL
    cdef Cursor rest
    cdef Record record
    rest.at, rest.end = batch.start, batch.end
    for number in range(records[0]):
        if unlikely(not walk_record(&rest, &budget, &record)):
            records[0] = number
            return REFUSED
        if not are_all_wanted and not is_wanted(
            wanted, offset_of(batch, &record), timestamp_of(batch, &record)
        ):
            continue
        key = wire_size(&record.key) & summing.by_key
        value = wire_size(&record.value) & summing.by_value
        # Most records have the same sum as the record before.
        if total == NULL or key != total.key_size or value != total.value_size:
            total = find_sum(summing, batch.piece, key, value)
            if total == NULL:
                records[0] = number
                return GROW
        total.records += sign
        total.key_bytes += sign * size_of(&record.key)
        total.value_bytes += sign * size_of(&record.value)
    return DONE if rest.at == rest.end else REFUSED


cdef Status sum_batch(Summing *summing, const Batch *batch) noexcept nogil:
    """Count one batch: DONE, or REFUSED or GROW, in which case no part of it is counted."""
    cdef int64_t used = summing.used
    cdef int64_t added = batch.count
    cdef Status status
    if not is_possible(batch):
        return REFUSED
    status = add_records(summing, batch, &added, 1)
    if status != DONE:
        add_records(summing, batch, &added, -1)
        # Growing does not help if even an empty table has no room for this batch.
        if used == 0:
            return REFUSED
    return status


cdef Status sum_batches(Summing *summing) noexcept nogil:
    """Count batches up to the first one that is refused or for which there is no room."""
    cdef Range *wanted = &summing.wanted
    cdef const Batch *batch
    cdef Status status
    while wanted.first < wanted.batches:
        batch = &wanted.table[wanted.first]
        if not batch.is_skipped:
            status = sum_batch(summing, batch) if is_intact(wanted, batch) else REFUSED
            if status != DONE:
                return status
        wanted.first += 1
    return DONE


# Digests of batches.

cdef inline int class_of(int64_t size) noexcept nogil:
    """Return the class of a record's size."""
    cdef int halvings = 0
    while size >= EXACT:
        size >>= 1
        halvings += 1
    return HALF_CLASSES * halvings + <int> size


cdef inline uint64_t taken_otherwise(uint64_t code, uint64_t word) noexcept nogil:
    """Return the second half of a hash after another word, like `taken` with other constants."""
    code = (code ^ word) * FIRST_MIX
    return code ^ code >> MIX_SHIFT


cdef inline void put_key(
    Digesting *digesting, const Text *key, int64_t offset, int64_t record_size
) noexcept nogil:
    """Store the key of a record among the keys. There must be room for it."""
    cdef const uint8_t *at = key.at
    cdef const uint8_t *end = at + key.size
    cdef uint64_t size = <uint64_t> key.size
    cdef uint64_t first = digesting.seed ^ size * TAKE
    cdef uint64_t second = digesting.seed * SECOND_MIX + size
    cdef uint64_t word
    cdef Key *row = &digesting.keys[digesting.used]
    while end - at >= 8:
        word = word_at(at)
        first, second = taken(first, word), taken_otherwise(second, word)
        at += 8
    if at < end:
        word = last_word(at, <int> (end - at))
        first, second = taken(first, word), taken_otherwise(second, word)
    row.first_hash, row.second_hash = mixed(first), mixed(second)
    row.offset, row.record_size = offset, record_size
    digesting.used += 1


cdef inline void clear(Digest *digest) noexcept nogil:
    """Initialize a digest."""
    digest.records = digest.key_bytes = digest.value_bytes = digest.null_keys = 0
    digest.tombstones = digest.headers = 0
    digest.oldest, digest.newest = INT64_MAX, INT64_MIN


cdef inline void add_record(
    Digesting *digesting, Digest *digest, const Batch *batch, const Record *record, int64_t size
) noexcept nogil:
    """Add a record to the digest of its batch, and its key to the keys."""
    cdef int64_t timestamp = timestamp_of(batch, record)
    digest.records += 1
    digest.key_bytes += size_of(&record.key)
    digest.value_bytes += size_of(&record.value)
    digest.headers += record.headers
    if timestamp != NO_TIMESTAMP:
        digest.oldest = min(digest.oldest, timestamp)
        digest.newest = max(digest.newest, timestamp)
    if record.key.size < 0:
        digest.null_keys += 1
    elif not batch.attributes & CONTROL_MASK:
        digest.tombstones += record.value.size < 0
        put_key(digesting, &record.key, offset_of(batch, record), size)


cdef bint add_batch(
    Digesting *digesting, Digest *digest, const Batch *batch, int64_t *records, bint takes_back
) noexcept nogil:
    """Digest the first ``records`` records of a batch; return False if one is refused.

    With ``takes_back``, only the counts of sizes are subtracted.
    """
    cdef const Range *wanted = &digesting.wanted
    cdef bint are_all_wanted = wants_all(wanted)
    cdef int64_t budget = batch.budget - batch.count
    cdef int64_t number, size
    cdef const uint8_t *start
    cdef Cursor rest
    cdef Record record
    rest.at, rest.end = batch.start, batch.end
    for number in range(records[0]):
        start = rest.at
        if unlikely(not walk_record(&rest, &budget, &record)):
            records[0] = number
            return False
        if not are_all_wanted and not is_wanted(
            wanted, offset_of(batch, &record), timestamp_of(batch, &record)
        ):
            continue
        size = rest.at - start
        if not batch.attributes & CONTROL_MASK:
            digesting.sizes[class_of(size)] += -1 if takes_back else 1
        if not takes_back:
            add_record(digesting, digest, batch, &record, size)
    return rest.at == rest.end


cdef Status digest_batch(Digesting *digesting, const Batch *batch, Digest *digest) noexcept nogil:
    """Digest one batch: DONE, or REFUSED or GROW, in which case no part of it is digested."""
    cdef int64_t used = digesting.used
    cdef int64_t added = batch.count
    if not is_possible(batch):
        return REFUSED
    if batch.count > digesting.capacity - used:
        return GROW
    clear(digest)
    if add_batch(digesting, digest, batch, &added, False):
        return DONE
    add_batch(digesting, digest, batch, &added, True)
    digesting.used = used
    return REFUSED


cdef Status digest_batches(Digesting *digesting) noexcept nogil:
    """Digest batches up to the first one that is refused or for which there is no room."""
    cdef Range *wanted = &digesting.wanted
    cdef const Batch *batch
    cdef Status status
    while wanted.first < wanted.batches:
        batch = &wanted.table[wanted.first]
        if not batch.is_skipped:
            status = REFUSED
            if is_intact(wanted, batch):
                status = digest_batch(digesting, batch, &digesting.digests[wanted.first])
            if status != DONE:
                return status
        wanted.first += 1
    return DONE


# The classes for Python.

cdef class RecordSummer:
    """Counts records in sums, which are `flexwire.columnar.record_sums.SUM` for NumPy."""

    cdef Summing run
    cdef Py_buffer sums
    cdef Py_buffer index
    cdef bint is_held
    cdef bint check_crc

    def __cinit__(self, sums not None, index not None, bint by_key, bint by_value):
        """Use this memory for the sums and for their index, which has a power of two of int64."""
        memset(&self.run, 0, sizeof(Summing))
        PyObject_GetBuffer(sums, &self.sums, PyBUF_WRITABLE)
        try:
            PyObject_GetBuffer(index, &self.index, PyBUF_WRITABLE)
        except BaseException:
            PyBuffer_Release(&self.sums)
            raise
        self.is_held = True
        self.run.sums, self.run.index = <Sum *> self.sums.buf, <int64_t *> self.index.buf
        self.run.capacity = self.sums.len // <Py_ssize_t> sizeof(Sum)
        self.run.mask = self.index.len // <Py_ssize_t> sizeof(int64_t) - 1
        self.run.by_key, self.run.by_value = -<int64_t> by_key, -<int64_t> by_value
        if self.run.mask & (self.run.mask + 1) or self.run.mask < self.run.capacity:
            raise ValueError("the index is no power of two, or has no room for all sums")

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.sums)
            PyBuffer_Release(&self.index)

    def want(self, limits, bint check_crc):
        """Set which records are counted: from the lowest to the highest offset and timestamp."""
        set_limits(&self.run.wanted, limits)
        self.run.wanted.check_crc = check_crc

    def read(self, table not None, int64_t first, const uint8_t[::1] data):
        """Count batches of a table from the first one on; see `RecordColumns.read`."""
        cdef Table batches
        cdef Status status
        hold_batches(&self.run.wanted, &batches, table, first, data)
        with nogil:
            status = sum_batches(&self.run)
        PyBuffer_Release(&batches.view)
        return self.run.wanted.first, status == REFUSED

    @property
    def used(self):
        """The number of sums."""
        return self.run.used

    def clear(self):
        """Start again without sums."""
        memset(self.index.buf, 0, self.index.len)
        self.run.used = 0


cdef class BatchDigester:
    """Digests batches, each into its row of an array of `flexwire.columnar.batch_digests.DIGEST`.

    ``sizes`` has the number of records in each of the `SIZES` classes of sizes, as int64.
    """

    cdef Digesting run
    cdef Py_buffer sizes
    cdef Py_buffer keys
    cdef bint has_sizes
    cdef bint has_keys

    def __cinit__(self, sizes not None, uint64_t seed):
        memset(&self.run, 0, sizeof(Digesting))
        PyObject_GetBuffer(sizes, &self.sizes, PyBUF_WRITABLE)
        self.has_sizes = True
        if self.sizes.len < SIZES * <Py_ssize_t> sizeof(int64_t):
            raise ValueError("fewer than SIZES classes")
        self.run.sizes, self.run.seed = <int64_t *> self.sizes.buf, seed

    def __dealloc__(self):
        if self.has_sizes:
            PyBuffer_Release(&self.sizes)
        if self.has_keys:
            PyBuffer_Release(&self.keys)

    def want(self, limits, bint check_crc):
        """Set which records are digested: from the lowest to the highest offset and timestamp."""
        set_limits(&self.run.wanted, limits)
        self.run.wanted.check_crc = check_crc

    def take_keys(self, keys not None):
        """From now on, store keys in an array of `KEYS_DTYPE`, starting at its beginning."""
        if self.has_keys:
            self.has_keys = False
            PyBuffer_Release(&self.keys)
        self.run.used = self.run.capacity = 0
        PyObject_GetBuffer(keys, &self.keys, PyBUF_WRITABLE)
        self.has_keys = True
        self.run.keys = <Key *> self.keys.buf
        self.run.capacity = self.keys.len // <Py_ssize_t> sizeof(Key)

    def read(self, table not None, int64_t first, const uint8_t[::1] data, digests not None):
        """Digest batches of a table from the first one on; see `RecordColumns.read`."""
        cdef Table batches
        cdef Py_buffer rows
        cdef Status status
        hold_batches(&self.run.wanted, &batches, table, first, data)
        try:
            PyObject_GetBuffer(digests, &rows, PyBUF_WRITABLE)
            try:
                if rows.len < batches.count * <Py_ssize_t> sizeof(Digest):
                    raise ValueError("fewer digests than batches")
                self.run.digests = <Digest *> rows.buf
                with nogil:
                    status = digest_batches(&self.run)
            finally:
                PyBuffer_Release(&rows)
        finally:
            PyBuffer_Release(&batches.view)
        return self.run.wanted.first, status == REFUSED

    @property
    def used(self):
        """The number of keys, which may be set to a lower number."""
        return self.run.used

    @used.setter
    def used(self, int64_t used):
        if not 0 <= used <= self.run.used:
            raise ValueError("more keys than there are")
        self.run.used = used

    @property
    def capacity(self):
        """The number of keys for which there is room."""
        return self.run.capacity
