"""Varints at every limit are read if whole, and refused if cut off or too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import DecodeError
from flexwire.wire.varint import (
    read_unsigned_varint,
    read_varint,
    read_varlong,
    write_unsigned_varint,
    write_varint,
)

# The example is from KIP-482, "Unsigned Varints"; the other numbers are from Kafka's ByteUtils.
UNSIGNED = {
    0: "00",
    1: "01",
    63: "3f",
    64: "40",
    127: "7f",
    128: "8001",
    300: "ac02",
    8191: "ff3f",
    8192: "8040",
    16383: "ff7f",
    16384: "808001",
    2097151: "ffff7f",
    2097152: "80808001",
    268435455: "ffffff7f",
    268435456: "8080808001",
    2**31 - 1: "ffffffff07",
    2**32 - 1: "ffffffff0f",
}
ZIG_ZAG = {0: "00", -1: "01", 1: "02", 63: "7e", -64: "7f", 64: "8001", -65: "8101"}


@pytest.mark.parametrize("value", UNSIGNED)
def test_unsigned_varints(value: int) -> None:
    raw = bytes.fromhex(UNSIGNED[value])
    assert write_unsigned_varint(value) == raw
    assert read_unsigned_varint(b"#" + raw + b"#", 1, len(raw) + 1) == (value, len(raw) + 1)
    for cut in range(len(raw)):
        with pytest.raises(DecodeError, match="cut off"):
            read_unsigned_varint(raw, 0, cut)


@pytest.mark.parametrize("value", ZIG_ZAG)
def test_zig_zag(value: int) -> None:
    raw = bytes.fromhex(ZIG_ZAG[value])
    assert write_varint(value) == raw
    assert read_varint(raw, 0, len(raw)) == (value, len(raw))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_come_back(value: int) -> None:
    raw = write_varint(value)
    assert read_varlong(raw, 0, len(raw)) == (value, len(raw))
    assert len(raw) <= 10


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_come_back(value: int) -> None:
    raw = write_varint(value)
    assert read_varint(raw, 0, len(raw)) == (value, len(raw))
    assert len(raw) <= 5


def test_strict_refuses_what_lenient_takes() -> None:
    for raw, value in ((b"\x80\x00", 0), (b"\xff\xff\xff\xff\x1f", 2**32 - 1)):
        with pytest.raises(DecodeError):
            read_unsigned_varint(raw, 0, len(raw))
        assert read_unsigned_varint(raw, 0, len(raw), lenient=True) == (value, len(raw))


def test_too_many_bytes_are_refused_by_both() -> None:
    for lenient in (False, True):
        with pytest.raises(DecodeError, match="more than 5 bytes"):
            read_unsigned_varint(b"\x80" * 5 + b"\x00", 0, 6, lenient=lenient)
