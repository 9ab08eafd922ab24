"""Where an analysis puts files: names below one directory or prefix, each file whole or not there.

`Place` is what the parts of this room ask of it; `flexwire.storage.place` has the one that there
is, by path or URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from flexwire.errors import FlexwireError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from flexwire.storage.pages import Entry
    from flexwire.storage.source import Source


class Place(Protocol):
    """Files by name. It can be pickled: tasks have one that means the same files."""

    @property
    def path(self) -> Path | None:
        """The directory, where it is one that programs can open by its path."""

    def child(self, name: str) -> Self:
        """The place below this one."""

    def put(self, local: Path, name: str, /) -> None:
        """Put a finished file there, whole, in place of one of that name. It may be moved."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file there, whole, in place of one of that name."""

    def read(self, name: str) -> bytes:
        """The bytes of a file."""

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""

    def entries(self, prefix: str) -> Iterator[Entry]:
        """All files whose names begin so, however deep."""

    def source(self, entry: Entry) -> Source:
        """A file that was listed, to be read by ranges."""

    def sweep(self, before: datetime, /) -> int:
        """Remove what killed writers left unfinished, begun before then; it is not a file yet."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there are no error."""


def check_there(path: Path) -> None:
    """Raise `FlexwireError` where this process does not see the directory of a place.

    Made anew it would be one that nobody reads: of an analysis that is over, or on a machine that
    does not share it.
    """
    if not path.is_dir():
        raise FlexwireError(
            f"{path} is not there; an output must be on a file system that the driver and every "
            "executor see, and stay until the analysis is over"
        )


def write_there(place: Place, name: str, data: bytes) -> None:
    """Write a file, whole, for a task. `FlexwireError` where the directory of the place is gone.

    An attempt that does not count may go on when the analysis is over.
    """
    if place.path is not None:
        check_there(place.path)
    place.write(name, data)


def check_listed(place: Place, what: str, found: int, count: int) -> None:
    """Raise `StorageError` where fewer files are listed than tasks have written."""
    if found < count:
        raise StorageError(
            f"expected {count} files in {what}, and {found} are listed: the listing is older than "
            "what tasks wrote, or something else removes files",
            url=str(place),
            tried="list",
        )
