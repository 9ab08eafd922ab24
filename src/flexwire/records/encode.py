"""Write record batches and message sets."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from flexwire.arguments import to_flag, to_list
from flexwire.errors import EncodeError
from flexwire.records.compression import checked_level, deflate
from flexwire.records.executors import ACTIVE, write_records
from flexwire.records.message_set import write_message, write_messages
from flexwire.records.record import (
    Compression,
    Record,
    TimestampType,
    check_size,
    checked_integer,
    checked_record,
    compression_of,
    pack_attributes,
)
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CRC_AT,
    CRC_SIZE,
    CRC_START,
    ENTRY,
    HEADER,
    HEADER_FIELDS,
    NO_VALUE,
    RECORD_BATCH,
    crc32c,
    extend_crc32c,
)
from flexwire.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Fields: TypeAlias = Mapping[str, int | None]
"""Numbers in a batch header that are not derived from the records, by name."""

_NOBODY = Record(0, NO_VALUE, None, None, [])
# The numbers that both a wrapper message and a record batch contain.
WRITTEN_FIELDS = (
    ("last_offset",),
    ("last_offset", "max_timestamp"),
    (
        "base_offset",
        "last_offset",
        "base_timestamp",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_id",
        "producer_epoch",
        "base_sequence",
    ),
)

_FIELDS = WRITTEN_FIELDS[RECORD_BATCH]
# These constants are objects, because comparing identities is faster than comparing values.
_NOT_COMPRESSED, _CREATE_TIME = Compression.NONE, TimestampType.CREATE_TIME

# The header fields that a caller may specify, with their bits. After these fields, all fields
# follow in the order of the header.
_GIVEN_BITS = [
    (name, 8 * struct.calcsize(code))
    for name, code in HEADER_FIELDS.items()
    if name in WRITTEN_FIELDS[RECORD_BATCH] and name != "base_offset"
]
_in_order = itemgetter(*HEADER_FIELDS)


def encode_batch(  # noqa: PLR0913 - these are the fields of a batch, each given by name
    records: Iterable[Record],
    *,
    magic: int = RECORD_BATCH,
    compression: Compression | str = Compression.NONE,
    level: int | None = None,
    timestamp_type: TimestampType | str = TimestampType.CREATE_TIME,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    partition_leader_epoch: int = NO_VALUE,
    producer_id: int = NO_VALUE,
    producer_epoch: int = NO_VALUE,
    base_sequence: int = NO_VALUE,
    is_transactional: bool = False,
    is_control: bool = False,
    has_delete_horizon: bool = False,
) -> bytes:
    """Write one record batch (magic 2), or a message set (magic 0 and 1), with its CRCs.

    The arguments are fields of `RecordBatch`. The default offsets are the offsets of the first and
    the last record, the base timestamp is the first timestamp, the max timestamp is the largest
    timestamp, and the compression level is Kafka's default. A compressed message set is one wrapper
    message. An uncompressed message set contains one message for each record. With
    ``LogAppendTime``, readers return the max timestamp for every record.

    Raises `EncodeError`, with the name of the field and the record, for a value that is impossible
    in this magic.

    >>> encode_batch([Record(7, 1700000000000, b"order-7", b"paid", [])])[61:].hex()
    '220000000e6f726465722d37087061696400'
    """
    attributes = 0
    # Most batches have no such value, and one test for all values is faster than separate tests.
    if (
        magic is not RECORD_BATCH
        or compression is not _NOT_COMPRESSED
        or level is not None
        or timestamp_type is not _CREATE_TIME
        or not is_transactional is is_control is has_delete_horizon is False
    ):
        flags = {
            "is_transactional": is_transactional,
            "is_control": is_control,
            "has_delete_horizon": has_delete_horizon,
        }
        for name, flag in flags.items():
            to_flag(flag, name)
        attributes = pack_attributes(magic, compression, timestamp_type, flags)
        level = checked_level(compression_of(attributes), level)
    if type(records) is not list:
        records = to_list(records, "records", "an iterable of Records")
    # The fields are in the order of WRITTEN_FIELDS.
    offsets, timestamps = (base_offset, last_offset), (base_timestamp, max_timestamp)
    producer = (producer_id, producer_epoch, base_sequence)
    numbers = (*offsets, *timestamps, partition_leader_epoch, *producer)
    return _write(records, magic, attributes, numbers, level)


def write_batch(
    records: Sequence[Record],
    magic: int,
    attributes: int,
    fields: Fields,
    *,
    level: int | None = None,
) -> bytes:
    """Write a batch whose attributes are known, as `encode_batch` does."""
    return _write(records, magic, attributes, tuple(map(fields.get, _FIELDS)), level)


def _write(
    records: Sequence[Record],
    magic: int,
    attributes: int,
    numbers: tuple[int | None, ...],
    level: int | None,
) -> bytes:
    if magic == RECORD_BATCH and level is None and not attributes & COMPRESSION_MASK:
        return ACTIVE.functions.write_batch(records, attributes, *numbers)
    return _write_any(list(records), magic, attributes, numbers, level)


def write_plain_batch(records: Sequence[Record], attributes: int, *numbers: int | None) -> bytes:
    """Write an uncompressed record batch. ``numbers`` contains the numbers in its header, in order.

    A kernel may replace this function, and is called with the same arguments.
    """
    return _write_any(list(records), RECORD_BATCH, attributes, numbers, None)


def _write_any(
    records: Sequence[Record],
    magic: int,
    attributes: int,
    numbers: tuple[int | None, ...],
    level: int | None,
) -> bytes:
    write = _write_record_batch if magic == RECORD_BATCH else _write_message_set
    try:
        return write(records, magic, attributes, dict(zip(_FIELDS, numbers, strict=True)), level)
    except EncodeError as error:
        error.message = f"batch of magic {magic}"
        raise


def _write_record_batch(
    records: Sequence[Record], magic: int, attributes: int, fields: Fields, level: int | None
) -> bytes:
    del magic
    first, last = _ends(records)
    base_offset = _number(fields, "base_offset", 64, first.offset)
    base_timestamp = _number(fields, "base_timestamp", 64, first.timestamp)
    body, newest = write_records(records, base_offset, base_timestamp)
    values = {
        **fields,
        "base_offset": base_offset,
        "last_offset": _number(fields, "last_offset", 64, last.offset if records else base_offset),
        "base_timestamp": base_timestamp,
        "max_timestamp": _number(fields, "max_timestamp", 64, newest),
    }
    return seal_batch(body, len(records), attributes, values, level=level)


def seal_batch(
    body: bytes, count: int, attributes: int, fields: Fields, *, level: int | None = None
) -> bytes:
    """Compress ``count`` encoded records, and write a header with a crc before them.

    ``fields`` contains both offsets and both timestamps of the header. Raises `EncodeError`.
    """
    check_size(len(body), "records")
    base_offset, last_offset = (
        _number(fields, f"{which}_offset", 64) for which in ("base", "last")
    )
    if not 0 <= last_offset - base_offset <= INT32_MAX:
        reason = f"expected the base offset {base_offset} plus 0 to {INT32_MAX}, got {last_offset}"
        raise EncodeError(reason, path="last_offset")
    # A batch that compaction emptied contains no compressed data at all. Such a batch does not
    # even contain the compressed form of empty data.
    if count:
        body = deflate(compression_of(attributes), body, level=level, magic=RECORD_BATCH)
    size = HEADER.size + len(body) - ENTRY.size
    check_size(size, "records")
    numbers = {name: _number(fields, name, bits) for name, bits in _GIVEN_BITS}
    numbers["base_offset"] = base_offset
    numbers["batch_length"] = size
    numbers["magic"] = RECORD_BATCH
    numbers["crc"] = 0
    numbers["attributes"] = attributes
    numbers["last_offset_delta"] = last_offset - base_offset
    numbers["record_count"] = count
    header = HEADER.pack(*_in_order(numbers))
    crc = extend_crc32c(crc32c(header[CRC_START:]), body)
    before = header[:CRC_AT]
    return b"".join((before, crc.to_bytes(CRC_SIZE, "big"), header[CRC_START:], body))


def _write_message_set(
    records: Sequence[Record], magic: int, attributes: int, fields: Fields, level: int | None
) -> bytes:
    compression = compression_of(attributes)
    is_wrapper = compression is not Compression.NONE
    for name, value in fields.items():
        is_given = is_wrapper and name in WRITTEN_FIELDS[magic]
        if not is_given and value not in (None, NO_VALUE):
            kind = "a wrapper message" if is_wrapper else "an uncompressed message set"
            raise EncodeError(f"{kind} with magic {magic} must not have this field", path=name)
    if not is_wrapper:
        return write_messages(records, magic=magic, attributes=attributes)
    if not records:
        raise EncodeError("a wrapper message must have at least one record", path="records")
    first, last = _ends(records)
    last_offset = _number(fields, "last_offset", 64, last.offset)
    # Readers treat the offsets in a wrapper of magic 1 as relative, unless the last offset is 0.
    base_offset = 0
    if magic > 0 and last_offset != 0:
        base_offset = first.offset
        if last_offset != last.offset:
            reason = f"{last_offset} must equal the offset of the last record, {last.offset}"
            raise EncodeError(reason, path="last_offset")
    inner_attributes = attributes & ~COMPRESSION_MASK
    inner = write_messages(
        records, magic=magic, attributes=inner_attributes, base_offset=base_offset
    )
    newest = max(record.timestamp for record in records)
    return write_message(
        last_offset,
        None,
        deflate(compression, inner, level=level, magic=magic),
        magic=magic,
        attributes=attributes,
        timestamp=_number(fields, "max_timestamp", 64, newest),
    )


def _ends(records: Sequence[Record]) -> tuple[Record, Record]:
    """Return the first and the last record, whose numbers are used in the header.

    All numbers are checked when the records are written. The numbers of the first record are also
    checked before they are used.
    """
    if not records:
        return _NOBODY, _NOBODY
    last = len(records) - 1
    return (
        checked_record(records[0], "records[0]"),
        checked_record(records[last], f"records[{last}]"),
    )


def _number(fields: Fields, name: str, bits: int, otherwise: int = NO_VALUE) -> int:
    value = fields.get(name)
    return otherwise if value is None else checked_integer(value, bits, name)
