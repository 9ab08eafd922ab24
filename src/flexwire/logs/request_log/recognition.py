"""Recognize brokers' logs by their content, whatever their names are."""

from __future__ import annotations

import re
import zlib
from contextlib import closing
from enum import Enum
from typing import TYPE_CHECKING, Final

from flexwire.errors import CaptureError
from flexwire.logs.request_log.lines import GZIP_MAGIC, RequestLogFile, is_enveloped

if TYPE_CHECKING:
    from flexwire.storage.input_file import InputFile

COMPLETED: Final = b"Completed request:"
NAMES: Final = re.compile(r"(^|[._-])(kafka-request|server)\.log([.-].*)?$")
"""The names in a broker's default configuration, including those of rotated files."""
BROKER_LOG_NAMES: Final = "has the name of a broker's log (kafka-request.log*, server.log*)"
"""A description of these names, for error messages."""

_LOOKED_AT: Final = 1 << 18
# A line in a broker's own log, in Kafka's default layout or in any other layout that contains the
# name of the logger. A single pattern would be slow for a line that repeats the first part, so the
# search takes two steps.
_SERVER_LINE: Final = re.compile(
    rb"^.{0,64}?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d.{0,256}?\b(?:INFO|WARN|ERROR|DEBUG|TRACE|FATAL)\b"
)
_LOGGER: Final = re.compile(rb"\b(?:kafka|org\.apache\.kafka)\.")


class BrokerLogKind(Enum):
    """The kind of a broker's log."""

    REQUESTS = "a request log"
    SERVER = "a broker's own log"


def is_broker_log(name: str) -> bool:
    """Return whether a file has the name of a broker's log.

    >>> is_broker_log("kafka-request.log.2026-11-22-10.gz"), is_broker_log("notes.log")
    (True, False)
    """
    return NAMES.search(name) is not None


def kind_of(source: InputFile) -> tuple[BrokerLogKind, bool, bool] | None:
    """Return the kind of a broker's log and whether it is gzipped and enveloped, or else None.

    Raises `StorageError` if the file cannot be read.
    """
    with closing(source.open(0, min(source.size, _LOOKED_AT))) as file:
        head = file.read(_LOOKED_AT)
    is_gzipped = head.startswith(GZIP_MAGIC)
    if is_gzipped:
        try:
            head = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, _LOOKED_AT)
        except zlib.error:
            return None
    lines = head.split(b"\n")
    wrapped = any(map(is_enveloped, lines[:8]))
    name = source.name.rpartition("/")[2]
    if COMPLETED in head:
        return BrokerLogKind.REQUESTS, is_gzipped, wrapped
    if b"\0" not in head and any(map(_is_server_line, lines)):
        return BrokerLogKind.SERVER, is_gzipped, wrapped
    is_begun = b"\n" not in head and b"\0" not in head and source.size <= _LOOKED_AT
    if is_begun and is_broker_log(name):
        # At level INFO, the brokers of most releases write no request log. The first line of a log
        # may not be complete yet.
        return (
            (BrokerLogKind.SERVER if "server" in name else BrokerLogKind.REQUESTS),
            is_gzipped,
            wrapped,
        )
    return None


def _is_server_line(line: bytes) -> bool:
    begun = _SERVER_LINE.match(line)
    return begun is not None and _LOGGER.search(line, begun.end()) is not None


def log_file(source: InputFile, number: int) -> RequestLogFile | None:
    """Return how to read a file, or None if the file is not a broker's log.

    Raises `CaptureError` for a file that has the name of a broker's log but not its content.
    """
    recognised = kind_of(source)
    if recognised is None:
        if is_broker_log(source.name.rpartition("/")[2]):
            reason = (
                "the file has the name of a broker's log, but does not begin with lines of such a "
                "log"
            )
            raise CaptureError(reason, source=source.name)
        return None
    kind, is_gzipped, wrapped = recognised
    return RequestLogFile(source, number, kind is BrokerLogKind.SERVER, is_gzipped, wrapped)
