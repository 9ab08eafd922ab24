"""KIP-82 messages are converted for older consumers, and older messages to KIP-82's format."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import RecordError
from flexwire.records import Compression, Record, TimestampType, decode_batches
from flexwire.records.encode import encode_batch
from flexwire.records.headers import Headers
from flexwire.records.kip82 import (
    Kip82Message,
    decode_message_set,
    down_convert,
    encode_message_set,
    up_convert,
)
from tests.records.batches import message
from tests.records.kip82_bytes import GZIP, new_message, new_wrapper
from tests.records.kip82_values import COMPRESSIONS, messages, user

if TYPE_CHECKING:
    from collections.abc import Callable

CONVERSIONS = [down_convert, up_convert]
# All offsets fit, except the second one relative to the first.
FAR_APART = message(
    gzip.compress(message(b"a", offset=-(2**63)) + message(b"b", offset=2**62)), attributes=GZIP
)


def without_headers(given_: list[Kip82Message]) -> list[Kip82Message]:
    return [replace(one, headers=Headers()) for one in given_]


@pytest.mark.long
@pytest.mark.slow
@given(messages(), st.sampled_from(COMPRESSIONS))
def test_headers_are_dropped_on_the_way_down_and_empty_on_the_way_up(
    given_: list[Kip82Message], compression: Compression
) -> None:
    older = down_convert(encode_message_set(given_, compression=compression))
    batches = list(decode_batches(older))
    assert {(batch.magic, batch.compression) for batch in batches} == {(1, compression)}
    types = [batch.timestamp_type for batch in batches for _ in batch.records]
    assert [record for batch in batches for record in batch.records] == [
        Record(one.offset, one.timestamp, one.key, one.value, []) for one in given_
    ]
    assert types == [one.timestamp_type for one in given_]
    newer = up_convert(older)
    assert list(decode_message_set(newer)) == without_headers(given_)
    assert {entry[16] for entry in entries(newer)} == {2}


def entries(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        found.append(data[:size])
        data = data[size:]
    return found


def test_a_message_without_headers_goes_down_and_up_to_the_same_bytes() -> None:
    data = encode_message_set(
        [Kip82Message(7, 1000, b"k", b"v"), Kip82Message(8, 1000, None, None)]
    )
    older = down_convert(data)
    assert len(older) == len(data)
    assert up_convert(older) == data


@pytest.mark.parametrize("compression", ["none", "gzip", "lz4"])
def test_messages_of_magic_0_get_the_timestamp_that_says_none(compression: str) -> None:
    records = [Record(4, -1, b"k", b"v", []), Record(5, -1, None, b"w", [])]
    old = encode_batch(
        records, magic=0, compression=compression, timestamp_type=TimestampType.NO_TIMESTAMP_TYPE
    )
    found = list(decode_message_set(up_convert(old)))
    assert found == [Kip82Message(4, -1, b"k", b"v"), Kip82Message(5, -1, None, b"w")]
    assert down_convert(old) == old


def test_what_needs_no_conversion_comes_back_as_it_is() -> None:
    old = message(b"a", magic=0) + message(b"b", magic=1, attributes=0x40)
    new = new_message(b"c", headers=b"nonsense", attributes=0x01)
    assert down_convert(old) == old
    assert up_convert(new) == new
    assert down_convert(b"") == up_convert(b"") == b""
    mixed = down_convert(old + new_message(b"d", headers=user(1).as_bytes()))
    assert mixed == old + message(b"d")


def test_a_broken_header_does_not_keep_a_message_from_older_consumers() -> None:
    assert down_convert(new_message(b"v", headers=b"nonsense")) == message(b"v")


@pytest.mark.parametrize(
    ("convert", "data", "text", "offset"),
    [
        (down_convert, new_message(b"v") + new_message(b"v", crc=1), "crc is 0x00000001", 35),
        (up_convert, message(b"v") + message(b"v")[:-1], "ends within a message", 35),
        (up_convert, message(b"v") + bytes(8), "ends within a message", 35),
        (down_convert, new_message(b"v", magic=3), "unknown magic 3", 0),
        (up_convert, new_message(b"v", magic=3), "unknown magic 3", 0),
        (down_convert, bytes(100), "message size 0 is less than the minimum message size", 0),
        (
            up_convert,
            message(b"v") + FAR_APART,
            r"cannot be converted: KIP-82 message set at messages\[1\].offset",
            35,
        ),
    ],
)
def test_what_cannot_be_converted_is_refused_where_it_stands(
    convert: Callable[[bytes], bytes], data: bytes, text: str, offset: int
) -> None:
    with pytest.raises(RecordError, match=text) as caught:
        convert(data)
    assert caught.value.offset == offset


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_limits_and_crcs_are_the_caller_s(convert: Callable[..., bytes]) -> None:
    inner = bytes(100_000)
    bomb = (
        new_wrapper(new_message(inner))
        if convert is down_convert
        else encode_batch([Record(0, 0, None, inner, [])], magic=1, compression="gzip")
    )
    with pytest.raises(RecordError, match="more than 1000 bytes"):
        convert(bomb, max_inflated=1000)
    wrong = bomb[:12] + bytes(4) + bomb[16:]
    with pytest.raises(RecordError, match="crc"):
        convert(wrong)
    assert convert(wrong, check_crc=False) == convert(bomb)
