"""Files and directories that only their owner may read: payloads are in them.

What is created here has mode 0600 or 0700 from the first moment on; what exists keeps its mode.
"""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


def make_private_directory(directory: Path) -> None:
    """Create a directory and its missing parents; `OSError` where something is in the way."""
    for place in (*reversed(directory.parents), directory):
        # Two processes may create it at once.
        if not place.is_dir():
            place.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def create_private_file(path: Path) -> FileIO:
    """A new file, unbuffered; `FileExistsError` where there is one of that name."""
    return FileIO(path, "x", opener=_private)


def write_private_text(path: Path, text: str) -> None:
    """A new file with this text, in UTF-8; `FileExistsError` where there is one of that name."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
        file.write(text.encode())


def make_tree_private(root: Path) -> None:
    """Take the rights of everybody else from a directory and all that is in it."""
    for place, _, names in os.walk(root):
        Path(place).chmod(DIRECTORY_MODE)
        for name in names:
            Path(place, name).chmod(FILE_MODE)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
