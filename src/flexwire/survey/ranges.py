"""The rows of one range of a capture, from what the survey kept of it."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.capture.pairing.pairing import Pairing, build_paired
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.segments import FileNotes
from flexwire.survey.state import reader_between
from flexwire.survey.survey import NAMES, RangeContext, RangeStart, known_name, start_name
from flexwire.tables.frames import TableRows
from flexwire.tables.records import Rows, RunRows
from flexwire.tables.row_filter import EVERYTHING, FRAMES, MESSAGES, RECORDS, RowFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.survey.survey import AnalysisRequest


__all__ = ["FRAMES", "MESSAGES", "RECORDS", "decoded", "decoded_rows"]

# Frames are held until they have so much of the bytes of a chunk.
_CHUNKS_HELD = 4


def decoded(
    asked: AnalysisRequest, number: int, kept: Callable[[str], bytes]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Give the rows of a range as `decoded_rows` does, but with all facts in each row."""
    for table, rows in decoded_rows(asked, number, kept):
        yield table, rows.batch() if isinstance(rows, RunRows) else rows


def decoded_rows(
    asked: AnalysisRequest,
    number: int,
    kept: Callable[[str], bytes],
    wanted: RowFilter = EVERYTHING,
) -> Iterator[tuple[str, Rows]]:
    """Give the rows of a range, each batch with the name of its table below the tables.

    ``kept`` gives what the survey kept, by its name.
    """
    # They were pickled by a survey of this very analysis, in a directory of its own.
    known: RangeContext = pickle.loads(kept(known_name(number)))  # noqa: S301 - see above
    if number:
        start: RangeStart = pickle.loads(kept(start_name(number)))  # noqa: S301 - see above
    else:
        turns = Pairing(show_credentials=asked.show_credentials)
        start = RangeStart(None, Flows(brokers=asked.brokers), turns)
    names: dict[str, str] = pickle.loads(kept(NAMES))  # noqa: S301 - see above
    yield from _RangeDecoder(asked, known, start, names, wanted).rows()


class _RangeDecoder:
    """A range on its way into tables."""

    def __init__(
        self,
        asked: AnalysisRequest,
        known: RangeContext,
        start: RangeStart,
        names: dict[str, str],
        wanted: RowFilter,
    ) -> None:
        self._asked = asked
        self._known = known
        self._start = start
        self._names = names
        # Of many small files, or a few frames at the end of one: a batch of ten rows takes as long
        # as one of a thousand.
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._wanted = wanted
        self._tables = TableRows(
            wanted,
            release=asked.release,
            show_credentials=asked.show_credentials,
            record_bytes=asked.record_bytes,
            inflation=asked.inflation,
        )

    def rows(self) -> Iterator[tuple[str, Rows]]:
        flows, turns = self._start.flows, self._start.turns
        for item in reader_between(self._asked, self._known, self._start.position):
            if isinstance(item, FileNotes):
                if item.error is not None:
                    # The survey could read it.
                    raise item.error
                continue
            self._hold(flows.push(item))
            for ended in flows.ended():
                turns.end(ended.connection)
            if self._held_bytes >= self._asked.chunk_bytes // _CHUNKS_HELD:
                yield from self._table_rows()
        if self._known.stop is None:
            for frames in flows.finish():
                self._hold(frames)
        yield from self._table_rows()

    def _hold(self, frames: FrameColumns) -> None:
        if not len(frames):
            return
        facts = self._start.turns.facts(frames)
        shows = self._asked.show_credentials
        batch = build_paired(frames, facts, self._known.told, show_credentials=shows)
        batch = self._wanted.frames(batch)
        if len(batch):
            self._held.append(batch)
            self._held_bytes += batch.nbytes

    def _table_rows(self) -> Iterator[tuple[str, Rows]]:
        """The rows of the frames that are held."""
        if not self._held:
            return
        batch = self._held[0] if len(self._held) == 1 else pa.concat_batches(self._held)
        self._held, self._held_bytes = [], 0
        yield from self._tables.of(batch, self._names, self._known.software)
