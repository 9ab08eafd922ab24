"""Write the files of this directory's modules, and find the part of a page between two marks."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"


def page_modules() -> tuple[str, ...]:
    """Return the names of all modules in this folder that write files, in order.

    >>> "tables" in page_modules(), "kept" in page_modules()
    (True, False)
    """
    names = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return tuple(
        name
        for name in names
        if name != "__main__" and hasattr(import_module(f"tools.pages.{name}"), "files")
    )


def page_files(name: str) -> dict[Path, str]:
    """Return the text of each file that a module in this folder writes."""
    files: dict[Path, str] = import_module(f"tools.pages.{name}").files()
    return files


def write_files(files: Mapping[Path, str]) -> None:
    """Write the files whose text has changed, and name them."""
    for path, text in files.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


def between(text: str, begin: str, end: str) -> str:
    """Return the part of a page between two marks.

    >>> between("a [b] c", "[", "]")
    'b'
    """
    before, _, rest = text.partition(begin)
    if not rest or end not in rest:
        raise ValueError(f"expected {begin!r} and {end!r}, got a page of {len(before)} characters")
    return rest.partition(end)[0]


def replace_between(text: str, begin: str, end: str, part: str) -> str:
    """Return a page with a new part between two marks.

    >>> replace_between("a [b] c", "[", "]", "d")
    'a [d] c'
    """
    old = between(text, begin, end)
    return text.replace(f"{begin}{old}{end}", f"{begin}{part}{end}", 1)
