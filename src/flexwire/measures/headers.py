"""The contents and sizes of record headers, for each key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.facts.facts import RecordHeaderFacts
from flexwire.measures.counters import (
    DistinctCounter,
    LengthCounts,
    hashes_and_texts,
    merge_all,
    prune,
    shortened,
)
from flexwire.measures.groups import bits, changes, extents, grouped, run_starts, topic_names
from flexwire.records.conventions import CONVENTIONS
from flexwire.tables.records import RunRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.measures.groups import Numbers


MOST_KEYS: Final = 10_000
"""The maximum number of record header keys that are counted separately."""
OTHER_KEYS: Final = "(other record header keys)"
"""The key under which all other keys are counted."""
EXACT_VALUES: Final = 4096
"""The maximum number of a key's values that are counted exactly, and of topic names that are kept.

Above this limit, the number of values is an estimate with an error of about 1.6 %.
"""
_FEW_KEYS: Final = 1000
# If there are many keys, less is kept for each key, and the error is about 6 %.
_EXACT_OF_MANY: Final = 256


@dataclass(slots=True)
class _KeyCounts:
    """The counts for one key."""

    most: int = EXACT_VALUES
    topics: set[str] = field(default_factory=set)
    records: int = 0
    nulls: int = 0
    values: int = 0
    empty: int = 0
    texts: int = 0
    lengths: LengthCounts = field(default_factory=LengthCounts)
    min_length: int | None = None
    max_length: int | None = None
    distinct: DistinctCounter = field(default_factory=DistinctCounter)

    def keep(self, most: int) -> None:
        """Keep at most this many hashes and topics from now on."""
        self.most = min(self.most, most)
        self.distinct.keep(self.most)
        if len(self.topics) > self.most:
            self.topics = set(sorted(self.topics)[: self.most])

    def add(self, lengths: Numbers, hashes: Numbers, texts: Numbers | None) -> None:
        """Add values that are not null. Without ``texts``, all values are UTF-8."""
        if not len(lengths):
            return
        self.values += len(lengths)
        self.empty += len(lengths) - int(np.count_nonzero(lengths))
        self.texts += len(lengths) if texts is None else int(np.count_nonzero(texts))
        self.lengths.add_all(lengths)
        self._span(int(lengths.min()), int(lengths.max()))
        self.distinct.add(hashes, self.most)

    def merge(self, other: _KeyCounts) -> None:
        """Add the counts of another task."""
        self.topics |= other.topics
        self.records += other.records
        self.nulls += other.nulls
        self.values += other.values
        self.empty += other.empty
        self.texts += other.texts
        self.lengths.merge(other.lengths)
        if other.min_length is not None and other.max_length is not None:
            self._span(other.min_length, other.max_length)
        self.distinct.merge(other.distinct, self.most)
        self.keep(other.most)

    def _span(self, least: int, most: int) -> None:
        self.min_length = least if self.min_length is None else min(self.min_length, least)
        self.max_length = most if self.max_length is None else max(self.max_length, most)

    def facts(self, key: str) -> RecordHeaderFacts:
        return RecordHeaderFacts(
            key=key,
            topics=tuple(sorted(self.topics)),
            records=self.records,
            null_values=self.nulls,
            empty_values=self.empty,
            min_length=self.min_length,
            median_length=self.lengths.median,
            max_length=self.max_length,
            distinct_values=self.distinct.count,
            utf8_share=self.texts / self.values if self.values else None,
        )


@dataclass(frozen=True, slots=True)
class _HeaderEntries:
    """The record headers of some records, in order.

    ``keys`` contains the distinct keys. ``codes`` contains each header's key, and ``parents`` its
    record. ``order`` groups the headers by key, with each group in the order of the records, and
    ``begins`` contains the start of each key in ``order``. ``is_first`` is true if no earlier
    header of the record has the same key. The number of these headers is therefore the number of
    records that contain the key.
    """

    keys: pa.Array
    codes: Numbers
    parents: Numbers
    values: pa.BinaryArray
    order: Numbers
    begins: Numbers
    is_first: Numbers

    @classmethod
    def of(cls, headers: pa.ListArray, is_counted: Numbers | None = None) -> _HeaderEntries:
        """Return the headers of the records that count.

        Without ``is_counted``, all records count.
        """
        entries = headers.flatten()
        parents = pc.list_parent_indices(headers).to_numpy().astype(np.int32)
        if is_counted is not None:
            is_seen = is_counted[parents]
            entries, parents = entries.filter(pa.array(is_seen)), parents[is_seen]
        keys = pc.struct_field(entries, "key").dictionary_encode()
        codes = _narrow(np.asarray(keys.indices), len(keys.dictionary))
        order, begins = grouped(codes)
        is_first = np.ones(len(codes), np.bool_)
        is_same = (codes[order[1:]] == codes[order[:-1]]) & (
            parents[order[1:]] == parents[order[:-1]]
        )
        is_first[order[1:]] = ~is_same
        values = pc.struct_field(entries, "value")
        return cls(keys.dictionary, codes, parents, values, order, begins, is_first)

    def __len__(self) -> int:
        """Return the number of headers."""
        return len(self.codes)


def _narrow(codes: Numbers, different: int) -> Numbers:
    # Two-byte numbers are sorted without comparisons.
    return codes.astype(np.uint16) if different <= np.iinfo(np.uint16).max else codes


@dataclass(frozen=True, slots=True)
class _HeaderValues:
    """The values of record headers, with their lengths and their hashes."""

    is_first: Numbers
    lengths: Numbers
    hashes: Numbers
    nulls: Numbers | None
    texts: Numbers | None

    @classmethod
    def of(cls, entries: _HeaderEntries) -> _HeaderValues:
        values = entries.values
        hashes, texts = hashes_and_texts(values)
        nulls = bits(values.is_null()) if values.null_count else None
        are_texts = None if texts.all() else texts
        return cls(entries.is_first, extents(values), hashes, nulls, are_texts)

    def count(self, key: _KeyCounts, rows: Numbers, topics: set[str]) -> None:
        """Count some rows."""
        key.records += int(np.count_nonzero(self.is_first[rows]))
        key.topics |= topics
        if self.nulls is not None:
            null = self.nulls[rows]
            key.nulls += int(np.count_nonzero(null))
            rows = rows[~null]
        texts = None if self.texts is None else self.texts[rows]
        key.add(self.lengths[rows], self.hashes[rows], texts)


class RecordHeaderSums:
    """Sums over the record headers in rows of the records table, without control records.

    Keys are strings, with "�" for invalid UTF-8. If a record contains the same key twice, it counts
    once for this key. If there are more than `MOST_KEYS` keys, the first in alphabetical order are
    counted separately, and all others together.
    """

    def __init__(self) -> None:
        self._keys: dict[str, _KeyCounts] = {}
        self._rest = _KeyCounts()
        # The last kept key, if there were too many keys. Keys after it in alphabetical order are
        # not kept.
        self._last_kept: str | None = None

    def add(self, records: pa.RecordBatch | RunRows) -> None:
        """Add rows of the records table."""
        own: pa.RecordBatch = records
        facts, counts = own, None
        if isinstance(records, RunRows):
            own, facts, counts = records.own, records.facts, records.counts
        is_counted = None
        is_control = bits(facts["is_control"].fill_null(fill_value=True))
        if is_control.any():
            is_counted = ~(is_control if counts is None else np.repeat(is_control, counts))
        if not len(own["headers"].flatten()):
            return
        entries = _HeaderEntries.of(own["headers"], is_counted)
        if not len(entries):
            return
        starts = run_starts(facts, ("topic", "topic_id"))
        names = [shortened(name) for name in topic_names(facts).take(pa.array(starts)).to_pylist()]
        runs = None
        if len(starts) > 1:
            sizes = np.diff(starts, append=len(facts))
            if counts is not None:
                sizes = np.add.reduceat(counts, starts)
            runs = np.repeat(np.arange(len(starts), dtype=np.int32), sizes)[entries.parents]
        self._add(entries, runs, names)
        self._bound()

    def _add(self, entries: _HeaderEntries, runs: Numbers | None, names: list[str]) -> None:
        values = _HeaderValues.of(entries)
        texts = [shortened(key.decode(errors="replace")) for key in entries.keys.to_pylist()]
        parts = dict(enumerate(np.split(entries.order, entries.begins[1:])))
        if self._last_kept is not None:
            beyond = [code for code, text in enumerate(texts) if text > self._last_kept]
            if beyond:
                rows = np.concatenate([parts.pop(code) for code in beyond])
                values.count(self._rest, rows, _topics(runs, rows, names))
        for code, rows in parts.items():
            values.count(self._key(texts[code]), rows, _topics(runs, rows, names))

    def _key(self, name: str) -> _KeyCounts:
        counts = self._keys.get(name)
        if counts is None:
            counts = self._keys[name] = _KeyCounts()
        return counts

    def merge(self, other: RecordHeaderSums) -> None:
        """Add the sums of another task, without changing ``other``."""
        merge_all(self._keys, other._keys, _KeyCounts)
        self._rest.merge(other._rest)
        keys_kept = [key for key in (self._last_kept, other._last_kept) if key is not None]
        self._last_kept = min(keys_kept, default=None)
        self._bound()

    def _bound(self, *, exactly: bool = False) -> None:
        most = EXACT_VALUES if len(self._keys) <= _FEW_KEYS else _EXACT_OF_MANY
        for counts in (*self._keys.values(), self._rest):
            counts.keep(most)
        if exactly or len(self._keys) > 2 * MOST_KEYS:
            prune(self._keys, MOST_KEYS, lambda _: self._rest, order=str)
            if len(self._keys) == MOST_KEYS:
                self._last_kept = max(self._keys)

    def facts(self) -> tuple[RecordHeaderFacts, ...]:
        """Return the report's numbers about each key, sorted by key."""
        self._bound(exactly=True)
        key_facts = [self._keys[key].facts(key) for key in sorted(self._keys)]
        if self._rest.records:
            key_facts.append(self._rest.facts(OTHER_KEYS))
        return tuple(key_facts)


def _topics(runs: Numbers | None, rows: Numbers, names: list[str]) -> set[str]:
    if runs is None:
        return {names[0]}
    of_rows = runs[rows]
    return {names[run] for run in of_rows[changes(of_rows)].tolist()}


READ: Final = (
    "topic", "topic_id", "source", "client_id", "offset", "base_offset", "is_control", "key",
    "value", "headers",
)  # fmt: skip
"""The columns of the records table that are read."""
MARKERS: Final = tuple(
    convention.marker for convention in CONVENTIONS.values() if convention.marker is not None
)
"""The keys of record headers that describe how the other headers of a record are written."""
SUMS: Final = ("all_records", "record_bytes", "records", "headers", "values", "value_bytes")
"""The names of the sums. If ``header`` is null, the sums are the number of records and the bytes of
their keys and values. Otherwise, the sums are the number of records with the header, the number of
headers, the number of headers with a value, and the bytes of the values.
"""
ADDED: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("topic", "source", "client_id")),
        ("header", pa.binary()),
        *((name, pa.int64()) for name in (*SUMS, "least", "most")),
        ("value", pa.binary()),
        ("markers", pa.int64()),
        ("judged", pa.int64()),
    ]
)
"""The columns of sums, with the sizes of the smallest and the largest value. If ``value`` is not
null, the row is a value to be judged, with a bit for each of `MARKERS` in the same record and a
count.
"""

# Values are judged in the first record of each batch, and in one out of this many other records.
# Judging every byte of every value would take longer than reading the table.
_ONE_OF: Final = 64
_BY: Final = ADDED.names[:4]
_JUDGED: Final = ("value", "markers")
_HOW: Final = [*((name, "sum") for name in SUMS), ("least", "min"), ("most", "max")]
# The number of rows after which the sums are added up.
_MANY: Final = 200_000
# Up to this size, a table of all numbers is faster than a hash table.
_TABLE: Final = 1 << 20


def add_up(_table: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up record headers: yield rows of `ADDED` from the columns `READ`."""
    sums = HeadersByClient()
    for batch in batches:
        sums.add(batch)
        if sums.judged_rows > _MANY:
            yield sums.take_judged()
    yield from sums.result()


class HeadersByClient:
    """Exact sums of records and headers by topic, message, client and key, of any size.

    Control records and records that could not be decoded do not count.
    """

    def __init__(self) -> None:
        self._held: list[pa.RecordBatch] = []
        self._judged: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the columns `READ` from rows of the records table."""
        is_record = pc.invert(batch["is_control"].fill_null(True))
        is_record = pc.and_(is_record, batch["offset"].is_valid())
        records = _BatchRecords(batch if pc.all(is_record).as_py() else batch.filter(is_record))
        self._held += [records.payload(), records.headers()]
        self._judged.append(records.judged())
        self._unite()

    def merge(self, other: HeadersByClient) -> None:
        """Add the sums of another task, without changing ``other``."""
        self._held += other._held
        self._judged += other._judged
        self._unite()

    def _unite(self) -> None:
        if sum(map(len, self._held)) > _MANY:
            self._held = [_together(self._held)]

    @property
    def judged_rows(self) -> int:
        """The number of values that have yet to be judged."""
        return sum(map(len, self._judged))

    def take_judged(self) -> pa.RecordBatch:
        """Return the values to be judged, and discard them."""
        judged, self._judged = self._judged, []
        return _counted(judged)

    def result(self) -> Iterator[pa.RecordBatch]:
        """Yield the sums as rows of `ADDED`. Rows with equal keys may be added up again."""
        if self._held:
            yield _together(self._held)
        if self._judged:
            yield _counted(self._judged)


def _counted(judged: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return each distinct value once, with its count."""
    counted = pa.Table.from_batches(judged).group_by([*_BY, *_JUDGED], use_threads=False)
    counted = counted.aggregate([([], "count_all")]).combine_chunks()
    named = {name: counted[name].combine_chunks() for name in (*_BY, *_JUDGED)}
    return _added(**named, judged=counted["count_all"].combine_chunks())


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    groups = pa.Table.from_batches(batches).group_by(_BY, use_threads=False).aggregate(_HOW)
    sums = {name: groups[f"{name}_{how}"].combine_chunks() for name, how in _HOW}
    return _added(**{name: groups[name].combine_chunks() for name in _BY}, **sums)


def _added(**columns: Any) -> pa.RecordBatch:
    count = len(columns["topic"])
    arrays = [
        columns[column.name].cast(column.type)
        if column.name in columns
        else pa.nulls(count, column.type)
        for column in ADDED
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ADDED)


class _BatchRecords:
    """The records of a batch by topic, message and client, and their headers by key."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        self.topics = pc.coalesce(rows["topic"], rows["topic_id"])
        of = [self.topics, rows["source"], rows["client_id"]]
        self.groups, self.first = _numbered(*map(_codes, of))
        self.entries = _HeaderEntries.of(rows["headers"])

    def _of(self, records: Numbers) -> dict[str, pa.Array]:
        named = (self.topics, self.rows["source"], self.rows["client_id"])
        return {
            name: column.take(pa.array(records)) for name, column in zip(_BY, named, strict=False)
        }

    def payload(self) -> pa.RecordBatch:
        """Return the sums of the records themselves."""
        size = sum(
            pc.binary_length(self.rows[name]).fill_null(0).to_numpy().astype(np.int64)
            for name in ("key", "value")
        )
        count = len(self.first)
        sums = {
            "all_records": np.bincount(self.groups, minlength=count),
            "record_bytes": np.bincount(self.groups, size, count).astype(np.int64),
        }
        return _added(**self._of(self.first), **_arrays(sums))

    def headers(self) -> pa.RecordBatch:
        """Return the sums of the headers, by key."""
        entries = self.entries
        groups, first = _numbered(self.groups[entries.parents], entries.codes)
        count = len(first)
        has_value = bits(entries.values.is_valid())
        sizes = pc.binary_length(entries.values).fill_null(0).to_numpy().astype(np.int64)
        of_value, with_value = sizes[has_value], groups[has_value]
        values = np.bincount(with_value, minlength=count)
        least = np.full(count, np.iinfo(np.int64).max)
        most = np.full(count, -1)
        np.minimum.at(least, with_value, of_value)
        np.maximum.at(most, with_value, of_value)
        sums = {
            "records": np.bincount(groups[entries.is_first], minlength=count),
            "headers": np.bincount(groups, minlength=count),
            "values": values,
            "value_bytes": np.bincount(groups, sizes, count).astype(np.int64),
        }
        bounds = {"least": least, "most": most}
        of = self._of(entries.parents[first]) | {"header": self._keys(first)}
        return _added(
            **of,
            **_arrays(sums),
            **{name: pa.array(bound, mask=values == 0) for name, bound in bounds.items()},
        )

    def _keys(self, places: Numbers) -> pa.Array:
        return self.entries.keys.take(pa.array(self.entries.codes[places]))

    def judged(self) -> pa.RecordBatch:
        """Return the values to be judged, one per row."""
        entries = self.entries
        offset, base = self.rows["offset"], self.rows["base_offset"]
        is_one = pc.or_kleene(pc.equal(offset, base), pc.less(base, 0)).fill_null(False)
        records = bits(is_one) | (offset.to_numpy() % _ONE_OF == 0)
        some = np.flatnonzero(records[entries.parents] & bits(entries.values.is_valid()))
        markers = np.zeros(len(self.rows), np.int64)
        for number, marker in enumerate(MARKERS):
            is_marker = bits(pc.equal(entries.keys, marker.encode()))[entries.codes]
            markers[entries.parents[is_marker]] |= 1 << number
        parents = entries.parents[some]
        of = self._of(parents) | {"header": self._keys(some)}
        values = entries.values.take(pa.array(some))
        return _added(**of, value=values, markers=pa.array(markers[parents]))


def _arrays(columns: dict[str, Numbers]) -> dict[str, pa.Array]:
    return {name: pa.array(column) for name, column in columns.items()}


def _codes(column: Any) -> Numbers:
    """Return a code for each value. Equal values share a code, and so do nulls."""
    encoded = column.dictionary_encode(null_encoding="encode")
    numbers: Numbers = encoded.indices.to_numpy().astype(np.int64)
    return numbers


def _numbered(*codes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the number of each row's combination (from 0) and each combination's first row."""
    both = codes[0]
    for column in codes[1:]:
        # New numbers are assigned each time to keep the products small.
        both = _dense(both * (int(column.max(initial=0)) + 1) + column)
    numbers = _dense(both)
    first = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    # The last assignment wins, so the order is reversed.
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, first


def _dense(numbers: Numbers) -> Numbers:
    """Return the same numbers without gaps, starting at 0."""
    if int(numbers.max(initial=0)) > _TABLE:
        return _codes(pa.array(numbers))
    there = np.bincount(numbers) > 0
    return (np.cumsum(there) - 1)[numbers]
