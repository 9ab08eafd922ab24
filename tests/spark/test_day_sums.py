"""Answers from stored sums equal answers from rows, whatever has happened to the tables since."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.answers import ANSWERS
from flexwire.answers.asking.results import ask, choose_answers
from flexwire.answers.asking.time_span import TimeSpan
from flexwire.answers.asking.told_names import TOLD_NAMES
from flexwire.cli.app import app
from flexwire.schema.catalog import use_catalog
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import day_sums
from flexwire.spark.answers.day_sums import SumsByDay
from flexwire.spark.answers.outputs import stored_answers, tables_of
from flexwire.spark.answers.used_columns import RowsAsked
from flexwire.spark.dataframes import output_of
from flexwire.spark.delta import layout, staging
from flexwire.spark.delta.grown import GrownOutput
from flexwire.spark.delta.output import DeltaTables
from flexwire.spark.delta.upkeep import join, retire, to_join, to_retire
from flexwire.spark.settings import set_for_answers
from flexwire.storage.output_directory import OutputDirectory
from tests.schema.trunk import trunk_catalog
from tests.spark import day_traffic
from tests.spark.grown import MESSAGE
from tests.spark.grown import analyze as append_without_spark
from tests.spark.test_inside_captures import fetched
from tests.spark.traffic import TOPIC_ID, Traffic, made, nested, record_batch, request, response

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.results import AnswerResult

pytestmark = pytest.mark.spark

SUMMED = [one for one in ANSWERS if one.sums is not None]
FEW = {"chargeback", "latency", "batches", "groups"}
"""Answers about frames, pairs, topic names that are learned later, and groups."""
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
DAY = timedelta(days=1)
DAY_US = 86_400_000_000
MIDNIGHT_US = int(MIDNIGHT.timestamp() * 1_000_000)
# The capture begins shortly before midnight, so its second file spans midnight.
BEGINS_US = MIDNIGHT_US - 1_000_000
FETCH, PRODUCE = 15, 13
EARLY = "10.0.0.7", 50_007
ALWAYS = TimeSpan()


def exchanges(traffic: Traffic, connection: Any, number: int) -> None:
    """Add records with headers in both directions, and an error for a topic id."""
    batch = record_batch((b"k", b"value %d" % number, [(b"trace", b"x" * number), (b"n", None)]))
    data = nested("ProduceRequest", "PartitionProduceData", index=0, records=batch)
    topic = nested("ProduceRequest", "TopicProduceData", topic_id=TOPIC_ID, partition_data=[data])
    failed = [
        nested("ProduceResponse", "PartitionProduceResponse", index=index, error_code=6)
        for index in range(2)
    ]
    said = nested(
        "ProduceResponse", "TopicProduceResponse", topic_id=TOPIC_ID, partition_responses=failed
    )
    asked = made("ProduceRequest", acks=-1, topic_data=[topic])
    answer = made("ProduceResponse", responses=[said], throttle_time_ms=2)
    traffic.exchange(connection, asked, answer, PRODUCE, 10 * number)
    fetch = made("FetchRequest", max_wait_ms=5, min_bytes=1)
    got = fetched([(b"k", b"v" * number)], topic_id=TOPIC_ID)
    traffic.exchange(connection, fetch, got, FETCH, 10 * number + 1)
    day_traffic.converse(traffic, connection, 1000 * number)


def captures(directory: Path) -> list[Path]:
    """Write four files of a connection that lasts three days. The topic's name comes last.

    The client's software is known from the second file on, and its instance from the third. A fetch
    and group requests wait for their responses across each cut, and some wait forever.
    """
    traffic = Traffic(directory)
    traffic.now_us = BEGINS_US
    connection = traffic.connect()
    for part in range(4):
        number = part + 1
        if part:
            traffic.now_us = MIDNIGHT_US + (part - 1) * DAY_US - 2_000
        exchanges(traffic, connection, number)
        waits = made("FetchRequest", max_wait_ms=5, min_bytes=1)
        traffic.send(connection, "request", request(waits, FETCH, 10 * number + 2))
        day_traffic.ask(traffic, connection, 1000 * number)
        if part < 3:
            traffic.rotate()
            if part == 1:
                traffic.now_us += DAY_US // 2
            answer = fetched([(b"k", b"late")], topic_id=TOPIC_ID)
            traffic.send(connection, "response", response(answer, FETCH, 10 * number + 2))
            day_traffic.answer(traffic, connection, 1000 * number)
    topic = nested("MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID)
    other = traffic.connect(EARLY)
    traffic.exchange(
        other, made("MetadataRequest"), made("MetadataResponse", topics=[topic]), 12, 1
    )
    traffic.close()
    return sorted(directory.glob("*.pcapng"))


def late(directory: Path) -> Path:
    """Write a capture of a different client on the first day."""
    traffic = Traffic(directory)
    traffic.now_us = BEGINS_US - 3_600_000_000
    exchanges(traffic, traffic.connect(EARLY), 7)
    traffic.close()
    [file] = directory.glob("*.pcapng")
    return file


class Growing:
    """An output that grows, and its answers from sums and from rows."""

    def __init__(self, spark: SparkSession, out: Path, form: str = "delta") -> None:
        self.spark, self.out, self.form = spark, out, form

    def append(self, *files: Path) -> str:
        how: dict[str, Any] = {"format": self.form, "append": True, "answers": []}
        return analyze([*files], self.out, spark=self.spark, **how).report.parent.name

    def check(
        self, span: TimeSpan = ALWAYS, names: Collection[str] = (), *, is_compared: bool = True
    ) -> dict[str, list[str]]:
        """Compare each answer from sums with the answer from rows. Return the answers.

        ``names`` lists the answers (default: all). Spark needs a second or two for each answer.
        """
        found: dict[str, list[str]] = {}
        output = output_of(self.out)
        assert isinstance(output, GrownOutput)
        with set_for_answers(self.spark, is_small=True):
            opened = partial(tables_of, self.spark, output, is_small=True, span=span)
            tables = opened()
            rows = RowsAsked(
                self.spark, output, lambda read_table: opened(read_table=read_table), tables
            )
            by_day = SumsByDay(rows, span)
            for answer in SUMMED:
                if names and answer.name not in names:
                    continue
                found[answer.name] = told(by_day.ask(answer))
                if is_compared:
                    assert found[answer.name] == told(ask(answer, tables)), answer.name
        return found

    def kept(self) -> dict[str, set[str]]:
        """Return the existing sums files, by answer."""
        files = self.out.glob("sums/*/*.parquet")
        kept: dict[str, set[str]] = {}
        for file in files:
            kept.setdefault(file.parent.name, set()).add(file.name)
        return kept

    def new_days(self, before: dict[str, set[str]], name: str = "chargeback") -> set[str]:
        """Return the days whose sums have been computed since."""
        return {file[:10] for file in self.kept()[name] - before.get(name, set())}


def told(result: AnswerResult) -> list[str]:
    return sorted(map(repr, result.rows.to_pylist()))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("captures")
    made_files = captures(root / "all")
    assert len(made_files) == 4
    return [*made_files, late(root / "late")]


def test_there_are_answers_with_sums() -> None:
    names = {"chargeback", "sizes", "errors", "batches", "headers", "topic_readers", "latency"}
    names |= {"connections", "throttling", "tagged_fields", "header_tags", "client_metrics"}
    names |= {"consumer_protocol", "groups", "share_deliveries"}
    assert {answer.name for answer in SUMMED} >= names


@pytest.mark.long
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_sums_say_what_the_rows_say_after_each_change(
    form: str, spark: SparkSession, tmp_path: Path, files: list[Path]
) -> None:
    growing = Growing(spark, tmp_path / "out", form)
    days = {(MIDNIGHT + step * DAY).date().isoformat() for step in range(-1, 3)}
    first, second, third, last = sorted(days)
    growing.append(files[0])
    growing.check(names=FEW)
    before = growing.kept()
    growing.append(files[1])
    growing.check(names=FEW)
    assert growing.new_days(before) == {first, second}
    growing.append(files[2])
    growing.append(files[3])
    before = growing.kept()
    # Both forms of tables are read in the same way, so all answers are compared for only one of
    # them.
    names = {one.name for one in SUMMED} if form == "delta" else FEW
    told_before = growing.check(names=names)
    # There are rows for each day, and each answer contains rows.
    assert growing.new_days(before) == {second, third, last}
    assert all(told_before.values())
    assert any("orders" in row for row in told_before["batches"])
    # The second time, nothing is computed.
    kept = growing.kept()
    assert growing.check(names=names, is_compared=False) == told_before
    assert growing.kept() == kept
    before = growing.kept()
    run = growing.append(files[4])
    assert growing.check(names=names) != told_before
    assert growing.new_days(before) == {first}
    for span in ((second, last), ("2026-11-22T06:00", None)):
        growing.check(TimeSpan.parse(*span), FEW)
    if form == "delta":
        changed_by_upkeep(growing, run, told_before)


def changed_by_upkeep(growing: Growing, run: str, told_before: dict[str, list[str]]) -> None:
    """Analyses are removed, merged, and replaced."""
    out = OutputDirectory(str(growing.out))
    kept = growing.kept()
    told_before = {name: told_before[name] for name in FEW}
    staging.undo(DeltaTables(out), run)
    assert growing.check(names=FEW) == told_before
    # The sums from before that analysis are valid again.
    assert growing.kept() == kept
    for group in [*to_join(out)]:
        join(out, group)
    assert growing.check(names=FEW) == told_before
    assert growing.new_days(kept)
    retire(out, [*to_retire(out, date(2026, 11, 23))])
    left = growing.check(names=FEW)
    assert left != told_before
    assert not any("2026, 11, 22" in row for row in left["chargeback"])


@pytest.mark.long
def test_the_sum_of_a_chargeback_is_that_of_the_frames(
    spark: SparkSession, tmp_path: Path, files: list[Path]
) -> None:
    growing = Growing(spark, tmp_path / "out")
    growing.append(*files[:3])
    growing.append(*files[3:])
    frames = output_of(growing.out).table("frames", ["size"])
    for _ in range(2):
        [result] = stored_answers(growing.out, ["chargeback"])
        assert sum(result.rows["bytes"].to_pylist()) == sum(frames["size"].to_pylist())
    assert len(growing.kept()["chargeback"]) == 4
    labels = tmp_path / "labels.csv"
    labels.write_text("client_id,team\ntests,Ops\n", encoding="utf-8")
    [result] = stored_answers(growing.out, ["chargeback"], labels)
    assert {*result.rows["team"].to_pylist()} == {"Ops"}
    # An answer without sums by day stores none.
    for file in growing.out.glob("sums/*/*"):
        file.unlink()
    [again] = stored_answers(growing.out, ["chargeback"], labels, sums=False)
    assert told(again) == told(result)
    assert not growing.kept()


@pytest.mark.long
def test_a_part_reads_only_the_tables_that_its_sums_follow_from(
    spark: SparkSession, tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = Growing(spark, tmp_path / "out")
    growing.append(files[0])
    [answer] = choose_answers(["chargeback"], {one.name: one for one in SUMMED})
    assert answer.sums is not None
    monkeypatch.setattr(day_sums, "FRAMES", "none")
    with pytest.raises(AssertionError, match="does not declare"):
        growing.check()


@pytest.mark.long
def test_whoever_may_only_read_gets_the_same_answers(
    spark: SparkSession, tmp_path: Path, files: list[Path]
) -> None:
    growing = Growing(spark, tmp_path / "out")
    growing.append(files[0])
    growing.append(files[1])
    # A file occupies the name that the directory should have.
    (growing.out / "sums").write_bytes(b"")
    assert all(growing.check(names=FEW).values())


@pytest.mark.long
def test_too_many_sums_are_not_kept(
    spark: SparkSession, tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_sums, "_MOST_ROWS", 1)
    growing = Growing(spark, tmp_path / "out")
    growing.append(files[0])
    assert all(growing.check(names=FEW).values())
    assert "chargeback" not in growing.kept()


def test_vacuum_removes_sums_that_nobody_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, MESSAGE])
    out = OutputDirectory(str(tmp_path / "out"))
    assert append_without_spark(out, "one", MIDNIGHT)
    directory = tmp_path / "out" / "sums" / "chargeback"
    directory.mkdir(parents=True)
    # The newest file for a day in the tables, an older file for it, a file for another day, and a
    # new file for that day.
    ages = {"2026-11-22-b": 900, "2026-11-22-a": 1000, "2026-11-21-a": 900, "2026-11-21-b": 1}
    now = datetime.now(UTC).timestamp()
    for name, hours in ages.items():
        file = directory / f"{name}.parquet"
        file.write_bytes(b"sums")
        os.utime(file, (now, now - hours * 3600))
    asked = ["tables", "vacuum", str(out)]
    done = CliRunner().invoke(app, [*asked, "--dry-run"], catch_exceptions=False)
    assert "2 files would be removed" in done.output
    assert len([*directory.iterdir()]) == 4
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    removed = ("2026-11-21-a", "2026-11-22-a")
    for name in removed:
        assert f"remove sums/chargeback: sums/chargeback/{name}.parquet" in done.output
    left = {file.stem for file in directory.iterdir()}
    assert left == {*ages} - {*removed}


@pytest.mark.long
def test_sums_of_another_catalog_have_other_names(tmp_path: Path) -> None:
    """If only one catalog contains a message, its sums are not used with another catalog."""
    name = day_sums._digest("told_names", TOLD_NAMES, "2026-11-22", {})
    use_catalog(trunk_catalog(tmp_path))
    try:
        assert day_sums._digest("told_names", TOLD_NAMES, "2026-11-22", {}) != name
    finally:
        use_catalog(None)
    assert day_sums._digest("told_names", TOLD_NAMES, "2026-11-22", {}) == name
