"""The table of record batches: a row for each batch of magic 2, as its header describes it.

`flexwire.kernels` fills and reads it, and NumPy sees its columns by their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from flexwire.columnar.arrays import NumpyArray

BATCH: Final = np.dtype(
    [
        (name, np.int64)
        for name in (
            "position",
            "size",
            "base_offset",
            "partition_leader_epoch",
            "crc",
            "attributes",
            "last_offset_delta",
            "base_timestamp",
            "max_timestamp",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "count",
            "start",
            "end",
            "budget",
            "rows",
            "is_skipped",
            "piece",
        )
    ]
)
"""Up to ``count`` it is what the header has; ``count`` is `COUNT_REFUSED` for what kernels are not
to read. ``start`` and ``end`` are the addresses of the records, in the data or inflated. ``budget``
is the most records and record headers that the batch may have, ``rows`` how many rows it became,
and ``piece`` the number of the piece of data it is in, where several are scanned at once."""
COUNT_REFUSED: Final = -1


class BatchHeaders(NamedTuple):
    """The fields of some batch headers, an array of each; those of messages have no attributes.

    The count of records is -1 of a message that wraps others, as it does not say how many.
    """

    positions: NumpyArray
    sizes: NumpyArray
    base_offsets: NumpyArray
    last_offsets: NumpyArray
    attributes: NumpyArray
    producer_ids: NumpyArray
    counts: NumpyArray


def headers_of(table: NumpyArray) -> BatchHeaders:
    """Return the header fields in a table."""
    return BatchHeaders(
        table["position"],
        table["size"],
        table["base_offset"],
        table["base_offset"] + table["last_offset_delta"],
        table["attributes"],
        table["producer_id"],
        table["count"],
    )


def new_table(rows: int) -> NumpyArray:
    """Return a table in memory that Arrow's pool keeps for the next; it is not cleared."""
    return np.frombuffer(pa.allocate_buffer(rows * BATCH.itemsize), BATCH)
