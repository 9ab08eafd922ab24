"""Slow tests have markers: `make fast` leaves out all of them, and `make test` the slowest ones."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import conftest
from tests.own_process import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
# Signs that a test starts Spark, or runs a program with protected memory pages.
SIGNS = {
    "spark": r"\bspark: SparkSession\b|\"flexwire\", \"analyze\"|spark\.session import session",
    "guard": r"\brun\(\"tests\.\w+\.\w*guard\"|\bGUARD = \"tests\.",
}


def markers() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared: list[str] = tomllib.loads(text)["tool"]["pytest"]["ini_options"]["markers"]
    return [one.partition(":")[0] for one in declared]


def recipe(target: str) -> str:
    """Return the commands that make runs for a target, with expanded variables."""
    (found,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    variables = dict(re.findall(r"^(\w+) \??= ?(.*)$", MAKEFILE, re.MULTILINE))
    text: str = found
    while names := re.findall(r"\$\((\w+)\)", text):
        for name in names:
            text = text.replace(f"$({name})", variables.get(name, name))
    return text


def test_make_fast_leaves_out_all_that_is_marked_and_make_test_the_longest() -> None:
    (expression,) = re.findall(r'-m "not \((.+)\)"', recipe("fast"))
    # A separate process does not make a test slow.
    assert expression.split(" or ") == [one for one in markers() if one != MARKER]
    assert " -m " not in recipe("test").replace(" -m pytest", "")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    options = tomllib.loads(text)["tool"]["pytest"]["ini_options"]["addopts"]
    left_out = ("long", "cluster", "kafka", "browser")
    assert re.findall(r'-m "(.+)"', options) == [" and ".join(f"not {one}" for one in left_out)]
    for marker in left_out:
        assert f"-m {marker} " in recipe(marker)


def test_an_expression_of_markers_names_only_markers_there_are() -> None:
    # pytest refuses any other value, and runs nothing.
    wheel = (ROOT / "tools" / "try_wheel.py").read_text(encoding="utf-8")
    expressions = re.findall(r'-m "([^"]+)"', MAKEFILE) + re.findall(r'MARKS = "(.+)"', wheel)
    assert len(expressions) == 3
    named = {*re.findall(r"\w+", " ".join(expressions))} - {"not", "or", "and", "LONG"}
    assert named <= {*markers()}


def test_both_check_all_else_before_they_begin() -> None:
    for target, before in (("fast", {"lint"}), ("test", {"lint", "classes"})):
        first, second = recipe(target).splitlines()
        told = first.partition("--no-print-directory ")[2].removeprefix("-j 2 ")
        assert {*told.split()} == before
        assert "bin/pytest" in second


def unmarked(files: Iterator[tuple[str, str]]) -> list[str]:
    """Return the files that show a sign of a slow test but lack its marker."""
    return [
        f"{name}: {marker}"
        for name, text in files
        for marker, sign in SIGNS.items()
        if re.search(sign, text) and f"pytest.mark.{marker}" not in text
    ]


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path != Path(__file__):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_a_file_that_starts_what_takes_long_says_so() -> None:
    assert unmarked(sources()) == []


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("spark", "def test_it(spark: SparkSession) -> None:"),
        ("spark", 'command = [sys.executable, "-m", "flexwire", "analyze", str(packed)]'),
        ("spark", "from flexwire.spark.session import session"),
        ("guard", 'done = run("tests.kernels.guard", "20000")'),
        ("guard", 'GUARD = "tests.columnar.guard"'),
    ],
)
def test_one_that_does_not_is_seen(marker: str, text: str) -> None:
    assert unmarked(iter([("test_a.py", text)])) == [f"test_a.py: {marker}"]
    assert unmarked(iter([("test_a.py", f"{text}\npytest.mark.{marker}")])) == []


@dataclass
class Item:
    nodeid: str
    marker: str = ""
    fixturenames: tuple[str, ...] = ("tmp_path",)

    def get_closest_marker(self, name: str) -> str | None:
        return self.marker if name in self.marker.split() and name else None


def test_a_process_beyond_the_first_takes_spark_last() -> None:
    spark, other = "tests/spark/test_commit.py", "tests/wire/test_tags.py"
    assert conftest.next_file([spark, other], is_full=False) == spark
    assert conftest.next_file([spark, other], is_full=True) == other
    # No file is left over.
    assert conftest.next_file([spark], is_full=True) == spark


def test_what_starts_spark_comes_first_and_then_files_with_a_slow_test_whole() -> None:
    wire = "tests/wire/test_tags.py"
    slow = "tests/wire/test_varint.py"
    items: Any = [
        Item(f"{wire}::test_a"),
        Item(f"{slow}::test_b"),
        Item(f"{slow}::test_c", "slow"),
        Item("tests/demo/test_audit.py::test_d", "spark"),
    ]
    conftest.pytest_collection_modifyitems(items)
    assert "".join(one.nodeid[-1] for one in items) == "dbca"


def test_a_test_that_uses_the_session_is_marked_or_refused() -> None:
    items: Any = [Item("test_a.py::test_b", fixturenames=("tmp_path", "spark"))]
    with pytest.raises(pytest.UsageError, match=r"test_a\.py::test_b uses Spark: mark it"):
        conftest.pytest_collection_modifyitems(items)
