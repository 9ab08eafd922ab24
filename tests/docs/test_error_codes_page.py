"""docs/error-codes.md contains a line for every error code."""

from __future__ import annotations

from flexwire.protocol.error_codes import error_codes
from tools.pages.error_codes import PAGE


def test_the_page_has_every_error_code() -> None:
    rows = PAGE.read_text(encoding="utf-8").partition("|---|---|---|---|---|\n")[2].splitlines()
    assert len(rows) == len(error_codes())
