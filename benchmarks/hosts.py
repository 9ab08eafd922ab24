"""Compare captures of three hosts with one capture of the same traffic, in one process.

``python benchmarks/hosts.py [CASE...]`` takes cases like `benchmarks/pipeline.py`. The packets of a
case's capture are divided among three hosts, each with its own clock and files. Two thirds of the
connections are between hosts, as between brokers, and so are in two captures; the others are in
one. Seconds are CPU time of survey and tables together, the lowest of all rounds. The "tables" of
both are equal, except for the repeated bytes.

``--shares 1,2,4,8`` only surveys the hosts' captures, divided into that many shares of the
connections. Each share has its own process, two at once. "Longest" is the share with the most CPU
seconds: a machine with a core for each would wait that long before "join". "Merging" is only the
reading and merging that each share repeats.
"""

from __future__ import annotations

import argparse
import pickle
import struct
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
from captures import file_head, make
from pipeline import ROOT, Case, parse_case
from ranges import Clock, analyzed

from flexwire.capture.reassembly.assembly import ConnectionShare
from flexwire.storage.file_search import list_captures
from flexwire.storage.local import compress, decompress
from flexwire.survey.capture_files import MergedFiles
from flexwire.survey.request import look_at_files
from flexwire.survey.shares import join_shares, survey_share
from flexwire.survey.survey import AnalysisRequest, Survey, Surveyor

CASES = ("heavy,mb=250", "heavy,mb=250,segment=32768", "small,mb=100")
# Each host's clock is ahead by this many microseconds.
CLOCKS_US = (0, 400, 50_000)
_BLOCK, _PORTS_AT = struct.Struct("<IIIIIII"), 28 + 20
_ENHANCED = 6


def hosts_of(packet: memoryview) -> list[int]:
    """Return the hosts that capture a packet, by its ports."""
    key = sum(struct.unpack_from(">HH", packet, _PORTS_AT))
    first = key % 3
    return [first] if key // 3 % 3 == 0 else [first, (first + 1) % 3]


def deal_out(files: list[Path], out: Path, file_bytes: int) -> None:
    """Write the captures of this traffic that three hosts would have made."""
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
    """Return seconds by stage, the MB of the tables, and the number of records."""
    asked = AnalysisRequest(tuple(list_captures(files)), range_bytes=1 << 40)
    best: dict[str, float] = {}
    size = records = 0
    for _ in range(rounds):
        clock = Clock()
        with tempfile.TemporaryDirectory() as out:
            size, records = analyzed(asked, Path(out), clock)
        best = {name: min(best.get(name, took), took) for name, took in clock.seconds.items()}
    return best, size / 1e6, records


def asked_for(files: list[Path], range_mb: int) -> AnalysisRequest:
    return AnalysisRequest(tuple(list_captures(files)), range_bytes=range_mb << 20)


def keep(place: Path, name: str, data: bytes) -> None:
    (place / name).write_bytes(compress(data))


def part_name(number: int) -> str:
    return f"part-{number:06}"


def survey_one(asked: AnalysisRequest, place: Path, share: ConnectionShare) -> float:
    """Survey a share, or all in one task; return the CPU seconds."""
    since = time.process_time()
    if share.is_whole:
        Surveyor(asked, partial(keep, place), overlapping=True).run()
    else:
        part = survey_share(asked, look_at_files(asked.files), share, partial(keep, place))
        keep(place, part_name(share.number), pickle.dumps(part))
    return time.process_time() - since


def merge_one(asked: AnalysisRequest, share: ConnectionShare) -> float:
    """Read and merge for a share; return the CPU seconds."""
    since = time.process_time()
    reader = MergedFiles(asked, look_at_files(asked.files)).reader()
    reader.share = share
    for _ in reader:
        pass
    return time.process_time() - since


def join_all(asked: AnalysisRequest, place: Path, shares: int) -> float:
    since = time.process_time()
    packed = [decompress((place / part_name(number)).read_bytes()) for number in range(shares)]
    parts = [pickle.loads(part) for part in packed]  # noqa: S301 - written above
    looks = look_at_files(asked.files)
    join_shares(asked, partial(keep, place), looks, Survey(), parts)
    return time.process_time() - since


def share_out(files: list[Path], shares: int, rounds: int, range_mb: int) -> None:
    """Print the cost of a survey in this many shares, the lowest of all rounds."""
    asked = asked_for(files, range_mb)
    numbers = [ConnectionShare(number, shares) for number in range(shares)]
    found = []
    for _ in range(rounds):
        with (
            tempfile.TemporaryDirectory() as out,
            ProcessPoolExecutor(2, max_tasks_per_child=1) as pool,
        ):
            since = time.monotonic()
            took = list(pool.map(survey_one, [asked] * shares, [Path(out)] * shares, numbers))
            joined = 0.0 if shares == 1 else join_all(asked, Path(out), shares)
            wall = time.monotonic() - since
        with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
            merging = list(pool.map(merge_one, [asked] * shares, numbers))
        found.append((sum(took) + joined, max(took), joined, max(merging), wall))
    told = "".join(f"{min(column):10.2f}" for column in zip(*found, strict=True))
    print(f"{shares:6}{told}")


def measure_shares(case: Case, captures: Path, asked: argparse.Namespace) -> None:
    files = sorted(dealt(case, captures).iterdir())
    mb = sum(one.stat().st_size for one in files) / 1e6
    print(f"\n{case.text()}: {mb:.0f} MB of three hosts")
    print(
        "".join(f"{name:>10}" for name in ("shares", "CPU s", "longest", "join", "merging", "wall"))
    )
    for shares in asked.shares:
        share_out(files, shares, asked.rounds, asked.range_mb)


def dealt(case: Case, captures: Path) -> Path:
    """Return the captures of three hosts; make them if they do not exist."""
    folder = captures / case.text().replace(" ", "-").replace("=", "")
    if not folder.exists():
        make(folder, case.asked)
    dealt = folder.with_name(f"{folder.name}-hosts")
    if not dealt.exists():
        deal_out(sorted(folder.iterdir()), dealt, int(case.asked.file_mb * 1e6))
    return dealt


def measure(case: Case, captures: Path, rounds: int) -> None:
    place = dealt(case, captures)
    folder = place.with_name(place.name.removesuffix("-hosts"))
    print(f"\n{case.text()}")
    print(f"{'':16}{'MB':>7}{'CPU s':>8}{'survey':>8}{'MB a CPU s':>12}{'tables':>8}{'records':>9}")
    for name, captured in (("one capture", folder), ("three hosts", place)):
        files = sorted(captured.iterdir())
        seconds, tables, records = seconds_of(files, rounds)
        total, mb = sum(seconds.values()), sum(one.stat().st_size for one in files) / 1e6
        told = f"{mb:7.0f}{total:8.2f}{seconds['survey']:8.2f}{mb / total:12.1f}"
        print(f"{name:16}{told}{tables:8.1f}{records:9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", type=parse_case, default=[*map(parse_case, CASES)])
    parser.add_argument("--captures", type=Path, default=ROOT / "out" / "bench", help="kept here")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--shares", type=lambda text: [*map(int, text.split(","))], help="survey alone, in these"
    )
    parser.add_argument("--range-mb", type=int, default=64, help="of each range of that survey")
    asked = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    for case in asked.cases:
        if asked.shares:
            measure_shares(case, asked.captures, asked)
        else:
            measure(case, asked.captures, asked.rounds)


if __name__ == "__main__":
    main()
