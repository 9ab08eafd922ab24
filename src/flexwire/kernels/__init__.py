"""Kernels: the loops over bytes, as an ordinary extension that is written in Cython, and optional.

A ``.pyx`` is a module, a ``.pxd`` what several of them share. All read the wire with the parts of
`cursor.pxd`, and differ in where values go: Python objects (`objects_*`, `record_objects_*`) or
Arrow columns (`columns_*`, `records_*`). `packets`, `frames` and `pairing` are those of captures.

A kernel takes only what it is sure of. Everything else it refuses without saying why; the reference
executor then reads it again and words the error. So without kernels all works too, and slower.
"""

from __future__ import annotations

import os
import sys
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


@dataclass(frozen=True, slots=True)
class Running:
    """Which kernels there are for this process, and why; its text says both in a line."""

    compiled_by: Literal["Cython", "nothing"]
    """What they were built with; nothing where there are none."""
    level: None
    """Always None. Up to version 0.1 there were kernels for each level of processors."""
    is_compiled: bool
    """Whether they are there."""
    reason: str
    """Where they are, or why there are none."""

    def __str__(self) -> str:
        found = "kernels compiled by Cython" if self.is_compiled else "no kernels"
        return f"{found}: {self.reason}"


class _Process:
    lacks_kernels = False


@cache
def extension(name: str) -> Any:
    """Return a module of kernels; None without kernels, and then the reference does it all."""
    if is_off():
        return None
    try:
        return import_module(f"flexwire.kernels.{name}")
    except ImportError:
        _Process.lacks_kernels = True
        return None


def is_off() -> bool:
    """Return whether the environment asks for no kernels (``FLEXWIRE_KERNELS=off``)."""
    return os.environ.get("FLEXWIRE_KERNELS") == _OFF


def lacks_kernels() -> bool:
    """Return whether a kernel was asked for in this process that was not built."""
    return _Process.lacks_kernels


def load_kernels() -> bool:
    """Load the kernels for messages now, in some milliseconds; returns whether there are any.

    There are none with ``FLEXWIRE_KERNELS=off`` in the environment, and where flexwire was built
    without a compiler; all works without them. `flexwire.kernels()` says why there are none.
    """
    return all(extension(one) is not None for one in ("objects_read", "objects_write"))


def running() -> Running:
    """Return which kernels this process runs on, or would, and why."""
    if is_off():
        return Running("nothing", None, is_compiled=False, reason="FLEXWIRE_KERNELS=off")
    try:
        module = import_module("flexwire.kernels.objects_read")
    except ModuleNotFoundError:
        return Running("nothing", None, is_compiled=False, reason=_NOT_BUILT)
    except ImportError as error:
        return Running("nothing", None, is_compiled=False, reason=f"they cannot be loaded: {error}")
    return Running("Cython", None, is_compiled=True, reason=f"built for {_interpreter(module)}")


def _interpreter(module: ModuleType) -> str:
    """Return what an extension was built for, as its file says: the interpreter and platform.

    >>> _interpreter(ModuleType("without a file"))
    'this interpreter'
    """
    parts = Path(getattr(module, "__file__", None) or "").name.split(".")
    return parts[1] if len(parts) > 2 else "this interpreter"


class _Room(ModuleType):
    """A module that can be called: `flexwire.kernels()` is what people type, and this its name."""

    def __call__(self) -> Running:
        """Return which kernels this process runs on, or would, and why."""
        return running()


sys.modules[__name__].__class__ = _Room
