"""What mypy is told of the extension is what Cython compiles."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.each import each

KERNELS = Path(__file__).parents[2] / "src" / "flexwire" / "kernels"
SOURCES = sorted(KERNELS.rglob("*.pyx"))
# What Python can call, or make an object of.
_PUBLIC = re.compile(
    r"^(?:(?:cp)?def (?:[\w.]+ )?(?P<function>\w+)\((?P<arguments>[^)]*)\)"
    r"|cdef class (?P<class>\w+))",
    re.MULTILINE,
)


def compiled(source: str) -> dict[str, list[str] | None]:
    """Give the public names of a file in Cython, functions with the names of their arguments."""
    return {
        one["function"] or one["class"]: None
        if one["class"]
        else [
            argument.partition("=")[0].split()[-1].lstrip("*")
            for argument in one["arguments"].split(",")
            if argument.strip() and argument.strip() not in {"/", "*"}
        ]
        for one in _PUBLIC.finditer(source)
        if not (one["function"] or one["class"]).startswith("_")
    }


def told(stub: str) -> dict[str, list[str] | None]:
    """Give what a stub says of the same."""
    names: dict[str, list[str] | None] = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            given = node.args
            names[node.name] = [
                one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)
            ]
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            names[node.name] = None
    return names


@each("source", SOURCES)
def test_a_stub_says_what_the_extension_has(source: Path) -> None:
    stub = source.with_suffix(".pyi")
    assert told(stub.read_text(encoding="utf-8")) == compiled(source.read_text(encoding="utf-8"))


@each("source", SOURCES)
def test_the_extension_has_what_its_stub_says(source: Path) -> None:
    module = import_module(f"flexwire.kernels.{source.stem}")
    for name in told(source.with_suffix(".pyi").read_text(encoding="utf-8")):
        assert callable(getattr(module, name))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def read(size_t words):\n", {"read": ["words"]}),
        ("cpdef int read(int a, *, bint b=True):\n", {"read": ["a", "b"]}),
        ("cdef int read(int a):\n", {}),
        ("cdef class Table:\n    def rows(self):\n", {"Table": None}),
        ("def _read(a):\n", {}),
    ],
)
def test_what_is_public_is_found(source: str, found: dict[str, list[str] | None]) -> None:
    assert compiled(source) == found


def test_a_stub_that_differs_is_found() -> None:
    assert told("def read(words: int, /) -> int: ...\n") == {"read": ["words"]}
    assert told("def read(words: int) -> int: ...\n") != compiled("def read(size_t place):\n")
