"""Locks that allow a process to be forked while other threads hold them.

A forked process has a single thread. If another thread held a lock during the fork, the lock
remains locked in the child process. Code in the child process that requests the lock then waits
forever. `multiprocessing` forks on Linux up to Python 3.13, and some servers fork their workers.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["lock_over_forks"]


def lock_over_forks() -> AbstractContextManager[bool]:
    """Return a reentrant lock. A fork waits for the lock, so the lock is free in the new process.

    The data that the lock guards is then consistent in both processes. Create one lock per module,
    when the module is imported, because the lock is never removed. A fork acquires all these locks,
    in no particular order. A thread must therefore not request one of these locks while it holds
    another of them.
    """
    lock = RLock()
    # Windows does not support forks.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock
