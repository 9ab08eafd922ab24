"""Finds the record batches in data, one after the other, and reads their headers.

The data is one run of bytes, or a column of many: none of these runs over into the next.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    kernel,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint32,
    load_word,
    part,
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
    B_PIECE,
    B_POSITION,
    B_PRODUCER,
    B_PRODUCER_EPOCH,
    B_ROWS,
    B_SEQUENCE,
    B_SIZE,
    B_SKIP,
    B_START,
    BATCH,
    COUNT_REFUSED,
    FULL,
    OTHER,
    P_CAPACITY,
    P_COUNT,
    P_CRC,
    P_DATA,
    P_ENDS,
    P_PIECE,
    P_PIECES,
    P_POSITION,
    P_STARTS,
    P_TABLE,
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
    LEAST_SIZES,
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
_MAGIC_0, _MAGIC_1, _MAGIC_2 = LEAST_SIZES


@part
def is_sound(batch: int, remaining: int) -> bool:
    """Whether what begins here is a whole batch of magic 2 whose header no one refuses."""
    if remaining < HEADER_SIZE or load_uint8(batch + MAGIC_AT) != RECORD_BATCH:
        return False
    size = load_int32(batch + BATCH_LENGTH_AT) + LENGTH_END
    last_delta = load_int32(batch + LAST_OFFSET_DELTA_AT)
    return (
        HEADER_SIZE <= size <= remaining
        and load_int16(batch + ATTRIBUTES_AT) & COMPRESSION_MASK <= ZSTD
        and last_delta >= 0
        and load_int64(batch + BASE_OFFSET_AT) <= INT64_MAX - last_delta
    )


@part
def put_batch(row: int, batch: int, position: int) -> int:
    """Put what a batch's header says into its row of the table; gives the batch's size."""
    size = load_int32(batch + BATCH_LENGTH_AT) + LENGTH_END
    store_word(row + B_POSITION, position)
    store_word(row + B_SIZE, size)
    store_word(row + B_BASE_OFFSET, load_int64(batch + BASE_OFFSET_AT))
    store_word(row + B_EPOCH, load_int32(batch + PARTITION_LEADER_EPOCH_AT))
    store_word(row + B_CRC, load_uint32(batch + CRC_AT))
    store_word(row + B_ATTRIBUTES, load_int16(batch + ATTRIBUTES_AT))
    store_word(row + B_LAST_DELTA, load_int32(batch + LAST_OFFSET_DELTA_AT))
    store_word(row + B_BASE_TIMESTAMP, load_int64(batch + BASE_TIMESTAMP_AT))
    store_word(row + B_MAX_TIMESTAMP, load_int64(batch + MAX_TIMESTAMP_AT))
    store_word(row + B_PRODUCER, load_int64(batch + PRODUCER_ID_AT))
    store_word(row + B_PRODUCER_EPOCH, load_int16(batch + PRODUCER_EPOCH_AT))
    store_word(row + B_SEQUENCE, load_int32(batch + BASE_SEQUENCE_AT))
    store_word(row + B_COUNT, load_int32(batch + RECORD_COUNT_AT))
    store_word(row + B_START, batch + HEADER_SIZE)
    store_word(row + B_END, batch + size)
    return size


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
        if not is_sound(data + position, end - position):
            return OTHER
        row = load_word(call + S_TABLE) + BATCH * count
        position += put_batch(row, data + position, position)
        count += 1


@part
def extent(batch: int, remaining: int) -> int:
    """How many bytes `flexwire.records.decode` is done with after what begins here.

    Those of one batch or message, if its length can be one and it is whole; else all that remain.
    """
    if remaining > MAGIC_AT:
        size = load_int32(batch + BATCH_LENGTH_AT) + LENGTH_END
        magic = load_uint8(batch + MAGIC_AT)
        least = _MAGIC_0
        if magic == 1:
            least = _MAGIC_1
        elif magic == RECORD_BATCH:
            least = _MAGIC_2
        if magic <= RECORD_BATCH and least <= size <= remaining:
            return size
    return remaining


@part
def put_refused(row: int, batch: int, position: int, size: int) -> None:
    """Put what is not for the kernels into its row of the table: it is not to be read."""
    store_word(row + B_POSITION, position)
    store_word(row + B_SIZE, size)
    store_word(row + B_ATTRIBUTES, 0)
    store_word(row + B_COUNT, COUNT_REFUSED)
    store_word(row + B_START, batch)
    store_word(row + B_END, batch + size)


@kernel
def scan_pieces(call: int, _unused: int, _also_unused: int) -> int:
    """Put all batches of all pieces into the table, from P_POSITION in P_PIECE on.

    FULL where the table is full, AT_END after the last piece. What is not a whole sound batch of
    magic 2 with records, as `scan` finds them, has a row too, which is refused and to be skipped.
    """
    data = load_word(call + P_DATA)
    piece = load_word(call + P_PIECE)
    position = load_word(call + P_POSITION)
    count = load_word(call + P_COUNT)
    store_word(call + P_CRC, _HAS_CRC)
    while piece < load_word(call + P_PIECES):
        end = load_word(load_word(call + P_ENDS) + 8 * piece)
        while position < end:
            store_word(call + P_PIECE, piece)
            store_word(call + P_POSITION, position)
            store_word(call + P_COUNT, count)
            if count == load_word(call + P_CAPACITY):
                return FULL
            batch, row = data + position, load_word(call + P_TABLE) + BATCH * count
            is_read = is_sound(batch, end - position) and load_int32(batch + RECORD_COUNT_AT) != 0
            if is_read:
                position += put_batch(row, batch, position)
            else:
                size = extent(batch, end - position)
                put_refused(row, batch, position, size)
                position += size
            store_word(row + B_SKIP, not is_read)
            store_word(row + B_ROWS, 0)
            store_word(row + B_PIECE, piece)
            count += 1
        piece += 1
        if piece < load_word(call + P_PIECES):
            position = load_word(load_word(call + P_STARTS) + 8 * piece)
    store_word(call + P_PIECE, piece)
    store_word(call + P_COUNT, count)
    return AT_END
