"""The kernel or Python functions with which a process reads and writes records and batches.

This module depends on batches, their iterator and their writer. Those three use the functions
indirectly, through `flexwire.records.executors.ACTIVE`.
"""

from __future__ import annotations

from typing import Any

from flexwire.kernels import load_kernel
from flexwire.records import batch, body, decode, encode
from flexwire.records.executors import ACTIVE, RecordFunctions
from flexwire.records.record import Record

PYTHON = RecordFunctions(
    body.read_records,
    body.write_records,
    decode.iterate,
    lambda _data, position, _check_crc: ([], position),
    batch.read_and_keep,
    encode.write_plain_batch,
)
"""The functions in Python, which read batches one at a time."""


def kernel_functions() -> RecordFunctions:
    """Return the kernel functions. Without usable kernels, return the Python functions."""
    objects: Any = load_kernel("record_objects")
    if objects is None:
        return PYTHON
    try:
        classes = objects.Classes(Record, batch.RecordBatch)
    except load_kernel("objects").UnsuitableError:
        return PYTHON
    read, write = load_kernel("record_objects_read"), load_kernel("record_objects_write")
    iterating = load_kernel("record_objects_iterate")
    decode.BatchIterator.register(iterating.BatchIterator)
    return RecordFunctions(
        read.records_reader(classes, PYTHON.read_body),
        write.records_writer(classes, PYTHON.write_body),
        iterating.iterator_maker(classes, PYTHON.iterate, decode.go_on),
        read.fetch_reader(classes, PYTHON.read_all),
        read.batch_reader(classes, PYTHON.read_records),
        write.batch_writer(classes, PYTHON.write_batch),
    )


def use_functions(functions: RecordFunctions) -> None:
    """Use these functions for all later reading and writing."""
    # A property in Python would take longer to return stored records than it takes to read them.
    kind: Any = batch.RecordBatch
    kind.records = batch.property_of(functions.read_records)
    ACTIVE.functions = functions
