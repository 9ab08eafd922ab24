"""Whether this process runs on kernels: because they were asked for, or because they pay.

Loading them takes about 50 ms, once they are compiled. A process that has spent about as long
without them loads them by itself, and so never takes twice as long as one that had known what was
to come. Compiling takes many seconds, once a machine, and is done only when asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from flexwire.kernels.cache import Kernels

# What Python's code decodes or encodes in about the time that loading takes.
PAYS = 1_000_000
"""Bytes."""


class _Process:
    kernels: Kernels | None = None
    work = 0
    is_decided = False


def load_kernels() -> bool:
    """Run on kernels from now on; gives whether there are any.

    It takes about 50 ms, and many seconds the first time on a machine. Without numba, with
    ``FLEXWIRE_KERNELS=off`` in the environment, or on another interpreter than CPython there are
    none, and all works without them.
    """
    _Process.kernels = _loader().load()
    _Process.is_decided = True
    return _Process.kernels is not None


def kernels(work: int) -> Kernels | None:
    """Give the kernels if this process has them, or if they pay now.

    ``work`` is how many bytes are about to be read or written without them.
    """
    if not _Process.is_decided:
        _Process.work += work
        if _Process.work > PAYS:
            # Once, whatever comes of it.
            _Process.is_decided = True
            loader = _loader()
            if loader.is_supported() and loader.is_compiled():
                _Process.kernels = loader.load()
    return _Process.kernels


def _loader() -> ModuleType:
    # What it imports would slow down every start of a process.
    return import_module("flexwire.kernels.cache")
