"""For captures with little or no content, and for paths without captures, the message is clear."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import ArgumentError, CaptureError
from flexwire.spark.analyze import analyze
from flexwire.spark.capture_job import gzip_note
from flexwire.storage.file_search import capture_paths, list_captures
from tests.spark.traffic import Traffic

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "given",
    [
        {"paths": "x.pcap"},
        {"paths": 5},
        {"paths": [5]},
        {"paths": [None]},
        {"ports": 9092},
        {"ports": ["9092"]},
        {"ports": [True]},
        {"ports": [10**30]},
        {"brokers": "10.0.0.1:9092"},
        {"brokers": [9092]},
        {"releases": "4.0"},
        {"releases": [4.0]},
        {"captured_release": 4},
        {"show_credentials": 1},
        {"title": b"x"},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_anything_starts(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    with pytest.raises(ArgumentError):
        analyze(**{"paths": [tmp_path], "out": tmp_path / "out", **given})
    assert not (tmp_path / "out").exists()


def test_of_large_files_that_are_not_split_the_user_is_told(tmp_path: Path) -> None:
    sizes = {"a.pcap": 1 << 30, "b.pcap.gz": 1 << 20}
    large = {"c.pcap.gz": 1 << 27, "d.pcap.gz": 1 << 28}
    for name, size in (sizes | large).items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    assert gzip_note(list_captures([tmp_path / name for name in sizes])) == ()
    (note,) = gzip_note(list_captures([tmp_path / name for name in sizes | large]))
    assert note.startswith(f"{tmp_path}/d.pcap.gz and 1 more: one task reads each file")


@pytest.mark.spark
def test_a_capture_without_frames_gives_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "capture")
    traffic.connect().close(timestamp_us=traffic.now_us)
    traffic.close()
    (written,) = (tmp_path / "capture").iterdir()
    packed = tmp_path / "capture.pcapng.gz"
    packed.write_bytes(gzip.compress(written.read_bytes()))
    analysis = analyze([packed], tmp_path / "out", spark=spark)
    assert analysis.facts.totals.frames == 0
    assert [source.packets for source in analysis.facts.sources] == [6]
    for path in (analysis.tables.frames, analysis.tables.records):
        assert spark.read.parquet(str(path)).count() == 0
    assert analysis.tables.message_names() == []


@pytest.mark.spark
def test_only_files_that_are_no_captures_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    wrong = tmp_path / "notes.txt"
    wrong.write_text("not a capture, whatever the name")
    with pytest.raises(CaptureError, match=r"notes\.txt"):
        analyze([wrong], tmp_path / "out", spark=spark)
    assert not (tmp_path / "out").exists()


def test_paths_are_files_directories_and_patterns(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcapng", "deep/c.PCAP.gz", "readme.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    names = [path.name for path in capture_paths([tmp_path, tmp_path / "b.pcap"])]
    assert names == ["a.pcapng", "b.pcap", "c.PCAP.gz"]
    assert [path.name for path in capture_paths([tmp_path / "*.pcap"])] == ["b.pcap"]
    assert [path.name for path in capture_paths([tmp_path / "readme.md"])] == ["readme.md"]


@pytest.mark.parametrize("name", ["absent.pcap", "*.nothing", "empty"])
def test_a_path_that_gives_no_file_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaptureError, match="no"):
        capture_paths([tmp_path / name])


def test_a_pipe_is_no_capture(tmp_path: Path) -> None:
    pipe = tmp_path / "a.pcap"
    os.mkfifo(pipe)
    with pytest.raises(CaptureError, match="neither a file nor a directory"):
        capture_paths([pipe])
    with pytest.raises(CaptureError, match="no file matches this pattern"):
        capture_paths([tmp_path / "*.pcap"])
