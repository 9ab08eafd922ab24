"""A column that is converted to a wider type keeps its values, even if it is a slice."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flexwire.tables.message_schema import conform

NARROW = pa.struct(
    [
        ("name", pa.string()),
        ("count", pa.int32()),
        ("parts", pa.list_(pa.struct([("at", pa.int16())]))),
    ]
)
WIDE = pa.struct(
    [
        ("added", pa.bool_()),
        ("parts", pa.list_(pa.struct([("size", pa.int64()), ("at", pa.int64())]))),
        ("count", pa.int64()),
        ("name", pa.string()),
    ]
)
ROWS: list[Any] = [
    {"name": "a", "count": -7, "parts": [{"at": 1}, None]},
    None,
    {"name": None, "count": None, "parts": None},
    {"name": "b", "count": 2**31 - 1, "parts": [{"at": 3}]},
]


def widened(row: Any) -> Any:
    if row is None:
        return None
    parts = row["parts"] and [one and {"size": None, "at": one["at"]} for one in row["parts"]]
    return row | {"added": None, "parts": parts}


def test_fields_are_put_in_their_places_and_numbers_become_wider() -> None:
    column = pa.array(ROWS, NARROW)
    for begin, size in ((0, 4), (1, 3), (2, 1), (3, 0)):
        found = conform(column.slice(begin, size), WIDE)
        found.validate(full=True)
        assert found.type == WIDE
        assert found.to_pylist() == [widened(row) for row in ROWS[begin : begin + size]]


def test_a_column_of_the_type_is_the_column() -> None:
    column = pa.array(ROWS, NARROW)
    assert conform(column, NARROW) is column
