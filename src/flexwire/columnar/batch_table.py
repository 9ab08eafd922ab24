"""The table of record batches: one row for each batch of magic 2, with its header fields.

`flexwire.kernels` fills and reads the table, and NumPy accesses its columns by name.
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
"""The columns before ``count`` are header fields. ``count`` is `COUNT_REFUSED` for batches that the
kernels must not read. ``start`` and ``end`` are the addresses of the records, either in the data or
in inflated bytes. ``budget`` limits the number of records and record headers of the batch. ``rows``
is the number of rows that were made from the batch. ``piece`` is the number of the piece of data
that contains the batch, if several pieces are scanned together.
"""
COUNT_REFUSED: Final = -1


class BatchHeaders(NamedTuple):
    """The fields of several batch headers, in one array per field.

    For messages (magic 0 and 1), the attributes are 0. For a wrapper message, the number of records
    is -1, because the header does not contain it.
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
    """Return a table allocated from Arrow's pool. The memory is reused without being cleared."""
    return np.frombuffer(pa.allocate_buffer(rows * BATCH.itemsize), BATCH)
