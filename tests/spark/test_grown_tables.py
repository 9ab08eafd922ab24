"""Answers about growing tables: several analyses give the same result as one, except at a cut."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import duckdb
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers import ANSWERS, LOG_ANSWERS
from flexwire.answers.boundaries import boundary_notes
from flexwire.answers.chargeback import ANSWER as CHARGEBACK
from flexwire.answers.latency import ANSWER as LATENCY
from flexwire.answers.tagged_fields import ANSWER as TAGGED_FIELDS
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import audit, outputs
from flexwire.spark.answers.outputs import open_tables
from flexwire.spark.delta import staging
from flexwire.spark.delta.output import DeltaTables, output
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.survey import STATE
from flexwire.tables.keys import ANALYSIS, BEGAN_IN
from flexwire.tables.log_schema import BATCHES
from flexwire.tables.output import MESSAGES
from tests.capture.interleaved import SHAPES, write_capture
from tests.capture.made_logs import MadeSegment, plain, write_log
from tests.protocol.test_telemetry import pushed
from tests.searching import in_make_long, times, trying_few
from tests.spark.test_inside_captures import COMMITS, fetched, share
from tests.spark.traffic import (
    START_US,
    TOPIC_ID,
    Traffic,
    made,
    nested,
    record_batch,
    request,
    response,
)
from tests.tables.keyed import assert_keys_identify_rows
from tests.tables.test_going_on import cut_at_random, in_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables, Answer

pytestmark = pytest.mark.spark

# The time between captures, which is shorter than the time spans of the answers.
STEP_US = 1_000_000
OF_TRAFFIC = [one for one in ANSWERS if not one.asks]
"""All answers that are functions of tables. Answers about internal topics need logs instead."""
CUT = ("CLEAN", "EVERYTHING", "LOSSY", "MID_STREAM", "STRANGE")
"""The shapes of captures that are cut at random."""


@dataclass(frozen=True)
class Grown:
    """The same captures and logs, analyzed in one run and in several."""

    whole: Asked
    grown: Asked
    out: Path
    alone: Path


@dataclass(frozen=True)
class Asked:
    """Tables, and the answers that were computed from these tables."""

    tables: AnalysisTables
    known: dict[str, list[Any]] = field(default_factory=dict)

    def rows(self, answer: Answer) -> list[Any]:
        if answer.name not in self.known:
            self.known[answer.name] = answer.ask(self.tables).collect()
        return self.known[answer.name]


def capture(directory: Path, part: int) -> Path:
    """Write whole connections, with the same ends, frame numbers and correlation ids each time.

    A frame in one analysis could therefore be confused with a frame in another.
    """
    traffic = Traffic(directory)
    traffic.now_us = START_US + (part + 10) * STEP_US
    one, other = traffic.connect(), traffic.connect(("10.0.0.9", 50001))
    software = made(
        "ApiVersionsRequest", client_software_name="kafka", client_software_version=f"3.{part}"
    )
    key = nested("ApiVersionsResponse", "ApiVersion", api_key=0, min_version=3, max_version=8)
    for connection in (one, other):
        traffic.exchange(connection, software, made("ApiVersionsResponse", api_keys=[key]), 3, 1)
    produced(traffic, one)
    joined(traffic, one, part)
    share(cast("Traffic", _WithoutMetadata(traffic)), one)
    traffic.send(other, "request", request(made("HeartbeatRequest"), 4, 2, tags={77: b"trace"}))
    failed = made("HeartbeatResponse", error_code=27)
    traffic.send(other, "response", response(failed, 4, 2))
    push = made("PushTelemetryRequest", client_instance_id=UUID(int=7), metrics=pushed())
    traffic.exchange(other, push, made("PushTelemetryResponse"), 0, 3)
    consumed(traffic, other)
    if part == 0:
        # No other analysis learns the name of the topic.
        topic = nested(
            "MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID
        )
        metadata = made("MetadataResponse", topics=[topic])
        traffic.exchange(other, made("MetadataRequest"), metadata, 12, 10)
    lost = traffic.connect(("10.0.0.9", 50002))
    meant = made("ApiVersionsRequest", cluster_id="east", node_id=3)
    traffic.exchange(lost, meant, made("ApiVersionsResponse", error_code=129), 5, 11)
    for connection in (one, other, lost):
        connection.close(timestamp_us=traffic.now_us)
    traffic.close()
    return directory


@dataclass(frozen=True)
class _WithoutMetadata:
    """Write traffic in which no client asks for the names of topics."""

    traffic: Any

    def exchange(self, connection: Any, asked: Any, *more: Any) -> None:
        if asked.entry.name != "MetadataRequest":
            self.traffic.exchange(connection, asked, *more)


def produced(traffic: Traffic, connection: Any) -> None:
    """Add two batches. The first is throttled, so the second waits."""
    for number in (1, 2):
        batch = record_batch((b"k", b"value %d" % number, [(b"trace", b"abcd")]))
        data = nested("ProduceRequest", "PartitionProduceData", index=0, records=batch)
        topic = nested(
            "ProduceRequest", "TopicProduceData", topic_id=TOPIC_ID, partition_data=[data]
        )
        asked = made("ProduceRequest", acks=-1, topic_data=[topic])
        traffic.send(connection, "request", request(asked, 13, number))
        if number == 2:
            traffic.now_us += 60_000
        answer = made("ProduceResponse", throttle_time_ms=50 if number == 1 else 0)
        traffic.send(connection, "response", response(answer, 13, number))


def joined(traffic: Traffic, connection: Any, part: int) -> None:
    """Add a new member that joins a group for the first time."""
    member = f"m-{traffic.now_us}"
    asked = made("JoinGroupRequest", group_id="g", protocol_type="consumer", session_timeout_ms=9)
    own = nested("JoinGroupResponse", "JoinGroupResponseMember", member_id=member)
    answer = made(
        "JoinGroupResponse", generation_id=1 + part, leader=member, member_id=member,
        members=[own], protocol_name="range",
    )  # fmt: skip
    traffic.exchange(connection, asked, answer, 3, 20)


def consumed(traffic: Traffic, connection: Any) -> None:
    """Add fetches with a tagged field, one of them from an internal topic, and then a commit."""
    asked = made("FetchRequest", max_wait_ms=5, min_bytes=1, cluster_id="cluster")
    traffic.exchange(connection, asked, fetched([(b"k", b"v")], topic_id=TOPIC_ID), 15, 4)
    empty = made("FetchResponse")
    traffic.send(connection, "request", request(asked, 15, 5))
    traffic.now_us += 9_000
    traffic.send(connection, "response", response(empty, 15, 5))
    # A client that names a topic uses a version that Kafka 4.0 does not read.
    old = nested("FetchRequest", "FetchTopic", topic="orders", partitions=[])
    traffic.exchange(connection, made("FetchRequest", topics=[old]), made("FetchResponse"), 3, 8)
    commits = fetched(COMMITS, topic="__consumer_offsets")
    traffic.exchange(connection, made("FetchRequest"), commits, 12, 6)
    partition = nested(
        "OffsetCommitRequest", "OffsetCommitRequestPartition", partition_index=0, committed_offset=9
    )
    topic = nested(
        "OffsetCommitRequest", "OffsetCommitRequestTopic", name="orders", partitions=[partition]
    )
    commit = made("OffsetCommitRequest", group_id="g", topics=[topic])
    traffic.exchange(connection, commit, made("OffsetCommitResponse"), 8, 7)


def logs(directory: Path, topic: str) -> Path:
    """Return the log of one partition of a topic that no other part contains."""
    segment = MadeSegment(0)
    for first in range(0, 500, 50):
        segment.add(plain(first, 50, value=b"a value that is not too short" * 3))
    write_log(directory / f"{topic}-0", [segment])
    return directory


def going_on(root: Path) -> list[Path]:
    """Write the three files of a capture whose connection continues from each file to the next."""
    traffic = Traffic(root / "capture")
    connection = traffic.connect(("10.0.0.11", 50000))
    silent = traffic.connect(("10.0.0.8", 1))
    for number in range(9):
        produced(traffic, connection)
        asked = request(made("HeartbeatRequest"), 4, number)
        traffic.send(connection, "request", asked)
        if number in {3, 6}:
            traffic.rotate()
        traffic.send(connection, "response", response(made("HeartbeatResponse"), 4, number))
    connection.close(timestamp_us=traffic.now_us)
    silent.close(timestamp_us=traffic.now_us)
    traffic.close()
    files = sorted((root / "capture").glob("*.pcapng"))
    assert len(files) == 3
    return files


@pytest.fixture(scope="module")
def cut(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Add a connection whose files were analyzed one after the other, without saved state."""
    root = tmp_path_factory.mktemp("cut")
    for file in going_on(root):
        for state in root.glob(f"out/runs/*/{STATE}"):
            state.unlink()
        done = analyze([file], root / "out", spark=spark, answers=[], format="delta", append=True)
    assert "cannot be used" in done.notes[0]
    return Asked(open_tables(spark, root / "out"))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Grown:
    """Add connections that continue in the next analysis, then two analyses with the same ends."""
    root = tmp_path_factory.mktemp("grown")
    shape = replace(SHAPES["EVERYTHING"], files=3, compressed=0.0, torn=0.0)
    files = [*write_capture(root / "capture", 1, shape), *going_on(root / "other")]
    whole = [
        [capture(root / f"c{part}", part), logs(root / f"l{part}", f"topic{part}")]
        for part in range(2)
    ]
    parts = [*([file] for file in files), *whole]
    # No half frame is held back. A frame that has not ended belongs to a later analysis.
    how: dict[str, Any] = {"format": "delta", "append": True, "show_credentials": True}
    alone, out = root / "alone", root / "out"
    analyze([one for part in parts for one in part], alone, spark=spark, answers=[], **how)
    went_on = 0
    for part in parts:
        notes = analyze(part, out, spark=spark, answers=[], **how).notes
        went_on += any("from the previous analysis" in note for note in notes)
    # Both captures, with three files each, continued twice.
    assert went_on >= 4
    return Grown(Asked(open_tables(spark, alone)), Asked(open_tables(spark, out)), out, alone)


# These answers join requests with their responses, messages and records, or count boundaries.
FEW = {"boundaries", "chargeback", "topic_readers"}


@pytest.mark.parametrize(
    "answer",
    trying_few(OF_TRAFFIC, FEW, name=attrgetter("name")),
    ids=lambda one: one.name,
)
def test_several_analyses_answer_what_one_does(answer: Answer, tables: Grown) -> None:
    expected, found = (told(answer, one) for one in (tables.whole, tables.grown))
    assert found == expected
    # An answer without rows would prove nothing.
    assert expected or answer.name == "boundaries"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(times(1)))
def test_after_any_cut_each_answer_is_that_of_one_analysis(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    source = random.Random(seed)
    name = source.choice(CUT)
    shape = replace(SHAPES[name], files=source.randrange(3, 7), compressed=0.0, torn=0.0)
    files = [one.name for one in in_time(write_capture(tmp_path / "capture", seed, shape))]
    # No half frame is withheld, and frames that have not ended are left for a later analysis.
    how: dict[str, Any] = {"format": "delta", "append": True, "show_credentials": True}
    analyze(files, tmp_path / "alone", spark=spark, answers=[], **how)
    parts = cut_at_random(source, files)
    for part in parts:
        analyze(part, tmp_path / "out", spark=spark, answers=[], **how)
    whole, grown = (Asked(open_tables(spark, tmp_path / place)) for place in ("alone", "out"))
    for answer in OF_TRAFFIC:
        assert told(answer, grown) == told(answer, whole), (name, len(parts), answer.name)


@pytest.mark.parametrize("name", ["frames", "connections", "records"])
def test_several_analyses_have_the_rows_of_one(name: str, tables: Grown) -> None:
    of_grown = {ANALYSIS, BEGAN_IN, "answered_indexes"}
    found = []
    for one in (tables.whole, tables.grown):
        table = getattr(one.tables, name)
        rows = table.select(*(column for column in table.columns if column not in of_grown))
        found.append(sorted(without_numbers(repr(row)) for row in rows.collect()))
    assert found[1] == found[0]
    assert found[0]


@pytest.mark.long
def test_iceberg_tables_go_on_as_delta_tables_do(spark: SparkSession, tmp_path: Path) -> None:
    files, out = going_on(tmp_path), {form: tmp_path / form for form in ("delta", "iceberg")}
    for file in files:
        for form, place in out.items():
            done = analyze([file], place, spark=spark, answers=[], format=form, append=True)
            assert file == files[0] or "from the previous analysis" in done.notes[0]
    delta, iceberg = (open_tables(spark, place) for place in out.values())
    for name in ("frames", "connections", "records"):
        rows = getattr(iceberg, name).drop(ANALYSIS, BEGAN_IN)
        of_delta = getattr(delta, name).select(rows.columns)
        found = [sorted(map(repr, table.collect())) for table in (of_delta, rows)]
        assert found[1] == found[0] != []
    [chargeback] = [one for one in OF_TRAFFIC if one.name == "chargeback"]
    assert told(chargeback, Asked(iceberg)) == told(chargeback, Asked(delta))


@pytest.mark.long
def test_an_hour_that_is_done_again_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    files, out = going_on(tmp_path), tmp_path / "out"
    how: dict[str, Any] = {"spark": spark, "answers": [], "format": "delta", "append": True}
    for file in files:
        done = analyze([file], out, **how)
    of_run = {ANALYSIS, BEGAN_IN}
    found = []
    for again in (False, True):
        if again:
            staging.undo(DeltaTables(OutputDirectory(str(out))), done.report.parent.name)
            done = analyze([files[-1]], out, **how)
        assert "from the previous analysis" in done.notes[0]
        tables = open_tables(spark, out)
        kept = [getattr(tables, name).drop(*of_run) for name in ("frames", "connections")]
        found.append([sorted(map(repr, table.collect())) for table in kept])
    assert found[1] == found[0]


def test_what_is_not_used_is_not_joined(tables: Grown) -> None:
    frames = tables.grown.tables.frames
    plan = frames.groupBy("client_id").agg(F.sum("size"))._jdf.queryExecution().toString()
    assert "Join" not in plan.partition("Optimized Logical Plan")[2]
    plan = frames.groupBy("answered").agg(F.sum("size"))._jdf.queryExecution().toString()
    assert "Join" in plan.partition("Optimized Logical Plan")[2]


@pytest.mark.long
def test_tables_that_an_older_release_began_go_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first analysis includes message tables to which no later analysis adds rows.
    older_files = write_capture(tmp_path / "older", 2, SHAPES["STRANGE"])
    how: dict[str, Any] = {"format": "delta", "append": True, "answers": []}
    with monkeypatch.context() as older:
        older.setattr("flexwire.spark.delta.staging._continuation", lambda *_: None)
        older.setattr("flexwire.spark.delta.staging.lacks_origin", lambda _: False)
        analyze(older_files, tmp_path / "out", spark=spark, **how)
    for file in going_on(tmp_path / "newer"):
        analyze([file], tmp_path / "out", spark=spark, **how)
    found = output(tmp_path / "out")
    assert found.is_continued
    older_tables = [name for name in found.names if BEGAN_IN not in found.schema(name).names]
    assert any(name.startswith(MESSAGES) for name in older_tables)
    tables = open_tables(spark, tmp_path / "out")
    for answer in (CHARGEBACK, TAGGED_FIELDS):
        assert answer.ask(tables).collect()


@pytest.mark.long
def test_a_key_with_the_analysis_identifies_rows(tables: Grown) -> None:
    grown = output(tables.out)
    found = assert_keys_identify_rows({name: grown.table(name) for name in grown.names})
    assert {"frames", "connections", "records", "packets", "topic_names", BATCHES} <= found


def test_a_view_in_sql_is_the_view_of_spark(tables: Grown) -> None:
    page = (Path(__file__).parents[2] / "docs" / "delta.md").read_text(encoding="utf-8")
    [view] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    found = output(tables.out)
    with duckdb.connect() as connection:
        for name in ("frames", "connections"):
            connection.register(name, found.dataset(name))
        connection.execute(view)
        rows = connection.execute(
            "select analysis, connection, direction, frame_index, answered from whole_frames"
        ).fetchall()
    columns = ("analysis", "connection", "direction", "frame_index", "answered")
    expected = tables.grown.tables.frames.select(*columns).collect()
    assert sorted(map(repr, rows)) == sorted(repr((*row,)) for row in expected)
    assert any(row[-1] for row in rows)


def told(answer: Answer, tables: Asked) -> list[str]:
    """Return rows as text."""
    rows = [row.asDict(recursive=True) for row in tables.rows(answer)]
    return sorted(without_numbers(repr(sorted(row.items()))) for row in rows)


def without_numbers(row: str) -> str:
    """Return a row's text without the numbers of connections.

    In a single analysis, a connection between the same ends is given one number; in several
    analyses, several numbers.
    """
    return re.sub(r"#\d+'", "'", row)


@pytest.mark.parametrize("which", ["grown", *in_make_long("whole", "cut")])
def test_the_bytes_of_a_chargeback_are_those_of_the_frames(
    which: str, tables: Grown, cut: Asked
) -> None:
    given = cut if which == "cut" else getattr(tables, which)
    rows = given.rows(CHARGEBACK)
    charged = {
        "request": sum(row.sent_bytes for row in rows),
        "response": sum(row.received_bytes for row in rows),
    }
    frames = given.tables.frames.where("outcome <> 'not Kafka'")
    assert charged == dict(frames.groupBy("direction").agg(F.sum("size")).collect())
    # No row is negative, so nothing is counted twice.
    assert min(min(row.requests, row.sent_bytes, row.received_bytes) for row in rows) >= 0


@pytest.mark.long
def test_an_audit_of_grown_tables_is_that_of_one_analysis(
    spark: SparkSession, tables: Grown
) -> None:
    expected, found = (
        sorted(map(repr, audit(spark, out, ["4.0"]).collect()))
        for out in (tables.alone, tables.out)
    )
    assert found == expected
    assert any("topics=['orders']" in one for one in expected)


@pytest.mark.long
def test_what_a_boundary_cost_is_counted(cut: Asked, tables: Grown) -> None:
    [answer] = [one for one in ANSWERS if one.name == "boundaries"]
    rows = [row.asDict() for row in answer.ordered(answer.ask(cut.tables)).collect()]
    said = ("connections", "unanswered_requests", "unpaired_responses", "early_bytes")
    # The silent connection sent nothing.
    assert [tuple(row[name] for name in said) for row in rows] == [(1, 1, 1, 0)] * 2
    assert rows[1]["before"] == rows[0]["analysis"] != rows[0]["before"]
    [note] = boundary_notes(cut.tables)
    assert note.startswith("2 connections continue from one analysis to the next. The cut left 2 ")
    assert boundary_notes(tables.grown.tables) == boundary_notes(tables.whole.tables) == ()
    unpaired = cut.tables.frames.where("outcome = 'unpaired'").count()
    answered = sum(row.responses for row in cut.rows(LATENCY))
    assert (answered, unpaired) == (9 * 3 - 2, 2)


@pytest.mark.long
def test_an_answer_says_what_was_cut(
    cut: Asked, tables: Grown, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given, notes in (
        (cut.tables, boundary_notes(cut.tables)),
        (tables.grown.tables, ()),
    ):
        monkeypatch.setattr(outputs, "tables_of", lambda *_, given=given, **__: given)
        [latencies] = outputs.stored_answers(tables.out, ["latency"])
        assert latencies.notes == notes


def test_answers_of_logs_are_under_the_law_too() -> None:
    assert {*LOG_ANSWERS} <= {*OF_TRAFFIC}
