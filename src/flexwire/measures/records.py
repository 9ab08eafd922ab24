"""Sums over the records table: the report's numbers about each topic.

The facts about a record batch are repeated in all of its rows. A batch of rows is therefore divided
wherever one of these facts changes. Each run of rows becomes a few numbers, from which a topic's
sums are computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.facts.facts import CompressionUse, Side, TopicFacts
from flexwire.measures.counters import merge_all, prune, shortened
from flexwire.measures.failures import undecodable
from flexwire.measures.groups import bits, extents, grouped, run_starts, topic_names
from flexwire.tables.inflation import beyond
from flexwire.tables.records import RunRows

if TYPE_CHECKING:
    from flexwire.measures.groups import Numbers

MOST_TOPICS: Final = 20_000
"""The maximum number of topics that are counted separately."""
OTHER_TOPICS: Final = "(other topics)"
"""The topic under which all other topics are counted."""
MOST_PARTITIONS: Final = 65_536
"""The maximum number of a topic's partitions that are counted, or 4,096 if there are very many
topics.
"""
_FEW_TOPICS: Final = 1000
_PARTITIONS_OF_MANY: Final = 4096

# If all of these columns are equal, a row belongs to the same record batch as the previous row.
_OF_BATCH = (
    *("source", "connection", "frame_index", "topic", "topic_id", "partition"),
    *("batch_position", "magic", "batch_size"),
)
_OF_FIRST = (*_OF_BATCH, "compression")
_NO_OFFSET: Final = (np.iinfo(np.int64).max, np.iinfo(np.int64).min)
_OF_RUNS = (
    *("records", "key_bytes", "value_bytes"),
    *("null_keys", "null_values", "records_with_headers"),
)


class TopicKey(NamedTuple):
    """The subject of sums: a topic, by name or id, on one side."""

    topic: str
    is_id: bool
    side: Side


class _SharedBatch(NamedTuple):
    """A record batch that may have rows in other tasks, with its facts."""

    key: TopicKey
    place: tuple[Any, ...]
    magic: int
    compression: str
    size: int


@dataclass(slots=True)
class _TopicCounts:
    """The counts for one topic on one side."""

    partitions: Numbers = field(default_factory=lambda: np.zeros(0, np.int32))
    sums: Numbers = field(default_factory=lambda: np.zeros(len(_OF_RUNS), np.int64))
    magic: set[int] = field(default_factory=set)
    compressions: dict[str, list[int]] = field(default_factory=dict)
    batches: int = 0
    least: int = _NO_OFFSET[0]
    most: int = _NO_OFFSET[1]

    def add_batches(self, magic: int, compression: str, count: int, size: int) -> None:
        self.batches += count
        self.magic.add(magic)
        use = self.compressions.setdefault(compression, [0, 0])
        use[0] += count
        use[1] += size

    def span(self, least: int, most: int) -> None:
        self.least, self.most = min(self.least, least), max(self.most, most)

    def add_partitions(self, partitions: Numbers) -> None:
        self.partitions = np.unique(np.concatenate([self.partitions, partitions]))

    def merge(self, other: _TopicCounts) -> None:
        """Add the counts of another task."""
        self.add_partitions(other.partitions)
        self.sums = self.sums + other.sums
        self.batches += other.batches
        self.magic |= other.magic
        self.span(other.least, other.most)
        for name, (count, size) in other.compressions.items():
            use = self.compressions.setdefault(name, [0, 0])
            use[0] += count
            use[1] += size

    def facts(self, key: TopicKey) -> TopicFacts:
        # The offsets in a Produce request are relative to the batch, not to the log.
        in_log = key.side == "fetch" and self.least <= self.most
        uses = (CompressionUse(name, *use) for name, use in sorted(self.compressions.items()))
        return TopicFacts(
            topic=key.topic,
            is_id=key.is_id,
            side=key.side,
            partitions=len(self.partitions),
            batches=self.batches,
            compression=tuple(uses),
            magic=tuple(sorted(self.magic)),
            first_offset=self.least if in_log else None,
            last_offset=self.most if in_log else None,
            **dict(zip(_OF_RUNS, self.sums.tolist(), strict=True)),
        )


@dataclass(frozen=True, slots=True)
class _BatchRuns:
    """The runs in a batch of rows: the facts in the first row of each run, and the run's sums."""

    first: pa.RecordBatch
    sums: Numbers
    least: Numbers
    most: Numbers

    def batch(self, at: int, key: TopicKey) -> _SharedBatch | None:
        """Return the record batch of a run, or None for bytes that are not a batch."""
        facts = {name: self.first[name][at].as_py() for name in _OF_FIRST}
        if facts["magic"] is None:
            return None
        kind = facts.pop("magic"), facts.pop("compression"), facts.pop("batch_size")
        return _SharedBatch(key, tuple(facts.values()), *kind)


class TopicSums:
    """Sums over the records table by topic, and the number of rows that cannot be decoded.

    The rows of a record batch are adjacent, and the batch's facts count once, even if some of its
    rows are in the next batch of rows or in the sums of another task. If there are more than
    `MOST_TOPICS` topics, the first in alphabetical order are counted separately, and all others
    together.

    Attributes:
        undecodable: the number of rows whose bytes are not a record batch.
        beyond: the number of these rows for batches that exceed a limit on inflation.
    """

    def __init__(self) -> None:
        self.undecodable = 0
        self.beyond = 0
        self._topics: dict[TopicKey, _TopicCounts] = {}
        self._rest: dict[Side, _TopicCounts] = {}
        # Batches that may have rows in other tasks. These batches are counted last.
        self._shared: set[_SharedBatch] = set()
        self._last: _SharedBatch | None = None
        self._is_empty = True

    def add(self, records: pa.RecordBatch | RunRows) -> None:
        """Add rows of the records table, in order."""
        if not len(records):
            return
        self.undecodable += len(undecodable(records))
        self.beyond += beyond(records)
        runs = _runs(records)
        codes, keys = _keys(runs.first)
        is_counted = self._hold_ends(runs, keys[codes[0]], keys[codes[-1]])
        order, begins = grouped(codes)
        sums = np.add.reduceat(runs.sums[:, order], begins, axis=1)
        least = np.minimum.reduceat(runs.least[order], begins)
        most = np.maximum.reduceat(runs.most[order], begins)
        partitions = runs.first["partition"].fill_null(0).to_numpy()[order]
        for at, (key, of_key) in enumerate(
            zip(keys, np.split(partitions, begins[1:]), strict=True)
        ):
            counts = self._topic(key)
            counts.sums = counts.sums + sums[:, at]
            counts.span(int(least[at]), int(most[at]))
            counts.add_partitions(of_key)
        self._count(runs.first, codes, keys, is_counted)
        self._bound(2 * MOST_TOPICS)

    def _topic(self, key: TopicKey) -> _TopicCounts:
        counts = self._topics.get(key)
        if counts is None:
            counts = self._topics[key] = _TopicCounts()
        return counts

    def _hold_ends(self, runs: _BatchRuns, first_key: TopicKey, last_key: TopicKey) -> Numbers:
        """Hold back the first and the last batch. Return which other rows may be counted now."""
        number = len(runs.first)
        first, last = runs.batch(0, first_key), runs.batch(number - 1, last_key)
        goes_on = not self._is_empty and first == self._last
        is_counted = np.ones(number, np.bool_)
        is_counted[-1] = False
        if self._is_empty or goes_on:
            is_counted[0] = False
        if self._is_empty and first is not None:
            self._shared.add(first)
        is_over = number > 1 or not goes_on
        if is_over and self._last is not None and self._last not in self._shared:
            self._count_one(self._last)
        self._last, self._is_empty = last, False
        return is_counted

    def _count_one(self, batch: _SharedBatch) -> None:
        self._topic(batch.key).add_batches(batch.magic, batch.compression, 1, batch.size)

    def _count(
        self, first: pa.RecordBatch, codes: Numbers, keys: list[TopicKey], is_counted: Numbers
    ) -> None:
        counted = np.flatnonzero(is_counted & bits(first["magic"].is_valid()))
        if not len(counted):
            return
        shared = first.take(pa.array(counted))
        magic, size = shared["magic"].to_numpy(), shared["batch_size"].to_numpy()
        compression = shared["compression"].dictionary_encode()
        names = compression.dictionary.to_pylist()
        words = codes[counted] * len(names) + compression.indices.to_numpy()
        # The magic is one signed byte.
        order, begins = grouped(words << 8 | magic.view(np.uint8))
        sizes = np.add.reduceat(size[order], begins).tolist()
        counts = np.diff(begins, append=len(order)).tolist()
        for at, *use in zip(order[begins].tolist(), counts, sizes, strict=True):
            key = keys[codes[counted[at]]]
            self._topic(key).add_batches(int(magic[at]), shared["compression"][at].as_py(), *use)

    def merge(self, other: TopicSums) -> None:
        """Add the sums of another task, without changing ``other``."""
        self.undecodable += other.undecodable
        self.beyond += other.beyond
        merge_all(self._topics, other._topics, _TopicCounts)
        merge_all(self._rest, other._rest, _TopicCounts)
        self._shared |= other._shared
        if other._last is not None:
            self._shared.add(other._last)
        self._bound(2 * MOST_TOPICS)

    def _bound(self, most: int) -> None:
        is_many = len(self._topics) > _FEW_TOPICS
        partitions = _PARTITIONS_OF_MANY if is_many else MOST_PARTITIONS
        for counts in self._topics.values():
            counts.partitions = counts.partitions[:partitions]
        if len(self._topics) > most:
            prune(
                self._topics,
                MOST_TOPICS,
                lambda key: self._rest.setdefault(key.side, _TopicCounts()),
                order=tuple,
            )
            for counts in self._rest.values():
                counts.partitions = counts.partitions[:partitions]

    def facts(self) -> tuple[TopicFacts, ...]:
        """Return the report's numbers about each topic, sorted by name."""
        whole = TopicSums()
        whole.merge(self)
        for batch in whole._shared:
            whole._count_one(batch)
        whole._bound(MOST_TOPICS)
        topics = [counts.facts(key) for key, counts in sorted(whole._topics.items(), key=_by_key)]
        others = sorted(whole._rest.items(), key=_by_key)
        rest = [
            counts.facts(TopicKey(OTHER_TOPICS, is_id=False, side=side)) for side, counts in others
        ]
        return (*topics, *rest)


def _by_key(item: tuple[Any, _TopicCounts]) -> Any:
    return item[0]


def _runs(records: pa.RecordBatch | RunRows) -> _BatchRuns:
    if isinstance(records, RunRows):
        own, facts = records.own, records.facts
        # Each row that was read as an object is a run of its own.
        first = run_starts(facts, _OF_BATCH)
        starts = (np.cumsum(records.counts) - records.counts)[first]
        is_control = np.repeat(
            bits(facts["is_control"].fill_null(fill_value=False)), records.counts
        )
    else:
        own = facts = records
        first = starts = run_starts(records, _OF_BATCH)
        is_control = bits(records["is_control"].fill_null(fill_value=False))
    offset, key, value = own["offset"], own["key"], own["value"]
    # Control records end transactions, and consumers skip them.
    is_seen = bits(offset.is_valid()) & ~is_control
    of_rows = (
        is_seen,
        extents(key) * is_seen,
        extents(value) * is_seen,
        bits(key.is_null()) & is_seen,
        bits(value.is_null()) & is_seen,
        (extents(own["headers"]) > 0) & is_seen,
    )
    sums = np.stack([np.add.reduceat(numbers, starts, dtype=np.int64) for numbers in of_rows])
    offsets = offset.fill_null(0).to_numpy()
    none_least, none_most = _NO_OFFSET
    least = np.minimum.reduceat(np.where(is_seen, offsets, none_least), starts)
    most = np.maximum.reduceat(np.where(is_seen, offsets, none_most), starts)
    return _BatchRuns(facts.select(_OF_FIRST).take(pa.array(first)), sums, least, most)


def _keys(first: pa.RecordBatch) -> tuple[Numbers, list[TopicKey]]:
    """Return a number for each run's topic and side, and the meanings of the numbers."""
    names = topic_names(first).dictionary_encode()
    is_id = bits(pc.and_(first["topic"].is_null(), first["topic_id"].is_valid()))
    is_produce = bits(pc.equal(first["source"], "produce"))
    words = np.asarray(names.indices) * 4 + is_id * 2 + is_produce
    different, codes = np.unique(words, return_inverse=True)
    texts = names.dictionary.to_pylist()
    keys = [
        TopicKey(shortened(texts[word >> 2]), bool(word & 2), "produce" if word & 1 else "fetch")
        for word in different.tolist()
    ]
    return codes, keys
