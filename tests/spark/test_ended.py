"""If an analysis fails or is killed, the earlier output remains, and its files are private."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.errors import FlexwireError
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import audit
from flexwire.tables.output import SUCCESS
from tests.spark.test_staging import tree
from tests.spark.traffic import Traffic, made

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a capture and analyze it, in a directory that others can read."""
    root = tmp_path_factory.mktemp("ended")
    root.chmod(0o755)
    traffic = Traffic(root / "capture")
    one = traffic.connect()
    traffic.exchange(one, made("MetadataRequest"), made("MetadataResponse"), 9, 1)
    one.close(timestamp_us=traffic.now_us)
    traffic.close()
    (root / "out").mkdir(mode=0o755)
    analyze([root / "capture"], root / "out", spark=spark)
    return root / "out"


def test_all_that_is_written_is_its_owners_alone(out: Path) -> None:
    written = list(out.rglob("*"))
    assert {one.suffix for one in written} >= {".parquet", ".html", ".json", ".csv"}
    for path in written:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert out.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        ("analyze.write_tables", RuntimeError("a defect")),
        ("publishing.output.mark_place", KeyboardInterrupt()),
    ],
)
def test_where_an_analysis_is_ended_the_output_before_is_untouched(
    spark: SparkSession,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    error: BaseException,
) -> None:
    def end(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(f"flexwire.spark.{stage}", end)
    before = tree(out)
    with pytest.raises(type(error)):
        analyze([out.parent / "capture"], out, spark=spark, title="another")
    assert tree(out) == before


@pytest.mark.long
def test_an_audit_of_an_unfinished_analysis_says_so(spark: SparkSession, out: Path) -> None:
    tables = out / "tables"
    assert audit(spark, tables).columns
    (tables / SUCCESS).rename(tables / "_kept")
    try:
        with pytest.raises(
            FlexwireError, match=r"tables is unfinished, because _SUCCESS is missing"
        ):
            audit(spark, tables)
    finally:
        (tables / "_kept").rename(tables / SUCCESS)
