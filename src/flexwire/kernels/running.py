"""Which kernels a process runs on, and why: what `flexwire.kernels()` gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flexwire.kernels.cache import is_compiled, lacking
from flexwire.kernels.library import find_library, look


@dataclass(frozen=True, slots=True)
class Running:
    """Which kernels there are for this process, and why these; its text says both in a line."""

    compiled_by: Literal["wheel", "numba", "nothing"]
    """What compiled them: the wheel when it was built, numba on this machine, or nothing did."""
    level: str | None
    """The processors that the wheel's are for, as LLVM names them."""
    is_compiled: bool
    """Whether they are there; what numba is still to compile takes up to a minute."""
    reason: str

    def __str__(self) -> str:
        if self.compiled_by == "nothing":
            return f"no kernels: {self.reason}"
        return f"kernels compiled by {self.compiled_by}: {self.reason}"


def kernels() -> Running:
    """Say which kernels this process runs on, or would; it loads and compiles none by itself.

    A wheel of this platform brings them compiled; where none does, numba compiles them.
    """
    if (reason := lacking()) is not None:
        return Running("nothing", None, is_compiled=False, reason=reason)
    if (library := find_library()) is not None:
        which = f"for {library.level}, the newest level it has that this processor has too"
        return Running("wheel", library.level, is_compiled=True, reason=which)
    compiled = is_compiled()
    later = "kept from before" if compiled else "which takes up to a minute, once a machine"
    return Running("numba", None, is_compiled=compiled, reason=f"{look()}; {later}")
