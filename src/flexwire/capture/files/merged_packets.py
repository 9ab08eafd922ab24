"""Reads capture files that overlap in time packet by packet, in one order.

A file's packets keep its order. Files are merged by their clocks. The clock is the latest time in a
file so far; of equal clocks the file with the first name comes first. Segments are merged in the
same order (`flexwire.capture.reassembly.merging`). A file is opened when its first packet is due.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import read_packets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.capture.files.packets import UnreadableBytes
    from flexwire.capture.files.reading import OnSecrets, Opener

MOST_OPEN: Final = 256
"""At most this many files are open at once. If more files overlap, the last of them begin late."""
_NEVER_US: Final = 1 << 63


class _Due(NamedTuple):
    """A file and its clock, in the order of all files."""

    clock_us: int
    name: str


class _OpenFile:
    """A file that is read one packet ahead."""

    def __init__(self, packets: Iterator[CapturedPacket | UnreadableBytes], due: _Due) -> None:
        self._packets = packets
        self._next = next(packets, None)
        self._clock_us, self._name = due

    def __lt__(self, other: _OpenFile) -> bool:
        return self.due < other.due

    @property
    def due(self) -> _Due:
        return _Due(self._clock_us, self._name)

    @property
    def is_over(self) -> bool:
        return self._next is None

    def until(self, limit: _Due | None) -> Iterator[CapturedPacket | UnreadableBytes]:
        """Yield the packets up to a limit."""
        last_us = _NEVER_US if limit is None else limit.clock_us
        if limit is not None and self._name > limit.name:
            # Of equal clocks, the limit comes first.
            last_us -= 1
        while (packet := self._next) is not None and self._clock_us <= last_us:
            yield packet
            following = self._next = next(self._packets, None)
            if isinstance(following, CapturedPacket) and following.timestamp_us > self._clock_us:
                self._clock_us = following.timestamp_us


def read_merged_packets(
    names: Iterable[str], opener: Opener | None = None, on_secrets: OnSecrets | None = None
) -> Iterator[CapturedPacket | UnreadableBytes]:
    """Yield the packets of several files by the clocks of the files: see `read_packets`.

    ``on_secrets`` is called with the secrets before the first packet of each file before any packet
    is returned, and with all others when they are read. So it is called twice with some of them.
    """
    waiting = sorted((_first_due(name, opener, on_secrets) for name in names), reverse=True)
    open_files: list[_OpenFile] = []  # a heap
    while open_files or waiting:
        while (
            waiting
            and len(open_files) < MOST_OPEN
            and (not open_files or waiting[-1] <= open_files[0].due)
        ):
            due = waiting.pop()
            heappush(open_files, _OpenFile(read_packets(due.name, opener, on_secrets), due))
        first = heappop(open_files)
        limits = [open_files[0].due] if open_files else []
        if waiting and len(open_files) + 1 < MOST_OPEN:
            limits.append(waiting[-1])
        yield from first.until(min(limits, default=None))
        if not first.is_over:
            heappush(open_files, first)


def _first_due(name: str, opener: Opener | None, on_secrets: OnSecrets | None) -> _Due:
    """Return a file with the time of its first packet, or 0."""
    for packet in read_packets(name, opener, on_secrets):
        if isinstance(packet, CapturedPacket):
            return _Due(max(0, packet.timestamp_us), name)
    return _Due(0, name)
