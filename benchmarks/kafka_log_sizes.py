"""``kafka-log`` on logs of some sizes: processor time and memory of Java and of the workers.

``python benchmarks/kafka_log_sizes.py [--gb 1 4 16] [--directory DIRECTORY]``. A log has a
partition for each GB: a segment of 1 GB that is a copy of the first (and not a link, so that larger
logs do not fit into the page cache). A separate process reads each size, once to a noop sink with
all columns, and once to count by topic and key size. The largest log takes its whole size on the
disk, and is removed at the end.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from kafka_log import noop, write_log
from processes import run

from flexwire.spark.session import session

MEGABYTE = 1_000_000
WAYS = {"rows": {"includeHeaders": "true"}, "sums": {"countBy": "topic,key_size"}}


def read(root: Path, partitions: int, way: str) -> None:
    """Read some partitions in a separate session."""
    spark = session("kafka-log", master="local[2]", memory="1g")
    reader = spark.read.format("kafka-log").options(**WAYS[way])
    if partitions:
        noop(reader.option("partitions", f"0-{partitions - 1}").load(str(root)))
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--directory", help="where the log is written")
    parser.add_argument("--compression", default="none")
    parser.add_argument("--values", choices=["random", "text"], default="random")
    parser.add_argument("--read", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        root, partitions, way = given.read
        read(Path(root), int(partitions), way)
        return
    with tempfile.TemporaryDirectory(dir=given.directory) as place:
        each = write_log(Path(place), 1000, given.compression, given.values, 1)
        root = Path(place) / given.compression
        for number in range(1, max(given.gb)):
            shutil.copytree(root / "orders-0", root / f"orders-{number}")
        heads = ("GB", "rows", "CPU s", "Java", "workers", "M rows/CPU s", "Java MB", "worker MB")
        print("".join(f"{one:>14}" for one in ("", *heads)))
        for way in WAYS:
            for gb in (0, *given.gb):
                show(way, gb, gb * each, root)


def show(way: str, gb: int, rows: int, root: Path) -> None:
    used = run([sys.executable, __file__, "--read", str(root), str(gb), way])
    if used.code:
        raise SystemExit(used.output)
    java, workers = used.by_kind.get("java", 0.0), used.by_kind.get("workers", 0.0)
    told = (
        way,
        gb,
        f"{rows:,}",
        f"{used.cpu:.1f}",
        f"{java:.1f}",
        f"{workers:.1f}",
        f"{rows / used.cpu / 1e6:.2f}",
        used.rss.get("java", 0) // MEGABYTE,
        used.largest_worker // MEGABYTE,
    )
    print("".join(f"{one:>14}" for one in told), flush=True)


if __name__ == "__main__":
    main()
