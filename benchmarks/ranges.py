"""Measure a range of a capture up to its tables, in one process without Spark, stage by stage.

``python benchmarks/ranges.py [CASE...]`` takes cases like `benchmarks/pipeline.py`; a capture is
made once and kept. Seconds are CPU time of this process, which has one thread. For each stage the
lowest of all rounds counts, because others use the machine too. "Tables" are MB of Parquet. "Read"
and "copied" are the same files read by `readinto` and copied by `numpy.copyto`, in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from captures import make
from pipeline import ROOT, Case, parse_case

from flexwire.capture.pairing.pairing import Pairing
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.segments import SegmentReader
from flexwire.measures.analysis import AnalysisSums
from flexwire.storage.file_search import list_captures
from flexwire.survey import ranges
from flexwire.survey.survey import AnalysisRequest, Surveyor
from flexwire.tables.parquet import TableWriter

CASES = ("heavy,mb=250", "heavy,mb=250,segment=32768", "small,mb=100")
# The functions that decode a range; the parts of a generator are timed one by one.
STAGES = (
    (SegmentReader, "__iter__", "segments"),
    (Flows, "push", "frames"),
    (Pairing, "read_headers", "headers"),
    (ranges, "paired", "pairs"),
    (ranges, "message_rows", "bodies"),
    (ranges, "record_runs", "records"),
    (ranges, "without_record_bytes", "bodies"),
    (ranges, "frame_rows", "frame rows"),
)


class Clock:
    """CPU seconds by stage; a stage within another one counts only by itself."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._turn()
        self._open.append(name)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def _turn(self) -> None:
        now = time.process_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            with self.stage(name):
                result = call(*given, **named)
            return self._parts(name, result) if isinstance(result, Iterator) else result

        return timed

    def _parts(self, name: str, parts: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self.stage(name):
                part = next(parts, None)
            if part is None:
                return
            yield part


@contextmanager
def stages(clock: Clock) -> Iterator[None]:
    """Time the stages of decoding."""
    before = [getattr(where, name) for where, name, _ in STAGES]
    for (where, name, stage), call in zip(STAGES, before, strict=True):
        setattr(where, name, clock.timed(stage, call))
    try:
        yield
    finally:
        for (where, name, _), call in zip(STAGES, before, strict=True):
            setattr(where, name, call)


def bare(files: list[Path], clock: Clock) -> None:
    room = np.zeros(max(one.stat().st_size for one in files), np.uint8)
    copy = np.zeros_like(room)
    for one in files:
        with clock.stage("(read)"), one.open("rb", buffering=0) as file:
            read = file.readinto(room.data)
        with clock.stage("(copied)"):
            np.copyto(copy[:read], room[:read])


def analyzed(asked: AnalysisRequest, out: Path, clock: Clock) -> tuple[int, int]:
    """Write all tables; return their size, and the number of records."""
    kept: dict[str, bytes] = {}
    with clock.stage("survey"):
        survey = Surveyor(asked, kept.__setitem__).run()
    sums = AnalysisSums(survey.span_us)
    writers: dict[str, TableWriter] = {}
    with stages(clock):
        for number in range(survey.ranges):
            with clock.stage("rest"):
                for table, rows in ranges.decode_range_rows(asked, number, kept.__getitem__):
                    with clock.stage(f"parquet {_short(table)}"):
                        if table not in writers:
                            path = out / f"{table.replace('/', '-')}.parquet"
                            writers[table] = TableWriter(path, rows.schema)
                        writers[table].write(rows)
                    with clock.stage(f"sums {_short(table)}"):
                        sums.add(table, rows)
    for table, writer in writers.items():
        with clock.stage(f"parquet {_short(table)}"):
            writer.close()
    records = writers["records"].rows if "records" in writers else 0
    return sum(one.size for one in writers.values()), records


def _short(table: str) -> str:
    return table.split("/", maxsplit=1)[0]


def measured(case: Case, captures: Path, rounds: int) -> dict[str, Any]:
    folder = captures / case.text().replace(" ", "-").replace("=", "")
    if not folder.exists():
        make(folder, case.asked)
    files = sorted(folder.iterdir())
    asked = AnalysisRequest(tuple(list_captures(files)), range_bytes=1 << 40)
    best: dict[str, float] = {}
    size = records = 0
    for _ in range(rounds):
        clock = Clock()
        bare(files, clock)
        with tempfile.TemporaryDirectory() as out:
            size, records = analyzed(asked, Path(out), clock)
        best = {name: min(best.get(name, took), took) for name, took in clock.seconds.items()}
    mb = sum(one.stat().st_size for one in files) / 1e6
    return {
        "case": case.text(),
        "mb": mb,
        "tables": size / 1e6,
        "records": records,
        "seconds": best,
    }


def show(result: dict[str, Any]) -> None:
    mb, seconds = result["mb"], result["seconds"]
    total = sum(took for name, took in seconds.items() if not name.startswith("("))
    print(
        f"\n{result['case']}: {mb:.0f} MB, {result['records']} records, {result['tables']:.1f} MB"
    )
    print(f"{'stage':22}{'CPU s':>8}{'ms a MB':>10}{'MB a CPU s':>12}")
    for name, took in [
        *seconds.items(),
        ("all", total),
        ("after the survey", total - seconds["survey"]),
    ]:
        print(f"{name:22}{took:8.2f}{1000 * took / mb:10.2f}{mb / took:12.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", type=parse_case, default=[*map(parse_case, CASES)])
    parser.add_argument("--captures", type=Path, default=ROOT / "out" / "bench", help="kept here")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    asked = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    results = []
    for case in asked.cases:
        results.append(measured(case, asked.captures, asked.rounds))
        show(results[-1])
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
