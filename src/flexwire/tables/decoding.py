"""The rows of one range of a capture, as the tables have them, from what the survey kept of it."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.capture.columns.flows import Flows
from flexwire.capture.columns.segments import FileNotes
from flexwire.capture.columns.turns import Turns, paired
from flexwire.columnar.record_columns import Hints
from flexwire.tables.frames import BODY_OUTCOMES, frame_rows
from flexwire.tables.messages import message_rows, without_record_bytes
from flexwire.tables.record_places import RECORDS_FIELDS
from flexwire.tables.records import record_runs
from flexwire.tables.run_rows import Rows, RunRows
from flexwire.tables.spans import reader_between
from flexwire.tables.survey import NAMES, Known, Snapshot, known_name, start_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.capture.columns.frames import FrameColumns
    from flexwire.tables.survey import Asked

    Array = np.ndarray[Any, np.dtype[Any]]

# Frames are held until they have so much of the bytes of a chunk.
_CHUNKS_HELD = 4
FRAMES, RECORDS, MESSAGES = "frames", "records", "messages"
_OF_RECORDS = {where.message: where for where in RECORDS_FIELDS}


def decoded(
    asked: Asked, number: int, kept: Callable[[str], bytes]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Give the rows of a range as `decoded_rows` does, but with all facts in each row."""
    for table, rows in decoded_rows(asked, number, kept):
        yield table, rows.batch() if isinstance(rows, RunRows) else rows


def decoded_rows(
    asked: Asked, number: int, kept: Callable[[str], bytes]
) -> Iterator[tuple[str, Rows]]:
    """Give the rows of a range, each batch with the name of its table below the tables.

    ``kept`` gives what the survey kept, by its name.
    """
    # They were pickled by a survey of this very analysis, in a directory of its own.
    known: Known = pickle.loads(kept(known_name(number)))  # noqa: S301 - see above
    if number:
        start: Snapshot = pickle.loads(kept(start_name(number)))  # noqa: S301 - see above
    else:
        turns = Turns(show_credentials=asked.show_credentials)
        start = Snapshot(None, Flows(brokers=asked.brokers), turns)
    names: dict[str, str] = pickle.loads(kept(NAMES))  # noqa: S301 - see above
    yield from _Range(asked, known, start, names).rows()


class _Range:
    """A range on its way into tables."""

    def __init__(self, asked: Asked, known: Known, start: Snapshot, names: dict[str, str]) -> None:
        self._asked = asked
        self._known = known
        self._start = start
        self._names = names
        # Of many small files, or a few frames at the end of one: a batch of ten rows takes as long
        # as one of a thousand.
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        # Of this range alone, so that it gives the same batches each time.
        self._hints = {name: Hints() for name in _OF_RECORDS}

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
                yield from self._frame_rows()
        if self._known.stop is None:
            for frames in flows.finish():
                self._hold(frames)
        yield from self._frame_rows()

    def _hold(self, frames: FrameColumns) -> None:
        if not len(frames):
            return
        facts = self._start.turns.facts(frames)
        shows = self._asked.show_credentials
        batch = paired(frames, facts, self._known.told, show_credentials=shows)
        self._held.append(batch)
        self._held_bytes += batch.nbytes

    def _frame_rows(self) -> Iterator[tuple[str, Rows]]:
        """The rows of the frames that are held."""
        if not self._held:
            return
        batch = self._held[0] if len(self._held) == 1 else pa.concat_batches(self._held)
        self._held, self._held_bytes = [], 0
        shows = self._asked.show_credentials
        outcomes: list[pa.RecordBatch] = []
        bodies = batch["body"].dictionary_encode()
        codes = np.asarray(bodies.indices.fill_null(-1))
        for code, name in enumerate(bodies.dictionary.to_pylist()):
            rows = np.flatnonzero(codes == code)
            messages = message_rows(
                batch, name, release=self._asked.release, show_credentials=shows, rows=rows
            )
            outcomes.append(_outcomes(rows, messages))
            if name in _OF_RECORDS:
                where, hints = _OF_RECORDS[name], self._hints[name]
                for records in record_runs(messages, where, self._names, hints):
                    yield RECORDS, records
            if not self._asked.record_bytes:
                messages = without_record_bytes(messages)
            yield f"{MESSAGES}/{name}", messages
        told = (
            pa.concat_batches(outcomes)
            if outcomes
            else pa.RecordBatch.from_pylist([], BODY_OUTCOMES)
        )
        yield FRAMES, frame_rows(batch, told, self._known.software)


def _outcomes(rows: Array, messages: pa.RecordBatch) -> pa.RecordBatch:
    """What the rows of message tables say of the frames that stand in these rows."""
    columns = [messages[name] for name in BODY_OUTCOMES.names[1:]]
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.int32()), *columns], schema=BODY_OUTCOMES)
