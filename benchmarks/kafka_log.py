"""Compare ``kafka-log`` to a noop sink with prebuilt Arrow batches of the same schema.

``python benchmarks/kafka_log.py [--mb 250] [--partitions 5] [--rounds 3] [--values text]``. The
prebuilt batches are some of the same log. A data source that does nothing else returns them
repeatedly, in as many tasks as the log has: this is the limit of the transport. "from files" reads
all batches of a task from a file, because any source must read its bytes from somewhere. Seconds
are CPU time of Java and all Python workers. The lowest of all rounds counts, and cases take turns,
because others use the machine too. The result is the cost of an additional row: the difference
between all partitions and the first, without the start of a query. Partitions after the first are
links to it.

Records have keys, values of 200 bytes (random, or JSON that compresses) and one record header, in
batches of 100. "codec" is the cost of the codec's library alone for a million rows, in this
process, with one context and one buffer; the last column compares with prebuilt batches plus that
cost.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cramjam
import numpy as np
import pyarrow as pa
import zstandard
from processes import TICK
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from flexwire.columnar import encode_record_pieces
from flexwire.columnar.record_columns import RECORD_COLUMNS
from flexwire.logs import LogQuery, plan, read_piece
from flexwire.logs.records import KAFKA_COLUMNS, LogRows
from flexwire.spark.session import session
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CHUNK = 50_000
COMPRESSIONS = ("none", "lz4", "snappy", "zstd", "gzip")
HEADER = 61
# Summing costs so little for a row that it is measured with this many times more partitions.
SUMMED = 8
SCHEMA = pa.schema(KAFKA_COLUMNS.items())
DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)


def write_log(root: Path, mb: int, compression: str, values: str, partitions: int) -> int:
    """Write one segment and links to it; return the number of its records."""
    first = root / compression / "orders-0" / f"{0:020}.log"
    first.parent.mkdir(parents=True)
    made, random = 0, np.random.default_rng(1)
    with first.open("wb") as log:
        while log.tell() < mb * 1_000_000:
            rows = chunk(made, random, values)
            for piece in encode_record_pieces(rows, records_per_batch=100, compression=compression):
                log.write(piece)
            made += CHUNK
    for number in range(1, partitions):
        directory = root / compression / f"orders-{number}"
        directory.mkdir()
        (directory / first.name).hardlink_to(first)
    return made


def chunk(first: int, random: np.random.Generator, values: str) -> pa.Table:
    offsets = range(first, first + CHUNK)
    if values == "text":
        made = pa.array([text(one, random) for one in offsets], pa.binary())
    else:
        fixed = [None, pa.py_buffer(random.bytes(200 * CHUNK))]
        made = pa.FixedSizeBinaryArray.from_buffers(pa.binary(200), CHUNK, fixed).cast(pa.binary())
    header = [{"key": b"trace", "value": b"0123456789abcdef"}]
    return pa.table(
        {
            "key": pa.array([b"key-%d" % one for one in offsets], pa.binary()),
            "value": made,
            "headers": pa.array([header] * CHUNK, RECORD_COLUMNS["headers"]),
            "offset": pa.array(offsets),
            "timestamp": pa.array([1_700_000_000_000 + one for one in offsets]),
        }
    )


def text(number: int, random: np.random.Generator) -> bytes:
    """Return JSON of 200 bytes, a third of which is random."""
    told = b'{"order":%d,"customer":"%s","state":"paid","currency":"EUR","items":[{"sku":"%s",' % (
        number,
        random.bytes(8).hex().encode(),
        random.bytes(12).hex().encode(),
    )
    return (told + b'"quantity":1}],"note":"' + b"leave at the door, " * 9)[:198] + b'"}'


def codec_seconds(log: Path, compression: str, rows: int) -> float:
    """Return the library's own cost to inflate the batches of a segment, for each row."""
    data, at, bodies = log.read_bytes(), 0, []
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12])
        bodies.append(data[at + HEADER : end])
        at = end
    room, run = bytearray(1 << 20), codec(compression)
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        for body in bodies:
            run(body, room)
        best = min(best, time.thread_time() - began)
    return best / rows


def codec(compression: str) -> Callable[[bytes, bytearray], object]:
    if compression == "zstd":
        context = zstandard.ZstdDecompressor()
        return lambda body, room: context.decompress(body, max_output_size=len(room))
    if compression == "gzip":
        return lambda body, _: zlib.decompress(body, wbits=31)
    if compression == "lz4":
        return cramjam.lz4.decompress_into
    if compression == "snappy":
        # The only block begins behind the framing's header and the block's size.
        return lambda body, room: cramjam.snappy.decompress_raw_into(body[20:], room)
    return lambda _body, _room: None


class Prebuilt(DataSource):
    """The batches of a file, repeated in each task until it has enough rows."""

    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        given = self.options
        return PrebuiltReader(given["path"], int(given["rows"]), int(given["tasks"]))


class PrebuiltReader(DataSourceReader):
    def __init__(self, path: str, rows: int, tasks: int) -> None:
        self._path, self._rows, self._tasks = path, rows, tasks

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self._rows)] * self._tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        begin_task()
        with pa.OSFile(self._path) as file:
            if not partition.value:
                yield from pa.ipc.open_stream(file)
                return
            batches = list(pa.ipc.open_stream(file.read_buffer()))
        left = partition.value
        while left:
            for batch in batches:
                taken = batch.slice(0, left) if left < batch.num_rows else batch
                yield taken
                left -= taken.num_rows
                if not left:
                    return


class Built(NamedTuple):
    """Batches of ``kafka-log``: some of a task's, and all of them."""

    some: Path
    all: Path
    rows: int
    tasks: int


def prebuild(log: Path, place: Path) -> Built:
    """Write batches of a log's first task; ``tasks`` is the number of tasks of a partition."""
    rows, made = LogRows(SCHEMA), Built(place / "some.arrow", place / "all.arrow", 0, 0)
    pieces, *others = [task for [task] in plan([log], LogQuery(partitions={0}))]
    batches = [rows.records(pieces, one) for one in read_piece(pieces, rows.read)]
    # The first batch is small.
    for path, chosen in ((made.some, batches[1:4]), (made.all, batches)):
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as out:
            for one in chosen:
                out.write_batch(one)
    return made._replace(rows=sum(map(len, batches)), tasks=1 + len(others))


# The CPU time of each process when it was last seen; processes that ended were idle before.
SEEN: dict[int, float] = {}


def cpu() -> float:
    """Return the CPU seconds of this process and all processes below it, including ended ones."""
    parents, seconds = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(entry.parent.name)
        parents[pid], seconds[pid] = int(parts[1]), sum(map(int, parts[11:13])) / TICK
    for pid, used in seconds.items():
        above = pid
        while above not in {0, os.getpid()}:
            above = parents.get(above, 0)
        if above:
            SEEN[pid] = used
    return sum(SEEN.values())


def timed(case: Callable[[], object]) -> float:
    before = cpu()
    case()
    time.sleep(0.3)
    return cpu() - before


def noop(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


class Case(NamedTuple):
    """The reads: first the rows of one partition, then those of all."""

    name: str
    rows: int
    times: int
    small: Callable[[], None]
    large: Callable[[], None]
    codec: float = 0.0


def cases(
    spark: SparkSession, root: Path, rows: dict[str, int], built: Built, given: Any
) -> Iterator[Case]:
    times = given.partitions
    each = rows["none"] // built.tasks

    def prebuilt(path: Path, count: int, partitions: int) -> Callable[[], None]:
        frame = spark.read.format("prebuilt").option("rows", str(count))
        frame = frame.option("tasks", str(partitions * built.tasks))
        return lambda: noop(frame.load(str(path)))

    def log(compression: str, partitions: int, **options: str) -> Callable[[], None]:
        reader = spark.read.format("kafka-log").option("partitions", f"0-{partitions - 1}")
        return lambda: noop(reader.options(**options).load(str(root / compression)))

    few = (prebuilt(built.some, each, one) for one in (1, times))
    yield Case("prebuilt", each * built.tasks, times, *few)
    files = (prebuilt(built.all, 0, one) for one in (1, times))
    yield Case("from files", built.rows * built.tasks, times, *files)
    for name, count in rows.items():
        inflating = codec_seconds(root / name / "orders-0" / f"{0:020}.log", name, count)
        cases = (log(name, one, includeHeaders="true") for one in (1, times))
        yield Case(name, count, times, *cases, inflating)
    for name in given.summed.split(","):
        many = SUMMED * times
        cases = (log(name, one, countBy="topic,key_size") for one in (1, many))
        yield Case(f"sums, {name}", rows[name], many, *cases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=250)
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--values", choices=["random", "text"], default="random")
    parser.add_argument("--compressions", default=",".join(COMPRESSIONS))
    parser.add_argument("--summed", default="none,lz4", help="compressions to sum by key size")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        rows = {
            one: write_log(root, given.mb, one, given.values, SUMMED * given.partitions)
            for one in given.compressions.split(",")
        }
        built = prebuild(root / "none", root)
        spark = session("kafka-log", master=given.master, memory="2g")
        spark.dataSource.register(Prebuilt)
        todo = [*cases(spark, root, rows, built, given)]
        seconds: dict[str, list[tuple[float, float]]] = {one.name: [] for one in todo}
        for _ in range(given.rounds + 1):
            for one in todo:
                seconds[one.name].append((timed(one.small), timed(one.large)))
        show(todo, seconds)
        spark.stop()


def show(todo: list[Case], seconds: dict[str, list[tuple[float, float]]]) -> None:
    """Print the cost of each row beyond the first partition, from the lowest figure of each."""
    each, taken = {}, {}
    for one in todo:
        # In the first round, workers start and Java compiles.
        small, large = (min(several) for several in zip(*seconds[one.name][1:], strict=True))
        taken[one.name] = f"{small:.2f} to {large:.2f}"
        each[one.name] = (large - small) / ((one.times - 1) * one.rows)
    ceiling = each["prebuilt"]
    print(
        f"{'':20}{'rows':>12}{'M rows/CPU s':>14}{'of prebuilt':>13}{'codec':>8}{'beside it':>11}"
    )
    for one in todo:
        row = max(each[one.name], 1e-9)
        print(
            f"{one.name:>14}{one.rows * one.times:14,}{taken[one.name]:>14}{1e-6 / row:14.2f}"
            f"{ceiling / row:14.0%}{one.codec * 1e6:14.2f}{(ceiling + one.codec) / row:14.0%}"
        )


if __name__ == "__main__":
    main()
