"""State that is kept from chunk to chunk, and the outcomes of frames that are not decoded."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a prefix for about thirty names
from flexwire.columnar.program import address
from flexwire.kernels import load_kernel
from flexwire.protocol import WITHHELD
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.columnar.arrays import NumpyArray


_FEW = 64
# The constants of the hash function, which the kernel also uses.
_HASH, _HASH_PRIME, _HASH_MASK, _HASH_SHIFT = 0x4BF29CE484222325, 0x100000001B3, (1 << 62) - 1, 29


class ClientIds:
    """The numbers of client ids, and the hash table in which a kernel looks them up by bytes."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._bytes: list[NumpyArray] = []
        self.extents = np.zeros((_FEW, L.EXTENT), np.int64)
        self.table = np.zeros(4 * _FEW, np.int64)
        for text in texts:
            self.number(text)

    def number(self, text: str | None) -> int:
        """Return the number of a client id: a new number for a new id, and `NO_CLIENT` for null."""
        if text is None:
            return L.NO_CLIENT
        number = self._numbers.setdefault(text, len(self._numbers))
        if number == len(self.texts):
            self.texts.append(text)
            if number == len(self.extents):
                self.extents = np.concatenate((self.extents, np.zeros_like(self.extents)))
                self.table = np.zeros(2 * len(self.table), np.int64)
                for place, encoded in enumerate(self._bytes):
                    self._enter(place, encoded)
            # The array has one extra byte, because an empty array has no address.
            self._bytes.append(np.frombuffer(text.encode() + b"\0", np.uint8))
            self.extents[number] = address(self._bytes[number]), len(self._bytes[number]) - 1
            self._enter(number, self._bytes[number])
        return number

    def text(self, number: int) -> str | None:
        """Return the client id with this number."""
        return None if number == L.NO_CLIENT else self.texts[number]

    def _enter(self, number: int, data: NumpyArray) -> None:
        code = _HASH
        for byte in data[:-1].tolist():
            code = ((code ^ byte) * _HASH_PRIME) & _HASH_MASK
        code ^= code >> _HASH_SHIFT
        mask = len(self.table) - 1
        while self.table[code & mask]:
            code += 1
        self.table[code & mask] = number + 1


class PendingTable:
    """The waiting entries, in memory that kernels change.

    Without kernels, entries are only stored.
    """

    def __init__(self, states: NumpyArray, entries: NumpyArray) -> None:
        self.states = states
        self.words = L.PairingWords()
        self.address = ctypes.addressof(self.words)
        self._kernel = load_kernel("pairing")
        self._make(max(_FEW, 2 * len(entries)))
        self._put(entries)

    def use(self, states: NumpyArray) -> None:
        """Continue with the states of additional connections."""
        self.states = states
        self.words.states = address(states)

    def take(self, connection: int) -> NumpyArray:
        """Remove and return the entries of one connection (requests first), or of all of them."""
        used = self.words.used
        taken = np.empty((max(used, 1), L.ENTRY), np.int64)
        self.words.entries = address(taken)
        self.words.whose = connection
        self.words.count = len(self.states)
        count = self._kernel.drain(self.address)
        return taken[:count]

    def grow(self) -> None:
        """Make room for twice the number of entries."""
        entries = self.take(L.ALL)
        self._make(2 * self.words.capacity)
        self._put(entries)

    def entries(self) -> NumpyArray:
        """Return all waiting entries. They also remain in the table."""
        entries = self.take(L.ALL)
        self._put(entries)
        return entries

    def _make(self, capacity: int) -> None:
        # The number of chains is a power of two, and at least the number of entries.
        buckets = 1 << (capacity - 1).bit_length()
        self._pool = np.empty((capacity, L.POOLED), np.int64)
        self._heads = np.full(buckets, L.NOWHERE, np.int64)
        self._tails = np.full(buckets, L.NOWHERE, np.int64)
        self.words.states = address(self.states)
        self.words.pool = address(self._pool)
        self.words.capacity = capacity
        self.words.used = 0
        self.words.free = L.NOWHERE
        self.words.heads = address(self._heads)
        self.words.tails = address(self._tails)
        self.words.mask = buckets - 1
        self.words.most = DEFAULT_IN_FLIGHT

    def _put(self, entries: NumpyArray) -> None:
        self.words.entries = address(entries) if len(entries) else 0
        self.words.count = len(entries)
        self._kernel.restore(self.address)


def make_states(count: int) -> NumpyArray:
    """Return the initial states of connections, before any frame."""
    states = np.full((count, L.STATE), L.NOWHERE, np.int64)
    states[:, L.FLAGS] = 0
    states[:, L.WAITING : L.FIRST] = 0
    return states


FAILED: Final = "failed"
TOKEN: Final = "token"  # noqa: S105 - an outcome, not a password
UNPAIRED: Final = "unpaired"
NOT_KAFKA: Final = "not Kafka"
"""The outcome of frames on a connection that is not Kafka."""

UNBELIEVED: Final = "nothing on this connection reads as Kafka"
UNPAIRED_REASON: Final = "the capture contains no request with correlation id %d on this connection"

WITHHELD_BYTES = WITHHELD.encode()


def withhold_tagged_fields(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a value of `RAW_TAGGED_FIELDS` with "withheld" instead of the fields' bytes."""
    return [{**field, "data": WITHHELD_BYTES} for field in raw]
