"""Compiled kernels are loaded from object files: without numba, and only files that are whole."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest
from numba import cfunc, types

from flexwire.native import objects

if TYPE_CHECKING:
    from pathlib import Path

_WORD = types.int64
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def add(left: int, right: int) -> int:
    return left + 3 * right


def divide(left: int, right: int) -> int:
    return left // right


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    objects.keep(tmp_path, "add.o", cfunc(_WORD(_WORD, _WORD))(add))
    return tmp_path


def test_what_is_kept_is_loaded(kept: Path) -> None:
    address = objects.load(kept, "add.o")
    assert address is not None
    assert _CALL(address)(4, 5) == 19


def test_what_calls_numba_where_it_raises_is_loaded_too(tmp_path: Path) -> None:
    objects.keep(tmp_path, "divide.o", cfunc(_WORD(_WORD, _WORD))(divide))
    address = objects.load(tmp_path, "divide.o")
    assert address is not None
    assert _CALL(address)(-7, 2) == -4


def test_nothing_is_left_beside_what_is_kept(kept: Path) -> None:
    assert [one.name for one in kept.iterdir()] == ["add.o"]


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    assert objects.load(tmp_path, "add.o") is None


@pytest.mark.parametrize("place", [0, 31, 32, 40, 500, -1])
def test_a_file_with_a_changed_byte_is_none(kept: Path, place: int) -> None:
    content = bytearray((kept / "add.o").read_bytes())
    content[place] ^= 1
    (kept / "add.o").write_bytes(content)
    assert objects.load(kept, "add.o") is None


@pytest.mark.parametrize("size", [0, 31, 32, 33, 500])
def test_a_file_cut_off_is_none(kept: Path, size: int) -> None:
    (kept / "add.o").write_bytes((kept / "add.o").read_bytes()[:size])
    assert objects.load(kept, "add.o") is None


def test_a_function_that_the_process_does_not_have_is_not_kept(tmp_path: Path) -> None:
    class Foreign:
        native_name = "calls"

        def inspect_llvm(self) -> str:
            return """
declare i64 @no_such_function_anywhere()
define i64 @calls() {
  %found = call i64 @no_such_function_anywhere()
  ret i64 %found
}
"""

    objects.keep(tmp_path, "calls.o", Foreign())
    assert not list(tmp_path.iterdir())


def test_other_settings_of_numba_have_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = objects.place(tmp_path)
    assert objects.place(tmp_path) == before
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert objects.place(tmp_path) != before
