"""Paired frames by plain Python, frame by frame: what the pipeline's joins make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.capture.pairing.reading import FrameReader
from flexwire.capture.pairing.state import (
    FAILED,
    NOT_KAFKA,
    UNBELIEVED,
    UNPAIRED,
    UNPAIRED_REASON,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame

    Row = dict[str, Any]

COLUMNS = (
    *("source", "connection", "direction", "frame_index", "time", "size", "payload"),
    *("outcome", "error"),
    *("message", "api_key", "api_version", "correlation_id", "client_id", "header_version"),
    *("body_offset", "header_unknown_tagged_fields", "withheld_credentials", "is_guarded"),
    *("answered", "latency_us", "body"),
)
# What a frame says of itself, where it can be believed.
_READ = (*COLUMNS[9:17], "pair")
_GIVEN = ("api_key", "api_version", "client_id")


def paired_rows(
    frames: Iterable[tuple[str, CapturedFrame]],
    connections: Iterable[CapturedConnection],
    *,
    show_credentials: bool = False,
) -> list[Row]:
    """The rows of `PAIRED`, in the order of the frames; ``time`` is in microseconds."""
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
                # Of a damaged request it is never known that it was not answered.
                is_known = row["outcome"] is None
                row["answered"] = key in by_pair["response"] or (False if is_known else None)
        else:
            _answer(row, by_pair["request"].get(key))
    return [_with_body(row, show_credentials=show_credentials) for row in rows]


def read_rows(
    frames: Iterable[tuple[str, CapturedFrame]], *, show_credentials: bool = False
) -> list[Row]:
    """What `FrameReader` says of each frame."""
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
