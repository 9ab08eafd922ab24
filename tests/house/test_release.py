"""What a release needs: notes, the files in a wheel, the bill of materials, and the builder."""

from __future__ import annotations

import json
import re
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools import debian
from tools.package import foreign, musl, windows
from tools.package.cross import PLATFORMS, leave_out
from tools.release import containers, installation, rehearsal
from tools.release.listing import ABOUT, expected_kinds, findings, reviewed, source_names
from tools.release.notes import declared_version, notes, notes_of_tag, version_of_tag
from tools.release.rehearsal import NOT_HERE, Rehearsal, StepError, rehearse
from tools.release.sbom import bill, direct, pinned, sha256

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
CHANGELOG = """# Changelog

## [Unreleased] (0.3.0)

- Third.

## [0.2.0] - 2027-01-01 [YANKED]

- Second.

## [0.1.0] - 2026-12-01
"""


def test_notes_are_the_part_of_the_version() -> None:
    assert notes(CHANGELOG, "0.3.0") == "- Third.\n"
    assert notes(CHANGELOG, "0.2.0") == "- Second.\n"
    for version, told in [
        ("0.1.0", "says nothing"),
        ("0.4.0", "no heading"),
        ("0.2", "no heading"),
    ]:
        with pytest.raises(ValueError, match=told):
            notes(CHANGELOG, version)


def test_the_changelog_has_notes_of_the_version() -> None:
    text = notes_of_tag(f"v{declared_version()}")
    assert len(text.splitlines()) > 100
    assert "\n## " not in text


@pytest.mark.parametrize("tag", ["0.1.0", "v0.1", "v0.1.0.1", "v0.1.0-rc1", "release", "v1.0.0\n"])
def test_a_tag_that_names_no_version_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="expected a tag such as"):
        version_of_tag(tag)


def test_a_tag_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the tag names 99\.0\.0"):
        notes_of_tag("v99.0.0")


def test_the_kinds_of_files_in_a_wheel_are_reviewed() -> None:
    """The list of files is up to date; otherwise run ``python -m tools.release.listing``."""
    assert reviewed() == expected_kinds()


@pytest.fixture
def names() -> list[str]:
    """Return the names of the files in a wheel that is built from these sources."""
    about = [
        name.replace("flexwire.", "flexwire-0.1.0.", 1).replace("*.1", "flexwire.1")
        for name in ABOUT
    ]
    return [*source_names(), "flexwire/kernels/objects.cpython-311-x86_64-linux-gnu.so", *about]


def _wheel(place: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(place / "flexwire.whl", "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return place / "flexwire.whl"


def test_a_wheel_of_the_sources_has_no_finding(tmp_path: Path, names: list[str]) -> None:
    assert findings(_wheel(tmp_path, names), ROOT) == []
    windows = [name.replace("cpython-311-x86_64-linux-gnu.so", "cp311.pyd") for name in names]
    assert findings(_wheel(tmp_path, windows), ROOT) == []
    plain = [name for name in names if not name.endswith(".so")]
    assert findings(_wheel(tmp_path, plain), ROOT, has_kernels=False) == []
    assert findings(_wheel(tmp_path, plain), ROOT) == ["flexwire/kernels/*.so is missing"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda names: [*names, "flexwire/id_rsa"], "nobody reviewed flexwire/id_rsa"),
        (lambda names: [*names, "flexwire/a.pem"], "nobody reviewed flexwire/*.pem"),
        (lambda names: [*names, "flexwire/left.py"], "flexwire/left.py is not in the sources"),
        (lambda names: [*names, "tests/a.py"], "nobody reviewed tests/*.py"),
        (
            lambda names: [n for n in names if n != "flexwire/errors.py"],
            "flexwire/errors.py is miss",
        ),
        (lambda names: [n for n in names if "NOTICE" not in n], "licenses/NOTICE is missing"),
    ],
)
def test_a_wheel_with_other_files_is_found(
    tmp_path: Path, names: list[str], change: Callable[[list[str]], list[str]], told: str
) -> None:
    found = findings(_wheel(tmp_path, change(names)), ROOT)
    assert any(told in finding for finding in found), found


def test_the_bill_has_what_the_project_names_at_the_versions_of_the_lock(tmp_path: Path) -> None:
    wheel = tmp_path / "flexwire-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    made = bill([wheel])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {one["name"] for one in made["components"] if one.get("scope") == "required"}
    assert needed == {line.partition(">")[0] for line in project["dependencies"]}
    optional = {one["name"] for one in made["components"] if one.get("scope") == "optional"}
    assert {"pyarrow", "pyspark", "cramjam", "rich"} < optional
    assert not {"pytest", "flexwire", "matplotlib"} & optional
    versions = pinned((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert all(one["version"] == versions[one["name"]] for one in made["components"][:-1])
    assert made["components"][-1]["hashes"][0]["content"] == sha256(wheel)
    assert len(made["dependencies"][0]["dependsOn"]) == len(direct())
    assert json.loads(json.dumps(made)) == made


def test_a_bill_that_lacks_an_installed_package_is_found(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("flexwire-1", "click-1", "msgspec-1", "google_crc32c-1", "pip-1"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    text = json.dumps(bill([]))
    installation.check_bill(text, tmp_path)
    (packages / "left_pad-1.dist-info").mkdir()
    with pytest.raises(ValueError, match="left-pad"):
        installation.check_bill(text, tmp_path)


def test_a_step_that_fails_is_told_and_the_others_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Rehearsal(tmp_path, tmp_path)
    one.python = tmp_path / "python"

    def fail() -> str:
        one.run(["sh", "-c", "echo why; exit 3"])
        return "not reached"

    assert rehearse(one, [("first", fail), ("second", lambda: "fine")]) == ["first"]
    told = capsys.readouterr().out
    assert "FAILED: sh -c" in told
    assert "why" in told
    assert "not reached" not in told
    assert told.splitlines()[-1].endswith("fine")


def test_a_command_of_the_rehearsal_has_no_network_and_no_settings_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "somewhere")
    monkeypatch.setenv("PYTHONPATH", "somewhere")
    one = Rehearsal(tmp_path, tmp_path)
    told = one.run(["env"])
    assert "somewhere" not in told
    assert "PIP_NO_INDEX=1" in told
    if one.without_network:
        assert one.run(["ls", "/sys/class/net"], cwd=tmp_path) is not None
        with pytest.raises(StepError):
            one.run(["bash", "-c", "echo > /dev/tcp/192.0.2.1/80"])


def test_a_tree_that_is_no_clone_is_packed_without_what_runs_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    for name in (
        "src/a.py",
        ".venv/b",
        "out/c",
        "src/__pycache__/d.pyc",
        "e.egg-info/f",
        ".ci/run",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    (tree / "src/flexwire/kernels").mkdir(parents=True)
    (tree / "src/flexwire/kernels/k.so").write_text("")
    (tree / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    monkeypatch.setattr(rehearsal, "ROOT", tree)
    one = Rehearsal(tmp_path, tmp_path)
    assert "this tree is no clone" in one.pack()
    packed = {str(p.relative_to(one.source)) for p in one.source.rglob("*") if p.is_file()}
    assert packed == {"src/a.py", ".ci/run", ".gitignore"}


def test_the_page_has_every_step_and_what_is_not_rehearsed() -> None:
    table = PAGE.partition("| step | what is checked |\n|---|---|\n")[2].partition("\n\n")[0]
    steps = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()]
    program = Path(rehearsal.__file__).read_text(encoding="utf-8")
    assert len(steps) == 11
    assert all(f'("{step}", ' in program for step in steps)
    listed = PAGE.partition("**The rehearsal does not cover these parts:**\n\n")[2].partition(
        "\n\n"
    )[0]
    assert len(re.findall(r"^- ", listed, re.MULTILINE)) <= len(NOT_HERE)


def test_each_platform_that_is_cross_built_has_a_row_in_the_page() -> None:
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    table = page.partition("| wheel | built | run |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert all(f"`{platform.tag}`" in table for platform in PLATFORMS.values())


def test_the_page_names_each_python_for_windows() -> None:
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith(f"| `{windows.TAG}`")]
    for version, jar in windows.PYTHONS.items():
        release = jar.split(":")[2].partition("-")[0]
        assert release.startswith(version)
        assert release in row


def test_an_extension_for_windows_has_the_name_that_its_python_looks_for() -> None:
    made = windows.platform(ROOT / "python", "3.12")
    assert made.suffix.replace("PY", "312") == ".cp312-win_amd64.pyd"
    assert made.linked[-1].endswith("python312.lib")


def test_each_kind_of_linux_that_runs_here_is_built_and_has_a_row_in_the_page() -> None:
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert "python -m tools.package.foreign" in page
    assert {*foreign.NAMES} <= {*PLATFORMS}
    for name in foreign.NAMES:
        [row] = [
            line for line in page.splitlines() if line.startswith(f"| `{PLATFORMS[name].tag}`")
        ]
        assert not row.endswith(("| no |", "| |")), row


@pytest.fixture
def fake_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory that records each call of the replaced apt-get, dpkg and tar."""
    for name in ("apt-get", "dpkg", "tar"):
        fake = tmp_path / name
        told = f"{tmp_path}/told"
        made = '; case "$*" in *" source "*) : > python_1.orig.tar.gz;; esac' * (name == "apt-get")
        fake.write_text(f'#!/bin/sh\necho {name} "$*" >> {told}{made}\n')
        fake.chmod(0o755)
    monkeypatch.setattr(debian, "KEPT", tmp_path / "kept")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "told"


def test_packages_of_another_processor_are_resolved_against_nothing(fake_apt: Path) -> None:
    mine, other = debian.Programs("one", ("one",)), debian.Programs("one", ("one",), "arm64")
    assert mine.bring() != other.bring()
    first, second, *of_other = fake_apt.read_text().splitlines()
    assert "Dir::State::status" not in first + second
    assert "APT::Architecture" not in first + second
    assert len(of_other) == 2
    for line in of_other:
        assert "APT::Architecture=arm64 -o APT::Architectures=arm64" in line
        assert "Dir::State::status=" in line


def test_of_sources_the_archives_of_their_authors_are_unpacked(
    fake_apt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "debian.sources"
    listed.write_text("Types: deb\nSuites: a\n\nTypes: deb\nSuites: b\n")
    monkeypatch.setattr(debian, "SOURCES", listed)
    place = debian.Programs("python", ("python3.11",), are_sources=True).bring()
    assert place != debian.Programs("python", ("python3.11",)).bring()
    update, source, unpacked, *_ = fake_apt.read_text().splitlines()
    assert update.endswith("update")
    assert source.endswith("source --download-only python3.11")
    assert "Dir::Etc::SourceList=/dev/null" in source
    assert unpacked.startswith("tar -xf ")
    assert "python_1.orig.tar.gz" in unpacked


def test_a_python_for_musl_is_built_for_each_processor_that_runs_here() -> None:
    processors = {name.partition("-")[2] for name in foreign.NAMES if name.startswith("musl")}
    assert processors == {*musl.DEBIAN}
    assert musl.VERSION == foreign.VERSION


def test_a_wheel_that_does_something_else_on_another_system_is_found() -> None:
    told = {
        "-c": "kernels compiled by Cython\n",
        "-m": installation.DECODED,
        str(installation.PORTABLE): "one\ntwo\n",
    }
    assert installation.tried_elsewhere(lambda *words: told[str(words[0])]) == (
        f"kernels compiled by Cython; one; two; {len(installation.COMMANDS)} commands"
    )
    for name, wrong in [("-c", "no kernels: off\n"), ("-m", "{}\n"), ("-m", "")]:
        with pytest.raises(ValueError, match=r"expected kernels|printed"):
            installation.tried_elsewhere(
                lambda *words, wrong={**told, name: wrong}: wrong[str(words[0])]
            )


def test_each_recipe_of_an_image_is_built_and_run() -> None:
    recipes = {path.name.removesuffix(".Containerfile") for path in containers.RECIPES.iterdir()}
    assert recipes == {*containers.RUNS}
    page = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
    assert all(f"`containers/{recipe}.Containerfile`" in page for recipe in recipes)
    assert "python -m tools.release.containers" in page


def test_a_wheel_for_windows_has_no_library_of_its_linker(tmp_path: Path) -> None:
    given, taken = tmp_path / "given.whl", tmp_path / "taken.whl"
    with zipfile.ZipFile(given, "w") as archive:
        for name in ("kernels/a.pyd", "kernels/python312.lib", "kernels/a.pdb"):
            archive.writestr(name, "x")
        record = "kernels/a.pyd,sha256=1,1\nkernels/python312.lib,sha256=2,1\nkernels/a.pdb,,\n"
        archive.writestr("flexwire-1.dist-info/RECORD", record)
    leave_out(given, taken)
    with zipfile.ZipFile(taken) as archive:
        assert archive.namelist() == ["kernels/a.pyd", "flexwire-1.dist-info/RECORD"]
        found = archive.read("flexwire-1.dist-info/RECORD").decode()
    assert found == "kernels/a.pyd,sha256=1,1\n"
