"""Specs are read from files, directories, source trees, jars, git revisions and releases."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.sources import LARGEST, SpecFile, read_sources
from flexwire.specs.lint.config import Config
from flexwire.specs.lint.lint import lint
from flexwire.versions import Versions
from tests.searching import in_make_long

ENDS = catalog().releases[0], catalog().releases[-1]
BETWEEN = catalog().releases[1:-1]


def spec(name: str, api_key: int = 1) -> str:
    kind = "response" if name.endswith("Response") else "request"
    return json.dumps(
        {
            "name": name,
            "type": kind,
            "apiKey": api_key,
            "validVersions": "0",
            "flexibleVersions": "0+",
            "fields": [],
        }
    )


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


FILES = {
    "clients/FooRequest.json": spec("FooRequest"),
    "clients/FooResponse.json": spec("FooResponse"),
    "clients/README.md": "no spec",
    ".hidden/Bar.json": "{",
    "clients/.#FooRequest.json": "{",
    "test/BarRequest.json": spec("BarRequest"),
}


def names(sources: list[SpecFile]) -> list[tuple[str, bool]]:
    return [(Path(one.path).name, one.whole) for one in sources]


def rules(*paths: str) -> list[str]:
    return [one.rule for one in lint(read_sources(paths), Config()).findings]


def test_a_directory_is_read_with_all_those_in_it(tmp_path: Path) -> None:
    root = tree(tmp_path, FILES)
    assert names(read_sources([str(root)])) == [
        ("FooRequest.json", True),
        ("FooResponse.json", True),
        ("BarRequest.json", True),
    ]
    # Api key 1 occurs twice, but once in each directory; BarRequest's directory contains no
    # response.
    assert rules(str(root)) == ["PARTNER_MISSING"]
    assert rules(str(root / "clients")) == []


def test_a_file_alone_misses_no_partner(tmp_path: Path) -> None:
    root = tree(tmp_path, FILES)
    request = str(root / "clients/FooRequest.json")
    assert names(read_sources([request, request])) == [("FooRequest.json", False)]
    assert rules(request) == []
    # With its directory, the file is part of the whole, whatever the directory is called.
    for other in (root / "clients", root / "test" / ".." / "clients"):
        for paths in ([request, str(other)], [str(other), request]):
            assert names(read_sources(paths)) == [
                ("FooRequest.json", True),
                ("FooResponse.json", True),
            ]


def test_a_jar_has_the_specs_of_its_release(tmp_path: Path) -> None:
    jar = tmp_path / "kafka-clients.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/x.json", "{")
        archive.writestr("common/message/FooRequest.json", spec("FooRequest"))
        archive.writestr("common/message/BarResponse.json", spec("BarResponse", 2))
        archive.writestr("org/Foo.class", b"\xca\xfe")
        archive.writestr("common/message/Large.json", bytes(5 * LARGEST))
    sources = read_sources([str(jar)])
    assert [one.path for one in sources] == [
        "common/message/BarResponse.json",
        "common/message/FooRequest.json",
        "common/message/Large.json",
    ]
    assert len(sources[2].content) == LARGEST + 1
    (large,) = lint(sources, Config()).findings
    assert (large.source, large.rule) == (f"{jar}:common/message/Large.json", "TEXT_NOT_JSON")
    assert [one.rule for one in lint(sources[:2], Config()).findings] == ["PARTNER_MISSING"] * 2


def test_a_git_revision_is_read_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> None:
        settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True, timeout=300)

    more = {"Ärger": "[]", "Large": " " * (LARGEST + 1), "Largest": " " * LARGEST}
    tree(tmp_path, FILES | {f"clients/{name}.json": text for name, text in more.items()})
    (tmp_path / "clients" / "Link.json").symlink_to("FooRequest.json")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "one", "--no-gpg-sign")
    tree(tmp_path, {"clients/FooRequest.json": "{"})
    monkeypatch.chdir(tmp_path / "test")
    # The path is relative to the top of the repository, wherever the command runs.
    sources = read_sources(["HEAD:clients"])
    assert [one.path for one in sources] == [
        "clients/FooRequest.json",
        "clients/FooResponse.json",
        "clients/Large.json",
        "clients/Largest.json",
        "clients/Ärger.json",
    ]
    assert sources[0].content == FILES["clients/FooRequest.json"].encode()
    found = lint(sources, Config()).findings
    assert [(one.source, one.rule, one.message) for one in found] == [
        ("HEAD:clients/Large.json", "TEXT_NOT_JSON", "larger than 1 MiB, the limit for a spec"),
        ("HEAD:clients/Largest.json", "TEXT_NOT_JSON", "expected a value, got the end of the text"),
        ("HEAD:clients/Ärger.json", "VALUE_INVALID", "the spec must be an object, got an array"),
    ]
    # The directory on disk contains the same files, and one that was changed since.
    monkeypatch.chdir(tmp_path)
    told = lint(read_sources(["clients"]), Config()).findings
    assert {one.message for one in found} < {one.message for one in told}
    assert len(read_sources(["HEAD:"])) == 6
    alone = read_sources(["HEAD:clients/FooRequest.json"])
    assert names(alone) == [("FooRequest.json", False)]
    for path, reason in {
        "HEAD:nothing": r"no specs here",
        "nowhere:clients": "git cannot read the path: fatal: Not a valid object name",
        "--help:clients": "no such file or directory",
        ":clients": "no such file or directory",
        "HEAD": "no such file or directory",
    }.items():
        with pytest.raises(SpecError, match=reason):
            read_sources([path])


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.json", None, "no such file or directory, and no such REV:PATH in git"),
        ("a.jar", b"PK", "cannot be read: File is not a zip file"),
        ("a\0b", None, "no such file|cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SpecError, match=reason) as caught:
        read_sources([str(tmp_path / name)])
    assert name in caught.value.source


def test_a_damaged_jar_is_told_of(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("common/message/FooRequest.json", spec("FooRequest") * 50)
    whole = jar.read_bytes()
    refused = 0
    for place in range(0, len(whole), 3):
        jar.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            read_sources([str(jar)])
        except SpecError:
            refused += 1
    assert refused > 20


def test_a_directory_without_specs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no specs here"):
        read_sources([str(tmp_path)])


def test_a_directory_that_cannot_be_listed_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SpecError, match="cannot be read: Permission denied") as caught:
        read_sources([str(tmp_path)])
    assert caught.value.source == str(tmp_path)


def test_git_need_not_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SpecError, match="git is not installed"):
        read_sources(["HEAD:clients"])


KAFKAS = {
    "clients/src/main/resources/common/message/FooRequest.json": spec("FooRequest"),
    "clients/src/main/resources/common/message/FooResponse.json": spec("FooResponse"),
    "metadata/src/main/resources/common/metadata/BarResponse.json": spec("BarResponse", 2),
    "storage/src/main/resources/message/BarRequest.json": spec("BarRequest", 2),
}
ELSEWHERE = {
    "clients/src/test/resources/common/message/TestRequest.json": spec("TestRequest", 3),
    "docs/example.json": "{",
    "tests/config/tree.json": "[1]",
}
MODULES = {
    "FooRequest": "clients",
    "FooResponse": "clients",
    "BarRequest": "storage",
    "BarResponse": "metadata",
}


def modules(sources: list[SpecFile]) -> dict[str, str]:
    return {Path(one.path).stem: one.module for one in sources}


def test_of_a_source_tree_only_what_is_in_a_module_s_resources_is_a_spec(tmp_path: Path) -> None:
    root = tree(tmp_path, KAFKAS | ELSEWHERE | {"gradle.properties": "a=b\nversion=4.5.0\nx=y\n"})
    sources = read_sources([str(root)])
    assert modules(sources) == MODULES
    assert {one.release for one in sources} == {"4.5.0"}
    # Without a list of resources, every JSON file is read as a spec, so that typing errors are
    # noticed.
    assert len(read_sources([str(root / "docs")])) == 1


def test_a_revision_of_a_source_tree_is_read_as_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, KAFKAS | ELSEWHERE | {"gradle.properties": "version=4.5.0-SNAPSHOT\n"})
    monkeypatch.chdir(tmp_path)
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (
        ["init", "--quiet"],
        ["add", "."],
        ["commit", "-qm", "one", "--no-gpg-sign"],
    ):
        subprocess.run(["git", *settings, *arguments], check=True, timeout=300)
    sources = read_sources(["HEAD:"])
    assert modules(sources) == MODULES
    assert {one.release for one in sources} == {"4.5.0-SNAPSHOT"}
    (tmp_path / "gradle.properties").unlink()
    subprocess.run(["git", *settings, "commit", "-qam", "two", "--no-gpg-sign"], check=True)
    assert {one.release for one in read_sources(["HEAD:"])} == {""}


def jar(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_a_directory_of_jars_is_read_and_jars_of_others_have_none(tmp_path: Path) -> None:
    libs = tmp_path / "libs"
    for name, module in MODULES.items():
        inside = {"clients": "common/message", "metadata": "common/metadata"}.get(module, "message")
        files = {f"{inside}/{name}.json": spec(name), "schema/other.json": "{", "a.class": ""}
        if name != "FooResponse":
            jar(libs / f"kafka-{module}-4.5.0.jar", files)
    jar(libs / "jackson-2.1.jar", {"com/x/data.json": "{}"})
    jar(libs / "kafka_2.13-4.5.0.jar", {"common/message/Baz.json": spec("BazRequest")})
    sources = read_sources([str(libs)])
    assert modules(sources) == {
        "FooRequest": "clients",
        "BarRequest": "storage",
        "BarResponse": "metadata",
        "Baz": "core",
    }
    assert {one.release for one in sources} == {"4.5.0"}
    # A jar that is named, but contains no specs at Kafka's paths, may contain them at its owner's
    # paths.
    assert len(read_sources([str(libs / "jackson-2.1.jar")])) == 1


@pytest.mark.slow
@pytest.mark.parametrize("release", [*ENDS, *in_make_long(*BETWEEN)])
def test_a_release_of_the_catalog_is_read_as_its_files_were(release: str) -> None:
    specs = {
        read.name: read
        for read in (
            parse_spec(one.text().text, one.name, mode="strict")
            for one in read_sources([f"release:{release}"])
        )
    }
    for name in catalog().names():
        entry = catalog().entry(name)
        valid = entry.releases.get(release, Versions.NONE)
        assert bool(valid) == (name in specs)
        for version in valid:
            mine, its = (
                resolve(one, version) for one in (specs[name], entry.spec(version, release))
            )
            assert mine.layout() == its.layout()
        if valid:
            assert specs[name].valid_versions == valid


def test_the_newest_patch_is_meant_and_an_unknown_release_is_refused() -> None:
    assert {one.release for one in read_sources(["release:4.0"])} == {"4.0.2"}
    with pytest.raises(SpecError, match=r"^release:4\.1\.1: .*the nearest is 4\.1\.2"):
        read_sources(["release:4.1.1"])
