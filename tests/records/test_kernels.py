"""The kernels produce the same result as the Python code, or refuse."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import EncodeError, RecordError
from flexwire.records import Record, decode_batches, encode_batch, executors
from flexwire.records.batch_executors import PYTHON
from flexwire.records.body import read_records, write_records
from flexwire.wire.batch_layout import HEADER_SIZE
from flexwire.wire.varint import write_unsigned_varint, write_varint
from tests.each import each
from tests.modules import run
from tests.records import batches
from tests.records.batches import PARTS, with_part
from tests.records.guard import RECORDS
from tests.records.kernels import REFUSED, functions
from tests.records.strategies import record_batches
from tests.records.test_encode import WRONG_RECORDS
from tests.records.test_fuzz import SMALL
from tests.searching import times
from tests.traced import traced

if TYPE_CHECKING:
    from tests.records.batches import Headers

READ, WRITE = functions()
_laws = settings(max_examples=times(100))


def python_read(*arguments: Any) -> Any:
    try:
        return read_records(*arguments)
    except RecordError:
        return REFUSED


def python_write(*arguments: Any) -> Any:
    try:
        return write_records(*arguments)
    except EncodeError:
        return REFUSED


@pytest.mark.slow
@_laws
@given(record_batches())
def test_what_is_written_is_the_same_and_reads_back(
    batch: tuple[list[Record], dict[str, Any]],
) -> None:
    records, fields = batch
    bases = fields["base_offset"], fields["base_timestamp"]
    body, newest = write_records(records, *bases)
    # For an empty input, no kernel is called.
    assert WRITE(records, *bases) == ((body, newest) if records else REFUSED)
    assert READ(body, 0, len(records), *bases, 1000, None) == records
    for record in records:
        record.timestamp = fields["max_timestamp"]
    assert READ(body, 0, len(records), *bases, 1000, fields["max_timestamp"]) == records


@pytest.mark.slow
@_laws
@given(st.data())
def test_damaged_bytes_are_read_as_python_reads_them(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(RECORDS), max_size=3))
    raw = bytearray(b"".join(chosen))
    for _ in range(data.draw(st.integers(0, 3))):
        if raw:
            byte = st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(byte)
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    arguments = (
        damaged,
        data.draw(st.integers(0, len(damaged))),
        data.draw(st.integers(-1, 4) | st.just(len(chosen))),
        data.draw(st.sampled_from([0, -(2**63), 2**63 - 1])),
        data.draw(st.sampled_from([0, -(2**63), 2**63 - 1])),
        data.draw(st.sampled_from([1000, 5, 0])),
        data.draw(st.sampled_from([None, 7])),
    )
    assert READ(*arguments) == python_read(*arguments)


def test_the_documents_bodies_cut_anywhere() -> None:
    read = 0
    for document in SMALL:
        [first, *_] = decode_batches(document)
        if first.magic < 2 or first.attributes & 7:
            continue
        for size in range(61, len(first.data) + 1):
            arguments = (first.data[:size], 61, first.record_count, 0, 0, 1000, None)
            found = READ(*arguments)
            assert found == python_read(*arguments)
            read += found is not REFUSED
    assert read > 20


@each("part", PARTS)
@pytest.mark.parametrize("number", [0, 1, 3, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_a_varint_that_is_none_is_refused(part: str, number: int, zeros: int) -> None:
    raw = bytearray(write_unsigned_varint(number))
    if zeros:
        raw[-1] |= 0x80
        raw += b"\x80" * (zeros - 1) + b"\x00"
    body = with_part(part, bytes(raw))[HEADER_SIZE:]
    arguments = (body, 0, 1, 0, 0, 1000, None)
    found = READ(*arguments)
    assert found == python_read(*arguments)
    if zeros or number.bit_length() > (64 if part == "timestamp delta" else 32):
        assert found is REFUSED


@pytest.mark.parametrize("change", [-1, 1])
def test_a_record_that_is_not_as_long_as_it_says_is_refused(change: int) -> None:
    one = batches.record(0, 0, b"k", b"v")
    wrong = write_varint(len(one) - 1 + change) + one[1:] + batches.record(1)
    assert READ(wrong, 0, 2, 0, 0, 1000, None) is REFUSED
    assert python_read(wrong, 0, 2, 0, 0, 1000, None) is REFUSED


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 1048575, 1048576])
def test_every_length_at_the_edges_of_its_varint(size: int) -> None:
    content = b"x" * size
    records = [
        Record(0, 0, content, content, [(content, content), (content, content)]),
        Record(1, 1, b"", b"", []),
    ]
    body, newest = WRITE(records, 0, 0)
    assert (body, newest) == write_records(records, 0, 0)
    assert READ(body, 0, 2, 0, 0, 10, None) == records
    counted = [Record(0, 0, None, None, [(b"", None) for _ in range(size % 10_000)])]
    body = WRITE(counted, 0, 0)[0]
    assert body == write_records(counted, 0, 0)[0]
    assert READ(body, 0, 1, 0, 0, 10_000, None) == counted


EDGES = sorted({s * (1 << b) - d for b in range(6, 63, 7) for s in (1, -1) for d in (0, 1)})


@pytest.mark.parametrize("delta", [0, *EDGES, 2**63 - 1, -(2**63), 2**63])
def test_every_delta_at_the_edges_of_its_varint(delta: int) -> None:
    for record in (Record(0, delta, None, None, []), Record(delta, 0, None, None, [])):
        written = WRITE([record], 0, 0)
        assert written == python_write([record], 0, 0)
        if written is not REFUSED:
            assert READ(written[0], 0, 1, 0, 0, 1, None) == [record]
            for bases in ((-(2**63), 0), (2**63 - 1, 0), (0, -(2**63)), (0, 2**63 - 1)):
                arguments = (written[0], 0, 1, *bases, 1, None)
                assert READ(*arguments) == python_read(*arguments)
        for base in (-(2**63), 2**63 - 1):
            assert WRITE([record], base, base) == python_write([record], base, base)


def test_headers_keep_their_own_keys_whatever_the_record_before_had() -> None:
    names = [b"a", b"b", b"", b"ab", b"a" * 70, b"b" * 70]
    source: list[Headers] = [
        [(name, None) for name in names],
        [(name, None) for name in reversed(names)],
        [(b"a", None)],
        [],
        [(name, b"x") for name in names * 2],
    ]
    records = [Record(n, 0, None, None, headers) for n, headers in enumerate(source * 2)]
    body = WRITE(records, 0, 0)[0]
    assert READ(body, 0, len(records), 0, 0, 1000, None) == records


@pytest.mark.parametrize(("path", "wrong", "reason"), WRONG_RECORDS, ids=range(len(WRONG_RECORDS)))
def test_what_cannot_be_written_is_refused(path: str, wrong: dict[str, Any], reason: str) -> None:
    del path, reason
    good = Record(5, 1000, b"k", b"v", [(b"a", b"1")])
    assert WRITE([good, msgspec.structs.replace(good, **wrong), good], 5, 1000) is REFUSED


@pytest.mark.parametrize(
    "near",
    [
        {"key": bytearray(b"k")},
        {"value": memoryview(b"v")},
        {"headers": ((b"a", b"1"),)},
        {"headers": [[b"a", b"1"]]},
        {"offset": type("Int", (int,), {})(5)},
        {"key": type("Bytes", (bytes,), {})(b"k")},
    ],
    ids=["bytearray", "memoryview", "tuple", "lists", "an int's subclass", "a bytes' subclass"],
)
def test_what_is_out_of_the_ordinary_is_left_to_python(near: dict[str, Any]) -> None:
    record = msgspec.structs.replace(Record(5, 1000, b"k", b"v", [(b"a", b"1")]), **near)
    assert WRITE([record], 5, 1000) is REFUSED
    assert write_records([record], 5, 1000)


def test_other_arguments_are_refused() -> None:
    body = write_records([Record(0, 0, None, None, [])], 0, 0)[0]
    right = (body, 0, 1, 0, 0, 10, None)
    assert READ(*right) == [Record(0, 0, None, None, [])]
    for index in range(7):
        for wrong in ("x", 1.5, True, 2**64, bytearray(body), -(2**63), 2**63 - 1):
            arguments = (*right[:index], wrong, *right[index + 1 :])
            found = READ(*arguments)
            try:
                expected = python_read(*arguments)
            except (TypeError, ValueError):
                expected = REFUSED
            assert found in (REFUSED, expected)
    for arguments in ((), right[:6], (*right, 1)):
        assert READ(*arguments) is REFUSED
        assert WRITE(*arguments) is REFUSED
    for records in (None, (), [], [None], [Record], [object()]):
        assert WRITE(records, 0, 0) is REFUSED


@pytest.mark.long
@pytest.mark.guard
def test_nothing_leaks_whether_read_or_refused() -> None:
    records = [Record(n, n, b"k" * n, None, [(b"a", b"x" * n), (b"b", None)]) for n in range(99)]
    body, _ = WRITE(records, 0, 0)
    wrong = [msgspec.structs.replace(records[0], **wrong) for _, wrong, _ in WRONG_RECORDS]
    # A false length, at every position within a record.
    begin = body.index(b"k" * 50)
    lies = [body[:n] + b"\x7d" + body[n + 1 :] for n in range(begin - 10, begin + 140)]
    wrong_bodies = [lie for lie in lies if READ(lie, 0, 99, 0, 0, 1000, None) is REFUSED]
    assert len(wrong_bodies) > 5

    def work() -> None:
        for _ in range(5):
            assert READ(body, 0, 99, 0, 0, 1000, None) == records
            # Numbers that Python does not cache.
            assert READ(body, 0, 99, 10**9, 10**12, 1000, 10**13)[5].timestamp == 10**13
            assert WRITE(records, 0, 0)[0] == body
            assert READ(body, 0, 99, 0, 0, 99 + 197, None) is REFUSED
            for one in wrong:
                assert WRITE([records[0], one], 5, 1000) is REFUSED
        for cut in range(0, len(body), 97):
            assert READ(body[:cut], 0, 99, 0, 0, 1000, None) is REFUSED
        for damaged in wrong_bodies:
            assert READ(damaged, 0, 99, 0, 0, 1000, None) is REFUSED

    work()
    gc.collect()
    shared = [None, REFUSED, Record, records, records[5], body, b"", records[9].headers[0][0]]
    changes = []
    for _ in range(3):
        counts = [sys.getrefcount(one) for one in shared]
        work()
        gc.collect()
        after = [sys.getrefcount(one) for one in shared]
        changes.append([abs(new - old) for new, old in zip(after, counts, strict=True)])
    # A leak occurs each time; other parts of the process may make or free some objects once.
    assert max(map(min, zip(*changes, strict=True))) < 20
    with traced() as memory:
        work()
        before = memory.held
        for _ in range(3):
            work()
        grown = memory.held - before
    assert grown < 2000


def test_threads_share_the_functions() -> None:
    records = [Record(n, n, b"k", b"v", [(b"a", b"x")]) for n in range(50)]
    body, _ = WRITE(records, 0, 0)
    faults: list[object] = []

    def work() -> None:
        for _ in range(200):
            faults.extend([1] * (READ(body, 0, 50, 0, 0, 1000, None) != records))
            faults.extend([1] * (WRITE(records, 0, 0)[0] != body))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@pytest.mark.guard
def test_reading_stops_before_the_guard() -> None:
    done = run("tests.records.guard", "15000")
    assert done.returncode == 0, done.stderr
    rounds, sound = done.stdout.split(" rounds, ")
    assert rounds == "15000"
    assert int(sound.split()[0]) > 2000


@pytest.mark.long
@pytest.mark.guard
def test_the_guard_would_catch_one_byte_too_many() -> None:
    assert run("tests.records.guard", "3000", "--lie").returncode == -signal.SIGSEGV


@pytest.mark.long
@pytest.mark.guard
def test_writing_stays_within_its_buffers() -> None:
    # The debug allocator puts marks around every block, and checks them when it is freed.
    script = "tests/records/test_kernels.py::test_every_length_at_the_edges_of_its_varint"
    done = run("pytest", "-q", "-p", "no:cacheprovider", script, PYTHONMALLOC="debug")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=["kernels", "no kernels"])
def _process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in a process with kernels, and in one without."""
    if request.param == "no kernels":
        monkeypatch.setattr(executors.ACTIVE, "functions", PYTHON)


@pytest.mark.usefixtures("_process")
def test_errors_are_worded_by_python_on_kernels_too() -> None:
    records = [Record(n, 1000, b"k", b"v", [(b"a", b"1")]) for n in range(3)]
    data = encode_batch(records)
    [batch] = decode_batches(data[:-2] + b"\x05" + data[-1:], check_crc=False)
    with pytest.raises(RecordError, match="record header value length -3 declared") as caught:
        _ = batch.records
    assert caught.value.offset == len(data) - 1
    with pytest.raises(EncodeError, match=r"at records\[1\].key: expected bytes, got 'k'"):
        encode_batch([records[0], msgspec.structs.replace(records[1], key="k")])
