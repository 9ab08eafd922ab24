"""Request logs are added to tables without Spark, and each line is added once."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import FlexwireError
from flexwire.spark import request_log_growth
from flexwire.spark.delta import staging
from flexwire.spark.delta.ledger import new_entry
from flexwire.spark.delta.output import DeltaTables, output
from flexwire.spark.delta.staging import AlreadyInError
from flexwire.spark.request_log_growth import LOGGED_STATE
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.keys import ANALYSIS, BEGAN_IN
from tests.capture.request_lines import line
from tests.capture.rotating import live
from tests.searching import times
from tests.spark.grown import Killed
from tests.spark.logged_in_process import add_logs, tables_of, without_spark
from tests.spark.test_grown_request_logs import brokers, in_order, one_log, without_names
from tests.tables.keyed import assert_keys_identify_rows

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
GONE = (ANALYSIS, BEGAN_IN, "source", "day")


def views(out: Path) -> dict[str, list[str]]:
    """Return the rows of each table as views show them, with whole connections."""
    found = output(out)
    tables = {name: found.table(name).to_pylist() for name in found.names if name != "audit"}
    order = [entry.analysis for entry in found.entries]
    connections: dict[str, list[Row]] = {}
    for row in tables["connections"]:
        connections.setdefault(row["connection"], []).append(row)
    for name, rows in connections.items():
        rows.sort(key=lambda row: order.index(row[ANALYSIS]))
        began = rows[0][ANALYSIS]
        assert [row[BEGAN_IN] or row[ANALYSIS] for row in rows] == [began] * len(rows), name
    for rows in tables.values():
        for row in rows:
            parts = connections.get(row.get("connection", ""), [])
            if parts and "outcome" in row and "client_instance_id" in row:
                known = (part["client_instance_id"] for part in parts)
                row["client_instance_id"] = row["client_instance_id"] or next(
                    filter(None, known), None
                )
            if parts and BEGAN_IN in row and "principal" not in row and "listener" not in row:
                assert (row[BEGAN_IN] or row[ANALYSIS]) == parts[0][ANALYSIS]
    tables["connections"] = [_one(parts) for parts in connections.values()]
    tables["packets"] = []
    for rows in tables.values():
        # A connection's frames are numbered in the order of its lines.
        rows.sort(
            key=lambda row: (
                row.get("connection", ""),
                row.get("direction", ""),
                row.get("frame_index", 0),
            )
        )
    return {
        name: [
            without_names(repr({key: row[key] for key in row if key not in GONE})) for row in rows
        ]
        for name, rows in tables.items()
    }


def _one(parts: list[Row]) -> Row:
    whole = dict(parts[-1])
    for name in ("request_frames", "response_frames"):
        whole[name] = sum(part[name] for part in parts)
    for name, value in whole.items():
        known = [part[name] for part in parts if part[name] is not None]
        if isinstance(value, str | None) and known:
            whole[name] = known[-1]
    whole["first_time"] = min(part["first_time"] for part in parts)
    return whole


@pytest.mark.long
@pytest.mark.parametrize("seed", range(times(8)))
def test_after_any_cut_the_rows_are_those_of_one_analysis(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    writing = brokers(tmp_path / "logs")
    parts = [*sorted(source.uniform(0.1, 0.9) for _ in range(source.randrange(1, 4))), 1]
    with without_spark(source.choice([10_000, 1 << 30])):
        runs = []
        for part in parts:
            live(source, writing[:2], part)
            if part == 1:
                live(source, writing[2:], part)
            runs.append(add_logs(tmp_path / "logs", tmp_path / "out")[0])
        assert add_logs(tmp_path / "logs", tmp_path / "out")[0] == runs[-1]
        add_logs(tmp_path / "logs", tmp_path / "alone")
    grown, whole = views(tmp_path / "out"), views(tmp_path / "alone")
    assert grown.keys() == whole.keys()
    for name, rows in whole.items():
        assert grown[name] == rows, name
    found = output(tmp_path / "out")
    assert_keys_identify_rows({name: found.table(name) for name in found.names})
    lines = sum(row["packets"] for row in found.table("packets").to_pylist() if not row["reason"])
    assert lines == sum(1 for broker in writing for text in broker.lines if text)


def seen(out: Path, form: str = "delta") -> list[int]:
    """Return the correlation ids of requests in the tables."""
    frames = tables_of(out, form).complete_output().table("frames").to_pylist()
    return sorted(row["correlation_id"] for row in frames if row["direction"] == "request")


@pytest.mark.long
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_an_hour_is_skipped_undone_killed_and_read_again(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, path = tmp_path / "out", tmp_path / "logs" / "kafka-request.log"

    def read() -> str:
        return add_logs(path.parent, out, form)[0]

    with without_spark(1 << 30):
        one_log(path, 0, 10)
        first = read()
        assert read() == first
        one_log(path, 0, 25).rename(path.with_name("kafka-request.log.1"))
        one_log(path, 25, 30)
        second = read()
        # Now the rotated file alone contains no new line.
        path.rename(path.with_name("kafka-request.log.2"))
        assert read() == second
        assert seen(out, form) == [*range(30)]
        one_log(path, 30, 40)
        third = read()
        for _ in range(2):
            staging.undo(tables_of(out, form), third)
            assert seen(out, form) == [*range(30)]
            third = read()
            assert seen(out, form) == [*range(40)]
        one_log(path, 30, 50)
        for place, step in ((request_log_growth, "pack"), (staging, "new_entry")):
            with monkeypatch.context() as patch:
                patch.setattr(place, step, killed)
                with pytest.raises(Killed):
                    read()
            assert seen(out, form) == [*range(40)]
        read()
        assert seen(out, form) == [*range(50)]
        connections = tables_of(out, form).complete_output().table("connections").to_pylist()
        assert sum(row["request_frames"] for row in connections) == 50
        assert {row[BEGAN_IN] or row[ANALYSIS] for row in connections} == {first}
        # Only the last two states are kept.
        states = [*out.glob(f"runs/*/{LOGGED_STATE}")]
        in_tables = [entry.analysis for entry in tables_of(out, form).entries()[-2:]]
        assert {*in_tables} <= {state.parent.name for state in states}
        assert first not in {state.parent.name for state in states}


def killed(*_: object, **__: object) -> None:
    raise Killed


def test_a_lost_state_is_told_and_no_line_is_read_twice(tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "logs" / "kafka-request.log"
    with without_spark(1 << 30):
        run, _ = add_logs(one_log(path, 0, 10).parent, out)
        state = out / "runs" / run / LOGGED_STATE
        assert state.stat().st_mode & 0o077 == 0
        one_log(path, 0, 20)
        whole = state.read_bytes()
        for data, reason in ((b"", "the state is cut off"), (whole[:-1], "the state is damaged")):
            state.write_bytes(data)
            with pytest.raises(FlexwireError, match=f"cannot be used: {reason}"):
                add_logs(path.parent, out)
        state.unlink()
        with pytest.raises(FlexwireError, match="cannot be used: the file is missing"):
            add_logs(path.parent, out)
        state.write_bytes(whole)
        add_logs(path.parent, out)
    assert seen(out) == [*range(20)]


def test_two_analyses_of_the_same_lines_add_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, path = tmp_path / "out", tmp_path / "logs" / "kafka-request.log"
    with without_spark(1 << 30):
        add_logs(one_log(path, 0, 10).parent, out)
        one_log(path, 0, 20)
        tables = DeltaTables(OutputDirectory(str(out)))
        before = tables.ledger.snapshot()
        add_logs(path.parent, out)
        one_log(path, 0, 25)
        # In a store, no lock prevents the second analysis, which began with an older ledger.
        monkeypatch.setattr(staging, "sweep", lambda *_: before)
        with pytest.raises(AlreadyInError):
            add_logs(path.parent, out)
    assert seen(out) == [*range(20)]


def test_a_connection_that_is_not_kept_begins_anew_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log_growth, "MOST_CONTINUED", 1)
    out, path = tmp_path / "out", tmp_path / "logs" / "kafka-request.log"
    path.parent.mkdir()
    ends = [f"10.0.0.1:9092-10.0.0.9:50000-0-{number % 4}" for number in range(8)]
    lines = in_order([line(connection=connection) for connection in ends])
    with without_spark(1 << 30):
        path.write_bytes(b"\n".join(lines[:4]) + b"\n")
        _, notes = add_logs(path.parent, out)
        assert notes[0].startswith("3 connections cannot continue in the next analysis")
        path.write_bytes(b"\n".join(lines) + b"\n")
        add_logs(path.parent, out)
    rows = output(out).table("connections").to_pylist()
    continued = [row["connection"][-2:] for row in rows if row[BEGAN_IN]]
    assert continued == ["#3"]


def test_a_connection_without_a_line_for_a_day_does_not_continue(tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "logs" / "kafka-request.log"
    path.parent.mkdir()
    text = line()
    other = line(connection="10.0.0.1:9092-10.0.0.9:50001-0-2").replace(b"-22 20", b"-24 20")
    with without_spark(1 << 30):
        for lines in ([text], [text, other], [text, other, text.replace(b"-22 20", b"-24 21")]):
            path.write_bytes(b"".join(one + b"\n" for one in lines))
            add_logs(path.parent, out)
    rows = output(out).table("connections").to_pylist()
    assert sorted((row["connection"][-2:], row[BEGAN_IN]) for row in rows) == [
        ("#1", None),
        ("#1", None),
        ("#2", None),
    ]


def test_an_older_ledger_has_no_request_logs(tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "logs" / "kafka-request.log"
    with without_spark(1 << 30):
        run, _ = add_logs(one_log(path, 0, 10).parent, out)
        ledger = DeltaTables(OutputDirectory(str(out))).ledger
        # An earlier release adds an entry that does not contain the names of states.
        ledger.change(lambda _: [new_entry("20261122T101500Z-1a2b3c4d", "in", "", {})])
        found = ledger.snapshot().request_logs
        assert found is not None
        assert found.analysis == run
        assert add_logs(path.parent, out)[0] == run
