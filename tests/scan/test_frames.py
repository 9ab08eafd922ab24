"""Polars (with lazy frames) and DuckDB (through Arrow) skip unneeded columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import CaptureError
from flexwire.scan import (
    captures,
    read_capture,
    read_kafka_log,
    scan_capture,
    scan_kafka_log,
)
from tests.activity.made import capture_files
from tests.capture.made_logs import random_log, write_log
from tests.searching import times

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = capture_files("everything")[0].parent
COLUMNS = ["api_name", "direction", "size", "client_id", "time"]
FILTERS = [
    pl.col("direction") == "request",
    pl.col("size") > 60,
    pl.col("api_name").is_in(["Fetch", "Metadata"]),
    pl.col("client_id").is_null(),
]


@pytest.fixture(scope="module")
def whole() -> pl.DataFrame:
    return pl.DataFrame(read_capture(EVERYTHING).read_all())


@pytest.mark.long
@pytest.mark.slow
@given(
    columns=st.lists(st.sampled_from(COLUMNS), unique=True, min_size=1),
    filters=st.lists(st.sampled_from(range(len(FILTERS))), max_size=2),
    head=st.none() | st.integers(0, 200),
    order=st.sampled_from(["head first", "filters first"]),
)
@settings(max_examples=times(20))
def test_a_query_gives_what_it_gives_of_the_whole_frame(
    columns: list[str], filters: list[int], head: int | None, order: str, whole: pl.DataFrame
) -> None:
    def ask(frame: pl.LazyFrame) -> pl.DataFrame:
        if head is not None and order == "head first":
            frame = frame.head(head)
        for number in filters:
            frame = frame.filter(FILTERS[number])
        if head is not None and order == "filters first":
            frame = frame.head(head)
        return frame.select(columns).collect()

    assert ask(scan_capture(EVERYTHING)).equals(ask(whole.lazy()))


def test_a_frame_has_its_schema_before_anything_is_read() -> None:
    for kind in ("frames", "records", "connections", "packets"):
        lazy = scan_capture(EVERYTHING, kind)
        assert lazy.collect_schema() == lazy.collect().schema
    lazy = scan_capture(EVERYTHING, "messages", message="MetadataRequest")
    assert lazy.collect_schema() == lazy.collect().schema


def test_only_the_columns_and_rows_that_are_needed_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def counted(scan: Any, request: Any, schema: Any) -> Any:
        asked.append(schema.names)
        for batch in captures.capture_batches(scan, request, schema):
            asked.append(len(batch))
            yield batch

    monkeypatch.setattr("flexwire.scan.frames.capture_batches", counted)
    monkeypatch.setattr(captures, "_BATCH_ROWS", 10)
    found = scan_capture(EVERYTHING).select("size").head(15).collect()
    assert found.shape == (15, 1)
    # The third batch of ten rows is never made.
    assert asked == [["size"], 10, 10]


def test_records_of_logs_are_those_of_the_reader(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    write_log(tmp_path / "orders-0", random_log(3))
    lazy = scan_kafka_log(tmp_path, include_batch=True)
    expected = pl.DataFrame(read_kafka_log(tmp_path, include_batch=True).read_all())
    assert lazy.collect_schema() == expected.schema
    assert lazy.collect().equals(expected)
    few = lazy.filter(pl.col("offset") > 20).select("offset", "value").collect()
    assert few.equals(expected.filter(pl.col("offset") > 20).select("offset", "value"))


def test_errors_are_flexwires_own(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        scan_capture(tmp_path / "nothing")
    with pytest.raises(CaptureError):
        scan_kafka_log(tmp_path)
    (tmp_path / "a.pcap").write_bytes(b"nothing at all")
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        scan_capture(tmp_path).collect()
    (tmp_path / "orders-0").mkdir()
    write_log(tmp_path / "orders-0", random_log(3))
    for segment in (tmp_path / "orders-0").glob("*.log"):
        segment.write_bytes(segment.read_bytes()[:-5] + b"wrong")
    with pytest.raises(CaptureError, match="crc is"):
        scan_kafka_log(tmp_path / "orders-0").collect()


def test_duckdb_reads_a_reader(whole: pl.DataFrame) -> None:
    frames_read = read_capture(EVERYTHING)
    with duckdb.connect() as connection:
        connection.register("frames", frames_read)
        sql = "select direction, count(*), sum(size) from frames group by 1 order by 1"
        found = connection.sql(sql).fetchall()
    expected = whole.group_by("direction").agg(pl.len(), pl.col("size").sum()).sort("direction")
    assert found == expected.rows()
