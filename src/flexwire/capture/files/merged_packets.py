"""Read capture files that overlap in time, packet by packet, in a single order.

Packets keep the order of their file. A file's clock is the latest time read from it so far, and
files are merged by these clocks. If two clocks are equal, the file whose name sorts first comes
first. Segments are merged in the same order (`flexwire.capture.reassembly.merging`). A file is
opened when its first packet is needed.

At most `MOST_OPEN` files are open. If more files are needed, some files are read ahead and closed.
A closed file is reopened at the place where reading stopped. `bytes_ahead` and `file_to_close`
decide how much is read ahead and which file is closed, both for packets and for segments.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import (
    ForwardReader,
    begin_blocks,
    open_capture,
    packets_in,
    read_packets,
    resume_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.capture.files.packets import UnreadableBytes
    from flexwire.capture.files.reading import CaptureBlocks, Head, OnSecrets, Opener

MOST_OPEN: Final = 256
"""At most this many files are open at the same time. Each open file takes about two megabytes."""
LEAST_AHEAD: Final = 256 * 1024
"""At least this many bytes of a file are read ahead, unless the total would be too large."""
MOST_AHEAD: Final = 256 * 1024 * 1024
"""At most this many bytes of all files together are read ahead, however many files there are."""
_NEVER_US: Final = 1 << 63
_HEADERS: Final = 256  # in addition to its data, a packet in memory takes about this many bytes


def bytes_ahead(among: int, total: int = MOST_AHEAD) -> int:
    """Return how many bytes each of ``among`` files may be read ahead, of a ``total`` for all.

    >>> bytes_ahead(1000), bytes_ahead(4000)
    (262144, 67108)
    """
    return min(LEAST_AHEAD, total // among)


class ReadAhead(Protocol):
    """A file that has been read ahead."""

    @property
    def can_go_on(self) -> bool:
        """True if the file can be opened at the place up to which it has been read."""

    @property
    def end(self) -> Any:
        """The end of the packets that have been read ahead, in a form that can be compared."""


_File = TypeVar("_File", bound=ReadAhead)


def file_to_close(opened: Iterable[_File], most: int) -> _File | None:
    """Return the file to close before another is opened, or None if fewer than ``most`` are open.

    The file that has been read furthest ahead is closed. Reading cannot start within a
    gzip-compressed file, so such a file is closed only if all open files are gzip-compressed.
    """
    files = list(opened)
    if len(files) < most:
        return None
    return max(files, key=lambda file: (file.can_go_on, file.end))


class _Due(NamedTuple):
    """A file and its clock, in the order of all files."""

    clock_us: int
    name: str


class _Place(NamedTuple):
    """A place between two blocks of a file, and the facts from earlier blocks."""

    offset: int
    head: Head


class _Ahead(NamedTuple):
    """A packet that has been read ahead, with the clock of its file at this packet."""

    clock_us: int
    packet: CapturedPacket | UnreadableBytes


class _OpenedFile:
    """An open file, the packets that follow, and the place up to which they have been read."""

    def __init__(
        self, name: str, place: _Place | None, opener: Opener | None, on_secrets: OnSecrets | None
    ) -> None:
        self._stack = ExitStack()
        start = 0 if place is None else place.offset
        content, self.is_compressed = self._stack.enter_context(open_capture(name, opener, start))
        self._source = ForwardReader(name, content)
        self._source.offset = start
        self._blocks: CaptureBlocks = (
            begin_blocks(self._source) if place is None else resume_blocks(self._source, place.head)
        )
        self.packets = packets_in(self._blocks, self._source, on_secrets)

    @property
    def place(self) -> _Place | None:
        """The place of the next block, or None if no block has been read."""
        head = self._blocks.head
        return None if head is None else _Place(self._source.offset, head)

    def close(self) -> None:
        self._stack.close()


class _MergedFile:
    """A file from its first packet to its end, and the packets that have been read ahead."""

    def __init__(self, due: _Due, opener: Opener | None, on_secrets: OnSecrets | None) -> None:
        self._clock_us, self._name = due
        self._opener, self._on_secrets = opener, on_secrets
        self._ahead: deque[_Ahead] = deque()
        self._opened: _OpenedFile | None = None
        self._place: _Place | None = None
        # The number of packets to skip in a gzip-compressed file, which is read again from its
        # start.
        self._passed = 0
        self.can_go_on = True
        self.is_over = False

    def __lt__(self, other: _MergedFile) -> bool:
        return self.due < other.due

    @property
    def due(self) -> _Due:
        """The clock at the next packet."""
        return _Due(self._ahead[0].clock_us if self._ahead else self._clock_us, self._name)

    @property
    def end(self) -> _Due:
        """The clock at the last packet that has been read ahead."""
        return _Due(self._clock_us, self._name)

    @property
    def is_open(self) -> bool:
        return self._opened is not None

    def open(self) -> None:
        """Open the file at the place up to which it has been read."""
        opened = _OpenedFile(self._name, self._place, self._opener, self._on_secrets)
        self.can_go_on = not opened.is_compressed
        if not self.can_go_on:
            deque(islice(opened.packets, self._passed), maxlen=0)
        self._opened = opened

    def close(self, size: int = 0) -> None:
        """Read at least ``size`` bytes ahead, and close the file."""
        held = sum(_weight(one.packet) for one in self._ahead)
        while held < size and self.read():
            held += _weight(self._ahead[-1].packet)
        if self._opened is not None:
            self._place = self._opened.place if self.can_go_on else None
            self._opened.close()
            self._opened = None

    def read(self) -> bool:
        """Read one packet ahead. At the end of the file, close it and return False."""
        packet = None if self._opened is None else next(self._opened.packets, None)
        if packet is None:
            self.is_over = True
            if self._opened is not None:
                self._opened.close()
                self._opened = None
            return False
        self._passed += 1
        if isinstance(packet, CapturedPacket) and packet.timestamp_us > self._clock_us:
            self._clock_us = packet.timestamp_us
        self._ahead.append(_Ahead(self._clock_us, packet))
        return True

    def until(self, limit: _Due | None) -> Iterator[CapturedPacket | UnreadableBytes]:
        """Yield the packets up to a limit that were read ahead, or that the open file contains."""
        last_us = _NEVER_US if limit is None else limit.clock_us
        if limit is not None and self._name > limit.name:
            # If a clock equals the limit, the limit comes first.
            last_us -= 1
        ahead = self._ahead
        while ahead and ahead[0].clock_us <= last_us:
            packet = ahead.popleft().packet
            yield packet
            if not ahead and self._opened is not None:
                self.read()

    @property
    def has_packets(self) -> bool:
        """True if packets have been read ahead."""
        return bool(self._ahead)


def _weight(packet: CapturedPacket | UnreadableBytes) -> int:
    return len(packet.data) + _HEADERS


class _Merge:
    """The files that are being read: a heap, ordered by the clock at each file's next packet."""

    def __init__(self) -> None:
        self.files: list[_MergedFile] = []
        self._opened: list[_MergedFile] = []

    def push(self, file: _MergedFile) -> None:
        """Put a file back, unless it is over.

        If no packet that was read ahead is left, the file is opened.
        """
        if not file.has_packets and not file.is_over:
            self._opened = [other for other in self._opened if other.is_open]
            last = file_to_close(self._opened, MOST_OPEN)
            if last is not None:
                last.close(bytes_ahead(len(self.files) + 1))
                self._opened.remove(last)
            file.open()
            self._opened.append(file)
            file.read()
        if file.has_packets:
            heappush(self.files, file)

    def close(self) -> None:
        """Close all files."""
        for file in self._opened:
            file.close()


def read_merged_packets(
    names: Iterable[str], opener: Opener | None = None, on_secrets: OnSecrets | None = None
) -> Iterator[CapturedPacket | UnreadableBytes]:
    """Yield the packets of several files, merged by the clocks of the files.

    Before any packet is returned, ``on_secrets`` is called with the secrets at the start of each
    file. It is called with all other secrets when they are read, and may be called twice with the
    same secrets.
    """
    waiting = sorted((_first_due(name, opener, on_secrets) for name in names), reverse=True)
    merge = _Merge()
    try:
        while merge.files or waiting:
            while waiting and (not merge.files or waiting[-1] <= merge.files[0].due):
                merge.push(_MergedFile(waiting.pop(), opener, on_secrets))
            if not merge.files:
                continue
            first = heappop(merge.files)
            limits = [merge.files[0].due] if merge.files else []
            limits += waiting[-1:]
            yield from first.until(min(limits, default=None))
            merge.push(first)
    finally:
        merge.close()


def _first_due(name: str, opener: Opener | None, on_secrets: OnSecrets | None) -> _Due:
    """Return a file with the time of its first packet, or with 0 if it contains no packets."""
    for packet in read_packets(name, opener, on_secrets):
        if isinstance(packet, CapturedPacket):
            return _Due(max(0, packet.timestamp_us), name)
    return _Due(0, name)
