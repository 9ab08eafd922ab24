"""How large sampled frames are in every encoding, and for how many each of them stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.specs.cost.columns import FRAME_SIZES, NEEDED, frame_sizes
from flexwire.tables.parquet import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

AS_SENT: Final = "kafka"
"""The column of `SAMPLE` for frames as they were sent."""
# Of each octave of frames after these, as 256 to 511, one in 32 is measured, in a block from its
# start and one from its middle on: files are read only where they are, and a connection is
# measured from its start to its end.
_WHOLE_UNTIL: Final = 256
_ONE_OF: Final = 32
_LONGEST: Final = 2**31
READ: Final = (*NEEDED, "frame_index", "error", "withheld_credentials")
"""The columns of a message table that are read."""
SAMPLE: Final = pa.schema(
    [
        ("message", pa.string()),
        ("body_version", pa.int32()),
        ("client_id", pa.string()),
        ("weight", pa.float64()),
        *FRAME_SIZES,
    ]
)
"""A frame that was measured. What an encoding cannot hold counts as sent."""


def _blocks() -> Ranges:
    found = [(0, _WHOLE_UNTIL - 1)]
    octave = _WHOLE_UNTIL
    while octave < _LONGEST:
        half = octave // 2
        found += [(at, at + half // _ONE_OF - 1) for at in (octave, octave + half)]
        octave *= 2
    return Ranges("frame_index", tuple(found))


BLOCKS: Final = _blocks()
"""The frames that are measured."""


def measure(
    message: str, batches: Iterable[pa.RecordBatch], *, whole: bool
) -> Iterator[pa.RecordBatch]:
    """Measure the frames of one message that are in `BLOCKS`, or all: `SAMPLE` of `READ`."""
    for batch in batches:
        is_one = pc.and_(batch["error"].is_null(), batch["body"].is_valid())
        is_one = pc.and_(is_one, pc.equal(batch["withheld_credentials"], 0))
        if not whole:
            is_one = pc.and_(is_one, BLOCKS.has(batch["frame_index"]))
        rows = batch.filter(is_one)
        if rows.num_rows:
            measured = _measured(message, rows, whole=whole)
            yield measured.filter(measured[AS_SENT].is_valid())


def _measured(message: str, rows: pa.RecordBatch, *, whole: bool) -> pa.RecordBatch:
    found = frame_sizes(message, rows)
    held: dict[str, Any] = {one: rows[one] for one in ("body_version", "client_id")}
    is_long = pc.greater_equal(rows["frame_index"], _WHOLE_UNTIL)
    held["weight"] = pc.if_else(is_long, 1.0 if whole else float(_ONE_OF), 1.0)
    held["message"] = pa.repeat(message, rows.num_rows)
    for one in FRAME_SIZES:
        is_size = pa.types.is_integer(one.type)
        sent = found[AS_SENT]
        held[one.name] = pc.coalesce(found[one.name], sent) if is_size else found[one.name]
    return pa.RecordBatch.from_arrays([held[one] for one in SAMPLE.names], schema=SAMPLE)
