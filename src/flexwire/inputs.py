"""The kinds of input files: captures, log segments, and broker logs.

Only this module recognizes these kinds: by name, by content, and by the first bytes of standard
input.
"""

from __future__ import annotations

import zlib
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.files.reading import begins_as_capture
from flexwire.errors import CaptureError, StorageError
from flexwire.logs.files import LOG_NAMES, is_log_file
from flexwire.logs.request_log.lines import GZIP_MAGIC
from flexwire.logs.request_log.recognition import BROKER_LOG_NAMES, is_broker_log, log_file
from flexwire.storage.file_search import CAPTURES, has_capture_name, list_captures, list_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from flexwire.logs.request_log.lines import RequestLogFile
    from flexwire.storage.input_file import InputFile

LOOKED_AT: Final = 1 << 12
"""The number of bytes at the start of an input that are enough to recognize its kind."""
INPUTS: Final = f"{CAPTURES}, {BROKER_LOG_NAMES}, or {LOG_NAMES}"
"""A description of input names, for error messages."""
# The magic number of a batch or a message set, at most 2, is at this position.
_MAGIC, _NEWEST_MAGIC = 16, 2


class AnalysisFileKind(Enum):
    """The kind of an input file."""

    CAPTURE = "a capture"
    LOG = "a log segment, or another file in a log directory"
    BROKER_LOG = "a request log, or a broker's own log"


class Inputs(NamedTuple):
    """The files below the given paths: captures, topic log files, and request logs."""

    captures: list[InputFile]
    logs: list[InputFile]
    request_logs: list[RequestLogFile]


def kind_by_name(name: str) -> AnalysisFileKind | None:
    """Return the kind of a file with this name, or None if the name does not indicate the kind.

    >>> kind_by_name("tap-1.pcapng.gz"), kind_by_name("notes.txt")
    (<AnalysisFileKind.CAPTURE: 'a capture'>, None)
    """
    if is_log_file(name):
        return AnalysisFileKind.LOG
    if has_capture_name(name):
        return AnalysisFileKind.CAPTURE
    return AnalysisFileKind.BROKER_LOG if is_broker_log(name) else None


def kind_by_bytes(head: bytes) -> AnalysisFileKind:
    """Return the kind of a file that begins with these bytes, whether or not it is gzip-compressed.

    ``head`` contains the first `LOOKED_AT` bytes, or the complete file. A file that is neither a
    capture nor a log segment can only be a broker's text log.

    >>> kind_by_bytes(bytes.fromhex("0a0d0d0a"))
    <AnalysisFileKind.CAPTURE: 'a capture'>
    """
    is_gzipped = head.startswith(GZIP_MAGIC)
    if begins_as_capture(_inflated(head) if is_gzipped else head):
        return AnalysisFileKind.CAPTURE
    if not is_gzipped and len(head) > _MAGIC and head[_MAGIC] <= _NEWEST_MAGIC:
        return AnalysisFileKind.LOG
    return AnalysisFileKind.BROKER_LOG


def _inflated(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, LOOKED_AT)
    except zlib.error:
        # The reader of the file will report the problem.
        return b""


def capture_sources(paths: Iterable[str | Path]) -> list[InputFile]:
    """Return the files that `list_captures` finds.

    No two files in the result have the same name.
    """
    return _of_one_name(list_captures(paths))


def input_sources(paths: Iterable[str | Path]) -> Inputs:
    """Return the inputs below ``paths``.

    If log segments are given, the files next to them are read too.

    The kind of a file is determined by its name, or else by its content. A path to a file may have
    any name. In a directory, files whose names do not indicate a type are skipped. Raises
    `CaptureError` for captures together with request logs, because a request in both would be
    counted twice.
    """
    inputs = Inputs([], [], [])
    for file in _of_one_name(list_files(paths, has_input_name, INPUTS)):
        kind = kind_by_name(file.url.rpartition("/")[2])
        if kind is AnalysisFileKind.LOG:
            inputs.logs.append(file)
        elif kind is AnalysisFileKind.CAPTURE:
            inputs.captures.append(file)
        elif (log := log_file(file, len(inputs.request_logs))) is not None:
            inputs.request_logs.append(log)
        else:
            inputs.captures.append(file)
    if inputs.captures and inputs.request_logs:
        raise CaptureError(
            f"this request log was given together with the capture {inputs.captures[0].name}. A "
            "request in both would be counted twice, so analyze captures and request logs "
            "separately",
            source=inputs.request_logs[0].source.name,
        )
    return inputs


def has_input_name(name: str) -> bool:
    """Return whether a file has the name of an input."""
    return kind_by_name(name) is not None


def _of_one_name(sources: list[InputFile]) -> list[InputFile]:
    if len({source.name for source in sources}) < len(sources):
        names = [source.name for source in sources]
        twice = next(name for name in names if names.count(name) > 1)
        raise StorageError("two files differ only in a hidden part of their URLs", url=twice)
    return sources
