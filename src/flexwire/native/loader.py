"""Loads the kernels, from a cache that only these very files can have filled.

numba keeps compiled functions by the text of the file they stand in, and would not notice a change
in a file that one imports. So they are kept in a directory named after all the files of this room,
as object files, and only who compiles imports numba.
"""

from __future__ import annotations

import hashlib
import os
import platform
import struct
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.native import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# The kernels by their files, in the order of `Kernels`.
_KERNELS = (
    ("reading", "decode"),
    ("reading", "read_struct"),
    ("writing", "encode"),
    ("writing", "write_struct"),
    ("records_reading", "read_records"),
    ("records_writing", "write_records"),
)
# A file beside the kernels: who was interrupted while compiling left some of them without it.
_COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Kernels:
    """The addresses of the compiled kernels."""

    decode: int
    read_struct: int
    encode: int
    write_struct: int
    read_records: int
    write_records: int


@cache
def load() -> Kernels | None:
    """Give the kernels, compiled (some seconds, once a machine) or from the cache (milliseconds).

    None where there is no numba, or the interpreter's objects are laid out in another way.
    """
    if not is_supported() or find_spec("numba") is None:
        return None
    directory = cache_directory()
    found = addresses(directory, [(f"flexwire.native.{file}", name) for file, name in _KERNELS])
    (directory / _COMPLETE).touch()
    return Kernels(*found)


def addresses(directory: Path, kernels: Sequence[tuple[str, str]]) -> list[int]:
    """Give the addresses of kernels, each by its module and its name there.

    Kernels of one module are asked for together: what is not kept is compiled by the module.
    """
    directory = objects.place(directory)
    files = [f"{module}.{name}.o" for module, name in kernels]
    found = [objects.load(directory, file) for file in files]
    if None not in found:
        return [one for one in found if one is not None]
    with keeping(directory):
        made: list[Any] = [getattr(import_module(module), name) for module, name in kernels]
    for file, one in zip(files, made, strict=True):
        objects.keep(directory, file, one)
    return [one.address for one in made]


@contextmanager
def keeping(directory: Path) -> Iterator[None]:
    """Have the kernels that are imported meanwhile taken from a directory, or kept there."""
    config: Any = import_module("numba.core.config")
    before = config.CACHE_DIR
    config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def is_supported() -> bool:
    """Whether kernels are wanted, and objects are laid out as they take them to be."""
    return (
        os.environ.get("FLEXWIRE_KERNELS") != "off"
        and os.name == "posix"
        and platform.python_implementation() == "CPython"
        and sys.byteorder == "little"
        and struct.calcsize("P") == 8
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not sysconfig.get_config_var("Py_DEBUG")
        and not sysconfig.get_config_var("Py_TRACE_REFS")
    )


def is_compiled() -> bool:
    """Whether loading takes from the cache, and compiles nothing."""
    return (cache_directory() / _COMPLETE).exists()


def cache_directory(*rooms: Path) -> Path:
    """Give the directory for this version of the kernels; a temporary one if nothing else will.

    ``rooms`` are directories of further kernels, that stand on those of this room.
    """
    name = f"kernels-{digest(*rooms)}"
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
        owners = {wanted.stat().st_uid, parent.stat().st_uid}
        if os.access(wanted, os.W_OK) and owners == {os.getuid()}:
            return wanted
    return Path(tempfile.mkdtemp(prefix="flexwire-"))


@cache
def digest(*rooms: Path) -> str:
    """Name all that the compiled kernels depend on, in 16 hex digits."""
    sha = hashlib.sha256(f"{sys.version} {platform.machine()}".encode())
    for room in (Path(__file__).parent, *rooms):
        for file in sorted(room.glob("*.py")):
            sha.update(file.name.encode())
            sha.update(file.read_bytes())
    return sha.hexdigest()[:16]
