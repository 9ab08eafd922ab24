"""The capture files of an analysis: how a task opens them, and what a first look at them says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.files.comments import Part, added_tags_in, part_in
from flexwire.capture.files.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import open_capture, packets_of
from flexwire.capture.reassembly.segments import FileNotes, SegmentReader
from flexwire.errors import CaptureError, StorageError
from flexwire.storage.filesystems import scheme_of
from flexwire.storage.source import PIECE_BYTES

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable

    from flexwire.capture.files.reading import Opener
    from flexwire.capture.reassembly.segments import Position
    from flexwire.storage.source import Source
    from flexwire.survey.survey_parts import Asked

LOOK_BYTES: Final = 1 << 20
"""Of a file with a segment in so many bytes no more are read to say when it begins."""

# So much of a file is fetched from a store at a time, however many are read at once.
_LEAST_PIECE = 256 * 1024
# A look at a file in a store is mostly waiting for it.
_LOOKS_AT_ONCE = 16


class Marks(NamedTuple):
    """What a capture file says of itself, before its first packet.

    ``part`` is what it holds, where that is not all. ``added_tags`` are the header tags that its
    tap adds to the requests that it sends on.
    """

    part: Part | None = None
    added_tags: tuple[int, ...] = ()


NO_MARKS: Final = Marks()


@dataclass(frozen=True, slots=True)
class Look:
    """When the first segment of a file was captured, or why the file gives none.

    Without any it is that of a packet, or 0. ``marks`` are what it says of itself.
    """

    source: Source
    first_us: int = 0
    error: CaptureError | None = None
    marks: Marks = NO_MARKS


def opener(sources: Iterable[Source], among: int = 1) -> Opener:
    """Open these files by their names, as they were listed, to be read ``among`` so many at once.

    Raises `OSError` for one that cannot be opened, and `StorageError`, then and while it is read,
    for one that is gone or another by now.
    """
    return _opener(sources, None, max(PIECE_BYTES // among, _LEAST_PIECE))


def reader_of(
    asked: Asked,
    files: list[Source],
    start: Position | None = None,
    stop: Position | None = None,
) -> SegmentReader:
    """Read the segments of some files, in their order, as the survey does."""
    return SegmentReader(
        [one.name for one in files],
        chunk_bytes=asked.chunk_bytes,
        start=start,
        stop=stop,
        opener=opener(files),
        show_credentials=asked.show_credentials,
    )


def looks(sources: Iterable[Source]) -> list[Look]:
    """Look at each file, in their order. Raises `StorageError` for one that is gone or another."""
    every = list(sources)
    if not any(scheme_of(one.url) for one in every):
        return list(map(_look, every))
    with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="flexwire-look") as pool:
        return list(pool.map(_look, every))


def marks_of(sources: Iterable[Source]) -> list[tuple[str, Marks]]:
    """Each file that says something of itself, by its name."""
    found = []
    for source in sources:
        with suppress(CaptureError), open_capture(source.name, opener([source])) as (file, _):
            if (marks := _marks(file)) != NO_MARKS:
                found.append((source.name, marks))
    return found


def _marks(file: io.BufferedReader[Any]) -> Marks:
    return Marks(part_in(file), added_tags_in(file))


def _look(source: Source) -> Look:
    try:
        packet_us, segment_us, marks = _first_us(source, min(LOOK_BYTES, source.size))
        if segment_us is None:
            # What comes before all segments may be long.
            segment_us = _first_segment_us(source)
    except CaptureError as error:
        return Look(source, error=error)
    first_us = (packet_us or 0) if segment_us is None else segment_us
    return Look(source, first_us, marks=marks)


def _first_us(source: Source, stop: int) -> tuple[int | None, int | None, Marks]:
    """When the first packet, and the first segment, of a part of a file was captured.

    And what it says of itself.
    """
    first_us = None
    with open_capture(source.name, _opener([source], stop)) as (file, _):
        marks = _marks(file)
        for packet in packets_of(source.name, file):
            if not isinstance(packet, CapturedPacket):
                continue
            if first_us is None:
                first_us = packet.timestamp_us
            try:
                read_segment(packet)
            except (Skipped, UnreadablePacketError):
                continue
            return first_us, packet.timestamp_us, marks
    return first_us, None, marks


def _first_segment_us(source: Source) -> int | None:
    chunks = SegmentReader([source.name], chunk_bytes=LOOK_BYTES, opener=opener([source])).chunks()
    with closing(chunks):
        first = next(chunks)
    if isinstance(first, FileNotes):
        if first.error is not None:
            raise first.error
        return None
    return int(first.timestamp_us[0])


def _opener(sources: Iterable[Source], stop: int | None, piece: int = PIECE_BYTES) -> Opener:
    by_name = {one.name: one for one in sources}

    def opened(name: str, start: int) -> io.BufferedReader[Any]:
        try:
            return by_name[name].open(start, stop, piece=piece)
        except StorageError as error:
            if error.tried != "open":
                raise
            raise OSError(error.reason) from error

    return opened
