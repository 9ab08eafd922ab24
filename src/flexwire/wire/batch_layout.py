"""The places of the fields that precede the records of a batch, or the key of a message.

Each field is defined once, with its width. Structs, offsets and sizes follow from these widths, for
Python and for kernels. The source is Kafka's documentation, "Record Batch" and "Old Message
Format".

This module also computes the crc of a batch. Kernels compute crcs themselves, and everything else
calls google-crc32c. On a platform without a wheel (musl, Python without a GIL), google-crc32c
installs a slow Python version, which prints a warning. With kernels the warning would be wrong, and
without kernels flexwire prints its own warning.
"""

from __future__ import annotations

import struct
import warnings
from itertools import accumulate
from typing import Final

with warnings.catch_warnings():
    warnings.simplefilter("ignore", RuntimeWarning)
    import google_crc32c

HEADER_FIELDS: Final = {
    "base_offset": "q",
    "batch_length": "i",
    "partition_leader_epoch": "i",
    "magic": "B",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp": "q",
    "max_timestamp": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "record_count": "i",
}
"""The header of a record batch (magic 2): its fields in order, with their codes for `struct`."""

HEADER: Final = struct.Struct(">" + "".join(HEADER_FIELDS.values()))
HEADER_SIZE: Final = HEADER.size
_ENDS: Final = tuple(accumulate(struct.calcsize(f">{code}") for code in HEADER_FIELDS.values()))
(
    BASE_OFFSET_AT,
    BATCH_LENGTH_AT,
    PARTITION_LEADER_EPOCH_AT,
    MAGIC_AT,
    CRC_AT,
    ATTRIBUTES_AT,
    LAST_OFFSET_DELTA_AT,
    BASE_TIMESTAMP_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_ID_AT,
    PRODUCER_EPOCH_AT,
    BASE_SEQUENCE_AT,
    RECORD_COUNT_AT,
) = (0, *_ENDS[:-1])
# The crc covers all bytes after it.
CRC_START: Final = ATTRIBUTES_AT

# In magic 0 and 1, an entry in a message set begins with its offset and the size of the rest, like
# a record batch.
ENTRY: Final = struct.Struct(">qi")
LENGTH_END: Final = PARTITION_LEADER_EPOCH_AT
# The offset, size, crc, magic and attributes and, in magic 1, the timestamp.
PREFIXES: Final = (struct.Struct(">qiIBB"), struct.Struct(">qiIBBq"))
# The magic and the size are in the same places in every format. The crc of a message covers the
# magic and all bytes after it.
MESSAGE_CRC_START: Final = MAGIC_AT
CRC_SIZE: Final = ATTRIBUTES_AT - CRC_AT

RECORD_BATCH: Final = 2
"""The magic of record batches."""
MESSAGE_SETS: Final = (0, 1)
"""The magics of the messages in message sets."""
# After these fields, a message has two lengths: the length of the key and the length of the value.
LEAST_SIZES: Final = (*(prefix.size + 2 * 4 for prefix in PREFIXES), HEADER_SIZE)
"""The size of the smallest batch of each magic."""
NO_VALUE: Final = -1
"""The value that means a missing timestamp, producer id or epoch."""

# The bits in the attributes of a batch or message.
COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_MASK: Final = 0x08
TRANSACTIONAL_MASK: Final = 0x10
CONTROL_MASK: Final = 0x20
DELETE_HORIZON_MASK: Final = 0x40
# The compression types, in the order of their numbers.
NO_COMPRESSION, GZIP, SNAPPY, LZ4, ZSTD = range(5)

LEAST_RECORD: Final = 7
"""The size of the smallest record: a length, attributes, two deltas, two lengths, and a count."""
LEAST_RECORD_HEADER: Final = 2
"""The size of the smallest record header: the lengths of its key and its value."""


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the crc-32c of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    return int(google_crc32c.value(data))


def extend_crc32c(crc: int, data: bytes | bytearray | memoryview) -> int:
    """Return the crc-32c of earlier and new bytes together, given the crc of the earlier bytes.

    >>> extend_crc32c(crc32c(b"12345"), b"6789") == crc32c(b"123456789")
    True
    """
    return int(google_crc32c.extend(crc, data))
