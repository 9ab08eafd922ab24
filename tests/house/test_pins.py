from __future__ import annotations

import os
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
_PIN = r"[a-z0-9-]+==[0-9][0-9a-z.]*(?: ; [A-Za-z_0-9 '<>!=.()]+)?"
_ENTRY = re.compile(rf"{_PIN}(?: \\\n    --hash=sha256:[0-9a-f]{{64}})+\n")
# This expression is written so that this file does not contain the text that is searched for.
_REGISTRIES = re.compile(
    r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|maven[.](?:org|apache)|crates[.]io"
    r"|anaconda[.]org|docker[.]io|ghcr[.]io|proxy[.]golang"
)
_MACHINE_PATH = re.compile(r"(?<![\w.~*$}/-])/(?:root|home|Users|work|workspace)/[\w.][\w./-]*")


def entries() -> dict[str, list[Requirement]]:
    pinned: dict[str, list[Requirement]] = {}
    for line in re.findall(rf"^{_PIN}", LOCK, re.MULTILINE):
        requirement = Requirement(line)
        pinned.setdefault(requirement.name, []).append(requirement)
    return pinned


def ours() -> list[Path]:
    """Return, without git, all files in the project that `.gitignore` does not exclude."""
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    ignored.append(".git")
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not any(fnmatch(name, p) for p in ignored)]
        found += [
            Path(folder, name) for name in files if not any(fnmatch(name, p) for p in ignored)
        ]
    return sorted(found)


def offences(text: str) -> list[str]:
    return [
        match[0] for pattern in (_REGISTRIES, _MACHINE_PATH) for match in pattern.finditer(text)
    ]


def test_the_lock_holds_names_versions_and_hashes_only() -> None:
    assert _ENTRY.sub("", LOCK) == ""
    assert "://" not in LOCK


def test_the_lock_pins_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [line for lines in extras.values() for line in lines]
    pinned = entries()
    for line in wanted:
        requirement = Requirement(line)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name == "flexwire":
            continue
        assert name in pinned, f"{name} is not in requirements.lock: run `make lock`"
        for pin in pinned[name]:
            version = next(iter(pin.specifier)).version
            assert version in requirement.specifier, f"{pin} is not {line}: run `make lock`"


@pytest.mark.slow
def test_no_file_names_a_registry_or_a_place_on_one_machine() -> None:
    found = {}
    for path in ours():
        content = path.read_bytes()
        if b"\0" in content or content.startswith(b"\x1f\x8b"):
            continue
        if bad := offences(content.decode(errors="replace")):
            found[str(path.relative_to(ROOT))] = bad
    assert found == {}


def test_the_files_looked_at_are_the_project() -> None:
    names = {str(path.relative_to(ROOT)) for path in ours()}
    assert {"Makefile", "pyproject.toml", "src/flexwire/errors.py", ".ci/run"} <= names
    assert not any(name.startswith((".git/", ".venv/")) for name in names)


@pytest.mark.parametrize(
    "text",
    [
        "--index-url https://pypi" + ".org/simple",
        "files.pythonhosted" + ".org",
        'Path("/home' + '/me/flexwire")',
        "see /work" + "/shared/facts",
        "cache in /root" + "/.cache",
    ],
)
def test_a_planted_place_is_found(text: str) -> None:
    assert offences(text)


@pytest.mark.parametrize("text", ["src/work/main.py", "$HOME/x", "~/.cache/x", "/usr/bin/java"])
def test_places_that_every_machine_has_are_fine(text: str) -> None:
    assert offences(text) == []
