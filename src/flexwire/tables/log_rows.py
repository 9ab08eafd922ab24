"""Pieces of logs as rows of the tables of logs: what one task gives, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from flexwire.capture.logs.reading import Damaged, digest_piece
from flexwire.capture.logs.transactions import Outcome, Transactions
from flexwire.columnar.batch_digests import BatchDigests, least_of
from flexwire.columnar.program import bits
from flexwire.columnar.record_columns import MOMENT, to_moments
from flexwire.records.inflation import INFLATION
from flexwire.records.record import COMPRESSIONS, TimestampType
from flexwire.tables.inflated import Meter, digested_bytes
from flexwire.tables.log_keys import KeyRuns, Superseded
from flexwire.tables.log_rewriting import Extents, Window, rewritten, sample_at
from flexwire.tables.log_schema import (
    BATCHES,
    KEYS,
    LOG_SCHEMAS,
    OUTCOMES,
    RECORD_SIZES,
    REWRITES,
)
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    RECORD_BATCH,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from flexwire.capture.logs import LogPiece
    from flexwire.capture.logs.names import Partition
    from flexwire.records.inflation import Inflation

    Words = np.ndarray[Any, Any]
    Rows = Iterator[tuple[str, pa.RecordBatch]]

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
_OUTCOMES = pa.array([OUTCOMES.get(one) for one in Outcome], pa.string())
# Kafka's log cleaner leaves records of aborted transactions out when it looks for the last record
# of each key, and it does not come to those of a transaction that is open.
_SETTLED: Final = (Outcome.NONE, Outcome.COMMITTED)
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
    windows: dict[int, tuple[Window, ...]]
    seed: int
    transactions: Mapping[int, Transactions] = field(default_factory=dict)


class LogRows:
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
        self._meter = Meter(inflation, captured)

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
            reading = _Piece(piece, digests, self._meter.inflation)
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


class _Piece:
    """Reads a piece, and has its `extents` then: of every batch there is."""

    def __init__(self, piece: LogPiece, digests: BatchDigests, inflation: Inflation) -> None:
        self._piece = piece
        self._digests = digests
        self._inflation = inflation
        self._damaged: list[Damaged] = []
        self._extents: list[Extents] = []

    @property
    def extents(self) -> Extents:
        """Where its batches stand."""
        return Extents(*(np.concatenate(one) for one in zip(*self._extents, strict=True)))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for found in digest_piece(self._piece, self._digests, self._inflation):
            if isinstance(found, Damaged):
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
            Extents(columns["position"], columns["size"], columns["uncompressed_size"], is_control)
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


def key_row(partition: Partition, found: Superseded) -> pa.RecordBatch:
    """Give the row of what was found of a partition; none where nothing was looked at."""
    row = {
        **partition._asdict(),
        "keyed_records": found.keyed_records,
        "superseded_records": found.records,
        "superseded_bytes": found.bytes,
    }
    rows = [row] if any(found) else []
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMAS[KEYS])
