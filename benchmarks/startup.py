"""What starting costs: ``python benchmarks/startup.py``; each import in a process of its own.

The best of some runs, in milliseconds, with bytecode compiled; then the first use of every bundled
message in one process: its class, one encode and one decode of its newest version.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from flexwire.codec import message
from flexwire.schema.catalog import catalog

RUNS, LIMIT = 15, 5
TIMED = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def import_time(module: str) -> float:
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", TIMED.format(module)]
        return min(run(command, environment) for _ in range(RUNS))


def run(command: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(command, env=environment, capture_output=True, check=True)  # noqa: S603 - our own command
    return float(done.stdout)


def first_uses() -> list[tuple[float, str]]:
    header = message("RequestHeader")
    header.decode(header().encode(2), 2)
    found = []
    for name in catalog().names():
        version = catalog().entry(name).versions.highest
        began = time.perf_counter()
        made = message(name)
        made.decode(made().encode(version), version)
        found.append((time.perf_counter() - began, name))
    return sorted(found)


if __name__ == "__main__":
    print(f"load {os.getloadavg()[0]:.1f}, milliseconds")
    for module in ("flexwire", "flexwire.messages"):
        print(f"import {module:20}{1000 * import_time(module):8.1f}")
    uses = first_uses()
    times = [1000 * seconds for seconds, _ in uses]
    print(f"first use of {len(uses)} messages: median {statistics.median(times):.1f}, ", end="")
    above = sum(one > LIMIT for one in times)
    print(f"nine in ten {times[9 * len(times) // 10]:.1f}, above {LIMIT}: {above}")
    for seconds, name in uses[-3:]:
        print(f"  {name:28}{1000 * seconds:8.1f}")
