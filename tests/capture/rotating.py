"""Brokers whose request logs grow, are rotated by renaming, and are compressed later."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path


@dataclass
class LoggingBroker:
    """A broker that writes lines to its log. Each rotated file is numbered by its rotation."""

    directory: Path
    lines: Sequence[bytes]
    name: str = "kafka-request.log"
    at: int = 0
    rotations: int = 0
    tick: int = field(default=0)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._data = b"".join(line + b"\n" for line in self.lines)

    @property
    def path(self) -> Path:
        return self.directory / self.name

    @property
    def size(self) -> int:
        return len(self._data)

    def write(self, until: int) -> None:
        """Append the bytes up to ``until``, which may be within a line."""
        until = min(until, self.size)
        with self.path.open("ab") as file:
            file.write(self._data[self.at : until])
        self.at = max(self.at, until)
        # A change within one tick of the file system's clock must not go unnoticed.
        self.tick += 1
        os.utime(self.path, ns=(10**18 + self.tick, 10**18 + self.tick))

    def end_line(self) -> None:
        """Append the rest of a line that has begun: a broker rotates between lines."""
        end = self._data.find(b"\n", max(0, self.at - 1)) + 1
        self.write(end if self.at and end else self.at)

    def rotate(self) -> None:
        """Rename the log, if its content identifies it."""
        self.end_line()
        if self.path.exists() and b"Completed request:" in self.path.read_bytes():
            self.rotations += 1
            self.path.rename(self.directory / f"{self.name}.{self.rotations}")

    def compress(self, source: random.Random) -> None:
        """Compress a rotated log."""
        rotated = [path for path in self.directory.glob(f"{self.name}.*") if path.suffix != ".gz"]
        if rotated:
            path = source.choice(sorted(rotated))
            data = path.read_bytes()
            middle = len(data) // 2
            packed = gzip.compress(data[:middle]) + gzip.compress(data[middle:])
            path.with_name(f"{path.name}.gz").write_bytes(packed)
            path.unlink()


def live(source: random.Random, brokers: Sequence[LoggingBroker], until: float) -> None:
    """Make brokers write up to this part of their lines, and sometimes rotate and compress logs."""
    for broker in brokers:
        end = int(broker.size * until)
        while broker.at < end:
            broker.write(min(end, broker.at + source.randrange(1, broker.size)))
            if source.random() < 0.3:
                broker.rotate()
            if source.random() < 0.3:
                broker.compress(source)
