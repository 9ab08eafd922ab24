"""An analysis decompresses no more than its limit, and reports what it left out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.records import decode_batches
from flexwire.records.inflation import BEYOND, RECORD_COST, Inflation
from flexwire.spark.analyze import analyze
from flexwire.spark.log_job import _is_of_last
from flexwire.survey.survey import AnalysisRequest
from tests.capture.made_logs import MadeSegment, plain, write_log
from tests.records.batches import batch, record
from tests.records.inflating import bomb
from tests.reference import facts as reference_facts
from tests.reference.tables import tables as reference_tables
from tests.searching import in_make_long
from tests.spark.equality import assert_equal_tables, in_one_order, tables_of
from tests.spark.test_equality import ranges_of
from tests.spark.traffic import Traffic, made, nested, request

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BOMBS, RECORDS = 30, 1000
BOUNDS: dict[str, Any] = {"max_inflated": 100_000, "max_ratio": 40}
PLAIN = batch(record(value=b"beside"), 1)


def _produced(data: bytes) -> Any:
    partition = nested("ProduceRequest", "PartitionProduceData", index=0, records=data)
    topic = nested("ProduceRequest", "TopicProduceData", name="t", partition_data=[partition])
    return made("ProduceRequest", acks=1, timeout_ms=1000, topic_data=[topic])


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a capture with compression bombs, each next to a normal batch, on three connections."""
    directory: Path = tmp_path_factory.mktemp("bombs")
    traffic = Traffic(directory)
    connections = [traffic.connect(("10.0.0.9", 50_000 + one)) for one in range(3)]
    for at in range(BOMBS):
        asked = _produced(PLAIN + bomb(RECORDS))
        traffic.send(connections[at % 3], "request", request(asked, 9, at))
    traffic.close()
    return directory


@pytest.mark.spark
@pytest.mark.slow
def test_batches_beyond_bounds_are_left_out_as_by_the_reference_and_counted(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    done = analyze([capture], tmp_path / "out", spark=spark, record_bytes=True, **BOUNDS)
    tables = tables_of(tmp_path / "out")
    assert tables.pop("audit")
    # Together, the batches exceed the limit, so each of them is bounded.
    expected = reference_tables(sorted(capture.iterdir()), inflation=Inflation(**BOUNDS).held())
    assert_equal_tables(in_one_order(tables), in_one_order(expected))
    facts = reference_facts.facts(expected)
    found = reference_facts.of_an_analysis(done.facts.to_json())
    assert {name: facts[name] for name in found} == found
    assert [row["outcome"] for row in tables["frames"]] == ["decoded"] * BOMBS
    read = [row for row in tables["records"] if row["error"] is None]
    left_out = [row for row in tables["records"] if row["error"] is not None]
    assert [row["value"] for row in read] == [b"beside"] * BOMBS
    assert [row["batch_records"] for row in left_out] == [RECORDS] * BOMBS
    assert all(BEYOND in row["error"] for row in left_out)
    # The bytes are kept for inspection.
    [[one], *_] = [list(decode_batches(row["bytes"])) for row in left_out]
    assert len(one.records) == RECORDS
    totals = done.facts.totals
    assert totals.batches_beyond_bounds == totals.decode_failures == BOMBS
    # There is only one reason, no matter how many batches there are.
    assert [one.count for one in done.facts.failure_counts] == [BOMBS]


@pytest.mark.spark
@pytest.mark.parametrize("is_allowed", [False, *in_make_long(True)])
def test_every_range_has_an_allowance_of_its_own(
    spark: SparkSession,
    capture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_allowed: bool,
) -> None:
    range_bytes = sum(one.stat().st_size for one in capture.iterdir()) // 3
    monkeypatch.setattr("flexwire.spark.analyze.range_bytes_for", lambda *_: range_bytes)
    monkeypatch.setattr(
        "flexwire.spark.options.AnalysisRequest", partial(AnalysisRequest, chunk_bytes=1024)
    )
    taken = RECORD_COST * RECORDS * BOMBS
    # A third of the size of all bombs, plus two bombs.
    enough = {"max_inflated": 2 * RECORD_COST * RECORDS, "max_ratio": -(-taken // 3 // range_bytes)}
    bounds = enough if is_allowed else BOUNDS
    assert Inflation(**bounds).allowance(range_bytes) < taken // 2
    done = analyze([capture], tmp_path / "out", spark=spark, **bounds)
    tables = tables_of(tmp_path / "out")
    assert ranges_of(tmp_path / "out") > 1
    assert len(tables["frames"]) == BOMBS
    left_out = 0 if is_allowed else BOMBS
    assert done.facts.totals.batches_beyond_bounds == left_out
    assert len(tables["records"]) == BOMBS + left_out + (BOMBS - left_out) * RECORDS


@pytest.mark.spark
def test_a_log_of_bombs_is_damage_that_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    segment = MadeSegment(0)
    segment.add(plain(0, 3))
    # A batch separates the two bombs; otherwise they would count as one place.
    for at in range(BOMBS):
        segment.data += bomb(RECORDS)
        segment.add(plain(3 + 3 * at, 3))
    write_log(tmp_path / "data" / "orders-0", [segment])
    done = analyze([tmp_path / "data"], tmp_path / "out", spark=spark, answers="none", **BOUNDS)
    logs = done.facts.logs
    assert logs is not None
    assert (logs.beyond_bounds, logs.damaged, logs.records) == (BOMBS, BOMBS, 3 * (BOMBS + 1))
    assert logs.bytes == len(segment.data)
    rows = tables_of(tmp_path / "out")["log_batches"]
    assert sum(BEYOND in (row["error"] or "") for row in rows) == BOMBS
    [keys] = tables_of(tmp_path / "out")["log_keys"]
    assert keys["keyed_records"] == 3 * (BOMBS + 1)


def test_of_a_task_that_began_anew_only_its_last_runs_of_keys_count() -> None:
    names = ["runs/00000007/000001-000000", "runs/00000007/000001-held-000000"]
    assert [_is_of_last(one, frozenset()) for one in names] == [True, False]
    assert [_is_of_last(one, frozenset({1})) for one in names] == [False, True]
    assert [_is_of_last(one, frozenset({11})) for one in names] == [True, False]


@pytest.mark.spark
def test_the_command_says_what_was_left_out(capture: Path, tmp_path: Path) -> None:
    given = ["analyze", str(capture), "--out", str(tmp_path / "out"), "--max-ratio", "1"]
    done = CliRunner().invoke(app, [*given, "--batch-mib", "1"])
    assert done.exit_code == 0, done.output
    assert "30 record batches inflate beyond a limit" in done.output
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "exceed a limit when decompressed" in report
