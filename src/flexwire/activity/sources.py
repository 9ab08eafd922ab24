"""The sources of connection activity: captures, request logs, or tap sockets."""

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
"""Reading this many segments or lines takes a few seconds."""

_Item_contra = TypeVar("_Item_contra", contravariant=True)


class ActivitySource(Protocol):
    """The activity of connections, with messages for the user about the input.

    ``table`` contains the connections. ``notes`` grows during reading, and contains each message
    only once.
    """

    table: ActivityTable

    @property
    def notes(self) -> list[str]:
        """Return the messages for the user."""

    def read(self, *, must_exist: bool = False) -> Iterator[int]:
        """Read the new data in portions that take a few seconds each; yield each portion's size.

        The last portion is smaller than all the others, and its size may be 0. Raises the source's
        `CaptureError` and `StorageError`.
        """

    def finish(self) -> None:
        """Process incomplete frames and lines. Call this method when the input has stopped growing.

        Nothing is read afterwards.
        """

    def close(self) -> None:
        """Close the open files. A second call has no effect."""


class _Reader(Protocol[_Item_contra]):
    def read(self, items: Iterable[_Item_contra], /) -> int: ...


def _in_portions(reader: _Reader[_Item_contra], items: Iterator[_Item_contra]) -> Iterator[int]:
    count = _PORTION
    while count == _PORTION:
        count = reader.read(islice(items, _PORTION))
        yield count


class CaptureActivity:
    """The activity in captures, given as files, directories and patterns."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._captures = GrowingCaptures(paths)
        self._reader = ActivityReader()
        self.table = self._reader.table

    @property
    def notes(self) -> list[str]:
        """Return the messages for the user."""
        return self._captures.notes

    def read(self, *, must_exist: bool = False) -> Iterator[int]:
        """Read the new data, as described in `ActivitySource`."""
        return _in_portions(self._reader, self._captures.poll(must_exist=must_exist))

    def finish(self) -> None:
        """Process incomplete frames."""
        self._reader.finish()
        self._captures.notes.extend(self._captures.unfinished())

    def close(self) -> None:
        """Do nothing, because no file remains open."""


class LiveActivity:
    """The activity that running taps report after flexwire has connected to them."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._captures = LiveCaptures(paths)
        self._reader = ActivityReader()
        self.table = self._reader.table

    @property
    def notes(self) -> list[str]:
        """Return the messages for the user."""
        return self._captures.notes

    def read(self, *, must_exist: bool = False) -> Iterator[int]:  # noqa: ARG002 - a socket always exists
        """Read the new data, as described in `ActivitySource`."""
        return _in_portions(self._reader, self._captures.poll())

    def finish(self) -> None:
        """Process incomplete frames."""
        self._reader.finish()
        self.close()

    def close(self) -> None:
        """Disconnect from the taps."""
        self._captures.close()


class RequestLogActivity:
    """The activity in request logs: files, directories and patterns, with a time zone."""

    def __init__(self, paths: Sequence[str | Path], zone: Zone) -> None:
        self._logs = GrowingRequestLogs(paths, zone)
        self._reader = LoggedActivity()
        self.table = self._reader.table

    @property
    def notes(self) -> list[str]:
        """Return the messages for the user."""
        return self._logs.notes

    def read(self, *, must_exist: bool = False) -> Iterator[int]:
        """Read the new data, as described in `ActivitySource`."""
        return _in_portions(self._reader, self._logs.poll(must_exist=must_exist))

    def finish(self) -> None:
        """Process the last lines."""
        self._reader.read(self._logs.finish())
        if self._reader.forwarded:
            self._logs.notes.append(
                f"{self._reader.forwarded:,} requests that brokers forwarded are not counted again"
            )

    def close(self) -> None:
        """Close the open logs."""
        self._logs.close()


def open_activity(paths: Sequence[str | Path], timezone: str = "UTC") -> ActivitySource:
    """Return the source for ``paths``: captures, request logs, or tap sockets.

    A directory that contains neither captures nor logs is treated as a directory for future
    captures. Raises `CaptureError` for a path that does not exist, for a mixture of several kinds,
    and for log segments, which contain no connections. Raises `StorageError` for a failed listing,
    and `ArgumentError` for an unknown time zone.
    """
    zone = Zone(timezone)
    sockets = [path for path in paths if Path(path).is_socket()]
    if len(sockets) == len(paths):
        return LiveActivity(paths)
    if sockets:
        raise CaptureError(
            "expected a tap's socket or files, got both: a request in both would be counted twice",
            source=str(sockets[0]),
        )
    begun = [path for path in paths if not _is_empty(path)]
    found = input_sources(begun) if begun else None
    if found is not None and found.request_logs:
        return RequestLogActivity(paths, zone)
    if found is not None and found.logs and not found.captures:
        raise CaptureError(
            "expected captures, request logs or a tap: log segments contain no connections",
            source=found.logs[0].name,
        )
    return CaptureActivity(paths)


def _is_empty(path: str | Path) -> bool:
    """Return whether a path is a directory that contains neither captures nor logs."""
    if not Path(path).is_dir():
        return False
    try:
        list_files([path], has_input_name, INPUTS)
    except CaptureError:
        return True
    return False
