"""Build a Python for musl with zig from Debian's sources, because none can be downloaded here.

This Python includes everything that the tests of wheels need, but neither TLS nor a database. It
runs from the directory in which it was built. The musl library itself is Debian's package.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tools.debian import Programs
from tools.maven import ROOT

if TYPE_CHECKING:
    from pathlib import Path

KEPT: Final = ROOT / ".build" / "musl"
SOURCES: Final = Programs("python-sources", ("python3.11", "zlib"), are_sources=True)
VERSION: Final = "3.11"
# With the musl of Debian 12, 1.2.3, the wheel of cramjam ends the process; with 1.2.5 it works.
SUITE: Final = "trixie"
DEBIAN: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""How Debian names each processor."""
# A cross build cannot run the programs that determine these values.
_ANSWERS: Final = (
    "ac_cv_file__dev_ptmx=yes",
    "ac_cv_file__dev_ptc=no",
    "ac_cv_buggy_getaddrinfo=no",
)
# Python's build searches directories of this machine, whose headers are glibc's.
_PROGRAM: Final = """#!/bin/sh
for one do shift; case "$one" in -[IL]/usr/*) ;; *) set -- "$@" "$one" ;; esac; done
exec {command} "$@"
"""


def musl(processor: str) -> Path:
    """Return musl's library, which is also the program that loads other programs."""
    root = Programs("musl", ("musl",), architecture=DEBIAN[processor], suite=SUITE).bring()
    return next(root.rglob(f"ld-musl-{processor}.so.1"))


def python(processor: str) -> Path:
    """Return the interpreter for a processor; if it does not exist, build it in a few minutes."""
    place = KEPT / processor
    if not (place / "python").is_file():
        if f"{sys.version_info.major}.{sys.version_info.minor}" != VERSION:
            sys.exit(f"error: Python {VERSION} is built by a Python {VERSION}")
        making = KEPT / f"{processor}.making"
        shutil.rmtree(making, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
        making.mkdir(parents=True)
        _build(making, processor)
        making.rename(place)
    return place / "python"


def _build(place: Path, processor: str) -> None:
    """Build zlib and Python in a directory."""
    (sources,) = SOURCES.bring().glob("Python-*")
    (of_zlib,) = SOURCES.bring().glob("zlib-*")
    tools = _tools(place, processor)
    zlib = place / "zlib"
    shutil.copytree(of_zlib, zlib, symlinks=True)
    _run(["./configure", "--static"], zlib, {**tools, "CHOST": f"{processor}-linux-musl"})
    _run(["make", "libz.a"], zlib, tools)
    loader = musl(processor)
    configure = [
        str(sources / "configure"),
        f"--host={processor}-linux-musl",
        "--disable-test-modules",
    ]
    # Names of extensions end with the system that builds them, not with the one for which they are
    # built.
    configure += ["--build=x86_64-here-linux-musl", f"--with-build-python={sys.executable}"]
    configure += ["--without-ensurepip", *_ANSWERS]
    found = {
        "ZLIB_CFLAGS": f"-I{zlib}",
        "ZLIB_LIBS": f"-L{zlib} -lz",
        "READELF": str(shutil.which("readelf")),
    }
    _run(configure, place, {**tools, **found, "PKG_CONFIG": "false"})
    exported = f"LINKFORSHARED=-rdynamic -Wl,--dynamic-linker={loader}"
    _run(["make", f"-j{os.cpu_count()}", exported, "all"], place, tools)


def _tools(place: Path, processor: str) -> dict[str, str]:
    """Write wrapper programs for zig's tools; return their names for a build."""
    words = {
        "CC": f"cc -target {processor}-linux-musl -dynamic -Wno-date-time",
        "AR": "ar",
        "RANLIB": "ranlib",
    }
    found = {}
    for name, zig in words.items():
        program = place / name.lower()
        command = f"{shlex.join([sys.executable, '-m', 'ziglang'])} {zig}"
        program.write_text(_PROGRAM.format(command=command), encoding="utf-8")
        program.chmod(0o700)
        found[name] = str(program)
    return found


def _run(command: list[str], place: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=place,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"error: {command[0]}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
