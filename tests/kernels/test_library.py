"""What a wheel brings compiled is taken where it fits, and never where it is of other sources."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import flexwire
from flexwire.kernels import cache as kernel_cache
from flexwire.kernels import engine, library, loading, running
from flexwire.kernels.sources import sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

V4, V3, BASELINE = (one for one in library.LEVELS if one.machine == "x86_64")
ALL_FLAGS = "flags\t\t: " + " ".join(["fpu", *sorted(V3.flags), "avx512f"])
NEWEST_FLAGS = "flags\t\t: " + " ".join(["fpu", *sorted(V4.flags)])


class Loaded:
    """A library as it is when it was loaded."""

    made_of = sources()

    def __init__(self, path: Path, level: str) -> None:
        self.path, self.level = path, level
        self.sources = self.made_of

    def address(self, module: str, name: str) -> int:
        return hash((module, name)) & 0xFFFF


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the directory of libraries of a wheel, on a machine that has all that they take."""
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    for level in library.LEVELS:
        (compiled / level.file).touch()
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{ALL_FLAGS}\n\nprocessor\t: 1\n")
    monkeypatch.setattr(library, "_COMPILED", compiled)
    monkeypatch.setattr(library, "_FLAGS", tmp_path / "cpuinfo")
    monkeypatch.setattr(library, "Library", Loaded)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.delenv("FLEXWIRE_KERNELS", raising=False)
    library.look.cache_clear()
    yield compiled
    monkeypatch.undo()
    library.look.cache_clear()


def level() -> str:
    library.look.cache_clear()
    found = library.find_library()
    return found.level if found else str(library.look())


def test_the_newest_level_is_taken_that_the_processor_has(wheel: Path) -> None:
    assert level() == "x86-64-v3"
    (wheel.parent / "cpuinfo").write_text(ALL_FLAGS.replace("avx2", "avx"))
    assert level() == "x86-64"


@pytest.mark.parametrize("flag", sorted(V3.flags))
def test_a_processor_that_lacks_anything_of_a_level_lacks_it(wheel: Path, flag: str) -> None:
    kept = [one for one in ALL_FLAGS.split() if one != flag]
    (wheel.parent / "cpuinfo").write_text(" ".join(kept))
    assert level() == "x86-64"


def test_the_newest_level_is_of_processors_that_multiply_whole_vectors(wheel: Path) -> None:
    for lacking in V4.flags - V3.flags:
        kept = [one for one in NEWEST_FLAGS.split() if one != lacking]
        (wheel.parent / "cpuinfo").write_text(" ".join(kept))
        assert level() == "x86-64-v3"
    (wheel.parent / "cpuinfo").write_text(NEWEST_FLAGS)
    assert level() == "x86-64-v4"
    assert V3.flags < V4.flags


def test_where_nothing_is_said_of_the_processor_the_oldest_is_taken(wheel: Path) -> None:
    (wheel.parent / "cpuinfo").unlink()
    assert level() == "x86-64"
    (wheel.parent / "cpuinfo").write_text("processor : 0\n")
    assert level() == "x86-64"


def test_a_level_can_be_asked_for_and_none_that_is_not_there(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked, expected in (
        ("x86-64", "x86-64"),
        ("x86-64-v3", "x86-64-v3"),
        ("on", "x86-64-v3"),
        ("generic", "the compiled kernels are not for generic"),
        ("numba", "FLEXWIRE_KERNELS=numba"),
    ):
        monkeypatch.setenv("FLEXWIRE_KERNELS", asked)
        assert level() == expected
    (wheel / V3.file).unlink()
    monkeypatch.setenv("FLEXWIRE_KERNELS", "x86-64-v3")
    assert level() == "the compiled kernels are not for x86-64-v3"


@pytest.mark.parametrize(
    ("machine", "expected"),
    [("aarch64", "generic"), ("riscv64", "the compiled kernels are not for riscv64")],
)
def test_another_machine_has_its_own_or_none(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, machine: str, expected: str
) -> None:
    assert wheel.exists()
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert level() == expected


@pytest.mark.parametrize(("version", "fits"), [((3, 10), False), ((3, 13), True), ((3, 14), False)])
def test_an_interpreter_that_is_not_known_has_none(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], *, fits: bool
) -> None:
    assert wheel.exists()
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    assert (level() == "x86-64-v3") is fits


def test_a_library_of_other_sources_is_not_taken(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wheel.exists()
    monkeypatch.setattr(Loaded, "made_of", "0123456789abcdef")
    assert level() == f"{V3.file} was compiled from other sources"


def test_a_file_that_is_no_library_is_not_taken(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "Library", OF_MODULE)
    (wheel / V3.file).write_text("not one")
    assert level().startswith(f"{V3.file} cannot be loaded: ")


OF_MODULE = library.Library


def test_what_brings_none_says_so(wheel: Path) -> None:
    wheel.rename(wheel.with_name("gone"))
    assert level() == "this installation brings no compiled kernels"


def test_the_loader_takes_the_wheel_s_and_asks_numba_for_nothing(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wheel.exists()
    monkeypatch.setattr(kernel_cache, "find_spec", lambda _: None)
    monkeypatch.setattr(kernel_cache, "_object_files", lambda: pytest.fail("numba's"))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert kernel_cache.is_compiled()
    loaded = kernel_cache.load.__wrapped__()
    assert loaded is not None
    assert loaded.decode == Loaded.address(loaded, "flexwire.kernels.objects.reading", "decode")  # type: ignore[arg-type] # it asks nothing of it
    assert len(kernel_cache.addresses(engine.every_kernel())) == len(engine.every_kernel())
    monkeypatch.setenv("FLEXWIRE_KERNELS", "off")
    assert kernel_cache.load.__wrapped__() is None


def test_every_kernel_has_one_name_in_a_library() -> None:
    names = [library.symbol(*one) for one in engine.every_kernel()]
    assert len(set(names)) == len(names) == len(engine.every_kernel())


def test_a_process_is_told_which_kernels_it_runs_on_and_why(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = flexwire.kernels()
    assert (found.compiled_by, found.level, found.is_compiled) == ("wheel", "x86-64-v3", True)
    assert str(found).startswith("kernels compiled by wheel: for x86-64-v3, the newest")
    monkeypatch.setenv("FLEXWIRE_KERNELS", "numba")
    library.look.cache_clear()
    # As where it is installed, which it is not wherever these tests run.
    monkeypatch.setattr(kernel_cache, "find_spec", lambda _: object())
    monkeypatch.setattr(running, "is_compiled", lambda: True)
    found = flexwire.kernels()
    assert (found.compiled_by, found.level) == ("numba", None)
    assert str(found).startswith("kernels compiled by numba: FLEXWIRE_KERNELS=numba; ")
    wheel.rename(wheel.with_name("gone"))
    library.look.cache_clear()
    monkeypatch.setattr(running, "is_compiled", lambda: False)
    assert str(flexwire.kernels()).endswith("which takes up to a minute, once a machine")
    monkeypatch.setattr(kernel_cache, "find_spec", lambda _: None)
    assert str(flexwire.kernels()) == (
        "no kernels: this installation brings no compiled kernels, and numba is not installed "
        "(pip install 'flexwire[fast]')"
    )
    monkeypatch.setenv("FLEXWIRE_KERNELS", "off")
    assert str(flexwire.kernels()) == "no kernels: FLEXWIRE_KERNELS=off"


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("platform.python_implementation", lambda: "PyPy", "kernels need a usual CPython"),
        ("sysconfig.get_config_var", lambda name: name == "Py_GIL_DISABLED", "kernels need"),
    ],
)
def test_an_interpreter_with_other_objects_has_no_kernels(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, where: str, value: object, said: str
) -> None:
    assert wheel.exists()
    monkeypatch.setattr(where, value)
    assert flexwire.kernels().compiled_by == "nothing"
    assert flexwire.kernels().reason.startswith(said)


def test_what_a_wheel_brings_pays_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("kernels", None), ("work", 0), ("is_decided", False)):
        monkeypatch.setattr(loading.PROCESS, name, value)
    monkeypatch.setattr(loading, "_is_in_wheel", lambda: False)
    assert loading.kernels(loading.PAYS_IN_WHEEL + 1) is None
    assert not loading.PROCESS.is_decided
    monkeypatch.setattr(loading, "_is_in_wheel", lambda: True)
    assert loading.kernels(0) is not None
