"""Limits the files that are open while many files are read together, and the bytes read ahead.

Files that overlap in time are merged by their clocks: `flexwire.capture.reassembly.merging` merges
their segments, and `flexwire.capture.files.merged_packets` their packets. Both read ahead in each
file. A file can therefore be closed until all bytes that were read ahead are returned. It is then
opened again at the place where these bytes end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_OPEN: Final = 256
"""At most this many files are open at once. Each of them takes about two megabytes."""
LEAST_AHEAD: Final = 256 * 1024
"""A file is read ahead by at least this many bytes, unless the total would be too large."""
MOST_AHEAD: Final = 256 * 1024 * 1024
"""All files together are read ahead by at most this many bytes, however many files there are."""


def bytes_ahead(among: int, total: int = MOST_AHEAD) -> int:
    """Return how many bytes each of ``among`` files may be read ahead, ``total`` for all of them.

    >>> bytes_ahead(1000), bytes_ahead(4000)
    (262144, 67108)
    """
    return min(LEAST_AHEAD, total // among)


class ReadAhead(Protocol):
    """A file that was read ahead."""

    @property
    def can_go_on(self) -> bool:
        """True if the file can be opened at the place up to which it was read."""

    @property
    def end(self) -> Any:
        """The end of what was read ahead, which can be compared with that of other files."""


_File = TypeVar("_File", bound=ReadAhead)


def file_to_close(opened: Iterable[_File], most: int) -> _File | None:
    """Return the file to close before one more is opened; None if fewer than ``most`` are open.

    This is the file whose bytes last longest. A reader cannot start within a gzip'd file, so such a
    file is closed only if all open files are gzip'd.
    """
    files = list(opened)
    if len(files) < most:
        return None
    return max(files, key=lambda file: (file.can_go_on, file.end))
