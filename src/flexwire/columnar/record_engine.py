"""The compiled kernels for record batches, called so that other threads run meanwhile."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.native.loader import cache_directory, is_supported, keeping

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD = ctypes.c_int64
# What ctypes calls as this, it calls without the GIL.
_KERNEL = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD, _WORD)
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class RecordEngine:
    """The kernels. Each takes the address of a run's words, and two words that it ignores."""

    scan: Callable[[int, int, int], int]
    read: Callable[[int, int, int], int]
    write: Callable[[int, int, int], int]


@cache
def record_engine() -> RecordEngine | None:
    """Give the kernels, compiled (some seconds, once a machine) or from the cache; None without."""
    if not is_supported() or find_spec("numba") is None:
        return None
    with keeping(cache_directory(_HERE / "kernels", _HERE / "record_kernels")):
        scanning: Any = import_module("flexwire.columnar.record_kernels.scanning")
        reading: Any = import_module("flexwire.columnar.record_kernels.reading")
        writing: Any = import_module("flexwire.columnar.record_kernels.writing")
    return RecordEngine(
        scan=_KERNEL(scanning.scan.address),
        read=_KERNEL(reading.read.address),
        write=_KERNEL(writing.write.address),
    )
