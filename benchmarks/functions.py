"""The column functions of Spark beside what they cannot be faster than.

``python benchmarks/functions.py``, after ``pip install -e '.[spark]'``.

For each case, to a sink that writes nothing, the processor time of Java and the workers together:

- ``scan``: the binary column alone, from Parquet;
- ``identity``: an `arrow_udf` that gives the binary column back;
- ``prebuilt``: an `arrow_udf` that gives structs which were decoded before, so that all but the
  decoding is as in `from_kafka`: what Spark takes to carry such structs;
- ``from_kafka``;
- ``fields``: the same with the option ``fields``, for one field of each message.

``kernel`` is the decoding alone, in this process, in batches as Spark makes them. The ratios are
``from_kafka / (identity + kernel)`` and ``from_kafka / (prebuilt + kernel)``. Best of the rounds,
which take turns.
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
    """Processor seconds of all processes below ``root``, and of their children that have ended."""
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
    """Give structs that a worker reads once, as many as there are rows."""
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
    rows = spark.read.parquet(place)
    ready = arrow_udf(prebuilt(kind, held), from_arrow_type(kind))
    ways = {
        "scan": rows,
        "identity": rows.select(arrow_udf(identity, "binary")("value").alias("m")),
        "prebuilt": rows.select(ready("value").alias("m")),
        "from_kafka": rows.select(from_kafka("value", name, version).alias("m")),
        "fields": rows.select(
            from_kafka("value", name, version, {"fields": FIELDS[name]}).alias("m")
        ),
    }
    times = {way: [] for way in ways} | {"kernel": []}
    batches = [data.slice(at, BATCH) for at in range(0, count, BATCH)]
    for _ in range(rounds + 1):
        for way, query in ways.items():
            before = cpu_below(os.getpid())
            query.write.format("noop").mode("overwrite").save()
            times[way].append(cpu_below(os.getpid()) - before)
        began = time.thread_time()
        for batch in batches:
            decode_messages(name, batch, version)
        times["kernel"].append(time.thread_time() - began)
    # The first round starts workers, and has Java compile.
    best = {way: min(each[1:]) for way, each in times.items()}
    size = len(data[0].as_py())
    print(f"{name} v{version}, {count:,} of {size} bytes: CPU seconds, best of {rounds}")
    for way, seconds in best.items():
        print(f"  {way:<11}{seconds:8.2f}  {count / max(seconds, 1e-9):14,.0f} rows per CPU second")
    for way in ("from_kafka", "fields"):
        for beside in ("identity", "prebuilt"):
            ratio = best[way] / (best[beside] + best["kernel"])
            print(f"  {way} / ({beside} + kernel) = {ratio:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of messages")
    arguments = parser.parse_args()
    load_kernels()
    from flexwire.spark.session import session  # noqa: PLC0415 - it imports PySpark

    spark = session("functions", master="local[1]", memory="2g")
    with tempfile.TemporaryDirectory() as directory:
        for name, version, message, count in CASES:
            rows = int(count * arguments.scale * 4)
            measure(spark, (name, version, message, rows), arguments.rounds, Path(directory))
    spark.stop()


if __name__ == "__main__":
    main()
