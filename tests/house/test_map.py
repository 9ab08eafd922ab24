"""ARCHITECTURE.md shows all packages and layers, and names the test for each law."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.each import each

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "src" / "flexwire"
# Files that every package contains, and that therefore say nothing about a package.
UNMAPPED = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
MOST_LINES = 150
MOST_LAWS = 25
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))


def rooms(page: str) -> list[str]:
    """Return the names in the first column of the table of packages."""
    rows = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def tree(package: Path) -> set[str]:
    return {
        f"{path.name}/" if path.is_dir() else path.name
        for path in package.iterdir()
        if path.name not in UNMAPPED and not path.name.startswith(".")
    }


def first_sentence(file: Path) -> str:
    told = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert told, f"{file} does not say what it is"
    return " ".join(told.split("\n\n")[0].split())


def laws(page: str) -> list[str]:
    """Return the items of the numbered list of laws, each on one line."""
    return [" ".join(law.split()) for law in re.split(r"\n\d+\. ", page.split("## Laws")[1])[1:]]


def named_tests(text: str) -> list[str]:
    """Return the paths below ``tests`` that a text contains in backquotes."""
    return re.findall(r"`(?:tests/)?((?:\w+/)*test_\w+\.py)`", text)


def test_the_map_shows_what_is_there_and_nothing_else() -> None:
    assert sorted(rooms(PAGE.read_text(encoding="utf-8"))) == sorted(tree(PACKAGE))


def test_the_page_is_read_in_one_go() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_law_has_a_sentence_a_reason_and_a_test_that_is_there() -> None:
    found = laws(PAGE.read_text(encoding="utf-8"))
    assert 0 < len(found) <= MOST_LAWS
    for law in found:
        assert re.match(r"\*\*[^*]+\.\*\* \S.*[.] `", law), law
        named = named_tests(law)
        assert named, law
        assert [test for test in named if not (ROOT / "tests" / test).exists()] == [], law


def test_the_layers_are_those_that_import_linter_enforces() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    shown = PAGE.read_text(encoding="utf-8").split("## Layers")[1].split("```")[1]
    assert shown.split("\n")[1:-1] == layers


@each("room", ROOMS)
def test_the_tests_that_a_room_s_page_names_are_there(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    missing = [test for test in named_tests(text) if not (ROOT / "tests" / test).exists()]
    assert missing == [], room


@pytest.mark.slow
def test_every_file_says_what_it_is() -> None:
    for file in PACKAGE.rglob("*.py"):
        assert len(first_sentence(file)) > len("To be described."), file


def test_rooms_and_folders_compare_by_name_and_kind(tmp_path: Path) -> None:
    page = "| room | holds |\n|---|---|\n| `errors.py`, `wire/` | `not this` |\n| `demo/` | x |\n"
    assert rooms(page) == ["errors.py", "wire/", "demo/"]
    (tmp_path / "wire").mkdir()
    (tmp_path / "errors.py").touch()
    (tmp_path / "__init__.py").touch()
    assert tree(tmp_path) == {"wire/", "errors.py"}
