"""Apart from the requested columns, few bytes of a Parquet file in a store are read."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.spark.dataframes import ParquetFilePart
from flexwire.storage import input_file
from flexwire.storage.input_file import SeekableRange
from flexwire.storage.output_directory import OutputDirectory
from tests.storage.faulty_store import Store, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("text", pa.string()),
        (
            "body",
            pa.struct(
                [
                    ("small", pa.int32()),
                    ("large", pa.binary()),
                    ("list", pa.list_(pa.struct([("a", pa.int8()), ("b", pa.binary())]))),
                ]
            ),
        ),
    ]
)


@pytest.fixture
def large(tmp_path: Path) -> Iterator[tuple[Store, OutputDirectory]]:
    """Put a file with large columns into a store."""
    text = [f"{number:08}" * 100 for number in range(20_000)]
    body = [
        {"small": n, "large": one.encode(), "list": [{"a": 1, "b": one.encode()}]}
        for n, one in enumerate(text)
    ]
    body[7] = None  # type: ignore[call-overload] # a structure that is null
    rows = {"number": range(len(text)), "text": text, "body": body}
    pq.write_table(
        pa.table(rows, SCHEMA), tmp_path / "one", compression="none", use_dictionary=False
    )
    store = Store()
    with serving(store) as bucket:
        place = OutputDirectory(bucket)
        place.put(tmp_path / "one", "table.parquet")
        yield store, place


@pytest.mark.long
@pytest.mark.slow
def test_few_columns_of_a_file_in_a_store_take_few_bytes(
    large: tuple[Store, OutputDirectory],
) -> None:
    store, place = large
    part = ParquetFilePart("table.parquet", 0, 1)
    size = place.source(next(iter(place.entries()))).size

    def read(columns: pa.Schema) -> tuple[pa.Table, int]:
        store.sent = 0
        return pa.Table.from_batches(part.batches(place.url, columns)), store.sent

    whole, sent = read(SCHEMA)
    assert size <= sent < size * 1.2
    number, sent = read(pa.schema([SCHEMA.field("number")]))
    assert number.equals(whole.select(["number"]))
    assert sent < size / 10
    body = pa.struct([("small", pa.int32()), ("list", pa.list_(pa.struct([("a", pa.int8())])))])
    narrow, sent = read(pa.schema([("body", body)]))
    assert sent < size / 10
    assert narrow["body"].null_count == 1
    for row, expected in zip(narrow["body"].to_pylist(), whole["body"].to_pylist(), strict=True):
        if expected is not None:
            expected["list"] = [{"a": one["a"]} for one in expected["list"]]
            expected.pop("large")
        assert row == expected
    # If a column of the file lacks a requested field, the whole column is read.
    wider = pa.struct([("small", pa.int32()), ("new", pa.struct([("x", pa.int8())]))])
    lacking, _ = read(pa.schema([("body", wider)]))
    assert lacking["body"].null_count == 1
    assert lacking["body"][3].as_py() == {"small": 3, "new": None} or lacking["body"][3].as_py()[
        "new"
    ] == {"x": None}


def test_any_part_of_a_file_is_read_with_requests_of_bounded_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(3)
    for _ in range(300):
        fewest, most = chance.choice([1, 7, 50]), chance.choice([10, 64, 200])
        monkeypatch.setattr(input_file, "FEWEST_BYTES", fewest)
        monkeypatch.setattr(input_file, "PIECE_BYTES", most)
        data = chance.randbytes(chance.randrange(600))

        def read(first: int, last: int, data: bytes = data, most: int = most) -> bytes:
            assert 0 <= first < last <= len(data)
            assert last - first <= most
            return data[first:last]

        file = SeekableRange(read, len(data))
        for _ in range(20):
            at, size = chance.randrange(len(data) + 5), chance.choice([-1, 0, 1, 5, 100, 1000])
            assert file.seek(at) == file.tell() == at
            assert file.read(size) == (data[at:] if size < 0 else data[at : at + size])
            file.seek(at)
            buffer = bytearray(9)
            count = file.readinto(memoryview(buffer))
            assert buffer[:count] == data[at : at + count]
            assert (count == 0) == (at >= len(data))
        file.close()


def test_a_file_that_is_read_on_takes_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_file, "FEWEST_BYTES", 100)
    monkeypatch.setattr(input_file, "PIECE_BYTES", 800)
    asked: list[tuple[int, int]] = []

    def read(first: int, last: int) -> bytes:
        asked.append((first, last))
        return bytes(last - first)

    file = SeekableRange(read, 5000)
    # The footer of a Parquet file, and its length.
    for at, size in ((4992, 8), (4910, 82)):
        file.seek(at)
        assert len(file.read(size)) == size
    assert asked == [(4900, 5000)]
    file.seek(0)
    while file.read(60):
        pass
    assert asked[1:] == [
        (0, 100),
        (100, 300),
        (300, 700),
        *((at, at + 800) for at in range(700, 4700, 800)),
        (4700, 5000),
    ]
    # A column, and another one after a gap.
    asked.clear()
    for at in (1000, 1050, 2000):
        file.seek(at)
        file.read(10)
    assert asked == [(1000, 1100), (2000, 2100)]
