"""What is linked into a wheel's library runs anywhere, shows one name, calls only what is there."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest
from llvmlite import binding
from numba import cfunc, types

from flexwire.kernels.machine import copy_memory
from tools import compile_kernels
from tools.emitting import object_file, target_machine, text
from tools.wheel_hook import LIBRARIES, TAG, CompiledKernels

_WORD = types.int64
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
LINUX = "x86_64-unknown-linux-gnu"
# What an ELF file says it is for.
_X86_64, _AARCH64 = 62, 183
# How it says that a call may go by a stub.
_PLT32 = 4


def divide(left: int, right: int) -> int:
    return left // right


def raising() -> Any:
    """Give a kernel that numba takes to raise."""
    return cfunc(_WORD(_WORD, _WORD))(divide)


def machine_of(content: bytes) -> int:
    return int.from_bytes(content[18:20], "little")


def test_a_kernel_is_found_by_its_name_and_runs() -> None:
    content = object_file(target_machine(LINUX, "x86-64", ""), raising(), "flexwire_divide")
    assert machine_of(content) == _X86_64
    engine: Any = binding.create_mcjit_compiler(
        binding.parse_assembly(""), binding.Target.from_triple(LINUX).create_target_machine()
    )
    engine.add_object_file(binding.ObjectFileRef.from_data(content))
    assert _CALL(engine.get_function_address("flexwire_divide"))(-7, 2) == -4


def symbols(content: bytes) -> tuple[set[str], set[str]]:
    """Give the names that an object file shows to others, and those that it asks others for."""
    (sections,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", content, sections + size * n) for n in range(count)
    ]
    table = next(one for one in headers if one[1] == 2)
    names = headers[table[6]][4]
    shown: set[str] = set()
    asked: set[str] = set()
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, section = struct.unpack_from("<IBBH", content, at)
        if info >> 4:
            end = content.index(0, names + name)
            (shown if section else asked).add(content[names + name : end].decode())
    return shown, asked


def test_nothing_else_is_shown_and_raising_asks_for_nothing_of_numba() -> None:
    kernel = raising()
    assert "numba_gil_ensure" in kernel.inspect_llvm()
    content = object_file(target_machine(LINUX, "x86-64", ""), kernel, "flexwire_divide")
    shown, asked = symbols(content)
    assert shown == {"flexwire_divide"}
    assert asked
    assert all(one.startswith("Py") for one in asked)


def relocations(content: bytes) -> set[int]:
    """Give the types of what the linker is to fill in."""
    (sections,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", content, sections + size * n) for n in range(count)
    ]
    tables = [one for one in headers if one[1] == 4 and one[6]]
    entries = [at for one in tables for at in range(one[4], one[4] + one[5], 24)]
    return {struct.unpack_from("<QQq", content, at)[1] & 0xFFFFFFFF for at in entries}


def move(target: int, source: int) -> int:
    copy_memory(target, source, source)
    return target // source


def test_calls_go_by_no_stub() -> None:
    # With stubs, objects were encoded an eighth slower than by what numba calls at once.
    kernel = cfunc(_WORD(_WORD, _WORD))(move)
    content = object_file(target_machine(LINUX, "x86-64", ""), kernel, "flexwire_move")
    assert "memmove" in symbols(content)[1]
    assert _PLT32 not in relocations(content)


def test_the_same_kernel_gives_the_same_bytes() -> None:
    machine, kernel = target_machine(LINUX, "x86-64", ""), raising()
    assert len({object_file(machine, kernel, "one") for _ in range(3)}) == 1


def test_code_of_this_machine_is_taken_to_another() -> None:
    machine = target_machine("aarch64-unknown-linux-gnu", "generic", "")
    assert machine_of(object_file(machine, raising(), "flexwire_divide")) == _AARCH64


def test_a_text_ends_with_a_zero() -> None:
    assert b"0123abcd\0" in text(
        target_machine(LINUX, "x86-64", ""), "flexwire_sources", "0123abcd"
    )


def test_what_neither_python_nor_libc_has_is_refused() -> None:
    compile_kernels.refuse_foreign(["PyList_New", "_Py_Dealloc", "memmove"])
    with pytest.raises(SystemExit, match="would call NRT_Free, exp"):
        compile_kernels.refuse_foreign(["NRT_Free", "PyList_New", "exp"])


def data_of(version: str) -> dict[str, Any]:
    data: dict[str, Any] = {"pure_python": True, "tag": "", "force_include": {}}
    hook: Any = CompiledKernels
    hook.initialize(object(), version, data)
    return data


def test_a_wheel_is_pure_unless_libraries_are_handed_to_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pure = data_of("standard")
    assert pure == {"pure_python": True, "tag": "", "force_include": {}}
    (tmp_path / "one.so").touch()
    (tmp_path / "one.txt").touch()
    monkeypatch.setenv(LIBRARIES, str(tmp_path))
    monkeypatch.setenv(TAG, "cp311-none-any")
    assert data_of("editable") == pure
    assert data_of("standard") == {
        "pure_python": False,
        "tag": "cp311-none-any",
        "force_include": {str(tmp_path / "one.so"): "flexwire/kernels/compiled/one.so"},
    }
