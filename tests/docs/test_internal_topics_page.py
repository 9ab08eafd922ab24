"""The blocks of docs/internal-topics.md produce the output shown, and the page lists every view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "internal-topics.md").read_text(encoding="utf-8")


@pytest.mark.spark
@pytest.mark.cluster  # its queries take a quarter of a minute
def test_every_block_does_what_it_shows(spark: SparkSession, tmp_path: Path) -> None:
    # The page's code block uses the running session.
    assert spark.range(1).count() == 1
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(PAGE):
        assert block.language == "python"
        assert "assert " in block.text
        run_python(block, "docs/internal-topics.md", names, tmp_path)


@pytest.mark.spark
def test_the_page_has_every_public_name() -> None:
    from flexwire.answers import state  # noqa: PLC0415 - it imports PySpark

    # The views of the cluster's own topic are in another part of the page.
    names = [one for one in state.__all__ if "cluster" not in one]
    assert [one for one in names if f"`{one}" not in PAGE and f"import {one}" not in PAGE] == []
