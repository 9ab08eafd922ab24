"""With ``range_bytes``, each task gets as many bytes as requested, and the tables are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

from flexwire.errors import ArgumentError
from flexwire.spark import capture_job
from flexwire.spark.analyze import analyze
from tests.spark.traffic import Traffic, made

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MIB = 1 << 20


def frames(out: Path) -> list[tuple[Any, ...]]:
    columns = ["connection", "direction", "frame_index", "message", "answered", "client_id"]
    table = ds.dataset(out / "tables/frames", format="parquet").to_table(columns=columns)
    return sorted(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_each_task_gets_what_was_asked_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = Traffic(tmp_path / "in")
    connection = traffic.connect()
    for number in range(40):
        asked = made("SaslAuthenticateRequest", auth_bytes=b"x" * 100_000)
        traffic.exchange(connection, asked, made("SaslAuthenticateResponse"), 2, number)
    traffic.close()
    ranges = []
    survey_capture = capture_job.survey_capture

    def seen(*arguments: Any) -> Any:
        survey = survey_capture(*arguments)
        ranges.append(survey.value.ranges)
        return survey

    def in_small_chunks(session: Any, request: Any, *others: Any) -> Any:
        return write_tables(session, replace(request, chunk_bytes=MIB // 4), *others)

    write_tables = capture_job.write_tables
    monkeypatch.setattr(capture_job, "survey_capture", seen)
    # Imported by name, because the package contains a function with the module's name.
    monkeypatch.setattr("flexwire.spark.analyze.write_tables", in_small_chunks)
    monkeypatch.setattr("flexwire.spark.options.LEAST_GIVEN_RANGE", MIB)
    analyze([tmp_path / "in"], tmp_path / "one", spark=spark)
    analyze([tmp_path / "in"], tmp_path / "many", spark=spark, range_bytes=MIB)
    # 40 requests of 100,000 bytes.
    assert ranges[0] == 1
    assert ranges[1] >= 3
    assert frames(tmp_path / "one") == frames(tmp_path / "many")


@pytest.mark.parametrize("size", [0, -1, 32 * MIB - 1, 1.5, "64m", True])
def test_what_is_no_size_is_refused(size: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="range_bytes"):
        analyze([tmp_path], tmp_path / "out", range_bytes=size)
