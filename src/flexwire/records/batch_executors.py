"""The functions over whole batches that a process runs: on kernels, or Python's.

This is above batches, their iterator and their writing, which reach it through
`flexwire.records.executors.RUNNING`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.records import batch, decode, encode
from flexwire.records.executors import BatchFunctions
from flexwire.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.kernels.cache import Kernels


@cache
def batch_functions_on(loaded: Kernels | None) -> BatchFunctions:
    """Make the functions; Python's, where records or batches are not as kernels take them."""
    python = BatchFunctions(
        decode.iterate, no_records, batch.read_and_keep, encode.write_plain_batch
    )
    if loaded is None:
        return python
    # This needs ctypes, and would slow down a process that runs without kernels.
    from flexwire.kernels.objects.functions import UnsuitableError  # noqa: PLC0415 - see above
    from flexwire.kernels.records.objects_functions import (  # noqa: PLC0415 - see above
        IteratorKernels,
        batch_function,
        iterator_function,
    )

    def make(kernel: int, name: str, fallback: Callable[..., Any]) -> Callable[..., Any]:
        return batch_function(kernel, Record, batch.RecordBatch, name, fallback)

    iterating = IteratorKernels(loaded.iterate, loaded.next_batch, loaded.drop_iterator)
    fallbacks = (decode.iterate, decode.go_on)
    try:
        return BatchFunctions(
            iterator_function(
                iterating, Record, batch.RecordBatch, decode.BatchIterator, fallbacks
            ),
            make(loaded.read_fetch, "read_fetch", no_records),
            make(loaded.read_batch, "read_batch", batch.read_and_keep),
            make(loaded.write_batch, "write_batch", encode.write_plain_batch),
        )
    except UnsuitableError:
        return python


def no_records(_data: bytes, position: int, _check_crc: bool) -> tuple[list[Record], int]:  # noqa: FBT001 - as the kernel is called
    """Return none: what is out of the ordinary is read one batch at a time."""
    return [], position
