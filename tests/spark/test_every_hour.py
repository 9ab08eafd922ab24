"""The same directory, analyzed every hour: only files that are new are added, and it is told."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.spark.analyze import analyze
from flexwire.spark.delta.output import output
from tests.capture.interleaved import CLEAN, write_capture

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


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
        done = analyze([captures], out, spark=spark, format="delta", append=True, answers="none")
        told.append((done.is_new, done.facts.totals.frames, [*done.notes]))
    again = analyze([captures], out, spark=spark, format="delta", append=True, answers="none")
    assert not again.is_new
    frames = output(out).table("frames")
    assert frames.num_rows == sum(count for _, count, _ in told)
    # A frame is of the file in which it ends.
    assert {*frames["source"].to_pylist()} <= {str(path) for path in captures.iterdir()}
    notes = [" ".join(notes) for _, _, notes in told]
    assert "already" not in notes[0]
    assert f"1 file is in {out} already, so only the others were added" in notes[1]
    assert f"{len(files) - 1} files are in {out} already" in notes[-1]
