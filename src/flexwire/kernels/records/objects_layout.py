"""The words that every call of a function for records shares, and those of one call.

All are offsets in bytes. A kernel file takes them as constants, so a change here is a change of the
kernels.
"""

from __future__ import annotations

from flexwire.kernels.objects.layout import C_GLOBALS, G_COUNTED, G_SMALL
from flexwire.kernels.objects.layout import CALL as _BEFORE

# What objects are made of and compared with; then where the fields of a record stand in it.
R_NONE, R_BYTES, R_INT, R_LIST, R_TUPLE, R_CLASS, R_FALLBACK, R_EXCEPTION = range(0, 64, 8)
R_OFFSET, R_TIMESTAMP, R_KEY, R_VALUE, R_HEADERS = range(64, 104, 8)
# Where a tuple has its items; and as for messages, of what there is as long as the interpreter.
R_TUPLE_ITEMS, R_TRUE, R_FALSE = range(104, 128, 8)
R_COUNTED, R_SMALL = G_COUNTED, G_SMALL
# The keys of record headers that were made last, by their places: mostly those to be made next.
R_KEYS = 144
KEYS, LONGEST_KEY = 16, 64
SHARED = R_KEYS + 8 * KEYS
# For functions that take or give whole batches, what these are made of, and where their fields are.
R_BATCH = SHARED
BATCH_FIELDS = (
    "position",
    "data",
    "base_offset",
    "last_offset",
    "batch_length",
    "magic",
    "crc",
    "attributes",
    "max_timestamp",
    "base_timestamp",
    "partition_leader_epoch",
    "last_offset_delta",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
    "check_crc",
    "max_inflated",
    "_records",
)
FIELDS = SHARED + 8
# The class of iterators over batches, and what the calls of these share.
R_ITERATOR, R_NEXT = range(FIELDS + 8 * len(BATCH_FIELDS), FIELDS + 8 * len(BATCH_FIELDS) + 16, 8)
BATCH_SHARED = R_NEXT + 8
F_POSITION, F_DATA, F_BASE_OFFSET, F_LAST_OFFSET, F_LENGTH, F_MAGIC, F_CRC = range(
    FIELDS, FIELDS + 56, 8
)
F_ATTRIBUTES, F_MAX_TIMESTAMP, F_BASE_TIMESTAMP, F_EPOCH, F_LAST_DELTA, F_PRODUCER = range(
    FIELDS + 56, FIELDS + 104, 8
)
F_PRODUCER_EPOCH, F_SEQUENCE, F_COUNT, F_CHECK_CRC, F_MAX_INFLATED, F_RECORDS = range(
    FIELDS + 104, R_ITERATOR, 8
)
# The words of one call begin as those for messages do, and so share what writes bytes.
C_SHARED = C_GLOBALS
C_BASE_OFFSET, C_BASE_TIMESTAMP, C_NUMBER = range(_BEFORE, _BEFORE + 24, 8)
# How many records there are, how many objects may be made of them, and the timestamp that all get,
# an object or 0.
C_COUNT, C_BUDGET, C_APPEND_TIME = range(_BEFORE + 24, _BEFORE + 48, 8)
# The newest timestamp that was written.
C_NEWEST = _BEFORE + 48
# The data that batches are read from, its address, and what they are told of it, all objects.
C_DATA, C_BEGIN, C_CHECK_CRC, C_MAX_INFLATED = range(_BEFORE + 56, _BEFORE + 88, 8)
# What the header of a batch that is written has besides.
C_LAST, C_ATTRIBUTES, C_EPOCH, C_PRODUCER, C_PRODUCER_EPOCH, C_SEQUENCE = range(
    _BEFORE + 88, _BEFORE + 136, 8
)
# The base offset and base timestamp as objects, 0 where there are none.
C_OFFSET_OBJECT, C_TIMESTAMP_OBJECT = _BEFORE + 136, _BEFORE + 144
CALL = _BEFORE + 152
# An iterator over batches: what its calls share, what it reads, the batches that were read ahead
# with how many of them were given and there were, where the next one starts, and how the data ends.
I_SHARED, I_DATA, I_CHECK_CRC, I_MAX_INFLATED, I_ITEMS, I_AT, I_COUNT = range(16, 72, 8)
I_POSITION, I_PARTIAL = 72, 80
ITERATOR = 88
