"""Group rows with equal values in some columns, and find runs of equal adjacent rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Key = tuple[Any, ...]


_MOST_CODES = 2**62


Numbers = np.ndarray[Any, np.dtype[Any]]
"""An array of integers or booleans."""


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column as codes. The value in a row is ``values[codes[row]]``."""

    codes: Numbers
    values: Sequence[Any]


def numbered(column: pa.Array) -> tuple[Numbers, pa.Array]:
    """Return a column as codes for its distinct values, and the values themselves.

    Null counts as a value.
    """
    if _is_one_text(column):
        return np.zeros(len(column), np.int64), column.slice(0, 1)
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def _is_one_text(column: pa.Array) -> bool:
    """Return whether all texts are equal, as in most columns. This test is fast."""
    if not pa.types.is_string(column.type) or not len(column):
        return False
    if column.null_count:
        return bool(column.null_count == len(column))
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1]
    first, second = int(ends[0]), int(ends[1])
    if (np.diff(ends) != second - first).any():
        return False
    texts = data.slice(first, int(ends[-1]) - first).to_pybytes() if data else b""
    return texts == texts[: second - first] * len(column)


def coded(column: pa.Array) -> CodedColumn:
    """Return a column as codes. Null counts as a value."""
    codes, values = numbered(column)
    return CodedColumn(codes, values.to_pylist())


def coded_flags(flags: Numbers) -> CodedColumn:
    """Return a column of booleans as codes."""
    return CodedColumn(flags.astype(np.int64), (False, True))


def coded_steps(numbers: Numbers, width: int) -> CodedColumn:
    """Return, for each number, the index of the step of size ``width`` that contains it."""
    steps = numbers // width
    least = int(steps.min())
    return CodedColumn(steps - least, range(least, int(steps.max()) + 1))


class RowGroups:
    """One or more rows. Rows with equal values in all columns form a group.

    ``of`` contains the number of each row's group, and ``first`` the first row of each group.
    """

    def __init__(self, *columns: CodedColumn) -> None:
        self._columns = columns
        codes, different = columns[0].codes, len(columns[0].values)
        for column in columns[1:]:
            if different * len(column.values) > _MOST_CODES:
                _, codes = np.unique(codes, return_inverse=True)
                different = int(codes.max()) + 1
            codes, different = (
                codes * len(column.values) + column.codes,
                different * len(column.values),
            )
        self.first, self.of = _numbered(codes, different)

    def values(self) -> Iterator[Key]:
        """Yield the values that each group has in the columns."""
        columns = (
            [column.values[code] for code in column.codes[self.first].tolist()]
            for column in self._columns
        )
        return zip(*columns, strict=True)

    def counts(self) -> list[int]:
        """Return the number of rows in each group."""
        counts: list[int] = np.bincount(self.of).tolist()
        return counts

    def sums(self, numbers: Numbers) -> list[int]:
        """Return the sum of the numbers in each group. The sum is exact below 2 ** 53."""
        sums: list[int] = np.bincount(self.of, weights=numbers).astype(np.int64).tolist()
        return sums


def _numbered(codes: Numbers, different: int) -> tuple[Numbers, Numbers]:
    """Return the first row of each code that occurs, and each row's index among these codes."""
    rows = len(codes)
    if different > 4 * rows + 1024:
        _, first, of = np.unique(codes, return_index=True, return_inverse=True)
        return first, of
    # There are few codes, so sorting is not necessary.
    first_of = np.full(different, -1)
    first_of[codes[::-1]] = np.arange(rows - 1, -1, -1)
    present = np.flatnonzero(first_of >= 0)
    place = np.empty(different, np.int64)
    place[present] = np.arange(len(present))
    return first_of[present], place[codes]


class Tally:
    """For each key, as ``sums[key]``: the number of rows, then the sums of their numbers."""

    def __init__(self) -> None:
        self.sums: dict[Key, list[int]] = {}

    def add(self, groups: RowGroups, *numbers: Numbers) -> None:
        """Add rows in groups, with columns of numbers."""
        columns = (groups.counts(), *map(groups.sums, numbers))
        for key, more in zip(groups.values(), zip(*columns, strict=True), strict=True):
            self._add(key, more)

    def merge(self, other: Tally) -> None:
        """Add the sums of another tally."""
        for key, more in other.sums.items():
            self._add(key, more)

    def _add(self, key: Key, more: Sequence[int]) -> None:
        sums = self.sums.get(key)
        if sums is None:
            self.sums[key] = [*more]
            return
        for place, number in enumerate(more):
            sums[place] += number


NO_TOPIC = "?"
"""The topic of records whose topic name and id are unknown."""


def run_starts(rows: pa.RecordBatch, names: Iterable[str]) -> Numbers:
    """Return the first row, and each row that differs from the previous row in a named column."""
    is_start = np.ones(len(rows), np.bool_)
    if len(rows):
        is_start[1:] = False
        for name in names:
            _mark_changes(rows[name], is_start[1:])
    return np.flatnonzero(is_start)


def _mark_changes(column: pa.Array, marked: Numbers) -> None:
    if column.null_count == len(column):
        return
    if not column.null_count and pa.types.is_integer(column.type):
        numbers = column.to_numpy()
        marked |= numbers[1:] != numbers[:-1]
        return
    before, after = column.slice(0, len(column) - 1), column.slice(1)
    differ = pc.not_equal(after, before)
    if differ.null_count:
        differ = differ.fill_null(fill_value=False)
        valid = bits(column.is_valid())
        marked |= valid[1:] != valid[:-1]
    marked |= bits(differ)


def bits(flags: pa.BooleanArray) -> Numbers:
    """Return booleans without nulls as an array."""
    values: Numbers = flags.to_numpy(zero_copy_only=False)
    return values


def extents(lists: pa.Array) -> Numbers:
    """Return the length of each list or bytes value, or 0 for null."""
    offsets = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset :][: len(lists) + 1]
    lengths = np.diff(offsets)
    if lists.null_count:
        lengths[bits(lists.is_null())] = 0
    return lengths


def topic_names(rows: pa.RecordBatch) -> pa.StringArray:
    """Return the name of each row's topic, or its id if the name is unknown."""
    return pc.coalesce(rows["topic"], rows["topic_id"], pa.scalar(NO_TOPIC))


def grouped(codes: Numbers) -> tuple[Numbers, Numbers]:
    """Return an order that groups rows with equal codes, and the start of each code in it.

    Rows with the same code keep their order.
    """
    order = np.argsort(codes, kind="stable")
    return order, changes(codes[order])


def changes(codes: Numbers) -> Numbers:
    """Return the first place, and each place where a number differs from the one before it."""
    is_first = np.ones(len(codes), np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)
