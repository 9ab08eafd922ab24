"""Read capture files and pair frames in plain Python: the reference for all faster readers.

Each segment, frame and pair is an object, and all are held in memory. This module uses no survey,
no ranges, and no columns.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.capture.files.links import SegmentCounts, read_segments
from flexwire.capture.files.packets import Segment
from flexwire.capture.pairing.headers import FrameReader
from flexwire.capture.pairing.state import (
    FAILED,
    NOT_KAFKA,
    UNBELIEVED,
    UNPAIRED,
    UNPAIRED_REASON,
)
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame

    Row = dict[str, Any]

NO_BROKERS = BrokerEnds()
DIFFERENT_REASONS = 1000
"""This many reasons for one file are counted separately (docs/limits.md)."""
FURTHER_REASONS = "further reasons"

COLUMNS = (
    *("source", "connection", "direction", "frame_index", "time", "size", "payload"),
    *("outcome", "error"),
    *("message", "api_key", "api_version", "correlation_id", "client_id", "header_version"),
    *("body_offset", "header_unknown_tagged_fields", "withheld_credentials", "is_guarded"),
    *("answered", "latency_us", "body"),
)
# The facts that a frame contains about itself, if they can be trusted.
_READ = (*COLUMNS[9:17], "pair")
_GIVEN = ("api_key", "api_version", "client_id")


class Note(NamedTuple):
    """The number of a file's packets that were not used for a reason; None counts all
    its packets.
    """

    source: str
    reason: str | None
    packets: int
    sample: bytes | None = None


class Clocked(NamedTuple):
    """A segment, the latest time of its file so far, and its position in the file."""

    clock_us: int
    file: str
    ordinal: int
    segment: Segment


def read_file(
    file: str | Path, *, show_credentials: bool = False
) -> tuple[list[Clocked], list[Note]]:
    """Return the segments of a file in the file's order, and the notes about the file."""
    name, counts, clock_us = str(file), SegmentCounts(), 0
    unused: dict[str, int] = {}
    samples: dict[str, bytes] = {}
    segments: list[Clocked] = []

    def count(reason: str, packets: int, sample: bytes | None = None) -> None:
        if reason not in unused and len(unused) >= DIFFERENT_REASONS:
            reason = FURTHER_REASONS
        unused[reason] = unused.get(reason, 0) + packets
        if sample:
            samples.setdefault(reason, sample)

    try:
        for ordinal, item in enumerate(read_segments(name, counts)):
            if isinstance(item, Segment):
                clock_us = max(clock_us, item.timestamp_us)
                segments.append(Clocked(clock_us, name, ordinal, item))
            else:
                count(item.reason, 1, item.data if show_credentials else None)
    except CaptureError as error:
        # The file's row states why the file has no frames.
        count(error.reason, 0)
    for reason, packets in counts.skipped.items():
        count(reason, packets)
    notes = [Note(name, None, counts.packets)]
    notes += [Note(name, reason, count, samples.get(reason)) for reason, count in unused.items()]
    return segments, notes


def values_of(segment: Segment) -> tuple[Any, ...]:
    """Return the values of a segment's fields, in the order of the fields."""
    return tuple(getattr(segment, name) for name in segment.__struct_fields__)


def in_order(segments: Iterable[Clocked]) -> list[Clocked]:
    """Return segments of several files in capture order.

    The files' clocks decide. If clocks are equal, the file whose name sorts first comes first.
    """
    return sorted(segments, key=itemgetter(0, 1, 2))


class Assembled(NamedTuple):
    """The frames of a capture, each with the file of its last segment, and its connections."""

    frames: list[tuple[str, CapturedFrame]]
    connections: list[CapturedConnection]


def assembled(segments: Iterable[Clocked], brokers: BrokerEnds = NO_BROKERS) -> Assembled:
    """Return the frames and the connections of ordered segments."""
    assemblers: dict[str, FrameAssembler] = {}
    last: dict[str, str] = {}
    found = Assembled([], [])

    def take(key: str, frames: Sequence[CapturedFrame]) -> None:
        found.frames.extend((last[key], one) for one in frames)
        found.connections.extend(assemblers[key].ended())

    for one in segments:
        key = connection_key(one.segment)
        last[key] = one.file
        assembler = assemblers.setdefault(key, FrameAssembler(brokers=brokers))
        take(key, assembler.push(one.segment))
    for key, assembler in assemblers.items():
        take(key, assembler.finish())
    return found


class Captured(NamedTuple):
    """The content of capture files: frames, connections and notes about packets."""

    frames: list[tuple[str, CapturedFrame]]
    connections: list[CapturedConnection]
    notes: list[Note]


def captured(
    files: Iterable[str | Path], brokers: BrokerEnds = NO_BROKERS, *, show_credentials: bool = False
) -> Captured:
    """Read capture files whole."""
    read = [read_file(one, show_credentials=show_credentials) for one in files]
    segments = in_order(one for of_file, _ in read for one in of_file)
    return Captured(*assembled(segments, brokers), [one for _, notes in read for one in notes])


def paired_rows(
    frames: Iterable[tuple[str, CapturedFrame]],
    connections: Iterable[CapturedConnection],
    *,
    show_credentials: bool = False,
) -> list[Row]:
    """Return the rows of `PAIRED`, in frame order; ``time`` is in microseconds."""
    known = {one.connection: one for one in connections}
    rows = [
        _judged(row, known.get(row["connection"]))
        for row in read_rows(frames, show_credentials=show_credentials)
    ]
    by_pair: dict[str, dict[tuple[str, int], Row]] = {"request": {}, "response": {}}
    for row in rows:
        if row["pair"] is not None:
            by_pair[row["direction"]][row["connection"], row["pair"]] = row
    for row in rows:
        key = row["connection"], row["pair"]
        if row["direction"] == "request":
            if row["pair"] is not None:
                # If a request is damaged, it cannot be known that the request had no answer.
                is_known = row["outcome"] is None
                row["answered"] = key in by_pair["response"] or (False if is_known else None)
        else:
            _answer(row, by_pair["request"].get(key))
    return [_with_body(row, show_credentials=show_credentials) for row in rows]


def read_rows(
    frames: Iterable[tuple[str, CapturedFrame]], *, show_credentials: bool = False
) -> list[Row]:
    """Return the rows that `FrameReader` returns for each frame."""
    readers: dict[str, FrameReader] = {}
    rows = []
    for file, frame in frames:
        reader = readers.setdefault(
            frame.connection, FrameReader(show_credentials=show_credentials)
        )
        row: Row = dict.fromkeys((*COLUMNS, "pair"))
        row |= {
            "source": file,
            "connection": frame.connection,
            "direction": frame.direction,
            "frame_index": frame.index,
            "time": frame.timestamp_us,
            "size": frame.size,
            "payload": frame.payload,
            "withheld_credentials": 0,
            **reader.read(frame),
        }
        rows.append(row)
    return rows


def _judged(row: Row, connection: CapturedConnection | None) -> Row:
    is_other = connection is not None and not connection.is_kafka
    is_unread = (
        connection is not None and not connection.reads_as_kafka and row["direction"] == "request"
    )
    if is_other or is_unread:
        row |= dict.fromkeys(_READ)
        row["outcome"] = NOT_KAFKA if is_other else FAILED
        row["error"] = None if is_other else row["error"] or UNBELIEVED
    if is_other:
        row["withheld_credentials"] = 0
    is_known = connection is not None and connection.seen_from_start and connection.reads_as_kafka
    row["is_guarded"] = row["is_guarded"] or not is_known
    return row


def _answer(row: Row, request: Row | None) -> None:
    if row["outcome"] is None and (request is None or request["message"] is None):
        row["outcome"], row["error"] = UNPAIRED, UNPAIRED_REASON % row["correlation_id"]
    if request is not None:
        row |= {name: request[name] for name in _GIVEN}
        row["message"] = request["message"].removesuffix("Request") + "Response"
        row["latency_us"] = row["time"] - request["time"]


def _with_body(row: Row, *, show_credentials: bool) -> Row:
    row["body"] = row["message"] if row["outcome"] is None else None
    del row["pair"]
    is_withheld = row["outcome"] is not None and (
        row["outcome"] in {UNPAIRED, NOT_KAFKA} or row["is_guarded"]
    )
    if is_withheld and not show_credentials:
        if row["payload"] and row["outcome"] != NOT_KAFKA:
            row["withheld_credentials"] = 1
        row["payload"] = None
    return row
