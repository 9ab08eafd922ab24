"""If the same directory is analyzed every hour, each run adds only the new files, and says so."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.errors import CaptureError
from flexwire.spark.analyze import analyze
from flexwire.spark.delta.output import output
from tests.capture.interleaved import CLEAN, write_capture

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HEARTBEAT = bytes.fromhex("00000017 000c0004 00000007 0001610000 02670000000002780000")


def append(
    captures: Path, out: Path, spark: SparkSession, *ports: int
) -> tuple[bool, int, list[str]]:
    options: dict[str, Any] = {"format": "delta", "append": True, "answers": "none"}
    done = analyze([captures], out, spark=spark, ports=ports, **options)
    return done.is_new, done.facts.totals.frames, [*done.notes]


def test_the_file_that_a_tap_is_writing_is_left_for_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    captures, out = tmp_path / "captures", tmp_path / "out"
    with PcapngWriter(captures) as tap:
        connection = tap.open_connection(("10.0.0.9", 50000), ("10.0.0.1", 9092))
        connection.send("request", HEARTBEAT)
        with pytest.raises(CaptureError, match="the file is still being written"):
            append(captures, out, spark, 9092)
        assert tap.rotate()
        connection.send("request", HEARTBEAT)
        is_new, frames, notes = append(captures, out, spark, 9092)
        assert (is_new, frames) == (True, 1)
        assert "1 file is still being written and will be read by the next analysis" in notes
        connection.send("request", HEARTBEAT)
        connection.close()
    is_new, frames, notes = append(captures, out, spark, 9092)
    assert (is_new, frames) == (True, 2)
    assert not any("still being written" in note for note in notes)
    assert output(out).table("frames").num_rows == 3


@pytest.mark.long
def test_each_file_is_added_once(spark: SparkSession, tmp_path: Path) -> None:
    files = [
        file
        for seed in (1, 2, 3)
        for file in write_capture(tmp_path / f"made-{seed}", seed, replace(CLEAN, connections=2))
    ]
    captures, out = tmp_path / "captures", tmp_path / "out"
    captures.mkdir()
    told = []
    for number, file in enumerate(files):
        shutil.copy2(file, captures / f"{number:03}.pcapng")
        told.append(append(captures, out, spark))
    is_new, _, _ = append(captures, out, spark)
    assert not is_new
    frames = output(out).table("frames")
    assert frames.num_rows == sum(count for _, count, _ in told)
    # A frame belongs to the file in which it ends.
    assert {*frames["source"].to_pylist()} <= {str(path) for path in captures.iterdir()}
    notes = [" ".join(notes) for _, _, notes in told]
    assert "already" not in notes[0]
    assert f"1 file is already in {out}, so only the other files were added" in notes[1]
    assert f"{len(files) - 1} files are already in {out}" in notes[-1]
