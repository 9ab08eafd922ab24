"""Compare record batches as Arrow columns with copying their bytes, and with aiokafka's Cython.

``python benchmarks/record_columns.py``. Times are CPU time of one thread; all cases take turns, and
medians count. The reference is `numpy.copyto` of the same bytes in the same run.
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
# The codecs that flexwire uses, alone, and other codecs.
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
    """Return batches of this many records of 100 bytes, with a key, and a header in each other
    record.
    """
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
    """Return the median of each call's thread seconds; the calls take turns in each round.

    Each call runs once before it is timed, because a pipeline has filled caches and memory too.
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
    """Read as a pipeline does: free a batch before the next one."""
    return sum(len(batch) for batch in RecordReader(data, RecordSelection(**wanted)))


def write(rows: Any) -> int:
    """Write as a pipeline does: free a piece before the next one."""
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
    """Measure batches of one and ten records, which are most of the batches of some topics."""
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
    """Inflate as a pipeline does: free the inflated data before the next batch."""
    for body in bodies:
        inflate(body)


def compressed(rounds: int) -> None:
    """Measure batches as columns and with other codecs, compared with only inflating the same
    batches.
    """
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
    """The cost of a run: elapsed seconds, and the other figures of each thread."""

    wall: float
    cpu: float
    faults: float
    waits: float


# A run takes a tenth of a second, which is long compared with the start of a thread.
_TURNS = 20
# If two digests do twice the work of one, each had its own core; this is tried so often.
_TWO_CORES, _TRIES = 1.6, 6


def threaded(work: Callable[[], Any], count: int) -> Run:
    """Let this many threads do the work at once."""
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
    """Let this many processes do the work at once; they share no lock of Python."""
    told, tell = os.pipe()
    waiting, starts = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            os.close(starts)
            # In the first turn, memory pages are new.
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
    # All threads have done their first turn.
    time.sleep(0.3)
    os.close(starts)
    for _ in range(count):
        os.wait()
    with os.fdopen(told) as lines:
        found = [tuple(map(float, line.split())) for line in lines]
    return Run(max(wall for wall, _ in found), sum(cpu for _, cpu in found) / count, 0, 0)


def threads(rounds: int) -> None:
    """Compare two threads with one thread that does the same work, and with the machine's limit.

    A repeated digest of a few bytes needs only a core; copies need memory. A thread that takes more
    CPU time beside another one waits for shared memory and caches. Waiting for a lock or a core
    shows only in elapsed time. Two processes share the speed of memory, but not Python's lock.
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
    """Return runs of one and of two, with the speedup of two digests, and the number of tries."""
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
    """Return how many times the work of one the two did."""
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
