"""Several files that appear together: all of them, or none if one cannot be written.

For files that others may read, such as a guide or specs. Captures and tables are private, and
`flexwire.storage` writes them.
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

# If a process is killed here, the names of the files that it leaves begin with a dot, so no server
# shows them.
_DRAFT: Final = ".flexwire-"
_LONGEST_NAME: Final = 255


def write_together(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their paths below a directory, which is created if it is missing.

    Each file is first written next to its final place, and all are renamed once the last one is
    complete. So a full disk or a directory that nobody may write to changes no file. Raises
    `OSError`, which names the file or the directory that cannot be written.
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
            with suppress(OSError):  # somebody has put a file into it
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
        # Nobody has seen the draft's name.
        raise type(error)(error.errno, error.strerror, str(target)) from None
