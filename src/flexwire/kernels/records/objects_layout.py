"""The words that every call of a function for records shares, and those of one call.

All are offsets in bytes. A kernel file takes them as constants, so a change here is a change of the
kernels.
"""

from __future__ import annotations

from flexwire.kernels.objects.layout import C_GLOBALS
from flexwire.kernels.objects.layout import CALL as _BEFORE

# What objects are made of and compared with; then where the fields of a record stand in it.
R_NONE, R_BYTES, R_INT, R_LIST, R_TUPLE, R_CLASS, R_FALLBACK, R_EXCEPTION = range(0, 64, 8)
R_OFFSET, R_TIMESTAMP, R_KEY, R_VALUE, R_HEADERS = range(64, 104, 8)
SHARED = 104
# For functions that take or give whole batches, what these are made of, and where their fields are.
R_TRUE, R_FALSE, R_BATCH = range(SHARED, SHARED + 24, 8)
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
FIELDS = SHARED + 24
BATCH_SHARED = FIELDS + 8 * len(BATCH_FIELDS)
F_POSITION, F_DATA, F_BASE_OFFSET, F_LAST_OFFSET, F_LENGTH, F_MAGIC, F_CRC = range(
    FIELDS, FIELDS + 56, 8
)
F_ATTRIBUTES, F_MAX_TIMESTAMP, F_BASE_TIMESTAMP, F_EPOCH, F_LAST_DELTA, F_PRODUCER = range(
    FIELDS + 56, FIELDS + 104, 8
)
F_PRODUCER_EPOCH, F_SEQUENCE, F_COUNT, F_CHECK_CRC, F_MAX_INFLATED, F_RECORDS = range(
    FIELDS + 104, BATCH_SHARED, 8
)
# The words of one call begin as those for messages do, and so share what writes bytes.
C_SHARED = C_GLOBALS
C_BASE_OFFSET, C_BASE_TIMESTAMP, C_NUMBER = range(_BEFORE, _BEFORE + 24, 8)
# How many records there are, how many objects may be made of them, and the timestamp that all get,
# an object or 0.
C_COUNT, C_BUDGET, C_APPEND_TIME = range(_BEFORE + 24, _BEFORE + 48, 8)
# The headers of the record before, a list or 0; and the newest timestamp that was written.
C_HEADERS, C_NEWEST = _BEFORE + 48, _BEFORE + 56
# The data that batches are read from, its address, and what they are told of it, all objects.
C_DATA, C_BEGIN, C_CHECK_CRC, C_MAX_INFLATED = range(_BEFORE + 64, _BEFORE + 96, 8)
# What the header of a batch that is written has besides.
C_LAST, C_ATTRIBUTES, C_EPOCH, C_PRODUCER, C_PRODUCER_EPOCH, C_SEQUENCE = range(
    _BEFORE + 96, _BEFORE + 144, 8
)
CALL = _BEFORE + 144
