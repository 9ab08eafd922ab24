"""The compiled kernels, called so that other threads run meanwhile."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from flexwire.kernels.cache import OVER_OBJECTS, addresses, is_supported

# Kernels that are an extension already, by the module and function that each is.
_BUILT = {
    "decode": ("columns_read", "decode"),
    "encode": ("columns_write", "encode"),
    "measure": ("columns_write", "measure"),
}
_WORD = ctypes.c_int64
# What ctypes calls as this, it calls without the GIL.
_KERNEL = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD, _WORD)
# A kernel takes the address of a run's words, and two words that it ignores.
Kernel = Callable[[int, int, int], int]
# The kernels by the module and function that each is; numba loads a module's at once.
KERNELS = {
    "inflate_batches": ("records.inflating", "inflate"),
    "bound_zstd": ("records.bounding", "bound"),
    "plan_frames": ("capture.framing", "plan"),
    "join_frames": ("capture.framing", "join"),
    "carry_frames": ("capture.framing", "carry"),
    "read_turns": ("capture.turns", "read"),
    "gather_bytes": ("capture.turns", "gather"),
    "drain_turns": ("capture.turns_waiting", "drain"),
    "restore_turns": ("capture.turns_waiting", "restore"),
    "scan_packets": ("capture.packets", "scan"),
    "sum_values": ("columns.hashing", "sum_values"),
}


class _Process:
    lacks_kernels = False


@cache
def kernel(name: str) -> Kernel | None:
    """Give a kernel: the wheel's, or numba's, from the cache or compiled (many seconds).

    None without kernels, as `flexwire.kernels.cache` says: the reference executor does it all.
    """
    found = _found(name)
    if found is None and os.environ.get("FLEXWIRE_KERNELS") != "off":
        _Process.lacks_kernels = True
    return found


@cache
def extension(name: str) -> Any:
    """Give a module of kernels; None without kernels, and then the reference does it all."""
    if os.environ.get("FLEXWIRE_KERNELS") == "off":
        return None
    try:
        return import_module(f"flexwire.kernels.{name}")
    except ImportError:
        _Process.lacks_kernels = True
        return None


def every_kernel() -> list[tuple[str, str]]:
    """Give all kernels there are, those over objects too, by module and name."""
    columns = [(f"flexwire.kernels.{module}", name) for module, name in KERNELS.values()]
    return [*OVER_OBJECTS, *columns]


def lacks_kernels() -> bool:
    """Whether a kernel was asked for in this process that it does not have, though it may."""
    return _Process.lacks_kernels


def _found(name: str) -> Kernel | None:
    if not is_supported():
        return None
    if name in _BUILT:
        room, function = _BUILT[name]
        if (module := extension(room)) is None:
            return None
        built: Callable[[int], int] = getattr(module, function)
        return lambda words, _unused, _also_unused: built(words)
    file, function = KERNELS[name]
    together = [one for where, one in KERNELS.values() if where == file]
    wanted = [(f"flexwire.kernels.{file}", one) for one in together]
    with suppress(OSError):
        found = addresses(wanted)
        return _KERNEL(found[together.index(function)])
    return None
