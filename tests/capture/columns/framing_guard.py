"""Cut segments into frames. All buffers end at protected pages.

``python -m tests.capture.columns.framing_guard ROUNDS [--lie input|output]``: with ``--lie`` the
kernels are told that a buffer of payload or output is one byte larger than it is. The crash that
follows proves that the protected pages work. Each round processes one segment, and each
connection's frames must equal those of its assembler.
"""

from __future__ import annotations

import ctypes
import mmap
import random
from typing import Any

import msgspec
import numpy as np

from flexwire.capture.reassembly import flows
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.flows import Flows
from flexwire.kernels import load_kernel
from flexwire.wire.segment_layout import MODULUS
from tests.capture.columns.test_flows import (
    Segments,
    Ways,
    by_connection,
    by_objects,
    interleaved,
)
from tests.guard_arguments import asked
from tests.kernels.guard import protect

Array = np.ndarray[Any, np.dtype[Any]]

WAYS = (
    Ways(exchanges=60),
    Ways(mid_stream=True, damaged=0.02, exchanges=60),
    Ways(lost=5e-3, repeated=5e-3, late=5e-3, cut=3e-3, damaged=0.01, exchanges=100),
)
COLUMNS = ("timestamp_us", "sequence", "acknowledgment", "payload_at", "payload_size", "missing")
_BYTES = [0, 1, 127, 128, 255]


def against_guard(size: int, lie: int = 0) -> Array:
    """Return memory that ends ``lie`` bytes after the start of a protected page."""
    if not size:
        return np.zeros(0, np.uint8)
    pages = -(-size // mmap.PAGESIZE) + 1
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    end = begin + (pages - 1) * mmap.PAGESIZE
    protect(end)
    held: Any = (ctypes.c_uint8 * size).from_address(end - size + lie)
    # The array holds the memory, so the memory lives as long as the array.
    held.memory = memory
    return np.ctypeslib.as_array(held)


def guarded(data: Array, lie: int = 0) -> Array:
    """Return a copy that ends ``lie`` bytes after the start of a protected page."""
    raw = np.frombuffer(data.tobytes(), np.uint8)
    found = against_guard(len(raw), lie)
    ctypes.memmove(found.ctypes.data, raw.ctypes.data, max(0, len(raw) - lie))
    same: Array = found.view(data.dtype)
    return same


class Numpy:
    """Replace numpy in `flows`, so that its arrays also end at protected pages."""

    def __init__(self, *, lie: bool) -> None:
        self._lie = lie

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, kind: Any) -> Array:
        """Return space for bytes, or for the words of frames."""
        kind = np.dtype(kind)
        size = int(np.prod(shape)) * kind.itemsize
        made: Array = against_guard(size, int(self._lie)).view(kind).reshape(shape)
        return made

    def frombuffer(self, data: bytes, kind: Any) -> Array:
        """Return the held bytes of an incomplete frame."""
        return guarded(np.frombuffer(data, kind))


def hostile(rng: random.Random, segments: list[Any]) -> list[Any]:
    """Return a copy in which some of the bytes, numbers and flags are changed."""
    found = []
    for one in segments:
        segment = one
        if rng.random() < 0.01 and one.payload:
            raw = bytearray(one.payload)
            for _ in range(rng.choice([1, 4])):
                raw[rng.randrange(min(len(raw), rng.choice([8, 5000])))] = rng.choice(_BYTES)
            segment = msgspec.structs.replace(one, payload=bytes(raw))
        elif rng.random() < 0.003:
            name = rng.choice(["sequence", "acknowledgment"])
            number = (getattr(one, name) + rng.choice([-1, 1, 1000, MODULUS // 2])) % MODULUS
            segment = msgspec.structs.replace(one, **{name: number})
        elif rng.random() < 0.003:
            segment = msgspec.structs.replace(one, flags=rng.getrandbits(8))
        found.append(segment)
    return found


def main(rounds: int, lie: str | None) -> None:
    """Process segments chunk by chunk. The kernels must stay within their memory."""
    assert load_kernel("frames") is not None
    rng, taken, whole = random.Random(rounds), 0, 0
    flows.np = Numpy(lie=lie == "output")  # type: ignore[attr-defined,assignment]  # it is what is looked up
    while taken < rounds:
        segments = hostile(rng, interleaved(rng, rng.choice(WAYS)))
        expected, _ = by_objects(segments, BrokerEnds())
        one, keys, frames = Flows(), list[str](), []
        start = 0
        while start < len(segments):
            stop = start + rng.choice([1, 20, 400])
            chunk: Any = Segments(segments[start:stop], keys, "file")
            for name in COLUMNS:
                setattr(chunk, name, guarded(getattr(chunk, name)))
            chunk.data = guarded(chunk.data, int(lie == "input"))
            found = one.push(chunk)
            frames += [found.frame(row) for row in range(len(found))]
            whole += len(found) - len(found.error)
            start = stop
        for found in one.finish():
            frames += [found.frame(row) for row in range(len(found))]
        assert by_connection(frames) == expected
        taken += len(segments)
    print(f"{taken} rounds, {whole} frames")  # noqa: T201 - a test reads this output


if __name__ == "__main__":
    main(*asked(__doc__, "input", "output"))
