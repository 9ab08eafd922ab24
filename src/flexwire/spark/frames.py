"""From rows of TCP segments to rows of frames, with what the request headers say.

The segments of a connection come to one task in the order of their capture, and stream through
the assembler: what is held is what the assembler holds of one connection, however many gigabytes
that connection carried. (`applyInPandas` would hold all of a connection at once.)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from flexwire.capture.assembly import CapturedFrame, FrameAssembler
from flexwire.capture.brokers import Brokers
from flexwire.capture.segments import Segment
from flexwire.columnar.record_schema import MOMENT
from flexwire.columnar.types import RAW_TAGGED_FIELDS
from flexwire.columnar.values import raw_tagged_fields
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.protocol import (
    Authentication,
    RequestFrame,
    SaslExchange,
    carries_credentials,
    expects_response,
    is_believable,
    parse_request,
    verdict,
)
from flexwire.protocol.responses import parse_correlation_id
from flexwire.spark.batches import record_batches, row_tuples
from flexwire.spark.tasks import map_in_arrow
from flexwire.spark.withheld import withheld_tagged_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from flexwire.capture.connections import CapturedConnection

_NONE_GIVEN = Brokers()

FRAME, PACKETS, CONNECTION = "frame", "packets", "connection"
FAILED, TOKEN = "failed", "token"

CONNECTION_FACTS = pa.struct(
    [
        ("client", pa.string()),
        ("broker", pa.string()),
        ("first_time", MOMENT),
        ("last_time", MOMENT),
        ("seen_from_start", pa.bool_()),
        ("closed_by", pa.string()),
        ("reset", pa.bool_()),
        ("request_frames", pa.int64()),
        ("response_frames", pa.int64()),
        ("request_bytes", pa.int64()),
        ("response_bytes", pa.int64()),
        ("lost_bytes", pa.int64()),
        ("captured_bytes", pa.int64()),
        ("repeated_bytes", pa.int64()),
        ("late_bytes", pa.int64()),
        ("early_bytes", pa.int64()),
        ("unreadable_bytes", pa.int64()),
        ("is_kafka", pa.bool_()),
        ("reads_as_kafka", pa.bool_()),
        ("evidence", pa.string()),
        ("looks_like", pa.string()),
    ]
)
"""What `CapturedConnection` says, but for the connection itself."""

FRAMES = pa.schema(
    [
        ("kind", pa.string()),
        ("source", pa.string()),
        ("connection", pa.string()),
        ("direction", pa.string()),
        ("index", pa.int64()),
        ("time", MOMENT),
        ("size", pa.int64()),
        ("payload", pa.binary()),
        # None while nothing speaks against decoding the payload.
        ("outcome", pa.string()),
        ("error", pa.string()),
        ("message", pa.string()),
        ("api_key", pa.int32()),
        ("api_version", pa.int32()),
        ("correlation_id", pa.int32()),
        ("client_id", pa.string()),
        ("header_version", pa.int32()),
        ("body_offset", pa.int32()),
        ("header_unknown_tagged_fields", RAW_TAGGED_FIELDS),
        ("expects_response", pa.bool_()),
        ("withheld_credentials", pa.int32()),
        # Whether its bytes may hold credentials unless they decode.
        ("is_guarded", pa.bool_()),
        # Of rows of kind "connection" only, which come after all frames of the connection.
        ("facts", CONNECTION_FACTS),
    ]
)


def assemble_frames(
    segments: DataFrame, *, show_credentials: bool = False, brokers: Brokers = _NONE_GIVEN
) -> DataFrame:
    """The frames of all connections, and one row for each connection itself.

    Rows that tell of a file's packets pass through. ``brokers`` are the ends known for brokers.
    """
    order = ("connection", "timestamp_us", "file", "ordinal")
    ordered = segments.repartition("connection").sortWithinPartitions(*order)
    return map_in_arrow(ordered, partial(_assemble, show_credentials, brokers), FRAMES)


def _assemble(
    show_credentials: bool,  # noqa: FBT001 - bound by partial, the one way to configure a task
    brokers: Brokers,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    rows = _frame_rows(batches, show_credentials=show_credentials, brokers=brokers)
    return record_batches(FRAMES, rows)


def _frame_rows(
    batches: Iterator[pa.RecordBatch], *, show_credentials: bool, brokers: Brokers
) -> Iterator[tuple[tuple[Any, ...], int]]:
    connection: _Connection | None = None
    for row in row_tuples(batches):
        key, file = row[0], row[1]
        if key is None:
            yield _packets_row(row), 0
            continue
        if connection is None or connection.key != key:
            if connection is not None:
                yield from connection.finish()
            connection = _Connection(key, show_credentials=show_credentials, brokers=brokers)
        yield from connection.push(file, row[2], Segment(*row[3:12]))
    if connection is not None:
        yield from connection.finish()


def _packets_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    told = {"kind": PACKETS, "source": row[1], "payload": row[9], "error": row[12], "size": row[13]}
    return tuple(told.get(name) for name in FRAMES.names)


class _Connection:
    """Assembles the frames of one connection key, of all connections that used its ports."""

    def __init__(self, key: str, *, show_credentials: bool, brokers: Brokers) -> None:
        self.key = key
        self._assembler = FrameAssembler(brokers=brokers)
        # A capture may show several at once.
        self._conversations: dict[str, Conversation] = {}
        self._show_credentials = show_credentials
        self._file = ""

    def push(
        self, file: str, ordinal: int, segment: Segment
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        self._file = file
        try:
            yield from map(self._row, self._assembler.push(segment))
            yield from map(self._connection_row, self._assembler.ended())
        except Exception as error:
            error.add_note(f"while assembling {self.key}, at segment {ordinal} of {file}")
            raise

    def finish(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        try:
            yield from map(self._row, self._assembler.finish())
            yield from map(self._connection_row, self._assembler.ended())
        except Exception as error:
            error.add_note(f"while assembling the end of {self.key}, in {self._file}")
            raise

    def _row(self, frame: CapturedFrame) -> tuple[tuple[Any, ...], int]:
        conversation = self._conversations.get(frame.connection)
        if conversation is None:
            conversation = Conversation(frame.connection, show_credentials=self._show_credentials)
            self._conversations[frame.connection] = conversation
        told = {
            "kind": FRAME,
            "source": self._file,
            "connection": frame.connection,
            "direction": frame.direction,
            "index": frame.index,
            "time": frame.timestamp_us,
            "size": frame.size,
            "payload": frame.payload,
            "withheld_credentials": 0,
            **conversation.read(frame),
        }
        return tuple(told.get(name) for name in FRAMES.names), len(told["payload"] or b"")

    def _connection_row(self, ended: CapturedConnection) -> tuple[tuple[Any, ...], int]:
        self._conversations.pop(ended.connection, None)
        facts = msgspec.structs.asdict(ended)
        facts["first_time"], facts["last_time"] = facts.pop("first_us"), facts.pop("last_us")
        told = {"kind": CONNECTION, "connection": facts.pop("connection"), "facts": facts}
        return tuple(told.get(name) for name in FRAMES.names), 0


class Conversation:
    """What the frames of one connection say without their bodies being decoded.

    Tokens of a SASL exchange are recognized, and their bytes withheld. The bytes of a frame that
    does not read as a request or response are given only where its message is known, and
    authentication is ruled out on the connection (`Authentication`).
    """

    def __init__(self, connection: str, *, show_credentials: bool = False) -> None:
        self.connection = connection
        self._show_credentials = show_credentials
        self._exchange = SaslExchange()
        self._authentication = Authentication()
        self._tokens = 0
        self._client_id: str | None = None

    def read(self, frame: CapturedFrame) -> dict[str, Any]:
        """The columns of `FRAMES` that the frame's header gives."""
        told = self._read(frame)
        is_guarded = not self._show_credentials and not self._authentication.is_ruled_out
        told["is_guarded"] = is_guarded
        # A response without its message is not known for one that carries none.
        is_unread = told.get("outcome") is not None
        if is_unread and not self._show_credentials and (is_guarded or "message" not in told):
            tagged = withheld_tagged_fields(told.get("header_unknown_tagged_fields", []))
            told |= {
                "payload": None,
                "withheld_credentials": 1 if frame.payload else 0,
                "header_unknown_tagged_fields": tagged,
            }
        return told

    def _read(self, frame: CapturedFrame) -> dict[str, Any]:
        if frame.error is not None:
            return self._failed(frame, frame.error)
        try:
            if frame.direction == "request":
                return self._read_request(frame)
            return self._read_response(frame)
        except (FrameError, CodecError, UnknownMessageError) as error:
            return self._failed(frame, str(error))

    def _read_request(self, frame: CapturedFrame) -> dict[str, Any]:
        request = self._exchange.parse(frame.payload)
        if request is None:
            # The broker answers a token with one of its own, before anything else.
            self._tokens += 1
            self._authentication.see(None, frame.payload, is_whole=True)
            return {"outcome": TOKEN}
        self._authentication.see(request, frame.payload, is_whole=True)
        return {
            **self._described(request),
            "expects_response": expects_response(request, frame.payload),
        }

    def _described(self, request: RequestFrame) -> dict[str, Any]:
        header: Any = request.header
        tagged, client_id = raw_tagged_fields(header.unknown_tagged_fields), request.client_id
        if is_believable(request):
            self._client_id = client_id
        elif client_id != self._client_id and not self._show_credentials:
            # Other bytes may read as a header too, and these say that their client is another.
            client_id = None
        is_secret = carries_credentials(request.message_name) or not is_believable(request)
        if is_secret and not self._show_credentials:
            tagged = withheld_tagged_fields(tagged)
        return {
            "message": request.message_name,
            "api_key": request.api_key,
            "api_version": request.api_version,
            "correlation_id": request.correlation_id,
            "client_id": client_id,
            "header_version": request.header_version,
            "body_offset": request.body_offset,
            "header_unknown_tagged_fields": tagged,
        }

    def _read_response(self, frame: CapturedFrame) -> dict[str, Any]:
        if self._tokens:
            self._tokens -= 1
            return {"outcome": TOKEN}
        return {"correlation_id": parse_correlation_id(frame.payload)}

    def _failed(self, frame: CapturedFrame, reason: str) -> dict[str, Any]:
        told: dict[str, Any] = {"outcome": FAILED, "error": reason}
        if frame.direction == "request":
            # A request that is cut off or damaged further on still tells whose it is.
            request = self._headed(frame) if frame.is_placed else None
            self._authentication.see(request, frame.payload, is_whole=False)
            if request is not None:
                told |= self._described(request)
        return told

    def _headed(self, frame: CapturedFrame) -> RequestFrame | None:
        try:
            request = parse_request(frame.payload)
        except (FrameError, CodecError):
            return None
        # Bytes that are no request must not be taken for one: only released versions are.
        is_released = verdict(request.api_key, request.api_version) != "unknown"
        return request if is_released else None
