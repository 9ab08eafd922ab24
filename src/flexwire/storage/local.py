"""Files and directories on this machine: private, and visible only when they are complete.

New files are created with mode 0600 or 0700. Existing files keep their mode.

Data between tasks is written once and read once, so it is compressed. For small messages, tables
take nine bytes per frame; without compression, the files that the tasks of an analysis write for
one another were larger than the tables.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flexwire.storage.input_file import version_here
from flexwire.storage.store_listing import FileEntry, moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator


FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


def make_private_directory(directory: Path) -> None:
    """Create a directory and its missing parents. Raises `OSError` if something blocks the path."""
    for ancestor in (*reversed(directory.parents), directory):
        # Two processes may create the directory at the same time.
        if not ancestor.is_dir():
            ancestor.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def create_private_file(path: Path) -> FileIO:
    """Return a new unbuffered file. Raises `FileExistsError` if a file with this name exists."""
    return FileIO(path, "x", opener=_private)


def lock_while_open(file: FileIO) -> None:
    """Lock a file until it is closed, so that others see that it is being written (`is_locked`).

    Some file systems and operating systems do not support such locks. There, the file is not
    locked.
    """
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - this module does not exist on Windows

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: str | Path) -> bool:
    """Return whether a process holds the lock on a file; False if this cannot be determined."""
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - this module does not exist on Windows

        with FileIO(path, "r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def make_tree_private(root: Path) -> None:
    """Remove all other users' rights to a directory and its content."""
    for directory_name, _, names in os.walk(root):
        Path(directory_name).chmod(DIRECTORY_MODE)
        for name in names:
            Path(directory_name, name).chmod(FILE_MODE)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


_QUICKLY: Final = 1  # This is a zstd compression level.


def compress(data: bytes) -> bytes:
    """Compress data for another task."""
    zstd: Any = import_module("cramjam").zstd
    return bytes(zstd.compress(data, _QUICKLY))


def decompress(data: bytes) -> bytes:
    """Return the decompressed data."""
    zstd: Any = import_module("cramjam").zstd
    return bytes(zstd.decompress(data))


# Spark and other readers of tables skip names that begin with a dot.
_MARK: Final = ".flexwire-"


@contextmanager
def writing(target: Path) -> Iterator[Path]:
    """Return a new private file that replaces ``target`` at the end of the block.

    The file is written in the same directory under another name, synced and renamed. An existing
    target is replaced in one step. If the block raises an error, no file is left behind.
    """
    make_private_directory(target.parent)
    unfinished = _unfinished(target)
    create_private_file(unfinished).close()
    try:
        yield unfinished
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    _sync_directory(target.parent)


def create(target: Path, data: bytes) -> bool:
    """Write a private file in one step. Return False if a file with this name exists."""
    make_private_directory(target.parent)
    unfinished = _unfinished(target)
    try:
        create_private_file(unfinished).close()
        unfinished.write_bytes(data)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        # Unlike a rename, a link never replaces a file.
        os.link(unfinished, target)
    except FileExistsError:
        return False
    finally:
        unfinished.unlink(missing_ok=True)
    _sync_directory(target.parent)
    return True


def _unfinished(target: Path) -> Path:
    return target.parent / f"{_MARK}{secrets.token_hex(8)}-{target.name}"[:255]


def move(file: Path, target: Path) -> None:
    """Replace ``target`` with a finished file by one rename. The file's old name is then gone.

    If the file is on another file system, it is copied.
    """
    make_private_directory(target.parent)
    # The rename does not ensure this, because a file that is copied may not be synced first.
    if file.stat().st_dev != target.parent.stat().st_dev:
        _move_by_copying(file, target)
        return
    file.chmod(FILE_MODE)
    with file.open("rb") as finished:
        # After the machine crashes, no name may exist without its bytes.
        os.fsync(finished.fileno())
    try:
        file.replace(target)
    except OSError as error:
        # In a container, directories of one disk may be mounted separately.
        if error.errno != errno.EXDEV:
            raise
        _move_by_copying(file, target)


def _move_by_copying(file: Path, target: Path) -> None:
    with writing(target) as unfinished:
        shutil.copyfile(file, unfinished)
    file.unlink()


def entries(root: Path, prefix: str = "", *, unfinished: bool = False) -> Iterator[FileEntry]:
    """Yield every file below ``root`` whose name begins with ``prefix``, except unfinished files.

    With ``unfinished``, yields only the unfinished files of `writing` that a killed process left
    behind.
    """
    start = root / prefix[: prefix.rfind("/") + 1]
    for directory_name, directories, names in os.walk(start, onerror=_raise_unless_gone):
        directories.sort()
        for name in sorted(names):
            path = Path(directory_name, name)
            relative = path.relative_to(root).as_posix()
            if name.startswith(_MARK) is not unfinished or not relative.startswith(prefix):
                continue
            with suppress(FileNotFoundError):  # The file was removed in the meantime.
                status = path.stat()
                modified = moment_of(status.st_mtime)
                yield FileEntry(relative, status.st_size, modified, version_here(status))


def remove(root: Path, name: str) -> None:
    """Remove a file if it exists, and the directories that become empty."""
    path = root / name
    path.unlink(missing_ok=True)
    for above in path.parents:
        if above == root:
            return
        try:
            above.rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # The directory is not empty.
            return


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync_directory(directory: Path) -> None:
    # Without this call, a rename may be lost if the machine crashes.
    number = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some network file systems cannot sync a directory.
            os.fsync(number)
    finally:
        os.close(number)
