"""Capture rows read without Spark equal those of the data source; memory use is bounded."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flexwire.capture.files.comments import sampling_comment
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.errors import ArgumentError, CaptureError, UnknownMessageError
from flexwire.scan import captures, read_capture
from flexwire.scan.captures import CaptureScan
from tests.activity.made import CAPTURES, capture_files
from tests.spark.test_kafka_capture import in_order, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.scan.captures import CaptureRowKind
    from flexwire.survey.request import AnalysisRequest

EVERYTHING = capture_files("everything")[0].parent


def rows(path: Path, **how: Any) -> list[dict[str, Any]]:
    return in_order(read_capture(path, **how).read_all().to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("kind", ["frames", "records", "connections", "packets"])
def test_rows_are_those_of_the_data_source(name: str, kind: CaptureRowKind) -> None:
    path = capture_files(name)[0].parent
    assert rows(path, rows=kind) == rows_of(path, rows=kind)


def test_messages_are_those_of_the_data_source() -> None:
    for message in ("MetadataRequest", "FetchResponse"):
        found = rows(EVERYTHING, rows="messages", message=message)
        assert found == rows_of(EVERYTHING, rows="messages", message=message)
        assert found


@pytest.mark.slow
def test_ranges_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: tuple[CaptureRowKind, ...] = ("frames", "records")
    expected = {kind: rows(EVERYTHING, rows=kind) for kind in kinds}
    made = CaptureScan.request

    def with_small_ranges(scan: CaptureScan, paths: list[Path]) -> AnalysisRequest:
        return replace(made(scan, paths), range_bytes=2000)

    monkeypatch.setattr(CaptureScan, "request", with_small_ranges)
    monkeypatch.setattr(captures, "_BATCH_ROWS", 3)
    for kind, found in expected.items():
        batches = list(read_capture(EVERYTHING, kind))
        assert max(len(batch) for batch in batches) <= 3
        assert in_order(pa.Table.from_batches(batches).to_pylist()) == found


def test_columns_are_given_in_the_order_that_was_asked_for() -> None:
    whole = read_capture(EVERYTHING).read_all()
    some = read_capture(EVERYTHING, columns=["size", "api_name"]).read_all()
    assert some.equals(whole.select(["size", "api_name"]))
    assert read_capture(EVERYTHING, columns=[]).read_all().num_columns == 0
    with pytest.raises(ArgumentError, match="there is no column nothing"):
        read_capture(EVERYTHING, columns=["nothing"])


@pytest.mark.long
def test_options_choose_frames() -> None:
    whole = read_capture(EVERYTHING).read_all()
    times = sorted(whole["time"].to_pylist())
    since, until = times[len(times) // 3], times[2 * len(times) // 3]
    for zone in (None, UTC):
        # Timestamp columns have no time zone; their values are in UTC.
        bounds = {"since": since.replace(tzinfo=zone), "until": until.replace(tzinfo=zone)}
        found = read_capture(EVERYTHING, **bounds).read_all()
        assert sorted(found["time"].to_pylist()) == [at for at in times if since <= at < until]
        assert 0 < len(found) < len(whole)
    named = read_capture(EVERYTHING, client_ids=["client-0"]).read_all()
    assert named.equals(whole.filter(pc.equal(whole["client_id"], "client-0")))
    carried = read_capture(EVERYTHING, message="HeartbeatRequest").read_all()
    assert set(carried["message"].to_pylist()) == {"HeartbeatRequest"}
    records = read_capture(EVERYTHING, "records").read_all()
    topics = sorted({name for name in records["topic"].to_pylist() if name})
    of_topic = read_capture(EVERYTHING, "records", topics=topics[:1]).read_all()
    assert set(of_topic["topic"].to_pylist()) == {topics[0]}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"rows": "frame"}, "rows: expected one of frames"),
        ({"rows": "messages"}, 'message: expected a message name if rows is "messages"'),
        ({"rows": "connections", "client_ids": ["a"]}, "client_ids filters only frames"),
        ({"topics": ["a"]}, "topics filters only records, not frames"),
        ({"rows": "packets", "since": datetime(2026, 1, 1, tzinfo=UTC)}, "since filters only"),
        ({"client_ids": "a"}, "client_ids: expected a list of strings"),
        ({"client_ids": [1]}, "client_ids: expected a str"),
        ({"skip_unreadable": 1}, "skip_unreadable: expected True or False"),
        ({"columns": "size"}, "columns: expected a list of columns"),
    ],
)
def test_what_an_option_does_not_take_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        read_capture(EVERYTHING, **given).read_all()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownMessageError):
        read_capture(EVERYTHING, "messages", message="MetadataRequst")
    with pytest.raises(CaptureError, match="no such file"):
        read_capture(EVERYTHING / "nothing")


def test_files_that_are_no_captures_are_told_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(capture_files("everything")[0].read_bytes())
    (tmp_path / "b.pcap").write_bytes(b"nothing at all")
    reader = read_capture(tmp_path)
    with pytest.raises(CaptureError, match="or pass skip_unreadable=True"):
        reader.read_all()
    assert read_capture(tmp_path, skip_unreadable=True).read_all().num_rows > 0


def test_a_part_of_the_traffic_is_read_only_as_such(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path, comment=sampling_comment(0.5)) as writer:
        connection = writer.open_connection(("10.0.0.9", 50000), ("10.0.0.1", 9092))
        connection.send("request", bytes.fromhex("0000000a00120000000000010000"))
    with pytest.raises(CaptureError, match="pass accept_sampled=True"):
        read_capture(tmp_path).read_all()
    assert read_capture(tmp_path, accept_sampled=True).read_all().num_rows == 1


def test_what_is_kept_is_removed_also_when_nobody_reads_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(captures, "_BATCH_ROWS", 3)
    scan = CaptureScan()
    batches = captures.capture_batches(scan, scan.request([EVERYTHING]), scan.schema)
    next(batches)
    assert len(list(tmp_path.iterdir())) == 1
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    assert list(tmp_path.iterdir()) == []


IMPORTS = """
import sys
from flexwire.scan import read_capture
assert read_capture(sys.argv[1]).read_all().num_rows
print([name for name in ("pyspark", "py4j", "polars") if name in sys.modules])
"""


@pytest.mark.long
@pytest.mark.slow
def test_it_needs_neither_spark_nor_polars() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, str(EVERYTHING)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_a_time_of_a_zone_is_that_moment() -> None:
    times = read_capture(EVERYTHING, columns=["time"]).read_all()["time"].to_pylist()
    middle = sorted(times)[len(times) // 2]
    there = middle.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=9)))
    found = read_capture(EVERYTHING, since=there).read_all()
    assert len(found) == len([at for at in times if at >= middle])
