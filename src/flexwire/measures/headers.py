"""What record headers say, key by key, summed by the tasks that decode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.facts.facts import RecordHeaderFacts
from flexwire.measures.bounded import merge_all, prune, shortened
from flexwire.measures.runs import bits, changes, extents, grouped, run_starts, topic_names
from flexwire.measures.values import Distinct, Lengths, hashes_and_texts
from flexwire.tables.records import RunRows

if TYPE_CHECKING:
    from flexwire.measures.runs import Words

MOST_KEYS: Final = 10_000
"""So many different record header keys are counted by themselves."""
OTHER_KEYS: Final = "(other record header keys)"
"""The key under which all others are counted."""
EXACT_VALUES: Final = 4096
"""So many different values of a key are counted exactly, and of so many topics are the names kept.

The number of more values is an estimate, off by about 1.6 %.
"""
_FEW_KEYS: Final = 1000
# Of many keys less is kept of each: the estimate is off by about 6 %.
_EXACT_OF_MANY: Final = 256


@dataclass(slots=True)
class _Key:
    """What is counted of one key."""

    most: int = EXACT_VALUES
    topics: set[str] = field(default_factory=set)
    records: int = 0
    nulls: int = 0
    values: int = 0
    empty: int = 0
    texts: int = 0
    lengths: Lengths = field(default_factory=Lengths)
    min_length: int | None = None
    max_length: int | None = None
    distinct: Distinct = field(default_factory=Distinct)

    def keep(self, most: int) -> None:
        """Keep at most so many hashes and topics from now on."""
        self.most = min(self.most, most)
        self.distinct.keep(self.most)
        if len(self.topics) > self.most:
            self.topics = set(sorted(self.topics)[: self.most])

    def add(self, lengths: Words, hashes: Words, texts: Words | None) -> None:
        """Take in values that are not null; without ``texts`` all are UTF-8."""
        if not len(lengths):
            return
        self.values += len(lengths)
        self.empty += len(lengths) - int(np.count_nonzero(lengths))
        self.texts += len(lengths) if texts is None else int(np.count_nonzero(texts))
        self.lengths.add_all(lengths)
        self._span(int(lengths.min()), int(lengths.max()))
        self.distinct.add(hashes, self.most)

    def merge(self, other: _Key) -> None:
        """Take in what was counted elsewhere."""
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
class _Values:
    """The values of record headers: of which key and record each is, and what is known of it."""

    codes: Words
    parents: Words
    lengths: Words
    hashes: Words
    nulls: Words | None
    texts: Words | None

    @classmethod
    def of(cls, values: pa.BinaryArray, codes: Words, parents: Words) -> _Values:
        hashes, texts = hashes_and_texts(values)
        nulls = bits(values.is_null()) if values.null_count else None
        are_texts = None if texts.all() else texts
        return cls(codes, parents, extents(values), hashes, nulls, are_texts)

    def count(self, key: _Key, rows: Words, topics: set[str]) -> None:
        """Count some rows, in the order of their keys and for each key in that of the records."""
        codes, parents = self.codes[rows], self.parents[rows]
        again = (codes[1:] == codes[:-1]) & (parents[1:] == parents[:-1])
        key.records += len(rows) - int(np.count_nonzero(again))
        key.topics |= topics
        if self.nulls is not None:
            null = self.nulls[rows]
            key.nulls += int(np.count_nonzero(null))
            rows = rows[~null]
        texts = None if self.texts is None else self.texts[rows]
        key.add(self.lengths[rows], self.hashes[rows], texts)


class RecordHeaderSums:
    """Sums up the record headers of rows of the records table, but for those of control records.

    Keys are given as text, with "�" for what is not UTF-8. A key that is twice in a record makes
    one record of it. Of very many keys (`MOST_KEYS`) the first in the alphabet are counted by
    themselves, and the others together.
    """

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}
        self._rest = _Key()
        # Since there were too many: what comes after this key in the alphabet is not kept.
        self._last_kept: str | None = None

    def add(self, records: pa.RecordBatch | RunRows) -> None:
        """Take in rows of the records table."""
        own: pa.RecordBatch = records
        facts, counts = own, None
        if isinstance(records, RunRows):
            own, facts, counts = records.own, records.facts, records.counts
        headers = own["headers"]
        entries = headers.flatten()
        if not len(entries):
            return
        parents = pc.list_parent_indices(headers).to_numpy().astype(np.int32)
        is_control = bits(facts["is_control"].fill_null(fill_value=True))
        if is_control.any():
            seen = ~(is_control if counts is None else np.repeat(is_control, counts))[parents]
            entries, parents = entries.filter(pa.array(seen)), parents[seen]
            if not len(entries):
                return
        starts = run_starts(facts, ("topic", "topic_id"))
        names = [shortened(one) for one in topic_names(facts).take(pa.array(starts)).to_pylist()]
        runs = None
        if len(starts) > 1:
            sizes = np.diff(starts, append=len(facts))
            if counts is not None:
                sizes = np.add.reduceat(counts, starts)
            runs = np.repeat(np.arange(len(starts), dtype=np.int32), sizes)[parents]
        self._add(entries, parents, runs, names)
        self._bound()

    def _add(
        self, entries: pa.StructArray, parents: Words, runs: Words | None, names: list[str]
    ) -> None:
        keys = pc.struct_field(entries, "key").dictionary_encode()
        codes = _narrow(np.asarray(keys.indices), len(keys.dictionary))
        values = _Values.of(pc.struct_field(entries, "value"), codes, parents)
        order, begins = grouped(codes)
        texts = [shortened(key.decode(errors="replace")) for key in keys.dictionary.to_pylist()]
        parts = dict(enumerate(np.split(order, begins[1:])))
        if self._last_kept is not None:
            beyond = [code for code, text in enumerate(texts) if text > self._last_kept]
            if beyond:
                rows = np.concatenate([parts.pop(code) for code in beyond])
                values.count(self._rest, rows, _topics(runs, rows, names))
        for code, rows in parts.items():
            values.count(self._key(texts[code]), rows, _topics(runs, rows, names))

    def _key(self, name: str) -> _Key:
        found = self._keys.get(name)
        if found is None:
            found = self._keys[name] = _Key()
        return found

    def merge(self, other: RecordHeaderSums) -> None:
        """Take in what was summed elsewhere; ``other`` stays as it is."""
        merge_all(self._keys, other._keys, _Key)
        self._rest.merge(other._rest)
        told = [one for one in (self._last_kept, other._last_kept) if one is not None]
        self._last_kept = min(told, default=None)
        self._bound()

    def _bound(self, *, exactly: bool = False) -> None:
        most = EXACT_VALUES if len(self._keys) <= _FEW_KEYS else _EXACT_OF_MANY
        for one in (*self._keys.values(), self._rest):
            one.keep(most)
        if exactly or len(self._keys) > 2 * MOST_KEYS:
            prune(self._keys, MOST_KEYS, lambda _: self._rest, order=str)
            if len(self._keys) == MOST_KEYS:
                self._last_kept = max(self._keys)

    def facts(self) -> tuple[RecordHeaderFacts, ...]:
        """What the report says of each key, in the order of their text."""
        self._bound(exactly=True)
        told = [self._keys[key].facts(key) for key in sorted(self._keys)]
        if self._rest.records:
            told.append(self._rest.facts(OTHER_KEYS))
        return tuple(told)


def _narrow(codes: Words, different: int) -> Words:
    # Numbers of two bytes are put in order without being compared.
    return codes.astype(np.uint16) if different <= np.iinfo(np.uint16).max else codes


def _topics(runs: Words | None, rows: Words, names: list[str]) -> set[str]:
    if runs is None:
        return {names[0]}
    of_rows = runs[rows]
    return {names[run] for run in of_rows[changes(of_rows)].tolist()}
