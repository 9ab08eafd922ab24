"""ARCHITECTURE.md shows every room and names the test of each law."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "src" / "flexwire"
# What every package has says nothing about this one.
UNMAPPED = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
MOST_LINES = 150


def rooms(page: str) -> list[str]:
    """The names in the first column of the room table."""
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
    """The items of the list of laws, each on one line."""
    told = page.split("## Laws", maxsplit=1)[1]
    return [" ".join(one.split()) for one in told.split("\n- ")[1:]]


def test_the_map_shows_what_is_there_and_nothing_else() -> None:
    assert sorted(rooms(PAGE.read_text(encoding="utf-8"))) == sorted(tree(PACKAGE))


def test_the_page_is_read_in_one_go() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_law_names_the_test_that_holds_it() -> None:
    found = laws(PAGE.read_text(encoding="utf-8"))
    assert len(found) > 30
    for law in found:
        named = re.findall(r"`((?:\w+/)*test_\w+\.py)`", law)
        assert named or "No test" in law, law
        assert [one for one in named if not (ROOT / "tests" / one).exists()] == [], law


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
