"""Files of a broker with an offset for each of its logs, in the directory of all these logs.

`log-start-offset-checkpoint` has where logs start. A broker moves the start when it is asked to
(`DeleteRecords`), and when a tier has given up what is older. It removes whole segments later. It
writes the file once a minute and when it stops, so that records may be read that were deleted
within the last minute.

`replication-offset-checkpoint` has the high watermarks: what the replicas in the ISR all have, and
consumers may read. A broker writes it every 5 seconds
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
# A broker writes it when it has stopped in order, and removes it when it starts.
_CLEAN: Final = ".kafka_cleanshutdown"
_PROPERTIES: Final = "meta.properties"
_ID: Final = re.compile(r"^(?:node|broker)\.id=([0-9]{1,10})\s*$", re.MULTILINE)

_VERSION: Final = "0"
_LINE: Final = re.compile(r"(\S+) ([0-9]{1,10}) ([0-9]{1,18})")
_LOGGER = logging.getLogger("flexwire")


class HighWatermarks(NamedTuple):
    """The high watermarks of a broker's logs, and whether it had stopped in order after them.

    If it had not, they may be 5 seconds old.
    """

    offsets: dict[Partition, int]
    is_exact: bool


def log_starts(directory: str) -> dict[Partition, int]:
    """Return the starts that are written down in a directory of logs, by partition.

    There are none where there is no such file, or where it is damaged, as a broker takes it then.
    Raises `StorageError`.
    """
    return _offsets(OutputDirectory(directory), STARTS)


def high_watermarks(directory: str) -> HighWatermarks:
    """Return the high watermarks that are written down in a directory of logs.

    There are none where there is no such file, or where it is damaged. Raises `StorageError`.
    """
    place = OutputDirectory(directory)
    return HighWatermarks(_offsets(place, HIGH_WATERMARKS), place.exists(_CLEAN))


def broker_of(directory: str) -> int | None:
    """Return the id of the broker whose logs are in a directory; None where no file says it."""
    place = OutputDirectory(directory)
    if not place.exists(_PROPERTIES):
        return None
    found = _ID.search(place.read(_PROPERTIES).decode("utf-8", "replace"))
    return None if found is None else int(found[1])


def _offsets(place: OutputDirectory, name: str) -> dict[Partition, int]:
    if not place.exists(name):
        return {}
    found = parse_offsets(place.read(name).decode("utf-8", "replace"))
    if found is None:
        _LOGGER.warning("%s/%s: left alone, as it is damaged", shown(place.url), name)
    return found or {}


def parse_offsets(text: str) -> dict[Partition, int] | None:
    r"""Return the offsets in the text of such a file; None where it is not as a broker writes it.

    A line has 0, one the number of logs, and one for each of them follows. A broker makes the file
    empty, and a file that ends after its first line has no entries either, as Kafka reads it.

    >>> parse_offsets("0\n1\norders 3 1200\n")
    {Partition(topic='orders', partition=3): 1200}
    >>> parse_offsets("")
    {}
    """
    lines = text.splitlines()
    if lines in ([], [_VERSION]):
        return {}
    matches = [_LINE.fullmatch(one) for one in lines[2:]]
    if lines[:2] != [_VERSION, str(len(matches))]:
        return None
    found = {Partition(one[1], int(one[2])): int(one[3]) for one in matches if one is not None}
    return found if len(found) == len(matches) else None
