"""KIP-82's message format: its bytes, its wrappers, and damaged message sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import ArgumentError, DecodeError, EncodeError, RecordError
from flexwire.records import Compression, PartialBatch, Record, TimestampType
from flexwire.records.encode import encode_batch
from flexwire.records.headers import Headers
from flexwire.records.kip82 import (
    ConsumerRecord,
    Kip82Message,
    ProducerRecord,
    decode_message_set,
    encode_message_set,
)
from flexwire.records.typed import Typed, TypedDialect
from tests.records.batches import message
from tests.records.kip82_bytes import (
    GZIP,
    HAS_HEADERS,
    LOG_APPEND,
    new_message,
    new_wrapper,
)
from tests.records.kip82_values import COMPRESSIONS, made, messages, user

CREATE_TIME, LOG_APPEND_TIME = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
USER_7 = "00000004 75736572 00000009 050000000000000007"


def refused(data: bytes, **how: Any) -> RecordError:
    with pytest.raises(RecordError) as caught:
        list(decode_message_set(data, **how))
    return caught.value


def test_a_message_with_headers_is_the_document_s_byte_for_byte() -> None:
    data = encode_message_set([Kip82Message(9, 1000, b"k", b"val", user(7))])
    assert (
        data
        == bytes.fromhex(
            "0000000000000009 00000033"  # offset, size
            f"{data[12:16].hex()} 02 10 00000000000003e8"  # crc, magic, attributes, timestamp
            "00000001 6b"  # key
            f"00000015 {USER_7}"  # headers
            "00000003 76616c"  # value
        )
    )
    assert data == new_message(
        b"val", key=b"k", headers=bytes.fromhex(USER_7), offset=9, timestamp=1000
    )
    [read] = decode_message_set(data)
    assert read == Kip82Message(9, 1000, b"k", b"val", user(7))


@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("value", [None, b"", b"value"])
def test_a_message_without_headers_is_as_long_as_before(
    key: bytes | None, value: bytes | None
) -> None:
    before = encode_batch([Record(3, 1000, key, value, [])], magic=1)
    now = encode_message_set([Kip82Message(3, 1000, key, value)])
    assert len(now) == len(before)
    differ = [at for at, (old, new) in enumerate(zip(before, now, strict=True)) if old != new]
    # The crc and the magic.
    assert set(differ) <= {12, 13, 14, 15, 16}
    assert (before[16], now[16]) == (1, 2)


@pytest.mark.long
@pytest.mark.slow
@given(messages(), st.sampled_from(COMPRESSIONS))
def test_what_is_written_is_read(given_: list[Kip82Message], compression: Compression) -> None:
    data = encode_message_set(given_, compression=compression)
    assert list(decode_message_set(data)) == given_


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4))
def test_offsets_in_any_order_come_back_or_are_refused(offsets: list[int]) -> None:
    given_ = [Kip82Message(offset, 0, None, None) for offset in offsets]
    assert list(decode_message_set(encode_message_set(given_))) == given_
    try:
        data = encode_message_set(given_, compression="gzip")
    except EncodeError as error:
        reason = error.reason
    else:
        reason = ""
        assert list(decode_message_set(data)) == given_
    is_far = max(abs(offset - offsets[0]) for offset in offsets) >= 2**63 - 1
    assert is_far or not reason


def test_a_wrapper_s_offsets_are_relative_and_its_own_is_the_last() -> None:
    given_ = [Kip82Message(offset, 1000, None, b"v", user(offset)) for offset in (100, 101, 104)]
    data = encode_message_set(given_, compression="gzip")
    inner = [
        new_message(b"v", offset=offset - 100, headers=user(offset).as_bytes())
        for offset in (100, 101, 104)
    ]
    assert list(decode_message_set(new_wrapper(*inner, offset=104))) == given_
    assert int.from_bytes(data[:8], "big") == 104
    assert data[17] == GZIP
    assert list(decode_message_set(data)) == given_


def test_a_wrapper_at_offset_0_leaves_the_inner_offsets_alone() -> None:
    inner = [new_message(b"a", offset=0), new_message(b"b", offset=1)]
    assert [one.offset for one in decode_message_set(new_wrapper(*inner))] == [0, 1]
    given_ = [Kip82Message(-1, 0, None, None), Kip82Message(0, 0, None, None)]
    assert list(decode_message_set(encode_message_set(given_, compression="gzip"))) == given_


def test_a_wrapper_has_the_newest_timestamp() -> None:
    given_ = [Kip82Message(at, timestamp, None, None) for at, timestamp in enumerate((5, 9, 7))]
    data = encode_message_set(given_, compression="gzip")
    assert int.from_bytes(data[18:26], "big") == 9


def test_log_append_time_of_a_wrapper_is_that_of_its_messages() -> None:
    inner = [new_message(b"a", timestamp=5), new_message(b"b", timestamp=6, offset=1)]
    first, second = decode_message_set(new_wrapper(*inner, offset=8))
    assert (first.timestamp, first.timestamp_type, second.timestamp) == (5, CREATE_TIME, 6)
    found = decode_message_set(new_wrapper(*inner, offset=8, attributes=LOG_APPEND))
    assert [(one.timestamp, one.timestamp_type) for one in found] == [(3000, LOG_APPEND_TIME)] * 2


def test_older_messages_of_a_log_have_no_headers() -> None:
    old = message(b"a", magic=0, offset=1) + message(b"b", magic=1, offset=2)
    wrapped = encode_batch(
        [Record(3, 5, None, b"c", []), Record(4, 6, None, b"d", [])], magic=1, compression="lz4"
    )
    found = list(decode_message_set(old + wrapped + new_message(b"e", offset=5)))
    assert [(one.offset, one.timestamp, one.value) for one in found] == [
        (1, -1, b"a"),
        (2, 1000, b"b"),
        (3, 5, b"c"),
        (4, 6, b"d"),
        (5, 1000, b"e"),
    ]
    assert all(one.headers == Headers() for one in found)
    assert found[0].timestamp_type is TimestampType.NO_TIMESTAMP_TYPE


def test_the_dialect_of_headers_is_named() -> None:
    earlier = TypedDialect.EARLIER
    headers = made([("gone", Typed("null"))], earlier)
    data = encode_message_set([Kip82Message(0, 0, None, None, headers)])
    [found] = decode_message_set(data, dialect=earlier)
    assert found.headers.get("gone") == [None]
    [wrong] = decode_message_set(data)
    with pytest.raises(DecodeError, match="type boolean requires 1 bytes, got 0"):
        wrong.headers.get("gone")


def test_headers_that_are_none_are_found_when_they_are_read() -> None:
    [found] = decode_message_set(new_message(b"v", headers=b"nonsense"))
    assert found.value == b"v"
    with pytest.raises(DecodeError, match=r"Headers at \[0\]\.key, byte 0"):
        found.headers.keys()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_message_set_cut_off_anywhere_ends_in_a_partial_message(
    compression: Compression,
) -> None:
    first = encode_message_set([Kip82Message(0, 0, b"k", b"v", user(1))])
    data = first + encode_message_set(
        [Kip82Message(1, 0, b"k", b"v", user(2))], compression=compression
    )
    for size in range(len(data) + 1):
        found = decode_message_set(data[:size])
        count = len(list(found))
        assert count == (2 if size == len(data) else size >= len(first))
        start = len(first) if size >= len(first) else 0
        if size in (0, len(first), len(data)):
            assert found.partial is None
        else:
            whole = len(data) - len(first) if start else len(first)
            declared = whole if size - start >= 12 else None
            assert found.partial == PartialBatch(start, size - start, declared)


WRONG = [
    (new_message(b"v", crc=1), "the declared crc is 0x00000001, but the actual"),
    (new_message(b"v", magic=3), "unknown magic 3; 0, 1 and 2 are known"),
    (new_message(b"v", attributes=0x20), "attributes 0x20 have bits that KIP-82 does not define"),
    (new_message(b"v", attributes=0x80), "attributes 0x80 have bits that KIP-82 does not define"),
    (new_message(b"v", attributes=4), "KIP-82 does not define compression type 4"),
    (new_message(b"v", attributes=7), "KIP-82 does not define compression type 7"),
    (
        new_message(b"v", headers=b""),
        "headers: the headers flag is set, but the headers have length 0",
    ),
    (
        new_message(b"v", attributes=HAS_HEADERS),
        "value: the length of NULLABLE_BYTES takes 4 bytes but 0 remain",
    ),
    (new_message(b"v", attributes=GZIP), "the gzip data is cut off"),
    (
        new_message(None, attributes=GZIP),
        "a wrapper message must have a value, but no key and no headers",
    ),
    (
        new_message(b"v", key=b"k", attributes=GZIP),
        "a wrapper message must have a value, but no key and no headers",
    ),
    (
        new_message(b"v", headers=b"h", attributes=GZIP),
        "a wrapper message must have a value, but no key and no headers",
    ),
    (new_wrapper(), "a wrapper message has no inner messages (at byte 0 of the inflated"),
    (
        new_wrapper(message(b"v")),
        "a message with magic value 1 is inside a wrapper message with magic value 2 (at byte 0",
    ),
    (new_wrapper(new_wrapper(new_message(b"v"))), "a message inside a wrapper message is itself"),
    (new_wrapper(new_message(b"v", crc=1)), "the declared crc is 0x00000001, but the actual"),
    (new_wrapper(new_message(b"v")[:-1]), "an inner message is cut off (at byte 0 of the inflated"),
    (
        new_wrapper(new_message(b"v"), new_message(b"v", headers=b"")),
        "headers: the headers flag is set, but the headers have length 0 (at byte 65 of the",
    ),
    (
        new_wrapper(new_message(b"a", offset=2**63 - 1), new_message(b"b"), offset=2**62),
        "the offset of a message does not fit in 64 bits",
    ),
    (new_message(b"v")[:8] + bytes(4) + new_message(b"v")[12:], "message size 0 is less than"),
]


@pytest.mark.parametrize(("data", "text"), WRONG, ids=[text for _, text in WRONG])
def test_a_damaged_message_is_refused_with_its_reason(data: bytes, text: str) -> None:
    before = new_message(b"before")
    alone, behind = refused(data), refused(before + data)
    assert text in alone.reason
    assert (behind.reason, behind.offset) == (alone.reason, alone.offset + len(before))


def test_a_length_that_does_not_fit_is_refused_where_it_stands() -> None:
    data = new_message(b"v", key=b"k", headers=bytes.fromhex(USER_7))
    for at, name in ((26, "key"), (31, "headers"), (56, "value")):
        for length in (2**31 - 1, -2):
            wrong = data[:at] + length.to_bytes(4, "big", signed=True) + data[at + 4 :]
            error = refused(data + wrong, check_crc=False)
            assert error.reason.startswith(f"{name}: ")
            assert str(length) in error.reason
            assert error.offset - len(data) in (at, at + 4)
    shorter = data[:56] + bytes(4) + data[60:]
    assert refused(shorter, check_crc=False).reason == "value: 1 bytes remain after the value"


def test_the_iteration_goes_on_behind_a_message_of_sound_size() -> None:
    data = new_message(b"a") + new_message(b"b", crc=1) + new_message(b"c", offset=2)
    found = decode_message_set(data)
    assert next(found).value == b"a"
    with pytest.raises(RecordError):
        next(found)
    assert found.position == 2 * len(new_message(b"a"))
    assert [one.value for one in found] == [b"c"]
    assert [one.value for one in decode_message_set(data, check_crc=False)] == [b"a", b"b", b"c"]


def test_a_wrapper_inflates_to_the_limit_and_no_further() -> None:
    bomb = new_wrapper(new_message(bytes(100_000)))
    assert len(list(decode_message_set(bomb, max_inflated=100_034))) == 1
    assert "more than 100033 bytes" in refused(bomb, max_inflated=100_033).reason


def wrong_messages() -> list[tuple[Any, str]]:
    good = Kip82Message(0, 0, None, None)
    at = "KIP-82 message set at messages[1]"
    return [
        ([good, "b"], f"{at}: expected a Message, got 'b'"),
        (
            [good, Kip82Message(2**63, 0, None, None)],
            f"{at}.offset: 9223372036854775808 does not fit",
        ),
        (
            [good, Kip82Message(1, -(2**63) - 1, None, None)],
            f"{at}.timestamp: -9223372036854775809 does",
        ),
        ([good, Kip82Message(1, 0, "k", None)], f"{at}.key: expected bytes, got 'k'"),  # type: ignore[arg-type]
        ([good, Kip82Message(1, 0, None, 5)], f"{at}.value: expected bytes, got 5"),  # type: ignore[arg-type]
        (
            [good, Kip82Message(1, 0, None, None, {})],  # type: ignore[arg-type]
            f"{at}.headers: expected Headers, got {{}}",
        ),
        (
            [
                replace(one, timestamp_type=TimestampType.NO_TIMESTAMP_TYPE)
                for one in (good, Kip82Message(1, 0, None, None))
            ],
            "KIP-82 message set at messages[0].timestamp_type: magic 2 does not support",
        ),
    ]


@pytest.mark.parametrize(("given_", "text"), wrong_messages())
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_cannot_be_written_is_named(given_: Any, text: str, compression: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_message_set(given_, compression=compression)
    assert str(caught.value).startswith(text)


def test_a_wrapper_has_one_timestamp_type_and_with_log_append_time_one_timestamp() -> None:
    append = [Kip82Message(at, at, None, None, timestamp_type=LOG_APPEND_TIME) for at in (1, 2)]
    assert list(decode_message_set(encode_message_set(append))) == append
    with pytest.raises(
        EncodeError, match="timestamp: with LogAppendTime, all messages must have the same"
    ):
        encode_message_set(append, compression="gzip")
    with pytest.raises(
        EncodeError, match="single timestamp type, got CreateTime and LogAppendTime"
    ):
        encode_message_set([append[0], Kip82Message(2, 2, None, None)], compression="gzip")


def test_zstd_came_later() -> None:
    with pytest.raises(EncodeError, match="KIP-82 does not define 'zstd'"):
        encode_message_set([], compression="zstd")
    assert encode_message_set([], compression="gzip") == encode_message_set([]) == b""


def test_a_message_larger_than_its_size_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.records.record.LONGEST", 1000)
    # crc, magic, attributes, timestamp, three lengths, the key, the headers
    value = bytes(1000 - 4 - 1 - 1 - 8 - 4 * 3 - 1 - 21)
    given_ = [Kip82Message(0, 0, b"k", value, user(1))]
    assert len(encode_message_set(given_)) == 12 + 1000
    given_[0].value = value + b"\x00"
    with pytest.raises(EncodeError, match=r"messages\[0\]: 1001 bytes are more than 1000, the"):
        encode_message_set(given_)


def test_a_producer_record_becomes_a_message_and_that_a_consumer_record() -> None:
    record = ProducerRecord("orders", b"paid", key=b"order-7", headers=user(7))
    assert ProducerRecord("orders", None).headers == Headers()
    sent = record.to_message(offset=4, timestamp=1000)
    assert sent == Kip82Message(4, 1000, b"order-7", b"paid", user(7))
    record.timestamp = 5
    assert record.to_message(timestamp=1000).timestamp == 5
    [got] = decode_message_set(encode_message_set([sent]))
    consumed = ConsumerRecord.from_message("orders", 3, got)
    assert (consumed.topic, consumed.partition, consumed.offset) == ("orders", 3, 4)
    assert (consumed.timestamp, consumed.timestamp_type) == (1000, CREATE_TIME)
    assert (consumed.key, consumed.value) == (b"order-7", b"paid")
    assert consumed.headers.get_typed("user") == [Typed("long", 7)]


def test_records_have_the_document_s_accessor_and_take_interceptors() -> None:
    def trace(record: ProducerRecord) -> ProducerRecord:
        record.get_headers().put_string("trace", "a1")
        return record

    def move(record: ProducerRecord) -> ProducerRecord:
        assert record.headers.get("trace") == ["a1"]
        return replace(record, topic="audited")

    sent = ProducerRecord("orders", b"paid").intercepted(trace, move)
    assert (sent.topic, sent.get_headers().keys()) == ("audited", ["trace"])
    [message] = decode_message_set(encode_message_set([sent.to_message(timestamp=5)]))
    consumed = ConsumerRecord.from_message("audited", 0, message)
    assert consumed.get_headers() is consumed.headers
    assert consumed.intercepted(lambda one: replace(one, value=b"seen")).value == b"seen"
    with pytest.raises(ArgumentError, match=r"what interceptors\[0\] returns: expected a Producer"):
        sent.intercepted(lambda _: None)  # type: ignore[arg-type, return-value]  # what is forgotten


def test_values_are_serialized_by_whoever_knows_them() -> None:
    headers = Headers()
    for place in ((3, 4), (5, 6)):
        headers.put_object("at", place, bytes)
    headers.put_string("name", "a")
    assert Headers(headers.as_bytes()).get_objects("at", tuple) == [(3, 4), (5, 6)]
    assert headers.get_objects("absent", tuple) == []
    with pytest.raises(DecodeError, match=r"expected a byte\[\], got Typed\('string', 'a'\)"):
        headers.get_objects("name", tuple)
    with pytest.raises(EncodeError, match="expected bytes"):
        headers.put_object("at", 7, str)  # type: ignore[arg-type]  # it is the wrong one
