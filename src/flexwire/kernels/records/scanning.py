"""Finds the record batches in data, one after the other, and reads their headers."""

from __future__ import annotations

from flexwire.kernels.machine import (
    kernel,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint32,
    load_word,
    store_word,
)
from flexwire.kernels.records.columns_layout import (
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
from flexwire.kernels.records.crc import HAS_CRC
from flexwire.wire.batch_layout import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_LENGTH_AT,
    COMPRESSION_MASK,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LENGTH_END,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PARTITION_LEADER_EPOCH_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORD_BATCH,
    RECORD_COUNT_AT,
    ZSTD,
)
from flexwire.wire.limits import INT64_MAX

_HAS_CRC = int(HAS_CRC)


@kernel
def scan(call: int, _unused: int, _also_unused: int) -> int:
    """Put the batches of magic 2 into the table, from S_POSITION on, and move S_POSITION on.

    FULL where the table is full, AT_END where nothing follows; OTHER where what follows is not a
    whole sound batch of magic 2: the data ends within it, it is of another magic, or its header is
    one that `flexwire.records.decode` refuses, which then reads it.
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
        if end - position < HEADER_SIZE or load_uint8(batch + MAGIC_AT) != RECORD_BATCH:
            return OTHER
        size = load_int32(batch + BATCH_LENGTH_AT) + LENGTH_END
        base_offset = load_int64(batch + BASE_OFFSET_AT)
        last_delta = load_int32(batch + LAST_OFFSET_DELTA_AT)
        attributes = load_int16(batch + ATTRIBUTES_AT)
        if (
            size < HEADER_SIZE
            or size > end - position
            or attributes & COMPRESSION_MASK > ZSTD
            or last_delta < 0
            or base_offset > INT64_MAX - last_delta
        ):
            return OTHER
        row = load_word(call + S_TABLE) + BATCH * count
        store_word(row + B_POSITION, position)
        store_word(row + B_SIZE, size)
        store_word(row + B_BASE_OFFSET, base_offset)
        store_word(row + B_EPOCH, load_int32(batch + PARTITION_LEADER_EPOCH_AT))
        store_word(row + B_CRC, load_uint32(batch + CRC_AT))
        store_word(row + B_ATTRIBUTES, attributes)
        store_word(row + B_LAST_DELTA, last_delta)
        store_word(row + B_BASE_TIMESTAMP, load_int64(batch + BASE_TIMESTAMP_AT))
        store_word(row + B_MAX_TIMESTAMP, load_int64(batch + MAX_TIMESTAMP_AT))
        store_word(row + B_PRODUCER, load_int64(batch + PRODUCER_ID_AT))
        store_word(row + B_PRODUCER_EPOCH, load_int16(batch + PRODUCER_EPOCH_AT))
        store_word(row + B_SEQUENCE, load_int32(batch + BASE_SEQUENCE_AT))
        store_word(row + B_COUNT, load_int32(batch + RECORD_COUNT_AT))
        store_word(row + B_START, batch + HEADER_SIZE)
        store_word(row + B_END, batch + size)
        position += size
        count += 1
