"""The name of a public class is unique in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "flexwire"
MOST_EXCEPTIONS = 10
# Names that two classes share, and the reason why neither is renamed.
EXCEPTIONS: dict[str, str] = {}


def homes(package: Path) -> dict[str, list[str]]:
    """Return the files of each public class."""
    found = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(package).as_posix())
    return found


@pytest.mark.slow
def test_no_two_public_classes_have_one_name() -> None:
    shared = {name: files for name, files in homes(PACKAGE).items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in EXCEPTIONS} == {}
    assert {*EXCEPTIONS} <= {*shared}, "an exception that is needed no more"
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS


def test_a_name_with_two_homes_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class One: ...\nclass _Own: ...\n")
    (tmp_path / "b.py").write_text(
        "def f():\n    class One: ...\nclass _Own: ...\nclass Two: ...\n"
    )
    assert dict(homes(tmp_path)) == {"One": ["a.py", "b.py"], "Two": ["b.py"]}
