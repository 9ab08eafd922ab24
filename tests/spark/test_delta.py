"""Tables grow by whole analyses, each added once, even if one of them is killed."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from flexwire.errors import AnalysisError, ArgumentError, FlexwireError, StorageError
from flexwire.spark.analyze import analyze as run
from flexwire.spark.dataframes import table as spark_table
from flexwire.spark.delta import layout, ledger, logs, staging
from flexwire.spark.delta.delta_ledger import DeltaLedger
from flexwire.spark.delta.grown import AddedFile
from flexwire.spark.delta.layout import by_day, storage_options, table_url
from flexwire.spark.delta.ledger import fingerprint
from flexwire.spark.delta.logs import TableLog
from flexwire.spark.delta.output import DeltaTables, output
from flexwire.spark.inputs import begin_output
from flexwire.spark.publishing.output import OutputOptions
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.output import SUCCESS
from flexwire.tables.output import output as read_output
from flexwire.tables.parquet import TableWriter
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE, GROWN_TABLES
from tests.capture.interleaved import CLEAN, write_capture
from tests.searching import in_make_long
from tests.spark.grown import (
    MESSAGE,
    NOON,
    Killed,
    analyze,
    delta_staging,
    remove_lease,
    sources,
    write,
)
from tests.storage.servers import s3

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.storage.input_file import InputFile


def plain(out: OutputDirectory, name: str = "frames") -> list[str]:
    """Return the rows for a reader that does not use the ledger."""
    layout = out.child(f"tables/{name}")
    table = DeltaTable(table_url(layout), storage_options=storage_options(layout))
    return sorted(table.to_pyarrow_table()["client_id"].to_pylist())


def exact(out: OutputDirectory, name: str = "frames") -> list[str]:
    """Return the rows for a reader that uses the ledger."""
    return sorted(output(out.url).table(name)["client_id"].to_pylist())


@pytest.fixture(autouse=True)
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few tables, because moto would be slow to create tables for hundreds of messages."""
    monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, MESSAGE])


@pytest.fixture
def out(tmp_path: Path) -> OutputDirectory:
    return OutputDirectory(str(tmp_path / "out"))


@pytest.fixture(params=["path", *in_make_long("s3")])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutputDirectory]:
    if request.param == "path":
        yield OutputDirectory(str(tmp_path / "out"))
        return
    with s3() as bucket:
        yield OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")


@pytest.mark.slow
def test_the_last_analysis_is_the_last_one_though_the_clock_was_set_back(
    out: OutputDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = [NOON, NOON - timedelta(hours=1), NOON, NOON - timedelta(days=9)]
    clock = SimpleNamespace(now=lambda _: hours.pop(0))
    monkeypatch.setattr(ledger, "datetime", clock)
    for number in range(4):
        assert analyze(out, f"{number}")
        entries = DeltaLedger(out).entries()
        assert [one.input for one in entries] == [f"{before}" for before in range(number + 1)]
        assert len({one.time for one in entries}) == number + 1
        assert output(out.url).read("facts.json") == f'"{number}"'.encode()
    assert hours == []


@pytest.mark.slow
def test_each_input_is_in_once(anywhere: OutputDirectory) -> None:
    assert analyze(anywhere, "one")
    assert analyze(anywhere, "two")
    assert not analyze(anywhere, "one")
    for name in ("frames", MESSAGE):
        assert plain(anywhere, name) == exact(anywhere, name) == ["one", "two"]
    found = output(anywhere.url)
    assert found.names == ["audit", "connections", "frames", MESSAGE, "packets", "records"]
    assert found.table("records").num_rows == 0
    assert found.read("facts.json") == b'"two"'
    one, two = found.entries
    assert (one.state, one.input) == ("in", "one")
    assert [len(each.files) for each in DeltaLedger(anywhere).entries()] == [1, 1]
    assert {told["name"]: told["rows"] for told in two.tables}["frames"] == 1
    rows = found.table("frames", ["analysis", "client_id", "day"]).to_pylist()
    assert {(row["analysis"], row["client_id"]) for row in rows} == {
        (one.analysis, "one"), (two.analysis, "two")
    }  # fmt: skip
    assert {row["day"] for row in rows} == {NOON.date()}
    expected = r"holds Delta tables; read them with flexwire\.spark\.delta\.output\.output"
    with pytest.raises(FlexwireError, match=expected):
        read_output(anywhere.url)


def test_all_is_its_owners_alone(out: OutputDirectory) -> None:
    assert out.path is not None
    out.path.mkdir(mode=0o755)
    analyze(out, "one")
    for path in (one for one in out.path.rglob("*") if one.is_file()):
        above = [one for one in path.parents if one.is_relative_to(out.path) and one != out.path]
        assert any(not one.stat().st_mode & 0o077 for one in above), path


def test_duckdb_reads_what_deltalake_reads(out: OutputDirectory) -> None:
    for text in ("one", "two"):
        analyze(out, text)
    frames = output(out.url).dataset("frames")
    asked = "select client_id, day, count(*) from frames group by all order by all"
    with duckdb.connect() as connection:
        connection.register("frames", frames)
        found = connection.execute(asked).fetchall()
    assert found == [("one", NOON.date(), 1), ("two", NOON.date(), 1)]


@pytest.mark.slow
def test_files_that_are_in_already_are_left_out_beside_new_ones(out: OutputDirectory) -> None:
    def digest_of(some: Sequence[InputFile]) -> str:
        return ",".join(source.name for source in some)

    for names, new in (["one"], "one"), (["one", "two"], "two"), (["three", "two", "one"], "three"):
        with delta_staging(out, sources(*names), digest_of, append=True) as writing:
            assert writing.known_files == {f"/captures/{name}" for name in names} - {
                f"/captures/{new}"
            }
            write(writing, new)
            writing.publish()
    assert exact(out) == plain(out) == ["one", "three", "two"]
    entries = output(out.url).entries
    assert [entry.files for entry in DeltaLedger(out).entries()] == [
        [fingerprint(source)] for source in sources("one", "two", "three")
    ]
    # If earlier analyses together have added all files, nothing is left to do. The report is in the
    # latest analysis.
    for names, latest in (["one", "two"], 1), (["one"], 0), (["one", "two", "three"], 2):
        with delta_staging(out, sources(*names), digest_of, append=True) as writing:
            assert writing.known_run == entries[latest].analysis
    # Logs next to the captures may have grown. In that case, only the logs are read.
    both = sources("one", "two")
    with delta_staging(out, both, digest_of, append=True, has_logs=True) as writing:
        assert (writing.known_run, len(writing.known_files)) == (None, 2)
        assert writing.fingerprints == {}


@pytest.mark.long
@pytest.mark.slow
def test_without_append_all_that_was_in_is_replaced(anywhere: OutputDirectory) -> None:
    for text in ("one", "two"):
        analyze(anywhere, text)
    analyze(anywhere, "new", append=False)
    assert plain(anywhere) == exact(anywhere) == ["new"]
    assert analyze(anywhere, "one")
    assert plain(anywhere) == exact(anywhere) == ["new", "one"]


@pytest.mark.long
@pytest.mark.slow
def test_files_that_others_have_joined_are_taken_out_too(
    out: OutputDirectory, tmp_path: Path
) -> None:
    for text in ("one", "two"):
        analyze(out, text)
    (one, two) = output(out.url).entries
    names = ("client_id", "analysis")
    columns = pa.schema([("time", pa.timestamp("us", "UTC")), *((n, pa.string()) for n in names)])
    row = {"time": NOON, "client_id": "two", "analysis": two.analysis}
    local = tmp_path / "more.parquet"
    pq.write_table(pa.Table.from_pylist([row], columns), local)
    name = f"analysis={two.analysis}/day=2026-11-22/more.parquet"
    size = local.stat().st_size
    out.put(local, f"tables/frames/{name}")
    TableLog(out, "frames").add([AddedFile(name, size, 1)], columns, two.analysis)
    table = TableLog(out, "frames").open()
    assert table is not None
    assert table.optimize.compact()["numFilesAdded"] == 1
    assert plain(out) == exact(out) == ["one", "two", "two"]
    # A file with rows of several analyses is rewritten with the remaining rows.
    TableLog(out, "frames").remove({one.analysis})
    assert plain(out) == exact(out) == ["two", "two"]
    assert TableLog(out, "frames").analyses({one.analysis, two.analysis}) == {two.analysis}
    analyze(out, "new", append=False)
    assert plain(out) == exact(out) == ["new"]


def test_the_schema_is_widened_before_files_are_added(out: OutputDirectory) -> None:
    """deltalake silently adds files with more columns, and no reader sees those columns."""

    def add(name: str, body: dict[str, Any], kind: pa.DataType) -> None:
        columns = pa.schema(
            [("time", pa.timestamp("us", "UTC")), ("body", kind), ("analysis", pa.string())]
        )
        path = out.path / "tables" / MESSAGE / name if out.path else None
        assert path is not None
        path.parent.mkdir(parents=True)
        row = {"time": NOON, "body": body, "analysis": name[9]}
        pq.write_table(pa.Table.from_pylist([row], columns), path)
        TableLog(out, MESSAGE).add([AddedFile(name, path.stat().st_size, 1)], columns, name[9])

    inner = [("a", pa.int32())]
    topic = pa.list_(pa.struct([*inner, ("b", pa.string())]))
    add("analysis=1/day=2026-11-22/x", {"topics": [{"a": 1}]},
        pa.struct([("topics", pa.list_(pa.struct(inner)))]))  # fmt: skip
    add("analysis=2/day=2026-11-22/x", {"topics": [{"a": 2, "b": "two"}], "c": True},
        pa.struct([("topics", topic), ("c", pa.bool_())]))  # fmt: skip
    # This is another analysis, with fewer rows.
    add("analysis=3/day=2026-11-22/x", {"topics": [{"a": 3}]},
        pa.struct([("topics", pa.list_(pa.struct(inner)))]))  # fmt: skip
    table = TableLog(out, MESSAGE).open()
    assert table is not None
    rows = table.to_pyarrow_table().sort_by("analysis")["body"].to_pylist()
    assert rows == [
        {"topics": [{"a": 1, "b": None}], "c": None},
        {"topics": [{"a": 2, "b": "two"}], "c": True},
        {"topics": [{"a": 3, "b": None}], "c": None},
    ]
    with pytest.raises(
        FlexwireError, match=r"column body\.c has the type boolean in the table but "
    ):
        add("analysis=4/day=2026-11-22/x", {"c": 4}, pa.struct([("c", pa.int64())]))
    assert TableLog(out, MESSAGE).analyses({"0", "1", "2", "3"}) == {"1", "2", "3"}


@contextmanager
def ended(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, after: int) -> Iterator[None]:
    """Kill the process immediately after this many calls to a function."""
    real, calls = getattr(module, name), [after]

    def counted(*given: Any, **named: Any) -> Any:
        calls[0] -= 1
        if calls[0] < 0:
            raise Killed
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, counted)
        # The process that would clean up is also dead.
        patch.setattr(staging, "give_up", lambda *_: None)
        yield


def add_some(monkeypatch: pytest.MonkeyPatch, out: OutputDirectory, text: str, after: int) -> None:
    """Run an analysis that is killed after it was added to some of the tables."""
    killed = pytest.raises(Killed)
    with ended(monkeypatch, TableLog, "add", after), killed:
        analyze(out, text)


@pytest.mark.slow
@pytest.mark.parametrize("after", [2, *in_make_long(0, 6)])
def test_one_that_is_killed_before_the_ledger_is_not_in(
    anywhere: OutputDirectory, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    analyze(anywhere, "one")
    if after < 6:
        add_some(monkeypatch, anywhere, "two", after)
    else:
        # All tables contain the rows of "two", but the ledger does not list that analysis.
        with ended(monkeypatch, DeltaLedger, "change", 0), pytest.raises(Killed):
            analyze(anywhere, "two")
        assert plain(anywhere) == ["one", "two"]
    assert exact(anywhere) == ["one"]
    # The next analysis, whatever its input, removes its rows. The same input is added only once.
    assert not analyze(anywhere, "one")
    for name in ("frames", MESSAGE):
        assert plain(anywhere, name) == exact(anywhere, name) == ["one"]
    assert analyze(anywhere, "two")
    for name in ("frames", MESSAGE):
        assert plain(anywhere, name) == exact(anywhere, name) == ["one", "two"]
    if anywhere.path is None:
        return
    # The files of "two" are also removed once they have been in no table for a whole analysis.
    assert not analyze(anywhere, "two")
    runs = {one.analysis for one in output(anywhere.url).entries}
    there = {one.name.split("/")[2] for one in anywhere.entries("tables/frames/analysis=")}
    assert there == {f"analysis={run}" for run in runs}
    assert not [*anywhere.entries("_staging/")]


@pytest.mark.slow
def test_one_that_was_taken_for_ended_cannot_enter(anywhere: OutputDirectory) -> None:
    """A store has no locks, so the order in the ledger decides which analysis counts."""
    with delta_staging(anywhere, sources("one"), lambda _: "one", append=True) as writing:
        write(writing, "one")
        tables = writing._tables()
        staging.note_tables(anywhere, writing.run, tables)
        for name, files in tables.items():
            writing._add(name, files)
        # Another analysis begins now, and finds rows that the ledger does not list.
        anywhere.write("_staging/20260101T000000Z-00000000", b"")
        staging.sweep(DeltaTables(anywhere), "20260101T000000Z-00000000")
        assert plain(anywhere) == []
        with pytest.raises(
            FlexwireError, match="another analysis concluded that this analysis had ended"
        ):
            writing.publish()
    assert [one.state for one in DeltaLedger(anywhere).entries()] == ["abandoned"]
    assert analyze(anywhere, "one")
    assert plain(anywhere) == exact(anywhere) == ["one"]


@pytest.mark.long
@pytest.mark.slow
def test_of_two_at_once_with_one_input_one_is_in() -> None:
    with s3() as bucket:
        out = OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")
        begun_first = delta_staging(out, sources("one"), lambda _: "one", append=True)
        told = pytest.raises(FlexwireError, match="analysis of the same input finished first")
        with told, begun_first as first:
            write(first, "one")
            remove_lease(out)
            assert analyze(out, "one")
            first.publish()
        assert plain(out) == exact(out) == ["one"]


@pytest.mark.slow
def test_the_ledger_loses_no_entry(anywhere: OutputDirectory) -> None:
    kept = DeltaLedger(anywhere)

    def add(name: str, old: ledger.LedgerSnapshot) -> list[ledger.LedgerEntry]:
        if name == "second" and not old.states({"between"}):
            kept.change(partial(add, "between"))
        return [ledger.new_entry(name, ledger.IN, name, {})]

    for name in ("first", "second"):
        kept.change(partial(add, name))
    assert [one.analysis for one in kept.entries()] == ["first", "between", "second"]


def test_a_place_of_a_run_keeps_names_where_the_tables_have_them(out: OutputDirectory) -> None:
    run = "20261122T120000Z-00000000"
    place = layout.DeltaDirectory(out.url, run)
    where = {
        "facts.json": f"runs/{run}/facts.json",
        "tables/frames/day=2026-11-22/a": f"tables/frames/analysis={run}/day=2026-11-22/a",
        f"tables/{MESSAGE}/b": f"tables/{MESSAGE}/analysis={run}/b",
    }
    for name, below in where.items():
        folder, _, rest = name.rpartition("/")
        inner = place.child(folder) if folder else place
        inner.write(rest, name.encode())
        assert out.read(below) == place.read(name) == inner.read(rest) == name.encode()
        assert [place.source(one).read() for one in place.entries(name)] == [name.encode()]
        assert pickle.loads(pickle.dumps(inner)).exists(rest)  # noqa: S301 - this line also pickled the data
    assert {one.name for one in place.entries()} == {*where}
    place.remove(where)
    assert [*place.entries()] == [*out.entries()] == []
    for name in ("", "..", "../a", "tables/../a", "/a"):
        for ask in (place.child, place.read, place.exists):
            with pytest.raises(ArgumentError, match="a relative name"):
                ask(name)


def test_formats_do_not_mix(out: OutputDirectory, tmp_path: Path) -> None:
    analyze(out, "one")
    with (
        pytest.raises(FlexwireError, match=r"holds Delta tables .* use --tables delta"),
        begin_output(out, [], OutputOptions("parquet", append=False)),
    ):
        pytest.fail("it would replace them")
    other = OutputDirectory(str(tmp_path / "other"))
    other.write("tables/_flexwire.json", b"{}")
    other.write(f"tables/{SUCCESS}", b"{}")
    with pytest.raises(FlexwireError, match="holds an analysis in the parquet format"):
        analyze(other, "one")
    theirs = OutputDirectory(str(tmp_path / "theirs"))
    theirs.write("tables/mine.txt", b"1")
    with pytest.raises(FlexwireError, match="holds files that flexwire did not write"):
        analyze(theirs, "one")
    with pytest.raises(
        StorageError, match="expected a local path, s3://, gs://, abfs:// for Delta"
    ):
        analyze(OutputDirectory("hdfs://host/out"), "one")


def test_another_analysis_under_way_is_told(out: OutputDirectory) -> None:
    told = pytest.raises(FlexwireError, match="another analysis is writing to")
    with delta_staging(out, sources("one"), lambda _: "one", append=True), told:
        analyze(out, "two")
    assert out.path is not None
    assert not out.path.exists()


def cut(tmp_path: Path, moments: list[datetime], table: str = "frames") -> dict[str, list[Any]]:
    """Return the days in a part of a table, and the positions of each day's rows."""
    column = "first_time" if table == "connections" else "time"
    columns = CONNECTIONS_TABLE if table == "connections" else FRAMES_TABLE
    key = "captured_bytes" if table == "connections" else "frame_index"
    rows = [{column: moment, key: at} for at, moment in enumerate(moments)]
    local = tmp_path / "part.parquet"
    with TableWriter(local, columns) as writer:
        if rows:
            writer.write(pa.RecordBatch.from_pylist(rows, columns))
    found = {}
    for path, name, count in by_day(local, table, "a.parquet", writer.rows):
        found[name] = pq.read_table(path)[key].to_pylist()
        assert len(found[name]) == count
        path.unlink()
    local.unlink(missing_ok=True)
    return found


def test_a_part_is_cut_by_the_days_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight = datetime(2026, 11, 22, tzinfo=UTC)
    last = midnight - timedelta(microseconds=1)
    assert cut(tmp_path, []) == {}
    assert cut(tmp_path, [midnight, NOON]) == {"day=2026-11-22/a.parquet": [0, 1]}
    for table in ("frames", "connections"):
        assert cut(tmp_path, [midnight, last, NOON], table) == {
            "day=2026-11-21/a.parquet": [1],
            "day=2026-11-22/a.parquet": [0, 2],
        }
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert list(cut(tmp_path, [before_1970, midnight])) == [
        "day=1969-12-31/a.parquet", "day=2026-11-22/a.parquet"
    ]  # fmt: skip
    chance = random.Random(1)
    many = [midnight + timedelta(hours=chance.randrange(24 * 30)) for _ in range(200)]
    found = cut(tmp_path, many)
    assert sorted(chain.from_iterable(found.values())) == list(range(200))
    for name, places in found.items():
        assert {f"day={many[at].date()}/a.parquet" for at in places} == {name}
    monkeypatch.setattr(layout, "MOST_DAYS", 3)
    with pytest.raises(AnalysisError, match="one task's part of frames covers 4 days"):
        cut(tmp_path, [midnight + timedelta(days=one) for one in range(4)])


@pytest.mark.parametrize("which", [("packets", "a.parquet"), ("frames", "day=2026-11-22/a")])
def test_what_has_no_moment_or_was_cut_before_stays(tmp_path: Path, which: tuple[str, str]) -> None:
    table, name = which
    assert list(by_day(tmp_path / "x", table, name, 3)) == [(tmp_path / "x", name, 3)]


@pytest.mark.long
@pytest.mark.slow
def test_what_a_store_refuses_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3() as bucket:
        out = OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")
        analyze(out, "one")
        monkeypatch.setattr(logs, "storage_options", lambda _: {"AWS_REGION": "nowhere",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})  # fmt: skip
        with pytest.raises(
            StorageError, match=r"s3://captures/.*/tables/frames: cannot commit to: "
        ):
            TableLog(out, "frames").analyses({"1"})


@pytest.mark.long
@pytest.mark.slow
def test_tasks_need_no_deltalake() -> None:
    """The pickled objects for tasks refer only to modules that executors have."""
    program = (
        "import sys; import flexwire.spark.delta.layout, flexwire.spark.delta.layout; "
        "assert not {'deltalake', 'pyspark'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_an_analysis_that_is_appended_is_the_same_as_one_in_parquet(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    captures = write_capture(tmp_path / "captures", 5, replace(CLEAN, files=2))
    whole = tmp_path / "whole"
    run(captures, whole, spark=spark)
    out = tmp_path / "out"
    first = run(captures, out, spark=spark, format="delta", append=True)
    again = run(captures, out, spark=spark, format="delta", append=True)
    assert (first.is_new, again.is_new) == (True, False)
    assert again.facts == first.facts
    assert again.report == first.report
    assert first.report.is_file()
    assert first.tables.root == out / "tables"
    one, other = read_output(whole), output(out)
    grown = {table.place for table in GROWN_TABLES}
    filled = [name for name in other.names if other.table(name).num_rows]
    assert one.names == [name for name in filled if name not in grown]
    for name in one.names:
        rows = other.table(name)
        assert name in {"packets", "audit"} or rows["day"].null_count == 0
        assert {*rows.column_names} >= {*one.table(name).column_names}
        less = one.table(name).column_names
        ours, theirs = rows.select(less).to_pylist(), one.table(name).to_pylist()
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), name
    frames = spark_table(spark, out, "frames", ["day", "analysis", "frame_index"])
    assert {tuple(row) for row in frames.collect()} == {
        tuple(row.values())
        for row in other.table("frames", ["day", "analysis", "frame_index"]).to_pylist()
    }
    # Intermediate files of tasks are gone, and only the owner can read the output.
    names = {path.name for path in (out / "runs").rglob("*")}
    assert {name for name in names if name.startswith("_")} == set()
    for path in out.rglob("*.parquet"):
        if "ledger" not in path.parts:
            assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(
        FlexwireError, match="format: expected 'parquet', 'delta' or 'iceberg', got"
    ):
        run(captures, out, format="orc")
    with pytest.raises(FlexwireError, match="append: expected the delta or iceberg format"):
        run(captures, out, append=True)
