"""The record headers of a table's records, added up by key in the tasks that read them.

A capture has more record headers than anything else, and they are added up as they are read, in
columns. What is left are few rows, and the values that are to be judged, a row each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.records.conventions.spring import TYPES_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Numbers = np.ndarray[Any, Any]

READ: Final = (
    "topic", "topic_id", "source", "client_id", "offset", "base_offset", "is_control", "key",
    "value", "headers",
)  # fmt: skip
"""The columns of records that are read."""
SUMS: Final = ("all_records", "record_bytes", "records", "headers", "values", "value_bytes")
"""What is added up: records and the bytes of their keys and values where ``header`` is null, and
else records that have the header, such headers, those with a value, and their values' bytes."""
ADDED: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("topic", "source", "client_id")),
        ("header", pa.binary()),
        *((name, pa.int64()) for name in (*SUMS, "least", "most")),
        ("value", pa.binary()),
        ("is_spring", pa.bool_()),
        ("judged", pa.int64()),
    ]
)
"""Sums, and with them the smallest and the largest value's bytes; or where ``value`` is not null a
value that is to be judged, whether Spring's header of types stands beside it, and how often."""

# Values are judged in the first record of each batch, and in one of so many of the others: to look
# into every byte of every value takes longer than to read the table.
_ONE_OF: Final = 64
_BY: Final = ADDED.names[:4]
_JUDGED: Final = ("value", "is_spring")
_HOW: Final = [*((name, "sum") for name in SUMS), ("least", "min"), ("most", "max")]
# Sums of so many rows are added up before there are more.
_MANY: Final = 200_000
# Headers of a record are compared with so many of their neighbours; of more they are sorted.
_FEW: Final = 16
# Up to this number a table of all numbers is faster than one by hash.
_TABLE: Final = 1 << 20


def add_up(_table: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up the headers of records: `ADDED` of their columns `READ`."""
    held: list[pa.RecordBatch] = []
    judged: list[pa.RecordBatch] = []
    for batch in batches:
        is_record = pc.invert(batch["is_control"].fill_null(True))
        is_record = pc.and_(is_record, batch["offset"].is_valid())
        records = _Records(batch if pc.all(is_record).as_py() else batch.filter(is_record))
        held.append(records.payload())
        held.append(records.headers())
        judged.append(records.judged())
        if sum(map(len, judged)) > _MANY:
            yield _counted(judged)
            judged = []
        if sum(map(len, held)) > _MANY:
            held = [_together(held)]
    if held:
        yield _together(held)
    if judged:
        yield _counted(judged)


def _counted(judged: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Values that are the same as one, with how many they are."""
    found = pa.Table.from_batches(judged).group_by([*_BY, *_JUDGED], use_threads=False)
    counted = found.aggregate([([], "count_all")]).combine_chunks()
    named = {name: counted[name].combine_chunks() for name in (*_BY, *_JUDGED)}
    return _added(**named, judged=counted["count_all"].combine_chunks())


def _together(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    found = pa.Table.from_batches(held).group_by(_BY, use_threads=False).aggregate(_HOW)
    sums = {name: found[f"{name}_{how}"].combine_chunks() for name, how in _HOW}
    return _added(**{name: found[name].combine_chunks() for name in _BY}, **sums)


def _added(**columns: Any) -> pa.RecordBatch:
    count = len(columns["topic"])
    arrays = [
        columns[one.name].cast(one.type) if one.name in columns else pa.nulls(count, one.type)
        for one in ADDED
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ADDED)


class _Records:
    """The records of a batch, by topic, message and client, and their headers, each by its key."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        self.topics = pc.coalesce(rows["topic"], rows["topic_id"])
        of = [self.topics, rows["source"], rows["client_id"]]
        self.groups, self.first = _numbered(*map(_codes, of))
        headers = rows["headers"]
        self.parents = headers.value_parent_indices().to_numpy()
        flat = headers.flatten()
        self.keys, self.values = flat.field("key"), flat.field("value")
        self.key_codes = _codes(self.keys)

    def _of(self, records: Numbers) -> dict[str, pa.Array]:
        named = (self.topics, self.rows["source"], self.rows["client_id"])
        return {
            name: column.take(pa.array(records)) for name, column in zip(_BY, named, strict=False)
        }

    def payload(self) -> pa.RecordBatch:
        """Sums of the records themselves."""
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
        """Sums of their headers, by key."""
        groups, first = _numbered(self.groups[self.parents], self.key_codes)
        count = len(first)
        has_value = self.values.is_valid().to_numpy(zero_copy_only=False)
        sizes = pc.binary_length(self.values).fill_null(0).to_numpy().astype(np.int64)
        of_value, with_value = sizes[has_value], groups[has_value]
        values = np.bincount(with_value, minlength=count)
        least = np.full(count, np.iinfo(np.int64).max)
        most = np.full(count, -1)
        np.minimum.at(least, with_value, of_value)
        np.maximum.at(most, with_value, of_value)
        sums = {
            "records": np.bincount(groups[self._is_first_of_key()], minlength=count),
            "headers": np.bincount(groups, minlength=count),
            "values": values,
            "value_bytes": np.bincount(groups, sizes, count).astype(np.int64),
        }
        bounds = {"least": least, "most": most}
        of = self._of(self.parents[first]) | {"header": self.keys.take(pa.array(first))}
        return _added(
            **of,
            **_arrays(sums),
            **{name: pa.array(one, mask=values == 0) for name, one in bounds.items()},
        )

    def _is_first_of_key(self) -> Numbers:
        """Of each header whether its record has no earlier one of the same key."""
        found = np.ones(len(self.parents), bool)
        for distance in range(1, _FEW):
            is_same = self.parents[distance:] == self.parents[:-distance]
            if not is_same.any():
                return found
            is_same &= self.key_codes[distance:] == self.key_codes[:-distance]
            found[distance:] &= ~is_same
        # Where a record has many.
        pairs = self.parents * (int(self.key_codes.max()) + 1) + self.key_codes
        found[:] = False
        found[np.unique(pairs, return_index=True)[1]] = True
        return found

    def judged(self) -> pa.RecordBatch:
        """The values that are to be judged, a row each."""
        offset, base = self.rows["offset"], self.rows["base_offset"]
        is_one = pc.or_kleene(pc.equal(offset, base), pc.less(base, 0)).fill_null(False)
        records = is_one.to_numpy(zero_copy_only=False) | (offset.to_numpy() % _ONE_OF == 0)
        is_valid = self.values.is_valid().to_numpy(zero_copy_only=False)
        some = np.flatnonzero(records[self.parents] & is_valid)
        is_types = pc.equal(self.keys, TYPES_KEY.encode()).to_numpy(zero_copy_only=False)
        is_spring = np.zeros(len(self.rows), bool)
        is_spring[self.parents[is_types]] = True
        parents, place = self.parents[some], pa.array(some)
        of = self._of(parents) | {"header": self.keys.take(place)}
        return _added(**of, value=self.values.take(place), is_spring=pa.array(is_spring[parents]))


def _arrays(columns: dict[str, Numbers]) -> dict[str, pa.Array]:
    return {name: pa.array(one) for name, one in columns.items()}


def _codes(column: Any) -> Numbers:
    """A number for each value, the same for the same; for null too."""
    found = column.dictionary_encode(null_encoding="encode")
    numbers: Numbers = found.indices.to_numpy().astype(np.int64)
    return numbers


def _numbered(*codes: Numbers) -> tuple[Numbers, Numbers]:
    """Of each row its combination's number, from 0 on; and where each is for the first time."""
    both = codes[0]
    for one in codes[1:]:
        # Numbered anew each time, so that no product is too large.
        both = _dense(both * (int(one.max(initial=0)) + 1) + one)
    numbers = _dense(both)
    first = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    # What is written last stays.
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, first


def _dense(numbers: Numbers) -> Numbers:
    """The same numbers from 0 on, without those that are not there."""
    if int(numbers.max(initial=0)) > _TABLE:
        return _codes(pa.array(numbers))
    there = np.bincount(numbers) > 0
    return (np.cumsum(there) - 1)[numbers]
