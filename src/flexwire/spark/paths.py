"""What the paths on a command line mean: captures, and where the output goes, by path or URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import CaptureError, StorageError
from flexwire.logs.files import is_log_file
from flexwire.logs.finding import WORDS
from flexwire.logs.request_log.recognition import WORDS as BROKERS_LOGS
from flexwire.logs.request_log.recognition import is_broker_log, log_file
from flexwire.storage.filesystems import scheme_of, shown
from flexwire.storage.listing import CAPTURES, SUFFIXES, is_capture, list_files, list_sources
from flexwire.storage.place import Place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from flexwire.logs.request_log.lines import LogFile
    from flexwire.storage.source import Source

__all__ = [
    "SUFFIXES",
    "Inputs",
    "capture_sources",
    "input_sources",
    "output_place",
]


def capture_sources(paths: Iterable[str | Path]) -> list[Source]:
    """The files that `list_sources` finds, no two of one name."""
    return _of_one_name(list_sources(paths))


class Inputs(NamedTuple):
    """What paths name: captures, the files of logs, and brokers' request logs."""

    captures: list[Source]
    logs: list[Source]
    request_logs: list[LogFile]


def input_sources(paths: Iterable[str | Path]) -> Inputs:
    """What ``paths`` name: of logs the segments and what is beside them.

    What a file is its name says, and where it says neither, what is in it; of a directory, others
    are left alone. Any file may be named. Raises `CaptureError` for captures and request logs
    together: a request that both show would count twice.
    """
    words = f"{CAPTURES}, {BROKERS_LOGS}, or {WORDS}"
    found = _of_one_name(list_files(paths, _is_input, words))
    captures: list[Source] = []
    logs: list[Source] = []
    request_logs: list[LogFile] = []
    for one in found:
        name = one.url.rpartition("/")[2]
        if is_log_file(name):
            logs.append(one)
        elif is_capture(name):
            captures.append(one)
        elif (log := log_file(one, len(request_logs))) is not None:
            request_logs.append(log)
        else:
            captures.append(one)
    if captures and request_logs:
        raise CaptureError(
            f"a request log, beside the capture {captures[0].name}: a request that both show would "
            "count twice, so analyze them one after the other",
            source=request_logs[0].source.name,
        )
    return Inputs(captures, logs, request_logs)


def _is_input(name: str) -> bool:
    return is_capture(name) or is_log_file(name) or is_broker_log(name)


def _of_one_name(sources: list[Source]) -> list[Source]:
    if len({one.name for one in sources}) < len(sources):
        names = [one.name for one in sources]
        twice = next(name for name in names if names.count(name) > 1)
        raise StorageError("two files differ only in what is not shown of a URL", url=twice)
    return sources


def output_place(out: str | Path) -> Place:
    """Where an analysis writes: a directory here, or one in a store. `StorageError` for another."""
    text = str(out)
    if scheme_of(text) == "memory":
        raise StorageError(
            "expected a directory or a store that every process sees; memory:// is of one alone",
            url=shown(text),
        )
    return Place(text)
