"""Read packets that end at a protected page into columns that also end at a protected page.

``python -m tests.capture.packets_guard ROUNDS [--lie input|rows]``: with ``--lie`` the kernel is
told that there are more bytes or rows than exist. The crash shows that the protected pages work.
"""

from __future__ import annotations

import ctypes
import io
import random
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.capture.files.reading import ForwardReader, PcapHead, Section, begin_blocks
from flexwire.capture.reassembly.packet_scan import REFUSED, PacketScan
from flexwire.wire.packet_layout import BLOCK_FRAME, BLOCK_HEAD, LEAST_BYTES
from tests.capture.columns.captures import damaged, made_capture
from tests.guard_arguments import asked
from tests.kernels.guard import Guarded

if TYPE_CHECKING:
    from flexwire.capture.files.reading import Head

ROWS = 2
PCAP_HEAD, SECTION_HEAD = 24, 28
SAMPLES, LONGEST = 800, 10_000
# The number of extra bytes that the lie declares.
MORE = 64


class Memory:
    """Stand in for the window of a file in a scan."""

    def __init__(self, guarded: Guarded, data: bytes, more: int) -> None:
        self.address = guarded.put(data)
        size = len(data) + more
        self.buffer = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.address))
        self.position, self.filled = 0, size


def samples(source: random.Random) -> list[tuple[Head, bytes]]:
    """Return captures without their headers, and the content of the headers."""
    found = []
    for _ in range(SAMPLES):
        data = made_capture(source)
        blocks = begin_blocks(ForwardReader("", io.BytesIO(data)))
        for _ in blocks:
            pass
        assert blocks.head is not None
        body = data[PCAP_HEAD if isinstance(blocks.head, PcapHead) else SECTION_HEAD :]
        if 0 < len(body) < LONGEST:
            found.append((blocks.head, body))
    return found


def read(scan: PacketScan, window: Any, head: Head) -> None:
    """Read with the kernel until the end or until the rows are full, and skip other blocks."""
    while scan.run(window) == REFUSED:
        left = window.buffer[window.position :].tobytes()
        if isinstance(head, PcapHead) or len(left) < BLOCK_HEAD:
            return
        length = struct.unpack_from(f"{head.order}I", left, 4)[0]
        if not BLOCK_FRAME <= length <= len(left):
            return
        window.position += length


def main(rounds: int, lie: str | None) -> None:
    """Read damaged packets. The kernel must stop at the end of its input and of its rows."""
    source = random.Random(rounds)
    bodies = samples(source)
    data, times = Guarded(), Guarded()
    scan = PacketScan()
    segments = 0
    for _ in range(rounds):
        head, raw = source.choice(bodies)
        scan.begin_file()
        if isinstance(head, PcapHead):
            scan.know_head(head)
        else:
            scan.know_section(Section(ForwardReader("", io.BytesIO()), head))
        if source.random() < 0.6:
            raw = damaged(source, raw)
        if source.random() < 0.5:
            raw = raw[: source.randint(0, len(raw))]
        window = Memory(data, raw, MORE if lie == "input" else 0)
        scan.begin_rows(ROWS * LEAST_BYTES)
        words = scan._words
        words.capacity, words.times = ROWS + (lie == "rows"), times.end - 8 * ROWS
        read(scan, window, head)
        assert 0 <= window.position <= window.filled
        segments += scan.rows
    print(f"{rounds} rounds, {segments} segments")  # noqa: T201 - a test reads this output


if __name__ == "__main__":
    main(*asked(__doc__, "input", "rows"))
