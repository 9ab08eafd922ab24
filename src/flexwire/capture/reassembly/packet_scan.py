"""One run of the kernel over packets, and all that it keeps from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.capture.files.links import other_link, other_network, other_transport
from flexwire.capture.files.model import FRAME_COMMENTS, Direction
from flexwire.capture.reassembly.packet_flows import Flows, Keys
from flexwire.columnar.program import address
from flexwire.kernels.capture import packets_layout as L  # noqa: N812 - a word before some ten
from flexwire.kernels.engine import kernel
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.files.model import Segment
    from flexwire.capture.files.reading import Interface, PcapHead, Section
    from flexwire.capture.reassembly.packet_notes import UnusedPackets
    from flexwire.capture.reassembly.packet_window import Window

    Numbers = np.ndarray[Any, Any]

BEGINS: tuple[Direction | None, ...] = (None, "request", "response")
"""What each number of the column ``begins`` says."""

_COMMENTS = {direction: comment for comment, direction in FRAME_COMMENTS.items()}
# The words of the columns, and what each holds, in the order of the arrays of `SegmentColumns`.
_COLUMNS = {
    L.S_TIMES: np.int64,
    L.S_FLOW: np.int32,
    L.S_SEQUENCES: np.int64,
    L.S_ACKNOWLEDGMENTS: np.int64,
    L.S_FLAGS: np.uint8,
    L.S_PAYLOADS: np.int64,
    L.S_SIZES: np.int32,
    # A packet may say that 4 GiB of it were not captured.
    L.S_MISSING: np.uint32,
    L.S_BEGINS: np.int8,
}
_FIRST_INTERFACES = 16
# What stands for a flow in a row that objects read is below 0: 1, and twice the key, and the end.
_FIRST_OWN = 1


class Scan:
    """The words of a kernel's run; without kernels, nothing is sure and objects read all.

    Several may number their ``keys`` together.
    """

    def __init__(self, keys: Keys | None = None) -> None:
        self._run = kernel("scan_packets")
        kept = np.zeros(L.SCAN // 8, np.int64)
        self._words_at = address(kept)
        # Single items of an array are slow to take and to set.
        self.words = kept.data
        self.keys = Keys() if keys is None else keys
        self.flows = Flows(self.words, self.keys)
        self._interfaces = np.zeros((_FIRST_INTERFACES, L.INTERFACE_ROW // 8), np.int64)
        self._skipped = np.zeros(L.SKIPPED, np.int64)
        self._new_skipped = np.zeros(L.SKIPPED, np.int64)
        self._told = 0
        self._section: Section | None = None
        self._columns: list[Numbers] = []
        self._texts = {
            direction: np.frombuffer(text, np.uint8) for direction, text in _COMMENTS.items()
        }
        for word, value in (
            (L.S_INTERFACES, address(self._interfaces)),
            (L.S_SKIPPED, address(self._skipped)),
            (L.S_NEW_SKIPPED, address(self._new_skipped)),
            (L.S_REQUEST, address(self._texts["request"])),
            (L.S_REQUEST_BYTES, len(self._texts["request"])),
            (L.S_RESPONSE, address(self._texts["response"])),
            (L.S_RESPONSE_BYTES, len(self._texts["response"])),
        ):
            self.words[word // 8] = value

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.words[L.S_ROW // 8]

    @property
    def last_us(self) -> int:
        """The time of the last packet that has one."""
        return self.words[L.S_LAST_US // 8]

    def begin_rows(self, room: int) -> None:
        """Begin new columns, for the segments of so many bytes of a file."""
        capacity = room // L.LEAST_BYTES + 2
        self._columns = [np.empty(capacity, kind) for kind in _COLUMNS.values()]
        for word, column in zip(_COLUMNS, self._columns, strict=True):
            self.words[word // 8] = address(column)
        self.words[L.S_CAPACITY // 8] = capacity
        self.words[L.S_ROW // 8] = 0

    def keys_of(self, flow: Numbers) -> tuple[Numbers, Numbers]:
        """Give the key of each of some rows, and whether its sender is the higher end."""
        self.flows.name()
        own = flow < 0
        named = np.where(own, 0, flow)
        key, is_high = self.flows.key[named], self.flows.is_high[named]
        if own.any():
            put = -_FIRST_OWN - flow[own]
            key[own], is_high[own] = put >> 1, put & 1
        return key, is_high

    def columns(self) -> list[Numbers]:
        """Give the columns with the rows that they have."""
        return [column[: self.rows] for column in self._columns]

    def begin_file(self) -> None:
        """Forget what was said of another file."""
        self._section = None
        for word in (L.S_INTERFACE_COUNT, L.S_PACKETS, L.S_LAST_US):
            self.words[word // 8] = 0
        self._skipped[self._new_skipped[: self.words[L.S_NEW_COUNT // 8]]] = 0
        self.words[L.S_NEW_COUNT // 8] = self._told = 0

    def know_head(self, head: PcapHead) -> None:
        """Take in what the head of a pcap file says."""
        for word, value in (
            (L.S_FORMAT, L.FORMAT_PCAP),
            (L.S_ORDER, head.order == ">"),
            (L.S_TO_US, head.to_us),
        ):
            self.words[word // 8] = value
        self._interfaces[0, L.I_LINKTYPE // 8] = head.linktype
        self._interfaces[0, L.I_LINK // 8] = L.LINKS.get(head.linktype, L.LINK_UNKNOWN)

    def know_section(self, section: Section) -> None:
        """Take in what is new of a section of a pcapng file."""
        words = self.words
        if section is not self._section:
            self._section = section
            words[L.S_FORMAT // 8] = L.FORMAT_PCAPNG
            words[L.S_ORDER // 8] = section.order == ">"
        words[L.S_LAST_US // 8] = section.last_us
        # A section begins without any, and is seen as it begins.
        first = words[L.S_INTERFACE_COUNT // 8]
        for number in range(first, len(section.interfaces)):
            if number == len(self._interfaces):
                self._interfaces = np.concatenate([self._interfaces, self._interfaces])
                words[L.S_INTERFACES // 8] = address(self._interfaces)
            self._interfaces[number] = interface_row(section.interfaces[number])
        words[L.S_INTERFACE_COUNT // 8] = len(section.interfaces)

    def run(self, window: Window) -> int:
        """Take packets from a window, and move its position on; says what comes next."""
        words = self.words
        if words[L.S_ROW // 8] == words[L.S_CAPACITY // 8]:
            return L.FULL
        if self._run is None:
            return L.SHORT if window.position == window.filled else L.REFUSED
        words[L.S_DATA // 8] = window.address
        words[L.S_POSITION // 8] = window.position
        words[L.S_END // 8] = window.filled
        while (status := self._run(self._words_at, 0, 0)) == L.CROWDED:
            self.flows.grow()
        window.position = words[L.S_POSITION // 8]
        return status

    def put(self, segment: Segment, at: int) -> None:
        """Put a segment that objects read, and whose payload stands there, into the next row."""
        number, is_high = self.keys.number(segment)
        values = (
            segment.timestamp_us,
            # Its key, where the kernel puts a flow.
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
        self.words[L.S_ROW // 8] = row + 1

    def tell_new(self, skipped: UnusedPackets) -> None:
        """Say which reasons to skip a packet came up, in their order."""
        if self._told == self.words[L.S_NEW_COUNT // 8]:
            return
        for reason, _ in self._reasons(self._told):
            skipped.add(reason, 0)
        self._told = self.words[L.S_NEW_COUNT // 8]

    def tell_all(self, skipped: UnusedPackets) -> int:
        """Say how many packets of the file were skipped; gives how many it has."""
        self.tell_new(skipped)
        for reason, count in self._reasons(0):
            skipped.add(reason, count)
        return self.words[L.S_PACKETS // 8]

    def _reasons(self, first: int) -> Iterator[tuple[str, int]]:
        count = self.words[L.S_NEW_COUNT // 8]
        for what in self._new_skipped[first:count].tolist():
            yield reason_of(what), int(self._skipped[what])


def reason_of(what: int) -> str:
    """Give the words for what the kernel counts by a number."""
    if what >= L.SKIPPED_LINK:
        return other_link(what - L.SKIPPED_LINK)
    if what >= L.SKIPPED_PROTOCOL:
        return other_transport(what - L.SKIPPED_PROTOCOL)
    return other_network(what)


def interface_row(interface: Interface) -> list[int]:
    """Give the words of an interface; where its times are not sure, objects read its packets."""
    per_second, offset_us = interface.per_second, interface.offset_seconds * L.MILLION
    how, number, most = L.TICKS_REFUSED, 1, 0
    if abs(offset_us) > L.MOST_US:
        offset_us = 0
    elif per_second % L.MILLION == 0 and per_second <= INT64_MAX:
        how, number = L.TICKS_DIVIDED, per_second // L.MILLION
        most = L.MOST_US * number
    elif L.MILLION % per_second == 0:
        how, number = L.TICKS_MULTIPLIED, L.MILLION // per_second
        most = L.MOST_US // number
    elif (bits := per_second.bit_length() - 1) <= L.MOST_SHIFTED and per_second == 1 << bits:
        how, number = L.TICKS_SHIFTED, bits
        most = (L.MOST_US // L.MILLION) << bits
    row = {
        L.I_LINKTYPE: interface.linktype,
        L.I_LINK: L.LINKS.get(interface.linktype, L.LINK_UNKNOWN),
        L.I_SNAPLEN: interface.snaplen,
        L.I_TICKS: how,
        L.I_NUMBER: number,
        L.I_MOST: min(most, INT64_MAX),
        L.I_OFFSET_US: offset_us,
    }
    return [row[word] for word in range(0, L.INTERFACE_ROW, 8)]
