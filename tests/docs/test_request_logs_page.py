"""The code blocks of docs/request-logs.md produce the output shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "request-logs.md").read_text(encoding="utf-8")


@pytest.mark.spark
@pytest.mark.cluster  # an analysis with an answer takes a quarter of a minute
def test_every_block_does_what_it_shows(spark: SparkSession, tmp_path: Path) -> None:
    # The page's code block uses the running session.
    assert spark.range(1).count() == 1
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(PAGE):
        if block.reason is None:
            assert block.language == "python"
            assert "assert " in block.text
            run_python(block, "docs/request-logs.md", names, tmp_path)


def test_every_command_on_it_is_one_that_cannot_be_run_here() -> None:
    assert all(block.reason for block in blocks(PAGE) if block.language == "console")
