"""A column of repeated strings equals the result of `take` on the strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from flexwire.columnar import record_columns
from flexwire.columnar.record_columns import RepeatedTexts
from flexwire.columnar.records import decode_records
from flexwire.records import Record, encode_batch

if TYPE_CHECKING:
    import pytest

TEXTS = ("", "none", "größe", "CreateTime")


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50))), max_size=6))
def test_each_text_stands_as_often_as_its_count_says(
    columns: list[list[tuple[int, int]]],
) -> None:
    made = RepeatedTexts(TEXTS)
    kept = []
    for column in columns:
        numbers, counts = (np.array([one[at] for one in column], np.int64) for at in (0, 1))
        found = made.repeated(numbers, counts)
        found.validate(full=True)
        assert found.type == "string"
        kept.append((found, [TEXTS[number] for number, count in column for _ in range(count)]))
    # Columns that were made earlier stay valid too.
    for found, expected in kept:
        assert found.to_pylist() == expected


def test_a_column_that_was_made_is_used_again() -> None:
    made = RepeatedTexts(TEXTS)
    first, second = (made.repeated(np.array([3]), np.array([rows])) for rows in (9, 5))
    addresses = [[one.address for one in array.buffers()[1:]] for array in (first, second)]
    assert addresses[0] == addresses[1]
    assert second.get_total_buffer_size() == 4 * 6 + 5 * len(TEXTS[3])


def test_what_no_column_holds_goes_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_columns, "MOST_OF_TEXTS", 25)
    made = RepeatedTexts(TEXTS)
    found = made.repeated(np.array([3, 1]), np.array([3, 4]))
    assert [chunk.to_pylist() for chunk in found.chunks] == [
        ["CreateTime"] * 2,
        ["CreateTime", "none"],
        ["none"] * 2,
        ["none"],
    ]
    assert isinstance(made.repeated(np.array([3]), np.array([2])), pa.Array)


def test_records_of_chunks_are_batches_that_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_batch([Record(offset, offset, b"k", None, []) for offset in range(10)])
    expected = decode_records(data)
    monkeypatch.setattr(record_columns, "MOST_OF_TEXTS", 4 * len("LogAppendTime") + 8)
    # The special path for small batches is off, because it would bypass this code.
    monkeypatch.setattr(record_columns, "_SMALL", -1)
    monkeypatch.setattr(record_columns, "_KEPT", 0)
    found = decode_records(data)
    assert found.equals(expected)
    assert [len(batch) for batch in found.to_batches()] == [4, 4, 2]
