"""Names the files that kernels are compiled from: none runs that is older than its source."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_ROOM = Path(__file__).parent
# Modules outside this room whose numbers kernels take as constants.
_NUMBERS = (
    "wire/limits.py",
    "wire/batch_layout.py",
    "wire/frame_layout.py",
    "wire/segment_layout.py",
)


@cache
def sources() -> str:
    """Name all files that the compiled kernels depend on, in 16 hex digits."""
    sha = hashlib.sha256()
    package = _ROOM.parent
    # A package in a zip is not a directory, and numba compiles nothing from it.
    files = [*_ROOM.rglob("*.py"), *(package / one for one in _NUMBERS)] if _ROOM.is_dir() else []
    for file in sorted(files):
        sha.update(str(file.relative_to(package)).encode())
        sha.update(file.read_bytes())
    return sha.hexdigest()[:16]
