"""``kafka-log`` to a noop sink, beside prebuilt Arrow batches of the same schema in the same run.

``python benchmarks/kafka_log.py [--mb 500] [--rounds 5]``. The prebuilt batches are the first ones
of the same log, given again and again by a data source that does nothing else: the transport's
ceiling. Seconds are those of the processor, in Java and in all Python workers; of each case the
least of all rounds, which take turns, as others use the machine too. Records have keys, values of
200 random bytes and one record header, in batches of 100.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from processes import TICK
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from flexwire.capture.logs import LogQuery, plan, read_piece
from flexwire.capture.logs.columns import KAFKA_COLUMNS, LogRows
from flexwire.columnar import encode_record_pieces
from flexwire.columnar.record_schema import RECORD_COLUMNS
from flexwire.spark.session import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CHUNK = 50_000
COMPRESSIONS = ("none", "lz4", "zstd")
SCHEMA = pa.schema(KAFKA_COLUMNS.items())
DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)


def write_log(root: Path, mb: int, compression: str) -> int:
    """Write one segment, and give how many records it has."""
    directory = root / f"orders-{COMPRESSIONS.index(compression)}"
    directory.mkdir(parents=True)
    made, random = 0, np.random.default_rng(1)
    with (directory / f"{0:020}.log").open("wb") as log:
        while log.tell() < mb * 1_000_000:
            rows = chunk(made, random)
            for piece in encode_record_pieces(rows, records_per_batch=100, compression=compression):
                log.write(piece)
            made += CHUNK
    return made


def chunk(first: int, random: np.random.Generator) -> pa.Table:
    fixed = [None, pa.py_buffer(random.bytes(200 * CHUNK))]
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(200), CHUNK, fixed).cast(pa.binary())
    offsets = range(first, first + CHUNK)
    header = [{"key": b"trace", "value": b"0123456789abcdef"}]
    return pa.table(
        {
            "key": pa.array([b"key-%d" % one for one in offsets], pa.binary()),
            "value": values,
            "headers": pa.array([header] * CHUNK, RECORD_COLUMNS["headers"]),
            "offset": pa.array(offsets),
            "timestamp": pa.array([1_700_000_000_000 + one for one in offsets]),
        }
    )


class Prebuilt(DataSource):
    """Gives the batches of a file over and over, until it gave as many rows as it should."""

    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return PrebuiltReader(self.options["path"], int(self.options["rows"]))


class PrebuiltReader(DataSourceReader):
    def __init__(self, path: str, rows: int) -> None:
        self._path, self._rows = path, rows

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self._rows // 4)] * 4

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(self._path) as file:
            batches = list(pa.ipc.open_stream(file.read_buffer()))
        left = partition.value
        while left:
            for batch in batches:
                taken = batch.slice(0, left) if left < batch.num_rows else batch
                yield taken
                left -= taken.num_rows
                if not left:
                    return


def prebuild(log: Path, path: Path) -> None:
    """Write some batches as ``kafka-log`` gives them."""
    rows = LogRows(SCHEMA)
    [[piece, *_], *_] = plan([log], LogQuery())
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as out:
        # The first is small.
        for batch in islice(read_piece(piece, rows.read), 1, 4):
            out.write_batch(rows.records(piece, batch))


def cpu() -> float:
    """Seconds of the processor of this process and of all below it, with those that ended."""
    parents, seconds = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(entry.parent.name)
        parents[pid], seconds[pid] = int(parts[1]), sum(map(int, parts[11:15])) / TICK
    total = 0.0
    for pid, used in seconds.items():
        above = pid
        while above not in {0, os.getpid()}:
            above = parents.get(above, 0)
        total += used if above else 0.0
    return total


def timed(case: Callable[[], object]) -> float:
    before = cpu()
    case()
    time.sleep(0.3)
    return cpu() - before


def noop(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def cases(spark: SparkSession, root: Path, rows: dict[str, int]) -> dict[str, tuple]:
    made: dict[str, tuple] = {}

    def add(name: str, kind: str, log: Path | str, count: int, **options: str) -> None:
        frame = spark.read.format(kind).options(**options).load(str(log))
        made[name] = (lambda: noop(frame), count)

    plain = rows["none"]
    add("prebuilt", "prebuilt", root / "prebuilt.arrow", plain, rows=str(plain))
    for at, (name, count) in enumerate(rows.items()):
        add(f"kafka-log, {name}", "kafka-log", root / f"orders-{at}", count, includeHeaders="true")
    sums = {"countBy": "topic,key_size"}
    add("summed by key size", "kafka-log", root / "orders-0", plain, **sums)
    schema = "topic string, key_size int, records bigint, key_bytes bigint"
    frame = spark.read.format("kafka-log").options(**sums).schema(schema)
    made["same, no values"] = (lambda: noop(frame.load(str(root / "orders-0"))), plain)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        rows = {one: write_log(root, given.mb, one) for one in COMPRESSIONS}
        prebuild(root / "orders-0", root / "prebuilt.arrow")
        spark = session("kafka-log", master=given.master, memory="2g")
        spark.dataSource.register(Prebuilt)
        todo = cases(spark, root, rows)
        best = dict.fromkeys(todo, float("inf"))
        for _ in range(given.rounds + 1):
            for name, (run, _count) in todo.items():
                best[name] = min(best[name], timed(run))
        ceiling = todo["prebuilt"][1] / best["prebuilt"]
        print(f"{'':20}{'rows':>12}{'CPU s':>8}{'M rows/CPU s':>14}{'of prebuilt':>13}")
        for name, (_, count) in todo.items():
            rate = count / best[name]
            print(f"{name:20}{count:12,}{best[name]:8.2f}{rate / 1e6:14.2f}{rate / ceiling:13.0%}")
        spark.stop()


if __name__ == "__main__":
    main()
