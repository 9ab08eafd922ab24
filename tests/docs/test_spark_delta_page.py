"""docs/spark-delta.md: its stream writes each record once into a Delta table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark-delta.md").read_text(encoding="utf-8")


# The test runs three short streams.
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster
def test_its_blocks_do_what_they_show(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(PAGE):
        assert block.language == "python"
        if block.reason is None:
            run_python(block, "docs/spark-delta.md", names, tmp_path)
    assert names["spark"] is spark
