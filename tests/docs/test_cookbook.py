"""Every cookbook recipe produces the output shown if all run in order in one directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.test_readme import Block, blocks, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COOKBOOK = Path(__file__).parents[2] / "docs" / "cookbook.md"
FEWEST_RECIPES = 20


def needs_analysis(block: Block) -> bool:
    return "analysis" in block.text


def makes_capture(block: Block) -> bool:
    return "frames.txt" in block.text and block.language == "python"


@pytest.mark.long
@pytest.mark.slow
def test_every_recipe_does_what_it_shows(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for block in blocks(COOKBOOK.read_text(encoding="utf-8")):
        if not needs_analysis(block):
            with subtests.test(msg=f"docs/cookbook.md:{block.line}"):
                check(block, tmp_path)


@pytest.mark.long
@pytest.mark.spark
def test_every_recipe_on_an_analysis_does_what_it_shows(
    spark: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    # The recipes use the running Spark session, and start none of their own.
    assert spark is not None
    found = blocks(COOKBOOK.read_text(encoding="utf-8"))
    for block in found:
        if makes_capture(block) or needs_analysis(block):
            with subtests.test(msg=f"docs/cookbook.md:{block.line}"):
                check(block, tmp_path, is_here=True)


def test_there_are_recipes_enough_and_each_has_a_block() -> None:
    recipes = re.split(r"(?m)^### ", COOKBOOK.read_text(encoding="utf-8"))[1:]
    assert len(recipes) >= FEWEST_RECIPES
    assert all(blocks(one) for one in recipes)
