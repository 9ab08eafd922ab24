"""Batches with magic 2 are read: whole, cut off, before other bytes, or with invalid lengths."""

from __future__ import annotations

import pickle

import pytest

from flexwire.errors import RecordError
from flexwire.records import Compression, PartialBatch, Record, TimestampType, decode_batches
from flexwire.wire.varint import write_varint
from tests.records.batches import PARTS, Headers, batch, record, with_part

HEADERS: Headers = [(b"a", b"1"), (b"", b""), (b"a", None), (b"\xff\xfe", b"\x00"), (b"a", b"1")]
BODIES = {
    "empty": (b"", 0),
    "nulls": (record(), 1),
    "full": (record(0, 0, b"key", b"value", HEADERS) + record(1, 5, b"", b""), 2),
    "wide": (record(70, 9000, b"k" * 64, b"v" * 70, [(b"h" * 64, b"w" * 64)]), 1),
}


def read(data: bytes, *, check_crc: bool = True) -> list[Record]:
    return [r for b in decode_batches(data, check_crc=check_crc) for r in b.records]


def test_every_fact_of_the_header_is_read() -> None:
    data = batch(*BODIES["full"], attributes=0x70, base_offset=40)
    [read_batch] = decode_batches(data)
    assert (read_batch.position, read_batch.size, read_batch.data) == (0, len(data), data)
    assert (read_batch.base_offset, read_batch.last_offset_delta, read_batch.last_offset) == (
        40,
        1,
        41,
    )
    assert (read_batch.batch_length, read_batch.partition_leader_epoch) == (len(data) - 12, 5)
    assert (read_batch.magic, read_batch.attributes, read_batch.record_count) == (2, 0x70, 2)
    assert (read_batch.base_timestamp, read_batch.max_timestamp) == (1000, 2000)
    assert (read_batch.producer_id, read_batch.producer_epoch, read_batch.base_sequence) == (
        7,
        3,
        11,
    )
    assert read_batch.is_transactional
    assert read_batch.is_control
    assert read_batch.has_delete_horizon
    assert read_batch.compression is Compression.NONE
    assert read_batch.timestamp_type is TimestampType.CREATE_TIME


def test_no_flag_is_read_from_another_bit() -> None:
    [read_batch] = decode_batches(batch(*BODIES["nulls"], attributes=0xFF80 - 0x10000))
    assert not read_batch.is_transactional
    assert not read_batch.is_control
    assert not read_batch.has_delete_horizon
    assert read_batch.timestamp_type is TimestampType.CREATE_TIME


def test_records_keep_null_and_empty_apart_and_headers_in_order() -> None:
    assert read(batch(*BODIES["full"], base_offset=40)) == [
        Record(40, 1000, b"key", b"value", HEADERS),
        Record(41, 1005, b"", b"", []),
    ]
    assert read(batch(*BODIES["nulls"])) == [Record(0, 1000, None, None, [])]


def test_log_append_time_is_the_timestamp_of_every_record() -> None:
    [read_batch] = decode_batches(batch(*BODIES["full"], attributes=0x08))
    assert read_batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [r.timestamp for r in read_batch.records] == [2000, 2000]


def test_a_batch_emptied_by_compaction_has_no_records_and_keeps_its_last_offset() -> None:
    for attributes in range(5):
        [read_batch] = decode_batches(batch(b"", 0, last_offset_delta=9, attributes=attributes))
        assert (read_batch.records, read_batch.last_offset) == ([], 9)


def test_the_input_may_be_any_bytes_and_survives_pickling() -> None:
    data = batch(*BODIES["full"])
    expected = list(decode_batches(data))
    assert list(decode_batches(memoryview(b"x" + data)[1:])) == expected
    assert list(decode_batches(bytearray(data))) == expected
    assert pickle.loads(pickle.dumps(expected[0])).records == expected[0].records  # noqa: S301 - ours


@pytest.mark.parametrize("name", BODIES)
def test_a_prefix_gives_the_batches_before_it_and_says_what_is_left(name: str) -> None:
    first, second = batch(*BODIES["full"]), batch(*BODIES[name])
    for size in range(len(second)):
        batches = decode_batches(first + second[:size])
        assert [b.data for b in batches] == [first]
        declared = len(second) if size >= 12 else None
        expected = PartialBatch(len(first), size, declared) if size else None
        assert batches.partial == expected
        assert next(batches, None) is None


@pytest.mark.parametrize("name", BODIES)
def test_trailing_bytes_are_the_next_batch_or_an_error(name: str) -> None:
    data = batch(*BODIES[name])
    assert [b.position for b in decode_batches(data + data)] == [0, len(data)]
    batches = decode_batches(data + b"\xff" * 40)
    assert next(batches).data == data
    with pytest.raises(RecordError) as caught:
        next(batches)
    assert caught.value.offset == len(data)
    assert next(batches, None) is None


@pytest.mark.parametrize("name", ["nulls", "full", "wide"])
def test_a_body_cut_anywhere_is_an_error(name: str) -> None:
    body, count = BODIES[name]
    for size in range(len(body)):
        with pytest.raises(RecordError) as caught:
            read(batch(body[:size], count))
        assert 61 <= caught.value.offset <= 61 + size


def test_the_offset_of_an_error_counts_from_the_start_of_the_data() -> None:
    first, second = batch(*BODIES["full"]), batch(BODIES["full"][0], 1)
    end = len(first) + 61 + len(record(0, 0, b"key", b"value", HEADERS))
    with pytest.raises(RecordError) as caught:
        read(first + second)
    assert caught.value.offset == end


@pytest.mark.parametrize("name", BODIES)
def test_bytes_after_the_last_record_are_an_error(name: str) -> None:
    body, count = BODIES[name]
    with pytest.raises(RecordError, match="1 bytes remain after"):
        read(batch(body + b"\x00", count))


@pytest.mark.parametrize("count", [-(2**31), -1, 0, 1, 3, 2**31 - 1])
def test_a_record_count_that_lies_is_an_error(count: int) -> None:
    with pytest.raises(RecordError):
        read(batch(BODIES["full"][0], count, last_offset_delta=1))
    if count:
        with pytest.raises(RecordError, match=f"{count} records declared but 0 bytes remain"):
            read(batch(b"", count))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 1048575, 1048576])
def test_lengths_at_every_edge_of_their_varint(size: int) -> None:
    content = b"x" * size
    expected = Record(0, 1000, content, content, [(content, content)])
    assert read(batch(record(0, 0, content, content, [(content, content)]), 1)) == [expected]


EDGES = sorted({s * (1 << b) - d for b in range(6, 63, 7) for s in (1, -1) for d in (0, 1)})


@pytest.mark.parametrize("delta", [0, *EDGES, 2**63 - 1001, -(2**63)])
def test_deltas_at_every_edge_of_their_varint(delta: int) -> None:
    [read_record] = read(batch(record(timestamp_delta=delta), 1))
    assert read_record.timestamp == 1000 + delta
    data = batch(record(offset_delta=delta), 1, base_offset=10**15)
    if -(2**31) <= delta < 2**31:
        assert read(data)[0].offset == 10**15 + delta
    else:
        with pytest.raises(RecordError, match="varint"):
            read(data)


@pytest.mark.parametrize("count", [63, 64, 8191, 8192])
def test_header_counts_at_every_edge_of_their_varint(count: int) -> None:
    assert read(batch(record(headers=[(b"", None)] * count), 1))[0].headers == [(b"", None)] * count


@pytest.mark.parametrize(
    ("base_offset", "base_timestamp"), [(2**63 - 1, 0), (0, 2**63 - 1), (-(2**63), 0)]
)
def test_numbers_that_overflow_are_an_error(base_offset: int, base_timestamp: int) -> None:
    step = -1 if base_offset < 0 else 1
    data = batch(record(step, 1), 1, base_offset=base_offset, base_timestamp=base_timestamp)
    with pytest.raises(RecordError, match="does not fit in 64 bits"):
        read(data)


@pytest.mark.parametrize("delta", [-1, 1])
def test_a_last_offset_that_is_none_is_an_error(delta: int) -> None:
    data = batch(record(), 1, base_offset=2**63 - 1, last_offset_delta=delta)
    with pytest.raises(RecordError, match="last offset delta"):
        next(decode_batches(data))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(b"\x80\x00", id="overlong"),
        pytest.param(b"\x80\x80\x00", id="overlong by two"),
        pytest.param(b"\x80" * 10 + b"\x01", id="too long"),
        pytest.param(b"\xff" * 9 + b"\x03", id="65 bits"),
    ],
)
def test_a_varint_that_is_none_is_an_error(part: str, wrong: bytes) -> None:
    with pytest.raises(RecordError):
        read(with_part(part, wrong))


def test_an_overlong_record_length_is_an_error() -> None:
    one = record()
    for overlong in (bytes([one[0] | 0x80, 0]), bytes([one[0] | 0x80, 0x80, 0])):
        with pytest.raises(RecordError, match="overlong"):
            read(batch(overlong + one[1:], 1))


@pytest.mark.parametrize("part", PARTS[2:])
@pytest.mark.parametrize("length", [-(2**31), -2, 20, 2**31 - 1])
def test_a_length_that_lies_is_an_error(part: str, length: int) -> None:
    with pytest.raises(RecordError, match=f"{length} declared"):
        read(with_part(part, write_varint(length)))


def test_a_record_header_takes_two_bytes_at_least() -> None:
    with pytest.raises(RecordError, match="record header count 3 declared but 4 bytes remain"):
        read(with_part("header count", write_varint(3)))


def test_a_record_header_key_is_never_null() -> None:
    with pytest.raises(RecordError, match="record header key length -1"):
        read(with_part("header key", write_varint(-1)))


@pytest.mark.parametrize("change", [-1, 1])
def test_a_record_is_as_long_as_it_says(change: int) -> None:
    one = record(0, 0, b"k", b"v")
    wrong = write_varint(len(one) - 1 + change) + one[1:]
    with pytest.raises(RecordError):
        read(batch(wrong + record(1), 2))


def test_a_wrong_crc_is_an_error_unless_told_otherwise_and_the_next_batch_follows() -> None:
    good = batch(*BODIES["full"])
    for position in (17, len(good) - 1):
        bad = bytearray(good)
        bad[position] ^= 1
        batches = decode_batches(bytes(bad) + good)
        with pytest.raises(RecordError, match="crc"):
            next(batches)
        assert [b.position for b in batches] == [len(good)]
        assert len(list(decode_batches(bytes(bad) + good, check_crc=False))) == 2


@pytest.mark.parametrize("magic", [3, 9, -1])
def test_an_unknown_magic_is_an_error(magic: int) -> None:
    data = batch(*BODIES["nulls"], magic=magic)
    for size in (17, len(data)):
        with pytest.raises(RecordError, match=f"unknown magic {magic & 0xFF}"):
            next(decode_batches(data[:size], check_crc=False))


@pytest.mark.parametrize("compression", [5, 6, 7])
def test_an_unknown_compression_type_is_an_error(compression: int) -> None:
    with pytest.raises(RecordError, match=f"unknown compression type {compression}"):
        next(decode_batches(batch(*BODIES["nulls"], attributes=compression)))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_a_batch_length_too_small_is_an_error_even_where_the_data_ends(length: int) -> None:
    data = bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(4) + b"\x02" + bytes(60)
    for size in (17, 70):
        with pytest.raises(RecordError, match="batch length"):
            next(decode_batches(data[:size]))


def test_a_huge_batch_length_is_a_partial_batch() -> None:
    batches = decode_batches(bytes(8) + b"\x7f\xff\xff\xff" + bytes(4) + b"\x02")
    assert list(batches) == []
    assert batches.partial == PartialBatch(0, 17, 2**31 + 11)
