"""Kernels: what runs as fast as a C extension, compiled by numba, and optional.

A kernel runs a program, words in memory that say what the fields of a schema are, over bytes. All
kernels read the wire with the same parts, those of `wire`, and differ in where values go: Python
objects (`objects`), Arrow columns (`columns`), and for record batches either (`records`). A kernel
takes only what it is sure of. Everything else it refuses without saying why; the reference executor
then reads it again and words the error.

numba compiles them when a platform's wheel is built, and `library` loads them from it; elsewhere
once a machine, and `cache` and `object_files` keep them between processes. `loading` says when a
process runs on kernels, and `running` on which; `engine` calls those over columns; `machine` and
`memory` are the processor's side.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.kernels.running import Running


class _Room(ModuleType):
    """A module that can be called: `flexwire.kernels()` is what people type, and this its name."""

    def __call__(self) -> Running:
        """Say which kernels this process runs on, or would, and why."""
        # It would slow down every start of a process.
        from flexwire.kernels.running import kernels  # noqa: PLC0415 - see above

        return kernels()


sys.modules[__name__].__class__ = _Room
