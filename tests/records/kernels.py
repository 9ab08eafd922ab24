"""The kernels for records alone: functions that say when they refuse."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.kernels.cache import load
from flexwire.kernels.records.objects_functions import batch_function, record_function
from flexwire.records import Record, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED = object()


@cache
def functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Give the kernels' `read_records` and `write_records`; both give REFUSED."""
    kernels = load()
    assert kernels is not None, "the kernels run on every machine that runs the tests"
    return (
        record_function(kernels.read_records, Record, "read_records", lambda *_: REFUSED),
        record_function(kernels.write_records, Record, "write_records", lambda *_: REFUSED),
    )


@cache
def batch_functions() -> tuple[Callable[..., Any], ...]:
    """Give the kernels' `read_batches`, `read_fetch`, `read_batch` and `write_batch`."""
    kernels = load()
    assert kernels is not None, "the kernels run on every machine that runs the tests"
    names = ("read_batches", "read_fetch", "read_batch", "write_batch")
    return tuple(
        batch_function(getattr(kernels, name), Record, RecordBatch, name, lambda *_: REFUSED)
        for name in names
    )
