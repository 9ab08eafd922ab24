"""Every page that is generated from the code is up to date.

`python -m tools.pages` writes all of them; `python -m tools.pages.NAME` writes only one module's
pages.
"""

from __future__ import annotations

import pytest

from tests.searching import in_make_long
from tools.pages.files import ROOT, between, page_files, page_modules, replace_between, write_files

MODULES = page_modules()
# This module runs every command that prints JSON.
LONG = ("json_output",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", [*(one for one in MODULES if one not in LONG), *in_make_long(*LONG)]
)
def test_the_files_are_what_the_code_says(module: str) -> None:
    for path, text in page_files(module).items():
        # Only equality is asserted: pytest would need a minute to show the difference in a long
        # page.
        is_current = path.read_text(encoding="utf-8") == text
        name = path.relative_to(ROOT)
        assert is_current, f"{name} is out of date: run python -m tools.pages.{module}"


def test_every_module_that_writes_pages_is_among_them() -> None:
    written = {
        path.stem
        for path in (ROOT / "tools" / "pages").glob("*.py")
        if "def files() -> dict[Path, str]:" in path.read_text(encoding="utf-8")
    }
    assert {*MODULES} == written


def test_a_part_between_marks_is_replaced_and_a_missing_mark_is_an_error() -> None:
    assert replace_between("a<b>old</b>c", "<b>", "</b>", "new") == "a<b>new</b>c"
    with pytest.raises(ValueError, match="expected '<b>' and '</b>'"):
        between("a<b>c", "<b>", "</b>")


def test_a_file_is_written_only_where_it_differs(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / ".build" / "test_generated_pages.md"
    try:
        write_files({path: "one\n"})
        write_files({path: "one\n"})
        assert capsys.readouterr().out == "wrote .build/test_generated_pages.md\n"
        assert path.read_text(encoding="utf-8") == "one\n"
    finally:
        path.unlink()
