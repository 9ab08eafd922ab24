"""The compiled kernels, called so that other threads run meanwhile."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from flexwire.native.loader import addresses, is_supported

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
    "inflate_lz4": ("record_kernels.inflating", "inflate"),
    "bound_zstd": ("record_kernels.bounding", "bound"),
    "read_records": ("record_kernels.reading", "read"),
    "write_records": ("record_kernels.writing", "write"),
    "seal_records": ("record_kernels.sealing", "seal"),
}
ROOMS = tuple(Path(__file__).with_name(room) for room in ("kernels", "record_kernels"))
"""The directories of their files; those of records use some of the other."""


@cache
def kernel(name: str) -> Kernel | None:
    """Give a kernel, compiled (many seconds, once a machine) or from the cache.

    None where there are none, as `flexwire.native.loader` says: the reference executor does it all.
    """
    if not is_supported() or find_spec("numba") is None:
        return None
    file, function = KERNELS[name]
    together = [one for where, one in KERNELS.values() if where == file]
    wanted = [(f"flexwire.columnar.{file}", one) for one in together]
    with suppress(OSError):
        found = addresses(wanted, *ROOMS)
        return _KERNEL(found[together.index(function)])
    return None
