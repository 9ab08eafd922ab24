from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.each import each

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tools").rglob("*.py")])
FILE_LINES = 600
SHORT_LINES = 60
# A rule, answer, command or convention is found by its name, so its file may be short.
MANY_SHORT = {"rules", "answers", "cli", "conventions"}
MOST_SHORT = 20
FUNCTION_LINES = 60
# One switch over all operations of a program; everything else is in other functions.
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


@pytest.mark.slow
@each("path", FILES)
def test_a_file_and_its_functions_fit_in_a_head(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert lines(source) <= FILE_LINES
    room = path.parent.relative_to(ROOT)
    switch = SWITCHES.get(path.name) if room == Path("src/flexwire/kernels/columns") else None
    assert [one for one in long_functions(source) if one.split()[0] != switch] == []


def test_few_files_are_too_short_to_be_looked_for() -> None:
    short = [
        path
        for path in (ROOT / "src" / "flexwire").rglob("*.py")
        if not path.name.startswith("__")
        and not MANY_SHORT & {*path.parts}
        and lines(path.read_text(encoding="utf-8")) < SHORT_LINES
    ]
    assert len(short) <= MOST_SHORT, short


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_of_one_line_too_many_is_found(keyword: str) -> None:
    fits = f"class A:\n  {keyword} f():\n" + "    pass\n" * (FUNCTION_LINES - 1)
    assert long_functions(fits) == []
    assert long_functions(fits + "    pass\n") == ["f at line 2"]
