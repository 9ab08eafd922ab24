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
# The kernels by the file that each stands in; numba loads a file's at once.
KERNELS = {"decode": "reading", "encode": "writing", "measure": "writing"}


@cache
def kernel(name: str) -> Kernel | None:
    """Give a kernel, compiled (some seconds, once a machine) or from the cache.

    None where there are none, as `flexwire.native.loader` says: the reference executor does it all.
    """
    if not is_supported() or find_spec("numba") is None:
        return None
    with keeping(cache_directory(Path(__file__).with_name("kernels"))):
        file: Any = import_module(f"flexwire.columnar.kernels.{KERNELS[name]}")
    return _KERNEL(getattr(file, name).address)
