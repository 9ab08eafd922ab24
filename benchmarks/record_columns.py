"""Record batches to Arrow columns and back, beside a copy of the bytes and aiokafka's Cython.

``python benchmarks/record_columns.py``. Time is that of one thread's processor; all is interleaved,
medians. The yardstick is `numpy.copyto` of the same bytes in the same run.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import platform
import random
import resource
import statistics
import threading
import time
import zlib
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import aiokafka
import cramjam
import numpy as np
import zstandard
from aiokafka.record import MemoryRecords
from isal import isal_zlib

from flexwire import __version__
from flexwire.columnar.record_encoding import encode_record_pieces, encode_records
from flexwire.columnar.records import RecordReader, RecordSelection, decode_records
from flexwire.records import Record, encode_batch

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS, SIZE = 100, 32 << 20
# What flexwire inflates with, bare, and what else there is.
BARE = {
    "gzip": cramjam.gzip.decompress,
    "lz4": cramjam.lz4.decompress,
    "zstd": cramjam.zstd.decompress,
}
_CONTEXT = zstandard.ZstdDecompressor()
PEERS: dict[str, dict[str, Callable[[bytes], Any]]] = {
    "gzip": {
        "zlib": lambda body: zlib.decompressobj(31).decompress(body),
        "isal": lambda body: isal_zlib.decompressobj(31).decompress(body),
    },
    "lz4": {},
    "zstd": {
        "zstandard, one context": lambda body: _CONTEXT.decompress(body, max_output_size=1 << 20)
    },
}


def made(compression: str, each: int = RECORDS) -> tuple[bytes, int]:
    """Batches of so many records of 100 bytes, a key, and a record header on every other."""
    source = random.Random(1)
    words = [source.randbytes(6).hex().encode() for _ in range(200)]
    records = [
        Record(
            number,
            1_700_000_000_000 + number,
            b"key-%06d" % number,
            b" ".join(source.choices(words, k=8))[:100],
            [(b"trace", source.randbytes(16))] if number % 2 else [],
        )
        for number in range(each)
    ]
    one = encode_batch(records, compression=compression)
    count = max(1, SIZE // max(len(one), 120 * each))
    return one * count, count * each


def timed(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median of each call's seconds of this thread, one after the other each round.

    Each is called once before it is timed: a pipeline's caches and memory are its own.
    """
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            gc.collect()
            call()
            before = time.thread_time()
            call()
            spent[name].append(time.thread_time() - before)
    return {name: statistics.median(each) for name, each in spent.items()}


def consume(data: bytes, **wanted: Any) -> int:
    """Read as a pipeline does: a batch is let go before the next."""
    return sum(len(batch) for batch in RecordReader(data, RecordSelection(**wanted)))


def write(rows: Any) -> int:
    """Write as a pipeline does: a piece is let go before the next."""
    return sum(len(piece) for piece in encode_record_pieces(rows, records_per_batch=RECORDS))


def iterate(data: bytes, *, crc: bool) -> None:
    batches = MemoryRecords(data)
    while batches.has_next():
        batch = batches.next_batch()
        if crc:
            assert batch.validate_crc()
        for _ in batch:
            pass


def uncompressed(rounds: int) -> None:
    data, count = made("none")
    source = np.frombuffer(data, np.uint8)
    target = np.empty(len(data), np.uint8)
    rows = decode_records(data)
    assert rows.num_rows == count == consume(data)
    assert encode_records(rows, records_per_batch=RECORDS)[: len(data)] == data
    found = timed(
        {
            "numpy.copyto": lambda: np.copyto(target, source),
            "all columns": lambda: consume(data, check_crc=False),
            "all columns, crc": lambda: consume(data),
            "offset and value": lambda: consume(data, check_crc=False, columns=("offset", "value")),
            "encode, crc": lambda: write(rows),
            "encode, crc, joined": lambda: encode_records(rows, records_per_batch=RECORDS),
            "aiokafka, iterated": lambda: iterate(data, crc=False),
            "aiokafka, crc": lambda: iterate(data, crc=True),
        },
        rounds,
    )
    copy = found["numpy.copyto"]
    print(f"{len(data) / 1e6:.0f} MB, {count:,} records, {RECORDS} in a batch, not compressed")
    print(f"{'':22}{'M records/s':>12}{'MB/s':>9}{'x copy':>8}{'x aiokafka':>12}")
    for name, seconds in found.items():
        peer = found["aiokafka, crc" if "crc" in name else "aiokafka, iterated"]
        ratio = "" if name.startswith(("aio", "num", "enc")) else f"{peer / seconds:12.1f}"
        print(
            f"{name:22}{count / seconds / 1e6:12.1f}{len(data) / seconds / 1e6:9,.0f}"
            f"{seconds / copy:8.2f}{ratio}"
        )


def small(rounds: int) -> None:
    """Batches of one and ten records, of which a topic may have most."""
    print(
        f"\n{'records in a batch':22}{'M records/s':>12}{'MB/s':>9}{'x copy':>8}{'x aiokafka':>12}"
    )
    for each, crc in product((1, 10, RECORDS, 10 * RECORDS), (False, True)):
        data, count = made("none", each)
        source = np.frombuffer(data, np.uint8)
        target = np.empty(len(data), np.uint8)
        found = timed(
            {
                "copy": partial(np.copyto, target, source),
                "ours": partial(consume, data, check_crc=crc),
                "aiokafka": partial(iterate, data, crc=crc),
            },
            rounds,
        )
        ours, label = found["ours"], f"{each:,}, crc" if crc else f"{each:,}"
        print(
            f"{label:22}{count / ours / 1e6:12.1f}"
            f"{len(data) / ours / 1e6:9,.0f}{ours / found['copy']:8.2f}"
            f"{found['aiokafka'] / ours:12.1f}"
        )


def inflate_all(inflate: Callable[[bytes], Any], bodies: list[bytes]) -> None:
    """Inflate as a pipeline does: what was inflated is let go before the next."""
    for body in bodies:
        inflate(body)


def compressed(rounds: int) -> None:
    """Batches as columns, and other codecs, beside the bare codec that the same batches need."""
    print(
        f"\n{'compressed, with crc':22}{'M records/s':>12}{'MB/s':>9}{'us/batch':>10}{'x codec':>9}"
        f"{'x aiokafka':>12}   other codecs, x codec"
    )
    for compression, each in product(BARE, (RECORDS, 10 * RECORDS)):
        data, count = made(compression, each)
        bodies = [batch.data[61:] for batch in batches(data)]
        codec, peers = BARE[compression], PEERS[compression]
        size = sum(len(bytes(codec(body))) for body in bodies)
        for peer in peers.values():
            assert bytes(peer(bodies[0])) == bytes(codec(bodies[0]))
        found = timed(
            {
                "codec": partial(inflate_all, codec, bodies),
                "ours": partial(consume, data),
                "aiokafka": partial(iterate, data, crc=True),
                **{name: partial(inflate_all, peer, bodies) for name, peer in peers.items()},
            },
            rounds,
        )
        ours, bare = found["ours"], found["codec"]
        print(
            f"{f'{compression}, {each} in a batch':22}{count / ours / 1e6:12.1f}"
            f"{size / ours / 1e6:9,.0f}{ours / len(bodies) * 1e6:10.1f}{ours / bare:9.2f}"
            f"{found['aiokafka'] / ours:12.1f}   "
            + ", ".join(f"{name} {found[name] / bare:.2f}" for name in peers)
        )


def batches(data: bytes) -> Any:
    from flexwire.records import decode_batches  # noqa: PLC0415 - beside its only use

    return decode_batches(data)


class Run(NamedTuple):
    """What a run took: seconds on the wall, and of each that ran the rest."""

    wall: float
    cpu: float
    faults: float
    waits: float


# A run of so many turns takes long beside the start of a thread: a tenth of a second.
_TURNS = 20
# Two digests that do so many times what one does have a core each; so often it is tried.
_TWO_CORES, _TRIES = 1.6, 6


def threaded(work: Callable[[], Any], count: int) -> Run:
    """Have so many threads do the work at once."""
    spent: list[float] = []
    began: list[float] = []
    barrier = threading.Barrier(count)

    def timed_work() -> None:
        barrier.wait()
        began.append(time.perf_counter())
        before = time.thread_time()
        for _ in range(_TURNS):
            work()
        spent.append(time.thread_time() - before)

    each = [threading.Thread(target=timed_work) for _ in range(count)]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    for one in each:
        one.start()
    for one in each:
        one.join()
    wall = time.perf_counter() - min(began)
    after = resource.getrusage(resource.RUSAGE_SELF)
    each_of = count * _TURNS
    faults = (after.ru_minflt - usage.ru_minflt) / each_of
    return Run(wall, sum(spent) / count, faults, (after.ru_nvcsw - usage.ru_nvcsw) / each_of)


def forked(work: Callable[[], Any], count: int) -> Run:
    """Have so many processes do the work at once, which share no lock of Python's."""
    told, tell = os.pipe()
    waiting, starts = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            os.close(starts)
            # The first turn takes new pages.
            work()
            os.read(waiting, 1)
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(_TURNS):
                work()
            taken = time.perf_counter() - wall, time.process_time() - cpu
            os.write(tell, f"{taken[0]} {taken[1]}\n".encode())
            os._exit(0)
    os.close(waiting)
    os.close(tell)
    # All of them have had their first turn.
    time.sleep(0.3)
    os.close(starts)
    for _ in range(count):
        os.wait()
    with os.fdopen(told) as lines:
        found = [tuple(map(float, line.split())) for line in lines]
    return Run(max(wall for wall, _ in found), sum(cpu for _, cpu in found) / count, 0, 0)


def threads(rounds: int) -> None:
    """Two threads that do what one would do in twice the time, beside what the machine allows.

    A digest of a few bytes again and again needs nothing but a core of its own; copies need memory.
    A thread that takes more processor time beside another waits for what they share, memory and
    caches. What it waits for beyond that, a lock or a core, shows on the wall only. Two processes
    share the memory's speed, and not Python's lock.
    """
    data, _ = made("none")
    source = np.frombuffer(data, np.uint8)
    few = data[: 1 << 15]
    target = threading.local()

    def digest() -> None:
        for _ in range(300):
            hashlib.sha256(few).digest()

    def copy() -> None:
        if not hasattr(target, "room"):
            target.room = np.empty(len(data), np.uint8)
        np.copyto(target.room, source)

    works: dict[str, Callable[[], Any]] = {
        "numpy.copyto": copy,
        "all columns": partial(consume, data, check_crc=False),
        "all columns, crc": partial(consume, data),
    }
    print(
        "\ntwo threads and two processes: how many times what one does on the wall, processor time"
        "\nof each beside that of one alone; page faults and waits of each in a turn. Medians of"
        f"\n{rounds} runs of {_TURNS} turns while two cores were there, by a digest of 32 kB"
    )
    print(f"{'':18}{'':11}{'wall':>6}{'CPU':>6}{'digest':>8}{'faults':>8}{'waits':>7}{'runs':>10}")
    for (name, work), run in product(works.items(), (threaded, forked)):
        kept, tried = with_two_cores(run, work, digest, rounds)
        label = f"{name:18}{'threads' if run is threaded else 'processes':11}"
        if not kept:
            print(f"{label}the machine never had two cores in {tried} runs")
            continue
        wall, cores, cpu, faults, waits = (
            statistics.median(one)
            for one in zip(
                *((ratio(a, b), c, b.cpu / a.cpu, b.faults, b.waits) for a, b, c in kept),
                strict=True,
            )
        )
        shown = f"{label}{wall:6.2f}{cpu:6.2f}{cores:8.2f}{faults:8.0f}{waits:7.1f}"
        print(f"{shown}{len(kept):4} of {tried}")


def with_two_cores(
    run: Callable[[Callable[[], Any], int], Run],
    work: Callable[[], Any],
    digest: Callable[[], Any],
    rounds: int,
) -> tuple[list[tuple[Run, Run, float]], int]:
    """Runs by one and by two, with what two digests did beside one; and how many were tried."""
    kept: list[tuple[Run, Run, float]] = []
    tried = 0
    while len(kept) < rounds and tried < _TRIES * rounds:
        tried += 1
        one, two = run(work, 1), run(work, 2)
        cores = ratio(run(digest, 1), run(digest, 2))
        if cores > _TWO_CORES:
            kept.append((one, two, cores))
    return kept, tried


def ratio(one: Run, two: Run) -> float:
    """How many times what one did, two did."""
    return 2 * one.wall / two.wall


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", action="store_true", help="what two at once do, alone")
    given = parser.parse_args()
    print(
        f"python {platform.python_version()}, load {os.getloadavg()[0]:.1f}: "
        f"flexwire {__version__}, aiokafka {aiokafka.__version__}, numpy {np.__version__}\n"
    )
    if not given.threads:
        uncompressed(given.rounds)
        small(given.rounds)
        compressed(given.rounds)
    threads(given.rounds)
