"""The list of the files that an analysis's tasks wrote. The files depend only on the tasks' input.

A task that runs twice therefore writes the same files. Only the files in its manifest count.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, TypeVar, overload

import numpy as np

from flexwire.errors import AnalysisError, FlexwireError, StorageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from flexwire.storage.output_directory import OutputDirectory


T = TypeVar("T")

# The directory of the tables, below the place that an analysis writes to.
TABLES: Final = "tables"
# The directory of the parts of tables that still have to be merged.
PARTS: Final = "_parts"
_DIGEST_LETTERS = 16


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a task finished: its name below the output, its table, size, rows and digest."""

    name: str
    table: str
    size: int
    rows: int
    crc32c: int


class WrittenFiles(Sequence[WrittenFile]):
    """The files of one task, in about 20 bytes each, because the driver holds 20,000 such objects.

    Each iteration unpacks the files again.
    """

    __slots__ = ("_count", "_packed")

    def __init__(self, files: Iterable[WrittenFile] = ()) -> None:
        rows = [astuple(file) for file in files]
        self._count = len(rows)
        self._packed = zlib.compress(pickle.dumps(rows, pickle.HIGHEST_PROTOCOL))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[WrittenFile]:
        # The bytes were packed in this process, or signed by a task.
        rows = pickle.loads(zlib.decompress(self._packed))  # noqa: S301 - we wrote these bytes ourselves
        return (WrittenFile(*row) for row in rows)

    @overload
    def __getitem__(self, index: int) -> WrittenFile: ...
    @overload
    def __getitem__(self, index: slice) -> list[WrittenFile]: ...
    def __getitem__(self, index: int | slice) -> WrittenFile | list[WrittenFile]:
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrittenFiles) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)


@dataclass(frozen=True, slots=True)
class CommittedTask(Generic[T]):
    """The committed attempt of a task: its files, and the value that its work returned.

    ``has_kernels`` is false for a task that ran without kernels and therefore took many times as
    long.
    """

    number: int
    files: Sequence[WrittenFile]
    value: T
    has_kernels: bool = True


def check_owners(committed: Sequence[CommittedTask[T]]) -> None:
    """Raise `AnalysisError` if digests of names show that two tasks have written the same file."""
    # This stores eight bytes for each of a million names. Names are compared only if these bytes
    # are equal.
    hashes = np.sort(
        np.fromiter((hash(file.name) for task in committed for file in task.files), np.int64)
    )
    twice = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if not twice:
        return
    owners: dict[str, int] = {}
    for task in committed:
        for file in task.files:
            if (
                hash(file.name) in twice
                and owners.setdefault(file.name, task.number) != task.number
            ):
                raise AnalysisError(
                    f"tasks {owners[file.name]} and {task.number} both wrote {file.name}"
                )


def part_name(digest: str, number: int, part: int) -> str:
    """Return the name of the ``part``-th file of a table that range ``number`` of an input writes.

    >>> part_name("9f86d081884c7d659a2feaa0c55ad015", 12, 0)
    '9f86d081884c7d65-000012-0000.parquet'
    """
    return f"{digest[:_DIGEST_LETTERS]}-{number:06d}-{part:04d}.parquet"


def joined_name(digest: str, first: int, last: int, part: int) -> str:
    """Return the name of the ``part``-th file that merges files of ranges ``first`` to ``last``.

    >>> joined_name("9f86d081884c7d659a2feaa0c55ad015", 0, 12, 1)
    '9f86d081884c7d65-000000-000012-0001.parquet'
    """
    return f"{digest[:_DIGEST_LETTERS]}-{first:06d}-{last:06d}-{part:04d}.parquet"


def settle(
    directory: OutputDirectory,
    written_files: Iterable[WrittenFile],
    other_tables: Collection[str] = (),
) -> None:
    """Before a directory is published, leave only the given files in the tables below it.

    Other files there come from uncommitted attempts, and are removed. Tables in ``other_tables``,
    which other code writes, and names with a leading underscore are not touched. Raises
    `AnalysisError` if a file is missing or has a different size.
    """
    expected = {file.name: file.size for file in written_files}
    orphans = []
    for entry in directory.entries(f"{TABLES}/"):
        _, *table, name = entry.name.split("/")
        size = expected.pop(entry.name, None)
        if size is None:
            if "/".join(table) not in other_tables and not (name.startswith("_") and not table):
                orphans.append(entry.name)
        elif size != entry.size:
            raise AnalysisError(
                f"{directory}: {entry.name} has {entry.size} bytes, but the task that wrote it "
                f"counted {size}; another process is writing to the output"
            )
    if expected:
        raise AnalysisError(
            f"{directory}: a task wrote {min(expected)}, but the output does not contain it "
            f"({len(expected)} such files in all): the executors do not all see the same output, "
            "the listing is outdated, or another process is removing files"
        )
    directory.remove(orphans)
    # No reader has to wait for an attempt that is still writing.
    directory.sweep(datetime.max.replace(tzinfo=UTC))


def check_there(path: Path) -> None:
    """Raise `FlexwireError` if a directory does not exist for this process.

    Nobody would read a newly created directory: either the analysis is over, or this machine does
    not share the directory.
    """
    if not path.is_dir():
        raise FlexwireError(
            f"{path} does not exist; an output must be on a file system that the driver and every "
            "executor share, and must exist until the analysis ends"
        )


def write_there(directory: OutputDirectory, name: str, data: bytes) -> None:
    """Write a whole file for a task. Raises `FlexwireError` if the directory of the place is gone.

    An uncommitted attempt may still be running after the analysis is over.
    """
    if directory.path is not None:
        check_there(directory.path)
    directory.write(name, data)


def check_listed(directory: OutputDirectory, folder: str, listed: int, count: int) -> None:
    """Raise `StorageError` if fewer files are listed than tasks have written."""
    if listed < count:
        raise StorageError(
            f"expected {count} files in {folder}, but {listed} are listed: the listing is "
            "outdated, or another process is removing files",
            url=str(directory),
            tried="list",
        )
