"""The stubs for mypy agree with the extension that Cython compiles."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from tests.each import each

KERNELS = Path(__file__).parents[2] / "src" / "flexwire" / "kernels"
SOURCES = sorted(KERNELS.rglob("*.pyx"))
# Names that Python can call or instantiate; a class includes all lines indented below it.
_FUNCTION = re.compile(r"^(?:cp)?def (?:[\w.]+ )?(\w+)\(([^)]*)\)", re.MULTILINE)
_CLASS = re.compile(r"^(?:cdef )?class (\w+).*\n((?:(?:[ ].*)?\n)*)", re.MULTILINE)
_METHOD = re.compile(r"^    (?:cp)?def (?:[\w.]+ )?(\w+)\(([^)]*)\)", re.MULTILINE)
_FIELD = re.compile(r"^    cdef (?:readonly|public) .*?(\w+)$", re.MULTILINE)
Names = dict[str, list[str]]


def compiled(source: str) -> Names:
    """Return the public names in a Cython file, with functions' arguments and classes' members."""
    names = {one[1]: arguments(one[2]) for one in _FUNCTION.finditer(source)}
    for one in _CLASS.finditer(source):
        names[one[1]] = sorted(_FIELD.findall(one[2]))
        for method in _METHOD.finditer(one[2]):
            if method[1] != "__dealloc__":
                called = method[1].replace("__cinit__", "__init__")
                names[f"{one[1]}.{called}"] = arguments(method[2])
    return public(names)


def arguments(written: str) -> list[str]:
    """Return the names of arguments, without their types and defaults."""
    plain = re.sub(r"\[.*?\]|not None", "", written)
    words = (one.partition("=")[0].split() for one in plain.split(","))
    names = [one[-1] for one in words if one]
    return [one for one in names if one not in {"/", "*"}]


def public(names: Names) -> Names:
    return {name: one for name, one in names.items() if not name.startswith("_")}


def told(stub: str) -> Names:
    """Return the public names in a stub, in the same form."""
    names: Names = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = taken(node)
        elif isinstance(node, ast.ClassDef):
            names[node.name] = sorted(
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            )
            for one in node.body:
                if isinstance(one, ast.FunctionDef):
                    names[f"{node.name}.{one.name}"] = taken(one)
    return public(names)


def taken(node: ast.FunctionDef) -> list[str]:
    given = node.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


@each("source", SOURCES)
def test_a_stub_says_what_the_extension_has(source: Path) -> None:
    stub = source.with_suffix(".pyi")
    assert told(stub.read_text(encoding="utf-8")) == compiled(source.read_text(encoding="utf-8"))


@each("source", SOURCES)
def test_the_extension_has_what_its_stub_says(source: Path) -> None:
    module = import_module(f"flexwire.kernels.{source.stem}")
    for name in told(source.with_suffix(".pyi").read_text(encoding="utf-8")):
        assert attrgetter(name)(module)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def read(size_t words):\n", {"read": ["words"]}),
        ("cpdef int read(int a, *, bint b=True):\n", {"read": ["a", "b"]}),
        (
            "def read(\n    table not None,\n    const uint8_t[:, ::1] data not None,\n):\n",
            {"read": ["table", "data"]},
        ),
        ("cdef int read(int a):\n", {}),
        (
            (
                "cdef class Table:\n    cdef readonly dict rooms\n    cdef int size\n\n"
                "    def __cinit__(self, table):\n        pass\n\n"
                "    @property\n    def rows(self):\n        return 1\n    def _own(self):\n"
            ),
            {
                "Table": ["rooms"],
                "Table.__init__": ["self", "table"],
                "Table.rows": ["self"],
                "Table._own": ["self"],
            },
        ),
        ("def _read(a):\n", {}),
    ],
)
def test_what_is_public_is_found(source: str, found: Names) -> None:
    assert compiled(source) == found


def test_a_stub_that_differs_is_found() -> None:
    stub = "class Table:\n    def rows(self, first: int) -> int: ...\n"
    assert told(stub) == {"Table": [], "Table.rows": ["self", "first"]}
    assert told(stub) != compiled("cdef class Table:\n    def rows(self):\n        return 1\n")
