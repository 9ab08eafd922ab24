"""The key that docs/tables.md names for a table identifies each of its rows in an analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.tables.fixed_rows import NAMES, files_of
from tests.tables.in_process import analyzed_in_process
from tests.tables.keyed import EVERY, assert_keys_identify_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.tables.schema import Table


def as_columns(tables: Mapping[str, list[dict[str, object]]]) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(rows) for name, rows in tables.items() if rows}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_is_joined_to_itself_by_its_key_has_its_own_rows(name: str) -> None:
    tables, _ = analyzed_in_process(files_of(name))
    found = assert_keys_identify_rows(as_columns(tables))
    assert {"frames", "connections", "records", "packets"} <= found


def test_a_key_that_repeats_is_found() -> None:
    twice = {"frames": pa.table({"connection": ["a", "a"], "direction": ["r", "r"],
                                 "frame_index": [1, 1]})}  # fmt: skip
    with pytest.raises(AssertionError, match="frames"):
        assert_keys_identify_rows(twice)


@pytest.mark.parametrize("table", EVERY, ids=lambda one: one.place)
def test_a_key_is_of_columns_of_its_table(table: Table) -> None:
    assert {column.name for column in table.columns}.issuperset(table.key)
