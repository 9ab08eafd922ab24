"""Arrow imports the columns of records from C: small batches at once, others column by column."""

from __future__ import annotations

import gc
import threading
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.columnar import record_columns
from flexwire.columnar.record_columns import BATCH_COLUMNS, OF_RECORD, RECORD_COLUMNS
from flexwire.columnar.records import RecordReader, RecordSelection, decode_records, room_for
from flexwire.records import Record, encode_batch
from tests.records.strategies import record_batches
from tests.traced import traced

ALL = (*RECORD_COLUMNS, *BATCH_COLUMNS)
RECORDS = [
    Record(one, one or -1, b"k" * one, None, [(b"h", b"v"), (b"n", None)]) for one in range(9)
]


class PlantedError(Exception):
    """The error that a test makes Arrow raise."""


def by_columns(data: bytes, columns: tuple[str, ...]) -> pa.Table:
    """Import by columns, however small the batch is."""
    with patch.object(record_columns, "_SMALL", -1):
        return decode_records(data, columns=columns)


@pytest.mark.long
@pytest.mark.slow
@given(
    st.lists(record_batches(), min_size=1, max_size=3),
    st.lists(st.sampled_from(ALL), min_size=1, max_size=8),
)
def test_both_ways_give_the_same(batches: list[Any], columns: list[str]) -> None:
    data = b"".join(encode_batch(records, **fields) for records, fields in batches)
    whole = decode_records(data, columns=columns)
    whole.validate(full=True)
    apart = by_columns(data, tuple(columns))
    apart.validate(full=True)
    assert whole.equals(apart)
    assert whole.schema == apart.schema


@pytest.mark.parametrize("small", [1 << 16, -1])
def test_a_column_outlives_what_it_was_read_with(small: int) -> None:
    data = encode_batch(RECORDS)
    with patch.object(record_columns, "_SMALL", small):
        columns = {name: decode_records(data).column(name) for name in RECORD_COLUMNS}
        expected = {name: column.to_pylist() for name, column in columns.items()}
        for _ in range(50):
            decode_records(encode_batch([Record(0, 0, b"other", b"x" * 999, [])]))
    gc.collect()
    assert {name: column.to_pylist() for name, column in columns.items()} == expected


@pytest.mark.long
@pytest.mark.guard
@pytest.mark.parametrize("small", [1 << 16, -1])
def test_all_memory_is_given_back(small: int) -> None:
    data = encode_batch(RECORDS) * 3

    def work() -> None:
        for _ in range(200):
            decode_records(data, columns=ALL).column("value")
        gc.collect()

    with patch.object(record_columns, "_SMALL", small):
        work()
        before = pa.total_allocated_bytes()
        with traced() as memory:
            work()
            held = memory.held
            # Another thread may hold the last reference to a batch.
            for _ in range(3):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            assert memory.held - held < 5_000
        assert pa.total_allocated_bytes() == before


def refuse(address: int, schema: pa.Schema) -> pa.RecordBatch:
    raise PlantedError(f"{address} {schema}")


@pytest.mark.parametrize("take", ["take_batch", "take_column"])
def test_what_arrow_does_not_take_is_given_back(take: str) -> None:
    data = encode_batch(RECORDS)
    reader = RecordReader(data, RecordSelection())
    found = reader._scan()
    columns = room_for(found, reader.wanted, reader.hints)
    columns.read(found, 0, reader._data)
    names: Any = list(OF_RECORD) if take == "take_batch" else "headers"

    def work() -> None:
        for _ in range(100):
            with pytest.raises(PlantedError):
                getattr(columns._run, take)(names, refuse, None)

    work()
    with traced() as memory:
        work()
        grown = []
        for _ in range(3):
            held = memory.held
            work()
            grown.append(memory.held - held)
        # A leak grows each time, but other memory of the process may grow once.
        assert min(grown) < 5_000
