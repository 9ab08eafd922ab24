"""Spark's working directory on this machine, which only its owner can read.

Spark's shuffle files contain values from tables: names of groups, topics and clients. Spark creates
these files below the temporary directory, readable by everyone. A process that starts Spark
therefore creates a directory that only its user can enter. Java and Python write all files of the
analysis below that directory. A process that is killed leaves its directory, and the next process
removes it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

PREFIX: Final = "flexwire-spark-"
LOCAL_DIRS: Final = "SPARK_LOCAL_DIRS"
"""The environment variable that specifies where Spark creates its directories. The variable
overrides ``spark.local.dir``, and also applies in Python workers.
"""
_LAUNCHER: Final = "SPARK_LAUNCHER_OPTS"
_LOCK: Final = "in-use"
# Java stores the counters for `jps` in a file in the temporary directory.
_NO_COUNTERS: Final = "-XX:+PerfDisableSharedMem"


@cache
def scratch_directory() -> Path:
    """Return this process's directory, which is created on first use.

    The directory is in the first directory of ``SPARK_LOCAL_DIRS`` if that is set, and otherwise
    in the directory of Python's temporary files (``TMPDIR``). The directory is removed when the
    process ends.
    """
    base = local_directory()
    sweep(base)
    directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    # The lock file remains open as long as the process is alive. The lock shows other processes
    # that this process is alive.
    lock = os.open(directory / _LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def local_directory() -> Path:
    """Return the first of Spark's working directories, in a driver or in a worker."""
    return Path(os.environ.get(LOCAL_DIRS, "").split(",")[0] or tempfile.gettempdir())


def keep_in(directory: Path) -> list[str]:
    """Make the next Java process write below a directory. Return the options for this."""
    for name in ("blocks", "java"):
        (directory / name).mkdir(mode=0o700, exist_ok=True)
    os.environ[LOCAL_DIRS] = str(directory / "blocks")
    # Spark first starts one Java process to build the command line of the other.
    os.environ.setdefault(_LAUNCHER, _NO_COUNTERS)
    return [_NO_COUNTERS, f"-Djava.io.tmpdir={directory / 'java'}"]


def sweep(base: Path) -> None:
    """Remove the directories of processes that have ended, except those of other users."""
    with suppress(OSError):
        for directory in base.glob(f"{PREFIX}*"):
            if _is_ours(directory) and _is_left(directory):
                shutil.rmtree(directory, ignore_errors=True)


def _is_ours(directory: Path) -> bool:
    try:
        status = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _is_left(directory: Path) -> bool:
    """Return whether no process holds the lock of a directory.

    A directory without a lock is being created at this moment.
    """
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(lock)
