"""The kernels for records alone: functions that say when they refuse."""

from __future__ import annotations

from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.kernels.cache import load
from flexwire.kernels.library import LEVELS
from flexwire.kernels.records.objects_functions import (
    IteratorKernels,
    batch_function,
    iterator_function,
    record_function,
)
from flexwire.kernels.running import kernels as running
from flexwire.records import BatchIterator, Record, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED = object()
# What a processor of such a level has no instruction for.
_WITHOUT_CRC = {one.name for one in LEVELS if "sse4.2" not in one.features}
HAS_CRC = running().level not in _WITHOUT_CRC
"""Whether kernels compute crcs here; else they leave whole batches to Python."""
needs_crc = pytest.mark.skipif(not HAS_CRC, reason="kernels of this level have no crc")


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
    """Give the kernels' `read_fetch`, `read_batch` and `write_batch`."""
    kernels = load()
    assert kernels is not None, "the kernels run on every machine that runs the tests"
    names = ("read_fetch", "read_batch", "write_batch")
    return tuple(
        batch_function(getattr(kernels, name), Record, RecordBatch, name, lambda *_: REFUSED)
        for name in names
    )


@cache
def iterate() -> Callable[..., Any]:
    """Give the kernels' `iterate`; its iterators give REFUSED where they would not go on."""
    kernels = load()
    assert kernels is not None, "the kernels run on every machine that runs the tests"
    iterating = IteratorKernels(kernels.iterate, kernels.next_batch, kernels.drop_iterator)
    fallbacks = (lambda *_: REFUSED, lambda _: REFUSED)
    return iterator_function(iterating, Record, RecordBatch, BatchIterator, fallbacks)


def read_ahead(*arguments: Any) -> Any:
    """Give what the kernels are sure of, or REFUSED."""
    found = iterate()(*arguments)
    return found if found is REFUSED else list(takewhile(lambda one: one is not REFUSED, found))
