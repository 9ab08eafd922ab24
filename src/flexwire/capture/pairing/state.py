"""What lasts from chunk to chunk, and what may become of a frame before its body is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from flexwire.columnar.program import address
from flexwire.kernels.capture import turns_layout as L  # noqa: N812 - a word in front of some thirty
from flexwire.kernels.engine import kernel
from flexwire.protocol import WITHHELD
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.kernels.engine import Kernel

    Words = np.ndarray[Any, Any]


WORD = 8
_FEW = 64
# As the kernel has them.
_HASH, _HASH_PRIME, _HASH_MASK, _HASH_SHIFT = 0x4BF29CE484222325, 0x100000001B3, (1 << 62) - 1, 29


class Clients:
    """Client ids by number, and the hash table in which a kernel finds them by their bytes."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._bytes: list[np.ndarray[Any, Any]] = []
        self.extents = np.zeros((_FEW, L.EXTENT // WORD), np.int64)
        self.table = np.zeros(4 * _FEW, np.int64)
        for one in texts:
            self.number(one)

    def number(self, text: str | None) -> int:
        """Give the number of a client id, a new one if it is new; `NO_CLIENT` for null."""
        if text is None:
            return L.NO_CLIENT
        found = self._numbers.setdefault(text, len(self._numbers))
        if found == len(self.texts):
            self.texts.append(text)
            if found == len(self.extents):
                self.extents = np.concatenate((self.extents, np.zeros_like(self.extents)))
                self.table = np.zeros(2 * len(self.table), np.int64)
                for known, one in enumerate(self._bytes):
                    self._enter(known, one)
            # One byte more, for where nothing is there is no address.
            self._bytes.append(np.frombuffer(text.encode() + b"\0", np.uint8))
            self.extents[found] = address(self._bytes[found]), len(self._bytes[found]) - 1
            self._enter(found, self._bytes[found])
        return found

    def text(self, number: int) -> str | None:
        """Give the client id of a number."""
        return None if number == L.NO_CLIENT else self.texts[number]

    def _enter(self, number: int, data: np.ndarray[Any, Any]) -> None:
        code = _HASH
        for byte in data[:-1].tolist():
            code = ((code ^ byte) * _HASH_PRIME) & _HASH_MASK
        code ^= code >> _HASH_SHIFT
        mask = len(self.table) - 1
        while self.table[code & mask]:
            code += 1
        self.table[code & mask] = number + 1


class Waiting:
    """The entries that wait, where kernels take them in and out; without them they are kept."""

    def __init__(self, states: Words, entries: Words) -> None:
        self.states = states
        self.words = np.zeros(L.TURNS // WORD, np.int64)
        self._drain, self._restore = _needed("drain_turns"), _needed("restore_turns")
        self._make(max(_FEW, 2 * len(entries)))
        self._put(entries)

    def set(self, word: int, value: int) -> None:
        """Set a word of the run."""
        self.words[word // WORD] = value

    def get(self, word: int) -> int:
        """Give a word of the run."""
        return int(self.words[word // WORD])

    def use(self, states: Words) -> None:
        """Go on with the states of more connections."""
        self.states = states
        self.set(L.T_STATES, address(states))

    def take(self, connection: int) -> Words:
        """Take out what waits on one connection, requests before responses, or of all of them."""
        used = self.get(L.T_USED)
        taken = np.empty((max(used, 1), L.ENTRY // WORD), np.int64)
        self.set(L.T_ENTRIES, address(taken))
        self.set(L.T_WHOSE, connection)
        self.set(L.T_COUNT, len(self.states))
        count = self._drain(address(self.words), 0, 0)
        return taken[:count]

    def grow(self) -> None:
        """Make room for twice as many entries."""
        entries = self.take(L.ALL)
        self._make(2 * self.get(L.T_CAPACITY))
        self._put(entries)

    def entries(self) -> Words:
        """Give all that waits, which goes on waiting."""
        entries = self.take(L.ALL)
        self._put(entries)
        return entries

    def _make(self, capacity: int) -> None:
        # A power of two, at least as many chains as entries.
        buckets = 1 << (capacity - 1).bit_length()
        self._pool = np.empty((capacity, L.POOLED // WORD), np.int64)
        self._heads = np.full(buckets, L.NOWHERE, np.int64)
        self._tails = np.full(buckets, L.NOWHERE, np.int64)
        self.set(L.T_STATES, address(self.states))
        self.set(L.T_POOL, address(self._pool))
        self.set(L.T_CAPACITY, capacity)
        self.set(L.T_USED, 0)
        self.set(L.T_FREE, L.NOWHERE)
        self.set(L.T_HEADS, address(self._heads))
        self.set(L.T_TAILS, address(self._tails))
        self.set(L.T_MASK, buckets - 1)
        self.set(L.T_MOST, DEFAULT_IN_FLIGHT)

    def _put(self, entries: Words) -> None:
        self.set(L.T_ENTRIES, address(entries) if len(entries) else 0)
        self.set(L.T_COUNT, len(entries))
        self._restore(address(self.words), 0, 0)


def _needed(name: str) -> Kernel:
    found = kernel(name)
    if found is None:
        raise RuntimeError(f"{name} is compiled with read_turns, which is there")
    return found


def fresh_states(count: int) -> Words:
    """Give the states of connections of which nothing was seen."""
    states = np.full((count, L.STATE // WORD), L.NOWHERE, np.int64)
    states[:, L.S_FLAGS // WORD] = 0
    states[:, L.S_WAITING // WORD : L.S_FIRST // WORD] = 0
    return states


FAILED: Final = "failed"
TOKEN: Final = "token"  # noqa: S105 - the name of an outcome
UNPAIRED: Final = "unpaired"
NOT_KAFKA: Final = "not Kafka"
"""The outcome of frames of a connection that is not Kafka."""

UNBELIEVED: Final = "nothing on this connection reads as Kafka"
UNPAIRED_REASON: Final = "the capture holds no request with correlation id %d on this connection"

WITHHELD_BYTES = WITHHELD.encode()


def withheld_tagged_fields(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a value of `RAW_TAGGED_FIELDS` with "withheld" in the place of the fields' bytes."""
    return [{**one, "data": WITHHELD_BYTES} for one in raw]
