"""The attributes of a record batch or message: compression, timestamp type and flags."""

from __future__ import annotations

import enum

from flexwire.errors import EncodeError, short
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    MESSAGE_SETS,
    RECORD_BATCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    ZSTD,
)

_FLAGS = {
    "is_transactional": TRANSACTIONAL_MASK,
    "is_control": CONTROL_MASK,
    "has_delete_horizon": DELETE_HORIZON_MASK,
}


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
    """What set the timestamps: nothing (magic 0), the producer, or the broker on append."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


COMPRESSIONS = tuple(Compression)
# For each magic, which of these it has, and the bits that say so.
_COMPRESSION_BITS: list[dict[str, int]] = [
    {compression: number for number, compression in enumerate(COMPRESSIONS[:count])}
    for count in (ZSTD, ZSTD, len(COMPRESSIONS))
]
_TIMESTAMP_TYPE_BITS: list[dict[str, int]] = [
    {TimestampType.NO_TIMESTAMP_TYPE: 0, TimestampType.CREATE_TIME: 0},
    {TimestampType.CREATE_TIME: 0, TimestampType.LOG_APPEND_TIME: TIMESTAMP_TYPE_MASK},
    {TimestampType.CREATE_TIME: 0, TimestampType.LOG_APPEND_TIME: TIMESTAMP_TYPE_MASK},
]


def compression_of(attributes: int) -> Compression:
    """Give the compression type that the attributes name, which must be a known one."""
    return COMPRESSIONS[attributes & COMPRESSION_MASK]


def pack_attributes(
    magic: int, compression: str, timestamp_type: str, flags: dict[str, bool]
) -> int:
    """Give the attributes of a batch; raises `EncodeError` for what its magic does not have."""
    if type(magic) is not int or magic not in (*MESSAGE_SETS, RECORD_BATCH):
        raise EncodeError(f"unknown magic {short(magic)}; 0, 1 and 2 are known", path="magic")
    attributes = 0
    for path, name, bits in (
        ("compression", compression, _COMPRESSION_BITS[magic]),
        ("timestamp_type", timestamp_type, _TIMESTAMP_TYPE_BITS[magic]),
    ):
        if not isinstance(name, str) or name not in bits:
            raise EncodeError(f"magic {magic} does not have {short(name)}", path=path)
        attributes |= bits[name]
    for name, flag in flags.items():
        if flag and magic < RECORD_BATCH:
            raise EncodeError(f"magic {magic} has no such flag", path=name)
        attributes |= _FLAGS[name] if flag else 0
    return attributes
