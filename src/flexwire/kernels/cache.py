"""Loads the kernels: the wheel's, or those that numba compiled here, from a cache.

numba keeps compiled functions by the text of the file they stand in, and would not notice a change
in a file that one imports. So they are kept in a directory named after all the files of this room,
as object files, and numba is imported only to compile.
"""

from __future__ import annotations

import hashlib
import os
import platform
import struct
import sys
import sysconfig
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.forks import lock_over_forks
from flexwire.kernels.library import find_library, look
from flexwire.kernels.sources import sources

if TYPE_CHECKING:
    import tempfile
    from collections.abc import Iterator, Sequence
    from types import ModuleType


# The kernels by their modules, in the order of `Kernels`.
OVER_OBJECTS = [
    ("flexwire.kernels.objects.reading", "decode"),
    ("flexwire.kernels.objects.reading", "read_struct"),
    ("flexwire.kernels.objects.reading", "decode_version"),
    ("flexwire.kernels.objects.writing", "encode"),
    ("flexwire.kernels.objects.writing", "write_struct"),
    ("flexwire.kernels.records.objects_reading", "read_records"),
    ("flexwire.kernels.records.objects_writing", "write_records"),
    ("flexwire.kernels.records.objects_writing", "write_batch"),
    ("flexwire.kernels.records.objects_batches", "read_fetch"),
    ("flexwire.kernels.records.objects_batches", "read_batch"),
    ("flexwire.kernels.records.objects_iterating", "iterate"),
    ("flexwire.kernels.records.objects_iterating", "next_batch"),
    ("flexwire.kernels.records.objects_iterating", "drop_iterator"),
]
_ROOT, _OTHERS_WRITE = 0, 0o022
# What an empty bytes object takes where its content stands at 32: that, and a zero at its end.
_BYTES = 33
# Seconds in which nobody needs to be told again.
_TOLD_FOR = 300
# One variable says for all threads where numba keeps what it compiles.
_LOCK = lock_over_forks()


# Compared as the one object that it is: a hash of all addresses would take as long as a message.
@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """The addresses of the compiled kernels."""

    decode: int
    read_struct: int
    decode_version: int
    encode: int
    write_struct: int
    read_records: int
    write_records: int
    write_batch: int
    read_fetch: int
    read_batch: int
    iterate: int
    next_batch: int
    drop_iterator: int


@cache
def load() -> Kernels | None:
    """Give the wheel's kernels, or numba's: from the cache (milliseconds) or compiled (seconds).

    None where there is neither, no place to compile them in, or the interpreter's objects are laid
    out in another way.
    """
    if not is_supported():
        return None
    with suppress(OSError):
        return Kernels(*addresses(OVER_OBJECTS))
    return None


def addresses(kernels: Sequence[tuple[str, str]]) -> list[int]:
    """Give the addresses of kernels, each by its module and its name there.

    Ask for the kernels of one module together: what is not kept is compiled module by module.
    Raises OSError where they are kept nowhere and nothing can be written.
    """
    if (library := find_library()) is not None:
        return [library.address(module, name) for module, name in kernels]
    files, below = _files(kernels), _object_files().toolchain()
    with _LOCK:
        tried = []
        for place in (one / below for one in _kept()):
            if (found := _loaded(place, files)) is not None:
                return found
            tried.append(place)
        place = cache_directory() / below
        found = None if place in tried else _loaded(place, files)
        return _compiled(place, kernels) if found is None else found


def _files(kernels: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{module}.{name}.o" for module, name in kernels]


def _loaded(place: Path, files: list[str]) -> list[int] | None:
    found = [one for file in files if (one := _object_files().load(place, file)) is not None]
    return found if len(found) == len(files) else None


def _compiled(place: Path, kernels: Sequence[tuple[str, str]]) -> list[int]:
    place.mkdir(mode=0o700, exist_ok=True)
    _say_why(place)
    files = _files(kernels)
    if not all(_object_files().is_left(place, one) for one in files):
        # An interrupted process left what numba keeps, from which no object file can be made.
        for index in place.rglob("*.nbi"):
            index.unlink(missing_ok=True)
    with keeping(place):
        made: list[Any] = [getattr(import_module(module), name) for module, name in kernels]
    for file, one in zip(files, made, strict=True):
        _object_files().keep(place, file, one)
    return [one.address for one in made]


def _say_why(place: Path) -> None:
    """Say why it waits, once for all processes that wait: to the logger `flexwire`."""
    told = place / "told"
    with suppress(FileNotFoundError):
        if time.time() - told.stat().st_mtime > _TOLD_FOR:
            # By a run that did not get to its end.
            told.unlink()
    try:
        told.touch(exist_ok=False)
    except FileExistsError:
        return
    # Only what compiles needs it. It is heard if no handler is set.
    logging = import_module("logging")
    logging.getLogger("flexwire").warning(
        "compiling kernels with numba, in up to a minute, once for this machine: %s", look()
    )


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
    """Whether kernels are wanted, can be had, and find objects laid out as they take them to be."""
    return lacking() is None


def lacking() -> str | None:
    """Say why there are no kernels here; None if the wheel brought them, or numba compiles them."""
    if os.environ.get("FLEXWIRE_KERNELS") == "off":
        return "FLEXWIRE_KERNELS=off"
    if not _lays_out_objects_so():
        return "kernels need a usual CPython of 64 bits, with its lock, on Linux or macOS"
    if find_library() is not None:
        return None
    if find_spec("numba") is None:
        return f"{look()}, and numba is not installed (pip install 'flexwire[fast]')"
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
        return f"{look()}, and numba compiles nothing: NUMBA_DISABLE_JIT"
    return None


def _lays_out_objects_so() -> bool:
    return (
        os.name == "posix"
        and platform.python_implementation() == "CPython"
        and sys.byteorder == "little"
        and struct.calcsize("P") == 8
        and bytes.__basicsize__ == _BYTES
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not sysconfig.get_config_var("Py_DEBUG")
        and not sysconfig.get_config_var("Py_TRACE_REFS")
    )


def is_compiled() -> bool:
    """Whether loading takes from the wheel or the cache, and compiles nothing."""
    if find_library() is not None:
        return True
    if find_spec("numba") is None:
        return False
    below, files = _object_files().toolchain(), _files(OVER_OBJECTS)
    return any(all((one / below / file).exists() for file in files) for one in _kept())


def cache_directory() -> Path:
    """Give the directory for this version of the kernels; a temporary one if nothing else will.

    Raises OSError where nothing can be written.
    """
    name = _name()
    for parent in _parents():
        wanted = parent / name
        with suppress(OSError):
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            wanted.mkdir(exist_ok=True, mode=0o700)
            mine = {os.getuid()}
            if os.access(wanted, os.W_OK) and _is_of(mine, parent) and _is_of(mine, wanted):
                return wanted
    wanted = Path(_temporary().name) / name
    wanted.mkdir(exist_ok=True)
    return wanted


def _kept() -> Iterator[Path]:
    """Give the directories that exist, even if only root may write to them, as in an image."""
    trusted = {os.getuid(), _ROOT}
    for parent in _parents():
        wanted = parent / _name()
        with suppress(OSError):
            if _is_of(trusted, parent) and _is_of(trusted, wanted):
                yield wanted


def _name() -> str:
    return f"kernels-{digest()}"


def _parents() -> Iterator[Path]:
    """Give where a cache may be, the best first."""
    # A user that the system does not know, as containers have them, has no home.
    with suppress(RuntimeError):
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flexwire"
    yield Path(_tempfile().gettempdir()) / f"flexwire-{os.getuid()}"


def _is_of(users: set[int], directory: Path) -> bool:
    """Whether only the users given can put something into a directory, or replace it.

    What others can write to, others can put machine code in; what a link points to, its owner says.
    """
    status = directory.stat()
    owners = {status.st_uid, directory.lstat().st_uid}
    return owners <= users and not status.st_mode & _OTHERS_WRITE


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """Make a directory that goes with the process."""
    made: tempfile.TemporaryDirectory[str] = _tempfile().TemporaryDirectory(
        prefix="flexwire-", ignore_cleanup_errors=True
    )
    return made


# Both would slow down a process that loads a wheel's kernels, and needs neither.
def _object_files() -> ModuleType:
    return import_module("flexwire.kernels.object_files")


def _tempfile() -> ModuleType:
    return import_module("tempfile")


@cache
def digest() -> str:
    """Name all that the compiled kernels depend on, in 16 hex digits."""
    made = f"{sys.version} {platform.machine()} {sources()}"
    return hashlib.sha256(made.encode()).hexdigest()[:16]
