"""The rows of the tables of logs: what one task returns, in bounded memory.

```
keys of a piece ─▶ the last of each key ─▶ held ─▶ runs, sorted by hash ─▶ the last of each key
     batch_digests        in memory         files beside the output, read by ranges of hashes
```
Of two records of one key the one with the lower offset is superseded, and counted where they meet:
among those in memory, or between runs. What is held is bounded, however many keys there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from flexwire.columnar.batch_digests import KEYS_DTYPE, BatchDigests, least_of
from flexwire.columnar.program import bits
from flexwire.columnar.record_columns import MOMENT, to_moments
from flexwire.logs.pieces import TransactionOutcome, Transactions
from flexwire.logs.records import BatchDamage, digest_piece
from flexwire.records.inflation import INFLATION
from flexwire.records.record import COMPRESSIONS, TimestampType
from flexwire.tables.inflation import InflationMeter, digested_bytes
from flexwire.tables.log_samples import BatchExtents, SampleWindow, rewritten, sample_at
from flexwire.tables.log_schema import BATCHES, KEYS, LOG_SCHEMAS, OUTCOMES, RECORD_SIZES, REWRITES
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    RECORD_BATCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from flexwire.logs import LogPiece
    from flexwire.logs.files import Partition
    from flexwire.records.inflation import Inflation
    from flexwire.storage.input_file import InputFile

    Rows = Iterator[tuple[str, pa.RecordBatch]]
    Words = np.ndarray[Any, Any]


MOST_HELD: Final = 1 << 21
"""So many keys are held, 64 MB of them; as many again while they are sorted."""
PARTS: Final = 1024
"""A run is read in so many parts at the most, by the first bits of hashes."""
_SHIFT: Final = np.uint64(64 - PARTS.bit_length() + 1)
_INDEX: Final = np.dtype("<i8")
_INDEX_BYTES: Final = (PARTS + 1) * _INDEX.itemsize


class SupersededCounts(NamedTuple):
    """How many records were looked at, how many of them a later one supersedes, and their bytes."""

    keyed_records: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, other: SupersededCounts) -> SupersededCounts:
        """Both together."""
        return SupersededCounts(*(one + two for one, two in zip(self, other, strict=True)))


def last_of_each(keys: Words) -> tuple[Words, SupersededCounts]:
    """Give the keys in order of their hashes, of each only that with the highest offset."""
    found = _taken(keys, _by_hash(keys["hash"]))
    is_same = _is_same(found)
    if not is_same.any() and not (found["hash"][1:] == found["hash"][:-1]).any():
        return found, SupersededCounts()
    is_alike = found["hash"][1:] == found["hash"][:-1]
    is_later = found["offset"][1:] >= found["offset"][:-1]
    if (is_alike & ~(is_same & is_later)).any():
        # Hashes that are half the same, or offsets that go back.
        found = keys[np.lexsort((keys["offset"], keys["other"], keys["hash"]))]
        is_same = _is_same(found)
    is_last = np.append(~is_same, [True] * bool(len(keys)))
    gone = found["size"][~is_last]
    return _taken(found, np.flatnonzero(is_last)), SupersededCounts(0, len(gone), int(gone.sum()))


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
        self.found = SupersededCounts()
        self._spill = spill
        self._held: list[Words] = []
        self._count = 0

    def add(self, keys: Words) -> None:
        """Take in keys, which may be written over afterwards."""
        self._add(keys)
        self.found = self.found.plus(SupersededCounts(len(keys)))
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


class _KeyRun:
    def __init__(self, source: InputFile) -> None:
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


def superseded_between(runs: Iterable[InputFile], first: int, last: int) -> SupersededCounts:
    """Count what is superseded between the runs of a partition, in their parts up to ``last``."""
    read = [_KeyRun(one) for one in runs]
    counts = np.diff(sum(one.index for one in read))
    found = SupersededCounts()
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


_FLAGS: Final = {
    "is_transactional": TRANSACTIONAL_MASK,
    "is_control": CONTROL_MASK,
    "has_delete_horizon": DELETE_HORIZON_MASK,
}
_MOMENTS: Final = {
    "oldest_time": "oldest",
    "newest_time": "newest",
    "max_timestamp": "max_timestamp",
}
_COMPRESSIONS = pa.array([str(one.value) for one in COMPRESSIONS])
_TYPES: Final = [
    TimestampType.NO_TIMESTAMP_TYPE,
    TimestampType.CREATE_TIME,
    TimestampType.LOG_APPEND_TIME,
]
_TIMESTAMP_TYPES = pa.array([str(one.value) for one in _TYPES])
_OUTCOMES = pa.array([OUTCOMES.get(one) for one in TransactionOutcome], pa.string())
# Kafka's log cleaner leaves records of aborted transactions out when it looks for the last record
# of each key, and it does not come to those of a transaction that is open.
_SETTLED: Final = (TransactionOutcome.NONE, TransactionOutcome.COMMITTED)
_LOST: Final = "not read"


@dataclass(frozen=True, slots=True)
class LogWork:
    """What one task reads.

    Attributes:
        pieces: with the number of its partition each, those of one together and in order.
        shared: numbers of partitions of which other tasks have pieces too.
        windows: where pieces are to be sampled, by their number among these.
        seed: what hashes of keys begin with.
        transactions: how the transactions of each partition ended, by its number; a partition that
            has no transaction need not be there.
    """

    pieces: tuple[tuple[int, LogPiece], ...]
    shared: frozenset[int]
    windows: dict[int, tuple[SampleWindow, ...]]
    seed: int
    transactions: Mapping[int, Transactions] = field(default_factory=dict)


class LogTableRows:
    """Gives the rows of a task. ``spill`` is given runs of keys, each with its partition's number.

    ``inflation`` bounds what the batches inflate to. As soon as all of them take more than the
    bytes that are read allow, `BeyondAllowanceError` is raised. A batch that inflates beyond its
    own bound is damage.

    Attributes:
        spilled: how many keys each run of a partition has.
    """

    def __init__(
        self,
        work: LogWork,
        spill: Callable[[int, bytes], None],
        inflation: Inflation = INFLATION,
    ) -> None:
        self.spilled: dict[int, list[int]] = {}
        self._work = work
        self._spill = spill
        captured = sum(piece.stop - piece.start for _, piece in work.pieces)
        self._meter = InflationMeter(inflation, captured)

    def _heard(self, digests: dict[str, Words]) -> None:
        self._meter.take(digested_bytes(digests))
        self._meter.check()

    def __iter__(self) -> Rows:
        pieces = self._work.pieces
        starts = [at for at, (one, _) in enumerate(pieces) if not at or pieces[at - 1][0] != one]
        # Of a log without a byte there is no piece.
        for start, stop in pairwise([*starts, len(pieces)]):
            yield from self._partition(start, stop)

    def _partition(self, start: int, stop: int) -> Rows:
        """Give the rows of successive pieces of one partition."""
        number, first = self._work.pieces[start]
        runs = KeyRuns(lambda run: self._spill(number, run))
        transactions = self._work.transactions.get(number, Transactions())
        digests = BatchDigests(
            runs.add, self._work.seed, transactions.outcomes, _SETTLED, self._heard
        )
        for at in range(start, stop):
            piece = self._work.pieces[at][1]
            reading = _PieceRows(piece, digests, self._meter.inflation)
            for rows in reading:
                yield BATCHES, rows
            for window in self._work.windows.get(at, ()):
                sample = sample_at(window, reading.extents)
                again = None if sample is None else rewritten(piece, sample)
                if again is not None:
                    yield REWRITES, again
        digests.finish()
        runs.close(is_whole=number not in self._work.shared)
        if runs.spilled:
            self.spilled[number] = runs.spilled
        yield RECORD_SIZES, _size_rows(first.partition, digests.sizes)
        yield KEYS, key_row(first.partition, runs.found)


class _PieceRows:
    """Reads a piece, and has its `extents` then: of every batch there is."""

    def __init__(self, piece: LogPiece, digests: BatchDigests, inflation: Inflation) -> None:
        self._piece = piece
        self._digests = digests
        self._inflation = inflation
        self._damaged: list[BatchDamage] = []
        self._extents: list[BatchExtents] = []

    @property
    def extents(self) -> BatchExtents:
        """Where its batches stand."""
        return BatchExtents(*(np.concatenate(one) for one in zip(*self._extents, strict=True)))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for found in digest_piece(self._piece, self._digests, self._inflation):
            if isinstance(found, BatchDamage):
                self._damaged.append(found)
            else:
                yield self._batches(found)
        yield self._batches(self._digests.take())
        yield self._damage()

    def _batches(self, digests: pa.RecordBatch) -> pa.RecordBatch:
        columns = {
            name: digests.column(name).to_numpy(zero_copy_only=True)
            for name in digests.schema.names
        }
        is_control = columns["attributes"] & CONTROL_MASK != 0
        self._extents.append(
            BatchExtents(
                columns["position"], columns["size"], columns["uncompressed_size"], is_control
            )
        )
        made = _facts(columns) | {
            name: pa.array(columns[name])
            for name in digests.schema.names
            if name not in _MOMENTS and name != "outcome"
        }
        return _placed(self._piece, BATCHES, made, digests.num_rows)

    def _damage(self) -> pa.RecordBatch:
        """Give a row for each error, and for whatever else no batch has: no byte is left out."""
        positions, sizes = self._known()
        starts = np.concatenate([[self._piece.start], positions + sizes])
        gaps = np.concatenate([positions, [self._piece.stop]]) - starts
        is_gap = gaps > 0
        starts, gaps = starts[is_gap], gaps[is_gap]
        reasons: list[dict[str, None]] = [{} for _ in starts]
        at = np.searchsorted(starts, [one.position for one in self._damaged], side="right") - 1
        for gap, one in zip(at.tolist(), self._damaged, strict=True):
            reasons[gap][one.reason] = None
        rows = [
            (start, size, "; ".join(told) or _LOST)
            for start, size, told in zip(starts.tolist(), gaps.tolist(), reasons, strict=True)
        ]
        made = {
            "position": pa.array([one[0] for one in rows], pa.int64()),
            "size": pa.array([one[1] for one in rows], pa.int64()),
            "error": pa.array([one[2] for one in rows], pa.string()),
        }
        return _placed(self._piece, BATCHES, made, len(rows))

    def _known(self) -> tuple[Words, Words]:
        """Give where all batches stand, those that are another segment's too, and their bytes."""
        extents = self.extents
        parts = [np.stack([extents.positions, extents.sizes]), *self._digests.skipped]
        self._digests.skipped.clear()
        positions, sizes = np.concatenate(parts, axis=1)
        order = np.argsort(positions, kind="stable")
        return positions[order], sizes[order]


def _facts(columns: dict[str, Words]) -> dict[str, pa.Array]:
    """Give the columns that are made of several words, or of some bits of one."""
    attributes, magic = columns["attributes"], columns["magic"]
    is_batch = magic == RECORD_BATCH
    is_append = attributes & TIMESTAMP_TYPE_MASK != 0
    made = {name: pa.array(is_batch & (attributes & mask != 0)) for name, mask in _FLAGS.items()}
    made |= {name: _moments(columns[word]) for name, word in _MOMENTS.items()}
    made["compression"] = _COMPRESSIONS.take(pa.array(attributes & COMPRESSION_MASK))
    kinds = np.where(magic == 0, 0, 1 + is_append)
    made["outcome"] = _OUTCOMES.take(pa.array(columns["outcome"]))
    made["timestamp_type"] = _TIMESTAMP_TYPES.take(pa.array(kinds))
    return made


def _moments(milliseconds: Words) -> pa.Array:
    moments = milliseconds.copy()
    valid = to_moments(moments)
    buffers = [None if valid is None else bits(valid), pa.py_buffer(moments)]
    return pa.Array.from_buffers(MOMENT, len(moments), buffers)


def _placed(piece: LogPiece, table: str, made: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Give rows of a table with the columns of their place; what is not made is null."""
    place = {
        "topic": piece.partition.topic,
        "partition": piece.partition.partition,
        "file": piece.log.name,
    }
    schema = LOG_SCHEMAS[table]
    arrays = [
        made[one.name].cast(one.type)
        if one.name in made
        else pa.repeat(pa.scalar(place.get(one.name), one.type), rows)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _size_rows(partition: Partition, sizes: Words) -> pa.RecordBatch:
    kinds = np.flatnonzero(sizes).tolist()
    rows = [
        {**partition._asdict(), "size": least_of(one), "records": int(sizes[one])} for one in kinds
    ]
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMAS[RECORD_SIZES])


def key_row(partition: Partition, found: SupersededCounts) -> pa.RecordBatch:
    """Give the row of what was found of a partition; none where nothing was looked at."""
    row = {
        **partition._asdict(),
        "keyed_records": found.keyed_records,
        "superseded_records": found.records,
        "superseded_bytes": found.bytes,
    }
    rows = [row] if any(found) else []
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMAS[KEYS])
