"""docs/headers-jobs.md: each of its jobs produces the result shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "headers-jobs.md"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_every_block_does_what_it_shows(spark: SparkSession, tmp_path: Path) -> None:
    # The page's code block uses the running session.
    assert spark.range(1).count() == 1
    names: dict[str, object] = {"__name__": "page"}
    asserted = 0
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        assert (block.language, block.reason) == ("python", None)
        asserted += block.text.count("assert ")
        run_python(block, str(PAGE), names, tmp_path)
    assert asserted == 11
