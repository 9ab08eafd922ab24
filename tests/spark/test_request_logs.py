"""Request logs of two brokers become tables, an audit, chargeback by principal, and a report."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from flexwire.answers.asking.audit import AuditTables, TableEvidence
from flexwire.answers.chargeback import chargeback
from flexwire.answers.topic_readers import topic_readers
from flexwire.errors import CaptureError
from flexwire.inputs import input_sources
from flexwire.spark import request_log_job
from flexwire.spark.analyze import Analysis, analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.spark.capture_job import merged_sums
from flexwire.spark.dataframes import output_of
from flexwire.spark.publishing.commit import run_tasks
from tests.capture.request_lines import PLACE, line, real_lines
from tests.tables.keyed import assert_keys_identify_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def brokers(root: Path) -> Path:
    """Write two brokers' logs: one rotated and gzipped, with refusals, and one in a container."""
    old, new = real_lines("3.9.2"), real_lines("4.4.0")
    one, other = root / "one", root / "other"
    one.mkdir(parents=True)
    other.mkdir()
    half = len(new) // 2
    (one / "kafka-request.log.2026-11-22-19.gz").write_bytes(
        gzip.compress(b"\n".join(new[:half]) + b"\n")
    )
    (one / "kafka-request.log").write_bytes(
        b"\n".join([*new[half:], b"", b"[2026-11-22 19:55:00,000] no request", line()[:300]])
    )
    (one / "server.log").write_bytes((PLACE / "4.4.0-server.log").read_bytes())
    (one / "state-change.log").write_text("is not looked at\n")
    (other / "kafka-request.log").write_bytes(
        b"".join(b"2026-11-22T19:54:20.1Z stdout F " + text + b"\n" for text in old)
    )
    return root


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = brokers(tmp_path_factory.mktemp("request-logs"))
    # The size is small, so that several tasks read each file.
    with patch.object(request_log_job, "LEAST_TASK", 10_000):
        return analyze(
            [root],
            root.parent / "out",
            spark=spark,
            releases=["3.9", "4.4"],
            answers=["chargeback"],
        )


def test_a_key_identifies_rows(done: Analysis) -> None:
    names = [name for name in done.output.names if not name.startswith("answers/")]
    found = {name: done.output.table(name) for name in names}
    assert {"frames", "connections", "forwarded_requests"} <= assert_keys_identify_rows(found)


def test_every_line_is_in_the_tables_or_counted(spark: SparkSession, done: Analysis) -> None:
    told = done.facts.request_logs
    assert told is not None
    real = [*real_lines("3.9.2"), *real_lines("4.4.0")]
    forwarded = sum(b'"isForwarded":true' in one for one in real)
    assert (told.files, told.server_logs) == (3, 1)
    assert told.requests + told.forwarded == len(real) + 1
    assert (told.forwarded, told.refused, told.cut) == (forwarded, 2, 1)
    assert not told.only_deprecated
    names = {(one.name, one.security_protocol): one.requests for one in told.listeners}
    assert names[None, None] == 1
    assert names["SASL_PLAINTEXT", "SASL_PLAINTEXT"] > 10
    tables = open_tables(spark, done.output.place.url)
    assert tables.frames.where("direction = 'request'").count() == told.requests + told.refused
    assert tables.frames.count() == done.facts.totals.frames
    assert tables.connections.count() == done.facts.totals.connections
    assert tables.connections.select("connection").distinct().count() == tables.connections.count()
    assert sum(one.packets for one in done.facts.sources) == told.lines
    assert done.facts.totals.decode_failures == 0


@pytest.mark.long
def test_the_audit_has_principals_and_what_brokers_refused(
    spark: SparkSession, done: Analysis
) -> None:
    clients = {one.client.client_id: one.client for one in done.facts.audit.findings}
    assert clients["payments-writer"].principal == "User:alice"
    assert clients["payments-writer"].address == "127.0.0.1"
    broken = {
        (one.release, one.client.client_id, one.api_name, one.version)
        for one in done.facts.audit.findings
        if one.verdict == "broke"
    }
    # 4.4 offers Produce 2, which the other broker's release still reads, so the evidence is not
    # certain.
    assert broken == {("4.4.0", None, "Fetch", 3)}
    # Queries on the tables collect the same evidence.
    tables = open_tables(spark, done.output.place.url)
    audited = AuditTables(tables.frames, tables.connections, tables.message)
    evidence = TableEvidence(audited, done.output.message_names()).evidence()
    parties = {one.client_id: one.principal for one in evidence.conducts}
    assert parties["payments-writer"] == "User:alice"


@pytest.mark.long
def test_bytes_of_records_are_charged_to_principals(spark: SparkSession, done: Analysis) -> None:
    tables = open_tables(spark, done.output.place.url)
    rows = chargeback(tables).collect()
    by = {(one.principal, one.client_id, one.topic): one for one in rows}
    written = by["User:alice", "payments-writer", "payments"]
    assert (written.sent_bytes, written.received_bytes) == (2 * 1151, 0)
    assert by["User:ANONYMOUS", "careless", "orders"].sent_bytes == 2 * 77
    # No line contains the size for rows without a topic.
    assert {one.bytes for one in rows if one.topic is one.topic_id is None} == {None}
    assert min(one.bytes for one in rows if one.topic or one.topic_id) > 0


@pytest.mark.long
def test_fetches_say_who_reads_a_topic(spark: SparkSession, done: Analysis) -> None:
    rows = topic_readers(open_tables(spark, done.output.place.url)).where("requests > 0").collect()
    found = {(row.client_id, row.topic or row.topic_id): row for row in rows}
    # Two of these ids do not occur in any response that contains topic names.
    assert {*found} == {
        ("orders-reader", "dX3j5LPSRZqaUCWxTw1Ktw"),
        ("orders-reader", "2HEL8fzbTSeGuqIuyW1RxQ"),
        ("payments-reader", "payments"),
    }
    assert {(row.address, row.is_follower) for row in rows} == {("127.0.0.1", False)}


def test_the_report_says_what_request_logs_cannot_show(done: Analysis) -> None:
    page = done.report.read_text(encoding="utf-8")
    assert "A request log does not contain frame sizes" in page
    assert "to the controller on behalf of clients" in page
    assert "User:alice" in page
    assert "MMpVsIt1B5hPMGzUHKNHaobs36Tn2" not in page


def test_no_secret_is_in_the_tables(spark: SparkSession, done: Analysis) -> None:
    found = open_tables(spark, done.output.place.url).message("AlterUserScramCredentialsRequest")
    assert found is not None
    salts = found.selectExpr("explode(body.upsertions) as one").select("one.salt").collect()
    assert {bytes(row.salt) for row in salts} == {b"withheld"}


def logs_of_one_connection(root: Path, clients: list[str | None]) -> Path:
    """Write a log of a long connection, whose lines contain these client ids."""
    header = {"requestApiKey": 3, "requestApiVersion": 12, "clientInstanceId": None}
    lines = [
        line(requestHeader=header | {"correlationId": number, "clientId": client})
        for number, client in enumerate(clients)
    ]
    root.mkdir()
    (root / "kafka-request.log").write_bytes(b"\n".join(lines))
    return root


@pytest.mark.long
def test_a_client_id_that_was_given_once_is_that_of_the_connection(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rows equal those of a client that repeats its id, whichever task reads the line with the id.

    As in a capture, a line before the first line with the id is given no id.
    """
    rows = {}
    given: dict[str, list[str | None]] = {
        "always": ["c"] * 60,
        "first": ["c", *[None] * 59],
        "late": ["c", "d", *[None] * 58],
        "last": [*[None] * 59, "c"],
        # This is how a broker logs null.
        "empty": ["c", *[""] * 59],
    }
    for name, clients in given.items():
        root = logs_of_one_connection(tmp_path / name, clients)
        out = tmp_path / f"{name}-out"
        with patch.object(request_log_job, "LEAST_TASK", 5_000):
            analysis = analyze([root], out, spark=spark, answers=["chargeback"])
        output = output_of(out)
        places = ("connections", "frames", "messages/MetadataRequest", "messages/MetadataResponse")
        own = {"source", "frame_index"}
        tables = {
            place: output.table(place).select(
                [column for column in output.schema(place).names if column not in own]
            )
            for place in places
        }
        rows[name] = {
            place: sorted(map(repr, table.to_pylist())) for place, table in tables.items()
        }
        rows[name]["answer"] = [*map(repr, analysis.facts.answers[0].shown)]
    assert len(rows["always"]["frames"]) == 120
    assert rows["first"] == rows["always"]
    assert rows["empty"] == rows["always"]
    assert rows["last"]["connections"] == rows["always"]["connections"]
    named = {name: sum("'client_id': 'c'" in row for row in rows[name]["frames"]) for name in given}
    assert named == {"always": 120, "first": 120, "empty": 120, "late": 118, "last": 2}


def test_the_second_reading_replaces_no_file_of_the_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The bytes of a file depend only on its name, so a late attempt changes nothing."""
    root = logs_of_one_connection(tmp_path / "logs", ["c", *[None] * 59])
    written: list[set[str]] = []
    numbers: list[int] = []

    def run(*given: Any) -> Any:
        committed = run_tasks(*given)
        written.append({file.name for task in committed for file in task.files})
        return committed

    def merge(*given: Any, first: int) -> Any:
        numbers.append(first)
        return merged_sums(*given, first=first)

    with (
        patch.object(request_log_job, "LEAST_TASK", 5_000),
        patch.object(request_log_job, "run_tasks", run),
        patch.object(request_log_job, "merged_sums", merge),
    ):
        analyze([root], tmp_path / "out", spark=spark)
    first, second = written
    assert len(first) == len(second) > 4
    assert not first & second
    tasks = len({name.rpartition("/")[2] for name in first})
    assert numbers == [1, 1 + tasks]


def test_the_ids_of_so_many_connections_are_kept_and_the_others_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        line(connection=f"10.0.0.1:9092-10.0.0.9:50000-0-{number}", requestHeader=header)
        for number in range(5)
        for header in (
            {"requestApiKey": 3, "requestApiVersion": 12, "correlationId": 1, "clientId": "c"},
            {"requestApiKey": 3, "requestApiVersion": 12, "correlationId": 2, "clientId": None},
        )
    ]
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"\n".join(lines))
    with patch.object(request_log_job, "MOST_CONNECTIONS", 3):
        analysis = analyze([path], tmp_path / "out", spark=spark)
    (note,) = [note for note in analysis.notes if "without a client id" in note]
    assert note.startswith("some lines of 2 connections remain without a client id")
    frames = output_of(tmp_path / "out").table("frames").to_pylist()
    lacking = {row["connection"][-2:] for row in frames if row["client_id"] is None}
    assert lacking == {"#3", "#4"}


def test_captures_beside_request_logs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log").write_bytes(line())
    (tmp_path / "one.pcapng").write_bytes(b"")
    with pytest.raises(CaptureError, match="counted twice"):
        input_sources([tmp_path])


def test_a_brokers_own_log_alone_says_too_little(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="add the request log"):
        analyze([PLACE / "4.4.0-server.log"], tmp_path / "out", spark=spark)


@pytest.mark.slow
def test_deprecated_requests_alone_are_said_to_be_all_that_was_seen(
    spark: SparkSession, tmp_path: Path
) -> None:
    done = analyze(
        [PLACE / "3.9.2-info.log"], tmp_path / "out", spark=spark, timezone="Europe/Berlin"
    )
    told = done.facts.request_logs
    assert told is not None
    assert (told.only_deprecated, told.timezone) == (True, "Europe/Berlin")
    assert "Only requests with deprecated versions were seen" in done.report.read_text()
    assert done.facts.totals.frames == 4
