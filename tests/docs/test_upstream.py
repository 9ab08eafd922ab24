"""Each report below docs/upstream/ shows the defect that it reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import DataSourceReader

from flexwire.spark.settings import temporary_settings
from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "docs" / "upstream"
INDEX = FOLDER / "README.md"
PAGE = FOLDER / "spark-push-filters.md"
MOCK = FOLDER / "librdkafka-mock.md"
REPORTS = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)


def test_the_index_has_a_row_for_each_report() -> None:
    rows = re.findall(r"\| \[(.*?)\]\((.*?)\) \|$", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == [(path.name, path.name) for path in REPORTS]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_can_be_sent_as_it_stands(path: Path) -> None:
    title, seen, *rest = path.read_text(encoding="utf-8").split("\n\n")
    assert re.fullmatch(r"# .+: .+", title)
    # The first line contains a version and a date.
    when = r"on \d{1,2} (?:January|November|December) 20\d\d\."
    assert re.match(rf"Seen in .*\d.*, {when}", seen.replace("\n", " ")), seen
    headings = [part.removeprefix("## ") for part in rest if part.startswith("## ")]
    shown = ("A program that shows it", "Commands that show it")
    assert [name for name in headings if name not in shown] == [
        *("What happens", "What should happen", "Until then")
    ]
    assert len(headings) == 4
    assert [block.language for block in blocks("\n\n".join(rest))]


def test_the_mock_of_librdkafka_answers_as_the_report_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *_ = blocks(MOCK.read_text(encoding="utf-8"))
    run_python(program, "docs/upstream/librdkafka-mock.md", {"__name__": "page"}, tmp_path)
    _, *answers = capsys.readouterr().out.splitlines()
    metadata, versions = (bytes.fromhex(line.partition(" ")[2]) for line in answers)
    # After the operations, two sections of tags, and a body of ApiVersions that no version has.
    assert metadata.endswith(bytes.fromhex("80000000 00 00"))
    assert versions == bytes.fromhex("00000007 0023 01 0012 0000 0002 00000000")


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
        # What users can do until the defect is fixed.
        fresh = spark.read.format("Numbers").load().count()
    # If the last number is 10, Spark has fixed the bug, and `push_filters` could become the
    # default.
    assert names["counts"] == [10, 3, 3]
    assert fresh == 10
