"""Locks that a process may be forked with while other threads hold them.

A forked process has one thread. If another thread held a lock, the lock stays locked in the child
forever, and code that asks for it there waits forever. `multiprocessing` forks on Linux up to
Python 3.13, and so do servers that fork their workers.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["lock_over_forks"]


def lock_over_forks() -> AbstractContextManager[bool]:
    """Return a reentrant lock for which a fork waits, so that it is free in the new process.

    The data that the lock guards is then consistent in both processes. Make one for each module, at
    import: it is never forgotten. A fork takes all of these locks, in no order that one can rely
    on. So no thread may ask for one while it holds another.
    """
    lock = RLock()
    # Windows has no fork.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock
