"""A record, the attributes of its batch, and the values that its fields may have."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

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
from flexwire.wire.limits import LONGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


RecordHeader: TypeAlias = tuple[bytes, bytes | None]


class Record(msgspec.Struct, gc=False):
    """One record of a record batch or message set.

    ``timestamp`` is in milliseconds since the epoch, or -1 if there is none (magic 0). ``headers``
    keep their order, duplicates, empty keys and null values. Keys are bytes, because nothing
    guarantees that they are UTF-8.

    >>> record = Record(7, 1700000000000, None, b"paid", [(b"trace", b"a1"), (b"trace", None)])
    >>> record.offset, record.headers[1]
    (7, (b'trace', None))
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[RecordHeader] = []


_FLAGS = {
    "is_transactional": TRANSACTIONAL_MASK,
    "is_control": CONTROL_MASK,
    "has_delete_horizon": DELETE_HORIZON_MASK,
}


class Compression(enum.StrEnum):
    """The compression types, in the order of their numbers in the protocol.

    >>> Compression.SNAPPY == "snappy", list(Compression).index(Compression.ZSTD)
    (True, 4)
    """

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class TimestampType(enum.StrEnum):
    """The source of timestamps: none (magic 0), the producer, or the broker when it appends."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


COMPRESSIONS = tuple(Compression)
# The timestamp types that each magic supports, with their bits.
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
    """Return the compression type in the attributes. The type must be known."""
    return COMPRESSIONS[attributes & COMPRESSION_MASK]


def pack_attributes(
    magic: int, compression: str, timestamp_type: str, flags: dict[str, bool]
) -> int:
    """Return the attributes of a batch. Raises `EncodeError` for an invalid attribute."""
    if type(magic) is not int or magic not in (*MESSAGE_SETS, RECORD_BATCH):
        raise EncodeError(f"unknown magic {short(magic)}; 0, 1 and 2 are known", path="magic")
    attributes = 0
    for path, name, bits in (
        ("compression", compression, _COMPRESSION_BITS[magic]),
        ("timestamp_type", timestamp_type, _TIMESTAMP_TYPE_BITS[magic]),
    ):
        if not isinstance(name, str) or name not in bits:
            raise EncodeError(f"magic {magic} does not support {short(name)}", path=path)
        attributes |= bits[name]
    for name, flag in flags.items():
        if flag and magic < RECORD_BATCH:
            raise EncodeError(f"magic {magic} does not support this flag", path=name)
        attributes |= _FLAGS[name] if flag else 0
    return attributes


_MOST = {bits: (1 << (bits - 1)) - 1 for bits in (16, 32, 64)}
_Written = TypeVar("_Written")


def checked_integer(value: Any, bits: int, path: str) -> int:
    """Return a value that must be a signed integer of 16, 32 or 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise EncodeError(f"expected an integer, got {short(value)}", path=path)
    most = _MOST[bits]
    if not -most - 1 <= value <= most:
        raise EncodeError(f"{short(value)} does not fit in {bits} bits", path=path)
    return value


def checked_bytes(value: Any, path: str) -> bytes:
    """Return a value that must be bytes. A subclass, bytearray or memoryview is copied."""
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise EncodeError(f"expected bytes, got {short(value)}", path=path)


def checked_nullable_bytes(value: Any, path: str) -> bytes | None:
    """Return a value that must be bytes or None."""
    return None if value is None else checked_bytes(value, path)


def checked_record(value: Any, path: str) -> Record:
    """Return a value that must be a record."""
    if isinstance(value, Record):
        return value
    raise EncodeError(f"expected a Record, got {short(value)}", path=path)


def check_size(size: int, path: str) -> None:
    """Raise an error for a size that is too large for a batch length or message size."""
    if size > LONGEST:
        raise EncodeError(f"{size} bytes are more than {LONGEST}, the largest int32", path=path)


def write_each(records: Sequence[Any], write: Callable[[Record], _Written]) -> list[_Written]:
    """Write one record after another. Any `EncodeError` names the record's index."""
    written = []
    for index, record in enumerate(records):
        try:
            written.append(write(checked_record(record, "")))
        except EncodeError as error:
            error.path = f"records[{index}].{error.path}".rstrip(".")
            raise
    return written
