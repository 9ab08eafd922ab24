"""The page about limits states the same numbers as the code."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from tests.each import each

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
_ROW = re.compile(
    r"^\| (.+?) \| (\d+)( KiB| MiB)? \| (.+?) \| `(flexwire[\w.]+)` \|$", re.MULTILINE
)
_UNITS = {"": 1, " KiB": 1024, " MiB": 1024 * 1024}


def limits(page: str) -> dict[str, int]:
    """Return each constant's full name, and its value on the page."""
    return {name: int(number) * _UNITS[unit] for _, number, unit, _, name in _ROW.findall(page)}


LIMITS = limits(PAGE.read_text(encoding="utf-8"))


@each("name", [*LIMITS])
def test_a_limit_is_what_the_page_says(name: str) -> None:
    module, constant = name.rsplit(".", 1)
    assert getattr(import_module(module), constant) == LIMITS[name]


def test_every_row_of_the_page_is_read() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`flexwire." in line]
    assert len(rows) == len(LIMITS) == page.count("`flexwire.")


def test_a_row_is_read_with_its_unit() -> None:
    assert limits("| a frame | 4 MiB | why | `flexwire.a.B` |\n") == {"flexwire.a.B": 4194304}
    assert limits("| a frame | about 4 | why | `flexwire.a.B` |\n") == {}
