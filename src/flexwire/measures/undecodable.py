"""What of the records table is bytes that are not a record batch, as failures to decode."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.measures.failures import FAILURES, SAMPLE_BYTES
from flexwire.tables.records import PARTIAL_BATCH, WITHHELD_RECORDS, RunRows
from flexwire.tables.schema import RECORDS
from flexwire.tables.spec_places import RECORDS_FIELDS

_SOURCES = pa.array([one.source for one in RECORDS_FIELDS])
_NONE = pa.RecordBatch.from_pylist([], RECORDS)
_MESSAGES = pa.array([one.message for one in RECORDS_FIELDS])


def undecodable(records: pa.RecordBatch | RunRows) -> pa.RecordBatch:
    """Give the rows of bytes that are not a record batch, unless it was cut off or withheld."""
    if isinstance(records, RunRows):
        errors = records.facts["error"]
        if errors.null_count == len(errors):
            return _NONE
        records = records.batch()
    errors = records["error"]
    if errors.null_count == len(errors):
        return records.slice(0, 0)
    is_fine = pc.or_(
        pc.starts_with(errors, PARTIAL_BATCH), pc.equal(errors, pa.scalar(WITHHELD_RECORDS))
    )
    # Where there is no error, it is neither.
    return records.filter(pc.invert(is_fine))


def record_failures(records: pa.RecordBatch | RunRows) -> pa.RecordBatch:
    """Give the failures among rows of the records table, as `FAILURES`.

    ``frame_index`` and ``message`` are those of the frame, ``size`` and ``bytes`` (the first
    `SAMPLE_BYTES`) are of what did not decode.
    """
    failed = undecodable(records)
    rows, data = len(failed), failed["bytes"]
    told = {
        "time": failed["time"],
        "connection": failed["connection"],
        "direction": failed["direction"],
        "frame_index": failed["frame_index"],
        "message": _MESSAGES.take(pc.index_in(failed["source"], _SOURCES)),
        "api_version": pa.nulls(rows),
        "error": failed["error"],
        "size": pc.binary_length(data),
        "bytes": pc.binary_slice(data, 0, SAMPLE_BYTES),
        "withheld_credentials": pa.repeat(0, rows),
    }
    columns = [told[one.name].cast(one.type) for one in FAILURES]
    return pa.RecordBatch.from_arrays(columns, schema=FAILURES)
