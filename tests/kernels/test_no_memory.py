"""If memory runs out, kernels return the right result or raise `MemoryError`, and leak nothing."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.records import Record, decode_batches, decode_records, encode_batch
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Callable

# This module of CPython's own tests makes allocations fail.
_NAME = "_testcapi"
pytestmark = [
    # Allocations fail in every thread, including a worker's receiver.
    pytest.mark.own_process,
    pytest.mark.skipif(
        find_spec(_NAME) is None, reason="this Python came without the modules of its own tests"
    ),
]
RECORDS = [
    # Bytes objects of length one, and keys that were made before, already exist.
    Record(2**62 + at, 2**40 + at, b"k%d" % at, b"v" * at, [(b"h%d" % at, b"value"), (b"", None)])
    for at in range(9)
]
CREATED = encode_batch(RECORDS)
APPENDED = encode_batch(RECORDS, timestamp_type="LogAppendTime")
# No call needs this many allocations.
MOST = 400


def of_batches() -> list[Any]:
    return [one.records for one in decode_batches(CREATED + APPENDED)]


DOORS: dict[str, Callable[[], Any]] = {
    "iterate": lambda: [one.position for one in decode_batches(CREATED * 3)],
    "records of batches": of_batches,
    "records of all": lambda: decode_records(CREATED + APPENDED),
    "encode": lambda: encode_batch(RECORDS),
}


@pytest.mark.slow
@each("door", DOORS)
@pytest.mark.parametrize("failing", [1, 3, MOST])
def test_what_has_no_memory_is_right_or_an_error(door: Callable[[], Any], failing: int) -> None:
    of_python: Any = import_module(_NAME)
    expected = door()

    def tried(first: int) -> bool:
        of_python.set_nomemory(first, first + failing)
        try:
            found = door()
        except MemoryError:
            return False
        finally:
            of_python.remove_mem_hooks()
        assert found == expected
        return True

    # Objects that are kept between calls already exist.
    for first in range(1, MOST):
        tried(first)
    gc.collect()
    grown = []
    # A leak repeats each time; other threads in the process may keep some memory once.
    for _ in range(4):
        before = sys.getallocatedblocks()
        right = [tried(first) for first in range(1, MOST)]
        grown.append(sys.getallocatedblocks() - before)
    assert min(grown) < 20
    # The call had already finished when these allocations failed.
    assert right[-1]
    assert failing < MOST or not right[0]
