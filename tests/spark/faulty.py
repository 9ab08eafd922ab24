"""Work for tasks that fails in a chosen way the first time, and helpers that check the result."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from flexwire.spark.publishing.manifest import part_name
from flexwire.storage.output_directory import OutputDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.storage.store_listing import FileEntry

DIGEST = "9f86d081884c7d659a2feaa0c55ad015"
TABLES = ("frames", "messages/FetchRequest")
ROWS = 100
# A limit for a test that hangs, high enough for a busy machine.
PATIENCE = 300


def put(number: int, task_output: TaskOutput, table: str, part: int) -> None:
    """Write one file of a table, as tasks do, and hand it over."""
    local = task_output.scratch / f"{part}.parquet"
    pq.write_table(pa.table({"n": [number] * ROWS, "part": [part] * ROWS}), local)
    task_output.put(local, table, part_name(DIGEST, number, part))


def write(number: int, task_output: TaskOutput) -> int:
    """Write two files of each table, except those that were handed over."""
    done = {one.name for one in task_output.files}
    for table in TABLES:
        for part in range(2):
            if f"tables/{table}/{part_name(DIGEST, number, part)}" not in done:
                put(number, task_output, table, part)
    return number * number


def names(count: int) -> set[str]:
    """Return the names of the files that `write` writes in this many tasks."""
    return {
        f"tables/{table}/{part_name(DIGEST, number, part)}"
        for table in TABLES
        for number in range(count)
        for part in range(2)
    }


def attempts(flags: Path, number: int) -> int:
    """Return how many times a task was started."""
    return len(list(flags.glob(f"{number}-*")))


def begin(flags: Path, number: int) -> bool:
    """Record that a task starts. Return whether the task starts for the first time."""
    first = False
    with suppress(FileExistsError):
        (flags / f"{number}-first").touch(exist_ok=False)
        first = True
    if not first:
        (flags / f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return first


def raises(flags: Path, number: int, task_output: TaskOutput) -> int:
    """Hand over one file, and raise."""
    if begin(flags, number) and number == 1:
        put(number, task_output, TABLES[0], 0)
        raise RuntimeError("the first attempt")
    return write(number, task_output)


def killed_mid_file(flags: Path, number: int, task_output: TaskOutput) -> int:
    """Write a part of a file, and kill the worker."""
    if begin(flags, number) and number == 1:
        (task_output.scratch / "0.parquet").write_bytes(b"PAR1 and no more")
        os.kill(os.getpid(), signal.SIGKILL)
    return write(number, task_output)


def killed_after_put(flags: Path, number: int, task_output: TaskOutput) -> int:
    """Write all files, and another that no later attempt writes, and kill the worker."""
    if begin(flags, number) and number == 1:
        write(number, task_output)
        put(number, task_output, TABLES[0], 7)
        os.kill(os.getpid(), signal.SIGKILL)
    return write(number, task_output)


def executor_killed(flags: Path, number: int, task_output: TaskOutput) -> int:
    """Hand over one file, and kill Java, the parent of the process that forks the workers."""
    if begin(flags, number) and number == 1:
        put(number, task_output, TABLES[0], 0)
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(daemon[1]), signal.SIGKILL)
        time.sleep(PATIENCE)
    return write(number, task_output)


def slow(flags: Path, number: int, task_output: TaskOutput) -> int:
    """Hand over one file and wait until another attempt of the same task has started."""
    if begin(flags, number) and number == 3:
        put(number, task_output, TABLES[0], 0)
        wait_for(lambda: attempts(flags, number) > 1)
        (flags / "beside").touch()
    return write(number, task_output)


def waits(flags: Path, number: int, task_output: TaskOutput) -> int:
    """Hand over one file, and wait until the test continues."""
    begin(flags, number)
    put(number, task_output, TABLES[0], 0)
    wait_for((flags / "go").exists)
    return write(number, task_output)


def wait_for(condition: object) -> None:
    """Wait until a condition is true."""
    assert callable(condition)
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)


def greedy(flags: Path, number: int, task_output: TaskOutput) -> int:
    """Allocate memory until it is full, in pieces so small that nothing is left."""
    begin(flags, number)
    kept: list[object] = [task_output]
    while True:
        kept.append(bytes(100))


class Full(OutputDirectory):
    """A directory on a disk that is full after one file from each task."""

    def put(self, file: Path, name: str) -> None:
        """Put a task's first file in the directory, but no other file."""
        if "-0000.parquet" not in name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        OutputDirectory.put(self, file, name)


class Store(OutputDirectory):
    """A place that behaves like an object store: it has no directories, and cannot rename files."""

    def __init__(self, url: str | Path) -> None:
        super().__init__(str(url))

    @property
    def root(self) -> Path:
        """Return the directory that holds the objects."""
        return Path(self.url)

    @property
    def path(self) -> None:
        """Return None, because no program can open this place by path."""
        return

    def put(self, file: Path, name: str) -> None:
        """Copy a file into the store."""
        self.write(name, file.read_bytes())

    def write(self, name: str, data: bytes) -> None:
        """Write an object."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        new = self.root.parent / f"{os.getpid()}-{time.monotonic_ns()}"
        new.write_bytes(data)
        shutil.move(new, target)

    def create(self, name: str, data: bytes) -> bool:
        """Write an object, unless it exists."""
        if self.exists(name):
            return False
        self.write(name, data)
        return True

    def read(self, name: str) -> bytes:
        """Return the bytes of an object."""
        return (self.root / name).read_bytes()

    def exists(self, name: str) -> bool:
        """Return whether the object exists."""
        return (self.root / name).is_file()

    def entries(self, prefix: str = "") -> Iterator[FileEntry]:
        """Return all objects whose names begin with the prefix."""
        return OutputDirectory(self.url).entries(prefix)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects."""
        OutputDirectory(self.url).remove(names)

    def sweep(self, before: datetime) -> int:  # noqa: ARG002 # the signature of a place
        """Do nothing, because there are no unfinished uploads."""
        return 0
