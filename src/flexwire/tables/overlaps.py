"""Whether files are likely to overlap, from where a few of them begin and end.

It saves a survey in pieces that comes to nothing: files that overlap in time and show the same
connections have to be merged. What is not noticed here, the fold notices.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from flexwire.capture.columns.segments import SegmentColumns
from flexwire.tables.findings import clocks
from flexwire.tables.inputs import LOOK_BYTES, reader_of
from flexwire.tables.pieces import COMPRESSED, Piece

if TYPE_CHECKING:
    from flexwire.storage.source import Source
    from flexwire.tables.survey_parts import Asked

LOOKED_AT: Final = 4
"""So many files, the first of the capture, are looked at: as many hosts begin with one each."""


def likely_overlap(asked: Asked, files: list[Source]) -> bool:
    """Whether one of the first files ends with a connection later than another begins with it."""
    asked = replace(asked, chunk_bytes=min(asked.chunk_bytes, LOOK_BYTES))
    ended: dict[str, int] = {}
    for file in files[:LOOKED_AT]:
        begun = _begins(asked, file)
        if any(ended.get(key, first_us) > first_us for key, first_us in begun.items()):
            return True
        for key, last_us in _ends(asked, file).items():
            ended[key] = max(last_us, ended.get(key, last_us))
    return False


def _begins(asked: Asked, file: Source) -> dict[str, int]:
    """When connections were first seen in the first bytes of a file."""
    with closing(reader_of(asked, [file]).chunks()) as chunks:
        first = next(chunks)
    if not isinstance(first, SegmentColumns):
        return {}
    return {key: begins for key, begins, _ in clocks(first)[0]}


def _ends(asked: Asked, file: Source) -> dict[str, int]:
    """When connections were last seen in the last bytes of a file."""
    start = None
    if not file.name.endswith(COMPRESSED):
        start = Piece((file,), max(0, file.size - LOOK_BYTES)).begin()
    if start is None:
        return {}
    found: dict[str, int] = {}
    for item in reader_of(asked, [file], start):
        if isinstance(item, SegmentColumns):
            found |= {key: ends for key, _, ends in clocks(item)[0]}
    return found
