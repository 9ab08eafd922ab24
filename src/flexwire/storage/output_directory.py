"""A directory by URL, on this machine or in an object store. New files appear complete."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Self

from flexwire.arguments import refuse
from flexwire.errors import StorageError
from flexwire.storage import local, uploads
from flexwire.storage.filesystems import (
    RETRIES,
    local_path,
    open_store,
    report_failures,
    scheme_of,
    shown,
)
from flexwire.storage.input_file import InputFile, input_file_at
from flexwire.storage.store_listing import list_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from flexwire.storage.store_listing import FileEntry

_MOST_IN_A_REMOVAL: Final = 1000  # This is the limit of S3.


def check_name(name: str) -> None:
    """Raise `ArgumentError` for a name that is not relative, or that contains "." or ".."."""
    is_plain = isinstance(name, str) and name and str(PurePosixPath("/", name)) == f"/{name}"
    if not is_plain or ".." in name.split("/"):
        raise refuse("name", "a relative name without . or ..", name)


@dataclass(frozen=True, slots=True)
class OutputDirectory:
    """A directory given by URL or path.

    The directory need not exist, and is opened when it is used.

    Names in the directory are relative, with ``/`` between their parts. Every failure raises a
    `StorageError`. Paths are made absolute, because other processes have other working directories.
    """

    url: str

    def __post_init__(self) -> None:
        if not isinstance(self.url, str | os.PathLike):
            raise refuse("url", "a str or Path", self.url)
        path_or_url = os.fspath(self.url)
        local_url = (
            "" if scheme_of(path_or_url) else os.path.normpath(local_path(path_or_url).absolute())
        )
        object.__setattr__(self, "url", local_url or path_or_url.rstrip("/"))

    def __str__(self) -> str:
        return shown(self.url)

    @property
    def path(self) -> Path | None:
        """The directory, if it is on this machine."""
        return None if scheme_of(self.url) else Path(self.url)

    def at(self, name: str) -> str:
        """Return the URL of a name in the directory. A subclass may use another location."""
        return name

    def child(self, name: str) -> Self:
        """Return a directory inside this directory."""
        return replace(self, url=self._url(name))

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Yield an empty private file for writing. After the block, the file becomes ``name``.

        On this machine it is written directly in its final directory. If the block raises an error,
        no file appears.
        """
        url = self._url(name)
        if self.path is not None:
            with _report_disk_failures(url, "write"), local.writing(Path(url)) as unfinished:
                yield unfinished
            return
        number, unfinished_name = tempfile.mkstemp(prefix="flexwire-", suffix=f"-{Path(url).name}")
        os.close(number)
        try:
            yield Path(unfinished_name)
            self.put(Path(unfinished_name), name)
        finally:
            Path(unfinished_name).unlink(missing_ok=True)

    def put(self, file: Path, name: str) -> None:
        """Put a finished local file at ``name``, replacing an existing file.

        On this machine, the file is moved; into a store, it is copied.
        """
        url = self._url(name)
        if self.path is None:
            store = open_store(url)
            with report_failures(url, "write"):
                uploads.put_file(store, store.key(url), file)
            return
        with _report_disk_failures(url, "write"):
            local.move(file, Path(url))

    def write(self, name: str, data: bytes) -> None:
        """Write ``name`` with this content, replacing an existing file."""
        url = self._url(name)
        if self.path is None:
            store = open_store(url)
            with report_failures(url, "write"):
                uploads.put_bytes(store, store.key(url), data)
            return
        with _report_disk_failures(url, "write"), local.writing(Path(url)) as unfinished:
            unfinished.write_bytes(data)

    def create(self, name: str, data: bytes) -> bool:
        """Write ``name`` with this content unless it exists; return whether this call wrote it.

        If two calls happen at the same time, at most one returns True, except in a store without
        conditional writes (HDFS, some S3 stores). If a response is lost, a call that wrote the file
        may return False.
        """
        url = self._url(name)
        if self.path is None:
            store = open_store(url)
            with report_failures(url, "write"):
                return uploads.create_bytes(store, store.key(url), data)
        with _report_disk_failures(url, "write"):
            return local.create(Path(url), data)

    def read(self, name: str) -> bytes:
        """Return the content of one file."""
        url = self._url(name)
        if self.path is None:
            return _read_whole(url)
        with _report_disk_failures(url, "read"):
            return Path(url).read_bytes()

    def exists(self, name: str) -> bool:
        """Return whether there is a file with this name."""
        url = self._url(name)
        if self.path is None:
            store = open_store(url)
            with report_failures(url, "look for"):
                return uploads.is_file(store, store.key(url))
        with _report_disk_failures(url, "look for"):
            return Path(url).is_file()

    def entries(self, prefix: str = "") -> Iterator[FileEntry]:
        """Yield every file, at any depth, whose name begins with ``prefix``, page by page."""
        if (path := self.path) is None:
            yield from list_store(self.url, prefix)
            return
        with _report_disk_failures(self.url, "list"):
            yield from local.entries(path, prefix)

    def source(self, entry: FileEntry) -> InputFile:
        """Return a listed file, whose ranges can be read as long as the file does not change."""
        return InputFile(self._url(entry.name), entry.size, entry.version)

    def arrow(self) -> tuple[Any, str]:
        """Return a pyarrow file system, and the directory's name in it, for pyarrow's readers.

        The file system uses the same keys as this object. A failure of the store raises a
        `StorageError`, and an invalid file raises a pyarrow error. The file system is read-only,
        because an abandoned stream would publish its bytes.
        """
        from pyarrow import fs  # noqa: PLC0415 - only tables need this module

        if self.path is not None:
            return fs.LocalFileSystem(), self.url
        from flexwire.storage.arrow_files import StoredFiles  # noqa: PLC0415 - only tables need this module

        store = open_store(self.url)
        return fs.PyFileSystem(StoredFiles(store, self.url)), store.key(self.url)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files. A missing file is not an error."""
        remaining = iter(names)
        while batch := list(islice(remaining, _MOST_IN_A_REMOVAL)):
            if self.path is None:
                store = open_store(self.url)
                with report_failures(self.url, "remove"):
                    uploads.remove(store, [store.key(self._url(name)) for name in batch])
            else:
                for name in batch:
                    with _report_disk_failures(self._url(name), "remove"):
                        local.remove(Path(self.url), self.at(name))

    def sweep(self, before: datetime) -> int:
        """Remove unfinished files, begun before a given time, that killed writers left behind.

        These are not yet visible as files: the growing files in a directory on this machine, and
        the parts of an upload, which S3 keeps and charges for. Other stores remove such parts by
        themselves after a week.
        """
        if (path := self.path) is None:
            store = open_store(self.url)
            with report_failures(self.url, "sweep"):
                return uploads.sweep(store, store.key(self.url), before)
        with _report_disk_failures(self.url, "sweep"):
            old_entries = [
                entry for entry in local.entries(path, unfinished=True) if entry.modified < before
            ]
            for entry in old_entries:
                local.remove(path, entry.name)
        return len(old_entries)

    def _url(self, name: str) -> str:
        check_name(name)
        return f"{self.url}/{self.at(name)}"


def _read_whole(url: str) -> bytes:
    """Return the content of a file in a store."""
    file = input_file_at(url)
    for _ in range(RETRIES - 1):
        try:
            return file.read()
        except StorageError:
            # The file may have been replaced in the meantime. Otherwise this is an error.
            previous, file = file, input_file_at(url)
            if file == previous:
                raise
    return file.read()


@contextmanager
def _report_disk_failures(url: str, tried: str) -> Iterator[None]:
    # A caller that writes while the disk is full also receives this message.
    try:
        yield
    except OSError as error:
        raise StorageError(error.strerror or str(error), url=url, tried=tried) from error
