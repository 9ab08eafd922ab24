"""From paired frames to their rows in all tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.record_columns import Hints
from flexwire.tables.frames import BODY_OUTCOMES, frame_rows
from flexwire.tables.messages import message_rows, without_record_bytes
from flexwire.tables.record_places import RECORDS_FIELDS
from flexwire.tables.records import record_runs
from flexwire.tables.wanted import EVERYTHING, FRAMES, MESSAGES, RECORDS, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.tables.frames import Software
    from flexwire.tables.run_rows import Rows
    from flexwire.tables.survey_parts import Asked

    Array = np.ndarray[Any, np.dtype[Any]]

_OF_RECORDS = {where.message: where for where in RECORDS_FIELDS}


class TableRows:
    """Makes the rows of paired frames, batch after batch."""

    def __init__(self, asked: Asked, wanted: Wanted = EVERYTHING) -> None:
        self._asked = asked
        self._wanted = wanted
        # Of this range alone, so that it gives the same batches each time.
        self._hints = {name: Hints() for name in _OF_RECORDS}

    def of(
        self, batch: pa.RecordBatch, names: dict[str, str], software: Mapping[str, Software]
    ) -> Iterator[tuple[str, Rows]]:
        """Give the rows of some frames, each batch with the name of its table.

        ``names`` are those of topics by their ids; ``software`` is what the client of a connection
        is.
        """
        wanted, shows = self._wanted, self._asked.show_credentials
        outcomes: list[pa.RecordBatch] = []
        bodies = batch["body"].dictionary_encode()
        codes = np.asarray(bodies.indices.fill_null(-1))
        for code, name in enumerate(bodies.dictionary.to_pylist()):
            if not wanted.reads(name):
                continue
            rows = np.flatnonzero(codes == code)
            messages = message_rows(
                batch, name, release=self._asked.release, show_credentials=shows, rows=rows
            )
            outcomes.append(_outcomes(rows, messages))
            if name in _OF_RECORDS and wanted.gives(RECORDS):
                where, hints = _OF_RECORDS[name], self._hints[name]
                inflation = self._asked.inflation
                for records in record_runs(messages, where, names, hints, inflation):
                    yield RECORDS, wanted.records(records)
            if wanted.gives(MESSAGES):
                if not self._asked.record_bytes:
                    messages = without_record_bytes(messages)
                yield f"{MESSAGES}/{name}", messages
        if wanted.gives(FRAMES):
            told = (
                pa.concat_batches(outcomes)
                if outcomes
                else pa.RecordBatch.from_pylist([], BODY_OUTCOMES)
            )
            yield FRAMES, frame_rows(batch, told, software)


def _outcomes(rows: Array, messages: pa.RecordBatch) -> pa.RecordBatch:
    """What the rows of message tables say of the frames that stand in these rows."""
    columns = [messages[name] for name in BODY_OUTCOMES.names[1:]]
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.int32()), *columns], schema=BODY_OUTCOMES)
