"""The flows that the kernel numbered, and the connection key of each."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.capture.files.links import endpoint_name
from flexwire.capture.files.model import Segment
from flexwire.capture.reassembly.assembly import connection_key
from flexwire.columnar.program import address
from flexwire.kernels.capture import packets_layout as L  # noqa: N812 - a word before some ten

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_FIRST_FLOWS = 512
_SLOTS_PER_FLOW = 4
_IPV4_BYTES, _IPV6_BYTES, _PORT_BYTES = 4, 16, 2


class Keys:
    """Connection keys, numbered in the order in which they appear."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, segment: Segment) -> tuple[int, bool]:
        """Give the number of a segment's key, and whether its sender is the end after the "|"."""
        key = connection_key(segment)
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
        return number, segment.source > segment.destination


class Flows:
    """The flows of all files that a reader has read."""

    def __init__(self, words: memoryview[int], keys: Keys) -> None:
        self._words = words
        self._keys = keys
        self._rows = np.zeros((0, L.FLOW // 8), np.int64)
        self._slots: Numbers
        # Of each flow that is named: its key, and whether its sender is the higher end.
        self.key: Numbers = np.zeros(0, np.int32)
        self.is_high: Numbers = np.zeros(0, np.bool_)
        self._named = 0
        words[L.S_SEED // 8] = secrets.randbits(63)
        self.grow()

    def grow(self) -> None:
        """Make room for twice as many flows; the kernel puts those that it has into new slots."""
        count = len(self._rows)
        room = max(2 * count, _FIRST_FLOWS)
        self._rows = np.concatenate(
            [self._rows, np.zeros((room - count, L.FLOW // 8), np.int64)], axis=0
        )
        self.key = np.concatenate([self.key, np.zeros(room - count, np.int32)])
        self.is_high = np.concatenate([self.is_high, np.zeros(room - count, np.bool_)])
        self._slots = np.zeros(room * _SLOTS_PER_FLOW, np.int32)
        for word, value in (
            (L.S_FLOWS, address(self._rows)),
            (L.S_FLOW_CAPACITY, room),
            (L.S_SLOTS, address(self._slots)),
            (L.S_SLOT_MASK, len(self._slots) - 1),
            (L.S_SLOTTED, 0),
        ):
            self._words[word // 8] = value

    def name(self) -> None:
        """Find the keys of the flows that are new."""
        count = self._words[L.S_FLOW_COUNT // 8]
        for flow in range(self._named, count):
            source, destination = _ends(self._rows[flow])
            ends = Segment(0, source, destination, 0, 0, 0, b"")
            self.key[flow], self.is_high[flow] = self._keys.number(ends)
        self._named = count


def _ends(row: Numbers) -> tuple[str, str]:
    """Give the texts of both ends of a flow, the sender's first."""
    raw = row.tobytes()
    ports = int(row[L.W_PORTS // 8])
    size = _IPV4_BYTES if ports >> L.VERSION_BIT == 4 else _IPV6_BYTES  # noqa: PLR2004 - IPv4
    at = L.W_PORTS
    return (
        endpoint_name(raw[:size], int.from_bytes(raw[at : at + _PORT_BYTES], "big")),
        endpoint_name(
            raw[size : 2 * size],
            int.from_bytes(raw[at + _PORT_BYTES : at + 2 * _PORT_BYTES], "big"),
        ),
    )
