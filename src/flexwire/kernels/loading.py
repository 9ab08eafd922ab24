"""Whether this process runs on kernels: because they were asked for, or because they pay.

Loading them takes about 10 ms from a wheel, and 40 ms once numba has compiled them here. A process
that has spent about as long without them loads them by itself, and so never takes twice as long as
one that had known what was to come. Compiling takes many seconds, once a machine, and is done only
when asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from flexwire.kernels.cache import Kernels

# What Python's code decodes or encodes in about the time that loading takes, in bytes: loading what
# numba compiled here, and what a wheel brings.
PAYS = 1_000_000
PAYS_IN_WHEEL = 250_000


class _Process:
    """What a process knows of its kernels; an object, as what it has is found sooner there."""

    __slots__ = ("is_decided", "kernels", "work")

    def __init__(self) -> None:
        self.kernels: Kernels | None = None
        self.work = 0
        self.is_decided = False


PROCESS = _Process()


def load_kernels() -> bool:
    """Run on kernels from now on; gives whether there are any.

    It takes about 10 ms where a wheel brings them; where numba compiles them 40 ms, and many
    seconds the first time on a machine. Without either, with ``FLEXWIRE_KERNELS=off`` in the
    environment, or on another interpreter than CPython there are none, and all works without them.
    Which they are and why, `flexwire.kernels` says.
    """
    PROCESS.kernels = _loader().load()
    PROCESS.is_decided = True
    return PROCESS.kernels is not None


def kernels(work: int) -> Kernels | None:
    """Give the kernels if this process has them, or if they pay now.

    ``work`` is how many bytes are about to be read or written without them.
    """
    if not PROCESS.is_decided:
        PROCESS.work += work
        if PROCESS.work > (PAYS_IN_WHEEL if _is_in_wheel() else PAYS):
            # Once, whatever comes of it.
            PROCESS.is_decided = True
            loader = _loader()
            if loader.is_supported() and loader.is_compiled():
                PROCESS.kernels = loader.load()
    return PROCESS.kernels


@cache
def _is_in_wheel() -> bool:
    return Path(__file__).with_name("compiled").is_dir()


def _loader() -> ModuleType:
    # What it imports would slow down every start of a process.
    return import_module("flexwire.kernels.cache")
