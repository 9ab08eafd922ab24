"""``python -m tools.compile_kernels NAME OUT``: compiles all kernels into one shared library.

numba compiles them, for a level of processors and not for this one; LLVM makes object files of
them, which the machine's C compiler links. The same sources, numba and LLVM give the same bytes.
Run as a program of its own, because numba reads once in a process what it compiles for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from flexwire.kernels.library import LEVELS, SOURCES_SYMBOL, Level, symbol
from flexwire.kernels.sources import sources

# What a library may call besides Python: these are in every libc since long.
LIBC = {"memcmp", "memcpy", "memmove", "memset"}
# The linker and nm for a machine that is not this one, as Debian names them.
_PREFIXES = {"aarch64": "aarch64-linux-gnu-"}
_TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
# No address in it depends on the process, no time or path of the build is in it, nothing in it is
# both written and run, and all that it calls is found when it is loaded or it is not loaded at all.
_LINK = ("-shared", "-s", "--build-id=none")
_LINK_Z = ("text", "now", "relro", "noexecstack")


def main(name: str, out: Path) -> None:
    """Compile for the level whose library has that name, into a file."""
    level = next(one for one in LEVELS if one.file == name)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        os.environ.update(NUMBA_CPU_NAME=name_for_numba(level), NUMBA_CPU_FEATURES=level.features)
        objects = _compiled(level, place)
        prefix = _PREFIXES.get(level.machine, "") if os.uname().machine != level.machine else ""
        command = [*linker(prefix), "-o", str(out), *objects]
        subprocess.run(command, cwd=place, check=True)
        refuse_foreign(calls(out, prefix))


def name_for_numba(level: Level) -> str:
    """Give the processor that numba compiles for; LLVM then takes its code to another machine."""
    return level.name if level.machine == os.uname().machine else "x86-64"


def linker(prefix: str) -> list[str]:
    """Give the command that links: this machine's compiler, or the linker of another machine."""
    if prefix:
        return [f"{prefix}ld", *_LINK, *(part for one in _LINK_Z for part in ("-z", one))]
    asked = [f"-Wl,{one}" if one.startswith("--") else one for one in _LINK]
    return [os.environ.get("CC", "cc"), "-nostdlib", *asked, *(f"-Wl,-z,{one}" for one in _LINK_Z)]


def calls(library: Path, prefix: str = "") -> list[str]:
    """Give the names of all that a library calls outside of itself."""
    asked = ("--dynamic", "--undefined-only", "--format=just-symbols")
    command = [f"{prefix}nm", *asked, str(library)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(one.partition("@")[0] for one in said.split())


def refuse_foreign(called: list[str]) -> None:
    """Raise SystemExit for what a library would call that neither Python nor every libc has."""
    foreign = [one for one in called if one not in LIBC and not one.startswith(("Py", "_Py"))]
    if foreign:
        sys.exit(f"error: the kernels would call {', '.join(foreign)}")


def _compiled(level: Level, place: Path) -> list[str]:
    """Compile each kernel into an object file; gives their names."""
    # Imported here, as numba reads the environment when it is.
    keeping = import_module("flexwire.kernels.cache").keeping
    emitting = import_module("tools.emitting")
    machine = emitting.target_machine(_TRIPLES[level.machine], level.name, level.features)
    files = []
    every = import_module("flexwire.kernels.engine").every_kernel()
    with keeping(place):
        kernels: list[tuple[str, Any]] = [
            (symbol(module, name), getattr(import_module(module), name)) for module, name in every
        ]
    for called, kernel in kernels:
        (place / f"{called}.o").write_bytes(emitting.object_file(machine, kernel, called))
        files.append(f"{called}.o")
    (place / "sources.o").write_bytes(emitting.text(machine, SOURCES_SYMBOL, sources()))
    return [*files, "sources.o"]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).absolute())
