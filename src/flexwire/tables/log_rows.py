"""Build the rows of the tables of logs for one task, in limited memory.

```
keys of a piece ─▶ the last of each key ─▶ held ─▶ runs, sorted by hash ─▶ the last of each key
     batch_digests        in memory         files beside the output, read by ranges of hashes
```
If two records have the same key, the record with the lower offset is superseded. A superseded
record is counted where both records are found: in memory, or when runs are merged. Memory use is
limited, no matter how many keys there are.
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
"""The maximum number of keys that are held. These keys take 64 MB, and as much again while they are
being sorted.
"""
PARTS: Final = 1024
"""The maximum number of parts in which a run is read, by the first bits of the hashes."""
_SHIFT: Final = np.uint64(64 - PARTS.bit_length() + 1)
_INDEX: Final = np.dtype("<i8")
_INDEX_BYTES: Final = (PARTS + 1) * _INDEX.itemsize


class SupersededCounts(NamedTuple):
    """The number of records with keys, the number of superseded records, and their bytes."""

    keyed_records: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, other: SupersededCounts) -> SupersededCounts:
        """Return the sum of two counts."""
        return SupersededCounts(*(mine + two for mine, two in zip(self, other, strict=True)))


def last_of_each(keys: Words) -> tuple[Words, SupersededCounts]:
    """Return the keys in the order of their hashes, each with only its highest offset."""
    ordered = _taken(keys, _by_hash(keys["hash"]))
    is_same = _is_same(ordered)
    if not is_same.any() and not (ordered["hash"][1:] == ordered["hash"][:-1]).any():
        return ordered, SupersededCounts()
    is_alike = ordered["hash"][1:] == ordered["hash"][:-1]
    is_later = ordered["offset"][1:] >= ordered["offset"][:-1]
    if (is_alike & ~(is_same & is_later)).any():
        # Only the first halves of the hashes are equal, or offsets decrease.
        ordered = keys[np.lexsort((keys["offset"], keys["other"], keys["hash"]))]
        is_same = _is_same(ordered)
    is_last = np.append(~is_same, [True] * bool(len(keys)))
    gone = ordered["size"][~is_last]
    return _taken(ordered, np.flatnonzero(is_last)), SupersededCounts(0, len(gone), int(gone.sum()))


def _by_hash(hashes: Words) -> Words:
    """Return the order of hashes. Equal hashes keep their order."""
    # Sorting words takes a seventh of the time of an argsort. The row number replaces the last bits
    # of each hash; two hashes seldom differ only in these bits.
    rows = np.uint64((1 << len(hashes).bit_length()) - 1)
    words = (hashes & ~rows) | np.arange(len(hashes), dtype=np.uint64)
    words.sort()
    order: Words = (words & rows).astype(np.int64)
    sorted_hashes = hashes[order]
    if (sorted_hashes[1:] < sorted_hashes[:-1]).any():
        return np.argsort(hashes, kind="stable")
    return order


def _taken(keys: Words, rows: Words) -> Words:
    """Return some rows. Copying a row as opaque bytes takes half the time."""
    whole = np.ascontiguousarray(keys).view(f"V{KEYS_DTYPE.itemsize}")
    return whole.take(rows).view(KEYS_DTYPE)


def _is_same(keys: Words) -> Words:
    same: Words = keys["hash"][1:] == keys["hash"][:-1]
    same &= keys["other"][1:] == keys["other"][:-1]
    return same


class KeyRuns:
    """The keys of one partition. If they do not fit, ``spill`` receives them in sorted runs.

    Attributes:
        spilled: the number of keys in each run.
        superseded: the counts of superseded records so far.
    """

    def __init__(self, spill: Callable[[bytes], None]) -> None:
        self.spilled: list[int] = []
        self.superseded = SupersededCounts()
        self._spill = spill
        self._held: list[Words] = []
        self._count = 0

    def add(self, keys: Words) -> None:
        """Add keys. The caller can overwrite the array afterwards."""
        self._add(keys)
        self.superseded = self.superseded.plus(SupersededCounts(len(keys)))
        if self._count > MOST_HELD:
            self._merge()

    def _add(self, keys: Words) -> None:
        last_keys, superseded = last_of_each(keys)
        self.superseded = self.superseded.plus(superseded)
        if len(last_keys) > MOST_HELD // 4:
            # Most of these keys occur once, so sorting them again with other keys would find few
            # duplicates.
            self._write(last_keys)
        else:
            self._held.append(last_keys)
            self._count += len(last_keys)

    def _merge(self) -> None:
        held_keys, self._held, self._count = self._held, [], 0
        if held_keys:
            self._add(np.concatenate(held_keys))

    def _write(self, keys: Words) -> None:
        self._spill(packed(keys))
        self.spilled.append(len(keys))

    def close(self, *, is_whole: bool) -> None:
        """Finish adding keys.

        If ``is_whole`` is true, the partition has no other keys, and a run may be unnecessary.
        """
        self._merge()
        if not is_whole or self.spilled:
            for keys in self._held:
                self._write(keys)
        self._held, self._count = [], 0


def packed(keys: Words) -> bytes:
    """Return keys as a run: an index of its parts, and the keys in the order of their hashes."""
    starts = np.arange(PARTS, dtype=np.uint64) << _SHIFT
    index = np.append(np.searchsorted(keys["hash"], starts), len(keys)).astype(_INDEX)
    return bytes(index.tobytes() + np.ascontiguousarray(keys).tobytes())


class _KeyRun:
    def __init__(self, source: InputFile) -> None:
        self._source = source
        with source.open(0, _INDEX_BYTES) as file:
            self.index: Words = np.frombuffer(file.read(), _INDEX)

    def read(self, first: int, last: int) -> Words:
        """Return the keys of some parts of a run."""
        start, stop = (
            _INDEX_BYTES + KEYS_DTYPE.itemsize * int(self.index[part]) for part in (first, last)
        )
        with self._source.open(start, stop) as file:
            return np.frombuffer(file.read(), KEYS_DTYPE)


def superseded_between(runs: Iterable[InputFile], first: int, last: int) -> SupersededCounts:
    """Count the superseded records between a partition's runs, in the parts up to ``last``."""
    read = [_KeyRun(run) for run in runs]
    counts = np.diff(sum(run.index for run in read))
    superseded = SupersededCounts()
    for start, stop in _spans(counts[first:last].tolist(), first):
        keys = np.concatenate([run.read(start, stop) for run in read])
        superseded = superseded.plus(last_of_each(keys)[1])
    return superseded


def _spans(counts: Sequence[int], first: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of parts that fit into memory, or that consist of one part."""
    start, size = first, 0
    for part, count in enumerate(counts, first):
        if size and size + count > MOST_HELD:
            yield start, part
            start, size = part, 0
        size += count
    if size:
        yield start, first + len(counts)


class KeyWork(NamedTuple):
    """The parts of a partition's runs that one task merges."""

    partition: int
    first: int
    last: int

    @classmethod
    def of(cls, partition: int, keys: int, most: int) -> list[Self]:
        """Divide the keys of a partition into units of work of about ``most`` keys each."""
        count = min(PARTS, -(-keys // most))
        ends = [PARTS * part // count for part in range(count + 1)]
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
_COMPRESSIONS = pa.array([str(compression.value) for compression in COMPRESSIONS])
_TYPES: Final = [
    TimestampType.NO_TIMESTAMP_TYPE,
    TimestampType.CREATE_TIME,
    TimestampType.LOG_APPEND_TIME,
]
_TIMESTAMP_TYPES = pa.array([str(timestamp_type.value) for timestamp_type in _TYPES])
_OUTCOMES = pa.array([OUTCOMES.get(outcome) for outcome in TransactionOutcome], pa.string())
# When Kafka's log cleaner looks for the last record of each key, it ignores the records of aborted
# transactions. It does not process the records of open transactions at all.
_SETTLED: Final = (TransactionOutcome.NONE, TransactionOutcome.COMMITTED)
_LOST: Final = "not read"


@dataclass(frozen=True, slots=True)
class LogWork:
    """The input of one task.

    Attributes:
        pieces: the pieces, each with the number of its partition. Pieces of a partition are
            adjacent and in order.
        shared: the numbers of partitions that other tasks also read.
        windows: where to sample pieces, by the number of the piece.
        seed: the start value for key hashes.
        transactions: how the transactions of each partition ended, by its number. A partition
            without transactions may be missing.
    """

    pieces: tuple[tuple[int, LogPiece], ...]
    shared: frozenset[int]
    windows: dict[int, tuple[SampleWindow, ...]]
    seed: int
    transactions: Mapping[int, Transactions] = field(default_factory=dict)


class LogTableRows:
    """Yield the rows of a task. ``spill`` receives runs of keys and their partition's number.

    ``inflation`` limits the inflated size of the batches. If all batches together exceed the
    allowance for the bytes that were read, `BeyondAllowanceError` is raised. A batch that exceeds
    its own limit when inflated counts as damaged.

    Attributes:
        spilled: the number of keys in each run, by partition.
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
        starts = [
            at for at, (number, _) in enumerate(pieces) if not at or pieces[at - 1][0] != number
        ]
        # An empty log has no piece.
        for start, stop in pairwise([*starts, len(pieces)]):
            yield from self._partition(start, stop)

    def _partition(self, start: int, stop: int) -> Rows:
        """Yield the rows of successive pieces of one partition."""
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
        yield KEYS, key_row(first.partition, runs.superseded)


class _PieceRows:
    """Read a piece. Afterwards, ``extents`` contains the places of all batches."""

    def __init__(self, piece: LogPiece, digests: BatchDigests, inflation: Inflation) -> None:
        self._piece = piece
        self._digests = digests
        self._inflation = inflation
        self._damaged: list[BatchDamage] = []
        self._extents: list[BatchExtents] = []

    @property
    def extents(self) -> BatchExtents:
        """The places of the piece's batches."""
        return BatchExtents(
            *(np.concatenate(columns) for columns in zip(*self._extents, strict=True))
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for item in digest_piece(self._piece, self._digests, self._inflation):
            if isinstance(item, BatchDamage):
                self._damaged.append(item)
            else:
                yield self._batches(item)
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
        columns_by_name = _facts(columns) | {
            name: pa.array(columns[name])
            for name in digests.schema.names
            if name not in _MOMENTS and name != "outcome"
        }
        return _placed(self._piece, BATCHES, columns_by_name, digests.num_rows)

    def _damage(self) -> pa.RecordBatch:
        """Return rows for errors and for all other bytes outside batches."""
        positions, sizes = self._covered()
        starts = np.concatenate([[self._piece.start], positions + sizes])
        gaps = np.concatenate([positions, [self._piece.stop]]) - starts
        is_gap = gaps > 0
        starts, gaps = starts[is_gap], gaps[is_gap]
        reasons: list[dict[str, None]] = [{} for _ in starts]
        at = (
            np.searchsorted(starts, [damage.position for damage in self._damaged], side="right") - 1
        )
        for gap, damage in zip(at.tolist(), self._damaged, strict=True):
            reasons[gap][damage.reason] = None
        rows = [
            (start, size, "; ".join(reason) or _LOST)
            for start, size, reason in zip(starts.tolist(), gaps.tolist(), reasons, strict=True)
        ]
        columns_by_name = {
            "position": pa.array([row[0] for row in rows], pa.int64()),
            "size": pa.array([row[1] for row in rows], pa.int64()),
            "error": pa.array([row[2] for row in rows], pa.string()),
        }
        return _placed(self._piece, BATCHES, columns_by_name, len(rows))

    def _covered(self) -> tuple[Words, Words]:
        """Return the places and sizes of all batches, even those counted for another segment."""
        extents = self.extents
        parts = [np.stack([extents.positions, extents.sizes]), *self._digests.skipped]
        self._digests.skipped.clear()
        positions, sizes = np.concatenate(parts, axis=1)
        order = np.argsort(positions, kind="stable")
        return positions[order], sizes[order]


def _facts(columns: dict[str, Words]) -> dict[str, pa.Array]:
    """Return the columns that are computed from several words, or from some bits of one word."""
    attributes, magic = columns["attributes"], columns["magic"]
    is_batch = magic == RECORD_BATCH
    is_append = attributes & TIMESTAMP_TYPE_MASK != 0
    columns_by_name = {
        name: pa.array(is_batch & (attributes & mask != 0)) for name, mask in _FLAGS.items()
    }
    columns_by_name |= {name: _moments(columns[word]) for name, word in _MOMENTS.items()}
    columns_by_name["compression"] = _COMPRESSIONS.take(pa.array(attributes & COMPRESSION_MASK))
    kinds = np.where(magic == 0, 0, 1 + is_append)
    columns_by_name["outcome"] = _OUTCOMES.take(pa.array(columns["outcome"]))
    columns_by_name["timestamp_type"] = _TIMESTAMP_TYPES.take(pa.array(kinds))
    return columns_by_name


def _moments(milliseconds: Words) -> pa.Array:
    moments = milliseconds.copy()
    valid = to_moments(moments)
    buffers = [None if valid is None else bits(valid), pa.py_buffer(moments)]
    return pa.Array.from_buffers(MOMENT, len(moments), buffers)


def _placed(
    piece: LogPiece, table: str, columns_by_name: dict[str, pa.Array], rows: int
) -> pa.RecordBatch:
    """Return rows of a table, with their topic, partition and file. Missing columns are null."""
    place = {
        "topic": piece.partition.topic,
        "partition": piece.partition.partition,
        "file": piece.log.name,
    }
    schema = LOG_SCHEMAS[table]
    arrays = [
        columns_by_name[column.name].cast(column.type)
        if column.name in columns_by_name
        else pa.repeat(pa.scalar(place.get(column.name), column.type), rows)
        for column in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _size_rows(partition: Partition, sizes: Words) -> pa.RecordBatch:
    kinds = np.flatnonzero(sizes).tolist()
    rows = [
        {**partition._asdict(), "size": least_of(place), "records": int(sizes[place])}
        for place in kinds
    ]
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMAS[RECORD_SIZES])


def key_row(partition: Partition, superseded: SupersededCounts) -> pa.RecordBatch:
    """Return the row that contains a partition's counts, or no row if no record had a key."""
    row = {
        **partition._asdict(),
        "keyed_records": superseded.keyed_records,
        "superseded_records": superseded.records,
        "superseded_bytes": superseded.bytes,
    }
    rows = [row] if any(superseded) else []
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMAS[KEYS])
