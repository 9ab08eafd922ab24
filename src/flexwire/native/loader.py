"""Loads the kernels, from a cache that only these very files can have filled.

numba keeps compiled functions by the text of the file they stand in, and would not notice a change
in a file that one imports. So they are kept in a directory named after all the files of this room.
"""

from __future__ import annotations

import hashlib
import os
import platform
import struct
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Kernels:
    """The addresses of the compiled kernels."""

    decode: int
    read_struct: int
    encode: int
    write_struct: int


@cache
def load() -> Kernels | None:
    """Give the kernels, compiled (some seconds, once a machine) or from the cache (0.5 s).

    None where there is no numba, or the interpreter's objects are laid out in another way.
    """
    if not is_supported():
        return None
    try:
        config: Any = import_module("numba.core.config")
    except ImportError:
        return None
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_directory())
    try:
        reading: Any = import_module("flexwire.native.reading")
        writing: Any = import_module("flexwire.native.writing")
    finally:
        config.CACHE_DIR = before
    return Kernels(
        decode=reading.decode.address,
        read_struct=reading.read_struct.address,
        encode=writing.encode.address,
        write_struct=writing.write_struct.address,
    )


def is_supported() -> bool:
    """Whether kernels are wanted, and objects are laid out as they take them to be."""
    return (
        os.environ.get("FLEXWIRE_KERNELS") != "off"
        and platform.python_implementation() == "CPython"
        and sys.byteorder == "little"
        and struct.calcsize("P") == 8
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not sysconfig.get_config_var("Py_DEBUG")
        and not sysconfig.get_config_var("Py_TRACE_REFS")
    )


def is_compiled() -> bool:
    """Whether loading takes from the cache, and compiles nothing."""
    return any(cache_directory().rglob("*.nbi"))


def cache_directory() -> Path:
    """Give the directory for this version of the kernels; a temporary one if nothing else will."""
    name = f"kernels-{digest()}"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for parent in (
        Path(home) / "flexwire",
        Path(tempfile.gettempdir()) / f"flexwire-{os.getuid()}",
    ):
        wanted = parent / name
        try:
            wanted.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        # What others can write to, others can put machine code in.
        if os.access(wanted, os.W_OK) and wanted.stat().st_uid == os.getuid():
            return wanted
    return Path(tempfile.mkdtemp(prefix="flexwire-"))


@cache
def digest() -> str:
    """Name all that the compiled kernels depend on, in 16 hex digits."""
    sha = hashlib.sha256(f"{sys.version} {platform.machine()}".encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        sha.update(file.name.encode())
        sha.update(file.read_bytes())
    return sha.hexdigest()[:16]
