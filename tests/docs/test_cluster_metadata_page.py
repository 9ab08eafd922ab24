"""The code blocks of docs/cluster-metadata.md produce the output shown, and the page names every
view and argument."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.house.test_readme import blocks, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "cluster-metadata.md").read_text(encoding="utf-8")
ROOM = Path(__file__).parents[2] / "src" / "flexwire" / "answers"


# A dozen small queries.
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster
def test_its_blocks_do_what_they_show(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(PAGE):
        assert block.language == "python"
        assert block.reason is None
        run_python(block, "docs/cluster-metadata.md", names, tmp_path)
    assert names["spark"] is spark


def test_it_names_every_view_and_every_argument() -> None:
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    view = re.compile(r"^def ([a-z]\w*)\(state: ClusterState\) -> DataFrame:", re.MULTILINE)
    views = {
        ".".join([*path.relative_to(ROOM).with_suffix("").parts, name])
        for path in ROOM.rglob("cluster*.py")
        for name in view.findall(path.read_text(encoding="utf-8"))
    }
    rows = re.findall(r"^\| `([\w.]+)` \|", PAGE, re.MULTILINE)
    # The history is computed from the changes.
    views.remove("state.cluster_partitions.partition_changes")
    assert {one for one in rows if "." in one} == views
    asked = {*inspect.signature(cluster_state).parameters} - {"spark", "log_dir"}
    assert {one for one in rows if "." not in one} == asked
