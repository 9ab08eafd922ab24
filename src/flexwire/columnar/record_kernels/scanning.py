"""Finds the record batches in data, one after the other, and reads their headers."""

from __future__ import annotations

from flexwire.columnar.record_kernels.checking import HAS_CRC
from flexwire.columnar.record_kernels.layout import (
    AT_END,
    B_ATTRIBUTES,
    B_BASE_OFFSET,
    B_BASE_TIMESTAMP,
    B_COUNT,
    B_CRC,
    B_END,
    B_EPOCH,
    B_LAST_DELTA,
    B_MAX_TIMESTAMP,
    B_POSITION,
    B_PRODUCER,
    B_PRODUCER_EPOCH,
    B_SEQUENCE,
    B_SIZE,
    B_START,
    BATCH,
    FULL,
    OTHER,
    S_CAPACITY,
    S_COUNT,
    S_CRC,
    S_DATA,
    S_END,
    S_POSITION,
    S_TABLE,
)
from flexwire.native.machine import (
    kernel,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint32,
    load_word,
    store_word,
)

_HEADER_SIZE = 61
_LENGTH_END = 12
_MAGIC, _MAGIC_POSITION = 2, 16
_COMPRESSION_MASK, _ZSTD = 0x07, 4
_INT64_MAX = 2**63 - 1
_HAS_CRC = int(HAS_CRC)


@kernel
def scan(call: int, _unused: int, _also_unused: int) -> int:
    """Put the batches of magic 2 into the table, from S_POSITION on, and move S_POSITION on.

    FULL where the table is full, AT_END where nothing follows; OTHER where what follows is no whole
    sound batch of magic 2: the end of the data within one, another magic, or a header that
    `flexwire.records.decode` refuses, which is asked then.
    """
    data = load_word(call + S_DATA)
    end = load_word(call + S_END)
    position = load_word(call + S_POSITION)
    count = load_word(call + S_COUNT)
    store_word(call + S_CRC, _HAS_CRC)
    while True:
        store_word(call + S_POSITION, position)
        store_word(call + S_COUNT, count)
        if position == end:
            return AT_END
        if count == load_word(call + S_CAPACITY):
            return FULL
        batch = data + position
        if end - position < _HEADER_SIZE or load_uint8(batch + _MAGIC_POSITION) != _MAGIC:
            return OTHER
        size = load_int32(batch + 8) + _LENGTH_END
        base_offset = load_int64(batch)
        last_delta = load_int32(batch + 23)
        attributes = load_int16(batch + 21)
        if (
            size < _HEADER_SIZE
            or size > end - position
            or attributes & _COMPRESSION_MASK > _ZSTD
            or last_delta < 0
            or base_offset > _INT64_MAX - last_delta
        ):
            return OTHER
        row = load_word(call + S_TABLE) + BATCH * count
        store_word(row + B_POSITION, position)
        store_word(row + B_SIZE, size)
        store_word(row + B_BASE_OFFSET, base_offset)
        store_word(row + B_EPOCH, load_int32(batch + 12))
        store_word(row + B_CRC, load_uint32(batch + 17))
        store_word(row + B_ATTRIBUTES, attributes)
        store_word(row + B_LAST_DELTA, last_delta)
        store_word(row + B_BASE_TIMESTAMP, load_int64(batch + 27))
        store_word(row + B_MAX_TIMESTAMP, load_int64(batch + 35))
        store_word(row + B_PRODUCER, load_int64(batch + 43))
        store_word(row + B_PRODUCER_EPOCH, load_int16(batch + 51))
        store_word(row + B_SEQUENCE, load_int32(batch + 53))
        store_word(row + B_COUNT, load_int32(batch + 57))
        store_word(row + B_START, batch + _HEADER_SIZE)
        store_word(row + B_END, batch + size)
        position += size
        count += 1
