"""Ranges of a column's values: which rows have one, and which parts of a file may have some."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Ranges:
    """Values of a column from the first to the last of a range, both included, for some ranges."""

    column: str
    ranges: tuple[tuple[int, int], ...]

    def has(self, values: pa.Array) -> pa.BooleanArray:
        """Which of these values are in a range."""
        found: list[Any] = [
            pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
            for first, last in self.ranges
        ]
        return reduce(pc.or_, found)

    def may_be_in(self, group: pq.RowGroupMetaData) -> bool:
        """Whether a row group may have such a value, by what the file says of it."""
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema == self.column and column.statistics is not None:
                least, most = column.statistics.min, column.statistics.max
                return any(least <= last and first <= most for first, last in self.ranges)
        return True
