"""Where the logs of a broker start: records before that were deleted, though files may have them.

A broker moves the start of a log when it is asked to (`DeleteRecords`), and when a tier has given
up what is older; whole segments are removed later. It writes the starts of such logs to a file in
the directory of all its logs, once a minute and when it stops. So what was deleted within the last
minute may be given.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from flexwire.capture.logs.names import Partition
from flexwire.storage.place import Place
from flexwire.storage.urls import shown

FILE: Final = "log-start-offset-checkpoint"
"""The name of that file: a line with 0, one with the number of logs, and one for each of them."""

_VERSION: Final = "0"
_LINE: Final = re.compile(r"(\S+) ([0-9]{1,10}) ([0-9]{1,18})")
_LOGGER = logging.getLogger("flexwire")


def log_starts(directory: str) -> dict[Partition, int]:
    """Give the starts that are written down in a directory of logs, by partition.

    There are none where there is no such file, or where it is damaged, as a broker takes it then.
    Raises `StorageError`.
    """
    place = Place(directory)
    if not place.exists(FILE):
        return {}
    found = parse_starts(place.read(FILE).decode("utf-8", "replace"))
    if found is None:
        _LOGGER.warning("%s/%s: left alone, as it is damaged", shown(directory), FILE)
    return found or {}


def parse_starts(text: str) -> dict[Partition, int] | None:
    r"""Give the starts in the text of such a file; None where it is not as a broker writes it.

    >>> parse_starts("0\n1\norders 3 1200\n")
    {Partition(topic='orders', partition=3): 1200}
    """
    lines = text.splitlines()
    matches = [_LINE.fullmatch(one) for one in lines[2:]]
    if lines[:2] != [_VERSION, str(len(matches))]:
        return None
    found = {Partition(one[1], int(one[2])): int(one[3]) for one in matches if one is not None}
    return found if len(found) == len(matches) else None
