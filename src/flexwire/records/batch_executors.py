"""Reading and writing whole record batches in one call each, where this process runs on kernels.

Most batches of real topics have one to twenty records, and Python's code for a batch takes longer
than all of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.kernels.cache import Kernels
    from flexwire.records.batch import RecordBatch


@dataclass(frozen=True, slots=True)
class BatchFunctions:
    """What a process on kernels does with whole batches."""

    read_ahead: Callable[[bytes, int, bool, int], list[RecordBatch]]
    """Give the batches from a position on, some at once; none where the first is not sound."""
    read_all: Callable[[bytes, int, bool], tuple[list[Record], int]]
    """Give the records of the batches from a position on, and where those end that were sound."""
    read_records: Callable[[RecordBatch], list[Record]]
    """Do what `flexwire.records.batch.read_and_keep` does, errors included."""
    write: Callable[..., bytes]
    """Do what `flexwire.records.encode.write_plain_batch` does, errors included."""


@cache
def functions_on(loaded: Kernels) -> BatchFunctions:
    """Make the functions; Python's, where records or batches are not as kernels take them."""
    # This needs ctypes, and would slow down a process that runs without kernels.
    from flexwire.kernels.objects.functions import UnsuitableError  # noqa: PLC0415 - see above
    from flexwire.kernels.records.objects_functions import batch_function  # noqa: PLC0415 - see above

    # Both ask this module for its functions.
    from flexwire.records import batch, encode  # noqa: PLC0415 - see above

    def make(kernel: int, name: str, fallback: Callable[..., Any]) -> Callable[..., Any]:
        return batch_function(kernel, Record, batch.RecordBatch, name, fallback)

    try:
        return BatchFunctions(
            make(loaded.read_batches, "read_batches", no_batches),
            make(loaded.read_fetch, "read_fetch", no_records),
            make(loaded.read_batch, "read_batch", batch.read_and_keep),
            make(loaded.write_batch, "write_batch", encode.write_plain_batch),
        )
    except UnsuitableError:
        return BatchFunctions(no_batches, no_records, batch.read_and_keep, encode.write_plain_batch)


def no_batches(*_: object) -> list[RecordBatch]:
    """Give none: what is out of the ordinary is read one batch at a time."""
    return []


def no_records(_data: bytes, position: int, _check_crc: bool) -> tuple[list[Record], int]:  # noqa: FBT001 - as the kernel is called
    """Give none, for the same reason."""
    return [], position
