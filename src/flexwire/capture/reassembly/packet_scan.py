"""One run of the kernel over packets, and the state that is kept between runs."""

from __future__ import annotations

import ctypes
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flexwire.capture.files.links import endpoint_name, other_link, other_network, other_transport
from flexwire.capture.files.packets import FRAME_COMMENTS, Direction, Segment
from flexwire.capture.files.reading import DAMAGE, READ_AHEAD
from flexwire.capture.reassembly.assembly import connection_key
from flexwire.columnar.program import address, allocate
from flexwire.extras import needed_by
from flexwire.kernels import load_kernel
from flexwire.wire.limits import INT64_MAX
from flexwire.wire.packet_layout import LEAST_BYTES, LINK_UNKNOWN, LINKS, MILLION

with needed_by("flexwire.capture.reassembly", "columnar"):
    import numpy as np

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator

    from flexwire.capture.files.reading import Interface, PcapHead, Section
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.errors import CaptureError


# The ways in which a kernel run can end, in the order of the kernel's enum `Ending`.
SHORT, REFUSED, FULL, CROWDED = range(4)
# The kernel's numbers for the ways to convert ticks to microseconds, and for the kinds of files.
_TICKS_REFUSED, _TICKS_DIVIDED, _TICKS_MULTIPLIED, _TICKS_SHIFTED = range(4)
_PCAP, _PCAPNG = range(2)
# With more bits, the product of the ticks and one million would not fit into a word.
_MOST_SHIFTED = 40
# Times and offsets larger than this are not added. The year 10000 is well below this limit.
_MOST_US = 1 << 60

# The kernel counts packets without a segment under a number that identifies their content: a
# network protocol, an IP protocol (SKIPPED_PROTOCOL and above), or a link type (SKIPPED_LINK and
# above).
SKIPPED_PROTOCOL = 1 << 16
SKIPPED_LINK = SKIPPED_PROTOCOL + (1 << 8)
SKIPPED = SKIPPED_LINK + (1 << 16)

_NUMBER = ctypes.c_int64
# The kernel's output for a segment: one value in each column, in the same order as the arrays of
# `SegmentColumns`.
_COLUMNS = {
    "times": np.int64,
    "flow": np.int32,
    "sequences": np.int64,
    "acknowledgments": np.int64,
    "flags": np.uint8,
    "payloads": np.int64,
    "sizes": np.int32,
    # A packet may claim that 4 GiB of it were not captured.
    "missing": np.uint32,
    "begins": np.int8,
}


class ScanWords(ctypes.Structure):
    """The words of one kernel run over packets, laid out as in `kernels/packets.pyx`.

    Pointers are addresses. The run processes the bytes from ``position`` to ``end``, both counted
    from ``data``. For each segment, the kernel writes a row into the columns and increments
    ``row``.
    """

    _fields_ = tuple(
        (name, _NUMBER)
        for name in (
            *("data", "position", "end", "format", "is_big_endian"),
            *("interfaces", "interface_count", "to_us", "last_us", "packets", "row", "capacity"),
            *_COLUMNS,
            *("flows", "flow_count", "flow_capacity", "slots", "slot_mask", "slotted", "seed"),
            *("skipped", "new_skipped", "new_count"),
            *("request", "request_bytes", "response", "response_bytes"),
        )
    )


INTERFACE_ROW = np.dtype(
    [
        (name, np.int64)
        for name in ("linktype", "link", "snaplen", "ticks", "number", "most", "offset_us")
    ]
)
"""An interface in the kernel's form. If the times of an interface are uncertain, its packets are
read by Python objects.
"""

# The words of a flow. The first word of an IPv4 flow contains both addresses.
_FLOW = np.dtype([("addresses", np.int64, 4), ("ports", np.int64), ("code", np.int64)])
_VERSION_BIT = 32

_FIRST_FLOWS = 512
_SLOTS_PER_FLOW = 4
_IPV4_BYTES, _IPV6_BYTES, _PORT_BYTES = 4, 16, 2


class ConnectionKeys:
    """Connection keys, numbered in the order in which they first appear."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, segment: Segment) -> tuple[int, bool]:
        """Return the number of a segment's key, and whether the sender is the end after the "|"."""
        key = connection_key(segment)
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
        return number, segment.source > segment.destination


class FlowTable:
    """The flows of all files that a reader has read so far."""

    def __init__(self, run: ScanWords, keys: ConnectionKeys) -> None:
        self._run = run
        self._keys = keys
        self._rows = np.zeros(0, _FLOW)
        self._slots: NumpyArray
        # For each flow with a key: the key, and whether the sender is the end after the "|".
        self.key: NumpyArray = np.zeros(0, np.int32)
        self.is_high: NumpyArray = np.zeros(0, np.bool_)
        self._named = 0
        run.seed = secrets.randbits(63)
        self.grow()

    def grow(self) -> None:
        """Make room for twice the number of flows. The kernel moves its flows into new slots."""
        count, run = len(self._rows), self._run
        room = max(2 * count, _FIRST_FLOWS)
        self._rows = np.concatenate([self._rows, np.zeros(room - count, _FLOW)])
        self.key = np.concatenate([self.key, np.zeros(room - count, np.int32)])
        self.is_high = np.concatenate([self.is_high, np.zeros(room - count, np.bool_)])
        self._slots = np.zeros(room * _SLOTS_PER_FLOW, np.int32)
        run.flows, run.flow_capacity = address(self._rows), room
        run.slots, run.slot_mask, run.slotted = address(self._slots), len(self._slots) - 1, 0

    def name(self) -> None:
        """Find the keys of the new flows."""
        count = self._run.flow_count
        for flow in range(self._named, count):
            source, destination = _ends(self._rows[flow])
            ends = Segment(0, source, destination, 0, 0, 0, b"")
            self.key[flow], self.is_high[flow] = self._keys.number(ends)
        self._named = count


def _ends(flow: np.void) -> tuple[str, str]:
    """Return both endpoints of a flow as strings, the sender first."""
    raw, ports = flow["addresses"].tobytes(), flow["ports"].tobytes()
    is_ipv4 = int(flow["ports"]) >> _VERSION_BIT == 4  # noqa: PLR2004 - IPv4
    size = _IPV4_BYTES if is_ipv4 else _IPV6_BYTES
    return (
        endpoint_name(raw[:size], int.from_bytes(ports[:_PORT_BYTES], "big")),
        endpoint_name(
            raw[size : 2 * size], int.from_bytes(ports[_PORT_BYTES : 2 * _PORT_BYTES], "big")
        ),
    )


# At most this many reasons are counted separately per file, because a hostile file may produce
# many.
DIFFERENT_REASONS = 1000
FURTHER_REASONS = "further reasons"


@dataclass(slots=True)
class UnusedPackets:
    """The numbers of a file's unused packets by reason, with the first bytes of one packet each."""

    packets: dict[str, int] = field(default_factory=dict)
    samples: dict[str, bytes] = field(default_factory=dict)

    def add(self, reason: str, packets: int, sample: bytes | None = None) -> None:
        """Count packets for a reason.

        If there are already too many reasons, a new one is counted as FURTHER_REASONS.
        """
        if reason not in self.packets and len(self.packets) >= DIFFERENT_REASONS:
            reason = FURTHER_REASONS
        if sample:
            self.samples.setdefault(reason, sample)
        self.packets[reason] = self.packets.get(reason, 0) + packets

    def add_all(self, others: UnusedPackets) -> None:
        """Add the counts of another object, in that object's order."""
        for reason, packets in others.packets.items():
            self.add(reason, packets, others.samples.get(reason))

    def know(self, reasons: Iterable[str]) -> None:
        """Count these reasons separately, because earlier packets had the same reasons."""
        self.packets.update(dict.fromkeys(reasons, 0))

    def counted(self) -> UnusedPackets:
        """Return only the reasons for which packets were counted."""
        counted = {reason: packets for reason, packets in self.packets.items() if packets}
        return UnusedPackets(counted, self.samples)


@dataclass(slots=True)
class FileNotes:
    """Notes that were made about a capture file, or a part of it, while it was read.

    ``packets`` is the total number of packets. ``unreadable`` counts packets and places that should
    contain a segment, but do not contain a readable one. ``skipped`` counts packets with other
    content. ``error`` is the reason why the file cannot be read at all.
    """

    file: str
    packets: int = 0
    unreadable: UnusedPackets = field(default_factory=UnusedPackets)
    skipped: UnusedPackets = field(default_factory=UnusedPackets)
    error: CaptureError | None = None

    def unused(self) -> UnusedPackets:
        """Return all unused packets, in the form that an analysis's notes use."""
        together = UnusedPackets()
        together.add_all(self.unreadable)
        if self.error is not None:
            together.add(self.error.reason, 0)
        together.add_all(self.skipped)
        return together

    def add(self, later: FileNotes) -> None:
        """Add the notes about the next part of the file."""
        self.packets += later.packets
        self.unreadable.add_all(later.unreadable)
        self.skipped.add_all(later.skipped)
        self.error = self.error or later.error


# The number of bytes that are read at a time. A piece this small is still in the processor's cache
# when the kernel reads it. The number is larger than `READ_AHEAD`, so that no other buffer is used.
PIECE = 2 * READ_AHEAD


class FileWindow:
    """The bytes of an open file, starting at ``offset``.

    At most ``room`` of these bytes are held at a time. The bytes are stored in ``buffer``, at the
    address ``address``, up to ``filled``. The next block begins at ``position``. Bytes at or after
    ``stop`` are read only on request. If reading can fail within the file, ``piece`` (the number of
    bytes to read at a time) must not exceed the file's own buffer. Otherwise the file would
    continue reading after returning its buffer, and would lose those bytes.
    """

    def __init__(
        self,
        file: io.BufferedReader[Any],
        room: int,
        offset: int = 0,
        stop: int | None = None,
        piece: int = PIECE,
    ) -> None:
        self._file = file
        self._piece = piece
        self._most_room = room
        # The place in the file where the buffer would begin, counted back from the buffer's end.
        self._begin = offset
        self._stop = stop
        self._error: Exception | None = None
        self._is_read = False
        self.position = self.filled = 0
        try:
            ahead = len(file.peek(1))
        except DAMAGE as error:
            self._error = error
            self._is_read = True
            ahead = 0
        # A small file fits into the buffer as a whole.
        self.room = room if ahead >= READ_AHEAD else min(room, ahead + 1)
        self.buffer, self.address = self._empty()
        # Payloads of packets that Python objects read are stored after the space reserved for the
        # file's bytes.
        self.used = self.room

    def _empty(self) -> tuple[NumpyArray, int]:
        # Unused pages of the buffer occupy no memory.
        buffer = allocate(2 * self.room)
        return buffer, address(buffer)

    @property
    def offset(self) -> int:
        """The place in the file where the next block begins."""
        return self._begin + self.position

    @property
    def is_full(self) -> bool:
        """True if there is no room for more bytes of the file."""
        return self.filled == self.room

    @property
    def is_stopped(self) -> bool:
        """True if the part to be read ends where the next block begins."""
        return self._stop is not None and self.offset >= self._stop

    def stop(self) -> None:
        """End the part to be read where the next block begins."""
        self._stop = self.offset

    def fill(self) -> bool:
        """Read more bytes. Return False if there is no room, or if no bytes are left."""
        end = min(self.filled + self._piece, self.room)
        if self._stop is not None:
            end = min(end, self._stop - self._begin)
        if end <= self.filled or self._is_read:
            return False
        try:
            count = self._file.readinto1(self.buffer.data[self.filled : end])
        except DAMAGE as error:
            self._error = error
            count = 0
        self._is_read = not count
        self.filled += count
        return count > 0

    def read(self, size: int) -> bytes:
        """Return the next bytes for Python objects. Bytes outside the buffer come from the file."""
        end = min(self.position + size, self.filled)
        data = self.buffer[self.position : end].tobytes()
        self.position = end
        if len(data) < size:
            if self._error is not None:
                raise self._error
            more = self._file.read(size - len(data))
            self._begin += len(more)
            data += more
        return data

    def put(self, payload: bytes) -> int | None:
        """Store a payload next to the file's bytes.

        Return the payload's position, or None if there is no room.
        """
        if not payload:
            return 0
        at = self.used
        if len(payload) > len(self.buffer) - at:
            return None
        self.used += len(payload)
        self.buffer[at : self.used] = np.frombuffer(payload, np.uint8)
        return at

    def data(self) -> NumpyArray:
        """Return the array that contains the payloads."""
        return self.buffer[: self.filled if self.used == self.room else self.used]

    def go_on(self, *, with_new_buffer: bool) -> None:
        """Move the start of the buffer to the next block."""
        left = self.buffer[self.position : self.filled]
        if with_new_buffer or self.room < self._most_room:
            self.room = self._most_room
            self.buffer, self.address = self._empty()
        self.buffer[: len(left)] = left
        self._begin += self.position
        self.position, self.filled, self.used = 0, len(left), self.room


BEGINS: tuple[Direction | None, ...] = (None, "request", "response")
"""The meaning of each number in the column ``begins``."""

_COMMENTS = {direction: comment for comment, direction in FRAME_COMMENTS.items()}
_FIRST_INTERFACES = 16
# If Python objects read a row, its flow is a negative number: -1 minus twice the key, and minus 1
# more if the sender is the end after the "|".
_FIRST_OWN = 1


class PacketScan:
    """Run the kernel over files. Without kernels, Python objects read every packet.

    Several scans may share the same ``keys``.
    """

    def __init__(self, keys: ConnectionKeys | None = None) -> None:
        packets = load_kernel("packets")
        self._scan = None if packets is None else packets.scan
        self._words = run = ScanWords()
        self.keys = ConnectionKeys() if keys is None else keys
        self.flows = FlowTable(run, self.keys)
        self._interfaces = np.zeros(_FIRST_INTERFACES, INTERFACE_ROW)
        self._skipped = np.zeros(SKIPPED, np.int64)
        self._new_skipped = np.zeros(SKIPPED, np.int64)
        self._told = 0
        self._section: Section | None = None
        self._columns: list[NumpyArray] = []
        self._texts = {
            direction: np.frombuffer(text, np.uint8) for direction, text in _COMMENTS.items()
        }
        run.interfaces = address(self._interfaces)
        run.skipped, run.new_skipped = address(self._skipped), address(self._new_skipped)
        request, response = self._texts["request"], self._texts["response"]
        run.request, run.request_bytes = address(request), len(request)
        run.response, run.response_bytes = address(response), len(response)

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return int(self._words.row)

    @property
    def last_us(self) -> int:
        """The time of the last packet that has a time."""
        return int(self._words.last_us)

    def begin_rows(self, room: int) -> None:
        """Begin new columns that have room for the segments in this many bytes of a file."""
        run, capacity = self._words, room // LEAST_BYTES + 2
        self._columns = [np.empty(capacity, kind) for kind in _COLUMNS.values()]
        for name, column in zip(_COLUMNS, self._columns, strict=True):
            setattr(run, name, address(column))
        run.capacity, run.row = capacity, 0

    def keys_of(self, flow: NumpyArray) -> tuple[NumpyArray, NumpyArray]:
        """Return the key of each row, and whether its sender is the end after the "|"."""
        self.flows.name()
        own = flow < 0
        named = np.where(own, 0, flow)
        key, is_high = self.flows.key[named], self.flows.is_high[named]
        if own.any():
            put = -_FIRST_OWN - flow[own]
            key[own], is_high[own] = put >> 1, put & 1
        return key, is_high

    def columns(self) -> list[NumpyArray]:
        """Return the columns, shortened to the number of rows."""
        return [column[: self.rows] for column in self._columns]

    def begin_file(self) -> None:
        """Forget the facts about the previous file."""
        run = self._words
        self._section = None
        run.interface_count = run.packets = run.last_us = 0
        self._skipped[self._new_skipped[: run.new_count]] = 0
        run.new_count = self._told = 0

    def know_head(self, head: PcapHead) -> None:
        """Use the facts in the head of a pcap file."""
        run, interface = self._words, self._interfaces[0]
        run.format, run.is_big_endian, run.to_us = _PCAP, head.order == ">", head.to_us
        interface["linktype"] = head.linktype
        interface["link"] = LINKS.get(head.linktype, LINK_UNKNOWN)

    def know_section(self, section: Section) -> None:
        """Use the new facts about a section of a pcapng file."""
        run = self._words
        if section is not self._section:
            self._section = section
            run.format, run.is_big_endian = _PCAPNG, section.order == ">"
        run.last_us = section.last_us
        # A section without interfaces is recognized as a new section.
        for number in range(run.interface_count, len(section.interfaces)):
            if number == len(self._interfaces):
                self._interfaces = np.concatenate([self._interfaces, self._interfaces])
                run.interfaces = address(self._interfaces)
            self._interfaces[number] = interface_row(section.interfaces[number])
        run.interface_count = len(section.interfaces)

    def run(self, window: FileWindow) -> int:
        """Read packets from a window, and advance its position. Return why the run ended."""
        run = self._words
        if run.row == run.capacity:
            return FULL
        if self._scan is None:
            return SHORT if window.position == window.filled else REFUSED
        run.data, run.position, run.end = window.address, window.position, window.filled
        while (status := int(self._scan(ctypes.addressof(run)))) == CROWDED:
            self.flows.grow()
        window.position = run.position
        return status

    def put(self, segment: Segment, at: int) -> None:
        """Put a segment that objects have read into the next row; its payload is at ``at``."""
        number, is_high = self.keys.number(segment)
        values = (
            segment.timestamp_us,
            # The key of the segment takes the place of the kernel's flow.
            -_FIRST_OWN - 2 * number - is_high,
            segment.sequence,
            segment.acknowledgment,
            segment.flags,
            at,
            len(segment.payload),
            segment.missing,
            BEGINS.index(segment.begins),
        )
        row = self.rows
        for column, value in zip(self._columns, values, strict=True):
            column[row] = value
        self._words.row = row + 1

    def tell_new(self, skipped: UnusedPackets) -> None:
        """Add the new reasons for skipping packets, in their order."""
        if self._told == self._words.new_count:
            return
        for reason, _ in self._reasons(self._told):
            skipped.add(reason, 0)
        self._told = self._words.new_count

    def tell_all(self, skipped: UnusedPackets) -> int:
        """Add the file's counts of skipped packets. Return the total number of its packets."""
        self.tell_new(skipped)
        for reason, count in self._reasons(0):
            skipped.add(reason, count)
        return int(self._words.packets)

    def _reasons(self, first: int) -> Iterator[tuple[str, int]]:
        count = self._words.new_count
        for what in self._new_skipped[first:count].tolist():
            yield reason_of(what), int(self._skipped[what])


def reason_of(what: int) -> str:
    """Return the text for a number under which the kernel counts packets."""
    if what >= SKIPPED_LINK:
        return other_link(what - SKIPPED_LINK)
    if what >= SKIPPED_PROTOCOL:
        return other_transport(what - SKIPPED_PROTOCOL)
    return other_network(what)


def interface_row(interface: Interface) -> tuple[int, ...]:
    """Return the row of type INTERFACE_ROW for an interface."""
    per_second, offset_us = interface.per_second, interface.offset_seconds * MILLION
    how, number, most = _TICKS_REFUSED, 1, 0
    if abs(offset_us) > _MOST_US:
        offset_us = 0
    elif per_second % MILLION == 0 and per_second <= INT64_MAX:
        how, number = _TICKS_DIVIDED, per_second // MILLION
        most = _MOST_US * number
    elif MILLION % per_second == 0:
        how, number = _TICKS_MULTIPLIED, MILLION // per_second
        most = _MOST_US // number
    elif (bits := per_second.bit_length() - 1) <= _MOST_SHIFTED and per_second == 1 << bits:
        how, number = _TICKS_SHIFTED, bits
        most = (_MOST_US // MILLION) << bits
    link = LINKS.get(interface.linktype, LINK_UNKNOWN)
    most = min(most, INT64_MAX)
    return interface.linktype, link, interface.snaplen, how, number, most, offset_us
