"""From rows of TCP segments to rows of frames, with what the request headers say.

The segments between two ends come to one task in the order of their capture, and stream through the
assembler: what is held is what the assembler holds of them, however many gigabytes they carried.
(`applyInPandas` would hold all of a connection at once.) So a task sees all of a connection, and
says of each frame what only that can say: what it is, and of which pair.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from flexwire.capture.files.links import Segment
from flexwire.capture.pairing.reading import FrameReader
from flexwire.capture.pairing.rows import OF_FRAME
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import Brokers, CapturedFrame
from flexwire.spark.tables import record_batches, row_tuples
from flexwire.tables.schema import CONNECTIONS_TABLE
from flexwire.tasks import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from flexwire.capture.reassembly.connections import CapturedConnection

_NONE_GIVEN = Brokers()

FRAME, PACKETS, CONNECTION = "frame", "packets", "connection"

CONNECTION_FACTS = pa.struct([one for one in CONNECTIONS_TABLE if one.name != "connection"])
"""What `CapturedConnection` says, but for the connection itself."""

FRAMES = pa.schema(
    [
        ("kind", pa.string()),
        # ``outcome`` is None while nothing speaks against decoding the payload.
        *OF_FRAME,
        # As `flexwire.protocol.conversation` numbers it, None where the frame can be of no pair.
        ("pair", pa.int64()),
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

    Rows about a file's packets pass through. ``brokers`` are the ends known for brokers.
    """
    # Within a file its own order counts, however its clock went.
    order = ("connection", "clock_us", "file", "ordinal")
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
        self._readers: dict[str, FrameReader] = {}
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
        reader = self._readers.get(frame.connection)
        if reader is None:
            reader = FrameReader(show_credentials=self._show_credentials)
            self._readers[frame.connection] = reader
        told = {
            "kind": FRAME,
            "source": self._file,
            "connection": frame.connection,
            "direction": frame.direction,
            "frame_index": frame.index,
            "time": frame.timestamp_us,
            "size": frame.size,
            "payload": frame.payload,
            "withheld_credentials": 0,
            **reader.read(frame),
        }
        return tuple(told.get(name) for name in FRAMES.names), len(told["payload"] or b"")

    def _connection_row(self, ended: CapturedConnection) -> tuple[tuple[Any, ...], int]:
        self._readers.pop(ended.connection, None)
        facts = msgspec.structs.asdict(ended)
        facts["first_time"], facts["last_time"] = facts.pop("first_us"), facts.pop("last_us")
        told = {"kind": CONNECTION, "connection": facts.pop("connection"), "facts": facts}
        return tuple(told.get(name) for name in FRAMES.names), 0
