"""How large an installation is: the law of one without extras, and the size of a package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import Distribution

MOST_BYTES: Final = 10_000_000
"""flexwire without extras, and the packages it needs, have fewer bytes, without bytecode."""


def installed_size(package: Distribution) -> int:
    """Return the bytes of the files that a package installed, without bytecode."""
    files = package.files or []
    return sum(
        place.stat().st_size
        for file in files
        if file.suffix != ".pyc" and (place := Path(str(file.locate()))).is_file()
    )
