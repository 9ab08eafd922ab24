"""Captures of three hosts at once beside the same traffic as one capture, in one process.

``python benchmarks/hosts.py [CASE...]``; a case is as for `benchmarks/pipeline.py`. The packets of
its capture are dealt out to three hosts, each with a clock and files of its own: two thirds of the
connections are between hosts and stand in two captures, as those between brokers do, the others in
one. Seconds are those of the processor, of survey and tables together, the least of all rounds;
"tables" are the same from both, but for the bytes that came again.
"""

from __future__ import annotations

import argparse
import struct
import tempfile
from pathlib import Path

import pyarrow as pa
from captures import file_head, make
from pipeline import ROOT, Case, parse_case
from ranges import Clock, analyzed

from flexwire.storage.file_search import list_captures
from flexwire.survey.survey import AnalysisRequest

CASES = ("heavy,mb=250", "heavy,mb=250,segment=32768", "small,mb=100")
# So many microseconds each host's clock is ahead.
CLOCKS_US = (0, 400, 50_000)
_BLOCK, _PORTS_AT = struct.Struct("<IIIIIII"), 28 + 20
_ENHANCED = 6


def hosts_of(packet: memoryview) -> list[int]:
    """The hosts that capture a packet, by its ports."""
    key = sum(struct.unpack_from(">HH", packet, _PORTS_AT))
    first = key % 3
    return [first] if key // 3 % 3 == 0 else [first, (first + 1) % 3]


def deal_out(files: list[Path], out: Path, file_bytes: int) -> None:
    """Write what three hosts would have captured of this traffic."""
    out.mkdir(parents=True)
    counts, held = [0, 0, 0], [bytearray(file_head()) for _ in CLOCKS_US]

    def write(host: int) -> None:
        counts[host] += 1
        (out / f"host{host}-{counts[host]:05}.pcapng").write_bytes(held[host])
        held[host] = bytearray(file_head())

    for file in files:
        data, at = memoryview(file.read_bytes()), 0
        while at < len(data):
            kind, size, interface, high, low, kept, length = _BLOCK.unpack_from(data, at)
            if kind == _ENHANCED:
                block = data[at : at + size]
                for host in hosts_of(block):
                    time_us = (high << 32 | low) + CLOCKS_US[host]
                    times = (time_us >> 32, time_us & 0xFFFF_FFFF)
                    held[host] += _BLOCK.pack(kind, size, interface, *times, kept, length)
                    held[host] += block[_BLOCK.size :]
                    if len(held[host]) >= file_bytes:
                        write(host)
            at += size
    for host in range(len(CLOCKS_US)):
        write(host)


def seconds_of(files: list[Path], rounds: int) -> tuple[dict[str, float], float, int]:
    """Seconds by stage, the MB of the tables, and how many records they have."""
    asked = AnalysisRequest(tuple(list_captures(files)), range_bytes=1 << 40)
    best: dict[str, float] = {}
    size = records = 0
    for _ in range(rounds):
        clock = Clock()
        with tempfile.TemporaryDirectory() as out:
            size, records = analyzed(asked, Path(out), clock)
        best = {name: min(best.get(name, took), took) for name, took in clock.seconds.items()}
    return best, size / 1e6, records


def measure(case: Case, captures: Path, rounds: int) -> None:
    folder = captures / case.text().replace(" ", "-").replace("=", "")
    if not folder.exists():
        make(folder, case.asked)
    dealt = folder.with_name(f"{folder.name}-hosts")
    if not dealt.exists():
        deal_out(sorted(folder.iterdir()), dealt, int(case.asked.file_mb * 1e6))
    print(f"\n{case.text()}")
    print(f"{'':16}{'MB':>7}{'CPU s':>8}{'survey':>8}{'MB a CPU s':>12}{'tables':>8}{'records':>9}")
    for name, place in (("one capture", folder), ("three hosts", dealt)):
        files = sorted(place.iterdir())
        seconds, tables, records = seconds_of(files, rounds)
        total, mb = sum(seconds.values()), sum(one.stat().st_size for one in files) / 1e6
        told = f"{mb:7.0f}{total:8.2f}{seconds['survey']:8.2f}{mb / total:12.1f}"
        print(f"{name:16}{told}{tables:8.1f}{records:9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", type=parse_case, default=[*map(parse_case, CASES)])
    parser.add_argument("--captures", type=Path, default=ROOT / "out" / "bench", help="kept here")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    for case in asked.cases:
        measure(case, asked.captures, asked.rounds)


if __name__ == "__main__":
    main()
