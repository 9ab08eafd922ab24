"""docs/decisions.md lists the private parts of PySpark that flexwire uses, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PYSPARK = Path(pyspark.__file__).parent
# Attributes of PySpark's own classes and instances, as its source sets or defines them.
_DEFINED = re.compile(
    r"(?:self|cls)\.(_[a-z]\w+)\b|def (_[a-z]\w+)\(|^    (_[a-z]\w+): ", re.MULTILINE
)
_MODULES = ("core/context.py", "sql/session.py", "errors/exceptions/captured.py", "core/rdd.py")


def private_names() -> set[str]:
    texts = [(PYSPARK / name).read_text(encoding="utf-8") for name in _MODULES]
    return {name for text in texts for groups in _DEFINED.findall(text) for name in groups if name}


def used_in(tree: ast.AST, private: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in private:
            if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
                yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            yield from (
                one.value
                for one in node.args
                if isinstance(one, ast.Constant) and one.value in private
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
            if ".pandas." in str(node.module):
                yield str(node.module)
            yield from (one.name for one in node.names if one.name.startswith("_"))


def used() -> set[str]:
    private = private_names()
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    trees = [ast.parse(text) for text in files if "pyspark" in text.lower()]
    return {name for tree in trees for name in used_in(tree, private)}


@pytest.mark.slow
def test_every_private_part_is_listed_with_its_reason() -> None:
    page = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    [section] = re.findall(
        r"^### Private parts of PySpark.*?(?=^###)", page, re.MULTILINE | re.DOTALL
    )
    listed = re.findall(r"^\| `([\w.]+)` \| \S.+ \|$", section, re.MULTILINE)
    assert sorted(listed) == sorted(used())


def test_a_private_part_is_seen() -> None:
    source = (
        "from pyspark.sql.pandas.types import a\nx._gateway\nself._jsc\ngetattr(e, '_origin')\n"
    )
    found = used_in(ast.parse(source), private_names())
    assert sorted(found) == ["_gateway", "_origin", "pyspark.sql.pandas.types"]
