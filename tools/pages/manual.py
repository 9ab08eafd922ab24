"""docs/man/flexwire.1: the manual page, which `cli/app.py` generates from the commands' help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flexwire
from flexwire.cli.app import app, manual_page
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "man" / "flexwire.1"


def files() -> dict[Path, str]:
    """Return the page."""
    return {PAGE: manual_page(app, flexwire.__version__)}


if __name__ == "__main__":
    write_files(files())
