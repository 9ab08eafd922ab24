from __future__ import annotations

import ast
import statistics
from pathlib import Path

import pytest

from tests.each import each

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tools").rglob("*.py")])
FILE_LINES = 600
MEDIAN_LINES = 200
FUNCTION_LINES = 60
# One switch over all operations of a program, of which all that can be lifted out is.
SWITCHES = {"reading.py": "decode", "writing.py": "run"}


def lines(source: str) -> int:
    return len(source.splitlines())


def long_functions(source: str) -> list[str]:
    return [
        f"{node.name} at line {node.lineno}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES
    ]


@each("path", FILES)
def test_a_file_and_its_functions_fit_in_a_head(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert lines(source) <= FILE_LINES
    room = path.parent.relative_to(ROOT)
    switch = SWITCHES.get(path.name) if room == Path("src/flexwire/kernels/columns") else None
    assert [one for one in long_functions(source) if one.split()[0] != switch] == []


def test_half_of_the_files_are_short() -> None:
    assert statistics.median(lines(path.read_text(encoding="utf-8")) for path in FILES) <= (
        MEDIAN_LINES
    )


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_of_one_line_too_many_is_found(keyword: str) -> None:
    fits = f"class A:\n  {keyword} f():\n" + "    pass\n" * (FUNCTION_LINES - 1)
    assert long_functions(fits) == []
    assert long_functions(fits + "    pass\n") == ["f at line 2"]
