"""Whether files are likely to overlap, from where a few of them begin and end.

It saves a survey in pieces that comes to nothing: files that overlap in time and show the same
connections have to be merged. What is not noticed here, the fold notices.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from flexwire.capture.reassembly.segments import SegmentColumns
from flexwire.survey.findings import clocks
from flexwire.survey.inputs import LOOK_BYTES, reader_of
from flexwire.survey.pieces import COMPRESSED, Piece

if TYPE_CHECKING:
    from flexwire.storage.source import Source
    from flexwire.survey.survey_parts import Asked

LOOKED_AT: Final = 4
"""So many files, the first of the capture, are looked at: as many hosts begin with one each."""
INFLATED_BYTES: Final = 64 << 20
"""Of a gzip'd file, whose end is nowhere but after all of it, so many bytes are read at most."""


def likely_overlap(asked: Asked, files: list[Source]) -> bool:
    """Whether one of the first files ends with a connection later than another begins with it.

    A gzip'd file is read until its clock is where the last of the others begins, if that is soon.
    """
    asked = replace(asked, chunk_bytes=min(asked.chunk_bytes, LOOK_BYTES))
    begun = [_begins(asked, file) for file in files[:LOOKED_AT]]
    last_us = max((first_us for its in begun for first_us in its.values()), default=0)
    ended: dict[str, int] = {}
    for file, its in zip(files, begun, strict=False):
        if any(ended.get(key, first_us) > first_us for key, first_us in its.items()):
            return True
        for key, ends in _ends(asked, file, last_us).items():
            ended[key] = max(ends, ended.get(key, ends))
    return False


def _begins(asked: Asked, file: Source) -> dict[str, int]:
    """When connections were first seen in the first bytes of a file."""
    with closing(reader_of(asked, [file]).chunks()) as chunks:
        first = next(chunks)
    if not isinstance(first, SegmentColumns):
        return {}
    return {key: begins for key, begins, _ in clocks(first)[0]}


def _ends(asked: Asked, file: Source, last_us: int) -> dict[str, int]:
    """When connections were last seen in the last bytes of a file, or in its first if gzip'd."""
    is_inflated = file.name.endswith(COMPRESSED)
    start = Piece((file,), 0 if is_inflated else max(0, file.size - LOOK_BYTES)).begin()
    found: dict[str, int] = {}
    if start is None:
        return found
    size = 0
    with closing(reader_of(asked, [file], start).chunks()) as chunks:
        for item in chunks:
            if isinstance(item, SegmentColumns):
                told, clock = clocks(item)
                found |= {key: ends for key, _, ends in told}
                size += item.weight
                if is_inflated and (clock > last_us or size >= INFLATED_BYTES):
                    break
    return found
