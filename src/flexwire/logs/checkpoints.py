"""A broker's checkpoint files: one offset per log, in the directory that contains the logs.

`log-start-offset-checkpoint` contains the offsets at which logs start. A broker moves the start of
a log when a client requests it (`DeleteRecords`), and when a remote tier has dropped older
segments. The broker removes complete segments later. The broker writes the file once a minute and
when it stops. Records that were deleted within the last minute may therefore still be read.

`replication-offset-checkpoint` contains the high watermarks. All replicas in the ISR contain the
records up to these offsets, and consumers may read them. A broker writes the file every 5 seconds
(`replica.high.watermark.checkpoint.interval.ms`) and when it stops.
"""

from __future__ import annotations

import logging
import re
from typing import Final, NamedTuple

from flexwire.logs.files import Partition
from flexwire.storage.filesystems import shown
from flexwire.storage.output_directory import OutputDirectory

STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
# A broker writes this file after a clean shutdown, and removes it at the next start.
_CLEAN: Final = ".kafka_cleanshutdown"
_PROPERTIES: Final = "meta.properties"
_ID: Final = re.compile(r"^(?:node|broker)\.id=([0-9]{1,10})\s*$", re.MULTILINE)

_VERSION: Final = "0"
_LINE: Final = re.compile(r"(\S+) ([0-9]{1,10}) ([0-9]{1,18})")
_LOGGER = logging.getLogger("flexwire")


class HighWatermarks(NamedTuple):
    """The high watermarks of a broker's logs, and whether the broker shut down cleanly.

    After an unclean shutdown, the high watermarks may be up to 5 seconds out of date.
    """

    offsets: dict[Partition, int]
    is_exact: bool


def log_starts(directory: str) -> dict[Partition, int]:
    """Return the log start offsets in the checkpoint file of a log directory, by partition.

    The result is empty if the file is missing or damaged. A broker also ignores a damaged file.
    Raises `StorageError`.
    """
    return _offsets(OutputDirectory(directory), STARTS)


def high_watermarks(directory: str) -> HighWatermarks:
    """Return the high watermarks in the checkpoint file of a log directory.

    The result is empty if the file is missing or damaged. Raises `StorageError`.
    """
    place = OutputDirectory(directory)
    return HighWatermarks(_offsets(place, HIGH_WATERMARKS), place.exists(_CLEAN))


def broker_of(directory: str) -> int | None:
    """Return the id of the broker whose logs a directory contains, or None if it is unknown."""
    place = OutputDirectory(directory)
    if not place.exists(_PROPERTIES):
        return None
    match = _ID.search(place.read(_PROPERTIES).decode("utf-8", "replace"))
    return None if match is None else int(match[1])


def _offsets(place: OutputDirectory, name: str) -> dict[Partition, int]:
    if not place.exists(name):
        return {}
    offsets = parse_offsets(place.read(name).decode("utf-8", "replace"))
    if offsets is None:
        _LOGGER.warning("%s/%s: ignored, because it is damaged", shown(place.url), name)
    return offsets or {}


def parse_offsets(text: str) -> dict[Partition, int] | None:
    r"""Return the offsets in a checkpoint's text, or None if no broker would write such a text.

    The first line is 0, the second is the number of logs, and each further line describes one log.
    A file that a broker has just created is empty. Kafka also accepts a file that ends after its
    first line, and reads no entries from it.

    >>> parse_offsets("0\n1\norders 3 1200\n")
    {Partition(topic='orders', partition=3): 1200}
    >>> parse_offsets("")
    {}
    """
    lines = text.splitlines()
    if lines in ([], [_VERSION]):
        return {}
    matches = [_LINE.fullmatch(line) for line in lines[2:]]
    if lines[:2] != [_VERSION, str(len(matches))]:
        return None
    offsets = {
        Partition(match[1], int(match[2])): int(match[3]) for match in matches if match is not None
    }
    return offsets if len(offsets) == len(matches) else None
