"""If a capture contains only some of the connections, facts, report, audit and answers say so."""

from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.capture.files.comments import CaptureFilter, filter_comment, sampling_comment
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.cli.app import app
from flexwire.errors import CaptureError
from flexwire.facts.captures import SampledCaptures
from flexwire.spark.analyze import analyze
from flexwire.spark.sources.kafka_capture import CaptureStreamReader
from flexwire.tasks import spark_schema
from tests.spark.test_answers_asked import capture
from tests.spark.test_kafka_capture import options, rows_of
from tests.spark.traffic import made, request

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NOTE = (
    "1 capture contains only part of the traffic: 12.5 % of all connections, and in these "
    "connections only the frames of topics orders. Counts, bytes, the audit and all answers cover "
    "only this part."
)

ONLY = CaptureFilter(topics=("orders",))
PART = [{"share": 0.125, "files": 1, "only": "topics orders"}]


def sampled(directory: Path) -> Path:
    """Write a whole capture, and one with a share of the connections."""
    capture(directory)
    comment = sampling_comment(0.125), filter_comment(ONLY)
    with PcapngWriter(directory, prefix="part", comment=comment) as writer:
        connection = writer.open_connection(("10.0.0.8", 50000), ("10.0.0.1", 9092))
        payload = request(made("HeartbeatRequest"), 4, 1, client_id="drawn")
        connection.send("request", len(payload).to_bytes(4, "big") + payload)
    return directory


@pytest.mark.long
@pytest.mark.spark
def test_a_part_is_never_taken_for_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    files = sampled(tmp_path / "capture")
    told = analyze([files], out, spark=spark, answers=["chargeback"])
    assert told.facts.sampled == (SampledCaptures(0.125, 1, "topics orders"),)
    assert NOTE in told.notes
    assert "1 file: <bdi>12.5 % of all connections, and in these" in " ".join(
        told.report.read_text().split()
    )
    assert json.loads((out / "audit.json").read_text())["sampled"] == PART
    assert json.loads((out / "facts.json").read_text())["sampled"] == PART
    (row, *_) = csv.DictReader((out / "audit.csv").read_text().splitlines())
    assert row["share_of_connections"] == "0.125"
    sent = list(csv.DictReader((out / "answers" / "chargeback.csv").read_text().splitlines()))
    assert {one["share_of_connections"] for one in sent} == {"0.125"}
    for how in ("csv", "json"):
        asked = CliRunner().invoke(app, ["answers", str(out), "chargeback", "--format", how])
        assert asked.stdout.count("0.125") >= len(sent)
    result = CliRunner().invoke(app, ["answers", str(out), "chargeback"])
    assert NOTE in result.stderr
    assert NOTE not in result.stdout


@pytest.mark.spark
@pytest.mark.slow
def test_a_whole_is_not_called_a_part(spark: SparkSession, tmp_path: Path) -> None:
    files = sampled(tmp_path / "capture")
    for path in files.glob("part-*"):
        shutil.move(path, tmp_path)
    told = analyze([files], tmp_path / "out", spark=spark)
    assert told.facts.sampled == ()
    assert not [note for note in told.notes if "of all connections" in note]
    assert "only part of the traffic" not in told.report.read_text()
    assert "sampled" not in json.loads((tmp_path / "out" / "audit.json").read_text())
    assert "share_of_connections" not in (tmp_path / "out" / "audit.csv").read_text()


def test_the_source_reads_a_part_only_where_it_is_asked_to(tmp_path: Path) -> None:
    files = sampled(tmp_path / "capture")
    for kind in ("frames", "packets"):
        with pytest.raises(CaptureError, match=r"12\.5 % of all connections.*acceptSampled"):
            rows_of(files, rows=kind)
        assert rows_of(files, rows=kind, acceptSampled="true")

    def read(**given: str) -> int:
        asked = options(files, rows="frames", **given)
        stream = CaptureStreamReader(asked, spark_schema(asked.schema()))
        tasks = stream.partitions({}, stream.latestOffset({}))
        return sum(len(batch) for task in tasks for batch in stream.read(task))

    with pytest.raises(CaptureError, match="contains only a part of the traffic"):
        read()
    assert read(acceptSampled="true")
