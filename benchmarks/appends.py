"""Measure an append after many others: ``python benchmarks/appends.py [COUNT...]``.

Neither Spark nor the earlier appends are run: the ledger and the tables' logs are written as that
many hourly appends leave them, with a compaction each day or with ``--never-compacted``. Then some
appends run completely except for Spark, each in a separate process. The output has their CPU
seconds, their peak memory including imports, the files and bytes that they wrote, and the live
files of all tables and of the ledger. ``--captures`` is the number of files of an hour.

``--spark`` instead runs that many whole analyses of one frame each, in one session. Tables are
compacted after each ten. The output has the driver's CPU seconds, its peak memory, and the written
bytes, without Java and workers.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.spark.analyze import analyze
from flexwire.spark.delta.delta_ledger import DeltaLedger
from flexwire.spark.delta.grown import AddedFile
from flexwire.spark.delta.ledger import IN, LedgerEntry, fingerprint, new_entry
from flexwire.spark.delta.logs import TableLog, added_files
from flexwire.spark.delta.output import DeltaTables
from flexwire.spark.delta.staging import grown_staging
from flexwire.spark.delta.upkeep import join, to_join
from flexwire.spark.publishing.manifest import settle
from flexwire.spark.session import session
from flexwire.storage.input_file import InputFile
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.message_schema import table_schema
from flexwire.tables.parquet import TableWriter
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE

TABLES = {
    "frames": FRAMES_TABLE,
    "connections": CONNECTIONS_TABLE,
    **{
        f"messages/{name}": table_schema(name)
        for name in ("ProduceRequest", "ProduceResponse", "FetchRequest", "FetchResponse")
    },
}
ROWS_OF_A_LEDGER_FILE = 4096
HEARTBEAT = bytes.fromhex("0000001b 000c0004 00000007 0001610000 02670000000002780000")
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
MEASURED = 3  # appends after each count; the output has their mean


def append(out: str, number: int, captures: int) -> None:
    """Add the files of hour ``number``."""
    hour = FIRST + timedelta(hours=number)
    given = sources(number, captures)
    with grown_staging(
        DeltaTables(OutputDirectory(out)), given, lambda _: f"{number:032}", append=True
    ) as to:
        for table, columns in TABLES.items():
            time_column = "first_time" if table == "connections" else "time"
            with tempfile.TemporaryDirectory() as scratch:
                local = Path(scratch, "part.parquet")
                with TableWriter(local, columns, to.task_output.constants) as writer:
                    writer.write(pa.RecordBatch.from_pylist([{time_column: hour}], columns))
                to.task_output.put(local, table, f"{number:016}-000000-0000.parquet", 1)
        settle(to.files, to.task_output.files)
        to.publish()


def measured(pipe: Any, out: str, number: int, captures: int) -> None:
    """Append in this process, and send the measurements."""
    start = time.process_time()
    append(out, number, captures)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pipe.send((time.process_time() - start, memory))


def seed(out: OutputDirectory, count: int, captures: int, *, is_compacted: bool) -> None:
    """Write the ledger and logs as ``count`` appends leave them."""
    first, size = 0, ROWS_OF_A_LEDGER_FILE
    while first < count:
        size = size if first + size <= count else max(1, size // 16)
        hours = range(first, min(count, first + size))
        DeltaLedger(out).change(lambda _, hours=hours: [entry(hour, captures) for hour in hours])
        first += len(hours)
    over = count // 24 * 24 if is_compacted else 0
    names = [f"day={day(hour)}/joined-{hour:06}.parquet" for hour in range(0, over, 24)]
    names += [
        f"analysis={run_of(hour)}/day={day(hour)}/{hour:06}.parquet" for hour in range(over, count)
    ]
    for table, columns in TABLES.items():
        files = [AddedFile(name, 5000, 24) for name in names]
        TableLog(out, table).add(files, columns, run_of(0))


def entry(hour: int, captures: int) -> LedgerEntry:
    """Return the ledger's entry for an hour."""
    files = {source.name: fingerprint(source) for source in sources(hour, captures)}
    added = [{"name": name, "version": hour, "files": 1, "rows": 1} for name in TABLES]
    return new_entry(run_of(hour), IN, f"{hour:032}", files, added)


def run_of(hour: int) -> str:
    """Return a name like that of a run."""
    return f"20260101T000000Z-{hour:08x}"


def day(hour: int) -> str:
    """Return the day of an hour."""
    return (FIRST + timedelta(hours=hour)).date().isoformat()


def sources(hour: int, captures: int) -> list[InputFile]:
    """Return the captures of an hour."""
    return [InputFile(f"/captures/{hour:06}-{at:06}.pcapng", 5, "1") for at in range(captures)]


def files_of(out: str) -> dict[Path, int]:
    """Return all files below a directory, and their bytes."""
    return {path: path.stat().st_size for path in Path(out).rglob("*") if path.is_file()}


def tell(out: str, count: int, captures: int) -> None:
    """Append some hours after ``count`` hours, and print a line."""
    context = get_context("spawn")
    before = files_of(out)
    results = []
    for number in range(count, count + MEASURED):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=measured, args=(theirs, out, number, captures))
        process.start()
        results.append(ours.recv())
        process.join()
    new = [size for path, size in files_of(out).items() if path not in before]
    place = OutputDirectory(out)
    logs = [TableLog(place, name).open() for name in TABLES]
    live = sum(len(added_files(log)) for log in logs if log is not None)
    ledger = len(DeltaLedger(place).snapshot().ledger_files)
    cpu = sum(result[0] for result in results) / MEASURED
    memory = max(result[1] for result in results)
    print(
        f"{count:>6} {cpu:8.2f} {memory:9.0f} {len(new) / MEASURED:8.1f} "
        f"{sum(new) / MEASURED / 1000:12.0f} {live:13,} {ledger:7}",
        flush=True,
    )


def analyses(count: int) -> None:
    """Run this many analyses, and print a line for each ten."""
    place = Path(tempfile.mkdtemp(prefix="flexwire-appends-"))
    spark = session("appends", master="local[2]")
    print("analyses   CPU s each   MB most   files each   kB written each")
    try:
        for ten in range(10, count + 1, 10):
            before, start = files_of(str(place / "out")), time.process_time()
            for number in range(ten - 10, ten):
                with PcapngWriter(place / f"{number:06}") as tap:
                    ends = tap.open_connection(("10.0.0.9", 50000), ("10.0.0.1", 9092))
                    ends.send("request", HEARTBEAT)
                    ends.close()
                given: dict[str, Any] = {"format": "delta", "append": True, "answers": "none"}
                analyze([place / f"{number:06}"], place / "out", spark=spark, ports=[9092], **given)
            cpu = (time.process_time() - start) / 10
            files = files_of(str(place / "out"))
            for group in [*to_join(OutputDirectory(str(place / "out")))]:
                join(OutputDirectory(str(place / "out")), group)
            new = [size for path, size in files.items() if path not in before]
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{ten:>8} {cpu:12.2f} {memory:9.0f} {len(new) / 10:12.1f} {sum(new) / 1e4:17.0f}",
                flush=True,
            )
    finally:
        spark.stop()
        shutil.rmtree(place)


def main() -> None:
    """Measure an append after each count, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[10, 100, 1000, 8760])
    parser.add_argument("--captures", type=int, default=1)
    parser.add_argument("--never-compacted", action="store_true")
    parser.add_argument("--spark", type=int, metavar="ANALYSES")
    options = parser.parse_args()
    if options.spark:
        analyses(options.spark)
        return
    print("append    CPU s   MB most   files+   kB written   live files  ledger")
    for count in options.counts:
        out = tempfile.mkdtemp(prefix="flexwire-appends-")
        try:
            is_compacted = not options.never_compacted
            seed(OutputDirectory(out), count, options.captures, is_compacted=is_compacted)
            tell(out, count, options.captures)
        finally:
            shutil.rmtree(out)


if __name__ == "__main__":
    main()
