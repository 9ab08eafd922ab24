"""Growing tables remain small: files are merged, old days are removed, and no row is lost."""

from __future__ import annotations

import json
import shutil
import uuid
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, Schema
from hypothesis import given
from hypothesis import strategies as st

from flexwire.cli.app import app
from flexwire.spark.delta import layout, ledger, staging, upkeep
from flexwire.spark.delta.delta_ledger import DeltaLedger, DeltaLedgerSnapshot
from flexwire.spark.delta.layout import storage_options, table_url
from flexwire.spark.delta.logs import TableLog, added_files
from flexwire.spark.delta.output import output
from flexwire.spark.delta.statistics import statistics
from flexwire.spark.delta.upkeep import join, retire, to_join, to_retire
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE
from tests.searching import in_make_long, times
from tests.spark.grown import MESSAGE, NOON, analyze, delta_staging, put, sources, write
from tests.storage.servers import s3

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Hours = Callable[[OutputDirectory, int], None]

KEYS = ("analysis", "client_id")
HOUR = timedelta(hours=1)
# There are three days, two of which are over.
HOURS = times(72)


class Killed(BaseException):
    """End a process immediately, without any cleanup."""


@pytest.fixture(autouse=True)
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, MESSAGE])


@pytest.fixture
def out(tmp_path: Path) -> OutputDirectory:
    return OutputDirectory(str(tmp_path / "out"))


def rows(out: OutputDirectory, name: str = "frames") -> list[tuple[Any, ...]]:
    """Return the rows that a reader finds in each way of reading."""
    table = TableLog(out, name).open()
    assert table is not None
    plain = sorted(tuple(row[key] for key in KEYS) for row in table.to_pyarrow_table().to_pylist())
    exact = output(out.url).table(name, KEYS).to_pylist()
    assert sorted(tuple(row.values()) for row in exact) == plain
    return plain


def files(out: OutputDirectory, name: str = "frames") -> list[dict[str, Any]]:
    table = TableLog(out, name).open()
    assert table is not None
    return added_files(table)


def append_hours(out: OutputDirectory, count: int, first: datetime = NOON) -> None:
    for number in range(count):
        assert analyze(out, f"{first + number * HOUR:%m-%dT%H}", first + number * HOUR)


@pytest.fixture(scope="module")
def first_hours(tmp_path_factory: pytest.TempPathFactory) -> Hours:
    """Make tables for the hours from noon on. Each hour is analyzed once for all tests."""
    root = tmp_path_factory.mktemp("hours")
    made: dict[int, Path] = {}

    def make(out: OutputDirectory, count: int) -> None:
        known = max((number for number in made if number <= count), default=0)
        if known < count:
            made[count] = root / f"{count}"
            if known:
                shutil.copytree(made[known], made[count])
            grown = OutputDirectory(str(made[count]))
            append_hours(grown, count - known, NOON + known * HOUR)
        assert out.path is not None
        shutil.copytree(made[count], out.path)

    return make


def compact(out: OutputDirectory) -> None:
    for group in [*to_join(out)]:
        join(out, group)


@pytest.mark.long
@pytest.mark.slow
def test_joining_keeps_every_row_and_makes_one_file_a_day(
    out: OutputDirectory, first_hours: Hours
) -> None:
    first_hours(out, 21)  # 12 of these hours precede midnight
    before = rows(out), rows(out, MESSAGE)
    compact(out)
    assert (rows(out), rows(out, MESSAGE)) == before
    # There is one file for each day, and one for the last analysis, which can still be removed.
    assert [len(files(out, name)) for name in ("frames", MESSAGE, "connections")] == [3, 3, 3]
    # Merged files are not merged again until enough new files have been added.
    assert not [*to_join(out)]
    append_hours(out, 1, NOON + 21 * HOUR)
    assert not [*to_join(out)]
    assert len(rows(out)) == 22
    # The same input is still in the tables. Without append, the whole input is removed.
    assert not analyze(out, "11-22T12")
    analyze(out, "new", append=False)
    assert [client for _, client in rows(out)] == ["new"]


@pytest.mark.long
@pytest.mark.slow
def test_a_store_is_kept_small_too() -> None:
    with s3() as bucket:
        stored = OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")
        for number, text in enumerate(("one", "two", "three")):
            analyze(stored, text, NOON + 11 * number * HOUR)
        before = rows(stored)
        compact(stored)
        assert rows(stored) == before
        assert len(files(stored)) == 2
        retire(stored, [*to_retire(stored, date(2026, 11, 23))])
        assert [client for _, client in rows(stored)] == ["three"]
        # Removed files are kept for readers that have already begun.
        left = {
            entry.name
            for entry in stored.entries("tables/frames/")
            if "_delta_log" not in entry.name
        }
        assert len(left) == 4
        assert not [*upkeep.unnamed_files(stored, 24)]
        gone = [*upkeep.unnamed_files(stored, 0)]
        assert {"frames", MESSAGE, "connections"} <= {group.table for group in gone}
        upkeep.remove_unnamed_files(stored, [group.table for group in gone], 0)
        assert [client for _, client in rows(stored)] == ["three"]


@pytest.mark.long
@pytest.mark.slow
def test_appends_cost_the_same_however_many_are_in(out: OutputDirectory) -> None:
    """As tables grow, an analysis keeps writing the same number of files and rows."""
    written = []
    for hour in range(HOURS):
        append_hours(out, 1, NOON + hour * HOUR)
        if hour % 24 == 23:
            compact(out)
        live = DeltaLedger(out).snapshot().ledger_files
        assert len(live) <= 2 * ledger._FANOUT
        written.append(sum(pq.read_metadata(path).num_rows for path in ledger_files(out)))
        for name in ("frames", MESSAGE, "connections"):
            days = {file["day"] for file in files(out, name)}
            # A finished day is a single file. The last two days may consist of hourly files.
            assert len(files(out, name)) <= len(days) + 2 * 24
            assert commits_to_read(out, name) <= 10
    # Each entry was rewritten at most once for each power of the fan-out.
    assert written[-1] <= HOURS * 3
    growth = [later - earlier for earlier, later in pairwise(written)]
    assert sum(growth[-32:]) <= sum(growth[:32]) + ledger._FANOUT
    assert len(rows(out)) == HOURS
    # A finished operation leaves no note for the next one.
    assert not [*out.entries("_staging/")]


def commits_to_read(out: OutputDirectory, name: str) -> int:
    """Return the number of commits since a table's last checkpoint."""
    log = out.child(f"tables/{name}/_delta_log")
    last = (
        json.loads(log.read("_last_checkpoint"))["version"]
        if log.exists("_last_checkpoint")
        else -1
    )
    commits = [entry.name for entry in log.entries() if entry.name.endswith(".json")]
    return sum(int(commit.removesuffix(".json")) > last for commit in commits)


def ledger_files(out: OutputDirectory) -> list[Path]:
    assert out.path is not None
    return [*(out.path / "ledger").glob("*.parquet")]


@pytest.mark.long
@pytest.mark.slow
def test_an_analysis_looks_only_where_its_files_may_be(
    out: OutputDirectory, first_hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several files of the ledger were merged, and others were not.
    first_hours(out, 30)
    snapshot = DeltaLedger(out).snapshot()
    read: list[int] = []
    real = DeltaLedgerSnapshot._read

    def counted(self: Any, asked: Any, **named: Any) -> Any:
        found = real(self, asked, **named)
        read.append(len(found))
        return found

    monkeypatch.setattr(DeltaLedgerSnapshot, "_read", counted)
    assert not snapshot.with_files({"/captures/11-23T10": -1})
    assert read == [1]
    [last] = [entry.analysis for entry in snapshot.entries()][-1:]
    assert snapshot.states({last, "other"}) == {last: "in"}
    assert read[-1] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commit", *in_make_long("put")])
def test_joining_that_is_killed_loses_nothing(
    out: OutputDirectory, first_hours: Hours, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    first_hours(out, 20)
    before = rows(out)

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if name == "put":
            patch.setattr(OutputDirectory, "put", killed)
        else:
            patch.setattr(upkeep, "commit", killed)
        # The killed process cannot clean up either.
        patch.setattr(OutputDirectory, "remove", lambda *_: None)
        with pytest.raises(Killed):
            compact(out)
    assert rows(out) == before
    compact(out)
    assert rows(out) == before
    # Only the leftovers of the killed process are removed.
    upkeep.remove_unnamed_files(out, ["frames", MESSAGE, "connections", "ledger"], 0)
    assert rows(out) == before
    assert out.path is not None
    there = (out.path / "tables/frames").rglob("*.parquet")
    assert len([path for path in there if "_delta_log" not in path.parts]) == len(files(out))


@pytest.mark.long
@pytest.mark.slow
def test_what_is_not_in_is_not_joined_and_can_be_taken_out(
    out: OutputDirectory, first_hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_hours(out, 12)
    with monkeypatch.context() as patch:

        def killed(*_: Any, **__: Any) -> None:
            raise Killed

        patch.setattr(DeltaLedger, "change", killed)
        patch.setattr(staging, "give_up", lambda *_: None)
        with pytest.raises(Killed):
            analyze(out, "half", NOON)
    assert [*plain_clients(out)].count("half") == 1
    compact(out)
    assert [*plain_clients(out)].count("half") == 1
    append_hours(out, 1, NOON + 12 * HOUR)
    assert "half" not in plain_clients(out)
    assert len(rows(out)) == 13


def plain_clients(out: OutputDirectory) -> list[str]:
    table = TableLog(out, "frames").open()
    assert table is not None
    clients: list[str] = table.to_pyarrow_table()["client_id"].to_pylist()
    return clients


@pytest.mark.long
@pytest.mark.slow
def test_a_commit_that_takes_a_file_out_meanwhile_wins(
    out: OutputDirectory, first_hours: Hours
) -> None:
    first_hours(out, 12)
    groups = [*to_join(out)]
    analyze(out, "new", append=False)
    for group in groups:
        join(out, group)
    assert [client for _, client in rows(out)] == ["new"]


@pytest.mark.long
@pytest.mark.slow
def test_one_that_is_killed_after_it_took_the_place_of_all_is_alone_in(
    out: OutputDirectory, first_hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_hours(out, 12)
    compact(out)

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(staging, "take_out", killed)
        with pytest.raises(Killed):
            analyze(out, "new", append=False)
    assert len(plain_clients(out)) == 13
    assert output(out.url).table("frames", ["client_id"])["client_id"].to_pylist() == ["new"]
    assert len(output(out.url).files("frames")) == 1
    # The next analysis removes the other rows for all readers.
    assert not analyze(out, "new")
    assert [client for _, client in rows(out)] == ["new"]


@pytest.mark.long
@pytest.mark.slow
def test_old_days_go_and_what_was_seen_since_stays(
    out: OutputDirectory, first_hours: Hours
) -> None:
    first_hours(out, 30)
    with delta_staging(out, sources("long"), lambda _: "long", append=True) as writing:
        write(writing, "long", NOON + 20 * HOUR)
        writing.publish()
    groups = [*to_retire(out, date(2026, 11, 23))]
    assert {group.day for group in groups} == {"2026-11-22"}
    retire(out, groups)
    left = {client for _, client in rows(out)}
    assert left == {f"{NOON + n * HOUR:%m-%dT%H}" for n in range(12, 30)} | {"long"}
    assert not [*to_retire(out, date(2026, 11, 23))]
    # Removed analyses count as known.
    assert not analyze(out, "11-22T12")
    connections = output(out.url).table("connections", ["client"])["client"].to_pylist()
    assert sorted(connections) == sorted(left)


def test_a_connection_that_goes_on_stays(out: OutputDirectory) -> None:
    late = NOON + 24 * HOUR
    with delta_staging(out, sources("one"), lambda _: "one", append=True) as writing:
        row = {"first_time": NOON, "last_time": late, "client": "open"}
        put(writing, "connections", CONNECTIONS_TABLE, [row])
        writing.publish()
    assert not [group for group in to_retire(out, late.date()) if group.table == "connections"]


@pytest.mark.long
@pytest.mark.slow
def test_commands_say_what_they_do_before_they_do_it(out: OutputDirectory) -> None:
    append_hours(out, 21, datetime(2020, 1, 1, 12, tzinfo=UTC))
    run = CliRunner()
    told = run.invoke(app, ["tables", "compact", out.url, "--dry-run"], catch_exceptions=False)
    assert told.exit_code == 0
    assert "merge frames 2020-01-01: 12 files, " in told.output
    assert told.output.endswith("60 files would be merged.\n")
    assert len(files(out)) == 21
    done = run.invoke(app, ["tables", "compact", out.url], catch_exceptions=False)
    assert done.output == told.output.replace("would be merged", "merged")
    assert len(files(out)) == 3
    kept = run.invoke(app, ["tables", "vacuum", out.url], catch_exceptions=False)
    assert kept.output == "0 files removed.\n"
    gone = run.invoke(app, ["tables", "retain", out.url, "--days", "30"], catch_exceptions=False)
    assert "take out frames 2020-01-02: 2 files, " in gone.output
    assert rows(out) == []
    assert run.invoke(app, ["tables", "retain", out.url, "--days", "30"]).output == (
        "0 files taken out.\n"
    )


@pytest.mark.long
@pytest.mark.slow
def test_tables_of_an_earlier_release_are_read_and_grow(out: OutputDirectory) -> None:
    """These tables are also partitioned by analysis, and their files lack that column."""
    place = out.child("tables/frames")
    fields = [*FRAMES_TABLE, pa.field("day", pa.date32()), pa.field("analysis", pa.string())]
    DeltaTable.create(
        table_url(place),
        Schema.from_arrow(pa.schema(fields)),
        partition_by=["day", "analysis"],
        storage_options=storage_options(place),
    )
    out.write("_staging/begun", b"")
    with delta_staging(out, sources("old"), lambda _: "old", append=True) as writing:
        writing.task_output.constants.clear()
        write(writing, "old")
        # For other analyses, the message names their owner.
        writing.publish()
    append_hours(out, 12)
    assert len(rows(out)) == 13
    assert None not in dict(rows(out))
    assert "frames" not in {group.table for group in to_join(out)}
    compact(out)
    assert len(rows(out)) == 13
    analyze(out, "new", append=False)
    assert [client for _, client in rows(out)] == ["new"]


YEAR_2200 = datetime(2200, 1, 1)  # noqa: DTZ001 - Hypothesis adds the zone
VALUES = st.fixed_dictionaries(
    {
        "time": st.none() | st.datetimes(timezones=st.just(UTC), max_value=YEAR_2200),
        "text": st.none() | st.text(st.characters(codec="utf-8"), max_size=40)
        | st.text("\ud7ff\U0010ffffz", min_size=30, max_size=40),
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
    }
)  # fmt: skip
COLUMNS = pa.schema(
    [("time", pa.timestamp("us", "UTC")), ("text", pa.string()), ("number", pa.int64())]
)


@pytest.mark.slow
@given(st.lists(VALUES, min_size=1, max_size=8))
def test_no_row_vanishes_by_statistics(given_rows: list[dict[str, Any]]) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(given_rows, COLUMNS), sink, row_group_size=2)
    told = json.loads(statistics(pq.read_metadata(pa.BufferReader(sink.getvalue()))))
    assert told["numRecords"] == len(given_rows)
    for name in COLUMNS.names:
        values = [row[name] for row in given_rows if row[name] is not None]
        if name in told["nullCount"]:
            assert told["nullCount"][name] == len(given_rows) - len(values)
        if name not in told["minValues"]:
            continue
        low, high = told["minValues"][name], told["maxValues"][name]
        if name == "time":
            low, high = datetime.fromisoformat(low), datetime.fromisoformat(high)
        if name == "text":
            assert low.encode() <= min(value.encode() for value in values)
            assert max(value.encode() for value in values) <= high.encode()
        else:
            assert low <= min(values) <= max(values) <= high


@pytest.mark.long
@pytest.mark.slow
def test_a_reader_opens_only_files_that_may_have_the_rows(out: OutputDirectory) -> None:
    odd = NOON + timedelta(microseconds=999_999)
    analyze(out, "x" * 40, odd)
    append_hours(out, 5)
    frames = output(out.url).dataset("frames")
    for asked, count in (
        (pa.compute.field("time") == odd, 1),
        (pa.compute.field("client_id") == "x" * 40, 1),
        (pa.compute.field("time") > NOON + 1.5 * HOUR, 3),
    ):
        assert frames.to_table(filter=asked).num_rows == count
        assert len([*frames.get_fragments(filter=asked)]) == count
