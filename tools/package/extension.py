"""Build the kernels, every ``.pyx`` below ``src/flexwire/kernels``, with Cython and a C compiler.

``setup.py`` passes this to setuptools. The compiler is the machine's (``CC``, cc, gcc or clang), or
zig from the package ``ziglang`` if the machine has none. On a machine that cannot compile, the
package is built without kernels, and a message states this. The same happens if
``FLEXWIRE_KERNELS=off`` is set. ``FLEXWIRE_BUILD`` names a kind of build that is not released:
``trace``, whose kernels a debugger can step through, or ``sanitized``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

KERNELS = Path("src", "flexwire", "kernels")
# A module of Cython's own code that all extensions share. Otherwise, each extension would contain
# it: it takes the longest to compile, and makes up three quarters of a kernel's bytes.
SHARED = "shared"
# Every extension needs these: the compiler, the linker, and Python's headers.
_PROBE = "#include <Python.h>\nint probe(void) { return (int)Py_REFCNT(Py_None); }\n"


class Kind(NamedTuple):
    """A kind of build."""

    compiled: tuple[str, ...]
    """The options of the compiler."""
    linked: tuple[str, ...] = ()
    """The options of the linker."""
    traced: bool = False
    """True if Python's tracing, and therefore a debugger, sees each line of a kernel."""


# A header has more functions than each kernel uses, and gcc cannot track a function's address.
_QUIET = ("-Wno-unused-function", "-Wno-maybe-uninitialized", "-Wno-unknown-warning-option")
# Tests put rows and objects next to protected pages, at addresses that no allocator would use.
_SANITIZERS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize=alignment",
    "-fno-sanitize-recover=undefined",
)
# No `-march`: at run time, the kernels check whether the processor has an instruction.
KINDS = {
    # Reads and writes are short: setting up vectors costs more than it saves.
    "release": Kind(("-O3", "-fno-tree-vectorize", "-g0")),
    "trace": Kind(("-O0", "-g"), traced=True),
    "sanitized": Kind(("-O0", "-g", "-fno-omit-frame-pointer", *_SANITIZERS), _SANITIZERS),
}


# How Cython compiles the kernels. The kernels check lengths and indices themselves, so Cython does
# not. Numbers wrap and divide as in C. Functions are C functions, without Python attributes.
_DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "binding": False,
    # Without a GIL, shared data is held or read under a lock (see objects.h).
    "freethreading_compatible": True,
}
_TRACING = {"linetrace": True, "binding": True}


def kind() -> Kind:
    """Return the kind of build that the environment requests."""
    name = os.environ.get("FLEXWIRE_BUILD") or "release"
    if name not in KINDS:
        sys.exit(f"error: FLEXWIRE_BUILD is one of {', '.join(KINDS)}; got {name!r}")
    return KINDS[name]


def place() -> str:
    """Return the separate directory for builds of this kind."""
    return f".build/setuptools/{os.environ.get('FLEXWIRE_BUILD') or 'release'}"


def extensions() -> list[Extension]:
    """Return an extension for each ``.pyx`` file, or none if kernels are off."""
    if os.environ.get("FLEXWIRE_KERNELS") == "off":
        return []
    chosen = kind()
    sources = [*sorted(KERNELS.rglob("*.pyx")), KERNELS / f"{SHARED}.c"]
    # If the compiler options change, everything is compiled again.
    depends = sorted(str(path) for path in (*KERNELS.rglob("*.h"), Path(__file__)))
    return [
        Extension(
            ".".join(source.relative_to("src").with_suffix("").parts),
            [str(source)],
            include_dirs=[str(KERNELS), "src"],
            define_macros=[("CYTHON_TRACE_NOGIL", "1")] if chosen.traced else [],
            extra_compile_args=_options(*chosen.compiled, *_QUIET),
            extra_link_args=list(chosen.linked),
            depends=depends,
        )
        for source in sources
    ]


def _options(*options: str) -> list[str]:
    """Return gcc and clang options in the form that this platform's compiler needs."""
    # clang-cl reads options as Microsoft's compiler does, unless they are marked as clang's.
    return [f"/clang:{option}" if sys.platform == "win32" else option for option in options]


def has_compiler() -> bool:
    """Return whether the machine itself has a C compiler."""
    if sys.platform == "win32":
        return shutil.which("clang-cl") is not None
    return "CC" in os.environ or any(shutil.which(name) for name in ("cc", "gcc", "clang"))


class Kernels(build_ext):  # type: ignore[misc]  # setuptools has no types
    """Compile the kernels in parallel, if this machine can compile anything."""

    extensions: list[Extension]

    def run(self) -> None:
        """Build with the available compiler."""
        with tempfile.TemporaryDirectory() as folder:
            if sys.platform != "win32" and not has_compiler() and find_spec("ziglang"):
                os.environ["CC"] = program = str(_zig(Path(folder)))
                os.environ.setdefault("LDSHARED", _linking(program))
                os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", folder)
            super().run()

    def build_extensions(self) -> None:
        """Compile all extensions, or none if even a one-line file cannot be compiled."""
        if self.extensions and (reason := self._lacking()) is not None:
            self.warn(f"flexwire is installed without kernels and runs slower: {reason}")
            self.extensions = []
        self._write()
        # The compiler is a separate process, so threads are enough to use all processors.
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(self.build_extension, self.extensions))

    def _write(self) -> None:
        """Write the C code of all extensions whose sources are newer, with Cython."""
        if not self.extensions:
            return
        # A build without kernels does not need Cython.
        cythonize: Any = import_module("Cython.Build").cythonize

        chosen = kind()
        written: list[Extension] = cythonize(
            self.extensions,
            force=self.force,
            quiet=not self.verbose,
            include_path=["src"],
            shared_utility_qualified_name=f"flexwire.kernels.{SHARED}",
            # This is a directory outside the sources.
            build_dir=self.build_temp,
            compiler_directives=_DIRECTIVES | (_TRACING if chosen.traced else {}),
        )
        for extension, cythonized in zip(self.extensions, written, strict=True):
            extension.sources, extension.depends = cythonized.sources, cythonized.depends

    def _lacking(self) -> str | None:
        """Return what is missing for building an extension; None if nothing is missing."""
        compiler: Any = self.compiler
        try:
            if compiler.compiler_type == "msvc":
                compiler.initialize()
                compiler.cc = shutil.which("clang-cl")
                if compiler.cc is None:
                    return "on Windows they are compiled by clang-cl, which is not in PATH"
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "probe.c").write_text(_PROBE, encoding="utf-8")
                objects = compiler.compile([f"{folder}/probe.c"], output_dir=folder)
                compiler.link_shared_object(objects, f"{folder}/probe.so")
        except (CCompilerError, ExecError, PlatformError) as error:
            return f"they need a C compiler and Python's headers ({error})"
        return None


def _linking(program: str) -> str:
    """Return the command that links an extension with a compiler other than Python's own.

    The command leaves out the linker options of Python itself, because zig's linker rejects some of
    Debian's.
    """
    _, *options = shlex.split(str(sysconfig.get_config_var("LDSHARED")))
    return shlex.join([program, *(one for one in options if not one.startswith("-Wl,"))])


def _zig(folder: Path) -> Path:
    """Write a program that is zig's C compiler; return its path."""
    program = folder / "cc"
    command = shlex.join([sys.executable, "-m", "ziglang", "cc"])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return program
