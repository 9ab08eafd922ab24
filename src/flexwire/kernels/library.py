"""Loads the kernels that a platform wheel brings, compiled when it was built.

A shared library for each level of a machine's processors: the newest that this one has is loaded.
It calls what libc and Python have, and nothing of the version that Python is in: one library serves
all from 3.11 to 3.13. A library of other sources than those that stand here is not taken.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flexwire.kernels.sources import sources

# Where the wheel has them; there is no such directory in a pure one, nor in the source tree.
_COMPILED = Path(__file__).with_name("compiled")
# The interpreters whose lists and types are laid out as the kernels take them to be.
_PYTHONS = ((3, 11), (3, 13))
_FLAGS = Path("/proc/cpuinfo")
# The flags of the first processor stand in its first lines; others repeat them.
_FIRST_LINES = 8192
SOURCES_SYMBOL = "flexwire_sources"


class Level(NamedTuple):
    """What a library takes a processor to have."""

    machine: str
    """As `platform.machine` names it."""
    name: str
    """As LLVM names the level."""
    features: str = ""
    """What LLVM may use besides."""
    flags: frozenset[str] = frozenset()
    """What /proc/cpuinfo lists of a processor that has all of it."""

    @property
    def file(self) -> str:
        """The library's name in the wheel."""
        return f"{self.machine}-{self.name}.so"


# What the psABI asks of x86-64-v3, in Linux's words.
_V3 = frozenset({
    *("abm", "avx", "avx2", "bmi1", "bmi2", "cx16", "f16c", "fma", "lahf_lm", "movbe", "pni"),
    *("popcnt", "sse4_1", "sse4_2", "ssse3", "xsave"),
})  # fmt: skip
_V4 = _V3 | {f"avx512{one}" for one in ("bw", "cd", "dq", "f", "vl")}
# The newest first. Carry-less products are in no level, and crcs take them (`records/crc.py`), of
# whole vectors where they are that wide. What LLVM knows by the level, kernels are told here.
LEVELS = (
    Level(
        "x86_64",
        "x86-64-v4",
        "+avx512f,+pclmul,+sse4.2,+vpclmulqdq",
        _V4 | {"pclmulqdq", "vpclmulqdq"},
    ),
    Level(
        "x86_64",
        "x86-64-v3",
        "+pclmul,+sse4.2",
        _V3 | {"pclmulqdq"},
    ),
    Level("x86_64", "x86-64"),
    Level("aarch64", "generic"),
)


class Library:
    """A loaded library, and the level of processors that it is for."""

    def __init__(self, path: Path, level: str) -> None:
        self.level = level
        # What it calls is found now, or OSError says what is missing.
        self._library = ctypes.CDLL(str(path))
        self.sources = ctypes.string_at(self._address(SOURCES_SYMBOL)).decode()

    def address(self, module: str, name: str) -> int:
        """Give the address of a kernel, by its module and its name there."""
        return self._address(symbol(module, name))

    def _address(self, symbol: str) -> int:
        return ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value or 0


def symbol(module: str, name: str) -> str:
    """Give the name in a library of a kernel, by its module and its name there.

    >>> symbol("flexwire.kernels.objects.reading", "decode")
    'flexwire_objects_reading_decode'
    """
    return "_".join([*module.replace("flexwire.kernels", "flexwire").split("."), name])


def find_library() -> Library | None:
    """Give the library of this wheel and processor; None if there is none to take."""
    found = look()
    return found if isinstance(found, Library) else None


@cache
def look() -> Library | str:
    """Give the library of this wheel and processor, or why there is none to take."""
    if not _COMPILED.is_dir():
        return "this installation brings no compiled kernels"
    version = sys.version_info[:2]
    if not _PYTHONS[0] <= version <= _PYTHONS[1]:
        return f"the compiled kernels are not for Python {version[0]}.{version[1]}"
    wanted = os.environ.get("FLEXWIRE_KERNELS", "")
    if wanted == "numba":
        return "FLEXWIRE_KERNELS=numba"
    machine, flags = platform.machine(), _flags()
    for level in LEVELS:
        path = _COMPILED / level.file
        named = wanted == level.name if wanted in {one.name for one in LEVELS} else True
        if level.machine == machine and level.flags <= flags and named and path.is_file():
            return _loaded(path, level)
    return f"the compiled kernels are not for {wanted or machine}"


def _loaded(path: Path, level: Level) -> Library | str:
    try:
        library = Library(path, level.name)
    except (OSError, AttributeError) as error:
        return f"{path.name} cannot be loaded: {error}"
    if library.sources != sources():
        return f"{path.name} was compiled from other sources"
    return library


def _flags() -> frozenset[str]:
    """Give what the system says that this processor has; empty where it says nothing."""
    try:
        with _FLAGS.open(encoding="utf-8") as lines:
            said = lines.read(_FIRST_LINES)
    except OSError:
        return frozenset()
    for line in said.splitlines():
        name, _, flags = line.partition(":")
        if name.strip() == "flags":
            return frozenset(flags.split())
    return frozenset()
