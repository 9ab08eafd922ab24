"""Spring's JSON form: classes, trust, quotes, and values that Spring would lose."""

from __future__ import annotations

import json
import math
from typing import Any
from uuid import UUID

import pytest

from flexwire.errors import RecordHeaderError
from flexwire.records.conventions import read_headers, write_headers
from tests.traced import traced

_KEY = "spring_json_header_types"


def read(class_: str, data: bytes, *, lenient: bool = False) -> Any:
    types = json.dumps({"h": class_}).encode()
    ((_, value),) = read_headers([("h", data), (_KEY, types)], "spring-json", lenient=lenient)
    return value


def back(*values: tuple[str, Any]) -> list[tuple[str | bytes, Any]]:
    return read_headers(write_headers(values, "spring-json"), "spring-json")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("class_", "data"),
    [
        ("java.lang.Integer", b'"5"'),
        ("java.lang.Integer", b"5.7"),
        ("java.lang.Integer", b"null"),
        ("java.lang.Integer", b""),
        ("java.lang.Integer", b"5 6"),
        ("java.lang.Integer", b"2147483648"),
        ("java.lang.Byte", b"200"),
        ("java.lang.Short", b"-32769"),
        ("java.lang.Long", b"9223372036854775808"),
        ("java.lang.Boolean", b"1"),
        ("java.lang.Double", b"1e999"),
        ("java.lang.Double", b'"1"'),
        ("java.lang.Character", b'"ab"'),
        ("java.util.UUID", b'"x"'),
        ("java.lang.String", b'"a'),
        ("java.lang.String", b'"a" b'),
        ("java.lang.String", b"\xff"),
        ("[I", b"[2147483648]"),
        ("java.util.ArrayList", b"[NaN]"),
        ("java.util.ArrayList", b"[1" + b"0" * 5000 + b"]"),
        ("java.util.ArrayList", b"[" * 101 + b"]" * 101),
        ("java.util.ArrayList", b'["\\\\",' + b"[" * 100 + b"]" * 101),
        ("java.util.ArrayList", b"[" * 100_000),
        ("java.util.LinkedHashMap", b'{"a":' * 100_000),
    ],
)
def test_what_java_only_coerces_or_refuses_does_not_fit(class_: str, data: bytes) -> None:
    with pytest.raises(RecordHeaderError, match="'h' does not fit spring-json"):
        read(class_, data)
    assert read(class_, data, lenient=True) == data


def test_nesting_up_to_the_bound() -> None:
    assert read("java.lang.Object", b"[" * 100 + b"]" * 100)
    assert read("java.lang.Object", b'["' + b"[" * 200 + b'\\"[["]') == ["[" * 200 + '"[[']


@pytest.mark.parametrize(
    "class_", ["java.math.BigDecimal", "com.example.Order", "int", "[S", "[[I", "javax.lang.X", ""]
)
def test_an_untrusted_class_stays_bytes(class_: str) -> None:
    assert read(class_, b"1.50") == b"1.50"


@pytest.mark.parametrize(
    "class_", ["java.util.concurrent.TimeUnit", "java.net.URI", "[Ljava.lang.X;", "java.lang.No"]
)
def test_json_of_another_trusted_class_comes_as_it_is(class_: str) -> None:
    assert read(class_, b'["a",{"b":null}]') == ["a", {"b": None}]


def test_the_last_header_with_classes_counts() -> None:
    headers = [("h", b"5"), (_KEY, b'{"h":"java.lang.String"}'), (_KEY, b'{"h":"java.lang.Byte"}')]
    assert read_headers(headers, "spring-json") == [("h", 5)]


@pytest.mark.parametrize("types", [b"", b"[]", b"{", b'{"h":5}', b"\xff"])
def test_classes_that_cannot_be_read(types: bytes) -> None:
    headers = [("h", b"5"), (_KEY, types)]
    with pytest.raises(RecordHeaderError, match=f"'{_KEY}' does not fit spring-json"):
        read_headers(headers, "spring-json")
    assert read_headers(headers, "spring-json", lenient=True) == headers


def test_strings_that_begin_with_a_quote_come_back() -> None:
    values = [("h", '"quoted"'), ("h", '"'), ("b3", '"'), ("h", ""), ("h", "it's \\")]
    assert back(*values) == values
    assert write_headers([("h", '"a"')], "spring-json")[0] == (b"h", b'"\\"a\\""')


def test_classes_written() -> None:
    values = {
        "str": ("5", "java.lang.String"),
        "bool": (False, "java.lang.Boolean"),
        "int": (2**31 - 1, "java.lang.Integer"),
        "long": (-(2**31) - 1, "java.lang.Long"),
        "float": (0.1, "java.lang.Double"),
        "inf": (-math.inf, "java.lang.Double"),
        "uuid": (UUID(int=1), "java.util.UUID"),
        "list": ([1, "a", None, [2.5], {"k": True}, 2**70], "java.util.ArrayList"),
        "dict": ({"k": [1]}, "java.util.LinkedHashMap"),
    }
    pairs = [(key, value) for key, (value, _) in values.items()]
    raw = ("bytes", b"\x00\xff")
    written = write_headers([*pairs, raw], "spring-json")
    assert written[-2:-1] == [(b"bytes", b"\x00\xff")]
    assert json.loads(written[-1][1] or b"") == {key: class_ for key, (_, class_) in values.items()}
    assert back(*pairs, raw) == [*pairs, raw]


def test_nan_comes_back() -> None:
    ((_, value),) = back(("h", math.nan))
    assert math.isnan(value)


def test_no_classes_no_header() -> None:
    headers = [("h", b"raw"), ("traceparent", "00"), ("n", None)]
    assert write_headers(headers, "spring-json") == [
        (b"h", b"raw"),
        (b"traceparent", b"00"),
        (b"n", None),
    ]
    assert back(*headers) == headers


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        {1: 2},
        [math.nan],
        (1,),
        [(1,)],
        {1},
        [b"x"],
        ["\ud800"],
        "\ud800",
    ],
)
def test_what_would_not_come_back_is_refused(value: Any) -> None:
    with pytest.raises(RecordHeaderError, match="'h' does not fit spring-json"):
        write_headers([("h", value)], "spring-json")


def test_nesting_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(RecordHeaderError):
        write_headers([("h", endless)], "spring-json")


@pytest.mark.parametrize("pair", [(_KEY, "{}"), ("kafka_deliveryAttempt", 3), ("b3", b"1")])
def test_headers_of_spring_s_own(pair: tuple[str, Any]) -> None:
    with pytest.raises(RecordHeaderError, match=f"'{pair[0]}' does not fit"):
        write_headers([pair], "spring-json")


def test_the_delivery_attempt_is_an_int_of_four_bytes() -> None:
    header = ("kafka_deliveryAttempt", b"\0\0\0\3")
    assert read_headers([header], "spring-json") == [("kafka_deliveryAttempt", 3)]
    with pytest.raises(RecordHeaderError, match="expected 4 bytes for int, got 3"):
        read_headers([(header[0], b"\0\0\3")], "spring-json")


@pytest.mark.slow
def test_memory_is_in_proportion() -> None:
    for data in (b'"' + b"a" * 60_000, b'"' + b"\\n" * 30_000 + b'"', b"{" * 60_000):
        with traced() as memory:
            read("java.util.ArrayList", data, lenient=True)
        assert memory.most < 8 * len(data) + 100_000


def test_one_key_has_one_class() -> None:
    with pytest.raises(
        RecordHeaderError, match=r"the same class, got java\.lang\.Integer and None"
    ):
        write_headers([("h", 5), ("h", None), ("h", b"5")], "spring-json")
