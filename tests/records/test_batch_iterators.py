"""The kernels' iterators over batches behave like Python's, and are correct C objects."""

from __future__ import annotations

import copy
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from flexwire.records import (
    MAX_INFLATED,
    BatchIterator,
    Record,
    RecordBatch,
    batch,
    decode,
    decode_batches,
    decode_records,
    encode_batch,
)
from flexwire.records.message_set import check_message_crc
from tests.each import each
from tests.records.kernels import iterate
from tests.records.test_batch_kernels import AHEAD, no_kernels, some

ITERATE = iterate()
# The keys of record headers that are cached by position, and the longest cached key.
KEYS, LONGEST_KEY = 16, 64
EACH = [encode_batch(some(count)) for count in (1, 2, 1, 3)]
DATA = b"".join(EACH)


def test_both_are_batch_iterators() -> None:
    fast = decode_batches(DATA)
    with no_kernels():
        slow = decode_batches(DATA)
        next(slow)
    for one in (fast, slow):
        assert isinstance(one, BatchIterator)
        assert isinstance(one, Iterator)
        assert iter(one) is one
        assert type(one).__name__.endswith("Iterator")
        assert one.__doc__
        for name in ("position", "partial", "other"):
            with pytest.raises(AttributeError):
                setattr(one, name, 1)
    assert type(fast) is not type(slow)
    assert issubclass(type(fast), BatchIterator)
    # If an object had no collector header, the collector's data would be read from foreign memory.
    assert not type(fast).__flags__ & 1 << 14


def test_none_can_be_made_without_data() -> None:
    kind: Any = type(ITERATE(DATA, 0, True, MAX_INFLATED))
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(TypeError):
        object.__new__(kind)
    with pytest.raises(TypeError):
        type("Below", (kind,), {})
    with pytest.raises(TypeError):
        copy.copy(ITERATE(DATA, 0, True, MAX_INFLATED))


def test_a_position_outside_of_the_data_ends_the_iteration() -> None:
    for position in (-1, len(DATA), len(DATA) + 1, 2**62, 2**63 - 1, -(2**63)):
        iterator = ITERATE(DATA, 0, False, MAX_INFLATED)
        iterator._position = position
        given = 0
        while next(iterator, None) is not None:
            iterator._position = position
            given += 1
        assert given == len(EACH)
    iterator._position = len(EACH[0])
    assert [one.data for one in iterator] == EACH[1:]


def test_an_end_that_python_saw_stays_the_end() -> None:
    with no_kernels():
        iterator = decode_batches(DATA[:70])
        assert list(iterator) == []
        told = iterator.position, iterator.partial
        assert told[1] is not None
    assert next(iterator, None) is None
    assert (iterator.position, iterator.partial) == told


@pytest.mark.parametrize("on_kernels", [True, False])
def test_what_an_exception_from_elsewhere_interrupts_is_read_again(
    monkeypatch: pytest.MonkeyPatch, *, on_kernels: bool
) -> None:
    # A signal handler may raise such an exception; Python code reads messages.
    data = b"".join(
        encode_batch([Record(at, 5, None, b"value", [])], magic=1 if at % 3 else 2)
        for at in range(12)
    )
    interrupted: list[int] = []

    def check(message: bytes, crc: int, start: int) -> None:
        if start not in interrupted:
            interrupted.append(start)
            raise KeyboardInterrupt
        check_message_crc(message, crc, start)

    monkeypatch.setattr(decode, "check_message_crc", check)
    found: list[RecordBatch] = []
    with nullcontext() if on_kernels else no_kernels():
        iterator = decode_batches(data)
        for _ in range(9):
            with suppress(KeyboardInterrupt):
                found.extend(iterator)
    assert len(interrupted) == 8
    assert [one.base_offset for one in found] == [*range(12)]
    assert iterator.position == len(data)
    assert iterator.partial is None


def test_batches_outlive_their_iterator_and_it_what_it_reads() -> None:
    data = DATA + b""
    before = sys.getrefcount(data)
    iterator = ITERATE(data, 0, False, MAX_INFLATED)
    first = next(iterator)
    assert sys.getrefcount(data) == before + 1
    del iterator
    assert sys.getrefcount(data) == before
    assert first.records == some(1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_iterators_that_are_left_anywhere_leak_nothing() -> None:
    data = DATA * 400 + DATA[:70]
    kind = type(ITERATE(DATA, 0, True, MAX_INFLATED))
    steps = (0, 1, 3, AHEAD // len(DATA) * 4, 1602)

    def work() -> None:
        for step in steps:
            iterator = ITERATE(data, 0, True, MAX_INFLATED)
            for _ in range(step):
                next(iterator, None)

    work()
    gc.collect()
    before = sys.getallocatedblocks(), sys.getrefcount(kind), sys.getrefcount(data)
    for _ in range(10):
        work()
    gc.collect()
    after = sys.getallocatedblocks(), sys.getrefcount(kind), sys.getrefcount(data)
    assert after[0] - before[0] < 20
    assert after[1:] == before[1:]


@pytest.mark.long
@pytest.mark.own_process
@each("of", ["kernels", "message sets, which are Python's to read", "no kernels"])
def test_threads_share_an_iterator(of: str) -> None:
    old = encode_batch([Record(at, at, b"k", b"v", []) for at in range(3)], magic=1)
    data = (DATA if of != "message sets, which are Python's to read" else old) * 3000
    found: list[RecordBatch] = []
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with no_kernels() if of == "no kernels" else nullcontext():
            iterator = decode_batches(data)
            threads = [threading.Thread(target=lambda: found.extend(iterator)) for _ in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
    finally:
        sys.setswitchinterval(switching)
    assert sorted(one.position for one in found) == [one.position for one in decode_batches(data)]


def test_keys_of_record_headers_are_those_on_the_wire() -> None:
    names = [b"", b"a", b"b", b"ab", b"x" * LONGEST_KEY, b"x" * (LONGEST_KEY + 1), b"y" * 300]
    counts = (0, 1, 2, KEYS - 1, KEYS, KEYS + 1, 3 * KEYS)
    made = [
        Record(n, 5, None, b"v", [(names[(n + k * (n % 3)) % len(names)], b"1") for k in range(c)])
        for n, c in enumerate(counts * 3)
    ]
    for size in (1, 4, len(made)):
        data = b"".join(encode_batch(made[at : at + size]) for at in range(0, len(made), size))
        for _ in range(2):
            assert decode_records(data) == made
            assert [one for each in decode_batches(data) for one in each.records] == made
    [[(first, _)], [(second, _)]] = (decode_records(EACH[0])[0].headers for _ in range(2))
    assert first is second


def test_records_is_one_property_by_whatever_it_reads() -> None:
    doc = RecordBatch.records.__doc__
    [one] = decode_batches(EACH[0])
    assert type(vars(RecordBatch)["records"].fget).__name__ == "builtin_function_or_method"
    kept = one.records
    assert one.records is kept
    one._records = None
    with no_kernels():
        list(decode_batches(EACH[0]))
        assert vars(RecordBatch)["records"].fget is batch.read_and_keep
        assert one.records == kept
        assert RecordBatch.records.__doc__ == doc
    with pytest.raises(AttributeError):
        one.records = []  # type: ignore[misc]  # a property, which this proves

    class Below(RecordBatch):
        """For a subclass, the kernel leaves the work to Python."""

    below = Below(**{name: getattr(one, name) for name in one.__struct_fields__})
    decode_batches(b"")
    assert below.records == kept
