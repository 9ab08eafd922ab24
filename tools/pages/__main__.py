"""`python -m tools.pages`: write every generated page again."""

from __future__ import annotations

import sys

from tools.pages.files import page_files, page_modules, write_files


def main() -> int:
    """Write all pages."""
    for name in page_modules():
        write_files(page_files(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
