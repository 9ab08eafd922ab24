"""docs/spark-functions.md: its blocks run, and the page contains a line for each function."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.spark import functions
from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark-functions.md"
TEXT = PAGE.read_text(encoding="utf-8")


def follow() -> dict[str, Any]:
    """Run the blocks one after another in the running session; return their results."""
    names: dict[str, Any] = {}
    for block in blocks(TEXT):
        assert (block.language, block.reason) == ("python", None)
        assert "assert " in block.text
        run_python(block, str(PAGE), names, Path.cwd())
    return names


@pytest.mark.long
@pytest.mark.spark
def test_its_blocks_do_what_they_show(spark: SparkSession) -> None:
    assert follow()["spark"] is spark


def test_it_has_a_line_for_each_function() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("| `")]
    told = {line.split("(")[0].removeprefix("| `") for line in lines}
    assert told == {*functions.__all__} - {"register_functions"}
    assert "`register_functions`" in TEXT
