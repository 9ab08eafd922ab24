"""Message sets with magic 0 and 1: messages, and wrappers with their inner messages."""

from __future__ import annotations

import gzip

import cramjam
import pytest

from flexwire.errors import RecordError
from flexwire.records import PartialBatch, Record, TimestampType, decode_batches
from tests.records.batches import GZIP, SNAPPY, ZSTD, message


def read(data: bytes, *, check_crc: bool = True) -> list[Record]:
    return [r for b in decode_batches(data, check_crc=check_crc) for r in b.records]


def wrapper(*inner: bytes, magic: int = 1, offset: int = 0, attributes: int = 0) -> bytes:
    value = gzip.compress(b"".join(inner), mtime=0)
    return message(value, magic=magic, offset=offset, attributes=GZIP | attributes, timestamp=3000)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_is_a_batch_of_one(magic: int) -> None:
    data = message(b"v", key=b"", magic=magic, offset=9) + message(None, magic=magic, offset=12)
    first, second = decode_batches(data)
    timestamp = 1000 if magic else -1
    assert first.records == [Record(9, timestamp, b"", b"v", [])]
    assert second.records == [Record(12, timestamp, None, None, [])]
    assert (first.base_offset, first.last_offset, first.record_count) == (9, 9, 1)
    assert (second.position, second.size) == (first.size, len(data) - first.size)
    assert (first.max_timestamp, first.producer_id) == (timestamp, -1)
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE
    assert first.timestamp_type is kind


def test_relative_offsets_count_back_from_the_wrapper() -> None:
    inner = [message(b"a", offset=0), message(b"b", offset=1), message(b"c", offset=4)]
    assert [r.offset for r in read(wrapper(*inner, offset=104))] == [100, 101, 104]


def test_a_wrapper_at_offset_0_leaves_the_inner_offsets_alone() -> None:
    inner = [message(b"a", offset=0), message(b"b", offset=1)]
    assert [r.offset for r in read(wrapper(*inner))] == [0, 1]


def test_magic_0_keeps_absolute_offsets_inside() -> None:
    inner = [message(b"a", offset=70, magic=0), message(b"b", offset=75, magic=0)]
    assert [r.offset for r in read(wrapper(*inner, magic=0, offset=75))] == [70, 75]


def test_log_append_time_of_a_wrapper_is_that_of_its_records() -> None:
    inner = [message(b"a", timestamp=5), message(b"b", timestamp=6, offset=1)]
    assert [r.timestamp for r in read(wrapper(*inner, offset=1))] == [5, 6]
    assert [r.timestamp for r in read(wrapper(*inner, offset=1, attributes=8))] == [3000, 3000]


def test_what_a_wrapper_does_not_tell_is_minus_1() -> None:
    [batch] = decode_batches(wrapper(message(b"a"), message(b"b", offset=1), offset=8))
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (-1, 8, -1)
    assert (batch.base_timestamp, batch.max_timestamp, batch.last_offset_delta) == (-1, 3000, -1)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_prefix_is_a_partial_batch(magic: int) -> None:
    data = message(b"value", key=b"key", magic=magic)
    for size in range(1, len(data)):
        batches = decode_batches(data[:size])
        assert list(batches) == []
        assert batches.partial == PartialBatch(0, size, len(data) if size >= 12 else None)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_cut_anywhere_or_followed_by_a_byte_is_an_error(magic: int) -> None:
    data = message(b"value", key=b"key", magic=magic)
    wrong = [data[:size] for size in range(17, len(data))] + [data + b"\x00"]
    for content in wrong:
        resized = data[:8] + (len(content) - 12).to_bytes(4, "big") + content[12:]
        with pytest.raises(RecordError):
            read(resized, check_crc=False)


@pytest.mark.parametrize("magic", [0, 1])
def test_inner_messages_cut_anywhere_are_an_error(magic: int) -> None:
    inner = message(b"a", magic=magic) + message(b"b", magic=magic, offset=1)
    for size in range(len(inner)):
        if size != len(inner) // 2:
            with pytest.raises(RecordError):
                read(wrapper(inner[:size], magic=magic))


@pytest.mark.parametrize("length", [-(2**31), -2, 40, 2**31 - 1])
def test_a_length_that_lies_is_an_error(length: int) -> None:
    data = message(b"value", key=b"key")
    for position in (26, 33):
        wrong = data[:position] + length.to_bytes(4, "big", signed=True) + data[position + 4 :]
        with pytest.raises(RecordError, match=f"length {length} declared"):
            read(wrong, check_crc=False)


def test_wrappers_that_are_none_are_errors() -> None:
    plain = message(b"a")
    nested = message(gzip.compress(plain), attributes=GZIP)
    cases = {
        "null value": message(None, attributes=GZIP),
        "has no inner": message(gzip.compress(b""), attributes=GZIP),
        "is itself compressed": wrapper(nested),
        "magic value 0 is inside a wrapper message with magic value 1": wrapper(
            message(b"a", magic=0)
        ),
        "a message set cannot contain magic 2": wrapper(plain[:16] + b"\x02" + plain[17:]),
        "zstd": message(bytes(cramjam.zstd.compress(plain)), attributes=ZSTD),
        "snappy": message(b"\xff", attributes=SNAPPY),
    }
    for reason, data in cases.items():
        with pytest.raises(RecordError, match=reason):
            read(data)


def test_offsets_that_overflow_are_an_error() -> None:
    inner = [message(b"a", offset=2**63 - 1), message(b"b", offset=-(2**63))]
    with pytest.raises(RecordError, match="64 bits"):
        read(wrapper(*inner, offset=2**63 - 1))


def test_crcs_are_checked_inside_and_outside_unless_told_otherwise() -> None:
    plain = message(b"aaaa")
    bad = plain[:-1] + b"b"
    for data in (bad, wrapper(bad)):
        with pytest.raises(RecordError, match="crc"):
            read(data)
        assert read(data, check_crc=False)[0].value == b"aaab"
