"""The blocks of docs/spark.md produce the output shown; the page lists every option and column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.spark
def test_every_block_does_what_it_shows(spark: SparkSession, tmp_path: Path) -> None:
    # The page's first code block uses the running session.
    assert spark.range(1).count() == 1
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(PAGE):
        assert block.language == "python"
        if block.reason is not None:
            continue
        assert "assert " in block.text
        run_python(block, "docs/spark.md", names, tmp_path)


@pytest.mark.spark
def test_the_page_has_every_option_and_every_column() -> None:
    from flexwire.logs.records import (  # noqa: PLC0415 - it imports PySpark
        LOG_COLUMNS,
        SUM_COLUMNS,
    )
    from flexwire.spark.sources.kafka_log import ACCEPTED  # noqa: PLC0415 - see above

    shown = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|$", PAGE, re.MULTILINE))
    assert shown == ACCEPTED
    names = [*LOG_COLUMNS, *SUM_COLUMNS]
    assert [one for one in names if f"`{one}`" not in PAGE and f'"{one}"' not in PAGE] == []
