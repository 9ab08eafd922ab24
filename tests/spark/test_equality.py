"""All facts on which two analyses must agree are compared, and a planted difference is found."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.spark.analyze import analyze
from flexwire.spark.tables import Tables, mark
from flexwire.survey.survey import AnalysisRequest
from tests.capture.interleaved import CLEAN, HOSTS, write_capture
from tests.reference import facts as reference_facts
from tests.reference.tables import tables as reference_tables
from tests.spark.equality import (
    assert_equal_analyses,
    assert_equal_tables,
    facts_of,
    in_one_order,
    schemas_of,
    tables_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

CONNECTION = "10.0.0.9:40000>10.0.0.7:9092"
FRAMES: list[dict[str, Any]] = [
    {"connection": CONNECTION, "direction": way, "frame_index": index, "size": 40 + index}
    for index in range(3)
    for way in ("request", "response")
]
BODIES: list[dict[str, Any]] = [
    {**one, "body": {"topics": [{"name": "orders", "lag": float("nan")}, {"name": "paid"}]}}
    for one in FRAMES
    if one["direction"] == "request"
]


def written(out: Path, frames: list[dict[str, Any]], bodies: list[dict[str, Any]]) -> Path:
    """Write an output with these tables, each in two files."""
    for name, rows in (("frames", frames), ("messages/MetadataRequest", bodies)):
        folder = out / "tables" / name
        folder.mkdir(parents=True)
        table = pa.Table.from_pylist(rows)
        half = len(rows) // 2
        for number, part in enumerate((table[half:], table[:half])):
            pq.write_table(part, folder / f"part-{number}.parquet")
    (out / "facts.json").write_text('{"made_at_us": 5, "totals": {"frames": 6}}')
    mark(Tables(out / "tables"), [])
    return out


def test_the_order_of_rows_means_nothing(tmp_path: Path) -> None:
    one = written(tmp_path / "one", FRAMES, BODIES)
    other = written(tmp_path / "other", FRAMES[::-1], BODIES[::-1])
    assert_equal_analyses(one, other)
    assert tables_of(one)["frames"][1] == FRAMES[2]
    assert schemas_of(one)["frames"]["size"] == "int64"
    assert facts_of(one) == {"totals": {"frames": 6}}


def _change_size(rows: list[dict[str, Any]]) -> None:
    rows[3]["size"] = 7


def _drop_row(rows: list[dict[str, Any]]) -> None:
    del rows[1]


def _repeat_row(rows: list[dict[str, Any]]) -> None:
    rows.append(rows[1])


def _add_column(rows: list[dict[str, Any]]) -> None:
    rows[0]["error"] = "new"


def _change_body(rows: list[dict[str, Any]]) -> None:
    topics = [{"name": "orders", "lag": float("nan")}, {"name": "other"}]
    rows[2]["body"] = {"topics": topics}


@pytest.mark.parametrize(
    ("table", "change", "told"),
    [
        (
            "frames",
            _change_size,
            r"frames: the row of .*, direction 'response', frame_index 1: size: 41 and 7",
        ),
        (
            "frames",
            _drop_row,
            r"frames: the first has 1 more of .* 'response', frame_index 0; 6 and 5 rows",
        ),
        ("frames", _repeat_row, r"the second has 1 more of .* frame_index 0; 6 and 7 rows"),
        ("frames", _add_column, r"frames: .* frame_index 0: error: 'nothing' and 'new'"),
        (
            "messages/MetadataRequest",
            _change_body,
            r"messages/.* frame_index 2: body\.topics\[1\]\.name: 'paid' and 'other'",
        ),
    ],
)
def test_a_planted_difference_is_told(
    tmp_path: Path, table: str, change: Callable[[list[dict[str, Any]]], None], told: str
) -> None:
    one = written(tmp_path / "one", FRAMES, BODIES)
    changed = {"frames": [dict(row) for row in FRAMES],
               "messages/MetadataRequest": [dict(row) for row in BODIES]}  # fmt: skip
    change(changed[table])
    other = written(tmp_path / "other", *changed.values())
    with pytest.raises(AssertionError, match=told):
        assert_equal_analyses(one, other)


def test_another_type_and_other_facts_and_tables_are_told(tmp_path: Path) -> None:
    one = written(tmp_path / "one", FRAMES, BODIES)
    floats = [{**row, "size": float(row["size"])} for row in FRAMES]
    other = written(tmp_path / "other", floats, BODIES)
    with pytest.raises(AssertionError, match=r"the types.*frames\.size: 'int64' and 'double'"):
        assert_equal_analyses(one, other)
    third = written(tmp_path / "third", FRAMES, BODIES)
    (third / "facts.json").write_text('{"made_at_us": 6, "totals": {"frames": 7}}')
    with pytest.raises(AssertionError, match=r"the facts.*totals\.frames: 6 and 7"):
        assert_equal_analyses(one, third)
    with pytest.raises(AssertionError, match=r"tables only in the first: .*messages/"):
        assert_equal_tables(tables_of(one), {"frames": []})


def test_a_column_that_may_differ_is_left_out(tmp_path: Path) -> None:
    one = tables_of(written(tmp_path / "one", FRAMES, BODIES))
    other = tables_of(
        written(tmp_path / "other", [{**row, "size": 100 - row["size"]} for row in FRAMES], BODIES)
    )
    with pytest.raises(AssertionError, match="size"):
        assert_equal_tables(one, other)
    assert_equal_tables(one, other, without={"size"})
    assert_equal_tables(one, other, without={"frame_index", "size"})


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide every capture into many ranges, each of which is read in many chunks."""
    monkeypatch.setattr("flexwire.spark.analyze.range_bytes_for", lambda *_: 45_000)
    monkeypatch.setattr("flexwire.spark.capture_job.LEAST_BYTES", 0)
    monkeypatch.setattr("flexwire.spark.publishing.compaction.LEAST_PARTS", 2)
    monkeypatch.setattr(
        "flexwire.spark.options.AnalysisRequest", partial(AnalysisRequest, chunk_bytes=4_096)
    )


def ranges_of(out: Path) -> int:
    """Return the number of ranges in the table of frames, according to the names of its files."""
    names = [one.name for one in (out / "tables" / "frames").glob("*.parquet")]
    return max(int(name.split("-")[-2]) for name in names) + 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("small_ranges")
def test_tasks_of_spark_write_what_the_reference_says(spark: SparkSession, tmp_path: Path) -> None:
    capture, out = tmp_path / "capture", tmp_path / "out"
    files = write_capture(capture, 1, replace(HOSTS, formats=("pcapng",), noise=0.05))
    assert analyze([capture], out, spark=spark, record_bytes=True).notes == ()
    assert ranges_of(out) > 2
    found = tables_of(out)
    assert sum(row["repeated_bytes"] for row in found["connections"]) > 5_000
    assert found.pop("audit")
    expected = reference_tables(files)
    assert_equal_tables(in_one_order(found), in_one_order(expected))
    facts = reference_facts.facts(expected)
    told = reference_facts.of_an_analysis(json.loads((out / "facts.json").read_text()))
    for name, fact in told.items():
        assert fact == facts[name], name


@pytest.mark.spark
@pytest.mark.slow
def test_files_split_otherwise_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    bare = replace(CLEAN, marks=False, loss=0.02, reorder=0.1)
    tables = []
    for files in (1, 3):
        shape = replace(bare, files=files)
        capture = write_capture(tmp_path / f"capture-{files}", 2, shape)
        analyze(capture, tmp_path / f"out-{files}", spark=spark)
        tables.append(tables_of(tmp_path / f"out-{files}"))
    one, three = tables
    assert [sum(row["packets"] for row in found.pop("packets")) for found in tables]
    assert_equal_tables(one, three, without={"source"})
