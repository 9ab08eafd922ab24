"""Growing tables contain each log batch once, no matter how often its segment is read."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from flexwire.answers.storage import ANSWER as STORAGE
from flexwire.errors import FlexwireError
from flexwire.logs.files import Partition
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.spark.delta import layout, ledger
from flexwire.spark.delta.delta_ledger import DeltaLedger
from flexwire.spark.delta.layout import storage_options, table_url
from flexwire.spark.delta.ledger import IN, new_entry, next_offsets
from flexwire.spark.delta.output import output
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.log_schema import LOG_SCHEMAS
from flexwire.tables.output import output as read_output
from tests.capture.made_logs import MadeSegment, plain, write_log
from tests.spark.grown import delta_staging, remove_lease
from tests.storage.servers import s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

A, B = Partition("a", 0), Partition("b", 1)
# The columns that differ between analyses.
KEYS = ("analysis", "day")


@pytest.fixture(autouse=True)
def few_tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few tables, because moto would be slow to create tables for hundreds of messages."""
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, *LOG_SCHEMAS])


@pytest.fixture(params=["path", "s3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutputDirectory]:
    if request.param == "path":
        yield OutputDirectory(str(tmp_path / "out"))
        return
    with s3() as bucket:
        yield OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")


def add(
    out: OutputDirectory, offsets: dict[Partition, int], *, append: bool = True
) -> dict[Partition, int]:
    """Read logs up to these offsets in one analysis. Return the offsets for the next analysis."""
    with delta_staging(out, [], lambda _: uuid.uuid4().hex, append=append) as writing:
        writing.read_until.update(offsets)
        writing.publish()
    return dict(writing.next_offsets or {})


@pytest.mark.long
@pytest.mark.slow
def test_an_analysis_goes_on_with_the_offsets_after_what_is_in(anywhere: OutputDirectory) -> None:
    # The output of an earlier release contains neither offsets nor file names.
    older = pa.schema([*ledger.COLUMNS][:-3])
    before = asdict(new_entry("before", IN, "digest", {}))
    place = anywhere.child("ledger")
    write_deltalake(
        table_url(place),
        pa.Table.from_pylist([before], older),
        storage_options=storage_options(place),
    )
    assert add(anywhere, {A: 10}) == {}
    assert add(anywhere, {A: 15, B: 3}) == {A: 10}
    assert add(anywhere, {B: 3}) == {A: 15, B: 3}
    entries = DeltaLedger(anywhere).entries()
    assert next_offsets(entries) == {A: 15, B: 3}
    assert [bool(one.logs) for one in entries] == [False, False, False, True]
    # Without append, the existing rows are replaced.
    assert add(anywhere, {B: 7}, append=False) == {}
    assert add(anywhere, {}) == {B: 7}


@pytest.mark.long
@pytest.mark.slow
def test_of_two_at_once_that_go_on_with_one_log_one_is_in() -> None:
    with s3() as bucket:
        out = OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")
        add(out, {A: 10, B: 1})
        told = pytest.raises(FlexwireError, match="analysis of the same input finished first")
        with told, delta_staging(out, [], lambda _: "first", append=True) as writing:
            writing.read_until[A] = 12
            remove_lease(out)
            assert add(out, {A: 11}) == {A: 10, B: 1}
            writing.publish()
        assert next_offsets(DeltaLedger(out).entries()) == {A: 11, B: 1}
        # Both segments belong to other logs.
        with delta_staging(out, [], lambda _: "second", append=True) as writing:
            writing.read_until[B] = 2
            remove_lease(out)
            add(out, {A: 13})
            writing.publish()
        assert next_offsets(DeltaLedger(out).entries()) == {A: 13, B: 2}


def logs(root: Path, first: int, second: int) -> Path:
    """Write two partitions with this many records so far, five in each batch."""
    for number, count in enumerate((first, second)):
        segments = [MadeSegment(base) for base in range(0, max(count, 1), 20)]
        for offset in range(0, count, 5):
            segments[offset // 20].add(plain(offset, 5, value=b"v" * 50), compression="gzip")
        segments[-1].data += b"\x00\x00\x00"
        write_log(root / f"orders-{number}", segments)
    return root


def rows(table: pa.Table) -> list[str]:
    less = [one for one in table.column_names if one not in KEYS]
    return sorted(map(repr, table.select(less).to_pylist()))


def superseded(spark: SparkSession, out: Path | str) -> Any:
    [row] = STORAGE.ask(open_tables(spark, out)).collect()
    assert (row.topic, row.damaged) == ("orders", 0)
    return row.records, row.superseded_records, row.superseded_share


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster
def test_logs_that_grow_are_read_on(spark: SparkSession, tmp_path: Path) -> None:
    root, out = tmp_path / "logs", tmp_path / "out"

    def append() -> Any:
        done = analyze([root], out, spark=spark, format="delta", append=True, answers="storage")
        told = done.facts.logs
        assert told is not None
        assert (told.topics, told.partitions, told.damaged, told.waiting_bytes) == (1, 2, 0, 6)
        return done, told

    logs(root, 30, 10)
    done, told = append()
    assert (done.is_new, told.records, told.segments, told.known_partitions) == (True, 40, 3, 0)
    assert superseded(spark, out) == (40, 0, 0.0)
    again, _ = append()
    assert not again.is_new
    logs(root, 45, 10)
    more, told = append()
    assert (told.records, told.batches, told.segments, told.known_partitions) == (15, 3, 2, 1)
    assert more.facts.answers[0].rows == 1
    # The analyses did not search each other's records for the same keys.
    assert superseded(spark, out) == (55, None, None)
    # An index with a new modification time is not new data.
    (root / "orders-0" / f"{0:020}.index").touch()
    nothing, told = append()
    assert (nothing.is_new, told.records, told.known_partitions) == (True, 0, 2)
    (tmp_path / "whole").mkdir()
    whole = analyze([root], tmp_path / "whole", spark=spark, answers="none")
    grown, once = output(out), read_output(tmp_path / "whole")
    assert set(LOG_SCHEMAS) <= {*grown.names}
    damage = pa.compute.field("error").is_null()
    assert rows(grown.table("log_batches")) == rows(once.table("log_batches", filter=damage))
    assert whole.facts.logs is not None
    assert sum(one["records"] for one in grown.table("log_record_sizes").to_pylist()) == 55
    assert next_offsets(grown.entries) == {Partition("orders", 0): 45, Partition("orders", 1): 10}
    # Reading everything again replaces the existing rows.
    fresh = analyze([root], out, spark=spark, format="delta", answers="none")
    assert fresh.facts.logs is not None
    assert fresh.facts.logs.records == 55
    assert superseded(spark, out) == (55, 0, 0.0)
    left = {path.name for path in (out / "runs").rglob("_*")} - {"_flexwire.json"}
    assert not left
