"""docs/reference: a page for each message, as `schema docs --format markdown` writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.cli.schema_docs import pages
from flexwire.schema.catalog import catalog
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = DOCS / "reference"


def files() -> dict[Path, str]:
    """Return all pages."""
    return {REFERENCE / name: text for name, text in pages(catalog()).items()}


if __name__ == "__main__":
    write_files(files())
