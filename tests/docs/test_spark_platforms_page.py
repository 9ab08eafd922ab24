"""On docs/spark-platforms.md, the code for workers runs, and the page states who has tried it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flexwire
from tests.house.test_readme import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark-platforms.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.spark
def test_what_it_asks_workers_is_answered(spark: SparkSession) -> None:
    (block,) = [one for one in blocks(PAGE) if one.reason is None]
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block.text, "docs/spark-platforms.md", "exec"), names)  # noqa: S102 - the page is ours
    assert names["spark"] is spark
    assert {row.kernels for row in names["workers"]} == {flexwire.load_kernels()}


def test_every_test_that_it_names_is_there() -> None:
    root = Path(__file__).parents[2]
    named = {one for one in PAGE.split("`") if one.startswith("tests/")}
    assert named
    assert [one for one in named if not (root / one).is_file()] == []
