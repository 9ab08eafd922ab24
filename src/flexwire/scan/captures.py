"""Read rows of captures without Spark."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import pyarrow as pa

from flexwire.arguments import refuse, to_flag, to_list, to_text
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.errors import ArgumentError
from flexwire.facts.units import microseconds_of
from flexwire.inputs import capture_sources
from flexwire.scan.columns import choose_columns
from flexwire.schema.catalog import catalog
from flexwire.storage.local import compress, decompress
from flexwire.survey.ranges import decode_range_rows
from flexwire.survey.request import AnalysisRequest
from flexwire.survey.survey import Surveyor
from flexwire.survey.surveyed_files import check_files
from flexwire.tables.frames import connection_rows, packet_rows
from flexwire.tables.message_schema import table_schema
from flexwire.tables.records import cut_rows, with_columns
from flexwire.tables.row_filter import FRAMES, MESSAGES, RECORDS, RowFilter
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE, PACKETS_TABLE
from flexwire.tables.schema import RECORDS as RECORDS_TABLE

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from datetime import datetime

    from flexwire.tables.records import Rows

CaptureRowKind = Literal["frames", "messages", "records", "connections", "packets"]
"""The kinds of rows that can be read from a capture."""

_CONNECTIONS, _PACKETS = "connections", "packets"
_SCHEMAS: Final = {
    FRAMES: FRAMES_TABLE,
    RECORDS: RECORDS_TABLE,
    _CONNECTIONS: CONNECTIONS_TABLE,
    _PACKETS: PACKETS_TABLE,
}
_BATCH_ROWS: Final = 10_000
_BATCH_BYTES: Final = 16 << 20
_REMEDY: Final = "pass skip_unreadable=True to read the rest"
_TO_ACCEPT: Final = "pass accept_sampled=True"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureScan:
    """The options for reading captures.

    Attributes:
        rows: "frames", "messages", "records", "connections" or "packets". docs/tables.md describes
            these tables.
        message: for "messages", the message ("FetchRequest") whose table is read. For "frames",
            only frames with this message are read.
        client_ids: only frames with these client ids. This option does not apply to connections and
            packets.
        topics: for "records", only records of these topics.
        since, until: only frames whose last byte was captured at or after ``since``, and before
            ``until``. Times without a zone are in UTC. These options do not apply to connections
            and packets.
        brokers, ports: the addresses of brokers, such as "10.0.0.1:9092", and the ports of
            brokers.
        release: the release of the captured brokers, such as "3.9.2".
        show_credentials: whether possible credentials are shown.
        record_bytes: whether messages contain the bytes of records instead of their sizes.
        skip_unreadable: whether files that are not captures are skipped.
        accept_sampled: whether captures that contain only a part of the traffic are read.
    """

    rows: CaptureRowKind = "frames"
    message: str | None = None
    client_ids: Iterable[str] | None = None
    topics: Iterable[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    brokers: Iterable[str] = ()
    ports: Iterable[int] = ()
    release: str | None = None
    show_credentials: bool = False
    record_bytes: bool = False
    skip_unreadable: bool = False
    accept_sampled: bool = False

    def __post_init__(self) -> None:
        kinds = get_args(CaptureRowKind)
        if self.rows not in kinds:
            raise refuse("rows", f"one of {', '.join(kinds)}", self.rows)
        if self.message is not None:
            catalog().entry(to_text(self.message, "message"))
        if self.rows == MESSAGES and self.message is None:
            raise refuse("message", 'a message name if rows is "messages"', self.message)
        for name, others in _NARROWING.items():
            if getattr(self, name) is not None and self.rows not in others:
                raise ArgumentError(f"{name} filters only {', '.join(others)}, not {self.rows}")
        for flag in ("show_credentials", "record_bytes", "skip_unreadable", "accept_sampled"):
            to_flag(getattr(self, flag), flag)

    @property
    def schema(self) -> pa.Schema:
        """The columns of all rows of this kind."""
        if self.rows == MESSAGES:
            release = self._release
            return table_schema(self.message or "", release, record_bytes=self.record_bytes)
        return _SCHEMAS[self.rows]

    @property
    def _release(self) -> str | None:
        return None if self.release is None else catalog().release(self.release)

    def request(self, paths: Iterable[str | Path]) -> AnalysisRequest:
        """Return the input of a survey. Raises `CaptureError` for a path without a capture."""
        return AnalysisRequest(
            tuple(capture_sources(paths)),
            BrokerEnds.parse(self.ports, self.brokers),
            self._release,
            show_credentials=self.show_credentials,
            record_bytes=self.record_bytes,
            skip_unreadable=self.skip_unreadable,
            takes_sampled=self.accept_sampled,
        )

    def row_filter(self) -> RowFilter:
        """Return a filter for the wanted rows."""
        return RowFilter(
            self.rows,
            None if self.message is None else {self.message},
            _texts(self.client_ids, "client_ids"),
            _texts(self.topics, "topics"),
            None if self.since is None else microseconds_of(self.since),
            None if self.until is None else microseconds_of(self.until),
        )


_OF_FRAMES: Final = (FRAMES, MESSAGES, RECORDS)
_NARROWING: Final = {
    "message": (FRAMES, MESSAGES),
    "client_ids": _OF_FRAMES,
    "topics": (RECORDS,),
    "since": _OF_FRAMES,
    "until": _OF_FRAMES,
}
"""The kinds of rows that each option can filter."""


def _texts(values: Iterable[str] | None, name: str) -> frozenset[str] | None:
    if values is None:
        return None
    return frozenset(to_text(value, name) for value in to_list(values, name, "a list of strings"))


def read_capture(
    paths: str | Path | Iterable[str | Path],
    rows: CaptureRowKind = "frames",
    *,
    columns: Iterable[str] | None = None,
    **options: Any,
) -> pa.RecordBatchReader:
    """Return the rows of captures, batch by batch, with the given ``columns`` or with all.

    ``paths`` are files, directories, patterns and URLs. ``options`` are the attributes of
    `CaptureScan`. Every file is read twice. The first pass reads everything, because a later packet
    may reveal what an earlier frame is. The second pass decodes the frames.

    Raises `CaptureError` for a path without a capture, and `ArgumentError` for a value that an
    option does not accept. While rows are being read, raises `CaptureError` for captures that
    cannot be read, or that contain only a part of the traffic.
    """
    scan = CaptureScan(rows=rows, **options)
    schema = choose_columns(scan.schema, columns)
    request = scan.request(to_paths(paths))
    return pa.RecordBatchReader.from_batches(schema, capture_batches(scan, request, schema))


def to_paths(paths: str | Path | Iterable[str | Path]) -> list[str | Path]:
    """Return one path, or several, as a list."""
    return [paths] if isinstance(paths, str | Path) else to_list(paths, "paths", "a list of paths")


def capture_batches(
    scan: CaptureScan, request: AnalysisRequest, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a scan, with the columns of a schema."""
    with (
        tempfile.TemporaryDirectory(prefix="flexwire-") as directory,
        closing(_rows(scan, request, Path(directory))) as rows,
    ):
        for part in cut_rows(rows, _BATCH_ROWS, _BATCH_BYTES):
            yield with_columns(part, schema)


def _rows(scan: CaptureScan, request: AnalysisRequest, kept: Path) -> Generator[Rows]:
    def keep(name: str, data: bytes) -> None:
        (kept / name).write_bytes(compress(data))

    def read_kept(name: str) -> bytes:
        return decompress((kept / name).read_bytes())

    survey = Surveyor(request, keep).run()
    check_files(survey, request, remedy=_REMEDY, to_accept=_TO_ACCEPT)
    if scan.rows == _PACKETS:
        yield packet_rows(survey.notes)
    elif scan.rows == _CONNECTIONS:
        for first in range(0, len(survey.connections), _BATCH_ROWS):
            yield connection_rows(survey.connections[first : first + _BATCH_ROWS])
    else:
        for number in range(survey.ranges):
            # Once a range has been decoded, only the names of its files are still needed.
            for _, rows in decode_range_rows(request, number, read_kept, scan.row_filter()):
                yield rows
