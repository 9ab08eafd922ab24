"""Files that are not type-checked import only names that exist in flexwire."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.each import each

ROOT = Path(__file__).parents[2]
# `from flexwire.a import b, c` on one line, or with the names in parentheses.
IMPORT = re.compile(r"from (flexwire[\w.]*) import (\([^)]*\)|[^\n'\";\\]*)")
UNREAD = [
    ROOT / "Makefile",
    *sorted((ROOT / "benchmarks").glob("*.py")),
    *sorted((ROOT / "fuzz").glob("*.py")),
    *sorted(one for one in (ROOT / "containers").rglob("*") if one.is_file()),
]


def imported(text: str) -> set[tuple[str, str]]:
    found = set()
    for room, names in IMPORT.findall(text):
        plain = re.sub(r"#[^\n]*|\s+as\s+\w+", "", names)
        found |= {(room, name) for name in re.findall(r"\w+", plain)}
    return found


@each("path", UNREAD)
def test_what_is_imported_is_there(path: Path) -> None:
    lacking = [
        f"{room}.{name}"
        for room, name in sorted(imported(path.read_text(encoding="utf-8")))
        if not hasattr(import_module(room), name) and find_spec(f"{room}.{name}") is None
    ]
    assert lacking == []


def test_imports_are_found_however_they_are_written() -> None:
    in_shell = "python -c 'from flexwire.a import b; b()'"
    text = f"{in_shell}\nfrom flexwire.c import (  # why\n    d as e,\n    f,\n)"
    assert imported(text) == {("flexwire.a", "b"), ("flexwire.c", "d"), ("flexwire.c", "f")}
