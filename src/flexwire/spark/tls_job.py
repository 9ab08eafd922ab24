"""Decrypt TLS captures with key logs in Spark tasks, for the tasks that survey and decode them.

```
key logs ─▶ sealed file ─▶ each task reads all captures, opens its share of the connections
             one-time key ─▶ with the task                                 ─▶ plain captures
```
A connection continues from file to file, and the key for a record depends on all records before it.
Therefore the connections, not the files, are divided among the tasks.

No file, plan, log or message contains the secrets in plain text. Spark may write the data of a task
to a disk, so only a key is sent with a task. This key belongs to one job, and is useless without
the file that it encrypts. The decrypted captures are in a private directory, which is removed at
the end.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flexwire.capture.reassembly.assembly import ConnectionShare
from flexwire.capture.tls.captures import (
    OpenedCaptures,
    open_sources,
    read_key_logs,
)
from flexwire.capture.tls.connections import TlsCounts
from flexwire.capture.tls.keys import load_primitives
from flexwire.errors import CaptureError, StorageError
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.manifest import write_there
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.storage.file_search import list_captures
from flexwire.storage.local import compress, decompress, make_private_directory
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from flexwire.capture.tls.keylog import KeyLog
    from flexwire.storage.input_file import InputFile

PREFIX: Final = ".flexwire-opened-"
LEAST_SHARE_BYTES: Final = 32 << 20
"""The smallest number of captured bytes per task. With fewer bytes, dividing the work saves no
time, because each task reads all captures.
"""
MOST_SHARES: Final = 8
"""The largest number of tasks. With more tasks, each task would mostly skip the packets of other
tasks. Skipping a packet takes a quarter of the time that reading it takes.
"""
_KEYS, _FILES = "_keys", "_files"
_CAPTURES: Final = "captures"
_KEY_BITS: Final = 256
_NONCE_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class SealedKeys:
    """A key log in an encrypted file, and the key of the file.

    Both are required to read the secrets.
    """

    directory: OutputDirectory
    key: bytes = field(repr=False)

    @classmethod
    def seal(cls, keys: KeyLog, directory: OutputDirectory) -> SealedKeys:
        """Write a key log to a directory, encrypted with a new key."""
        cipher = load_primitives().gcm
        key, nonce = cipher.generate_key(_KEY_BITS), os.urandom(_NONCE_BYTES)
        sealed = cipher(key).encrypt(nonce, pickle.dumps(keys, pickle.HIGHEST_PROTOCOL), None)
        write_there(directory, _KEYS, nonce + sealed)
        return cls(directory, key)

    def read(self) -> KeyLog:
        """Return the key log.

        Raises `StorageError` if the file is not the one that `seal` wrote.
        """
        data, primitives = self.directory.read(_KEYS), load_primitives()
        try:
            packed = primitives.gcm(self.key).decrypt(
                data[:_NONCE_BYTES], data[_NONCE_BYTES:], None
            )
        except (primitives.invalid, ValueError):
            reason = "the file was changed after the driver wrote it"
            raise StorageError(reason, url=str(self.directory.child(_KEYS))) from None
        # The key of this job encrypted these bytes.
        keys: KeyLog = pickle.loads(packed)  # noqa: S301 - we wrote these bytes ourselves
        return keys


def count_shares(total: int, tasks_at_once: int) -> int:
    """Return how many tasks share the connections of captures with ``total`` bytes."""
    return max(1, min(total // LEAST_SHARE_BYTES, tasks_at_once, MOST_SHARES))


@contextmanager
def open_captures(
    spark: SparkSession,
    out: OutputDirectory,
    files: list[InputFile],
    keys: tuple[str, ...],
    shares: int,
) -> Iterator[tuple[list[InputFile], OpenedCaptures]]:
    """Decrypt captures with key logs until the block ends, and report the connections' results.

    ``shares`` is the number of tasks. Raises `CaptureError` for a file that is not a capture.
    """
    if not files:
        raise CaptureError(
            "a key log needs captures, but the input contains no captures", source=keys[0]
        )
    key_logs = read_key_logs(keys)
    if out.path is not None:
        make_private_directory(out.path.parent)
    beside = None if out.path is None else out.path.parent
    scratch = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
    try:
        opened = _open(spark, OutputDirectory(str(scratch)), files, key_logs, shares)
        if not opened.paths:
            raise CaptureError("the captures contain no packets", source=files[0].name)
        yield list_captures(opened.paths), opened
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _open(
    spark: SparkSession,
    directory: OutputDirectory,
    files: list[InputFile],
    key_logs: KeyLog,
    shares: int,
) -> OpenedCaptures:
    sealed = SealedKeys.seal(key_logs, directory)
    # The data sent with tasks must be small. Spark would write larger data, including the key, to a
    # file.
    write_there(directory, _FILES, compress(pickle.dumps(files, pickle.HIGHEST_PROTOCOL)))
    committed = run_tasks(
        spark, shares, partial(_open_share, sealed, shares), TaskOutput(directory)
    )
    directory.remove([_KEYS, _FILES])
    counts, paths = TlsCounts(), []
    for task in committed:
        if task.value is not None:
            raise task.value
        name = _counts_name(task.number)
        # The task of this job wrote these bytes, in the analysis's own directory.
        counts.add(pickle.loads(decompress(directory.read(name))))  # noqa: S301 - we wrote these bytes ourselves
        paths += [Path(directory.url, file.name) for file in task.files]
    return OpenedCaptures(tuple(paths), counts)


def _open_share(
    sealed: SealedKeys, shares: int, number: int, task_output: TaskOutput
) -> CaptureError | None:
    """Decrypt a task's share of the connections. Return the error about the captures, if any."""
    begin_task()
    directory = task_output.directory
    # The driver wrote these bytes.
    files: list[InputFile] = _read_files(directory)
    try:
        opened = open_sources(
            files, task_output.scratch / "opened", sealed.read(), ConnectionShare(number, shares)
        )
    except CaptureError as error:
        # A second attempt would fail in the same way.
        return error
    # The driver has no use for a sample of the unreadable bytes.
    opened.counts.damaged = [replace(place, data=b"") for place in opened.counts.damaged]
    packed = pickle.dumps(opened.counts, pickle.HIGHEST_PROTOCOL)
    write_there(directory, _counts_name(number), compress(packed))
    for path in opened.paths:
        task_output.put(path, _CAPTURES, f"{number:06d}-{path.name}", 0)
    return None


def _read_files(directory: OutputDirectory) -> Any:
    return pickle.loads(decompress(directory.read(_FILES)))  # noqa: S301 - we wrote these bytes ourselves


def _counts_name(number: int) -> str:
    return f"_counts/{number:06d}"
