"""Kernels: fast loops over bytes, compiled from Cython into an ordinary extension.

The kernels exist only for speed, and an installation may have none. Each ``.pyx`` file is a module,
and each ``.pxd`` file contains definitions that several modules share. All kernels read bytes with
the primitives of `cursor.pxd`. They differ in the results: Python objects (`objects_*`,
`record_objects_*`) or Arrow columns (`columns_*`, `records_*`). `packets`, `frames` and `pairing`
are for captures. A kernel accepts only input that it can process with certainty. It refuses all
other input without a reason. The reference executor in Python then reads that input again and
produces the error.

Laws of this package:

- A kernel produces no error message, and changes nothing before it refuses an input. Reason: there
  is one set of errors, and the reference continues where the kernel stopped. Test:
  `tests/kernels/test_bounds.py`.
- A length is compared before it is added (``count > end - at``), and before memory is allocated.
  Reason: a sum could overflow. Tests: `tests/codec/test_boundaries.py`,
  `tests/columnar/test_bounds.py`.
- The numbers of the formats are defined in `flexwire.wire` and again in the kernels. The same is
  true of structs that Python fills. Reason: C cannot read a Python module. Test:
  `tests/kernels/test_numbers.py`.
- A kernel stores an object in its place as soon as the object exists. It untracks a container
  before it fills the container. Reason: releasing the root then releases everything, and other
  threads never see a list that is only partly filled. Tests: `tests/kernels/test_interpreter.py`,
  `tests/kernels/test_no_memory.py`.
- Without a GIL, kernels hold references to everything that they read from lists, dicts and fields
  of other threads. They take turns when they change shared objects. Reason: a borrowed reference
  may be released in the meantime. Test: `tests/kernels/test_free_threads.py`.
- Kernels access only their own memory. Reason: a mistake would otherwise go unnoticed. Test:
  `tests/kernels/test_sanitized.py`; `tests/kernels/planted.py` plants a mistake in each kernel and
  finds it.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

_OFF = "off"
_NOT_BUILT = (
    "flexwire was built without kernels; install a wheel for this platform, or build again with a "
    "C compiler"
)
# The kernels that this process has requested and that were not built.
_MISSING: set[str] = set()


@dataclass(frozen=True, slots=True)
class KernelStatus:
    """The state of the kernels in this process, and its reason. `str` returns both in one line."""

    compiled_by: Literal["Cython", "nothing"]
    """The tool that built the kernels, or "nothing" if there are none."""
    level: None
    """Always None. Up to version 0.1 there were different kernels for different levels of
    processors."""
    is_compiled: bool
    """True if there are compiled kernels."""
    reason: str
    """The platform for which the kernels were built, or the reason why there are none."""

    def __str__(self) -> str:
        which = "kernels compiled by Cython" if self.is_compiled else "no kernels"
        return f"{which}: {self.reason}"


@cache
def load_kernel(name: str) -> Any:
    """Return a module of kernels, or None if there are no kernels and Python does the work."""
    if is_off():
        return None
    try:
        return import_module(f"flexwire.kernels.{name}")
    except ImportError:
        _MISSING.add(name)
        return None


def is_off() -> bool:
    """Return whether the environment turns kernels off (``FLEXWIRE_KERNELS=off``)."""
    return os.environ.get("FLEXWIRE_KERNELS") == _OFF


def lacks_kernels() -> bool:
    """Return whether this process has requested a kernel that was not built."""
    return bool(_MISSING)


def load_kernels() -> bool:
    """Load the kernels for messages now, which takes a few milliseconds.

    Returns whether there are any kernels.

    There are no kernels with ``FLEXWIRE_KERNELS=off`` in the environment, or if flexwire was built
    without a compiler. flexwire then runs in Python, with the same results.
    `flexwire.kernel_status()` says why there are no kernels.
    """
    return all(load_kernel(name) is not None for name in ("objects_read", "objects_write"))


def kernel_status() -> KernelStatus:
    """Return whether this process uses kernels (or would use them), and why."""
    if is_off():
        return KernelStatus("nothing", None, is_compiled=False, reason="FLEXWIRE_KERNELS=off")
    try:
        module = import_module("flexwire.kernels.objects_read")
    except ModuleNotFoundError:
        return KernelStatus("nothing", None, is_compiled=False, reason=_NOT_BUILT)
    except ImportError as error:
        reason = f"the kernels cannot be loaded: {error}"
        return KernelStatus("nothing", None, is_compiled=False, reason=reason)
    return KernelStatus("Cython", None, is_compiled=True, reason=f"built for {_platform(module)}")


def _platform(module: ModuleType) -> str:
    """Return the interpreter and the platform of an extension, from the name of its file.

    >>> _platform(ModuleType("without a file"))
    'this interpreter'
    """
    _, _, tags = Path(getattr(module, "__file__", None) or "").name.partition(".")
    platform, _, suffix = tags.rpartition(".")
    return platform if platform and suffix else "this interpreter"


class _CallableModule(ModuleType):
    """A callable module.

    Up to version 0.1, ``flexwire.kernels()`` was the name of `kernel_status`.
    """

    def __call__(self) -> KernelStatus:
        """Return whether this process uses kernels, with a warning that the name has changed."""
        warnings.warn(
            "flexwire.kernels() was renamed to flexwire.kernel_status(); "
            "the next release removes the old name",
            DeprecationWarning,
            stacklevel=2,
        )
        return kernel_status()


sys.modules[__name__].__class__ = _CallableModule
