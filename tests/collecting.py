"""Leave modules without doctests, and files without selected tests, out of a test run.

Each process of a run imports everything that it collects. Without this module, `make fast` would
import PySpark needlessly.
"""

from __future__ import annotations

import atexit
import gc
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest
from _pytest.doctest import DoctestModule

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_USUAL: Final = gc.get_threshold()
_NOT = r"not (?:\w+|\(\w+(?: or \w+)*\))"
_LEFT_OUT: Final = re.compile(rf"\s*{_NOT}(?: and {_NOT})*\s*")
_MARKED: Final = re.compile(
    r"^pytestmark = (?:pytest\.mark\.(\w+)|\[(?=\s*pytest\.mark\.(\w+)[,\]]))", re.MULTILINE
)


@cache
def left_out(expression: str) -> frozenset[str]:
    """Return the markers whose tests an expression always excludes.

    >>> sorted(left_out("not (spark or slow) and not guard"))
    ['guard', 'slow', 'spark']
    >>> sorted(left_out("spark and not slow"))
    []
    """
    if not _LEFT_OUT.fullmatch(expression):
        return frozenset()
    return frozenset(re.findall(r"\w+", expression)) - {"not", "and", "or"}


def marker_of(text: str) -> str | None:
    """Return a marker that applies to all tests in a file, or None.

    >>> marker_of("pytestmark = pytest.mark.spark")
    'spark'
    >>> marker_of("pytestmark = [pytest.mark.slow, pytest.mark.skipif(True)]")
    'slow'
    >>> marker_of("@pytest.mark.slow")
    """
    found = _MARKED.search(text)
    return found and (found[1] or found[2])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files whose tests are all excluded."""
    if collection_path.suffix != ".py" or not (names := left_out(config.option.markexpr)):
        return None
    return marker_of(collection_path.read_text(encoding="utf-8")) in names or None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Do not import modules just to look for doctests if they contain none."""
    found = yield
    if (
        any(isinstance(one, DoctestModule) for one in found)
        and b">>>" not in file_path.read_bytes()
    ):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection while the objects of tests and modules are created."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude objects that live as long as the process, which saves a sixth of the tests' time.

    A million objects belong to tests, modules and message classes, and a collection over them frees
    almost nothing. Young objects are collected as usual, and all objects once at the end.
    """
    gc.collect()
    gc.freeze()
    # Everything must be freed at the interpreter's end, because DuckDB's binding reports remaining
    # objects as leaks. Before that, pytest collects twice more, which frees only tests' objects.
    atexit.register(gc.unfreeze)
    youngest, younger, _ = _USUAL
    gc.set_threshold(youngest, younger, 1000)


def collect_as_usual() -> None:
    """Collect old objects as often as Python does by default."""
    gc.set_threshold(*_USUAL)
