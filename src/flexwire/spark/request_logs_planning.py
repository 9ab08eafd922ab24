"""From the files that were given to the pieces that tasks read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.errors import CaptureError
from flexwire.logs.request_log import LogReader, read_lines
from flexwire.logs.request_log.lines import LogFile, LogPiece, pieces_of
from flexwire.spark.publishing.commit import MOST_TASKS
from flexwire.survey.survey import Asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.logs.request_log import Zone

LEAST_TASK: Final = 16 << 20
"""A task reads so many bytes of lines at least, if there are as many: some seconds."""
MOST_TASK: Final = 512 << 20
# What is looked at of a file's end.
_END: Final = 1 << 18
# Of what is gzip'd the end is not known before all of it is read.
_LEAST_SPAN_US: Final = 600_000_000


@dataclass(frozen=True, slots=True)
class RequestLogPlan:
    """What the tasks of an analysis of request logs do.

    ``span_us`` is about how long it is from the first line to the last.
    """

    files: tuple[LogFile, ...]
    works: tuple[tuple[LogPiece, ...], ...]
    digest: str
    span_us: int

    @property
    def total(self) -> int:
        """About how many bytes of lines there are."""
        return sum(one.weight for one in self.files)


def plan_request_logs(files: Sequence[LogFile], tasks_at_once: int, zone: Zone) -> RequestLogPlan:
    """Plan the reading of request logs. Raises `CaptureError` where they are none."""
    if all(one.is_server_log for one in files):
        reason = "a broker's own log alone: it says which requests it refused, and needs the "
        raise CaptureError(f"{reason}request log beside it", source=files[0].source.name)
    total = sum(one.weight for one in files)
    size = max(LEAST_TASK, min(MOST_TASK, total // (2 * max(1, tasks_at_once))))
    size = max(size, -(-total // (MOST_TASKS // 2)))
    works = tuple(map(tuple, _works(pieces_of(files, size), size)))
    digest = Asked(tuple(one.source for one in files)).digest
    return RequestLogPlan(tuple(files), works, digest, _span_us(files, zone))


def undivided_note(files: Sequence[LogFile]) -> tuple[str, ...]:
    """Say which files are large and one task each, if any, and why."""
    large = [
        one
        for one in files
        if (one.is_gzipped or one.is_enveloped) and one.weight >= 2 * LEAST_TASK
    ]
    if not large:
        return ()
    most = max(large, key=lambda one: one.weight)
    others = f" and {len(large) - 1:,} more" if len(large) > 1 else ""
    told = (
        f"{most.source.name}{others}: one task each, as what is gzip'd can only be read from its "
        "start, and a line in envelopes of a container is in several of them. Unpacked, and "
        "without envelopes, a large file is read by many."
    )
    return (told,)


def _works(pieces: Iterable[LogPiece], size: int) -> Iterator[list[LogPiece]]:
    work: list[LogPiece] = []
    held = 0
    for piece in pieces:
        if work and held + piece.weight > size:
            yield work
            work, held = [], 0
        work.append(piece)
        held += piece.weight
    if work:
        yield work


def _span_us(files: Sequence[LogFile], zone: Zone) -> int:
    found: list[int] = []
    for file in files:
        if file.is_server_log:
            continue
        size = file.source.size
        whole = file.is_gzipped or file.is_enveloped
        found += _times(LogPiece(file, 0, None if whole else min(size, _END)), zone)[:1]
        if not whole and size:
            found += _times(LogPiece(file, max(0, size - _END)), zone, is_last=True)
    span = max(found) - min(found) if found else 0
    is_sure = not any(one.is_gzipped or one.is_enveloped for one in files)
    return span if is_sure else max(span, _LEAST_SPAN_US)


def _times(piece: LogPiece, zone: Zone, *, is_last: bool = False) -> list[int]:
    times: list[int] = []
    for one in LogReader(zone).read(read_lines(piece)):
        time_us = getattr(one, "time_us", None)
        if time_us is not None:
            times.append(time_us)
            if not is_last:
                break
    return times[-1:] if is_last else times
