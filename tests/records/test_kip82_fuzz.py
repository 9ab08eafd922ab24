"""Any bytes are valid KIP-82 messages and headers, or raise `RecordError` or `DecodeError`."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import DecodeError, RecordError
from flexwire.records.kip82 import decode_message_set, down_convert, encode_message_set, up_convert
from tests.records.kip82_bytes import GZIP, new_message
from tests.records.kip82_values import COMPRESSIONS, messages
from tests.searching import times
from tests.traced import traced

if TYPE_CHECKING:
    from flexwire.records.kip82 import Kip82Message

pytestmark = pytest.mark.slow

Change: TypeAlias = tuple[int, bytes]
_LIMIT = 1 << 16
_fuzz = settings(max_examples=times(120))
mutations = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.sampled_from([b"", b"\x00", b"\x7f", b"\xff"]) | st.binary(max_size=4),
    ),
    max_size=4,
)


def mutated(data: bytes, changes: list[Change]) -> bytes:
    """Change bytes at some positions: overwrite them, or remove them if the change is empty."""
    out = bytearray(data)
    for where, content in changes:
        at = where % (len(out) + 1)
        out[at : at + len(content) if content else None] = content
    return bytes(out)


def read_everything(data: bytes, *, check_crc: bool) -> int:
    """Read messages and headers, and continue after errors; return the number of messages."""
    found = decode_message_set(data, check_crc=check_crc, max_inflated=_LIMIT)
    count, position = 0, -1
    while position < len(data):
        try:
            for message in found:
                count += 1
                try:
                    message.headers.keys()
                except DecodeError as error:
                    assert error.message == "Headers"  # noqa: PT017 - most examples raise an error, some do not
            position = len(data)
        except RecordError as error:
            assert 0 <= error.offset <= len(data)  # noqa: PT017 - as above
            assert found.position > position, "every step goes forward"
            position = found.position
    for convert in (down_convert, up_convert):
        try:
            convert(data, check_crc=check_crc, max_inflated=_LIMIT)
        except RecordError as error:
            assert 0 <= error.offset <= len(data)  # noqa: PT017 - as above
    return count


@pytest.mark.long
@_fuzz
@given(messages(), st.sampled_from(COMPRESSIONS), mutations)
def test_mutated_message_sets(
    given_: list[Kip82Message], compression: str, changes: list[Change]
) -> None:
    data = encode_message_set(given_, compression=compression)
    assert read_everything(data, check_crc=True) == len(given_)
    read_everything(mutated(data, changes), check_crc=False)


@pytest.mark.long
@_fuzz
@given(messages(), mutations)
def test_mutated_inflated_bytes(given_: list[Kip82Message], changes: list[Change]) -> None:
    inner = mutated(encode_message_set(given_), changes)
    wrapper = new_message(gzip.compress(inner, compresslevel=1), attributes=GZIP)
    read_everything(wrapper, check_crc=False)


@_fuzz
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(data: bytes, check_crc: bool) -> None:  # noqa: FBT001 - given, not called
    read_everything(data, check_crc=check_crc)


@_fuzz
@given(st.binary(max_size=100), st.integers(0, 255), st.binary(max_size=40))
def test_any_content_behind_sound_lengths(value: bytes, attributes: int, headers: bytes) -> None:
    read_everything(new_message(value, headers=headers, attributes=attributes), check_crc=True)


@pytest.mark.parametrize("at", [8, 26, 30, 51])
def test_a_length_allocates_nothing_before_it_is_compared(at: int) -> None:
    data = bytearray(new_message(b"v", headers=b"h" * 17))
    data[at : at + 4] = b"\x7f\xff\xff\xff"
    with traced() as memory:
        read_everything(bytes(data), check_crc=False)
    assert memory.most < 1_000_000
