"""Request logs are added to tables line by line, once each, without Spark."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.spark.delta.output import output
from flexwire.tables.keys import ANALYSIS, BEGAN_IN
from tests.capture.rotating import live
from tests.searching import in_make_long, times
from tests.spark.logged_in_process import add_logs, without_spark
from tests.spark.test_grown_request_logs import brokers, without_names
from tests.tables.keyed import assert_keys_identify_rows

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
GONE = (ANALYSIS, BEGAN_IN, "source", "day")


def views(out: Path) -> dict[str, list[str]]:
    """Return the rows of each table as views show them: with whole connections."""
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
        # The numbers of a connection's frames are in the order of its lines.
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


@pytest.mark.parametrize("seed", [0, 1, *in_make_long(*range(2, times(8)))])
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
