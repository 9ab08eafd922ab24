"""The last analysis is removed from growing Delta and Iceberg tables, without Spark."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.errors import FlexwireError
from flexwire.logs.files import Partition
from flexwire.spark.delta import layout, staging, upkeep
from flexwire.spark.delta.output import DeltaTables
from flexwire.spark.delta.staging import grown_staging
from flexwire.spark.iceberg.output import IcebergTables
from flexwire.spark.publishing.catalogs import IcebergCatalog
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.survey import STATE
from tests.searching import in_make_long
from tests.spark.grown import MESSAGE, NOON, Killed, sources, write

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.spark.delta.grown import GrownTables

TABLES = ("frames", "connections", MESSAGE)
LOG = Partition("orders", 0)


@pytest.fixture(autouse=True)
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few tables, because each of the hundreds of messages would need a table."""
    monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, MESSAGE])


@pytest.fixture(params=["delta", "iceberg"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> GrownTables:
    out = OutputDirectory(str(tmp_path / "out"))
    return again(out, request.param)


def again(out: OutputDirectory, form: str) -> GrownTables:
    return DeltaTables(out) if form == "delta" else IcebergTables(out, IcebergCatalog())


def fresh(tables: GrownTables) -> GrownTables:
    """Open the same tables in their current state."""
    return again(tables.out, "delta" if isinstance(tables, DeltaTables) else "iceberg")


def analyze(tables: GrownTables, text: str, day: int = 0, offset: int | None = None) -> str:
    """Analyze the input ``text`` on a day. Return the run, or the earlier run of this input."""
    made = grown_staging(fresh(tables), sources(text), lambda _: text, append=True)
    with made as writing:
        if writing.known_run:
            return writing.known_run
        write(writing, text, NOON + timedelta(days=day))
        writing.files.write(STATE, text.encode())
        if offset is not None:
            writing.read_until[LOG] = offset
        writing.publish()
        return writing.run


def rows(tables: GrownTables) -> dict[str, list[str]]:
    """Return the rows of each table, as flexwire's reader reads them."""
    found = fresh(tables).complete_output()
    return {name: sorted(map(repr, found.table(name).to_pylist())) for name in TABLES}


def plain(tables: GrownTables) -> int:
    """Return the number of frames for a reader that does not use the ledger."""
    table: Any = fresh(tables).table("frames").open()  # type: ignore[attr-defined]  # both formats have it
    found = table.to_pyarrow_table() if isinstance(tables, DeltaTables) else table.scan().to_arrow()
    return int(found.num_rows)


def state_of(tables: GrownTables) -> tuple[str | None, dict[Partition, int]]:
    """Return the state and the offsets with which the next analysis begins."""
    ledger = fresh(tables).ledger.snapshot()
    return ledger.open_state, ledger.next_offsets


def undo(tables: GrownTables, run: str) -> int:
    """Remove an analysis. Return the number of files that it had written."""
    groups = [*staging.to_undo(fresh(tables), run)]
    staging.undo(fresh(tables), run)
    return sum(len(group.files) for group in groups)


@pytest.mark.slow
def test_what_is_undone_is_as_if_it_had_never_been(tables: GrownTables) -> None:
    for day, text in enumerate(("one", "two")):
        analyze(tables, text, day, offset=10 + day)
    before = rows(tables), state_of(tables), plain(tables)
    run = analyze(tables, "three", 2, offset=99)
    after = rows(tables)
    assert after != before[0]
    assert state_of(tables) == (run, {LOG: 99})
    assert undo(tables, run) == len(TABLES)
    assert (rows(tables), state_of(tables), plain(tables)) == before
    # The input is no longer in the tables, so it is added again.
    second = analyze(tables, "three", 2, offset=99)
    assert second != run
    assert [*map(len, rows(tables).values())] == [*map(len, after.values())] == [3, 3, 3]
    assert plain(tables) == 3
    # Nothing remains of the first analysis.
    assert not [*tables.out.entries(f"tables/frames/analysis={run}")]
    assert not tables.out.exists(f"runs/{run}/facts.json")


@pytest.mark.slow
def test_the_order_and_the_times_of_others_stay(tables: GrownTables) -> None:
    runs = [analyze(tables, text) for text in ("one", "two", "three")]
    before = fresh(tables).ledger.snapshot().whole_entries()
    undo(tables, runs[-1])
    assert fresh(tables).ledger.snapshot().whole_entries() == before[:-1]
    undo(tables, runs[1])
    undo(tables, runs[0])
    with pytest.raises(FlexwireError, match="there is no analysis"):
        undo(tables, runs[0])
    assert plain(tables) == 0
    analyze(tables, "one")
    assert plain(tables) == 1


def test_only_the_last_one_is_taken_out(tables: GrownTables) -> None:
    one, two = analyze(tables, "one"), analyze(tables, "two")
    before = rows(tables)
    for other in (one, "20200101T000000Z-00000000", "../runs"):
        with pytest.raises(FlexwireError, match=f"expected {two}, got {other}"):
            undo(tables, other)
    assert rows(tables) == before


@pytest.mark.slow
@pytest.mark.parametrize("step", ["take_out", *in_make_long("note_tables")])
def test_what_is_killed_is_completed(
    tables: GrownTables, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next analysis completes the removal. Until then, readers see all rows or none."""
    analyze(tables, "one")
    without = rows(tables)
    run = analyze(tables, "two")
    whole = rows(tables)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(staging, step, killed)
        with pytest.raises(Killed):
            undo(tables, run)
    assert rows(tables) == (whole if step == "note_tables" else without)
    assert plain(tables) == 2
    analyze(tables, "three")
    assert plain(tables) == (3 if step == "note_tables" else 2)
    # A reader of files that the table contained until now can continue.
    assert [*tables.out.entries(f"tables/frames/analysis={run}")]
    analyze(tables, "four")
    is_left = next(iter(tables.out.entries(f"tables/frames/analysis={run}")), None) is not None
    assert is_left == (step == "note_tables")


@pytest.mark.long
@pytest.mark.slow
def test_what_was_joined_before_is_not_in_the_way(tmp_path: Path) -> None:
    """The files of the last analysis are merged only after another analysis is added."""
    tables = DeltaTables(OutputDirectory(str(tmp_path / "out")))
    runs = [analyze(tables, str(number), number // 6) for number in range(9)]
    before = rows(tables)
    run = analyze(tables, "last", 1)
    for _ in range(2):
        for group in [*upkeep.to_join(tables.out)]:
            upkeep.join(tables.out, group)
    assert len(tables.complete_output().files("frames")) < len(runs)
    undo(tables, run)
    assert rows(tables) == before


def test_what_others_have_joined_is_told(tmp_path: Path) -> None:
    tables = DeltaTables(OutputDirectory(str(tmp_path / "out")))
    analyze(tables, "one")
    run = analyze(tables, "two")
    table = tables.table("frames").open()
    assert table is not None
    table.optimize.compact()
    before = rows(tables)
    with pytest.raises(FlexwireError, match=r"in the table frames of .* were merged"):
        undo(tables, run)
    assert rows(tables) == before


@pytest.mark.slow
def test_the_command_says_what_it_does(tables: GrownTables) -> None:
    analyze(tables, "one")
    run = analyze(tables, "two")
    command = ["tables", "undo", tables.out.url, run]
    would = CliRunner().invoke(app, [*command, "--dry-run"], catch_exceptions=False)
    assert "take out frames: 1 file, " in would.output
    assert would.output.endswith("3 files would be taken out.\n")
    assert plain(tables) == 2
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.output == would.output.replace("would be ", "")
    assert plain(tables) == 1
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert "only the last analysis can be removed" in str(refused.exception or refused.output)
