"""Records are read back unchanged, and an error names a record that cannot be written."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from flexwire.errors import EncodeError
from flexwire.records import (
    Compression,
    Record,
    RecordBatch,
    TimestampType,
    decode_batches,
    encode_batch,
    executors,
)
from flexwire.records import record as values
from flexwire.records.batch_executors import PYTHON
from flexwire.wire.batch_layout import ENTRY, LEAST_SIZES
from tests.records.strategies import message_sets, record_batches
from tests.searching import times

_laws = settings(max_examples=times(80))
RECORDS = [
    Record(5, 1000, b"k", b"v", [(b"a", b"1"), (b"a", None), (b"", b"\xff"), (b"a", b"1")]),
    Record(9, 3000, None, None, []),
    Record(7, 2000, b"", b"", []),
]


def one(data: bytes) -> RecordBatch:
    [found] = decode_batches(data)
    return found


@pytest.mark.slow
@_laws
@given(record_batches())
def test_a_record_batch_reads_back(batch: tuple[list[Record], dict[str, Any]]) -> None:
    records, fields = batch
    data = encode_batch(records, **fields)
    found = one(data)
    assert found.records == records
    assert {name: getattr(found, name) for name in fields} == fields
    assert found.record_count == len(records)
    assert found.timestamp_type is TimestampType.CREATE_TIME
    assert found.encode() == data


@_laws
@given(message_sets())
def test_a_message_set_reads_back(batch: tuple[list[Record], dict[str, Any]]) -> None:
    records, fields = batch
    data = encode_batch(records, **fields)
    found = list(decode_batches(data))
    read = [record for batch in found for record in batch.records]
    is_wrapper = fields["compression"] is not Compression.NONE
    if is_wrapper and fields.get("timestamp_type") is TimestampType.LOG_APPEND_TIME:
        for record in records:
            record.timestamp = fields["max_timestamp"]
    assert read == records
    assert len(found) == (1 if is_wrapper else len(records))
    for batch_ in found:
        assert batch_.magic == fields["magic"]
        assert batch_.compression is fields["compression"]
        if batch_.magic:
            assert batch_.timestamp_type is fields["timestamp_type"]
    assert b"".join(batch_.encode() for batch_ in found) == data


def test_what_is_not_told_is_taken_from_the_records() -> None:
    found = one(encode_batch(RECORDS))
    assert (found.base_offset, found.last_offset) == (5, 7)
    assert (found.base_timestamp, found.max_timestamp) == (1000, 3000)
    assert found.partition_leader_epoch == found.producer_id == -1
    assert found.producer_epoch == found.base_sequence == -1
    assert found.attributes == 0
    assert found.records == RECORDS


def test_records_may_be_any_iterable_and_their_bytes_any_buffer() -> None:
    other = Record(5, 1000, memoryview(b"k"), bytearray(b"v"), ((b"a", None),))  # type: ignore[arg-type]  # on purpose
    expected = encode_batch([Record(5, 1000, b"k", b"v", [(b"a", None)])])
    assert encode_batch(iter([other])) == expected
    assert encode_batch(record for record in [other]) == expected


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_without_records_is_a_header(compression: Compression) -> None:
    data = encode_batch([], compression=compression, base_offset=40, last_offset=50)
    found = one(data)
    assert (found.size, found.records, found.last_offset) == (61, [], 50)
    assert one(encode_batch([])).last_offset == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_without_messages_is_empty_and_a_wrapper_needs_one(magic: int) -> None:
    assert encode_batch([], magic=magic) == b""
    with pytest.raises(EncodeError, match="at least one record"):
        encode_batch([], magic=magic, compression="gzip")


def test_under_log_append_time_readers_see_that_and_the_producers_timestamps_are_kept() -> None:
    data = encode_batch(
        RECORDS, timestamp_type="LogAppendTime", base_timestamp=900, max_timestamp=9000
    )
    found = one(data)
    assert [record.timestamp for record in found.records] == [9000] * 3
    assert found.encode() == data
    assert one(found.encode(found.records)).records == found.records
    wrapper = encode_batch(
        [msgspec.structs.replace(record, headers=[]) for record in RECORDS[:2]],
        magic=1,
        compression="gzip",
        timestamp_type="LogAppendTime",
        max_timestamp=9000,
    )
    assert [record.timestamp for record in one(wrapper).records] == [9000] * 2
    assert one(wrapper).encode() == wrapper


def test_other_records_keep_the_batchs_fields() -> None:
    first = one(encode_batch(RECORDS, producer_id=7, last_offset=20, is_transactional=True))
    found = one(first.encode(first.records[1:]))
    assert found.records == RECORDS[1:]
    assert (found.base_offset, found.last_offset, found.record_count) == (5, 20, 2)
    assert (found.producer_id, found.is_transactional, found.max_timestamp) == (7, True, 3000)


def test_attributes_that_have_no_meaning_yet_are_kept() -> None:
    found = one(encode_batch(RECORDS))
    found.attributes |= 0x4180
    assert one(found.encode()).attributes == 0x4180


def test_offsets_inside_a_wrapper_are_relative_in_magic_1_only() -> None:
    records = [Record(5, -1, None, b"a", []), Record(9, -1, None, b"b", [])]
    for magic, inside in ((0, [5, 9]), (1, [0, 4])):
        wrapper = one(encode_batch(records, magic=magic, compression="gzip"))
        inner = decode_batches(gzip.decompress(wrapper.data[LEAST_SIZES[magic] :]))
        assert [batch.last_offset for batch in inner] == inside
        assert [record.offset for record in wrapper.records] == [5, 9]
        assert wrapper.last_offset == 9


WRONG_RECORDS: list[tuple[str, dict[str, Any], str]] = [
    ("offset", {"offset": 2**63}, "does not fit in 64 bits"),
    (
        "offset",
        {"offset": 2**31 + 5},
        "differs by more than 32 bits from the batch's base offset 5",
    ),
    (
        "offset",
        {"offset": 4 - 2**31},
        "differs by more than 32 bits from the batch's base offset 5",
    ),
    ("offset", {"offset": None}, "expected an integer, got None"),
    ("timestamp", {"timestamp": -(2**63) - 1}, "does not fit in 64 bits"),
    (
        "timestamp",
        {"timestamp": -(2**63)},
        "differs by more than 64 bits from the batch's base timestamp",
    ),
    ("timestamp", {"timestamp": 1.5}, "expected an integer, got 1.5"),
    ("timestamp", {"timestamp": True}, "expected an integer, got True"),
    ("key", {"key": "k"}, "expected bytes, got 'k'"),
    ("value", {"value": 5}, "expected bytes, got 5"),
    ("headers", {"headers": None}, "expected a list, got None"),
    ("headers", {"headers": {b"a": b"b"}}, "expected a list"),
    ("headers[1]", {"headers": [(b"", b""), (b"a",)]}, "expected a key and a value"),
    ("headers[0]", {"headers": [(b"a", b"b", b"c")]}, "expected a key and a value"),
    ("headers[0]", {"headers": [b"ab"]}, "expected a key and a value"),
    ("headers[0].key", {"headers": [("a", b"b")]}, "expected bytes, got 'a'"),
    ("headers[0].key", {"headers": [(None, b"b")]}, "expected bytes, got None"),
    ("headers[0].value", {"headers": [(b"a", "b")]}, "expected bytes, got 'b'"),
]


@pytest.mark.parametrize(("path", "wrong", "reason"), WRONG_RECORDS, ids=range(len(WRONG_RECORDS)))
def test_a_record_that_cannot_be_written_is_named(
    path: str, wrong: dict[str, Any], reason: str
) -> None:
    records = [RECORDS[0], msgspec.structs.replace(RECORDS[1], **wrong), RECORDS[2]]
    with pytest.raises(EncodeError) as caught:
        encode_batch(records)
    assert caught.value.path == f"records[1].{path}"
    assert reason in caught.value.reason
    assert str(caught.value).startswith(f"batch of magic 2 at records[1].{path}: ")


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("magic", [1, 2])
def test_what_is_no_record_is_named(index: int, magic: int) -> None:
    for compression in ("none", "gzip"):
        records: list[Any] = [Record(n, 1, b"", b"", []) for n in range(3)]
        records[index] = ("key", "value")
        with pytest.raises(EncodeError, match="expected a Record, got") as caught:
            encode_batch(records, magic=magic, compression=compression)
        assert caught.value.path == f"records[{index}]"


WRONG_FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("magic", {"magic": 3}, "unknown magic 3"),
    ("magic", {"magic": None}, "unknown magic None"),
    ("compression", {"compression": "brotli"}, "magic 2 does not support 'brotli'"),
    ("compression", {"compression": None}, "magic 2 does not support None"),
    ("compression", {"compression": "zstd", "magic": 1}, "magic 1 does not support"),
    ("timestamp_type", {"timestamp_type": "NoTimestampType"}, "magic 2 does not support"),
    (
        "timestamp_type",
        {"timestamp_type": "NoTimestampType", "magic": 1},
        "magic 1 does not support 'NoTimestampType'",
    ),
    (
        "timestamp_type",
        {"timestamp_type": "LogAppendTime", "magic": 0},
        "magic 0 does not support 'LogAppendTime'",
    ),
    ("level", {"compression": "gzip", "level": 0}, "level 0 is outside the range for gzip, 1 to 9"),
    ("level", {"compression": "lz4", "level": 18}, "outside the range for lz4, 1 to 17"),
    ("level", {"compression": "zstd", "level": 23}, "outside the range for zstd, -131072 to 22"),
    ("level", {"compression": "snappy", "level": 1}, "snappy does not support levels"),
    ("level", {"level": 1}, "none does not support levels"),
    ("base_offset", {"base_offset": -(2**63) - 1}, "does not fit in 64 bits"),
    ("base_offset", {"base_offset": "5"}, "expected an integer, got '5'"),
    ("last_offset", {"last_offset": 4}, "expected the base offset 5 plus 0 to 2147483647, got 4"),
    (
        "last_offset",
        {"last_offset": 2**31 + 5},
        "expected the base offset 5 plus 0 to 2147483647, got 2147483653",
    ),
    ("max_timestamp", {"max_timestamp": 2**63}, "does not fit in 64 bits"),
    ("base_timestamp", {"base_timestamp": 2**63}, "does not fit in 64 bits"),
    ("partition_leader_epoch", {"partition_leader_epoch": 2**31}, "does not fit in 32 bits"),
    ("producer_id", {"producer_id": 2**63}, "does not fit in 64 bits"),
    ("producer_epoch", {"producer_epoch": 2**15}, "does not fit in 16 bits"),
    ("base_sequence", {"base_sequence": -(2**31) - 1}, "does not fit in 32 bits"),
    ("last_offset", {"last_offset": 5, "magic": 1}, "an uncompressed message set"),
    ("producer_id", {"producer_id": 7, "magic": 1}, "an uncompressed message set"),
    (
        "producer_id",
        {"producer_id": 7, "magic": 1, "compression": "gzip"},
        "a wrapper message with magic 1",
    ),
    (
        "max_timestamp",
        {"max_timestamp": 7, "magic": 0, "compression": "gzip"},
        "must not have this field",
    ),
    ("last_offset", {"last_offset": 6, "magic": 1, "compression": "gzip"}, "must equal the offset"),
    ("is_control", {"is_control": True, "magic": 1}, "magic 1 does not support this flag"),
]


@pytest.mark.parametrize(("path", "wrong", "reason"), WRONG_FIELDS, ids=range(len(WRONG_FIELDS)))
def test_a_field_that_cannot_be_written_is_named(
    path: str, wrong: dict[str, Any], reason: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_batch([Record(5, -1, b"", b"", [])], **wrong)
    assert caught.value.path == path
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("path", "wrong", "magic"),
    [
        ("timestamp", {"timestamp": 0}, 0),
        ("headers", {"headers": [(b"a", None)]}, 0),
        ("headers", {"headers": [(b"a", None)]}, 1),
        ("key", {"key": "k"}, 1),
        ("value", {"value": "v"}, 0),
        ("offset", {"offset": 2**63}, 0),
    ],
)
@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_what_a_message_has_no_place_for_is_named(
    path: str, wrong: dict[str, Any], magic: int, compression: str
) -> None:
    plain = Record(5, -1, None, None, [])
    records = [plain, msgspec.structs.replace(plain, **wrong), plain]
    with pytest.raises(EncodeError) as caught:
        encode_batch(records, magic=magic, compression=compression)
    assert caught.value.path == f"records[1].{path}"


def test_offsets_that_are_too_far_apart_for_a_wrapper_are_named() -> None:
    records = [Record(n, 0, None, None, []) for n in (-5, 2**63 - 1)]
    with pytest.raises(EncodeError, match="64 bits") as caught:
        encode_batch(records, magic=1, compression="gzip")
    assert caught.value.path == "records[1].offset"


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_more_than_an_int32_can_tell_is_an_error(
    magic: int, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For these errors, kernels return only a number, and no message.
    monkeypatch.setattr(executors.ACTIVE, "functions", PYTHON)
    records = [Record(0, -1, None, bytes(200), [])]
    size = len(encode_batch(records, magic=magic)) - ENTRY.size
    monkeypatch.setattr(values, "LONGEST", size)
    encode_batch(records, magic=magic, compression=compression)
    monkeypatch.setattr(values, "LONGEST", 199)
    with pytest.raises(EncodeError, match="bytes are more than 199, the largest int32") as caught:
        encode_batch(records, magic=magic, compression=compression)
    assert caught.value.path == ("records" if magic > 1 else "records[0]")
