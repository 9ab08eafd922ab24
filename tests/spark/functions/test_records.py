"""Record batches read in a column equal the row reader's results and Kafka's Java vectors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire import columnar
from flexwire.columnar import BATCH_COLUMNS, RECORD_COLUMNS, decode_records
from flexwire.errors import ArgumentError, CodecError, RecordError
from flexwire.records import Record, encode_batch
from flexwire.spark.functions import records
from flexwire.spark.functions.records import list_type, record_lists
from tests.records.test_vectors import VECTORS
from tests.spark.functions.chosen import FAILFAST, PERMISSIVE

COLUMNS = tuple(RECORD_COLUMNS)
ALL = (*RECORD_COLUMNS, *BATCH_COLUMNS)
ONE = encode_batch([Record(7, 1700000000000, b"k", b"v", [(b"h", None)]), Record(8, 0, None, None)])


def reference(data: bytes | None, columns: tuple[str, ...] = COLUMNS) -> Any:
    if data is None:
        return None
    return decode_records(data, columns=columns, partial=True).to_pylist()


@pytest.mark.parametrize("columns", [COLUMNS, ALL, ("value",), ("offset", "magic")])
def test_each_row_is_what_decode_records_makes_of_its_bytes(columns: tuple[str, ...]) -> None:
    # All magic values (0 to 2) and compression types, mixed, with empty rows between them.
    rows: list[bytes | None] = [bytes.fromhex(one["hex"]) for one in VECTORS[::7]]
    rows[3:3] = [None, b"", ONE + ONE, ONE[:-3], ONE + ONE[:20]]
    found = record_lists(columns, FAILFAST, pa.array(rows, pa.binary()))
    assert found.type == list_type(columns, FAILFAST)
    found.validate(full=True)
    assert found.to_pylist() == [reference(row, columns) for row in rows]


def test_without_kernels_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pa.array([ONE + ONE, None, b"", ONE[:-1] + b"?" + ONE, ONE])
    expected = record_lists(ALL, PERMISSIVE, data)
    for module in (columnar.record_pieces, columnar.records):
        monkeypatch.setattr(module, "load_kernel", lambda _: None)
    assert record_lists(ALL, PERMISSIVE, data).equals(expected)


def test_batches_of_magic_2_are_read_by_kernels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_read", None)
    found = record_lists(COLUMNS, PERMISSIVE, pa.array([ONE, None, ONE * 3, b""]))
    assert [None if one is None else len(one) for one in found.to_pylist()] == [2, None, 6, 0]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_a_part_of_a_column_is_read_as_a_column(kind: pa.DataType) -> None:
    data = pa.array([b"before", ONE, None, ONE + ONE, b"after"], kind).slice(1, 3)
    found = record_lists(COLUMNS, FAILFAST, data)
    assert found.to_pylist() == [reference(row) for row in data.to_pylist()]


def test_permissive_gives_the_other_records_and_then_what_is_wrong() -> None:
    damaged = ONE[:-1] + b"?"
    rows = [damaged + ONE, ONE, ONE + ONE[:30], b"no batch"]
    found = record_lists(("offset",), PERMISSIVE, pa.array(rows)).to_pylist()
    told = [[one["_corrupt_record"] for one in row] for row in found]
    assert [[one["offset"] for one in row] for row in found] == [
        [7, 8, None],
        [7, 8],
        [7, 8, None],
        [None],
    ]
    assert told[0][:2] == told[1] == told[2][:2] == [None, None]
    assert told[0][2]["reason"].startswith("the declared crc is 0x")
    assert told[0][2]["offset"] == 0
    size = len(ONE)
    assert told[2][2] == {
        "reason": f"partial batch: 30 of {size} bytes",
        "path": "",
        "offset": size,
    }
    assert told[3][0]["reason"] == "partial batch: 8 of an unknown number of bytes"


def test_failfast_raises_with_the_row() -> None:
    with pytest.raises(RecordError, match="crc is 0x") as error:
        record_lists(COLUMNS, FAILFAST, pa.array([ONE, ONE[:-1] + b"?"]))
    assert error.value.__notes__ == ["in row 1"]


def test_more_than_an_array_can_hold_is_an_error_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "MOST", 100)
    told = "the records of one Arrow batch of rows take more than 100 bytes"
    with pytest.raises(CodecError, match=told) as error:
        record_lists(COLUMNS, FAILFAST, pa.array([ONE] * 50))
    assert "maxRecordsPerBatch" in error.value.__notes__[0]


def test_other_columns_are_refused() -> None:
    with pytest.raises(ArgumentError, match="data: expected a binary column"):
        record_lists(COLUMNS, FAILFAST, pa.array(["text"]))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(ONE * draw(st.integers(1, 3)))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=40)
@given(st.lists(st.none() | damaged() | st.binary(max_size=80), max_size=8))
def test_any_bytes_are_records_or_told_about(rows: list[bytes | None]) -> None:
    data = pa.array(rows, pa.binary())
    found = record_lists(COLUMNS, PERMISSIVE, data)
    found.validate(full=True)
    try:
        expected = [reference(row) for row in rows]
    except RecordError:
        with pytest.raises(RecordError):
            record_lists(COLUMNS, FAILFAST, data)
    else:
        assert record_lists(COLUMNS, FAILFAST, data).to_pylist() == expected
    for row, lists in zip(rows, found.to_pylist(), strict=True):
        assert (row is None) == (lists is None)
        told = [one.pop("_corrupt_record") for one in lists or []]
        right = [one for one, why in zip(lists or [], told, strict=True) if why is None]
        # The error is the last element, and contains no other values.
        assert told == [None] * len(right) + [why for why in told if why]
        for one in (lists or [])[len(right) :]:
            assert set(one.values()) == {None}
