"""Inflates the lz4 batches of a table, all in one call."""

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
from flexwire.kernels.records.inflating_layout import (
    ASK,
    I_BUDGET,
    I_ENOUGH,
    I_FIRST,
    I_LIMIT,
    I_ROWS,
    I_STOP,
    I_TABLE,
    I_TARGET,
    I_TOTAL,
    INFLATED,
)
from flexwire.kernels.records.lz4 import inflate_frames
from flexwire.wire.batch_layout import COMPRESSION_MASK, LZ4, NO_COMPRESSION


@part
def _inflate_batch(call: int, batch: int) -> bool:
    """Inflate the records of an lz4 batch; False if the library has to do it."""
    target, stop = load_word(call + I_TARGET), load_word(call + I_STOP)
    room = min(load_word(call + I_LIMIT), stop - target) + target
    end = inflate_frames(load_word(batch + B_START), load_word(batch + B_END), target, room)
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
    while load_word(call + I_FIRST) < load_word(call + I_ROWS) and load_word(
        call + I_TOTAL
    ) < load_word(call + I_ENOUGH):
        batch = load_word(call + I_TABLE) + BATCH * load_word(call + I_FIRST)
        if load_word(batch + B_SKIP) == 0:
            compression = load_word(batch + B_ATTRIBUTES) & COMPRESSION_MASK
            if compression != NO_COMPRESSION and load_word(batch + B_START) != load_word(
                batch + B_END
            ):
                if compression != LZ4 or not _inflate_batch(call, batch):
                    return ASK
            size = load_word(batch + B_END) - load_word(batch + B_START)
            store_word(call + I_TOTAL, load_word(call + I_TOTAL) + size)
        store_word(call + I_FIRST, load_word(call + I_FIRST) + 1)
    return INFLATED
