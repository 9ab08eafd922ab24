"""The compiled kernels, called so that other threads run meanwhile."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flexwire.native.loader import cache_directory, is_supported, keeping

_WORD = ctypes.c_int64
# What ctypes calls as this, it calls without the GIL.
_KERNEL = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD, _WORD)
# A kernel takes the address of a run's words, and two words that it ignores.
Kernel = Callable[[int, int, int], int]
# The kernels by the file and function that each is; numba loads a file's at once.
KERNELS = {
    "decode": ("kernels.reading", "decode"),
    "encode": ("kernels.writing", "encode"),
    "measure": ("kernels.writing", "measure"),
    "scan_records": ("record_kernels.scanning", "scan"),
    "read_records": ("record_kernels.reading", "read"),
    "write_records": ("record_kernels.writing", "write"),
}
ROOMS = tuple(Path(__file__).with_name(room) for room in ("kernels", "record_kernels"))
"""The directories of their files; those of records use some of the other."""


@cache
def kernel(name: str) -> Kernel | None:
    """Give a kernel, compiled (some seconds, once a machine) or from the cache.

    None where there are none, as `flexwire.native.loader` says: the reference executor does it all.
    """
    if not is_supported() or find_spec("numba") is None:
        return None
    file, function = KERNELS[name]
    with keeping(cache_directory(*ROOMS)):
        loaded: Any = import_module(f"flexwire.columnar.{file}")
    return _KERNEL(getattr(loaded, function).address)
