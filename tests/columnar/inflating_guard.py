"""Inflates lz4 and gzip and bounds zstd where data and room end against pages nobody may touch.

``python -m tests.columnar.inflating_guard ROUNDS [--lie input|output]``: with a lie the kernels are
told that some bytes more are there, which proves that the pages guard.
"""

from __future__ import annotations

import random

import cramjam
import numpy as np

from flexwire.columnar.program import address
from flexwire.columnar.records import _zstd_bounds
from flexwire.kernels.engine import kernel
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - as in the room
from flexwire.kernels.records import inflating_layout as F  # noqa: N812 - as in the room
from flexwire.records import Compression
from flexwire.records.compression import deflate
from flexwire.wire.batch_layout import GZIP, LZ4, ZSTD
from tests.columnar.gzip_members import written
from tests.columnar.lz4_frames import contents, library_frames
from tests.guard_arguments import asked
from tests.kernels.guard import Guarded

LONGEST = 3000
_BYTES = [0, 1, 0x0F, 0x1F, 0xF0, 0xFF]


def frames(source: random.Random) -> list[bytes]:
    """Give sound frames, mostly without checksums, which would see the damage."""
    short = [one[: source.choice([30, 300, LONGEST])] for one in contents(source)]
    found = [deflate(Compression.LZ4, one, level=None, magic=2) for one in short] * 9
    found += [frame for one in short for frame in library_frames(one)]
    return [one for one in found if len(one) <= LONGEST]


def members(source: random.Random) -> list[bytes]:
    """Give sound members of gzip; their damage is seen after all is inflated."""
    short = [one[: source.choice([30, 300, LONGEST])] for one in contents(source)]
    return [one for content in short for one in written(content) if len(one) <= LONGEST]


def main(rounds: int, lie: str | None) -> None:
    """Inflate damaged frames into rooms of every size."""
    source = random.Random(rounds)
    sound = {LZ4: frames(source), GZIP: members(source)}
    sound[ZSTD] = [bytes(cramjam.zstd.compress(one[:LONGEST])) for one in contents(source)]
    data, room = Guarded(), Guarded()
    inflate_batches = kernel("inflate_batches")
    assert inflate_batches is not None
    table = np.zeros((1, L.BATCH // 8), np.int64)
    words = np.zeros(F.INFLATE // 8, np.int64)
    inflated = {LZ4: 0, GZIP: 0}
    for _ in range(rounds):
        compression = source.choice([LZ4, LZ4, LZ4, GZIP, GZIP, GZIP, ZSTD])
        raw = bytearray(source.choice(sound[compression]))
        for _ in range(source.choice([0, 1, 1, 2, 4])):
            at = source.randrange(min(7, len(raw) - 1), len(raw))
            raw[at] = source.choice([*_BYTES, source.randrange(256)])
        cut = len(raw) if source.random() < 0.7 else source.randrange(1, len(raw))
        begin = data.put(bytes(raw[:cut]))
        size = source.choice([LONGEST, 300, 30, source.randrange(LONGEST)])
        declared = int.from_bytes(raw[-4:], "little")
        if compression == GZIP and declared <= LONGEST and source.random() < 0.5:
            # All that it declares, or one byte too few.
            size = declared - min(declared, source.randrange(2))
        # Against the page after it, or the one before: matches are copied from what there is.
        target = source.choice([room.begin, room.end - size])
        table[0, L.B_START // 8] = begin
        table[0, L.B_END // 8] = begin + cut + (32 if lie == "input" else 0)
        table[0, L.B_ATTRIBUTES // 8] = compression
        if compression == ZSTD:
            assert len(_zstd_bounds(table)) == 1
            continue
        for word, value in (
            (F.I_TABLE, address(table)),
            (F.I_FIRST, 0),
            (F.I_ROWS, 1),
            (F.I_TOTAL, 0),
            (F.I_ENOUGH, 1),
            (F.I_TARGET, target),
            (F.I_STOP, target + size + (1 if lie == "output" else 0)),
            (F.I_LIMIT, 1 << 20),
        ):
            words[word // 8] = value
        inflated[compression] += inflate_batches(address(words), 0, 0) == F.INFLATED
    print(f"{rounds} rounds, {inflated[LZ4]} frames inflated, {inflated[GZIP]} members")  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main(*asked(__doc__, "input", "output"))
