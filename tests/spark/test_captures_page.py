"""docs/spark-captures.md shows the real output of its blocks, all options and all kinds of rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.reassembly import idling
from flexwire.spark.sources import kafka_capture_plan
from flexwire.spark.sources.requests import ACCEPTED, KINDS
from flexwire.survey import follower_state
from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark-captures.md").read_text(encoding="utf-8")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster  # half a minute
def test_every_block_does_what_it_shows(spark: SparkSession, tmp_path: Path) -> None:
    # The page uses the running session.
    assert spark.range(1).count() == 1
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(PAGE):
        assert block.language == "python"
        assert "assert " in block.text
        run_python(block, "docs/spark-captures.md", names, tmp_path)


def test_the_page_has_every_option_and_every_kind_of_row() -> None:
    shown = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|$", PAGE, re.MULTILINE))
    assert shown == ACCEPTED
    assert re.findall(r"^\| `(\w+)` \| [^|]* \| `", PAGE, re.MULTILINE) == [*KINDS]


def test_the_page_has_the_numbers_that_hold() -> None:
    assert kafka_capture_plan.MOST_OF_TASK == 64 << 20
    assert kafka_capture_plan.MOST_OF_PLAN == 256 << 20
    assert "at most 64 MiB, and 256 MiB for all tasks" in PAGE
    assert f"more than {follower_state.MANY_KEYS:,} connections" in PAGE
    assert (idling.OVER_US, idling.IDLE_US) == (5 * 60_000_000, 24 * 3600_000_000)
