"""The archive of Spark's classes is used only if it is whole, private, and made for this Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.spark import archive
from flexwire.spark.archive import find_archive, make_archive, with_archive
from flexwire.spark.java import find_java
from flexwire.spark.settings import SMALL_JAVA

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = "spark.driver.defaultJavaOptions"


# The archive of `flexwire warmup`, if any. Creating an archive takes twenty seconds of CPU time.
MADE = find_archive()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a cache directory that is initially empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    directory = tmp_path / "flexwire"
    directory.mkdir(mode=0o700)
    return directory


def keep(cache: Path, data: bytes = b"classes", size: int | None = None) -> Path:
    kept = cache / f"{archive._name()}-{len(data) if size is None else size}.jsa"
    kept.write_bytes(data)
    kept.chmod(0o600)
    return kept


def test_without_an_archive_settings_are_as_they_were() -> None:
    assert find_archive() is None
    assert with_archive(SMALL_JAVA) == SMALL_JAVA
    assert with_archive({}) == {}


def test_java_is_told_where_it_is_and_says_nothing_where_it_does_not_fit(cache: Path) -> None:
    kept = keep(cache)
    assert find_archive() == kept
    settings = with_archive({**SMALL_JAVA, "spark.ui.enabled": "false"})
    assert settings.keys() == {*SMALL_JAVA, "spark.ui.enabled"}
    options = settings[OPTIONS]
    assert options.startswith(f'{SMALL_JAVA[OPTIONS]} -XX:SharedArchiveFile="{kept}" ')
    assert "-Xshare:auto" in options
    assert with_archive({})[OPTIONS] == options.removeprefix(f"{SMALL_JAVA[OPTIONS]} ")


def test_what_is_cut_off_is_not_taken(cache: Path) -> None:
    keep(cache, b"class", size=7)
    assert find_archive() is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_what_others_can_write_is_not_taken(cache: Path, mode: int) -> None:
    kept = keep(cache)
    kept.chmod(mode)
    assert find_archive() is None
    kept.chmod(0o600)
    cache.chmod(0o700 | mode & 0o022)
    assert find_archive() is None
    cache.chmod(0o700)
    assert find_archive() == kept


def test_what_another_java_or_another_user_made_is_not_taken(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(cache)
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: 4711)
        other.setattr(archive, "_ROOT", 4711)
        assert find_archive() is None
    assert find_archive() == kept
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_archive() is None
    other_java = keep(cache)
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.99"\n')
    assert find_archive() is None
    shutil.rmtree(tmp_path / "jdk")
    assert find_archive() == other_java


def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the jars of a Spark installation, so that they can be changed."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    for name in ("one.jar", "two.jar"):
        (home / "jars" / name).write_bytes(b"classes")
    monkeypatch.setenv("SPARK_HOME", str(home))
    return home


def test_what_was_made_for_jars_that_were_installed_anew_is_not_taken(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Java would silently map nothing from this archive, and would start slowly each time.
    jar = spark_home(tmp_path, monkeypatch) / "jars" / "one.jar"
    kept = keep(cache)
    assert find_archive() == kept
    before = jar.stat()
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
    assert find_archive() is None
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find_archive() == kept
    jar.write_bytes(b"more classes")
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find_archive() is None
    jar.unlink()
    assert find_archive() is None


def test_what_is_made_takes_the_place_of_what_no_longer_fits(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dumped(draft: Path, _: object) -> bool:
        draft.write_bytes(b"newer classes")
        return True

    monkeypatch.setattr(archive, "_dumped", dumped)
    of_another_place = keep(cache)
    home = spark_home(tmp_path, monkeypatch)
    old = keep(cache)
    (home / "jars" / "one.jar").unlink()
    kept = make_archive(SMALL_JAVA)
    assert kept is not None
    assert kept.read_bytes() == b"newer classes"
    assert not old.exists()
    assert of_another_place.exists()


def test_where_java_leaves_none_there_is_none(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_dumped", lambda *_: False)
    assert make_archive(SMALL_JAVA) is None
    assert list(cache.iterdir()) == []


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "is_new", [pytest.param(False), pytest.param(True, marks=pytest.mark.cluster)]
)
def test_what_one_java_leaves_another_one_maps(
    cache: Path, monkeypatch: pytest.MonkeyPatch, *, is_new: bool
) -> None:
    # A timeout that even a busy machine meets.
    monkeypatch.setattr(archive, "_TIMEOUT_S", 3000)
    if MADE is not None and not is_new:
        shutil.copy2(MADE, cache / f"{archive._name()}-{MADE.stat().st_size}.jsa")
    kept = make_archive(SMALL_JAVA)
    java = find_java() / "bin" / "java"
    base = java.resolve().parents[1] / "lib" / "server" / "classes.jsa"
    if not base.exists():
        # Images from jlink contain no such archive, but every archive extends Java's own.
        assert kept is None
        return
    assert kept is not None
    assert [one.name for one in cache.glob("spark*")] == [kept.name]
    assert make_archive(SMALL_JAVA) == kept
    log = cache / "loaded"
    told = f"-Xlog:class+load,cds,class+path:file={log}:tags"
    logged = {OPTIONS: f"{SMALL_JAVA[OPTIONS]} {told}"}
    subprocess.run(
        [sys.executable, "-m", archive.__name__, with_archive(logged)[OPTIONS]], check=True
    )
    said = log.read_text().splitlines()
    loaded = [line for line in said if line.startswith("[class,load]")]
    mapped = [line for line in loaded if "shared objects file (top)" in line]
    # If Java did not map the archive, it printed the reason.
    assert len(mapped) > len(loaded) / 2 > 1000, said[:50]
