"""Kernels are safe if several threads share their data, even on a Python without a GIL.

With a GIL no other thread runs while a kernel runs, so most of these tests can fail only on a
free-threaded Python: ``python -m tools.try_wheel --python python3.14t`` runs them there.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import RecordError
from flexwire.records import Record, decode_batches, decode_records, encode_batch
from tests.codec.made_up import everything, made
from tests.kernels.harness import REFUSED, full_message, functions
from tests.records.kernels import REFUSED as RECORDS_REFUSED
from tests.records.kernels import batch_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MadeUp: Any = everything()
# A race occurs only in some attempts.
SECONDS = 0.3 if getattr(sys, "_is_gil_enabled", lambda: True)() else 6
LARGE = 100_000
pytestmark = [pytest.mark.own_process, pytest.mark.slow]


def in_threads(work: Callable[[int], object], count: int = 4) -> list[Any]:
    """Start threads at the same time; return their results, or raise the error of one of them."""
    start = threading.Barrier(count)
    found: list[Any] = [None] * count
    raised: list[BaseException] = []

    def run(number: int) -> None:
        start.wait()
        try:
            found[number] = work(number)
        except BaseException as error:  # noqa: BLE001 - a thread's error is raised below
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if raised:
        raise raised[0]
    return found


@contextmanager
def changing(*changes: Callable[[int], object]) -> Iterator[None]:
    """Call each of these functions again and again in its own thread, and count the calls."""
    stop = threading.Event()
    called = [0] * len(changes)

    def work(number: int) -> None:
        while not stop.is_set():
            changes[number](called[number])
            called[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(changes))]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in threads:
            one.join()
    assert all(called)


def during(work: Callable[[], object]) -> int:
    """Call this function for a while; return how often it was called."""
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        work()
        count += 1
    return count


@pytest.mark.long
def test_loading_the_kernels_does_not_turn_a_gil_on() -> None:
    program = (
        "import importlib, pkgutil, sys\n"
        "is_on = getattr(sys, '_is_gil_enabled', lambda: True)\n"
        "import flexwire.columnar, flexwire.codec, flexwire.records\n"
        "before = is_on()\n"
        "import flexwire.kernels\n"
        "names = [one.name for one in pkgutil.iter_modules(flexwire.kernels.__path__)]\n"
        "for name in names: importlib.import_module(f'flexwire.kernels.{name}')\n"
        "print(len(names), is_on() == before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    count, is_same = done.stdout.split()
    assert int(count) > 10
    assert is_same == "True"


@pytest.mark.long
def test_threads_make_the_functions_of_a_class_at_once() -> None:
    for number in range(5):
        fields = [{"name": f"N{number}", "type": "int32", "versions": "0+"}]
        kind = made(fields)
        raw = bytes(3) + bytes([number]) + b"\0"
        [first, *others] = in_threads(lambda _, kind=kind, raw=raw: kind.decode(raw, 2))  # type: ignore[misc]
        assert getattr(first, f"n{number}") == number
        assert others == [first] * 3
        assert first.encode(2) == raw


@pytest.mark.long
def test_threads_read_the_same_record_headers() -> None:
    # Calls may use the same keys.
    batches = [
        encode_batch([Record(n, n, b"k", b"v", [(f"{n % 3}{at}".encode(), b"x")] * 20)])
        for at in range(4)
        for n in range(5)
    ]
    expected = [decode_records(one) for one in batches]

    def work(number: int) -> list[Any]:
        return [[decode_records(one) for one in batches] for _ in range(20 + number)]

    for found in in_threads(work):
        assert all(one == expected for one in found)


def test_threads_get_the_same_records_of_a_batch() -> None:
    data = encode_batch([Record(n, n, b"k", b"v", [(b"a", b"x")]) for n in range(20)])
    for _ in range(50):
        [batch] = decode_batches(data)
        first, *others = in_threads(lambda _, batch=batch: batch.records, 2)  # type: ignore[misc]
        assert all(one is first for one in others)
        assert batch.records is first
        assert first == decode_records(data)


def test_threads_share_an_iterator_whose_batches_the_kernels_refuse_in_part() -> None:
    # Python reads every third batch, which has an old magic value, while other threads continue.
    new = [encode_batch([Record(at, at, b"k", b"v", [])]) for at in range(2)]
    old = encode_batch([Record(2, 2, b"k", b"v", [])], magic=1)
    data = b"".join((*new, old)) * 60
    expected = [one.position for one in decode_batches(data)]
    for _ in range(2):
        iterator = decode_batches(data)
        found = in_threads(lambda _, iterator=iterator: [*iterator])  # type: ignore[misc]
        assert sorted(one.position for part in found for one in part) == expected
        assert iterator.position == len(data)
        assert iterator.partial is None


def test_a_message_that_threads_change_is_written_or_refused() -> None:
    decode, encode = functions(MadeUp, 1)
    value = full_message()
    value.unknown_tagged_fields = {9: b"nine"}

    def change_fields(turn: int) -> None:
        value.text = "x" * (turn % 300)
        value.blob = bytes([turn % 256]) * LARGE
        value.offset = turn << 33
        value.id = uuid.UUID(int=turn)
        value.note = None if turn % 2 else "note" * 50
        value.cluster = f"cluster {turn}"

    def change_lists(turn: int) -> None:
        value.numbers.append(turn)
        value.names = [str(turn)] * (turn % 5)
        if turn % 7 == 0:
            value.numbers.clear()
            value.topics = [MadeUp.Topic(name=str(turn)) for _ in range(turn % 40)]
        if value.topics:
            value.topics[-1] = MadeUp.Topic(name="other", leader=MadeUp.Leader(epoch=turn))

    def change_tags(turn: int) -> None:
        value.unknown_tagged_fields[10 + turn % 50] = bytes(turn % 90)
        if turn % 50 == 0:
            value.unknown_tagged_fields = {9: b"new"}

    sizes = set()

    def work() -> None:
        found = encode(value)
        if found is not REFUSED:
            sizes.add(len(found))
            assert len({*decode(found).blob}) <= 1

    with changing(change_fields, change_lists, change_tags):
        assert during(work) > 10
    assert len(sizes) > 1


def test_records_that_threads_change_are_written_or_refused() -> None:
    write = batch_functions()[2]
    records = [Record(n, n, b"k", b"v", [(b"a", b"x")]) for n in range(100)]

    def change_records(turn: int) -> None:
        one = records[turn % 50]
        one.value, one.key = bytes([turn % 200]), None if turn % 2 else b"key %d" % turn
        # If nobody held these bytes, other data would take their place while they are copied.
        records[0].value = bytes([turn % 256]) * LARGE
        one.timestamp = turn << 20
        one.headers.append((b"%d" % turn, b"y"))
        one.headers[0] = (b"first %d" % turn, None)
        if turn % 7 == 0:
            one.headers = []

    def change_list(turn: int) -> None:
        if turn % 2:
            records.pop()
        else:
            records.append(Record(99, turn, None, b"last %d" % turn, []))
        records[60] = Record(60, turn, None, b"new %d" % turn, [])

    counts = set()

    def work() -> None:
        written = write(records, 0, 0, None, 0, None, -1, -1, -1, -1)
        if written is RECORDS_REFUSED:
            return
        found = decode_records(written)
        counts.add(len(found))
        values = [one.value or b"" for one in found]
        assert all(value == value[:1] * LARGE for value in values if len(value) == LARGE)

    with changing(change_records, change_list):
        assert during(work) > 10
    assert counts <= set(range(98, 102))
    assert counts


def test_a_batch_that_threads_change_is_read_or_refused() -> None:
    one = encode_batch([Record(n, n, b"k", b"v" * n, []) for n in range(30)])
    other = encode_batch([Record(n, n, b"key", b"w", [(b"a", b"b")]) for n in range(30)])
    [batch] = decode_batches(one)

    def change(turn: int) -> None:
        batch.data = bytes(bytearray(other if turn % 2 else one))
        batch.base_offset = (turn << 40) + 1
        batch.base_timestamp = (turn << 40) + 2
        batch._records = None

    def work() -> None:
        try:
            found = batch.records
        except RecordError:
            return
        assert len(found) == 30
        assert {record.key for record in found} <= {b"k", b"key"}

    with changing(change, change):
        assert during(work) > 10
