"""Call only the kernels for records, with functions that report a refusal."""

from __future__ import annotations

from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from flexwire.kernels import record_objects_iterate, record_objects_read, record_objects_write
from flexwire.kernels.record_objects import Classes
from flexwire.records import Record, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED = object()
CLASSES = Classes(Record, RecordBatch)


def _refuse(*_: Any) -> Any:
    return REFUSED


@cache
def functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the kernels' `read_records` and `write_records`; both can return REFUSED."""
    return (
        record_objects_read.records_reader(CLASSES, _refuse),
        record_objects_write.records_writer(CLASSES, _refuse),
    )


@cache
def batch_functions() -> tuple[Callable[..., Any], ...]:
    """Return the kernels' `read_fetch`, `read_batch` and `write_batch`."""
    return (
        record_objects_read.fetch_reader(CLASSES, _refuse),
        record_objects_read.batch_reader(CLASSES, _refuse),
        record_objects_write.batch_writer(CLASSES, _refuse),
    )


@cache
def iterate() -> Callable[..., Any]:
    """Return the kernels' `iterate`; its iterators yield REFUSED where they stop."""
    return record_objects_iterate.iterator_maker(CLASSES, _refuse, _refuse)


def read_ahead(*arguments: Any) -> Any:
    """Return the batches that the kernels read, up to the first refusal, or REFUSED."""
    found = iterate()(*arguments)
    return found if found is REFUSED else list(takewhile(lambda one: one is not REFUSED, found))
