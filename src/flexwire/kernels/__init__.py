"""Kernels: fast loops over bytes, in an ordinary extension that is written in Cython.

The kernels exist for speed alone, and an installation may lack them. Each ``.pyx`` is a module, and
each ``.pxd`` holds definitions that several modules share. All read the wire with the primitives of
`cursor.pxd`. They differ in where values go: into Python objects (`objects_*`, `record_objects_*`)
or into Arrow columns (`columns_*`, `records_*`); `packets`, `frames` and `pairing` serve captures.
A kernel accepts only input that it is sure of. It refuses everything else without a reason. The
reference executor in Python reads that input again and produces the error.

Laws of this room:

- A kernel produces no error message, and changes nothing before it refuses. Reason: there is one
  set of errors, and the reference continues where the kernel stopped. Test:
  `tests/kernels/test_bounds.py`.
- A length is compared before it is added (``count > end - at``), and before memory is taken.
  Reason: a sum could overflow. Tests: `tests/codec/test_boundaries.py`,
  `tests/columnar/test_bounds.py`.
- The numbers of the formats are in `flexwire.wire` and also in the kernels, and so are structs that
  Python fills. Reason: C cannot read a Python module. Test: `tests/kernels/test_numbers.py`.
- A kernel stores an object in its place as soon as the object exists, and untracks a container
  before it fills the container. Reason: releasing the root then releases everything, and other
  threads never see a half-filled list. Tests: `tests/kernels/test_interpreter.py`,
  `tests/kernels/test_no_memory.py`.
- Without a GIL, kernels hold what they read of lists, dicts and fields that other threads may have,
  and take turns at what they change. Reason: a borrowed reference may be released meanwhile. Test:
  `tests/kernels/test_free_threads.py`.
- Kernels use only their own memory. Reason: nobody would notice a mistake. Test:
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
    "this installation was built without them; install again from a wheel of this platform, or "
    "with a C compiler"
)
# The kernels that this process asked for and that were not built.
_MISSING: set[str] = set()


@dataclass(frozen=True, slots=True)
class KernelStatus:
    """Whether this process has kernels, and why; its text says both in one line."""

    compiled_by: Literal["Cython", "nothing"]
    """The tool that built the kernels; "nothing" if there are none."""
    level: None
    """Always None. Up to version 0.1 there were different kernels for each level of processors."""
    is_compiled: bool
    """True if there are kernels."""
    reason: str
    """The platform that the kernels were built for, or the reason why there are none."""

    def __str__(self) -> str:
        which = "kernels compiled by Cython" if self.is_compiled else "no kernels"
        return f"{which}: {self.reason}"


@cache
def load_kernel(name: str) -> Any:
    """Return a module of kernels; None if there are no kernels, and Python then does the work."""
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
    """Return whether this process asked for a kernel that was not built."""
    return bool(_MISSING)


def load_kernels() -> bool:
    """Load the kernels for messages now, which takes some milliseconds.

    Return whether there are any.

    There are none with ``FLEXWIRE_KERNELS=off`` in the environment, and none if flexwire was built
    without a compiler. flexwire then runs in Python, with the same results.
    `flexwire.kernel_status()` says why there are none.
    """
    return all(load_kernel(name) is not None for name in ("objects_read", "objects_write"))


def kernel_status() -> KernelStatus:
    """Return whether this process runs on kernels, or would, and why."""
    if is_off():
        return KernelStatus("nothing", None, is_compiled=False, reason="FLEXWIRE_KERNELS=off")
    try:
        module = import_module("flexwire.kernels.objects_read")
    except ModuleNotFoundError:
        return KernelStatus("nothing", None, is_compiled=False, reason=_NOT_BUILT)
    except ImportError as error:
        reason = f"they cannot be loaded: {error}"
        return KernelStatus("nothing", None, is_compiled=False, reason=reason)
    return KernelStatus("Cython", None, is_compiled=True, reason=f"built for {_platform(module)}")


def _platform(module: ModuleType) -> str:
    """Return the interpreter and platform of an extension, from its file name.

    >>> _platform(ModuleType("without a file"))
    'this interpreter'
    """
    _, _, tags = Path(getattr(module, "__file__", None) or "").name.partition(".")
    platform, _, suffix = tags.rpartition(".")
    return platform if platform and suffix else "this interpreter"


class _CallableModule(ModuleType):
    """A module that can be called: up to 0.1 ``flexwire.kernels()`` was `kernel_status`."""

    def __call__(self) -> KernelStatus:
        """Return whether this process runs on kernels, with a warning that the name has changed."""
        warnings.warn(
            "flexwire.kernels() is flexwire.kernel_status() now; "
            "the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return kernel_status()


sys.modules[__name__].__class__ = _CallableModule
