"""``flexwire analyze`` from captures to tables, beside tshark and a bare read of the same files.

``python benchmarks/pipeline.py [CASE...]``, or ``make bench-pipeline``. A case names a kind of
capture and its properties, such as ``heavy,mb=1000,connections=1,segment=32768,file_mb=64``, and
for the analysis ``cores=1`` and ``memory=4g``. `benchmarks/captures.py` makes the captures, which
are made once and kept. ``--suite`` names sets of cases.

Processor seconds are those of the driver, Java and all Python workers. "Marginal" is between two
cases that differ in nothing but their size. tshark runs where it is installed: ``-T fields`` with
four fields and ``-T json``, the files given to it as one stream. Processor time means much more
than time on the wall on a machine that others use.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from captures import Asked, Made, make
from processes import Usage, run

from flexwire import __version__

ROOT = Path(__file__).parents[1]
FIELDS = ("frame.number", "kafka.api_key", "kafka.correlation_id", "kafka.len")
SUITES = {
    "quick": ["heavy,mb=85", "heavy,mb=269", "small,mb=67"],
    "goal": [
        "heavy,mb=1000",
        "heavy,mb=8000",
        "heavy,mb=1000,cores=1",
        "small,mb=1000",
        "small,mb=4000",
        "small,mb=10",
    ],
    "shapes": [
        *("heavy,mb=1000,connections=1", "heavy,mb=4000,connections=1"),
        *("heavy,mb=1000,connections=1000", "heavy,mb=4000,connections=1000"),
        *("heavy,mb=4000,file_mb=5000", "heavy,mb=4000,file_mb=0.4"),
        "heavy,mb=1000,segment=32768",
    ],
}


@dataclass(frozen=True)
class Case:
    """A capture, and how it is analyzed."""

    asked: Asked = field(default_factory=Asked)
    cores: int = 0
    memory: str = "2g"

    def text(self) -> str:
        told = [f"{self.asked.kind} {self.asked.mb:g} MB"]
        for one in fields(Asked):
            value = getattr(self.asked, one.name)
            if value != one.default and one.name not in {"kind", "mb"}:
                told.append(f"{one.name}={value:g}")
        told += [f"cores={self.cores}"] if self.cores else []
        return " ".join(told + ([f"memory={self.memory}"] if self.memory != Case.memory else []))


def parse_case(text: str) -> Case:
    kind, *settings = text.split(",")
    if kind not in {"heavy", "small"}:
        raise argparse.ArgumentTypeError(f'a case begins with heavy or small, got "{kind}"')
    types = {one.name: type(one.default) for one in fields(Asked) if one.name != "kind"}
    asked: dict[str, Any] = {"kind": kind}
    how: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in {*types, "cores", "memory"}:
            known = ", ".join([*types, "cores", "memory"])
            raise argparse.ArgumentTypeError(f'a case has {known}, got "{name}"')
        if name in types:
            asked[name] = float(value) if name.endswith("mb") else int(value)
        else:
            how[name] = int(value) if name == "cores" else value
    return Case(Asked(**asked), **how)


@dataclass
class Result:
    """The cost of a case: for flexwire and, by name, for everything that is compared with it."""

    case: Case
    made: Made
    flexwire: Usage
    beside: dict[str, Usage]
    rows: int
    tables: int

    @property
    def mb(self) -> float:
        return self.made.bytes / 1e6

    def rate(self, name: str = "flexwire") -> float | None:
        """Return the MB of capture per CPU second."""
        used = self.flexwire if name == "flexwire" else self.beside.get(name)
        return self.mb / used.cpu if used is not None and used.code == 0 else None


def capture(asked: Asked, kept: Path) -> tuple[Path, Made]:
    """Return a capture; make it unless it exists."""
    folder = kept / "-".join(
        f"{one:g}" if isinstance(one, float) else str(one) for one in astuple(asked)
    )
    told = folder.with_name(f"{folder.name}.json")
    if not told.exists():
        shutil.rmtree(folder, ignore_errors=True)
        made = make(folder, asked)
        told.write_text(json.dumps(asdict(made)))
    return folder, Made(**json.loads(told.read_text()))


def analyzed(case: Case, folder: Path, made: Made, out: Path) -> tuple[Usage, int, int]:
    """Return the cost of an analysis, its rows of records, and the bytes of its tables."""
    command = [sys.executable, "-m", "flexwire", "analyze", str(folder), "--out", str(out)]
    used = run([*command, "--memory", case.memory], cores=case.cores)
    if used.code:
        raise SystemExit(f"{case.text()}: flexwire analyze ended with {used.code}:\n{used.output}")
    totals = json.loads((out / "facts.json").read_text())["totals"]
    found = (totals["frames"], totals["decode_failures"], totals["unpaired_responses"])
    if found != (made.frames, 0, 0):
        raise SystemExit(
            f"{case.text()}: expected {made.frames} frames that all decode and pair, got {found[0]}"
            f" of which {found[1]} do not decode and {found[2]} have no request"
        )
    files = [one for one in (out / "tables").rglob("*.parquet") if not one.name.startswith(".")]
    parts = [one for one in files if one.is_relative_to(out / "tables" / "records")]
    rows = sum(pq.ParquetFile(one).metadata.num_rows for one in parts)
    if rows != made.records:
        raise SystemExit(f"{case.text()}: expected {made.records} records, got {rows}")
    return used, rows, sum(one.stat().st_size for one in files)


def beside(folder: Path, *, as_json: bool) -> dict[str, Usage]:
    """Return the cost of tshark and of a bare read of the files."""
    read = f"find '{folder}' -name '*.pcapng' -print0 | sort -z | xargs -0 cat"
    commands = {"read": read}
    if shutil.which("tshark"):
        wanted = " ".join(f"-e {one}" for one in FIELDS)
        commands["fields"] = f"{read} | tshark -r - -T fields {wanted}"
        if as_json:
            commands["json"] = f"{read} | tshark -r - -T json"
    found = {}
    with Path(os.devnull).open("w") as nowhere:
        for name, command in commands.items():
            found[name] = run(["bash", "-o", "pipefail", "-c", command], output=nowhere.fileno())
            if found[name].code:
                print(f"  {name} ended with {found[name].code}: {found[name].output}")
    return found


def measured(case: Case, kept: Path, *, json_mb: float) -> Result:
    folder, made = capture(case.asked, kept)
    with tempfile.TemporaryDirectory(dir=kept) as place:
        used, rows, tables = analyzed(case, folder, made, Path(place) / "out")
    others = beside(folder, as_json=made.bytes <= json_mb * 1e6)
    return Result(case, made, used, others, rows, tables)


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f}"


def show(results: list[Result]) -> None:
    """Print the cost of analyses, the comparisons, and the cost of more of the same traffic."""
    print(
        f"\n{'flexwire analyze':44}{'MB':>7}{'CPU s':>8}{'driver':>8}{'Java':>7}{'workers':>8}",
        end="",
    )
    print(f"{'wall':>7}{'MB/CPU s':>10}{'krecords/CPU s':>15}")
    for one in results:
        used, kinds = one.flexwire, one.flexwire.by_kind
        shares = [kinds.get(kind, 0.0) for kind in ("driver", "java", "workers")]
        print(f"{one.case.text():44}{one.mb:7,.0f}{used.cpu:8.1f}", end="")
        print(f"{shares[0]:8.1f}{shares[1]:7.1f}{shares[2]:8.1f}{used.wall:7.1f}", end="")
        print(f"{one.rate():10.2f}{one.rows / used.cpu / 1000:15.1f}")
    print(
        f"\n{'memory and disk, MB':44}{'Java':>7}{'workers':>8}{'largest':>8}{'written':>9}", end=""
    )
    print(f"{'tables':>8}{'written/tables':>15}")
    for one in results:
        used = one.flexwire
        sizes = [used.rss.get("java", 0), used.rss.get("workers", 0), used.largest_worker]
        print(f"{one.case.text():44}{megabytes(sizes[0]):>7}{megabytes(sizes[1]):>8}", end="")
        print(f"{megabytes(sizes[2]):>8}{megabytes(used.written):>9}", end="")
        print(f"{megabytes(one.tables):>8}{used.written / one.tables:15.2f}")
    names = ["fields", "json", "read"]
    print(f"\n{'MB per CPU second':44}{'flexwire':>9}", end="")
    print(*(f"{name:>12}{'x':>8}" for name in ("-T fields", "-T json", "read")), sep="")
    for one in results:
        print(f"{one.case.text():44}{one.rate():9.2f}", end="")
        for name in names:
            rate = one.rate(name)
            print(f"{rate:12.1f}{one.rate() / rate:8.3f}" if rate else f"{'-':>12}{'-':>8}", end="")
        print()
    if not shutil.which("tshark"):
        print("tshark is missing: install it (Debian: apt-get install tshark) for its columns")
    show_marginal(results)


def marginal(results: list[Result]) -> list[tuple[str, float, float]]:
    """Print MB and records per additional CPU second, between cases that differ only in size."""
    found = []
    for small in results:
        same = replace(small.case.asked, mb=0), small.case.cores, small.case.memory
        larger = [
            one
            for one in results
            if (replace(one.case.asked, mb=0), one.case.cores, one.case.memory) == same
            and one.made.bytes > small.made.bytes
        ]
        if larger:
            large = min(larger, key=lambda one: one.made.bytes)
            seconds = large.flexwire.cpu - small.flexwire.cpu
            name = f"{small.case.text()} to {large.case.asked.mb:g} MB"
            found.append(
                (name, (large.mb - small.mb) / seconds, (large.rows - small.rows) / seconds)
            )
    return found


def show_marginal(results: list[Result]) -> None:
    for name, rate, records in marginal(results):
        print(f"marginal, {name}: {rate:.2f} MB and {records / 1000:.1f} krecords per CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", type=parse_case, help="as heavy,mb=1000,connections=1")
    parser.add_argument("--suite", choices=SUITES, default="quick", help="unless cases are given")
    parser.add_argument("--captures", type=Path, default=ROOT / "out" / "bench", help="kept here")
    parser.add_argument("--json-mb", type=float, default=300, help="-T json up to this size")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    asked = parser.parse_args()
    cases = asked.cases or [parse_case(one) for one in SUITES[asked.suite]]
    print(
        f"flexwire {__version__}, Python {platform.python_version()}, {os.cpu_count()} processors, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    # A run that compiles kernels would measure the compiler.
    subprocess.run([sys.executable, "-m", "flexwire", "warmup"], check=True, capture_output=True)
    asked.captures.mkdir(parents=True, exist_ok=True)
    results = []
    for case in cases:
        print(f"{case.text()} …", flush=True)
        results.append(measured(case, asked.captures, json_mb=asked.json_mb))
        took = results[-1].flexwire
        print(f"  {took.cpu:.1f} CPU s, {took.wall:.1f} s on the wall", flush=True)
        if asked.json:
            told = {"results": [asdict(one) for one in results], "marginal": marginal(results)}
            asked.json.write_text(json.dumps(told, indent=1) + "\n")
    show(results)


if __name__ == "__main__":
    main()
