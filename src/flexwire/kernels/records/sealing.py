"""Puts crcs into the headers of record batches that are otherwise written."""

from __future__ import annotations

from flexwire.kernels.machine import kernel, load_word, store_int32
from flexwire.kernels.records.columns_layout import EXTENT, W_BATCHES, W_OUT, W_TABLE
from flexwire.kernels.records.crc import HAS_CRC, crc_of
from flexwire.wire.batch_layout import CRC_AT, CRC_START

_HAS_CRC = int(HAS_CRC)


@kernel
def seal(call: int, _unused: int, _also_unused: int) -> int:
    """Put the crc into each of the W_BATCHES of W_TABLE; 1, or 0 where no crc can be computed."""
    out, extent = load_word(call + W_OUT), load_word(call + W_TABLE)
    if _HAS_CRC:
        for _ in range(load_word(call + W_BATCHES)):
            start, end = out + load_word(extent), out + load_word(extent + 8)
            store_int32(start + CRC_AT, crc_of(start + CRC_START, end))
            extent += EXTENT
    return _HAS_CRC
