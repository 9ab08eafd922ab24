"""Measure the cost of starting: ``python benchmarks/startup.py``; each import has its own process.

First the best of some runs, in milliseconds, with compiled bytecode. Then the CPU time of the first
use of every bundled message in one process: its class, one encode and one decode of its newest
version. Then the same for each message as the first of a process that has only imported the module:
one encode or one decode, including the class and the catalog's index. Last the median, the best and
the worst run of a process whose kernels are compiled already, from its first line to its first
batch of messages and of records in columns, compared with the import of pyarrow.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from flexwire.codec import message
from flexwire.records import Record, encode_batch
from flexwire.schema.catalog import catalog

RUNS, LIMIT = 15, 5
# A binary array made from buffers: `pyarrow.array` imports pandas if that is installed.
BATCH = """
import time; began = time.perf_counter()
import struct, sys, pyarrow as pa
from flexwire.columnar import decode_messages
raw = bytes.fromhex("000300000000002a000470696e6700")
buffers = [None, pa.py_buffer(struct.pack("ii", 0, len(raw))), pa.py_buffer(raw)]
column = decode_messages("RequestHeader", pa.Array.from_buffers(pa.binary(), 1, buffers), 2)
assert column.field("correlation_id")[0].as_py() == 42
print(time.perf_counter() - began)
"""
RECORDS = """
import time; began = time.perf_counter()
import sys
from flexwire.columnar import decode_records
assert decode_records(bytes.fromhex("{}")).num_rows == 1
print(time.perf_counter() - began)
"""
WARM = """
from flexwire import load_kernels
assert load_kernels(), "this flexwire was built without kernels"
print(0)
"""
FIRST = """
import sys, time
from flexwire.codec import message
name, version, raw = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
began = time.process_time()
{}
print(time.process_time() - began)
"""
ENCODE = FIRST.format("message(name)().encode(version)")
DECODE = FIRST.format("message(name).decode(raw, version)")
TIMED = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def import_time(module: str) -> float:
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", TIMED.format(module)]
        return min(run(command, environment) for _ in range(RUNS))


def warm(script: str) -> str:
    """Return the times of a script's runs, after one run that fills all caches."""
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        run([sys.executable, "-c", WARM], environment)
        command = [sys.executable, "-c", script]
        times = sorted(1000 * run(command, environment) for _ in range(RUNS + 1))[:-1]
    return f"{statistics.median(times):8.0f}  ({times[0]:.0f} to {times[-1]:.0f})"


def run(command: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(command, env=environment, capture_output=True, check=True)  # noqa: S603 - our own command
    return float(done.stdout)


def first_of_a_process() -> dict[str, list[tuple[float, str]]]:
    """Return the sorted CPU times of a process's first message; each message has its
    own process.
    """
    found: dict[str, list[tuple[float, str]]] = {"encode": [], "decode": []}
    for name in catalog().names():
        version = str(catalog().entry(name).versions.highest)
        raw = message(name)().encode(int(version)).hex()
        for way, script in (("encode", ENCODE), ("decode", DECODE)):
            command = [sys.executable, "-c", script, name, version, raw]
            found[way].append((run(command, dict(os.environ)), name))
    return {way: sorted(times) for way, times in found.items()}


def first_uses() -> list[tuple[float, str]]:
    header = message("RequestHeader")
    header.decode(header().encode(2), 2)
    found = []
    for name in catalog().names():
        version = catalog().entry(name).versions.highest
        began = time.process_time()
        made = message(name)
        made.decode(made().encode(version), version)
        found.append((time.process_time() - began, name))
    return sorted(found)


def show(what: str, uses: list[tuple[float, str]]) -> None:
    times = [1000 * seconds for seconds, _ in uses]
    print(f"{what}, {len(uses)} messages: median {statistics.median(times):.1f}, ", end="")
    above = sum(one > LIMIT for one in times)
    print(f"nine in ten {times[9 * len(times) // 10]:.1f}, above {LIMIT}: {above}")
    for seconds, name in uses[-3:]:
        print(f"  {name:40}{1000 * seconds:8.1f}")


if __name__ == "__main__":
    print(f"load {os.getloadavg()[0]:.1f}, milliseconds")
    for module in ("flexwire", "flexwire.messages"):
        print(f"import {module:20}{1000 * import_time(module):8.1f}")
    # This comes first, because the other part asks this process which bytes to decode.
    show("first use of each in one process", first_uses())
    for way, uses in first_of_a_process().items():
        show(f"first {way} of a process", uses)
    record = encode_batch([Record(0, 1700000000000, b"key", b"value", [])]).hex()
    print(f"import pyarrow alone         {warm(TIMED.format('pyarrow'))}")
    print(f"first batch of messages      {warm(BATCH)}")
    print(f"first batch of records       {warm(RECORDS.format(record))}")
