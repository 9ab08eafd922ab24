"""Iceberg tables grow by whole analyses, each added once, even if one of them is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.schema import assign_fresh_schema_ids

from flexwire.cli.app import app
from flexwire.errors import ArgumentError, FlexwireError, StorageError
from flexwire.schema.catalog import catalog
from flexwire.spark.analyze import analyze as run
from flexwire.spark.answers.outputs import open_tables, stored_answers
from flexwire.spark.dataframes import output_of
from flexwire.spark.dataframes import table as spark_table
from flexwire.spark.delta import layout, ledger, staging
from flexwire.spark.delta.grown import AddedFile
from flexwire.spark.delta.staging import grown_staging
from flexwire.spark.iceberg import files as iceberg_files
from flexwire.spark.iceberg.output import IcebergTables, as_declared, output, tables_in
from flexwire.spark.iceberg.tables import ADDED
from flexwire.spark.iceberg.upkeep import (
    remove_unnamed_files,
    retire,
    to_retire,
    unnamed_files,
)
from flexwire.spark.inputs import begin_output
from flexwire.spark.publishing.catalogs import IcebergCatalog, catalog_table
from flexwire.spark.publishing.output import OutputOptions, to_format
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.keys import ANALYSIS, BEGAN_IN
from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import output as read_output
from flexwire.tables.parquet import ORIGIN
from flexwire.tables.schema import FRAMES_TABLE, GROWN_TABLES, TABLES, schema_of
from tests.capture.interleaved import CLEAN, write_capture
from tests.searching import in_make_long
from tests.spark.grown import MESSAGE, NOON, Killed, delta_staging, remove_lease, sources, write
from tests.storage.servers import s3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyiceberg.table import Table
    from pyspark.sql import SparkSession


GROWN = ("frames", "connections", MESSAGE)
# The part of a row that names other analyses.
OF_GROWN = {ANALYSIS, BEGAN_IN}


@pytest.fixture(autouse=True)
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few tables, because each of the hundreds of messages would need a table."""
    monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, MESSAGE])


@pytest.fixture
def out(tmp_path: Path) -> OutputDirectory:
    return OutputDirectory(str(tmp_path / "out"))


def analyze(
    out: OutputDirectory,
    text: str,
    time: datetime = NOON,
    *,
    append: bool = True,
    where: IcebergCatalog | None = None,
) -> bool:
    """Analyze the input ``text``. Return whether it was new."""
    tables = IcebergTables(out, where or IcebergCatalog())
    with grown_staging(tables, sources(text), lambda _: text, append=append) as writing:
        if writing.known_run:
            return False
        write(writing, text, time)
        writing.publish()
    return True


def opened(out: OutputDirectory, name: str = "frames") -> Table:
    table = tables_in(out).table(name).open()
    assert table is not None
    return table


def plain(out: OutputDirectory, name: str = "frames") -> list[str]:
    """Return the rows for a reader that does not use the ledger: Iceberg's own."""
    table = opened(out, name)
    return sorted(table.scan().to_arrow()["client_id"].to_pylist())


def exact(out: OutputDirectory, name: str = "frames") -> list[str]:
    """Return the rows for a reader that uses the ledger."""
    return sorted(output(out.url).table(name)["client_id"].to_pylist())


@pytest.mark.long
@pytest.mark.slow
def test_each_input_is_in_once(out: OutputDirectory) -> None:
    assert analyze(out, "one")
    assert analyze(out, "two")
    assert not analyze(out, "one")
    for name in ("frames", MESSAGE):
        assert plain(out, name) == exact(out, name) == ["one", "two"]
    found = output(out.url)
    assert output_of(out.url) == found
    assert found.names == ["audit", "connections", "frames", MESSAGE, "packets", "records"]
    assert found.table("records").num_rows == 0
    assert found.read("facts.json") == b'"two"'
    one, two = found.entries
    assert (one.state, one.input) == ("in", "one")
    assert {told["name"]: told["rows"] for told in two.tables}["frames"] == 1
    rows = found.table("frames", ["analysis", "client_id"]).to_pylist()
    assert {(row["analysis"], row["client_id"]) for row in rows} == {
        (one.analysis, "one"), (two.analysis, "two")
    }  # fmt: skip
    with pytest.raises(
        FlexwireError, match=r"read them with flexwire\.spark\.iceberg\.output\.output"
    ):
        read_output(out.url)


def test_columns_have_the_types_that_tasks_wrote(out: OutputDirectory) -> None:
    analyze(out, "one")
    found = output(out.url)
    analysis = pa.field("analysis", pa.string())
    assert found.schema("frames") == FRAMES_TABLE.append(ORIGIN).append(analysis)
    declared = table_schema("ApiVersionsRequest").append(ORIGIN).append(analysis)
    assert found.schema(MESSAGE) == found.table(MESSAGE).schema == declared


@pytest.mark.long
@pytest.mark.slow
def test_no_type_of_any_message_is_lost_in_iceberg() -> None:
    """Iceberg has no 16-bit integers, and pyiceberg reads strings as large strings."""
    are_small = 0
    tables = [table_schema(name) for name in catalog().names()]
    tables += [schema_of(table.columns) for table in (*TABLES, *GROWN_TABLES, *LOG_TABLES)]
    for columns in tables:
        declared = pa.struct([*columns])
        schema = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(columns))
        theirs = pa.struct([*schema.as_arrow()])
        assert as_declared(theirs, declared) == declared
        are_small += "int16" in str(declared)
        # In a table from another release, an additional column keeps Iceberg's type.
        assert pa.types.is_int32(as_declared(pa.int32(), None))
    assert are_small > 100


@pytest.mark.long
def test_a_snapshot_names_its_analysis_and_a_file_is_of_one_day(out: OutputDirectory) -> None:
    analyze(out, "one")
    analyze(out, "two", NOON + timedelta(days=1))
    table = opened(out)
    summaries = [one.summary for one in table.metadata.snapshots]
    named = [one.additional_properties[ADDED] for one in summaries if one is not None]
    assert named == [entry.analysis for entry in output(out.url).entries]
    # Statistics contain the whole name, so an analysis is removed without reading a file.
    assert [file.analysis for file in iceberg_files.live_files(table, out)] == named[::-1]
    partitions = {task.file.partition[0] for task in table.scan().plan_files()}
    assert partitions == {NOON.toordinal() - 719163, NOON.toordinal() - 719162}
    early = table.scan(row_filter=f"time < '{(NOON + timedelta(hours=3)).isoformat()}'")
    assert len([*early.plan_files()]) == 1
    versions = [told["version"] for entry in output(out.url).entries for told in entry.tables]
    assert {snapshot.snapshot_id for snapshot in table.metadata.snapshots} <= {*versions}


@pytest.mark.long
def test_polars_reads_what_flexwire_reads(
    out: OutputDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    for text in ("one", "two"):
        analyze(out, text)
    found = output(out.url)
    for name in found.names:
        table = opened(out, name)
        theirs = pl.scan_iceberg(table).collect().to_arrow()
        ours = found.table(name)
        assert theirs.column_names == ours.column_names
        assert sorted(map(repr, theirs.to_pylist())) == sorted(map(repr, ours.to_pylist()))


def test_all_is_its_owners_alone(out: OutputDirectory) -> None:
    assert out.path is not None
    out.path.mkdir(mode=0o755)
    analyze(out, "one")
    for path in (one for one in out.path.rglob("*") if one.is_file()):
        above = [one for one in path.parents if one.is_relative_to(out.path) and one != out.path]
        assert any(not one.stat().st_mode & 0o077 for one in above), path


@pytest.mark.long
@pytest.mark.slow
def test_without_append_all_that_was_in_is_replaced(out: OutputDirectory) -> None:
    for text in ("one", "two"):
        analyze(out, text)
    analyze(out, "new", append=False)
    assert plain(out) == exact(out) == ["new"]
    assert len(output(out.url).entries) == 1
    # The check wrote no file.
    assert not [*out.entries("tables/frames/data/")]
    assert analyze(out, "one")
    assert plain(out) == exact(out) == ["new", "one"]


def ended(
    monkeypatch: pytest.MonkeyPatch, after: int, raised: BaseException, *, is_done: bool
) -> Any:
    """Raise in a commit to the catalog, after this many others, before or after it takes effect."""
    real: Callable[..., Any] = SqlCatalog.commit_table
    left = [after]

    def counted(*given: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            return real(*given, **named)
        if is_done and left[0] == -1:
            real(*given, **named)
        if left[0] == -1 or isinstance(raised, Killed):
            raise raised
        return real(*given, **named)

    @contextmanager
    def patched() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(SqlCatalog, "commit_table", counted)
            if isinstance(raised, Killed):
                # The process that would clean up is also dead.
                patch.setattr(staging, "give_up", lambda *_: None)
            yield
            assert left[0] < 0, "there are not so many commits"

    return patched()


COMMITS = len(GROWN) + 1
"""The commits of a second analysis: the ledger, and tables with new rows."""
KILLED_AFTER = [0, *in_make_long(*range(1, COMMITS - 1)), COMMITS - 1]
"""The number of commits before one that fails: `make test` tries the first and the last."""


@pytest.mark.slow
@pytest.mark.parametrize("is_done", [False, *in_make_long(True)], ids=["before", "after"])
@pytest.mark.parametrize("after", KILLED_AFTER)
def test_one_that_is_killed_at_a_commit_is_in_whole_or_not(
    out: OutputDirectory, monkeypatch: pytest.MonkeyPatch, after: int, *, is_done: bool
) -> None:
    analyze(out, "one")
    with ended(monkeypatch, after, Killed(), is_done=is_done), pytest.raises(Killed):
        analyze(out, "two")
    is_in = is_done and after == COMMITS - 1
    expected = ["one", "two"] if is_in else ["one"]
    for name in ("frames", MESSAGE):
        assert exact(out, name) == expected
    # The next analysis, whatever its input, removes its rows. The same input is added only once.
    assert not analyze(out, "one")
    for name in ("frames", MESSAGE):
        assert plain(out, name) == exact(out, name) == expected
    assert analyze(out, "two") is not is_in
    for name in ("frames", MESSAGE):
        assert plain(out, name) == exact(out, name) == ["one", "two"]
    # The files of "two" are also removed once they have been in no table for a whole analysis.
    assert not analyze(out, "two")
    runs = {one.analysis for one in output(out.url).entries}
    there = {one.name.split("/")[2] for one in out.entries("tables/frames/analysis=")}
    assert there == {f"analysis={run}" for run in runs}
    assert not [*out.entries("_staging/")]


@pytest.mark.long
def test_the_first_one_that_is_killed_leaves_no_output(
    out: OutputDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ended(monkeypatch, 2, Killed(), is_done=True), pytest.raises(Killed):
        analyze(out, "one")
    with pytest.raises(FlexwireError, match="there is no complete analysis in"):
        output(out.url)
    assert analyze(out, "one")
    assert plain(out) == exact(out) == ["one"]


@pytest.mark.slow
@pytest.mark.parametrize("after", KILLED_AFTER)
def test_a_commit_whose_answer_is_lost_is_not_made_twice(
    out: OutputDirectory, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    analyze(out, "one")
    with ended(monkeypatch, after, CommitStateUnknownException(), is_done=True):
        assert analyze(out, "two")
    for name in ("frames", MESSAGE):
        assert plain(out, name) == exact(out, name) == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("after", KILLED_AFTER)
def test_a_commit_after_that_of_another_is_made_again(
    out: OutputDirectory, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    analyze(out, "one")
    with ended(monkeypatch, after, CommitFailedException("another one"), is_done=False):
        assert analyze(out, "two")
    assert plain(out) == exact(out) == ["one", "two"]


@pytest.mark.long
@pytest.mark.slow
def test_one_that_was_taken_for_ended_cannot_enter(out: OutputDirectory) -> None:
    tables = IcebergTables(out, IcebergCatalog())
    with grown_staging(tables, sources("one"), lambda _: "one", append=True) as writing:
        write(writing, "one")
        files = writing._tables()
        staging.note_tables(out, writing.run, files)
        tables.prepare()
        for name, added in files.items():
            writing._add(name, added)
        # Another analysis begins now, and finds rows that the ledger does not list.
        out.write("_staging/20260101T000000Z-00000000", b"")
        staging.sweep(tables, "20260101T000000Z-00000000")
        assert plain(out) == []
        with pytest.raises(
            FlexwireError, match="another analysis concluded that this analysis had ended"
        ):
            writing.publish()
    assert [one.state for one in tables.ledger.entries()] == ["abandoned"]
    assert analyze(out, "one")
    assert plain(out) == exact(out) == ["one"]


@pytest.mark.long
@pytest.mark.slow
def test_in_a_store_of_two_at_once_with_one_input_one_is_in(tmp_path: Path) -> None:
    lake = IcebergCatalog("lake.kafka", {"type": "sql", "uri": f"sqlite:///{tmp_path / 'lake.db'}"})
    with s3() as bucket:
        out = OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")
        with pytest.raises(
            FlexwireError, match="in an object store, where a catalog cannot be a file"
        ):
            analyze(out, "one")
        tables = IcebergTables(out, lake)
        begun = grown_staging(tables, sources("one"), lambda _: "one", append=True)
        told = pytest.raises(FlexwireError, match="analysis of the same input finished first")
        with told, begun as first:
            write(first, "one")
            remove_lease(out)
            assert analyze(out, "one", where=lake)
            first.publish()
        assert plain(out) == exact(out) == ["one"]
        assert analyze(out, "two", where=lake)
        assert plain(out) == exact(out) == ["one", "two"]
        kept = out.read("catalog/catalog.json")
        assert b"lake.kafka" in kept
        assert b"secret" not in kept


@pytest.mark.long
@pytest.mark.slow
def test_the_ledger_has_few_files_and_loses_no_entry(out: OutputDirectory) -> None:
    analyze(out, "first")
    kept = tables_in(out).ledger
    names = [f"20261122T1200{number:02}Z-00000000" for number in range(35)]
    for name in names:
        entry = ledger.new_entry(name, ledger.IN, name, {name: 1})
        kept.change(lambda _, entry=entry: [entry])  # type: ignore[misc]  # it is called in this turn
    entries = kept.entries()
    assert [one.analysis for one in entries][1:] == names
    assert [one.files for one in entries][1:] == [[1]] * len(names)
    assert len(kept.snapshot().ledger_files) < ledger._FANOUT
    assert [one.analysis for one in kept.snapshot().with_files({names[7]: 1})] == [names[7]]
    kept.change(lambda _: [ledger.new_entry("last", ledger.IN, "last", {})], replaces=True)
    assert [one.analysis for one in kept.entries()] == ["last"]


def test_a_ledger_that_was_changed_meanwhile_is_read_again(out: OutputDirectory) -> None:
    analyze(out, "one")
    kept = tables_in(out).ledger

    has_between = []

    def add(old: ledger.LedgerSnapshot) -> list[ledger.LedgerEntry]:
        has_between.append(bool(old.states({"between"})))
        if not has_between[-1]:
            kept.change(lambda _: [ledger.new_entry("between", ledger.IN, "between", {})])
        return [ledger.new_entry("second", ledger.IN, "second", {})]

    kept.change(add)
    # The input of "second" was read again: pyiceberg alone would have committed the earlier result.
    assert has_between == [False, True]
    assert [one.analysis for one in kept.entries()][1:] == ["between", "second"]


def test_the_schema_is_widened_with_the_files_that_need_it(out: OutputDirectory) -> None:
    tables = IcebergTables(out, IcebergCatalog())
    tables.prepare()

    def add(run: str, body: dict[str, Any], kind: pa.DataType) -> None:
        columns = pa.schema(
            [("time", pa.timestamp("us", "UTC")), ("body", kind), ("analysis", pa.string())]
        )
        name = f"analysis={run}/day=2026-11-22/x"
        assert out.path is not None
        path = out.path / "tables" / MESSAGE / name
        path.parent.mkdir(parents=True)
        row = {"time": NOON, "body": body, "analysis": run}
        pq.write_table(pa.Table.from_pylist([row], columns), path, store_schema=False)
        tables.table(MESSAGE).add([AddedFile(name, path.stat().st_size, 1)], columns, run)

    inner = [("a", pa.int16())]
    topics = pa.list_(pa.struct([*inner, ("b", pa.string())]))
    add("1", {"topics": [{"a": 1}]}, pa.struct([("topics", pa.list_(pa.struct(inner)))]))
    add("2", {"topics": [{"a": 2, "b": "two"}], "c": True},
        pa.struct([("topics", topics), ("c", pa.bool_())]))  # fmt: skip
    # This is another analysis, with fewer rows.
    add("3", {"topics": [{"a": 3}]}, pa.struct([("topics", pa.list_(pa.struct(inner)))]))
    table = tables.table(MESSAGE).open()
    assert table is not None
    rows = table.scan().to_arrow().sort_by("analysis")["body"].to_pylist()
    assert rows == [
        {"topics": [{"a": 1, "b": None}], "c": None},
        {"topics": [{"a": 2, "b": "two"}], "c": True},
        {"topics": [{"a": 3, "b": None}], "c": None},
    ]
    with pytest.raises(
        FlexwireError, match=r"Iceberg cannot convert the columns: .*choose another"
    ):
        add("4", {"c": "4"}, pa.struct([("c", pa.string())]))
    assert tables.table(MESSAGE).analyses({"0", "1", "2", "3"}) == {"1", "2", "3"}


@pytest.mark.long
@pytest.mark.slow
def test_files_that_an_engine_has_joined_are_taken_out_too(out: OutputDirectory) -> None:
    for text in ("one", "two"):
        analyze(out, text)
    one, two = output(out.url).entries
    frames = tables_in(out).table("frames")
    table = frames.open()
    assert table is not None
    table.overwrite(table.scan().to_arrow())
    assert len(output(out.url).files("frames")) == 1
    assert plain(out) == exact(out) == ["one", "two"]
    assert frames.analyses({one.analysis, two.analysis, "another"}) == {one.analysis, two.analysis}
    # A file with rows of several analyses is rewritten with the remaining rows.
    frames.remove({one.analysis})
    assert plain(out) == ["two"]
    frames.remove({one.analysis})
    analyze(out, "new", append=False)
    assert plain(out) == exact(out) == ["new"]


@pytest.mark.long
def test_a_file_whose_statistics_an_engine_has_cut_is_not_lost(out: OutputDirectory) -> None:
    """Most engines keep 16 characters of a string in statistics, unless a table asks for all."""
    for text in ("one", "two"):
        analyze(out, text)
    runs = {entry.analysis for entry in output(out.url).entries}
    table = opened(out)
    with table.transaction() as change:
        change.remove_properties("write.metadata.metrics.column.analysis")
        change.overwrite(table.scan().to_arrow())
    (file,) = iceberg_files.live_files(table, out)
    assert file.first["analysis"] not in runs
    assert exact(out) == ["one", "two"]
    assert tables_in(out).table("frames").analyses(runs) == runs


@pytest.mark.long
@pytest.mark.slow
def test_old_days_are_taken_out_and_connections_that_go_on_stay(out: OutputDirectory) -> None:
    for day, text in enumerate(("old", "kept")):
        analyze(out, text, NOON + timedelta(days=day))
    first = (NOON + timedelta(days=1)).date()
    groups = [*to_retire(out, first)]
    assert {(group.table, group.day, len(group.files)) for group in groups} == {
        (name, "2026-11-22", 1) for name in GROWN
    }
    assert all(group.size > 0 for group in groups)
    retire(out, groups)
    assert plain(out) == exact(out) == ["kept"]
    assert [*to_retire(out, first)] == []
    # The added analyses are known, although their rows are gone.
    assert not analyze(out, "old")


@pytest.mark.long
@pytest.mark.slow
def test_what_no_snapshot_names_is_removed_and_all_else_is_not(out: OutputDirectory) -> None:
    for text in ("one", "two"):
        analyze(out, text)
    analyze(out, "new", append=False)
    assert [*unnamed_files(out, hours=1)] == []
    found = {group.table: {file["path"] for file in group.files} for group in unnamed_files(out, 0)}
    # These files are the data of replaced rows, and the manifests that listed this data.
    assert {"frames", "connections", MESSAGE, "ledger"} <= found.keys()
    assert sum(path.endswith(".parquet") for path in found["frames"]) == 2
    remove_unnamed_files(out, ["frames"], 0)
    left = {group.table for group in unnamed_files(out, 0)}
    assert "frames" not in left
    assert MESSAGE in left
    remove_unnamed_files(out, [*found], 0)
    assert [*unnamed_files(out, 0)] == []
    for name in output(out.url).names:
        table = opened(out, name)
        assert len(table.metadata.snapshots) <= 1
        assert table.scan().to_arrow().num_rows == output(out.url).table(name).num_rows
    assert plain(out) == exact(out) == ["new"]
    assert analyze(out, "more")
    assert plain(out) == exact(out) == ["more", "new"]


@pytest.mark.long
@pytest.mark.slow
def test_old_snapshots_do_not_pile_up(
    out: OutputDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = iceberg_files.expire_old

    def expire(table: Table) -> int:
        return real(table, 0, 3, 2)

    monkeypatch.setattr("flexwire.spark.iceberg.tables.expire_old", expire)
    for number in range(9):
        analyze(out, f"{number}")
        table = opened(out)
        assert len(table.metadata.snapshots) <= 6
    snapshots = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
    for kept in range(1, len(snapshots) + 3):
        assert iceberg_files.old_snapshots(table, 0, kept) == snapshots[:-kept]
        assert iceberg_files.old_snapshots(table, 3600, kept) == []
    assert plain(out) == exact(out) == [f"{number}" for number in range(9)]


@pytest.mark.long
@pytest.mark.slow
def test_the_commands_of_upkeep_work_on_iceberg_tables(out: OutputDirectory) -> None:
    analyze(out, "old", NOON - timedelta(days=900))
    analyze(out, "new", datetime.now(UTC))

    def ask(*arguments: str) -> Any:
        result = CliRunner().invoke(app, ["tables", *arguments, "--format", "json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.output)

    retain = ["retain", out.url, "--days", "30"]
    told = ask(*retain, "--dry-run")
    assert told["isDone"] is False
    assert {group["table"] for group in told["groups"]} == {*GROWN}
    assert exact(out) == ["new", "old"]
    assert ask(*retain)["groups"] == told["groups"]
    assert exact(out) == plain(out) == ["new"]
    # No file is a day old yet.
    assert ask("vacuum", out.url, "--hours", "24") == {"isDone": True, "groups": []}
    result = CliRunner().invoke(app, ["tables", "compact", out.url])
    assert "flexwire does not compact Iceberg tables" in str(result.exception)


@pytest.mark.long
@pytest.mark.slow
def test_tasks_need_no_pyiceberg() -> None:
    """Pickled objects for tasks refer only to what executors have, and do not need Delta."""
    layout_alone = (
        "import sys; import flexwire.spark.delta.layout; "
        "assert not {'deltalake', 'pyiceberg', 'pyspark'} & set(sys.modules)"
    )
    iceberg_alone = (
        "import sys; import flexwire.spark.iceberg.output, flexwire.spark.delta.staging; "
        "assert 'deltalake' not in sys.modules"
    )
    for program in (layout_alone, iceberg_alone):
        subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_an_analysis_that_is_appended_is_the_same_as_one_in_parquet(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    captures = write_capture(tmp_path / "captures", 5, replace(CLEAN, files=2))
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    run(captures, whole, spark=spark)
    first = run(captures, grown, spark=spark, format="iceberg", append=True)
    again = run(captures, grown, spark=spark, format="iceberg", append=True)
    assert (first.is_new, again.is_new) == (True, False)
    assert again.facts == first.facts
    assert first.tables.root == grown / "tables"
    one, other = read_output(whole), output(grown)
    grown_only = {table.place for table in GROWN_TABLES}
    filled = [name for name in other.names if other.table(name).num_rows]
    assert one.names == [name for name in filled if name not in grown_only]
    for name in one.names:
        theirs = one.table(name)
        assert {*other.schema(name).names} - {*theirs.column_names} <= OF_GROWN, name
        ours = other.table(name, theirs.column_names)
        assert ours.schema.equals(theirs.schema), name
        assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist())), name
    answers = ["chargeback", "latency", "errors", "sizes", "tagged_fields"]
    for ours, theirs in zip(
        stored_answers(grown, answers), stored_answers(whole, answers), strict=True
    ):
        assert ours.rows.to_pylist() == theirs.rows.to_pylist(), ours.answer.name
    tables = open_tables(spark, grown)
    assert tables.frames.count() == one.table("frames").num_rows
    frames = spark_table(spark, grown, "frames", ["analysis", "frame_index"])
    assert {tuple(row) for row in frames.collect()} == {
        tuple(row.values())
        for row in other.table("frames", ["analysis", "frame_index"]).to_pylist()
    }
    names = {path.name for path in (grown / "runs").rglob("*")}
    assert {name for name in names if name.startswith("_")} == set()


@pytest.mark.slow
def test_formats_do_not_mix(out: OutputDirectory, tmp_path: Path) -> None:
    analyze(out, "one")
    with (
        pytest.raises(FlexwireError, match=r"holds Iceberg tables .* use --tables iceberg"),
        begin_output(out, [], OutputOptions("parquet", append=False)),
    ):
        pytest.fail("it would replace them")
    with (
        pytest.raises(FlexwireError, match="holds Iceberg tables; choose another --out for Delta"),
        delta_staging(out, sources("one"), lambda _: "one", append=True),
    ):
        pytest.fail("it would mix them")
    delta = OutputDirectory(str(tmp_path / "delta"))
    with delta_staging(delta, sources("one"), lambda _: "one", append=True) as writing:
        write(writing, "one")
        writing.publish()
    with pytest.raises(FlexwireError, match="holds Delta tables; choose another --out for Iceberg"):
        analyze(delta, "one")
    with pytest.raises(StorageError, match="expected a local path, s3://"):
        analyze(OutputDirectory("hdfs://host/out"), "one")
    with pytest.raises(FlexwireError, match=r"contains \?, # or %"):
        analyze(OutputDirectory(str(tmp_path / "50%")), "one")


@pytest.mark.long
@pytest.mark.slow
def test_a_database_has_the_tables_of_one_output(out: OutputDirectory, tmp_path: Path) -> None:
    sql = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'lake.db'}"}
    lake = IcebergCatalog("lake.kafka", sql)
    analyze(out, "one", where=lake)
    other = OutputDirectory(str(tmp_path / "other"))
    with pytest.raises(FlexwireError, match=r"lake\.kafka holds the tables of another output"):
        analyze(other, "one", where=lake)
    assert analyze(other, "one", where=IcebergCatalog("lake.second", sql))
    with pytest.raises(FlexwireError, match=r"keeps its tables in the catalog lake\.kafka, not"):
        analyze(out, "two")
    assert exact(out) == exact(other) == ["one"]


def test_no_catalog_of_a_caller_holds_a_secret(out: OutputDirectory) -> None:
    for name, value in [
        ("token", "t"), ("credential", "a:b"), ("s3.secret-access-key", "k"),
        ("uri", "postgresql://me:pass@host/db"), ("s3.access-key-id", "k"),
        ("adls.sas-token", "t"), ("gcs.oauth2.token", "t"), ("password", "p"),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError, match="holds a key or password") as told:
            IcebergCatalog("lake.kafka", {name: value})
        assert value not in str(told.value).split()
    IcebergCatalog("lake.kafka", {"uri": "https://host", "oauth2-server-uri": "https://host"})
    for wrong in ("lake", "lake.kafka.more", "la ke.kafka", "lake.", 7):
        with pytest.raises(ArgumentError, match="iceberg_catalog"):
            to_format("iceberg", append=False, catalog=wrong)
    with pytest.raises(ArgumentError, match="iceberg_catalog: expected the iceberg format"):
        to_format("delta", append=False, catalog="lake.kafka")
    with pytest.raises(ArgumentError, match="register: expected the parquet or delta format"):
        to_format("iceberg", append=False, register="spark_catalog.kafka")
    for data in (b"", b"[]", b"{}", b'{"format": 2, "catalog": null, "properties": {}}',
                 b'{"format": 1, "catalog": "a.b", "properties": {"token": "t"}}'):  # fmt: skip
        out.write("catalog/catalog.json", data)
        with pytest.raises(FlexwireError):
            output(out.url)


def test_tables_have_names_of_their_own_in_a_catalog() -> None:
    names = [catalog_table(name) for name in [*layout.ALWAYS, MESSAGE]]
    real = [catalog_table(f"messages/{name}") for name in catalog().names()]
    assert len({*names, *real}) == len({*layout.ALWAYS}) + len(catalog().names())
    assert all(name == name.lower() and name.isidentifier() for name in real)


def test_a_file_elsewhere_is_told(out: OutputDirectory, tmp_path: Path) -> None:
    analyze(out, "one")
    table = opened(out)
    elsewhere = tmp_path / "elsewhere.parquet"
    (name,) = (file.name for file in output(out.url).files("frames"))
    assert out.path is not None
    elsewhere.write_bytes((out.path / name).read_bytes())
    table.add_files([f"file://{elsewhere}"])
    with pytest.raises(FlexwireError, match="which is outside this output"):
        output(out.url).table("frames")
