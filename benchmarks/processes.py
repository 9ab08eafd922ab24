"""Measure a command and all processes that it starts: CPU time, memory, and writes to disk.

The kernel reports the CPU time of children that have ended. This process becomes the parent of
orphans (`prctl`), and waits for all of them. /proc is read at intervals: it shows the shares of
driver, Java and workers, the memory of each, and the writes to disk. A process that lives shorter
than an interval counts only in the sum.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

INTERVAL = 0.1
PATIENCE = 60  # seconds for processes that the command leaves running
SUBREAPER = 36
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")
SHOWN = 2000


@dataclass
class Usage:
    """The cost of a command; ``cpu`` in seconds and ``rss`` in bytes, by kind of process."""

    wall: float = 0.0
    cpu: float = 0.0
    by_kind: dict[str, float] = field(default_factory=dict)
    rss: dict[str, int] = field(default_factory=dict)
    largest_worker: int = 0
    written: int = 0
    code: int = 0
    output: str = ""


def run(command: list[str], *, cores: int = 0, output: int | None = None) -> Usage:
    """Run a command, on the first ``cores`` processors unless that is 0.

    ``output`` is the file for its standard output. Without it, the end of standard output and of
    standard error is kept.
    """
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    usage = Usage()
    with TemporaryFile("w+", errors="replace") as said:
        before, began = _children(), time.perf_counter()
        command = [*(["taskset", "-c", f"0-{cores - 1}"] if cores else []), *command]
        process = subprocess.Popen(  # noqa: S603 - the commands are our own
            command, stdout=said if output is None else output, stderr=said
        )
        watch = _Watch(process.pid)
        watcher = threading.Thread(target=watch.follow)
        watcher.start()
        usage.code = process.wait()
        usage.wall = time.perf_counter() - began
        _wait_for_orphans()
        watch.is_over = True
        watcher.join()
        said.seek(0)
        usage.output = said.read()[-SHOWN:]
    sampled = watch.cpu_by_kind()
    usage.cpu = max(_children() - before, sum(sampled.values()))
    usage.by_kind, usage.rss, usage.written = sampled, watch.peak, sum(watch.written.values())
    usage.largest_worker = watch.largest_worker
    return usage


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait_for_orphans() -> None:
    until = time.monotonic() + PATIENCE
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(INTERVAL)


class _Watch:
    """Watch a process and all processes below it until told to stop."""

    def __init__(self, root: int) -> None:
        self.is_over = False
        self.peak: dict[str, int] = {}
        self.written: dict[int, int] = {}
        self.largest_worker = 0
        self._root = root
        self._mine = {root}
        self._cpu: dict[int, float] = {}
        self._kinds: dict[int, str] = {}

    def follow(self) -> None:
        while not self.is_over:
            self._look()
            time.sleep(INTERVAL)

    def cpu_by_kind(self) -> dict[str, float]:
        total: dict[str, float] = {}
        for pid, seconds in self._cpu.items():
            kind = self._kinds.get(pid, "other")
            total[kind] = total.get(kind, 0.0) + seconds
        return total

    def _look(self) -> None:
        resident: dict[str, int] = {}
        for pid, (cpu, rss) in self._tree().items():
            kind = self._kind(pid)
            self._cpu[pid] = cpu
            resident[kind] = resident.get(kind, 0) + rss
            if kind == "workers":
                self.largest_worker = max(self.largest_worker, rss)
            with contextlib.suppress(OSError, StopIteration):
                lines = (PROC / str(pid) / "io").read_text().splitlines()
                told = next(line for line in lines if line.startswith("write_bytes"))
                self.written[pid] = int(told.split()[1])
        for kind, size in resident.items():
            self.peak[kind] = max(self.peak.get(kind, 0), size)

    def _tree(self) -> dict[int, tuple[float, int]]:
        """Return the CPU time and resident bytes of our processes; children of ours count too."""
        found: dict[int, tuple[float, int]] = {}
        parents: dict[int, int] = {}
        for entry in PROC.glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError):
                text = entry.read_text()
                parts = text[text.rindex(")") + 2 :].split()
                pid, cpu = int(entry.parent.name), (int(parts[11]) + int(parts[12])) / TICK
                parents[pid], found[pid] = int(parts[1]), (cpu, int(parts[21]) * PAGE)
        grows = True
        while grows:
            new = {pid for pid, parent in parents.items() if parent in self._mine} - self._mine
            self._mine |= new
            grows = bool(new)
        return {pid: found[pid] for pid in self._mine if pid in found}

    def _kind(self, pid: int) -> str:
        """Return the kind of a process; before it calls exec, it looks like its parent."""
        kind = self._kinds.get(pid, "other")
        with contextlib.suppress(OSError):
            command = (PROC / str(pid) / "cmdline").read_bytes()
            if pid == self._root:
                kind = "driver"
            elif b"pyspark.daemon" in command or b"pyspark.worker" in command:
                kind = "workers"
            elif command.split(b"\0")[0].endswith(b"java"):
                kind = "java"
        self._kinds[pid] = kind
        return kind
