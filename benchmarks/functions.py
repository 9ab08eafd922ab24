"""Compare Spark's column functions with the cost that they cannot avoid.

``python benchmarks/functions.py``, after ``pip install -e '.[spark]'``.

Each case goes to a sink that writes nothing. Figures are the CPU time of Java and the workers
together:

- ``scan``: only reading the binary column from Parquet;
- ``identity``: an `arrow_udf` that returns the binary column;
- ``prebuilt``: an `arrow_udf` that returns structs which were decoded before. It does everything
  that `from_kafka` does except for decoding, and so shows Spark's cost for such structs;
- ``from_kafka``;
- ``fields``: ``from_kafka`` with the option ``fields``, for one field of each message.

``kernel`` is only the decoding, in this process, in batches as Spark makes them. The result is the
cost of additional messages: the difference between all of them and a quarter, without the start of
a query. The ratios are ``from_kafka / (identity + kernel)`` and ``from_kafka / (prebuilt +
kernel)``: where the first exceeds the second, Spark spends the difference on structs. The best of
the rounds counts; cases take turns.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from columnar import CASES

from flexwire import load_kernels
from flexwire.columnar import decode_messages, message_type

TICK = os.sysconf("SC_CLK_TCK")
BATCH = 10_000
FIELDS = {
    "MetadataResponse": "topics.name",
    "ApiVersionsResponse": "throttle_time_ms",
    "RequestHeader": "correlation_id",
}


def cpu_below(root):
    """Return the CPU seconds of all processes below ``root``, and of their children that have
    ended.
    """
    found, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = entry.read_text()
        except OSError:
            continue
        parts = text[text.rindex(")") + 2 :].split()
        pid = int(entry.parent.name)
        parents[pid] = int(parts[1])
        found[pid] = sum(map(int, parts[11:15])) / TICK
    mine, grows = {root}, True
    while grows:
        new = {pid for pid, parent in parents.items() if parent in mine} - mine
        mine |= new
        grows = bool(new)
    return sum(found[pid] for pid in mine - {root})


def identity(data: pa.Array) -> pa.Array:
    return data


def prebuilt(kind, path):
    """Return structs that a worker reads once, one for each row."""
    kept = []

    def run(data: pa.Array) -> pa.Array:
        if not kept:
            kept.append(pq.read_table(path)["m"].combine_chunks().cast(kind))
        return kept[0].slice(0, len(data))

    return run


def measure(spark, case, rounds, directory):
    from pyspark.sql.pandas.functions import arrow_udf  # noqa: PLC0415 - as it is optional
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - as above

    from flexwire.spark.functions import from_kafka  # noqa: PLC0415 - as above

    name, version, message, count = case
    data = pa.array([message.encode(version)] * count)
    place, kind = str(directory / f"{name}-{count}"), message_type(name)
    spark.createDataFrame(pa.table({"value": data})).coalesce(1).write.parquet(place)
    held = str(directory / f"{name}-{count}.held")
    some = decode_messages(name, data.slice(0, BATCH), version)
    pq.write_table(pa.table({"m": some}), held)
    few = str(directory / f"{name}-{count}.few")
    less = data.slice(0, count // 4)
    spark.createDataFrame(pa.table({"value": less})).coalesce(1).write.parquet(few)
    ready = arrow_udf(prebuilt(kind, held), from_arrow_type(kind))
    fields = {"fields": FIELDS[name]}
    ways = {
        "scan": "value",
        "identity": arrow_udf(identity, "binary")("value"),
        "prebuilt": ready("value"),
        "from_kafka": from_kafka("value", name, version),
        "fields": from_kafka("value", name, version, fields),
    }
    sizes = {few: len(less), place: count}
    times = {way: {where: [] for where in sizes} for way in [*ways, "kernel"]}
    for _ in range(rounds + 1):
        for where, rows in sizes.items():
            for way, column in ways.items():
                query = spark.read.parquet(where).select(column)
                before = cpu_below(os.getpid())
                query.write.format("noop").mode("overwrite").save()
                times[way][where].append(cpu_below(os.getpid()) - before)
            began = time.thread_time()
            for at in range(0, rows, BATCH):
                decode_messages(name, data.slice(at, min(BATCH, rows - at)), version)
            times["kernel"][where].append(time.thread_time() - began)
    # In the first round, workers start and Java compiles.
    least = {way: {one: min(each[one][1:]) for one in sizes} for way, each in times.items()}
    best = {way: each[place] - each[few] for way, each in least.items()}
    size, more = len(data[0].as_py()), count - len(less)
    print(f"{name} v{version}, {more:,} of {size} bytes more: CPU seconds, best of {rounds}")
    for way, seconds in best.items():
        whole = f"{least[way][few]:.2f} to {least[way][place]:.2f}"
        rate = more / max(seconds, 1e-9)
        print(f"  {way:<11}{whole:>15}{seconds:8.2f}  {rate:14,.0f} rows per CPU second")
    for way in ("from_kafka", "fields"):
        for beside in ("identity", "prebuilt"):
            ratio = best[way] / (best[beside] + best["kernel"])
            print(f"  {way} / ({beside} + kernel) = {ratio:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of messages")
    parser.add_argument("--messages", default=",".join(FIELDS))
    arguments = parser.parse_args()
    load_kernels()
    from flexwire.spark.session import session  # noqa: PLC0415 - it imports PySpark

    spark = session("functions", master="local[1]", memory="2g")
    with tempfile.TemporaryDirectory() as directory:
        for name, version, message, count in CASES:
            if name not in arguments.messages.split(","):
                continue
            rows = int(count * arguments.scale * 4)
            measure(spark, (name, version, message, rows), arguments.rounds, Path(directory))
    spark.stop()


if __name__ == "__main__":
    main()
