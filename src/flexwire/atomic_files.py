"""Write several files together: if one of them cannot be written, none of them appears.

This module is for files that other users may read, such as a guide or specs. Captures and tables
are private, and `flexwire.storage` writes them.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# If a process is killed here, it leaves behind files whose names begin with a dot. Web servers do
# not show such files.
_DRAFT: Final = ".flexwire-"
_LONGEST_NAME: Final = 255


def write_together(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files to their paths below a directory, which is created if it is missing.

    Each file is first written next to its final path. All files are renamed after the last one is
    complete. Therefore no file is changed if the disk is full or a directory is not writable.
    Raises `OSError`, which contains the name of the file or directory that cannot be written.
    """
    created: list[Path] = []
    drafts: list[tuple[Path, Path]] = []
    try:
        _make(root, created)
        for name, data in files.items():
            target = root / name
            _make(target.parent, created)
            draft = target.with_name(
                f"{_DRAFT}{secrets.token_hex(8)}-{target.name}"[:_LONGEST_NAME]
            )
            drafts.append((draft, target))
            _write(draft, target, data)
        for draft, target in drafts:
            draft.replace(target)
    except BaseException:
        for draft, _ in drafts:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        for directory in reversed(created):
            with suppress(OSError):  # Another process has written a file to this directory.
                directory.rmdir()
        raise


def _make(directory: Path, created: list[Path]) -> None:
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        created.append(path)
    if not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))


def _write(draft: Path, target: Path, data: bytes) -> None:
    try:
        with draft.open("xb") as file:
            file.write(data)
    except OSError as error:
        # The caller does not know the name of the draft, so the error names the target.
        raise type(error)(error.errno, error.strerror, str(target)) from None
