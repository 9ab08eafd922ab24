"""A sample of a log's batches, rewritten in other ways, to measure the resulting sizes.

The records are put into batches of other sizes, and each codec compresses each batch as a producer
would. Every size and level is measured, and none is extrapolated.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.columnar import encode_records
from flexwire.errors import EncodeError
from flexwire.logs import BatchDamage, read_piece
from flexwire.records.compression import deflate
from flexwire.records.record import Compression
from flexwire.tables.log_schema import LOG_SCHEMAS, REWRITES
from flexwire.wire.batch_layout import HEADER_SIZE, LEAST_RECORD, LEAST_RECORD_HEADER, RECORD_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.logs import LogPiece

    Words = np.ndarray[Any, Any]

CODECS: Final[tuple[tuple[Compression, int | None], ...]] = (
    (Compression.NONE, None),
    (Compression.GZIP, 1),
    (Compression.GZIP, 6),
    (Compression.SNAPPY, None),
    (Compression.LZ4, None),
    (Compression.LZ4, 12),
    (Compression.ZSTD, 1),
    (Compression.ZSTD, 3),
    (Compression.ZSTD, 9),
)
"""The compression types with which a sample is written, each with its level, if any."""
BATCH_SIZES: Final = (16 << 10, 128 << 10, 1 << 20)
"""The batch sizes to try, in bytes of records. A size is tried only if the sample is large enough.
"""
MOST_INFLATED: Final = 8 << 20
"""A batch whose inflated size exceeds this is left out of samples, because each way of
writing it takes time."""
_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")


class SampleWindow(NamedTuple):
    """The earliest position of a sample in a file, and its size without compression."""

    position: int
    wanted: int


class BatchSample(NamedTuple):
    """Successive batches: their places, and their bytes in the file."""

    start: int
    stop: int
    bytes: int
    batches: int


class BatchExtents(NamedTuple):
    """The places and sizes of a piece's batches, in the order of their positions."""

    positions: Words
    sizes: Words
    inflated: Words
    is_control: Words


def sample_at(window: SampleWindow, batches: BatchExtents) -> BatchSample | None:
    """Choose successive batches of a piece. Return None if there are none.

    Control batches between the chosen batches are not part of the sample.
    """
    positions, sizes, inflated, is_control = batches
    chosen: list[int] = []
    total = 0
    for row in range(int(np.searchsorted(positions, window.position)), len(positions)):
        follows = row > 0 and positions[row] == positions[row - 1] + sizes[row - 1]
        if chosen and (inflated[row] > MOST_INFLATED or not follows):
            break
        if is_control[row] or inflated[row] > MOST_INFLATED:
            continue
        chosen.append(row)
        total += int(inflated[row])
        if total >= window.wanted:
            break
    if not chosen:
        return None
    first, last = chosen[0], chosen[-1]
    stop = int(positions[last] + sizes[last])
    return BatchSample(int(positions[first]), stop, int(sizes[chosen].sum()), len(chosen))


def rewritten(piece: LogPiece, sample: BatchSample) -> pa.RecordBatch | None:
    """Rewrite a sample of a piece in all ways. Return None if its records cannot be written."""
    part = replace(piece, start=sample.start, stop=sample.stop, is_end=False)
    items = read_piece(part, _COLUMNS, mode="PERMISSIVE")
    read = [item for item in items if not isinstance(item, BatchDamage)]
    if not read or not sum(map(len, read)):
        return None
    rows = pa.Table.from_batches(read).combine_chunks()
    place = {
        "topic": piece.partition.topic,
        "partition": piece.partition.partition,
        "file": piece.log.name,
        "position": sample.start,
        "sampled_bytes": sample.bytes,
        "sampled_batches": sample.batches,
        "sampled_records": len(rows),
    }
    try:
        ways = [place | way for way in _ways(rows)]
    except EncodeError:
        return None
    return pa.RecordBatch.from_pylist(ways, LOG_SCHEMAS[REWRITES]) if ways else None


def _ways(rows: pa.Table) -> Iterator[dict[str, Any]]:
    sizes = record_sizes(rows)
    for batch_size in BATCH_SIZES:
        if sizes.sum() < batch_size:
            # The sample does not fill a single batch of this size, so there is no result for it.
            return
        bodies = [_body(rows.slice(first, last - first)) for first, last in cut(sizes, batch_size)]
        for compression, level in CODECS:
            written = (
                deflate(compression, body, level=level, magic=RECORD_BATCH) for body in bodies
            )
            yield {
                "compression": str(compression.value),
                "level": level,
                "batch_size": batch_size,
                "written_bytes": sum(HEADER_SIZE + len(batch) for batch in written),
                "written_batches": len(bodies),
            }


def _body(rows: pa.Table) -> bytes:
    return encode_records(rows, records_per_batch=len(rows))[HEADER_SIZE:]


def record_sizes(rows: pa.Table) -> Words:
    """Return the approximate size of each record in a batch, including the surrounding fields."""
    headers = rows["headers"].combine_chunks()
    items = headers.flatten()
    inner = sum(_lengths(items.field(name)) for name in ("key", "value"))
    ends = np.concatenate([[0], np.cumsum(inner + LEAST_RECORD_HEADER)])
    counts = np.concatenate([[0], np.cumsum(pc.list_value_length(headers).to_numpy())])
    sizes: Words = LEAST_RECORD + np.diff(ends[counts])
    return sizes + _lengths(rows["key"]) + _lengths(rows["value"])


def _lengths(values: pa.Array | pa.ChunkedArray) -> Words:
    lengths: Words = pc.fill_null(pc.binary_length(values), 0).to_numpy().astype(np.int64)
    return lengths


def cut(sizes: Words, most: int) -> Iterator[tuple[int, int]]:
    """Divide records into batches of at most ``most`` bytes or a single record."""
    ends = np.cumsum(sizes)
    cuts, start = [0], 0
    while cuts[-1] < len(sizes):
        stop = max(cuts[-1] + 1, int(np.searchsorted(ends, start + most, side="right")))
        start = int(ends[stop - 1])
        cuts.append(stop)
    return pairwise(cuts)
