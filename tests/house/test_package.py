"""The project's packages contain the right files, and its kernels compile."""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from setuptools import build_meta

from tools.package import backend, extension

ROOT = Path(__file__).parents[2]
# The sources of kernels, and files that exist only after a run.
_LEFT_OUT = {".pyx", ".pxd", ".h", ".so", ".pyc"}
_COMPILERS = ("cc", "gcc", "clang")


def setup(*arguments: str, **variables: str) -> str:
    """Run setup.py; return its output."""
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    setup("build_py", "--build-lib", str(tmp_path), FLEXWIRE_KERNELS="off")
    source = ROOT / "src"
    wanted = {
        one.relative_to(source)
        for one in (*source.glob("*.py"), *(source / "flexwire").rglob("*"))
        if one.is_file() and one.suffix not in _LEFT_OUT
    }
    assert {one.relative_to(tmp_path) for one in tmp_path.rglob("*") if one.is_file()} == wanted
    assert len(wanted) > 900


def test_every_kernel_s_source_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("FLEXWIRE_KERNELS", raising=False)
    named = {one.name for one in extension.extensions()}
    sources = (ROOT / "src" / "flexwire" / "kernels").rglob("*.pyx")
    assert named - {f"flexwire.kernels.{extension.SHARED}"} == {
        ".".join(one.relative_to(ROOT / "src").with_suffix("").parts) for one in sources
    }
    assert "flexwire.kernels.records_read" in named
    monkeypatch.setenv("FLEXWIRE_KERNELS", "off")
    assert extension.extensions() == []


def test_a_kind_of_build_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXWIRE_BUILD", "fast")
    with pytest.raises(SystemExit, match="one of release, trace, sanitized; got 'fast'"):
        extension.kind()


def test_a_machine_that_compiles_nothing_is_told_so_and_gets_no_kernels(tmp_path: Path) -> None:
    places = ("--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp"))
    # The command runs, but compiles nothing.
    said = setup("build_ext", *places, CC=f"{sys.executable} -c raise(SystemExit(1))")
    assert "flexwire is installed without kernels and runs slower: they need a C compiler" in said
    assert list(tmp_path.rglob("*.so")) == []


def test_zig_is_asked_for_only_where_there_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("FLEXWIRE_KERNELS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build_meta, "get_requires_for_build_wheel", lambda _: [])
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert backend.get_requires_for_build_wheel() == ["ziglang"]
    # There is no wheel for this kind of machine, so pip would fail.
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    assert backend.get_requires_for_build_wheel() == []
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("FLEXWIRE_KERNELS", "off")
    assert backend.get_requires_for_build_wheel() == []
    monkeypatch.delenv("FLEXWIRE_KERNELS")
    (tmp_path / _COMPILERS[1]).write_text("#!/bin/sh\n")
    (tmp_path / _COMPILERS[1]).chmod(0o755)
    assert backend.get_requires_for_build_wheel() == []


def test_zig_links_without_the_options_of_a_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = "gcc -pthread -shared -Wl,-O1 -Wl,-Bsymbolic-functions -g"
    monkeypatch.setattr(sysconfig, "get_config_var", {"LDSHARED": linked}.get)
    assert extension._linking("/a b/cc") == "'/a b/cc' -pthread -shared -g"


def test_a_wheel_says_nothing_of_the_rights_of_who_packed_it() -> None:
    def wheel(plain: int, program: int) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as taken:
            for name, mode in (("a.py", plain), ("k.so", program)):
                entry = zipfile.ZipInfo(name)
                entry.external_attr = (0o100000 | mode) << 16
                taken.writestr(entry, name * 9)
        return packed.getvalue()

    one = backend._normal_wheel(wheel(0o664, 0o775))
    assert one == backend._normal_wheel(wheel(0o600, 0o700)) == wheel(0o644, 0o755)
    with zipfile.ZipFile(io.BytesIO(one)) as given:
        assert given.read("a.py") == b"a.py" * 9
        assert [entry.external_attr >> 16 for entry in given.infolist()] == [0o100644, 0o100755]


def test_an_archive_of_the_sources_says_nothing_of_who_packed_it_and_when() -> None:
    def archive(names: list[str], time: int, user: str) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as taken:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.uname, member.mode = 3, time, user, 0o640
                taken.addfile(member, io.BytesIO(name.encode() * 3))
        return packed.getvalue()

    one = backend._normal(archive(["a", "b"], 1, "ann"), 7)
    assert one == backend._normal(archive(["b", "a"], 2, "bob"), 7)
    with tarfile.open(fileobj=io.BytesIO(one)) as given:
        contents = {member.name: given.extractfile(member) for member in given.getmembers()}
        assert {name: file and file.read() for name, file in contents.items()} == {
            "a": b"aaa",
            "b": b"bbb",
        }
