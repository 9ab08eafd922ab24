"""The kernels are loaded when all of them are there, from where nobody else can put code."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.kernels import cache as kernel_cache
from flexwire.kernels import object_files
from flexwire.kernels import sources as kernel_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.compiles

# One kernel of a file, as numba and the object file beside it keep it.
_LOAD = """
import sys
from flexwire.kernels import cache as kernel_cache
from flexwire.kernels import object_files
wanted = [("flexwire.kernels.records.bounding", "bound")]
assert all(kernel_cache.addresses(wanted))
print("numba" in sys.modules)
print(kernel_cache.cache_directory() / object_files.toolchain())
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a cache that is empty, and where the temporary directories are."""
    drop_temporary()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path / "cache" / "flexwire"
    monkeypatch.undo()
    drop_temporary()


def drop_temporary() -> None:
    if kernel_cache._temporary.cache_info().currsize:
        kernel_cache._temporary().cleanup()
        kernel_cache._temporary.cache_clear()


def load(home: Path, **settings: str) -> tuple[bool, Path]:
    """Load a kernel in a process of its own; gives whether it imported numba, and the place."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _LOAD],
        # Kernels that somebody left in the temporary directory would be found there.
        env={**os.environ, "XDG_CACHE_HOME": str(home), "TMPDIR": str(home), **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    compiled, place = done.stdout.splitlines()
    return compiled == "True", Path(place)


def test_some_of_the_kernels_are_not_taken_for_all(cache: Path) -> None:
    # As whoever was interrupted while compiling left it.
    (kernel_cache.cache_directory() / "flexwire.kernels.objects.reading.nbi").touch()
    assert cache.exists()
    assert not kernel_cache.is_compiled()


def test_kernels_of_other_settings_are_none_that_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert kernel_cache.load() is not None
    assert kernel_cache.is_compiled()
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert not kernel_cache.is_compiled()


def test_a_lost_or_damaged_object_file_is_made_anew_and_without_a_warning(tmp_path: Path) -> None:
    compiled, place = load(tmp_path)
    assert compiled
    assert load(tmp_path) == (False, place)
    (kept,) = place.glob("*.o")
    for damage in (kept.unlink, lambda: kept.write_bytes(kept.read_bytes()[:-1])):
        damage()
        assert load(tmp_path) == (True, place)
        assert load(tmp_path) == (False, place)


def test_processes_that_compile_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", _LOAD]
    running = [subprocess.Popen(command, env=environment, stdout=-1, stderr=-1) for _ in range(3)]
    said = [one.communicate(timeout=300)[1].decode() for one in running]
    # Each says why it waits, if it does, and nothing else.
    assert all(one.count("\n") <= 1 for one in said), said
    assert all(one.startswith("compiling kernels with numba") for one in said if one), said
    assert any(said)
    assert load(tmp_path)[0] is False


def test_a_directory_that_others_can_write_to_is_not_taken(cache: Path) -> None:
    taken = kernel_cache.cache_directory()
    assert taken.parent == cache
    for one in (taken, cache):
        assert one.stat().st_mode & 0o077 == 0
        one.chmod(0o770)
        assert not kernel_cache.cache_directory().is_relative_to(cache)
        one.chmod(0o700)
    assert kernel_cache.cache_directory() == taken


@pytest.mark.parametrize("what", ["stat", "lstat"])
def test_a_directory_or_a_link_of_another_user_is_not_taken(
    cache: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    for foreign in (kernel_cache.cache_directory(), cache):
        really = getattr(Path, what)

        def status(self: Path, foreign: Path = foreign, really: Any = really, **more: Any) -> Any:
            found = really(self, **more)
            # Of a link, `lstat` asks `stat`.
            if self != foreign or more.get("follow_symlinks") is False:
                return found
            return os.stat_result([*found[:4], 12_345, *found[5:]])

        monkeypatch.setattr(Path, what, status)
        assert not kernel_cache.cache_directory().is_relative_to(cache)
        monkeypatch.undo()
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
        assert kernel_cache.cache_directory().parent == cache


def test_what_root_compiled_is_taken_by_all_and_what_another_user_did_by_none(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [("flexwire.kernels.records.bounding", "bound")]
    monkeypatch.setattr(kernel_cache, "OVER_OBJECTS", wanted)
    root, found = os.getuid(), kernel_cache.addresses(wanted)
    assert len(found) == 1
    assert cache.exists()
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    monkeypatch.setattr(kernel_cache, "_compiled", lambda *_: [])
    for user, expected in ((54_321, False), (root, True)):
        monkeypatch.setattr(kernel_cache, "_ROOT", user)
        assert kernel_cache.is_compiled() is expected
        assert len(kernel_cache.addresses(wanted)) == expected
        # Nobody but root writes there.
        assert not kernel_cache.cache_directory().is_relative_to(cache)


def test_who_has_no_home_has_a_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert kernel_cache.cache_directory().parent == cache.parents[1] / f"flexwire-{os.getuid()}"
    assert not kernel_cache.is_compiled()


def test_where_nothing_can_be_written_there_are_no_kernels(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.write_text("a file in the way")
    monkeypatch.setattr(tempfile, "tempdir", str(cache.parent))
    with pytest.raises(OSError, match="Not a directory"):
        kernel_cache.cache_directory()
    assert not kernel_cache.is_compiled()
    assert kernel_cache.load.__wrapped__() is None


def test_one_temporary_directory_does_for_a_process(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "_parents", list)
    found = kernel_cache.cache_directory()
    assert found == kernel_cache.cache_directory()
    assert found.parents[1] == cache.parents[1]


def test_a_full_disk_is_no_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Any:
        raise OSError(28, "No space left on device")

    cache.mkdir(parents=True)
    monkeypatch.setattr(kernel_cache, "addresses", full)
    assert kernel_cache.load.__wrapped__() is None


def test_no_kernels_where_numba_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, expected in (("1", False), ("0", True), ("", True)):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", setting)
        assert kernel_cache.is_supported() is expected


def test_every_file_of_the_room_and_its_place_name_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernels" / "wire").mkdir(parents=True)
    (tmp_path / "wire").mkdir()
    monkeypatch.setattr(kernel_sources, "_ROOM", tmp_path / "kernels")
    for name in kernel_sources._NUMBERS:
        (tmp_path / name).write_text("0")
    sources = kernel_sources.sources.__wrapped__
    found = [sources()]
    for name in ("kernels/one.py", "kernels/wire/one.py", *kernel_sources._NUMBERS):
        (tmp_path / name).write_text("1")
        found.append(sources())
    (tmp_path / "kernels" / "one.py").rename(tmp_path / "kernels" / "two.py")
    found.append(sources())
    assert len(set(found)) == len(found)


def test_other_sources_have_another_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel_cache.digest.__wrapped__()
    monkeypatch.setattr(kernel_cache, "sources", lambda: "other")
    assert kernel_cache.digest.__wrapped__() != before


def test_another_python_or_machine_has_another_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [kernel_cache.digest.__wrapped__()]
    monkeypatch.setattr(sys, "version", "3.99")
    found.append(kernel_cache.digest.__wrapped__())
    monkeypatch.setattr("platform.machine", lambda: "other")
    found.append(kernel_cache.digest.__wrapped__())
    assert len(set(found)) == 3


def test_objects_are_below_the_directory_of_the_files(cache: Path) -> None:
    directory = kernel_cache.cache_directory()
    assert directory.is_relative_to(cache)
    kernel_cache.addresses([("flexwire.kernels.records.bounding", "bound")])
    assert [one.parent for one in cache.rglob("*.o")] == [directory / object_files.toolchain()]


def test_what_compiles_says_so_once_for_all_processes(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = [("flexwire.kernels.records.bounding", "bound")]
    code = f"from flexwire.kernels.cache import addresses; addresses({wanted})"
    both = [[sys.executable, "-c", code]] * 2
    running = [subprocess.Popen(one, stderr=subprocess.PIPE, text=True) for one in both]
    said = [one.communicate()[1] for one in running]
    assert [one.returncode for one in running] == [0, 0]
    for kept in cache.rglob("*.o"):
        kept.unlink()
    kernel_cache.addresses(wanted)
    words = "once for this machine: this installation brings no compiled kernels"
    assert sorted(one.count(words) for one in said) == [0, 1]
    assert not caplog.records
    # A run that was ended said so long ago.
    (told,) = cache.rglob("told")
    os.utime(told, (0, 0))
    for kept in cache.rglob("*.o"):
        kept.unlink()
    kernel_cache.addresses(wanted)
    assert [(one.name, words in one.message) for one in caplog.records] == [("flexwire", True)]


def test_threads_compile_one_after_the_other(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    config: Any = import_module("numba.core.config")
    before, running, most = config.CACHE_DIR, 0, 0

    def keep(*_: object) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.05)
        running -= 1

    monkeypatch.setattr(object_files, "load", lambda *_: None)
    monkeypatch.setattr(object_files, "keep", keep)
    wanted = [("flexwire.kernels.records.bounding", "bound")]
    directory = kernel_cache.cache_directory()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: kernel_cache.addresses(wanted), range(8)))
    assert directory.is_relative_to(cache)
    assert len(found) == 8
    assert all(one == found[0] for one in found)
    assert most == 1
    after = config.CACHE_DIR
    assert after == before


def test_only_what_is_left_to_numba_stays_in_its_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = kernel_cache.cache_directory()
    assert directory.is_relative_to(cache)
    index = directory / object_files.toolchain() / "kernels" / "bounding.nbi"
    index.parent.mkdir(parents=True)
    index.touch()
    monkeypatch.setattr(object_files, "load", lambda *_: None)
    monkeypatch.setattr(object_files, "keep", lambda *_: None)
    for left in (True, False):
        monkeypatch.setattr(object_files, "is_left", lambda *_, left=left: left)
        kernel_cache.addresses([("flexwire.kernels.records.bounding", "bound")])
        assert index.exists() is left
