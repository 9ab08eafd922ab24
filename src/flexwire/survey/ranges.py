"""Decode the rows of one range of a capture, with the entries that the survey wrote for it."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.capture.pairing.pairing import Pairing, build_paired
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.segments import FileNotes
from flexwire.survey.capture_files import make_range_reader
from flexwire.survey.state import join_starts
from flexwire.survey.survey import (
    NAMES,
    RangeContext,
    RangeStart,
    range_context_name,
    range_origins_name,
    range_start_name,
)
from flexwire.tables.frames import TableRows
from flexwire.tables.records import Rows, RunRows
from flexwire.tables.row_filter import EVERYTHING, FRAMES, MESSAGES, RECORDS, RowFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.survey.survey import AnalysisRequest


__all__ = ["FRAMES", "MESSAGES", "RECORDS", "decode_range", "decode_range_rows"]

# Frames are held until they fill this fraction of a chunk's bytes.
_CHUNKS_HELD = 4


def decode_range(
    request: AnalysisRequest, number: int, read_kept: Callable[[str], bytes]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of a range as `decode_range_rows` does, but with all columns in each row."""
    for table, rows in decode_range_rows(request, number, read_kept):
        yield table, rows.batch() if isinstance(rows, RunRows) else rows


def decode_range_rows(
    request: AnalysisRequest,
    number: int,
    read_kept: Callable[[str], bytes],
    row_filter: RowFilter = EVERYTHING,
) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of a range, each batch with the path of its table below the tables.

    ``read_kept`` returns the survey's entry with a given name.
    """
    # A survey of this analysis pickled these bytes, in the analysis's own directory.
    context: RangeContext = pickle.loads(read_kept(range_context_name(number)))  # noqa: S301 - we wrote these bytes ourselves
    if number or context.has_start:
        names_of_shares = [range_start_name(number, share) for share in range(context.shares)]
        start = join_starts([pickle.loads(read_kept(name)) for name in names_of_shares])  # noqa: S301 - we wrote these bytes ourselves
    else:
        pairing = Pairing(show_credentials=request.show_credentials)
        start = RangeStart(None, Flows(brokers=request.brokers), pairing)
    names: dict[str, str] = pickle.loads(read_kept(NAMES))  # noqa: S301 - we wrote these bytes ourselves
    yield from _RangeDecoder(request, context, start, names, row_filter).rows()


def read_origins(number: int, read_kept: Callable[[str], bytes]) -> dict[str, str]:
    """Return the analysis in which each continued connection of a range began, by its name."""
    origins: dict[str, str] = pickle.loads(read_kept(range_origins_name(number)))  # noqa: S301 - we wrote these bytes ourselves
    return origins


class _RangeDecoder:
    """Decode a range into rows of tables."""

    def __init__(
        self,
        request: AnalysisRequest,
        context: RangeContext,
        start: RangeStart,
        names: dict[str, str],
        row_filter: RowFilter,
    ) -> None:
        self._request = request
        self._context = context
        self._start = start
        self._names = names
        # There can be many small files, or only a few frames at the end of a file. A batch of ten
        # rows takes as much time as a batch of a thousand.
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._row_filter = row_filter
        self._tables = TableRows(
            row_filter,
            release=request.release,
            show_credentials=request.show_credentials,
            record_bytes=request.record_bytes,
            inflation=request.inflation,
        )

    def rows(self) -> Iterator[tuple[str, Rows]]:
        flows, pairing = self._start.flows, self._start.pairing
        for item in make_range_reader(self._request, self._context, self._start.position):
            if isinstance(item, FileNotes):
                if item.error is not None:
                    # The survey was able to read this file.
                    raise item.error
                continue
            self._hold(flows.push(item))
            for ended in flows.ended():
                pairing.end(ended.connection)
            if self._held_bytes >= self._request.chunk_bytes // _CHUNKS_HELD:
                yield from self._table_rows()
        if self._context.stop is None:
            for frames in flows.pause()[0] if self._context.is_paused else flows.finish():
                self._hold(frames)
        yield from self._table_rows()

    def _hold(self, frames: FrameColumns) -> None:
        if not len(frames):
            return
        headers = self._start.pairing.read_headers(frames)
        shows = self._request.show_credentials
        batch = build_paired(frames, headers, self._context.hindsight, show_credentials=shows)
        batch = self._row_filter.frames(batch)
        if len(batch):
            self._held.append(batch)
            self._held_bytes += batch.nbytes

    def _table_rows(self) -> Iterator[tuple[str, Rows]]:
        """Yield the rows of the held frames."""
        if not self._held:
            return
        batch = self._held[0] if len(self._held) == 1 else pa.concat_batches(self._held)
        self._held, self._held_bytes = [], 0
        yield from self._tables.of(batch, self._names, self._context.introductions)
