"""Measure what sums by day save: ``python benchmarks/days.py CAPTURES OUT NAME...``.

The capture is analyzed once, and each of ``--days`` days gets the same rows, some days later. Each
day is a separate analysis whose connections may continue, so answers read the same views as after a
month of hourly appends and compactions. Without names, no answer is computed.

Then `flexwire answers OUT NAME...` runs from all rows, from rows while sums are kept, from sums,
and after one more day. The output has the CPU seconds of Python, Java and workers together, without
Spark's start.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from answers import NOTHING, least
from processes import run

from flexwire.spark.analyze import analyze
from flexwire.spark.delta.delta_ledger import DeltaLedger
from flexwire.spark.delta.grown import AddedFile
from flexwire.spark.delta.layout import DAY, has_days
from flexwire.spark.delta.ledger import IN, new_entry
from flexwire.spark.delta.logs import TableLog
from flexwire.spark.delta.output import DeltaTables
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.output import output
from flexwire.tables.parquet import TableWriter

DAY_US = 86_400_000_000
FIRST = date(2026, 10, 1)


def moved(table: pa.Table, to: date) -> pa.Table:
    """Return the rows of one day as rows of another day."""
    for place, field in enumerate(table.schema):
        if field.name in {"time", "first_time", "last_time"}:
            micros = table.column(place).cast(pa.int64())
            in_day = pc.subtract(micros, pc.multiply(pc.divide(micros, DAY_US), DAY_US))
            start = int(datetime(to.year, to.month, to.day, tzinfo=UTC).timestamp()) * 1_000_000
            table = table.set_column(place, field, pc.add(in_day, start).cast(field.type))
    return table


def add_day(base: Any, out: OutputDirectory, number: int) -> None:
    """Add the base rows as those of a day, and add the day to the ledger."""
    day, tables = FIRST + timedelta(days=number), DeltaTables(out)
    analysis = f"{day:%Y%m%d}T120000Z-{number:08x}"
    added = []
    for name in base.names:
        rows = moved(base.table(name), day)
        if not len(rows):
            continue
        log = TableLog(out, name)
        file = f"{DAY}={day}/0.parquet" if has_days(name) else "0.parquet"
        file = f"{ANALYSIS}={analysis}/{file}"
        with tempfile.TemporaryDirectory() as scratch:
            local = Path(scratch, "0.parquet")
            with TableWriter(local, rows.schema, {ANALYSIS: analysis}, {}) as writer:
                for batch in rows.to_batches(max_chunksize=10_000):
                    writer.write(batch)
            columns = pq.read_schema(local)
            size = local.stat().st_size
            log.directory.put(local, file)
        files = tables.with_statistics(name, [AddedFile(file, size, len(rows))])
        version = log.add(files, columns, analysis)
        added.append({"name": name, "version": version, "files": 1, "rows": len(rows)})
    entry = new_entry(analysis, IN, f"{number:032}", {f"/captures/{number:06}": number}, added)
    entry = replace(entry, state_before=analysis, state_after=analysis)
    DeltaLedger(out).change(lambda _: [entry])
    print(day, sum(table["rows"] for table in added), "rows", flush=True)


def asked(out: Path, names: list[str], *options: str) -> float:
    """Return the CPU seconds of one command that computes all these answers."""
    command = [sys.executable, "-m", "flexwire", "answers", str(out), *names, "--format", "json"]
    usage = run([*command, *options], output=subprocess.DEVNULL)
    if usage.code:
        raise SystemExit(usage.code)
    return usage.cpu


def main() -> None:
    """Make the tables, and compute the answers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("captures", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--days", type=int, default=30)
    given = parser.parse_args()
    base = given.captures.with_name(f"{given.captures.name}-base")
    if not base.exists():
        analyze([given.captures], base, answers=[])
    there = len(DeltaLedger(OutputDirectory(str(given.out))).entries())
    while there < given.days:
        add_day(output(base), OutputDirectory(str(given.out)), there)
        there += 1
    if not given.names:
        return
    floor = least(str(given.out), [NOTHING], "2g", 1).cpu
    print(f"Spark alone: {floor:.1f} CPU s; without it:", flush=True)
    shutil.rmtree(given.out / "sums", ignore_errors=True)
    for what, *options in (["all rows", "--no-sums"], ["keeping sums"], ["from sums"]):
        print(f"{asked(given.out, given.names, *options) - floor:8.1f} {what}", flush=True)
    add_day(output(base), OutputDirectory(str(given.out)), there)
    print(f"{asked(given.out, given.names) - floor:8.1f} after one more day", flush=True)


if __name__ == "__main__":
    main()
