"""Records whose key comes later again in their partition, found by the hashes of keys.

```
keys of a piece ─▶ the last of each key ─▶ held ─▶ runs, sorted by hash ─▶ the last of each key
     batch_digests        in memory         files beside the output, read by ranges of hashes
```
Of two records of one key the one with the lower offset is superseded, and counted where they meet:
among those in memory, or between runs. What is held is bounded, however many keys there are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from flexwire.columnar.batch_digests import KEYS_DTYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flexwire.storage.source import Source

    Words = np.ndarray[Any, Any]

MOST_HELD: Final = 1 << 21
"""So many keys are held, 64 MB of them; as many again while they are sorted."""
PARTS: Final = 1024
"""A run is read in so many parts at the most, by the first bits of hashes."""
_SHIFT: Final = np.uint64(64 - PARTS.bit_length() + 1)
_INDEX: Final = np.dtype("<i8")
_INDEX_BYTES: Final = (PARTS + 1) * _INDEX.itemsize


class Superseded(NamedTuple):
    """How many records were looked at, how many of them a later one supersedes, and their bytes."""

    keyed_records: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, other: Superseded) -> Superseded:
        """Both together."""
        return Superseded(*(one + two for one, two in zip(self, other, strict=True)))


def last_of_each(keys: Words) -> tuple[Words, Superseded]:
    """Give the keys in order of their hashes, of each only that with the highest offset."""
    found = _taken(keys, _by_hash(keys["hash"]))
    is_same = _is_same(found)
    if not is_same.any() and not (found["hash"][1:] == found["hash"][:-1]).any():
        return found, Superseded()
    is_alike = found["hash"][1:] == found["hash"][:-1]
    is_later = found["offset"][1:] >= found["offset"][:-1]
    if (is_alike & ~(is_same & is_later)).any():
        # Hashes that are half the same, or offsets that go back.
        found = keys[np.lexsort((keys["offset"], keys["other"], keys["hash"]))]
        is_same = _is_same(found)
    is_last = np.append(~is_same, [True] * bool(len(keys)))
    gone = found["size"][~is_last]
    return _taken(found, np.flatnonzero(is_last)), Superseded(0, len(gone), int(gone.sum()))


def _by_hash(hashes: Words) -> Words:
    """Give the order of hashes; of two that are the same the first comes first."""
    # To sort words takes a seventh of what finding an order takes. The row stands in the last bits
    # of each, and seldom do two hashes differ in these alone.
    rows = np.uint64((1 << len(hashes).bit_length()) - 1)
    words = (hashes & ~rows) | np.arange(len(hashes), dtype=np.uint64)
    words.sort()
    order: Words = (words & rows).astype(np.int64)
    sorted_hashes = hashes[order]
    if (sorted_hashes[1:] < sorted_hashes[:-1]).any():
        return np.argsort(hashes, kind="stable")
    return order


def _taken(keys: Words, rows: Words) -> Words:
    """Give some rows; without looking at their fields, in half the time."""
    whole = np.ascontiguousarray(keys).view(f"V{KEYS_DTYPE.itemsize}")
    return whole.take(rows).view(KEYS_DTYPE)


def _is_same(keys: Words) -> Words:
    same: Words = keys["hash"][1:] == keys["hash"][:-1]
    same &= keys["other"][1:] == keys["other"][:-1]
    return same


class KeyRuns:
    """The keys of one partition that a task sees; what it cannot hold goes to ``spill``, in runs.

    Attributes:
        spilled: how many keys each run has.
        found: what was superseded so far.
    """

    def __init__(self, spill: Callable[[bytes], None]) -> None:
        self.spilled: list[int] = []
        self.found = Superseded()
        self._spill = spill
        self._held: list[Words] = []
        self._count = 0

    def add(self, keys: Words) -> None:
        """Take in keys, which may be written over afterwards."""
        self._add(keys)
        self.found = self.found.plus(Superseded(len(keys)))
        if self._count > MOST_HELD:
            self._merge()

    def _add(self, keys: Words) -> None:
        kept, superseded = last_of_each(keys)
        self.found = self.found.plus(superseded)
        if len(kept) > MOST_HELD // 4:
            # Most of them stand once, and to sort them again with others would find little.
            self._write(kept)
        else:
            self._held.append(kept)
            self._count += len(kept)

    def _merge(self) -> None:
        held, self._held, self._count = self._held, [], 0
        if held:
            self._add(np.concatenate(held))

    def _write(self, keys: Words) -> None:
        self._spill(packed(keys))
        self.spilled.append(len(keys))

    def close(self, *, is_whole: bool) -> None:
        """Be done. A partition that is ``whole`` has no keys but these: no run may be needed."""
        self._merge()
        if not is_whole or self.spilled:
            for keys in self._held:
                self._write(keys)
        self._held, self._count = [], 0


def packed(keys: Words) -> bytes:
    """Give keys that are in order of their hashes as a run: an index of its parts, and the keys."""
    starts = np.arange(PARTS, dtype=np.uint64) << _SHIFT
    index = np.append(np.searchsorted(keys["hash"], starts), len(keys)).astype(_INDEX)
    return bytes(index.tobytes() + np.ascontiguousarray(keys).tobytes())


class _Run:
    def __init__(self, source: Source) -> None:
        self._source = source
        with source.open(0, _INDEX_BYTES) as file:
            self.index: Words = np.frombuffer(file.read(), _INDEX)

    def read(self, first: int, last: int) -> Words:
        """Give the keys of some parts."""
        start, stop = (
            _INDEX_BYTES + KEYS_DTYPE.itemsize * int(self.index[one]) for one in (first, last)
        )
        with self._source.open(start, stop) as file:
            return np.frombuffer(file.read(), KEYS_DTYPE)


def superseded_between(runs: Iterable[Source], first: int, last: int) -> Superseded:
    """Count what is superseded between the runs of a partition, in their parts up to ``last``."""
    read = [_Run(one) for one in runs]
    counts = np.diff(sum(one.index for one in read))
    found = Superseded()
    for start, stop in _spans(counts[first:last].tolist(), first):
        keys = np.concatenate([one.read(start, stop) for one in read])
        found = found.plus(last_of_each(keys)[1])
    return found


def _spans(counts: Sequence[int], first: int) -> Iterator[tuple[int, int]]:
    """Give spans of parts that have no more keys than can be held, or are one part."""
    start, held = first, 0
    for part, count in enumerate(counts, first):
        if held and held + count > MOST_HELD:
            yield start, part
            start, held = part, 0
        held += count
    if held:
        yield start, first + len(counts)


class KeyWork(NamedTuple):
    """Some parts of a partition's runs, for one task."""

    partition: int
    first: int
    last: int

    @classmethod
    def of(cls, partition: int, keys: int, most: int) -> list[Self]:
        """Cut a partition of so many keys into works of about ``most``."""
        count = min(PARTS, -(-keys // most))
        ends = [PARTS * one // count for one in range(count + 1)]
        return [cls(partition, *pair) for pair in pairwise(ends)]
