"""Tags that taps added are listed with all other header tags, and do not make a capture partial."""

from __future__ import annotations

import json
from html import unescape
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.capture.files.comments import added_tags_comment, sampling_comment
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.cli.app import app
from flexwire.facts.captures import AddedTags, SampledCaptures, StampedCaptures
from flexwire.spark.analyze import analyze
from tests.spark.test_answers_asked import capture
from tests.spark.test_kafka_capture import rows_of
from tests.spark.traffic import made, request

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def tapped(directory: Path, prefix: str, *comments: bytes, tag: int) -> Path:
    """Return a capture with one request whose header contains a tag."""
    with PcapngWriter(directory, prefix=prefix, comment=comments) as writer:
        connection = writer.open_connection(("10.0.0.8", 50000 + len(prefix)), ("10.0.0.1", 9092))
        payload = request(made("HeartbeatRequest"), 4, 1, client_id=prefix)
        # The header ends with an empty tag section, whose bytes are the same as those at the body's
        # start.
        head = len(payload) - len(made("HeartbeatRequest").encode(4))
        assert payload[head - 1] == 0
        payload = payload[: head - 1] + bytes([1]) + varint(tag) + b"\x01x" + payload[head:]
        connection.send("request", len(payload).to_bytes(4, "big") + payload)
    (path,) = writer.paths
    return path


def varint(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low]) if not high else bytes([low | 0x80]) + varint(high)


@pytest.mark.long
@pytest.mark.spark
def test_the_files_of_each_set_of_tags_are_named(spark: SparkSession, tmp_path: Path) -> None:
    directory, out = tmp_path / "capture", tmp_path / "out"
    ours, others = (added_tags_comment(one) for one in ([10042], [10043, 20000]))
    one = tapped(directory, "one", ours, tag=10050)
    tapped(directory, "quiet", tag=10042)
    two = tapped(directory, "two", sampling_comment(0.5), ours, tag=10050)
    three = tapped(directory, "three", others, tag=10050)
    told = analyze([directory], out, spark=spark, answers=["header_tags"])
    expected = AddedTags(
        (
            StampedCaptures((10042,), 2, (str(one), str(two))),
            StampedCaptures((10043, 20000), 1, (str(three),)),
        ),
        3,
    )
    assert told.facts.added_tags == expected
    assert told.facts.sampled == (SampledCaptures(0.5, 1),)
    sentences = expected.sentences
    assert sentences[0] == f"Captured from a tap that added header tag 10042: {one}, {two}."
    assert " ".join(sentences) in told.notes
    page = unescape(told.report.read_text().replace("<wbr>", ""))
    # The tag occurs in the answer, and in the counts of tagged fields.
    for sentence in sentences:
        assert page.count(sentence) == 2
    answer = page[page.index('id="answer-header_tags"') :]
    assert sentences[0] in answer[: answer.index("</section>")]
    for name in ("audit.json", "facts.json"):
        assert json.loads((out / name).read_text())["added_tags"]["files"] == 3
    result = CliRunner().invoke(app, ["answers", str(out), "header_tags"])
    assert " ".join(sentences) in result.stderr
    assert sentences[0] not in result.stdout


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_nothing_is_said_where_no_file_says_it(spark: SparkSession, tmp_path: Path) -> None:
    told = analyze([capture(tmp_path / "capture")[0]], tmp_path / "out", spark=spark)
    assert told.facts.added_tags == AddedTags()
    assert "added header tag" not in "".join(told.notes) + told.report.read_text()
    assert "added_tags" not in json.loads((tmp_path / "out" / "audit.json").read_text())


@pytest.mark.spark
def test_what_files_say_holds_where_key_logs_open_them(spark: SparkSession, tmp_path: Path) -> None:
    comments = sampling_comment(0.5), added_tags_comment([10042])
    path = tapped(tmp_path / "capture", "one", *comments, tag=10050)
    (tmp_path / "keys.log").write_text("# no secret\n", encoding="ascii")
    told = analyze([path], tmp_path / "out", spark=spark, keys=[tmp_path / "keys.log"])
    assert told.facts.sampled == (SampledCaptures(0.5, 1),)
    expected = AddedTags((StampedCaptures((10042,), 1, (str(path),)),), 1)
    assert told.facts.added_tags == expected
    assert told.notes.count(" ".join(expected.sentences)) == 1
    assert len([one for one in told.notes if "50 % of all connections" in one]) == 1


def test_the_source_reads_such_captures_unasked(tmp_path: Path) -> None:
    tapped(tmp_path / "capture", "one", added_tags_comment([10042]), tag=10050)
    assert len(rows_of(tmp_path / "capture")) == 1
