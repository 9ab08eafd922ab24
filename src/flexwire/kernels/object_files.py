"""Keeps compiled kernels as object files, which are loaded in milliseconds, and without numba.

Importing numba takes longer than everything else that a process does before its first message. What
an object file needs of its process is in libc and in Python, except what numba calls when a kernel
raises: kernels never do, so a trap stands for it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_SHA_SIZE = hashlib.sha256().digest_size
# What numba calls to raise, and to take the GIL before that.
RAISING = ("numba_", "NRT_")
TRAP = """
declare void @llvm.trap()
define hidden void @{}() {{
  call void @llvm.trap()
  unreachable
}}
"""


def load(directory: Path, name: str) -> int | None:
    """Give the address of a kernel that `keep` kept; None if there is no whole file of it."""
    kept = _read(directory, name)
    if not kept:
        return None
    symbol, _, content = kept.partition(b"\n")
    engine = _engine()
    engine.add_object_file(_binding().ObjectFileRef.from_data(content))
    address: int = engine.get_function_address(symbol.decode())
    return address or None


def is_left(directory: Path, name: str) -> bool:
    """Whether `keep` found that there can be no object file of a kernel: numba's cache has it."""
    return _read(directory, name) == b""


def keep(directory: Path, name: str, kernel: Any) -> None:
    """Keep a kernel that numba has compiled just now.

    One from numba's own cache cannot be kept; where nothing can be written, nothing is.
    """
    if kernel.cache_hits:
        return
    content = _object(kernel)
    # A file is there whole or not at all, even if other processes write it too.
    with suppress(OSError):
        file, new = tempfile.mkstemp(prefix=name, dir=directory)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(hashlib.sha256(content).digest() + content)
            Path(new).replace(directory / name)
        except OSError:
            Path(new).unlink(missing_ok=True)


def _read(directory: Path, name: str) -> bytes | None:
    """Give what a file keeps; None if there is no whole file."""
    try:
        kept = (directory / name).read_bytes()
    except OSError:
        return None
    sha, content = kept[:_SHA_SIZE], kept[_SHA_SIZE:]
    return content if hashlib.sha256(content).digest() == sha else None


def _object(kernel: Any) -> bytes:
    """Give a kernel's symbol and object file; empty if it calls what the process does not have."""
    module = _binding().parse_assembly(kernel.inspect_llvm())
    process = ctypes.CDLL(None)
    for one in [one.name for one in module.functions if one.is_declaration]:
        if one.startswith(RAISING):
            module.link_in(_binding().parse_assembly(TRAP.format(one)))
        elif not one.startswith("llvm.") and not hasattr(process, one):
            return b""
    content: bytes = kernel.native_name.encode() + b"\n" + _target_machine().emit_object(module)
    return content


def toolchain() -> str:
    """Name the directory for what numba and this processor make of the same kernels."""
    llvm, numba = _binding(), find_spec("numba")
    said = [
        Path(str(numba and numba.origin)).with_name("_version.py").read_bytes(),
        import_module("llvmlite").__version__.encode(),
        f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}".encode(),
        *(f"{name}={os.environ[name]}".encode() for name in sorted(_settings())),
    ]
    return hashlib.sha256(b"\n".join(said)).hexdigest()[:16]


def _settings() -> list[str]:
    return [name for name in os.environ if name.startswith("NUMBA_")]


@cache
def _binding() -> Any:
    llvm = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _target_machine() -> Any:
    llvm = _binding()
    # As numba does for code that runs where it was compiled.
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if platform.machine() in {"x86_64", "AMD64"} else "default",
        codemodel="jitdefault",
        jit=True,
    )


@cache
def _engine() -> Any:
    """Give what all kernels of the process are loaded into; never let go."""
    llvm = _binding()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
