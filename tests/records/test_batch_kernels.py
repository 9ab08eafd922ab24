"""Kernels for whole batches produce the same result as the Python code, or refuse."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from dataclasses import fields
from itertools import pairwise
from types import FunctionType
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import EncodeError, FlexwireError, RecordError
from flexwire.kernels.objects import UnsuitableError
from flexwire.kernels.record_objects import Classes
from flexwire.records import (
    MAX_INFLATED,
    Record,
    RecordBatch,
    batch_executors,
    decode_batches,
    decode_records,
    encode_batch,
)
from flexwire.records.batch_executors import PYTHON, kernel_functions, use_functions
from flexwire.records.encode import write_plain_batch
from flexwire.records.executors import RecordFunctions
from flexwire.wire.batch_layout import HEADER_SIZE
from tests.each import each
from tests.modules import run
from tests.records import batches
from tests.records.guard import RECORDS
from tests.records.kernels import REFUSED, batch_functions, iterate, read_ahead
from tests.records.strategies import record_batches
from tests.records.test_encode import WRONG_RECORDS
from tests.records.test_fuzz import SMALL
from tests.references import changed_counts
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_FETCH, READ_BATCH, WRITE = batch_functions()
READ_AHEAD = read_ahead
_laws = settings(max_examples=times(150))
NUMBERS = (None, None, None, None, -1, -1, -1, -1)
# The number of bytes of batches that are read at once.
AHEAD = 1 << 15


@contextmanager
def no_kernels() -> Iterator[None]:
    """Run without kernels until the end of the block."""
    use_functions(PYTHON)
    try:
        yield
    finally:
        use_functions(kernel_functions())


def told(data: bytes, **options: Any) -> list[Any]:
    """Return everything that decoding returns, step by step, errors included."""
    found: list[Any] = []
    iterator = decode_batches(data, **options)
    for _ in range(20):
        try:
            batch = next(iterator)
        except StopIteration:
            break
        except RecordError as error:
            found.append(str(error))
        else:
            found.append((batch, type(batch)))
            try:
                found.append(batch.records)
            except RecordError as error:
                found.append(str(error))
        found.append(iterator.position)
    return [*found, iterator.position, iterator.partial]


def flat(data: bytes, **options: Any) -> Any:
    try:
        return [one for batch in decode_batches(data, **options) for one in batch.records]
    except RecordError as error:
        return str(error)


def at_once(data: bytes, **options: Any) -> Any:
    try:
        return decode_records(data, **options)
    except RecordError as error:
        return str(error)


def agree(data: bytes, **options: Any) -> None:
    """Check that a process with kernels and one without kernels produce the same result."""
    with no_kernels():
        expected = told(data, **options), flat(data, **options), at_once(data, **options)
    assert (told(data, **options), flat(data, **options), at_once(data, **options)) == expected
    assert expected[1] == expected[2]


@st.composite
def fetches(draw: st.DrawFn) -> bytes:
    """Draw batches, one after another, damaged or cut off."""
    made = []
    for _ in range(draw(st.integers(0, 4))):
        chosen = draw(st.lists(st.sampled_from(RECORDS), max_size=3))
        attributes = draw(st.sampled_from([0, 0, 0x08, 0x30, 0x01, 0x07]))
        offset = draw(st.sampled_from([0, 2**62, -1, 2**63 - 2]))
        one = batches.batch(
            b"".join(chosen), len(chosen), attributes=attributes, base_offset=offset
        )
        made.append(draw(st.sampled_from([one, one, batches.message(b"v")])))
    raw = bytearray(b"".join(made))
    for _ in range(draw(st.integers(0, 2))):
        if raw:
            byte = st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
            raw[draw(st.integers(0, len(raw) - 1))] = draw(byte)
    return bytes(raw[: draw(st.integers(0, len(raw)) | st.just(len(raw)))])


@pytest.mark.slow
@_laws
@given(fetches(), st.booleans())
def test_whatever_is_decoded_is_the_same(data: bytes, check_crc: bool) -> None:  # noqa: FBT001 - drawn
    agree(data, check_crc=check_crc, max_inflated=5000)


@pytest.mark.long
@pytest.mark.slow
def test_the_documents_are_decoded_the_same_and_cut_anywhere() -> None:
    together = b"".join(SMALL[:6])
    agree(together)
    for document in SMALL:
        agree(document)
        agree(document + together)
        for size in range(0, len(document), 7):
            agree(document[:size])


def some(count: int, *, size: int = 5) -> list[Record]:
    return [Record(n, 1000 + n, None, b"v" * size, [(b"a", b"%d" % n)]) for n in range(count)]


def test_positions_and_the_partial_end_are_told_as_the_iteration_goes() -> None:
    each = [encode_batch(some(n + 1)) for n in range(5)]
    data = b"".join(each) + each[0][:30]
    starts = [0]
    for one in each:
        starts.append(starts[-1] + len(one))
    iterator = decode_batches(data)
    assert iter(iterator) is iterator
    for start, after in pairwise(starts):
        assert iterator.position == start
        assert iterator.partial is None
        batch = next(iterator)
        assert (batch.position, iterator.position) == (start, after)
    assert next(iterator, None) is None
    assert iterator.partial is not None
    assert iterator.partial.position == starts[-1]
    assert iterator.position == len(data)


def ahead(data: bytes) -> int:
    """Return how many objects are made before the first batch is returned."""
    # Python keeps some unreachable objects until garbage collection.
    gc.collect()
    before = sys.getallocatedblocks()
    iterator = iterate()(data, 0, True, MAX_INFLATED)
    gc.collect()
    made = sys.getallocatedblocks() - before
    del iterator
    return made


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_what_is_read_ahead_is_bounded_and_nothing_else_is_kept() -> None:
    small, large = encode_batch(some(2)), encode_batch(some(1, size=AHEAD))
    packed = encode_batch(some(9), compression="gzip")
    # Objects that the first call cached still exist.
    assert ahead(small) > 0
    each = ahead(small * 101) - ahead(small * 100)
    most = AHEAD // len(small)
    assert each >= 2
    assert ahead(small * most) - ahead(small * (most - 1)) == each
    assert ahead(small * most) == ahead(small * (most + 1)) == ahead(small * 2000)
    assert ahead(large + small) == ahead(large + small * 9)
    assert ahead(small + large) == ahead(small + small[:9])
    assert ahead(packed + small) == ahead(packed + small * 9)
    assert ahead(small + packed) == ahead(small + small[:9])
    for many in (small * 2000, (small + large + packed) * 9):
        with no_kernels():
            expected = list(decode_batches(many))
        assert READ_AHEAD(many, 0, True, MAX_INFLATED) == list(decode_batches(many)) == expected


def test_a_batch_that_is_all_of_the_data_is_no_copy() -> None:
    data = encode_batch(some(3))
    [batch] = READ_AHEAD(data, 0, True, MAX_INFLATED)
    assert batch.data is data
    assert batch.records is batch.records


def test_a_wrong_crc_ends_what_is_sure() -> None:
    good = encode_batch(some(3))
    bad = good[:-1] + bytes([good[-1] ^ 1])
    assert len(READ_AHEAD(good + bad + good, 0, True, MAX_INFLATED)) == 1
    assert len(READ_AHEAD(good + bad + good, 0, False, MAX_INFLATED)) == 3
    assert READ_FETCH(good + bad + good, 0, True) == (some(3), len(good))
    assert READ_FETCH(bad, 0, True) == ([], 0)
    assert READ_FETCH(good + bad, len(good), True) == ([], len(good))
    assert READ_FETCH(good + good, len(good), True) == (some(3), 2 * len(good))


def test_other_arguments_are_refused() -> None:
    data = encode_batch(some(3))
    right: tuple[Any, ...] = (data, 0, True, MAX_INFLATED)
    for call, arguments in ((READ_AHEAD, right), (READ_FETCH, right[:3])):
        assert call(*arguments) is not REFUSED
        for index in range(len(arguments)):
            for wrong in ("x", 1.5, None, bytearray(data), 2**64, -1, len(data) + 1):
                # A limit may exceed the number of records.
                if index < 3 or wrong != len(data) + 1:
                    changed = (*arguments[:index], wrong, *arguments[index + 1 :])
                    assert call(*changed) is REFUSED, changed
        assert call() is REFUSED
        assert call(*arguments, 1) is REFUSED
    [batch] = decode_batches(data)
    for other in (None, batch.records[0], data, 5, RecordBatch):
        assert READ_BATCH(other) is REFUSED
    assert READ_BATCH(batch, batch) is REFUSED


@each("name", RecordBatch.__struct_fields__)
@each("value", [None, -1, 0, 1, 2**31, 2**63 - 1, 2**63, "x", b"", bytes(60)])
def test_a_batch_whose_fields_were_changed_is_read_as_python_reads_it(
    name: str, value: Any
) -> None:
    [batch] = decode_batches(encode_batch(some(3)))
    fields = {one: getattr(batch, one) for one in batch.__struct_fields__}
    found, expected = (RecordBatch(**{**fields, name: value}) for _ in range(2))
    try:
        with no_kernels():
            wanted: Any = expected.records
    except (FlexwireError, TypeError, ValueError, IndexError, OverflowError):
        wanted = REFUSED
    got = found.records if name == "_records" and value is not None else READ_BATCH(found)
    assert got == wanted or (got is REFUSED and value in {2**63, 2**63 - 1, 2**31})


@pytest.mark.long
@pytest.mark.slow
@_laws
@given(record_batches())
def test_what_is_written_is_the_same(batch: tuple[list[Record], dict[str, Any]]) -> None:
    records, fields = batch
    with no_kernels():
        expected = encode_batch(records, **fields)
    assert encode_batch(records, **fields) == expected
    assert encode_batch(tuple(records), **fields) == expected


EDGES = [s * (1 << b) - d for b in (15, 16, 31, 32, 63) for s in (1, -1) for d in (-1, 0, 1)]


@pytest.mark.parametrize("index", range(len(NUMBERS)))
def test_every_number_of_a_header_at_its_edges(index: int) -> None:
    written = 0
    for number in (*EDGES, 0, 1, 5, 10**6, None, True, 1.5, "x"):
        for records in (some(1), some(3), [Record(2**31 - 1, -(2**63), None, None, [])]):
            numbers: Any = (*NUMBERS[:index], number, *NUMBERS[index + 1 :])
            found = WRITE(records, 0, *numbers)
            try:
                expected: Any = write_plain_batch(records, 0, *numbers)
            except EncodeError:
                expected = REFUSED
            # If one side is a number and the other is None, the comparison is left to Python.
            assert found == expected or (found is REFUSED and number is None and index > 3)
            written += found is not REFUSED
    assert written > 5


@pytest.mark.parametrize("attributes", [0, 8, 0x30, 0x78, -8, -(2**15), 2**15 - 8])
def test_attributes_are_written_as_they_are(attributes: int) -> None:
    assert WRITE(some(2), attributes, *NUMBERS) == write_plain_batch(some(2), attributes, *NUMBERS)


@pytest.mark.parametrize("attributes", [1, 4, 7, 2**15, -(2**15) - 8, 2**64, None, "x"])
def test_other_attributes_are_left_to_python(attributes: Any) -> None:
    assert WRITE(some(2), attributes, *NUMBERS) is REFUSED


def test_what_cannot_be_written_is_refused() -> None:
    good = Record(5, 1000, b"k", b"v", [(b"a", b"1")])
    for _, wrong, _ in WRONG_RECORDS:
        bad = msgspec.structs.replace(good, **wrong)
        # A single batch may still pass if it is the one with which the others are compared.
        for records in ([good, bad], [bad, good], [good, bad, good]):
            assert WRITE(records, 0, *NUMBERS) is REFUSED
    for others in ([], (good,), None, [None], [good, None], [object()]):
        assert WRITE(others, 0, *NUMBERS) is REFUSED
    assert WRITE([good], 0, *NUMBERS[1:]) is REFUSED
    assert WRITE([good], 0, *NUMBERS, 1) is REFUSED


def test_sizes_at_the_edges_of_the_buffer() -> None:
    for size in range(3900, 4200):
        records = some(1, size=size)
        assert WRITE(records, 0, *NUMBERS) == write_plain_batch(records, 0, *NUMBERS)


@pytest.mark.long
@pytest.mark.own_process
def test_a_batch_may_change_while_it_is_read() -> None:
    data = encode_batch([Record(n, n, None, b"v" * 9, [(b"a", b"x")]) for n in range(3000)])
    copy = data[:5] + data[5:]
    [batch] = decode_batches(copy, check_crc=False)
    batch.attributes, batch.max_timestamp = 8, 10**15
    del copy
    changed = []

    def change(*_: Any) -> None:
        changed.append(1)
        batch.data, batch.max_timestamp = b"", 0

    threshold = gc.get_threshold()
    gc.callbacks.append(change)
    gc.set_threshold(10)
    try:
        found = READ_BATCH(batch)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(change)
    if sys.version_info < (3, 12):
        assert changed, "the collector did not run, and nothing was tried"
    assert [one.value for one in found] == [b"v" * 9] * 3000
    assert {one.timestamp for one in found} == {10**15}


@pytest.mark.own_process
@pytest.mark.guard
def test_nothing_leaks_whether_read_or_refused() -> None:
    data = encode_batch(some(50)) * 3
    bad = data[:-1] + bytes([data[-1] ^ 1])
    # A false length, in the last record of the third batch.
    lie = data[:-3] + b"\x7d" + data[-2:]
    append = encode_batch(some(3), timestamp_type="LogAppendTime", max_timestamp=10**13)

    def work() -> None:
        for _ in range(20):
            for one in (data, bad, lie, append):
                for check_crc in (True, False):
                    for found in READ_AHEAD(one, 0, check_crc, MAX_INFLATED):
                        READ_BATCH(found)
                    READ_FETCH(one, 0, check_crc)
            READ_AHEAD(data, 0, True, "x")
            next(iterate()(data, 0, True, MAX_INFLATED))
            list(decode_batches(data + data[:70]))
            assert WRITE(some(50), 0, *NUMBERS) == data[: len(data) // 3]
            WRITE(some(50), 0, None, None, None, None, -1, -1, -1, "x")

    assert len(READ_FETCH(lie, 0, False)[0]) == 100
    work()
    gc.collect()
    before = sys.getallocatedblocks()
    work()
    gc.collect()
    assert sys.getallocatedblocks() - before < 20
    assert max(changed_counts(work, (None, True, Record, RecordBatch, data, REFUSED))) < 20


@pytest.mark.guard
def test_reading_stops_before_the_guard() -> None:
    done = run("tests.records.guard", "15000", "--batches")
    assert done.returncode == 0, done.stderr
    rounds, sound = done.stdout.split(" rounds, ")
    assert rounds == "15000"
    assert int(sound.split()[0]) > 2000


@pytest.mark.long
@pytest.mark.guard
def test_the_guard_would_catch_one_byte_too_many() -> None:
    assert run("tests.records.guard", "3000", "--batches", "--lie").returncode < 0


@pytest.mark.long
@pytest.mark.guard
def test_writing_stays_within_its_buffers() -> None:
    # The debug allocator puts marks around every block, and checks them when it is freed.
    script = "tests/records/test_batch_kernels.py"
    only = "edges_of_the_buffer or may_change or at_its_edges"
    done = run("pytest", "-q", "-p", "no:cacheprovider", script, "-k", only, PYTHONMALLOC="debug")
    assert done.returncode == 0, done.stdout + done.stderr


def test_kernels_do_the_work_where_there_are_any() -> None:
    functions = kernel_functions()
    asked = []

    def counted(name: str) -> Any:
        def ask(*arguments: Any) -> Any:
            asked.append(name)
            return getattr(functions, name)(*arguments)

        return ask

    use_functions(RecordFunctions(*(counted(one.name) for one in fields(RecordFunctions))))
    try:
        data = encode_batch(some(3))
        [batch] = decode_batches(data)
        assert batch.records == decode_records(data) == some(3)
        assert batch.encode() == data
    finally:
        use_functions(functions)
    assert asked[:4] == ["write_batch", "iterate", "read_records", "read_all"]
    assert asked[4:] == ["read_body", "write_batch"]


def test_a_class_that_is_laid_out_otherwise_is_left_to_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Tracked(msgspec.Struct, gc=True):
        offset: int
        headers: list[bytes]

    with pytest.raises(UnsuitableError):
        Classes(Tracked)
    with pytest.raises(UnsuitableError):
        Classes(Record, Tracked)
    with monkeypatch.context() as patch:
        patch.setattr(batch_executors, "Record", Tracked)
        assert kernel_functions() is PYTHON
    with no_kernels():
        data = encode_batch(some(3))
        assert len(data) > HEADER_SIZE
        assert decode_records(data * 2) == some(3) * 2
        assert told(data)[1] == some(3)
        assert type(vars(RecordBatch)["records"].fget) is FunctionType
