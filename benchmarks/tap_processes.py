"""Compare the tap in one process and in several with a relay of bytes, with many connections at
once.

``python benchmarks/tap_processes.py [--processes 1 2] [--clients N] [--mb MB] [--requests N]
[--rounds N]``. Client processes send produce requests of 1 MB, each over its own connection and one
after the other, then small ones. CPU is the time of all processes of the tap. Clients, the tap and
a broker in one Python process share this machine's processors. With two processors, a second
process of the tap has none to itself; the idle time shows whether there was room. Kinds take turns;
the fastest of all rounds counts, and the lowest CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tap import MB, PRODUCED, SMALL, Child, connected, receive


def load(told: dict) -> None:
    """Run one client: connect, wait for the start, and report when everything is sent."""
    with connected(told["port"], []) as sock:
        sock.sendall(PRODUCED + SMALL)
        receive(sock, 2)
        print("ready", flush=True)
        for request, count in ((PRODUCED, told["mb"]), (SMALL, told["requests"])):
            sys.stdin.readline()
            for _ in range(count):
                sock.sendall(request)
                receive(sock, 1)
            print("done", flush=True)


def idle() -> float:
    """Return the seconds that all processors together have been idle."""
    ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return sum(map(int, ticks[4:6])) / os.sysconf("SC_CLK_TCK")


def measure(kind: str, processes: int, given: argparse.Namespace) -> dict[str, float]:
    with ExitStack() as stack:
        out = stack.enter_context(tempfile.TemporaryDirectory())
        broker = Child("broker", [], 0, out)
        stack.callback(broker.close)
        between = Child(kind, [], broker.port, out, processes)
        stack.callback(between.close)
        told = {"port": between.port, "mb": given.mb, "requests": given.requests}
        clients = [
            stack.enter_context(
                subprocess.Popen(  # noqa: S603 - this file
                    [sys.executable, __file__, "--child", json.dumps(told)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(given.clients)
        ]
        for one in clients:
            one.stdout.readline()
        found = {}
        for what, count in (("MB", given.mb * MB / 1e6), ("requests", given.requests)):
            every = count * given.clients
            cpu, rested, began = between.cpu(), idle(), time.perf_counter()
            for one in clients:
                one.stdin.write("go\n")
                one.stdin.flush()
            for one in clients:
                one.stdout.readline()
            took = time.perf_counter() - began
            found[f"{what}/s"] = every / took
            found[f"ms CPU per {what.rstrip('s')}"] = (between.cpu() - cpu) * 1e3 / every
            found[f"idle {what}"] = (idle() - rested) / took / (os.cpu_count() or 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--mb", type=int, default=100, help="of each client")
    parser.add_argument("--requests", type=int, default=2000, help="of each client")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        load(json.loads(given.child))
        return
    kinds = [("relay", 1), *(("tap", one) for one in given.processes)]
    found: dict[tuple[str, int], dict[str, list[float]]] = {one: {} for one in kinds}
    for _ in range(given.rounds):
        for one in kinds:
            for what, figure in measure(*one, given).items():
                found[one].setdefault(what, []).append(figure)
    for (kind, processes), figures in found.items():
        best = {what: (min if "CPU" in what else max)(every) for what, every in figures.items()}
        told = "  ".join(f"{what} {one:9.3f}" for what, one in best.items())
        print(f"{kind:6} {processes}  {told}")


if __name__ == "__main__":
    main()
