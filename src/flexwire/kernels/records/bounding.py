"""Bounds what zstd batches of a table inflate to, as `flexwire.records.compression` does."""

from __future__ import annotations

from flexwire.kernels.machine import kernel, load_uint8, load_word, part, store_word
from flexwire.kernels.records.columns_layout import B_ATTRIBUTES, B_END, B_SKIP, B_START, BATCH
from flexwire.kernels.records.inflating_layout import Z_BOUNDS, Z_ROWS, Z_TABLE
from flexwire.kernels.records.xxh32 import load_uint32_native
from flexwire.wire.batch_layout import COMPRESSION_MASK, ZSTD
from flexwire.wire.frame_layout import (
    ZSTD_BLOCK_SIZE,
    ZSTD_COMPRESSED,
    ZSTD_MAGIC,
    ZSTD_RESERVED,
    ZSTD_RLE,
)


@part
def _header_size(descriptor: int) -> int:
    """Give the size of a frame header, its magic included, from the byte after the magic."""
    single_segment = descriptor >> 5 & 1
    content_size = descriptor >> 6
    dictionary_id = descriptor & 3
    size = 6 - single_segment
    size += single_segment if content_size == 0 else 1 << content_size
    return size + (4 if dictionary_id == 3 else dictionary_id)


@part
def zstd_bound(source: int, stop: int) -> int:
    """Give a size that the zstd frames from ``source`` to ``stop`` cannot inflate beyond.

    -1 where `flexwire.records.compression.zstd_bound` refuses them.
    """
    bound = 0
    while source < stop:
        if stop - source < 5 or load_uint32_native(source) != ZSTD_MAGIC:
            return -1
        descriptor = load_uint8(source + 4)
        source += _header_size(descriptor)
        last = False
        while not last:
            if stop - source < 3:
                return -1
            block = load_uint8(source) | load_uint8(source + 1) << 8 | load_uint8(source + 2) << 16
            last, kind, size = block & 1 != 0, block >> 1 & 3, block >> 3
            if kind == ZSTD_RESERVED:
                return -1
            source += 3 + (1 if kind == ZSTD_RLE else size)
            bound += ZSTD_BLOCK_SIZE if kind == ZSTD_COMPRESSED else size
        source += 4 if descriptor & 0x04 else 0
    return bound


@kernel
def bound(call: int, _unused: int, _also_unused: int) -> int:
    """Put the bound of each zstd batch of the table into its word of Z_BOUNDS; gives 0.

    The words of others, and of batches that are skipped, are left as they are.
    """
    table, bounds = load_word(call + Z_TABLE), load_word(call + Z_BOUNDS)
    for row in range(load_word(call + Z_ROWS)):
        batch = table + BATCH * row
        if load_word(batch + B_ATTRIBUTES) & COMPRESSION_MASK == ZSTD:
            if load_word(batch + B_SKIP) == 0:
                found = zstd_bound(load_word(batch + B_START), load_word(batch + B_END))
                store_word(bounds + 8 * row, found)
    return 0
