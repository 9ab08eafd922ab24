"""Count the files that a reader has open."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.capture.files.reading import Opener


class Opened:
    """Count the open files, and how often each file was opened."""

    def __init__(self) -> None:
        self.open, self.most = 0, 0
        self.starts: dict[str, list[int]] = {}

    def opener(self, _among: int) -> Opener:
        return self.open_file

    def open_file(self, name: str, start: int) -> io.BufferedReader:
        self.starts.setdefault(name, []).append(start)
        self.open += 1
        self.most = max(self.most, self.open)
        file = _Noted(name, self)
        file.seek(start)
        return io.BufferedReader(file)


class _Noted(io.FileIO):
    def __init__(self, name: str, opened: Opened) -> None:
        self._opened = opened
        super().__init__(name)

    def close(self) -> None:
        self._opened.open -= not self.closed
        super().close()
