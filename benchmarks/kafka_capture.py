"""``kafka-capture`` to a noop sink, beside prebuilt Arrow batches of its rows and ``analyze``.

``python benchmarks/kafka_capture.py [CASE...] [--kept DIR] [--rounds 2]``, with cases as
`benchmarks/pipeline.py` takes them: ``heavy,mb=1000 small,mb=1000`` by default. Seconds are those
of the processor, in Java and all Python workers, the least of all rounds, which take turns. The
result is the cost of each additional byte: the difference between all files of a capture and the
first quarter of them, without the start of a query. Prebuilt batches are the first ones of the same
rows, repeated as often: they show Spark's own cost. ``survey`` is the cost of planning in one
process. An analysis runs in a separate process and writes all its tables; its figure includes its
start.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from kafka_log import Prebuilt, noop, timed
from pipeline import analyzed, capture, parse_case

from flexwire.spark.session import session
from flexwire.spark.sources.kafka_capture import CaptureReader
from flexwire.spark.sources.kafka_capture_plan import plan
from flexwire.spark.sources.requests import CaptureOptions
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# The reads of each kind of capture: their options, and their columns unless all.
READ: dict[str, dict[str, tuple[dict[str, str], str]]] = {
    "heavy": {
        "records": ({"rows": "records"}, ""),
        "keys, values": ({"rows": "records"}, "topic string, key binary, value binary"),
        "frames": ({}, ""),
        "FetchResponse": ({"rows": "messages", "message": "FetchResponse"}, ""),
    },
    "small": {
        "frames": ({}, ""),
        "latencies": ({}, "api_name string, latency_us bigint"),
        "MetadataResponse": ({"rows": "messages", "message": "MetadataResponse"}, ""),
    },
}


class PrebuiltRows(Prebuilt):
    """A read of Arrow batches from a file, with the schema of the file."""

    @classmethod
    def name(cls) -> str:
        return "prebuilt-rows"

    def schema(self) -> StructType:  # type: ignore[override] - Spark takes both
        with pa.OSFile(self.options["path"]) as file:
            return spark_schema(pa.ipc.open_stream(file).schema)


@dataclass
class Read:
    """A read of a capture: of the first quarter of its files, and of all."""

    name: str
    rows: int
    bytes: int
    cases: tuple[Callable[[], None], Callable[[], None]]
    beside: tuple[Callable[[], None], Callable[[], None]]


def reads(spark: SparkSession, kind: str, folder: Path, place: Path) -> list[Read]:
    files = sorted(folder.glob("*.pcapng"))
    quarter = files[: max(1, len(files) // 4)]
    size = sum(one.stat().st_size for one in files) - sum(one.stat().st_size for one in quarter)
    found = []
    for name, (options, columns) in READ[kind].items():
        reader = spark.read.format("kafka-capture").options(**options)
        frames = [
            (reader.schema(columns) if columns else reader).load([str(one) for one in some])
            for some in (quarter, files)
        ]
        counts = [frame.count() for frame in frames]
        path = place / f"{kind}-{name}.arrow"
        prebuild(str(quarter[0]), options, frames[0].schema, path)
        prebuilt = spark.read.format("prebuilt-rows")
        given = [prebuilt.option("rows", str(one // 4 * 4)).load(str(path)) for one in counts]
        cases, beside = ([lambda one=one: noop(one) for one in some] for some in (frames, given))
        found.append(
            Read(name, counts[1] - counts[0], size, (cases[0], cases[1]), (beside[0], beside[1]))
        )
    return found


def prebuild(file: str, options: dict[str, str], schema: StructType, path: Path) -> None:
    """Write some batches as a task returns them."""
    reader = CaptureReader(CaptureOptions.parse({"path": file, **options}), schema)
    batches = (batch for task in reader.partitions() for batch in reader.read(task))
    first, *others = islice(batches, 20)
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, first.schema) as stream:
        for batch in (first, *others):
            stream.write_batch(batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", type=parse_case)
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()) / "bench")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--without-analyze", action="store_true")
    given = parser.parse_args()
    todo = given.cases or [parse_case("heavy,mb=1000"), parse_case("small,mb=1000")]
    made = [(one, *capture(one.asked, given.kept)) for one in todo]
    # Spark's workers import modules beside this file.
    beside = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(beside)
    with tempfile.TemporaryDirectory() as place:
        spark = session("kafka-capture", master=given.master, memory="2g")
        spark.dataSource.register(PrebuiltRows)
        print(f"{'':24}{'rows':>11}{'MB/CPU s':>10}{'k rows/CPU s':>14}{'of prebuilt':>12}")
        for case, folder, about in made:
            size = about.bytes / 1e6
            options = CaptureOptions.parse({"path": str(folder)})
            survey = min(timed(lambda: plan(options)) for _ in range(given.rounds))  # noqa: B023 - at once
            print(f"{case.text():>16}{'survey':>8}{'':11}{size / survey:10.0f}")
            todo_here = reads(spark, case.asked.kind, folder, Path(place))
            for one in todo_here:
                show(one, given.rounds)
        spark.stop()
        for case, folder, about in [] if given.without_analyze else made:
            used, *_ = analyzed(case, folder, about, Path(place) / case.asked.kind)
            print(f"{case.text():>16}{' analyze':8}{'':11}{about.bytes / 1e6 / used.cpu:10.1f}")


def show(one: Read, rounds: int) -> None:
    """Print the cost of an additional byte and row."""
    runs = [[timed(case) for case in (*one.cases, *one.beside)] for _ in range(rounds + 1)]
    # In the first round, workers start and Java compiles.
    small, large, given_small, given_large = (min(some) for some in zip(*runs[1:], strict=True))
    took, ceiling = max(large - small, 1e-9), given_large - given_small
    print(
        f"{one.name:>24}{one.rows:11,}{one.bytes / 1e6 / took:10.1f}{one.rows / 1e3 / took:14.0f}"
        f"{ceiling / took:12.0%}"
    )


if __name__ == "__main__":
    main()
