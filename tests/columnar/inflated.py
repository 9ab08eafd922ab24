"""What the kernels that inflate make of one batch, and zlib and its kernel of one stream."""

from __future__ import annotations

import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from flexwire.columnar.program import address
from flexwire.kernels.cache import digest
from flexwire.kernels.engine import kernel
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - as in the room
from flexwire.kernels.records import inflating_layout as F  # noqa: N812 - as in the room
from flexwire.wire.batch_layout import GZIP
from tests.columnar.gzip_members import member

if TYPE_CHECKING:
    from collections.abc import Callable

BUILD = Path(__file__).parents[2] / ".build"
LIMIT, ROOM = 1 << 21, 1 << 18
# Functions that kernels are made of run alone where numba compiles them; a wheel has kernels only.
HAS_PARTS = find_spec("numba") is not None
needs_parts = pytest.mark.skipif(not HAS_PARTS, reason="it runs a part of a kernel alone, by numba")


def inflates_gzip() -> bool:
    """Whether the kernels have the instruction that gzip's crc takes."""
    words = np.zeros(F.INFLATE // 8, np.int64)
    inflate_batches = kernel("inflate_batches")
    assert inflate_batches is not None, "the kernels run on every machine that runs the tests"
    assert inflate_batches(address(words), 0, 0) == F.INFLATED
    return bool(words[F.I_GZIP // 8])


needs_gzip = pytest.mark.skipif(not inflates_gzip(), reason="these kernels leave gzip to zlib")


def inflated_by_kernel(
    compression: int, data: bytes, *, limit: int = LIMIT, size: int = LIMIT, mark: int | None = None
) -> bytes | None:
    """Inflate by the kernel; None where it asks. Nothing is written from the room's end on."""
    raw = np.frombuffer(data, np.uint8)
    room = np.full(size + 64, 0xA5, np.uint8)
    table = np.zeros((1, L.BATCH // 8), np.int64)
    begin = address(raw)
    table[0, [L.B_START // 8, L.B_END // 8]] = begin, begin + len(data)
    table[0, L.B_ATTRIBUTES // 8] = compression
    words = np.zeros(F.INFLATE // 8, np.int64)
    target = address(room)
    for word, value in (
        (F.I_TABLE, address(table)),
        (F.I_ROWS, 1),
        (F.I_ENOUGH, 1),
        (F.I_TARGET, target),
        (F.I_STOP, target + size),
        (F.I_LIMIT, limit),
        (F.I_BUDGET, 77),
    ):
        words[word // 8] = value
    inflate_batches = kernel("inflate_batches")
    assert inflate_batches is not None, "the kernels run on every machine that runs the tests"
    status = inflate_batches(address(words), 0, 0)
    end = min(size, limit) if mark is None else mark
    assert (room[end:] == 0xA5).all(), "written beyond the room"
    start, stop = (int(table[0, word // 8]) for word in (L.B_START, L.B_END))
    if status == F.ASK:
        assert (start, stop) == (begin, begin + len(data)), "what is asked for is as it was"
        assert words[F.I_TARGET // 8] == target
        assert words[F.I_FIRST // 8] == words[F.I_TOTAL // 8] == 0
        return None
    assert status == F.INFLATED
    assert words[F.I_FIRST // 8] == 1
    assert words[F.I_TARGET // 8] == stop
    assert words[F.I_TOTAL // 8] == stop - start
    assert table[0, L.B_BUDGET // 8] == 77
    return room[: stop - start].tobytes()


def by_zlib(stream: bytes) -> bytes | None:
    """Inflate one whole stream; None where zlib refuses it, or it is cut off or goes on."""
    inflater = zlib.decompressobj(-15)
    try:
        content = inflater.decompress(stream, ROOM)
    except zlib.error:
        return None
    return content if inflater.eof and not inflater.unused_data else None


def by_blocks(stream: bytes, *, behind: int = 8) -> bytes | None:
    """Inflate one whole stream by the gzip kernel, whatever the crc of its content.

    With many bytes ``behind`` it looks less often whether there are enough. Where there are but
    whole kernels, the stream stands in a member with the crc that zlib's result has.
    """
    if not HAS_PARTS:
        content = by_zlib(stream)
        found = inflated_by_kernel(GZIP, member(stream, content or b""))
        return found if content is not None else None
    # What stands behind a stream may be read, as a trailer does.
    data = np.frombuffer(stream + b"\xa5" * behind, np.uint8)
    room = np.full(ROOM + 8, 0xA5, np.uint8)
    begin, target = address(data), address(room)
    source, end = _inflate_blocks()(begin, begin + len(data), target, target + ROOM)
    assert (room[ROOM:] == 0xA5).all(), "written beyond the room"
    return room[: end - target].tobytes() if source - begin == len(stream) else None


@cache
def _inflate_blocks() -> Callable[[int, int, int, int], tuple[int, int]]:
    """Return the part of the gzip kernel that reads blocks, compiled once for the same kernels.

    To compile it takes ten seconds. Only here is it kept in a cache of numba's own: from there no
    object file can be made, which is what the loader of kernels keeps.
    """
    from numba.core import config  # noqa: PLC0415 - a wheel's tests have no numba

    from flexwire.kernels.records.gzip import inflate_blocks  # noqa: PLC0415 - see above

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "CACHE_DIR", str(BUILD / f"parts-{digest()}"))
        cast("Any", inflate_blocks).enable_caching()
    return inflate_blocks
