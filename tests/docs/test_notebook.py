"""The notebook answers its three questions, and shows the output of its last run.

The notebook's outputs come from Jupyter and the capture of `make run`. To create them again, run
``jupyter nbconvert --to notebook --execute --inplace docs/notebooks/three-questions.ipynb`` in the
directory of that capture.
"""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.records import Record, encode_batch
from flexwire.records.headers import Headers
from tests.docs.notebook import cells, follow
from tests.spark.test_audit import Client, offers
from tests.spark.traffic import Traffic, made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "three-questions.ipynb"
# Small enough for a readable diff.
MOST_BYTES = 150_000


def produced(topic: str, compression: str) -> Any:
    """Return a Produce request of ten records, each with KIP-82 headers."""
    typed = Headers()
    typed.put_long("user", 7)
    pairs: list[tuple[bytes, bytes | None]] = [
        (key.encode(), value) for key, value in typed.to_pairs()
    ]
    records = [Record(n, 1_700_000_000_000 + n, b"k%d" % n, b"v" * 50, pairs) for n in range(10)]
    kind = type(made("ProduceRequest"))
    data = kind.PartitionProduceData(
        index=0, records=encode_batch(records, compression=compression)
    )
    return [kind.TopicProduceData(name=topic, partition_data=[data])]


def write_capture(directory: Path) -> None:
    """Write a capture of an old client, which breaks with a new release, and of a producer."""
    directory.mkdir(parents=True)
    traffic = Traffic(directory)
    Client(traffic, "museum-piece", 40001).ask(offers()).send("ListOffsets", 0)
    modern = Client(traffic, "web", 40002).ask(offers())
    for topic, codec in (("orders", "zstd"), ("clicks", "none")):
        modern.send("Produce", 9, acks=1, topic_data=produced(topic, codec))
    traffic.close()


# The test runs an analysis and a dozen queries.
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.cluster
def test_its_cells_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    # This takes half a second.
    plt: Any = import_module("matplotlib.pyplot")

    shown: list[list[str]] = []

    def show() -> None:
        axes = plt.gcf().axes[0]
        shown.append([axes.get_title(), *(one.get_text() for one in axes.get_yticklabels())])
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    write_capture(tmp_path / "out" / "demo" / "capture")
    with contextlib.chdir(tmp_path):
        followed = follow(NOTEBOOK)
    assert followed.names["spark"] is spark
    assert shown == [
        ["1 of 2 clients to look at before the upgrade", "museum-piece"],
        ["What record headers cost", "clicks", "orders"],
        ["Which topics take the disk, and in which codec", "orders", "clicks"],
    ]
    verdicts, todo, conventions, kinds, codecs, largest = [
        one for one in followed.values if one is not None
    ]
    assert verdicts.loc["will break"].tolist() == [1, 1]
    assert list(todo["api_name"]) == ["ListOffsets"]
    assert conventions.loc["kip-82"].tolist() == [20, 0]
    assert kinds["headers"].sum() == 20
    assert codecs.loc["none", "stored"] > codecs.loc["zstd", "stored"]
    assert codecs["records"].to_dict() == {"none": 10, "zstd": 10}
    assert list(largest["topic"]) == ["clicks", "orders"]


def test_it_was_run_from_its_first_cell_to_its_last() -> None:
    code = cells(NOTEBOOK)
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    kinds = [one.get("output_type") for cell in code for one in cell["outputs"]]
    assert "error" not in kinds
    images = [
        cell for cell in code if any("image/png" in one.get("data", {}) for one in cell["outputs"])
    ]
    assert images == [cell for cell in code if "plt.show()" in "".join(cell["source"])]


def test_it_is_small_enough_to_be_read_as_a_change() -> None:
    assert NOTEBOOK.stat().st_size < MOST_BYTES
