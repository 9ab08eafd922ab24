"""Open the files of a directory for pyarrow through `InputFile`, which refuses changed files.

The usual handler for fsspec hides store failures: it treats a server error as a missing file, and
reads too few bytes, or bytes from another range, as a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from flexwire.storage.filesystems import report_failures
from flexwire.storage.input_file import input_file_at

if TYPE_CHECKING:
    from flexwire.storage.filesystems import FileStore


class StoredFiles(fs.FSSpecHandler):  # type: ignore[misc] # pyarrow has no types
    """The files below ``url``, read-only.

    File names begin with the library's name for ``url``.
    """

    def __init__(self, store: FileStore, url: str) -> None:
        super().__init__(store.files)
        self._url = url
        self._key = store.key(url)

    def open_input_file(self, path: str) -> Any:
        """Open a file for reading at any position."""
        file = input_file_at(self._url_of(path))
        return pa.PythonFile(file.open_at_will(), mode="r")

    def open_input_stream(self, path: str) -> Any:
        """Open a file for reading forward."""
        return self.open_input_file(path)

    def get_file_info(self, paths: list[str]) -> Any:
        """Return the type of each path. Raises `StorageError` if the type cannot be determined."""
        infos = []
        for path in paths:
            with report_failures(self._url_of(path), "look for"):
                infos += super().get_file_info([path])
        return infos

    def _url_of(self, path: str) -> str:
        return self._url + path.removeprefix(self._key)
