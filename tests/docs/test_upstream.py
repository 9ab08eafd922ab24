"""Each report below docs/upstream/ shows the defect that it reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import DataSourceReader

from flexwire.spark.settings import temporary_settings
from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "upstream" / "spark-push-filters.md"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.skipif(
    not hasattr(DataSourceReader, "pushFilters"), reason="PySpark 4.0 hands no filters over"
)
def test_a_dataframe_stays_filtered(spark: SparkSession, tmp_path: Path) -> None:
    [block] = blocks(PAGE.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "page"}
    with temporary_settings(spark, {"spark.sql.python.filterPushdown.enabled": "false"}):
        run_python(block, "docs/upstream/spark-push-filters.md", names, tmp_path)
    # If the last number is 10, Spark has fixed the bug: `push_filters` could become the default.
    assert names["counts"] == [10, 3, 3]
