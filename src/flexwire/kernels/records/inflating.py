"""Inflates the lz4 and gzip batches of a table, all in one call."""

from __future__ import annotations

from flexwire.kernels.machine import kernel, load_word, part, store_word
from flexwire.kernels.records.columns_layout import (
    B_ATTRIBUTES,
    B_BUDGET,
    B_END,
    B_SKIP,
    B_START,
    BATCH,
)
from flexwire.kernels.records.crc import HAS_CRC
from flexwire.kernels.records.gzip import inflate_member
from flexwire.kernels.records.inflating_layout import (
    ASK,
    I_BUDGET,
    I_ENOUGH,
    I_FIRST,
    I_GZIP,
    I_LIMIT,
    I_ROWS,
    I_STOP,
    I_TABLE,
    I_TARGET,
    I_TOTAL,
    INFLATED,
)
from flexwire.kernels.records.lz4 import inflate_frames
from flexwire.wire.batch_layout import COMPRESSION_MASK, GZIP, LZ4, NO_COMPRESSION


@part
def _inflate_batch(call: int, batch: int, compression: int) -> bool:
    """Inflate the records of a batch; False if a library has to do it."""
    target, stop = load_word(call + I_TARGET), load_word(call + I_STOP)
    room = min(load_word(call + I_LIMIT), stop - target) + target
    start, after, end = load_word(batch + B_START), load_word(batch + B_END), -1
    if compression == LZ4:
        end = inflate_frames(start, after, target, room)
    elif compression == GZIP and HAS_CRC:
        end = inflate_member(start, after, target, room)
    if end < 0:
        return False
    store_word(batch + B_START, target)
    store_word(batch + B_END, end)
    store_word(batch + B_BUDGET, load_word(call + I_BUDGET))
    store_word(call + I_TARGET, end)
    return True


@kernel
def inflate(call: int, _unused: int, _also_unused: int) -> int:
    """Inflate batches from I_FIRST on, and move I_FIRST, I_TOTAL and I_TARGET on.

    Batches that are skipped, empty or not compressed are passed over. INFLATED where there is
    enough, or all are done; ASK where the next is for a codec.
    """
    store_word(call + I_GZIP, 1 if HAS_CRC else 0)
    while load_word(call + I_FIRST) < load_word(call + I_ROWS) and load_word(
        call + I_TOTAL
    ) < load_word(call + I_ENOUGH):
        batch = load_word(call + I_TABLE) + BATCH * load_word(call + I_FIRST)
        if load_word(batch + B_SKIP) == 0:
            compression = load_word(batch + B_ATTRIBUTES) & COMPRESSION_MASK
            if compression != NO_COMPRESSION and load_word(batch + B_START) != load_word(
                batch + B_END
            ):
                if not _inflate_batch(call, batch, compression):
                    return ASK
            size = load_word(batch + B_END) - load_word(batch + B_START)
            store_word(call + I_TOTAL, load_word(call + I_TOTAL) + size)
        store_word(call + I_FIRST, load_word(call + I_FIRST) + 1)
    return INFLATED
