"""KIP-82's TypedValue: both type tables, the limits of every type, and invalid bytes."""

from __future__ import annotations

import math
import pickle
import struct
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import DecodeError, EncodeError
from flexwire.records.typed import Typed, TypedDialect, ValueType
from tests.records.kip82_values import typed_values

DOCUMENT, EARLIER = TypedDialect.DOCUMENT, TypedDialect.EARLIER

# The type, the value, the document's bytes, and the bytes of the earlier revision.
TABLE: list[tuple[str, Any, str | None, str]] = [
    ("null", None, None, "00"),
    ("boolean", True, "00 01", "01"),
    ("boolean", False, "00 00", "02"),
    ("byte", -2, "01 fe", "03 fe"),
    ("char", "é", "02 00e9", "04 00e9"),
    ("short", 258, "03 0102", "05 0102"),
    ("int", -2, "04 fffffffe", "06 fffffffe"),
    ("long", 258, "05 0000000000000102", "07 0000000000000102"),
    ("float", 1.5, "06 3fc00000", "08 3fc00000"),
    ("double", 1.5, "07 3ff8000000000000", "09 3ff8000000000000"),
    ("string", "né", "08 6ec3a9", "0a 6ec3a9"),
    ("string", "", "08", "0a"),
    ("byte[]", b"\x00\xff", "09 00ff", "0b 00ff"),
    ("byte[]", b"", "09", "0b"),
]
# 0x00 to 0x09, and 0x00 to 0x0b
LAST = {DOCUMENT: 0x09, EARLIER: 0x0B}

dialects = st.sampled_from(TypedDialect)


@pytest.mark.parametrize(("name", "value", "document", "earlier"), TABLE)
def test_the_two_type_tables(name: str, value: Any, document: str | None, earlier: str) -> None:
    one = Typed(name, value)
    assert (one.type, one.value) == (ValueType(name), value)
    assert type(one.value) is type(value)
    for dialect, text in ((DOCUMENT, document), (EARLIER, earlier)):
        if text is not None:
            data = bytes.fromhex(text)
            assert one.encode(dialect) == data
            assert Typed.decode(data, dialect) == one


def test_every_type_is_in_the_table() -> None:
    assert {name for name, *_ in TABLE} == set(ValueType)


def test_only_the_earlier_table_has_null() -> None:
    with pytest.raises(
        EncodeError, match=r"Typed at type: the type table kip-82 does not contain null"
    ):
        Typed("null").encode()


@given(typed_values, dialects)
def test_what_is_written_is_read(one: Typed, dialect: TypedDialect) -> None:
    assert Typed.decode(one.encode(dialect), dialect) == one


def decoded(data: bytes, dialect: TypedDialect) -> Typed | DecodeError:
    try:
        return Typed.decode(data, dialect)
    except DecodeError as error:
        return error


@given(st.binary(max_size=12), dialects)
def test_any_bytes_are_a_value_that_writes_them_or_an_error(
    data: bytes, dialect: TypedDialect
) -> None:
    one = decoded(data, dialect)
    if isinstance(one, DecodeError):
        assert one.offset is not None
        assert 0 <= one.offset <= len(data)
    else:
        assert one.encode(dialect) == data
        # There are many NaNs; Python makes only one of them from this value.
        is_nan = isinstance(one.value, float) and math.isnan(one.value)
        assert is_nan or Typed(one.type, one.value) == one


@pytest.mark.parametrize("dialect", TypedDialect)
def test_every_first_byte_is_a_type_or_refused(dialect: TypedDialect) -> None:
    for number in range(256):
        found = [decoded(bytes([number]) + bytes(size), dialect) for size in (0, 1, 2, 4, 8)]
        if number > LAST[dialect]:
            assert [getattr(one, "path", None) for one in found] == ["type"] * 5
        else:
            assert any(isinstance(one, Typed) for one in found)


SIZED = [row for row in TABLE if row[0] not in {"string", "byte[]"}]


@pytest.mark.parametrize(("name", "_value", "document", "earlier"), SIZED)
def test_a_size_of_its_own_is_kept(
    name: str, _value: Any, document: str | None, earlier: str
) -> None:
    for dialect, text in ((DOCUMENT, document), (EARLIER, earlier)):
        data = bytes.fromhex(text or "")
        for wrong in [*(data[:size] for size in range(len(data))), data + b"\x00"]:
            assert isinstance(decoded(wrong, dialect), DecodeError), (name, wrong)


@pytest.mark.parametrize(
    ("dialect", "data", "text"),
    [
        (DOCUMENT, "", "Typed at type, byte 0: no type byte"),
        (DOCUMENT, "0a", "Typed at type, byte 0: unknown type 0x0a; the highest is 0x09"),
        (EARLIER, "0c", "Typed at type, byte 0: unknown type 0x0c; the highest is 0x0b"),
        (DOCUMENT, "00", "Typed at value, byte 1: type boolean requires 1 bytes, got 0"),
        (DOCUMENT, "00 02", "Typed at value, byte 1: expected a boolean (0 or 1), got 2"),
        (EARLIER, "01 01", "Typed at value, byte 1: type boolean requires 0 bytes, got 1"),
        (EARLIER, "00 00", "Typed at value, byte 1: type null requires 0 bytes, got 1"),
        (DOCUMENT, "05 00", "Typed at value, byte 1: type long requires 8 bytes, got 1"),
        (DOCUMENT, "08 61ff", "Typed at value, byte 2: not UTF-8: invalid start byte"),
        (DOCUMENT, "08 eda080", "Typed at value, byte 1: not UTF-8: invalid continuation byte"),
    ],
)
def test_an_error_says_where_and_why(dialect: TypedDialect, data: str, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Typed.decode(bytes.fromhex(data), dialect)
    assert str(caught.value) == text


@pytest.mark.parametrize(("name", "bits"), [("byte", 8), ("short", 16), ("int", 32), ("long", 64)])
def test_an_integer_s_range_ends_where_its_bits_do(name: str, bits: int) -> None:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    for value in (lowest, -1, 0, highest):
        assert Typed(name, value).value == value
    for value in (lowest - 1, highest + 1, 10**5000):
        with pytest.raises(EncodeError, match=rf"Typed at value: not a {name}: .* range"):
            Typed(name, value)


@pytest.mark.parametrize("value", ["a", "\x00", "\uffff", chr(0xD800), chr(0xDFFF)])
def test_a_char_is_one_utf_16_code_unit(value: str) -> None:
    data = Typed("char", value).encode()
    assert data == b"\x02" + ord(value).to_bytes(2, "big")
    assert Typed.decode(data).value == value


def test_a_char_beyond_that_is_two() -> None:
    with pytest.raises(
        EncodeError, match="expected a str of one UTF-16 code unit, got '\U0001f600'"
    ):
        Typed("char", "\U0001f600")


def test_a_float_has_32_bits() -> None:
    assert Typed("float", 0.1).value == struct.unpack(">f", struct.pack(">f", 0.1))[0] != 0.1
    assert Typed("float", math.inf).value == math.inf
    assert Typed("float", -0.0) != Typed("float", 0.0)
    assert Typed("float", 3) == Typed("float", 3.0)


@pytest.mark.parametrize(
    "data", ["06 7fc00000", "06 7f800001", "06 ffffffff", "07 7ff0000000000001"]
)
def test_a_nan_keeps_its_bits_and_equals_itself(data: str) -> None:
    raw = bytes.fromhex(data)
    one = Typed.decode(raw)
    assert isinstance(one.value, float)
    assert math.isnan(one.value)
    assert one.encode() == raw
    assert one == Typed.decode(raw)


NOT_VALUES: list[tuple[str, list[Any]]] = [
    ("null", [0, False, ""]),
    ("boolean", [0, 1, None, "true"]),
    ("byte", [None, True, 1.0, "1", b"1"]),
    ("char", ["", "ab", "\U0001f600", 97, b"a", None]),
    ("long", [False, 1.5, None]),
    ("float", [1e39, 10**400, True, "1", None]),
    ("double", [10**400, False, "1", None]),
    ("string", [b"a", None, 1, "\ud800"]),
    ("byte[]", ["a", None, 1, [1]]),
]


@pytest.mark.parametrize(("name", "values"), NOT_VALUES)
def test_what_is_none_of_the_type_s_values_is_refused(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(EncodeError) as caught:
            Typed(name, value)
        assert str(caught.value).startswith(f"Typed at value: not a {name}: ")


def test_a_type_that_is_none() -> None:
    names: list[Any] = ["integer", "", 5, None, []]
    for name in names:
        with pytest.raises(
            EncodeError, match=r"is not a type; the types are null, boolean, byte, "
        ):
            Typed(name)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_bytes_may_come_as_other_buffers(kind: Any) -> None:
    assert Typed("byte[]", kind(b"ab")) == Typed("byte[]", b"ab")
    assert Typed.decode(kind(b"\x09ab")) == Typed("byte[]", b"ab")


def test_a_typed_value_is_a_value() -> None:
    one = Typed("short", 5)
    assert len({one, Typed(ValueType.SHORT, 5), Typed("int", 5)}) == 2
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own bytes
    assert eval(repr(one), {"Typed": Typed}) == one  # noqa: S307 - our own text
    with pytest.raises(FrozenInstanceError):
        one.data = b""  # type: ignore[misc]  # that it cannot be set is the point
