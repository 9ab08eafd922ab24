"""Where the activity of connections is read from: captures, request logs, or taps' sockets."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from flexwire.activity.growing import GrowingCaptures
from flexwire.activity.growing_logs import GrowingRequestLogs
from flexwire.activity.live import LiveCaptures
from flexwire.activity.logged import LoggedActivity
from flexwire.activity.reading import ActivityReader
from flexwire.errors import CaptureError
from flexwire.inputs import INPUTS, has_input_name, input_sources
from flexwire.logs.request_log import Zone
from flexwire.storage.file_search import list_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.activity.connections import ActivityTable

_PORTION: Final = 20_000
"""So many segments or lines are read in a few seconds."""

_Item_contra = TypeVar("_Item_contra", contravariant=True)


class ActivitySource(Protocol):
    """The activity of connections, and what a person should know of how it was read.

    ``table`` has the connections. ``notes`` grow, and each text comes once.
    """

    table: ActivityTable

    @property
    def notes(self) -> list[str]:
        """Return what a person should know."""

    def read(self, *, must_exist: bool = False) -> Iterator[int]:
        """Read what was added, in portions that take seconds; yield how much each was.

        The last one is smaller than the others, and may be 0. Raises `CaptureError` and
        `StorageError`, as the sources do.
        """

    def finish(self) -> None:
        """Take in what is not whole, as if nothing grew any more. Nothing is read afterwards."""

    def close(self) -> None:
        """Close the files that are open; a second call does nothing."""


class _Reader(Protocol[_Item_contra]):
    def read(self, items: Iterable[_Item_contra], /) -> int: ...


def _in_portions(reader: _Reader[_Item_contra], items: Iterator[_Item_contra]) -> Iterator[int]:
    count = _PORTION
    while count == _PORTION:
        count = reader.read(islice(items, _PORTION))
        yield count


class CaptureActivity:
    """The activity in captures: files, directories and patterns."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._captures = GrowingCaptures(paths)
        self._reader = ActivityReader()
        self.table = self._reader.table

    @property
    def notes(self) -> list[str]:
        """Return what a person should know."""
        return self._captures.notes

    def read(self, *, must_exist: bool = False) -> Iterator[int]:
        """Read what was added, as `ActivitySource` has it."""
        return _in_portions(self._reader, self._captures.poll(must_exist=must_exist))

    def finish(self) -> None:
        """Take in what is not whole."""
        self._reader.finish()
        self._captures.notes.extend(self._captures.unfinished())

    def close(self) -> None:
        """Do nothing: no file stays open."""


class LiveActivity:
    """The activity in what running taps give at their sockets, from now on."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._captures = LiveCaptures(paths)
        self._reader = ActivityReader()
        self.table = self._reader.table

    @property
    def notes(self) -> list[str]:
        """Return what a person should know."""
        return self._captures.notes

    def read(self, *, must_exist: bool = False) -> Iterator[int]:  # noqa: ARG002 - a socket is there
        """Read what has come, as `ActivitySource` has it."""
        return _in_portions(self._reader, self._captures.poll())

    def finish(self) -> None:
        """Take in what is not whole."""
        self._reader.finish()
        self.close()

    def close(self) -> None:
        """Leave the taps."""
        self._captures.close()


class RequestLogActivity:
    """The activity in request logs: files, directories and patterns; local times are in a zone."""

    def __init__(self, paths: Sequence[str | Path], zone: Zone) -> None:
        self._logs = GrowingRequestLogs(paths, zone)
        self._reader = LoggedActivity()
        self.table = self._reader.table

    @property
    def notes(self) -> list[str]:
        """Return what a person should know."""
        return self._logs.notes

    def read(self, *, must_exist: bool = False) -> Iterator[int]:
        """Read what was added, as `ActivitySource` has it."""
        return _in_portions(self._reader, self._logs.poll(must_exist=must_exist))

    def finish(self) -> None:
        """Take in the last lines."""
        self._reader.read(self._logs.finish())
        if self._reader.forwarded:
            self._logs.notes.append(
                f"{self._reader.forwarded:,} requests that brokers forwarded are not counted again"
            )

    def close(self) -> None:
        """Close the logs that are open."""
        self._logs.close()


def open_activity(paths: Sequence[str | Path], timezone: str = "UTC") -> ActivitySource:
    """Return the source that ``paths`` name: captures, request logs in a zone, or taps' sockets.

    A directory without captures and logs is one for captures that are still to come. Raises
    `CaptureError` for a path that is not there, for several kinds together, and for log segments,
    which have no connections; `StorageError` for what cannot be listed, and `ArgumentError` for the
    zone.
    """
    zone = Zone(timezone)
    sockets = [path for path in paths if Path(path).is_socket()]
    if len(sockets) == len(paths):
        return LiveActivity(paths)
    if sockets:
        raise CaptureError(
            "a tap's socket beside files: a request that both show would count twice",
            source=str(sockets[0]),
        )
    begun = [path for path in paths if not _is_empty(path)]
    found = input_sources(begun) if begun else None
    if found is not None and found.request_logs:
        return RequestLogActivity(paths, zone)
    if found is not None and found.logs and not found.captures:
        raise CaptureError("log segments have no connections", source=found.logs[0].name)
    return CaptureActivity(paths)


def _is_empty(path: str | Path) -> bool:
    """Return whether a path is a directory without captures and logs."""
    if not Path(path).is_dir():
        return False
    try:
        list_files([path], has_input_name, INPUTS)
    except CaptureError:
        return True
    return False
