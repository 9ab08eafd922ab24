"""From capture files to rows of TCP segments: the first task of the analysis.

A row is a segment, or (``connection`` is null) says of one file how many packets it holds and how
many were not used for one reason.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.capture.files.links import Segment, SegmentCounts, Unreadable, read_segments
from flexwire.capture.reassembly.assembly import connection_key
from flexwire.capture.reassembly.packet_scan import UnusedPackets
from flexwire.errors import CaptureError
from flexwire.spark.tables import record_batches, row_tuples
from flexwire.tasks import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

SEGMENTS = pa.schema(
    [
        ("connection", pa.string()),
        ("file", pa.string()),
        ("ordinal", pa.int64()),
        ("timestamp_us", pa.int64()),
        ("source", pa.string()),
        ("destination", pa.string()),
        ("sequence", pa.int64()),
        ("acknowledgment", pa.int64()),
        ("flags", pa.int32()),
        ("payload", pa.binary()),
        ("missing", pa.int64()),
        ("begins", pa.string()),
        ("reason", pa.string()),
        ("packets", pa.int64()),
        # The latest time in the file until then: by it segments of files are put in one order.
        ("clock_us", pa.int64()),
    ]
)


def read_captures(
    spark: SparkSession, files: Sequence[str], *, show_credentials: bool = False
) -> DataFrame:
    """The segments of capture files, each file read by one task.

    Nobody knows of a packet that gives no segment what is in it: its bytes are a sample only with
    ``show_credentials``.
    """
    numbers = spark.range(0, len(files), 1, len(files))
    return map_in_arrow(numbers, partial(_read_files, tuple(files), show_credentials), SEGMENTS)


def _read_files(
    files: tuple[str, ...],
    show_credentials: bool,  # noqa: FBT001 - bound by partial, the one way to configure a task
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for (number,) in row_tuples(batches):
        rows = _file_rows(files[number], show_credentials=show_credentials)
        yield from record_batches(SEGMENTS, rows)


def _file_rows(file: str, *, show_credentials: bool) -> Iterator[tuple[tuple[Any, ...], int]]:
    counts = SegmentCounts()
    unused = UnusedPackets()
    clock_us = 0
    try:
        for ordinal, item in enumerate(read_segments(file, counts)):
            if isinstance(item, Unreadable):
                unused.add(item.reason, 1, item.data if show_credentials else None)
            else:
                clock_us = max(clock_us, item.timestamp_us)
                yield _segment_row(file, ordinal, item, clock_us), len(item.payload)
    except CaptureError as error:
        # One file that is not a capture must not stop the others; its row says why it gave nothing.
        unused.add(error.reason, 0)
    for reason, packets in counts.skipped.items():
        unused.add(reason, packets)
    yield _note(file, None, counts.packets, None), 0
    for reason, packets in unused.packets.items():
        yield _note(file, reason, packets, unused.samples.get(reason)), 0


def _segment_row(file: str, ordinal: int, segment: Segment, clock_us: int) -> tuple[Any, ...]:
    return (
        connection_key(segment),
        file,
        ordinal,
        segment.timestamp_us,
        segment.source,
        segment.destination,
        segment.sequence,
        segment.acknowledgment,
        segment.flags,
        segment.payload,
        segment.missing,
        segment.begins,
        None,
        None,
        clock_us,
    )


def _note(file: str, reason: str | None, packets: int, sample: bytes | None) -> tuple[Any, ...]:
    told = {"file": file, "reason": reason, "packets": packets, "payload": sample}
    return tuple(told.get(name) for name in SEGMENTS.names)
