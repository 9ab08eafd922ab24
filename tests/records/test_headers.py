"""KIP-82's `Headers`: the multimap, its bytes, and its use for the headers of any record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import DecodeError, EncodeError
from flexwire.records import Record, decode_batches
from flexwire.records.encode import encode_batch
from flexwire.records.headers import Headers, typed_headers
from flexwire.records.typed import Typed, TypedDialect
from tests.records.kip82_values import items, made
from tests.traced import traced

DOCUMENT, EARLIER = TypedDialect.DOCUMENT, TypedDialect.EARLIER


def test_every_put_method_has_its_type_byte() -> None:
    headers = Headers()
    headers.put_boolean("a", True)
    headers.put_byte("a", 1)
    headers.put_char("a", "b")
    headers.put_short("a", 1)
    headers.put_integer("a", 1)
    headers.put_long("a", 1)
    headers.put_float("a", 1.0)
    headers.put_double("a", 1.0)
    headers.put_string("a", "b")
    headers.put_bytes("a", b"b")
    assert [value[0] for _, value in headers.to_pairs()] == list(range(10))
    assert headers.get("a") == [True, 1, "b", 1, 1, 1, 1.0, 1.0, "b", b"b"]


def test_each_header_is_two_lengths_and_their_bytes_and_no_count_stands_before() -> None:
    headers = Headers()
    headers.put_short("id", 5)
    headers.put_string("é", "")
    assert headers.as_bytes() == bytes.fromhex(
        "00000002 6964 00000003 030005"  # id, a short
        "00000002 c3a9 00000001 08"  # é, an empty string
    )
    assert Headers().as_bytes() == b""


def test_order_and_duplicates_are_kept() -> None:
    headers = made([("b", Typed("int", 1)), ("a", Typed("null")), ("b", Typed("long", 1))], EARLIER)
    again = Headers(headers.as_bytes(), dialect=EARLIER)
    assert again.keys() == ["b", "a"]
    assert again.get("b") == [1, 1]
    assert again.get_typed("b") == [Typed("int", 1), Typed("long", 1)]
    assert again.get("a") == [None]
    assert again.get("c") == []
    assert list(again) == list(headers)
    assert len(again) == 3


@pytest.mark.slow
@given(items, st.sampled_from(TypedDialect))
def test_what_is_put_comes_back(pairs: list[tuple[str, Typed]], dialect: TypedDialect) -> None:
    headers = made(pairs, dialect)
    again = Headers(headers.as_bytes(), dialect=dialect)
    assert again == headers
    assert list(again) == pairs
    assert typed_headers(headers.to_pairs(), dialect=dialect) == headers


@given(st.binary(max_size=60), st.sampled_from(TypedDialect))
def test_any_bytes_are_headers_that_write_them_or_an_error(
    data: bytes, dialect: TypedDialect
) -> None:
    headers = Headers(data, dialect=dialect)
    try:
        found = list(headers)
    except DecodeError as error:
        where = error.offset
    else:
        where = 0
        assert made(found, dialect).as_bytes() == data
    assert where is not None
    assert 0 <= where <= len(data)
    assert headers.as_bytes() == data


def test_headers_cut_off_anywhere_but_between_two_are_none() -> None:
    headers = made([("id", Typed("short", 5)), ("tag", Typed("string", "new"))])
    data = headers.as_bytes()
    whole = 4 + 2 + 4 + 3
    for size in set(range(len(data))) - {0, whole}:
        with pytest.raises(DecodeError):
            Headers(data[:size]).keys()
    assert Headers(data[:whole]).keys() == ["id"]


ID = "00000002 6964"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("000000", "Headers at [0].key, byte 0: INT32 takes 4 bytes but 3 remain"),
        ("ffffffff", "Headers at [0].key, byte 0: length -1 declared but 0 bytes remain"),
        (
            "7fffffff 6964",
            "Headers at [0].key, byte 0: length 2147483647 declared but 2 bytes remain",
        ),
        (f"{ID} ffffffff", "Headers at [0].value, byte 6: length -1 declared but 0 bytes remain"),
        (f"{ID} 00000000", "Headers at [0].value, byte 10: 'id': no type byte"),
        (
            f"{ID} 00000001 0a",
            "Headers at [0].value, byte 10: 'id': unknown type 0x0a; the highest is 0x09",
        ),
        (
            f"{ID} 00000002 0900 {ID} 00000002 0500",
            "Headers at [1].value, byte 23: 'id': type long requires 8 bytes, got 1",
        ),
        (
            "00000002 61ff 00000001 08",
            "Headers at [0].key, byte 5: b'a\\xff' is not UTF-8: invalid start byte",
        ),
    ],
)
def test_an_error_says_which_header_and_where(data: str, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Headers(bytes.fromhex(data)).keys()
    assert str(caught.value) == text


def test_a_length_allocates_nothing_before_it_is_compared() -> None:
    data = bytes.fromhex("7fffffff") + bytes(100)
    with traced() as memory, pytest.raises(DecodeError):
        Headers(data).keys()
    assert memory.most < 100_000


FIRST_CALLS: list[Any] = [
    len,
    list,
    Headers.keys,
    Headers.to_pairs,
    lambda headers: headers.get("a"),
    lambda headers: headers.get_typed("a"),
    lambda headers: headers == Headers(),
    lambda headers: headers.put_long("a", 1),
]


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_the_bytes_are_read_at_the_first_call_that_needs_them(call: Any) -> None:
    headers = Headers(b"nonsense")
    assert headers.as_bytes() == b"nonsense"
    for _ in range(2):
        with pytest.raises(DecodeError):
            call(headers)
    assert headers.as_bytes() == b"nonsense"


def test_the_bytes_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = Headers(made([("a", Typed("long", 1))]).as_bytes())
    assert headers.get("a") == [1]
    monkeypatch.setattr("flexwire.records.headers._decode_headers", None)
    headers.put_long("a", 2)
    assert headers.get("a") == [1, 2]
    assert headers.keys() == ["a"]


@pytest.mark.parametrize(
    ("put", "key", "value", "text"),
    [
        (
            Headers.put_byte,
            "n",
            128,
            "Headers at 'n': not a byte: 128 is not in INT8's range, -128 to 127",
        ),
        (Headers.put_integer, "n", True, "Headers at 'n': not a int: got True, a boolean"),
        (
            Headers.put_string,
            "n\ud800",
            "a",
            "Headers at 'n\\ud800': the key cannot be encoded as UTF-8: surrogates not allowed",
        ),
        (Headers.put_long, b"n", 1, "Headers at b'n': expected a str for the key, got b'n'"),
        (
            Headers.put,
            "n",
            Typed("null"),
            "Headers at 'n': the type table kip-82 does not contain null",
        ),
    ],
)
def test_what_cannot_be_put_is_refused_and_changes_nothing(
    put: Any, key: Any, value: Any, text: str
) -> None:
    headers = made([("a", Typed("long", 1))])
    before = headers.as_bytes()
    with pytest.raises(EncodeError) as caught:
        put(headers, key, value)
    assert str(caught.value) == text
    assert (headers.as_bytes(), len(headers)) == (before, 1)


def test_a_dialect_is_named_and_not_guessed() -> None:
    data = made([("a", Typed("boolean", True))], EARLIER).as_bytes()
    assert Headers(data, dialect=EARLIER).get("a") == [True]
    with pytest.raises(DecodeError, match="type byte requires 1 bytes, got 0"):
        Headers(data).get("a")
    assert typed_headers([("a", b"\x00")], dialect=EARLIER).get("a") == [None]


def test_what_is_equal_may_change_so_it_is_no_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Headers())
    assert Headers() != []
    assert repr(Headers(b"nonsense")) == "<Headers of 8 bytes>"


def test_headers_of_a_record_batch_come_back_with_their_types() -> None:
    headers = made(
        [("user", Typed("long", 7)), ("tag", Typed("string", "né")), ("user", Typed("int", 7))]
    )
    record = Record(0, 0, None, b"v", [(key.encode(), raw) for key, raw in headers.to_pairs()])
    [batch] = decode_batches(encode_batch([record]))
    again = typed_headers(batch.records[0].headers)
    assert again == headers
    assert again.get_typed("user") == [Typed("long", 7), Typed("int", 7)]


LONG = bytes.fromhex("05 0000000000000007")


@pytest.mark.parametrize(
    "given_pairs",
    [
        [("user", LONG)],
        [(b"user", LONG)],
        (("user", bytearray(LONG)),),
        iter([("user", memoryview(LONG))]),
        {"user": LONG},
    ],
)
def test_pairs_are_taken_as_clients_give_them(given_pairs: Any) -> None:
    assert list(typed_headers(given_pairs)) == [("user", Typed("long", 7))]


def test_pairs_are_taken_as_spark_gives_them() -> None:
    from pyspark.sql import Row  # noqa: PLC0415 - importing PySpark takes a second

    row = Row(headers=[Row(key="user", value=bytearray(LONG))])
    assert typed_headers(row.headers).get_typed("user") == [Typed("long", 7)]


@pytest.mark.parametrize("none", [None, [], {}])
def test_no_pairs_are_no_headers(none: Any) -> None:
    assert len(typed_headers(none)) == 0


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        (
            ("user", None),
            "Headers at [1].value: 'user': expected the bytes of a TypedValue, got None",
        ),
        (
            ("user", "7"),
            "Headers at [1].value: 'user': expected the bytes of a TypedValue, got '7'",
        ),
        (("user", b""), "Headers at [1].value, byte 0: 'user': no type byte"),
        (
            ("traceparent", b"00-ab"),
            "Headers at [1].value, byte 0: 'traceparent': unknown type 0x30; the highest is 0x09",
        ),
        ((b"\xff", LONG), "Headers at [1].key, byte 0: b'\\xff' is not UTF-8: invalid start byte"),
    ],
)
def test_a_pair_that_is_not_typed_is_named(pair: Any, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        typed_headers([("first", LONG), pair])
    assert str(caught.value) == text
