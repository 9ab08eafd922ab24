"""Compiled kernels are loaded from object files: without numba, and only files that are whole."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from numba import cfunc, types

from flexwire.kernels import object_files as objects

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


class Kernel:
    """A kernel as numba gives it, with the code that a test wants."""

    def __init__(self, calls: str = "llvm.trap", *, cache_hits: int = 0) -> None:
        self.native_name = "calls"
        self.cache_hits = cache_hits
        self._calls = calls

    def inspect_llvm(self) -> str:
        assert not self.cache_hits, "there is none to inspect, and numba warns"
        return f"""
declare void @{self._calls}()
define i64 @calls() {{
  call void @{self._calls}()
  ret i64 0
}}
"""


def test_a_function_that_the_process_does_not_have_leaves_the_kernel_to_numba(
    tmp_path: Path,
) -> None:
    objects.keep(tmp_path, "calls.o", Kernel("no_such_function_anywhere"))
    assert objects.load(tmp_path, "calls.o") is None
    assert objects.is_left(tmp_path, "calls.o")
    objects.keep(tmp_path, "calls.o", Kernel())
    assert objects.load(tmp_path, "calls.o") is not None
    assert not objects.is_left(tmp_path, "calls.o")


def test_what_is_not_there_or_damaged_is_not_left_to_numba(kept: Path) -> None:
    assert not objects.is_left(kept, "add.o")
    (kept / "add.o").write_bytes(b"")
    assert not objects.is_left(kept, "add.o")
    assert not objects.is_left(kept, "other.o")


def test_an_object_file_without_the_kernel_is_none(tmp_path: Path) -> None:
    kernel = Kernel()
    kernel.native_name = "others"
    objects.keep(tmp_path, "calls.o", kernel)
    assert objects.load(tmp_path, "calls.o") is None


def test_a_kernel_from_numba_s_cache_is_not_inspected(tmp_path: Path) -> None:
    objects.keep(tmp_path, "calls.o", Kernel(cache_hits=1))
    assert not list(tmp_path.iterdir())


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path: Path) -> None:
    objects.keep(tmp_path / "missing", "calls.o", Kernel())
    # In a directory's stead no file can be put.
    (tmp_path / "calls.o" / "within").mkdir(parents=True)
    objects.keep(tmp_path, "calls.o", Kernel())
    assert [one.name for one in tmp_path.iterdir()] == ["calls.o"]


def test_threads_that_keep_the_same_kernel_do_not_disturb_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: objects.keep(tmp_path, "calls.o", Kernel()), range(200)))
    assert [one.name for one in tmp_path.iterdir()] == ["calls.o"]
    assert objects.load(tmp_path, "calls.o") is not None


def test_other_settings_of_numba_have_another_place(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {objects.toolchain()}
    assert objects.toolchain() in places
    for setting in ("1", "2"):
        monkeypatch.setenv("NUMBA_OPT", setting)
        places.add(objects.toolchain())
    assert len(places) == 3


@pytest.mark.parametrize("name", ["get_host_cpu_name", "get_host_cpu_features"])
def test_another_processor_has_another_place(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = objects.toolchain()
    binding = objects._binding()
    other = "other" if name == "get_host_cpu_name" else binding.FeatureMap({"other": True})
    monkeypatch.setattr(binding, name, lambda: other)
    assert objects.toolchain() != before


def test_another_version_of_llvmlite_or_numba_has_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [objects.toolchain()]
    monkeypatch.setattr("llvmlite.__version__", "0.0")
    places.append(objects.toolchain())
    (tmp_path / "_version.py").write_text("0.0")
    numba = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(objects, "find_spec", lambda _: numba)
    places.append(objects.toolchain())
    assert len(set(places)) == 3
