"""The attributes of a record batch or message: compression, timestamp type and flags."""

from __future__ import annotations

import enum

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40


class Compression(enum.StrEnum):
    """A compression type, in the order of its number on the wire.

    >>> Compression.SNAPPY == "snappy", list(Compression).index(Compression.ZSTD)
    (True, 4)
    """

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class TimestampType(enum.StrEnum):
    """Who set the timestamps: nobody (magic 0), the producer, or the broker on append."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


COMPRESSIONS = tuple(Compression)
