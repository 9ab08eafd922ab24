"""Rows are selected by ranges of values, and row groups that have no such rows are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from flexwire.tables.parquet import ValueRanges

if TYPE_CHECKING:
    from pathlib import Path

SOME = ValueRanges("place", ((0, 2), (10, 10), (25, 27)))


def test_both_ends_of_a_range_are_in_it() -> None:
    found = SOME.has(pa.array(range(30)))
    assert [place for place, is_in in enumerate(found.to_pylist()) if is_in] == [
        0, 1, 2, 10, 25, 26, 27,
    ]  # fmt: skip


def test_a_row_group_is_passed_over_only_where_its_statistics_say_so(tmp_path: Path) -> None:
    table = pa.table({"place": range(30), "other": range(30)})
    pq.write_table(table, tmp_path / "told.parquet", row_group_size=5)
    told = pq.read_metadata(tmp_path / "told.parquet")
    may = [SOME.may_be_in(told.row_group(number)) for number in range(told.num_row_groups)]
    assert may == [True, False, True, False, False, True]
    pq.write_table(table, tmp_path / "silent.parquet", write_statistics=False)
    assert SOME.may_be_in(pq.read_metadata(tmp_path / "silent.parquet").row_group(0))
