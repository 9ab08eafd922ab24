"""Limit the size of an installation without extras, and measure the size of a package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import Distribution

MOST_BYTES: Final = 10_000_000
"""flexwire without extras, with the packages it needs, takes fewer bytes, not counting bytecode."""


def installed_size(package: Distribution) -> int:
    """Return the size in bytes of a package's installed files, without bytecode."""
    files = package.files or []
    return sum(
        place.stat().st_size
        for file in files
        if file.suffix != ".pyc" and (place := Path(str(file.locate()))).is_file()
    )
