"""All conventions follow the common laws, and their pages are correct."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import FlexwireError, RecordHeaderError
from flexwire.records.conventions import (
    CONVENTIONS,
    FixedWidth,
    SpringJson,
    detect,
    read_headers,
    write_headers,
)
from flexwire.records.typed import Typed
from tests.searching import times

if TYPE_CHECKING:
    from flexwire.records.conventions.convention import Convention

_TYPES = ["boolean", "byte", "short", "int", "long", "float", "double", "string"]
ALL = [*CONVENTIONS.values(), *(FixedWidth({"h": type_}) for type_ in _TYPES)]
#: One value that each convention can write, under the key ``h``.
SAMPLES: list[tuple[str | Convention, Any]] = [
    ("spring-json", 5),
    ("kip-82", Typed("short", 5)),
    ("kip-82-earlier", Typed("null")),
    ("connect", 5),
    ("utf-8", "5"),
    (FixedWidth({"h": "short"}), 5),
]
_fuzz = settings(max_examples=times(150))


def test_the_names() -> None:
    assert list(CONVENTIONS) == [
        "spring-json",
        "kip-82",
        "kip-82-earlier",
        "connect",
        "utf-8",
        "kip-1308",
    ]


@pytest.mark.parametrize(("convention", "sample"), SAMPLES)
def test_order_duplicates_nulls_and_empty_keys_are_kept(
    convention: str | Convention, sample: Any
) -> None:
    values = [("h", sample), ("z", None), ("h", None), ("h", sample), ("", None), ("h", sample)]
    written = write_headers(values, convention)
    assert [key for key, _ in written][:6] == [b"h", b"z", b"h", b"h", b"", b"h"]
    assert read_headers(written, convention) == values


@pytest.mark.parametrize("convention", ALL, ids=lambda convention: convention.name)
def test_a_key_that_is_not_utf_8_is_an_error_or_stays_bytes(convention: Convention) -> None:
    headers = [(b"\xff", b"5"), (b"\xfe", None)]
    with pytest.raises(RecordHeaderError, match="the key is not UTF-8"):
        convention.read(headers)
    assert convention.read(headers, lenient=True) == headers
    with pytest.raises(RecordHeaderError, match="the key is not UTF-8"):
        convention.write([(b"\xff", None)])
    with pytest.raises(RecordHeaderError, match="cannot be encoded as UTF-8"):
        convention.write([("\ud800", None)])


@pytest.mark.parametrize("convention", ALL, ids=lambda convention: convention.name)
def test_what_is_not_bytes_is_refused(convention: Convention) -> None:
    for value in ("text", 10**12, [1]):
        with pytest.raises(RecordHeaderError, match="expected bytes"):
            convention.read([("h", value)])  # type: ignore[list-item]  # what is tested
    assert convention.read([("other", memoryview(b"\xff"))], lenient=True)  # type: ignore[list-item]  # buffers are taken


def test_the_error_names_the_key_and_travels() -> None:
    with pytest.raises(RecordHeaderError) as caught:
        read_headers([("fine", b"a"), ("ce_id", b"\xff")], "utf-8")
    error = caught.value
    assert (error.key, error.convention) == ("ce_id", "utf-8")
    assert str(error) == (
        "record header 'ce_id' does not fit utf-8: not UTF-8: invalid start byte at byte 0"
    )
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    assert (str(copy), copy.key, copy.reason) == (str(error), error.key, error.reason)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_no_headers(name: str) -> None:
    # confluent-kafka returns None for a record without headers.
    assert read_headers(None, name) == read_headers([], name) == write_headers([], name) == []


def test_a_convention_that_is_none() -> None:
    with pytest.raises(
        FlexwireError, match="unknown convention 'json'; expected spring-json, kip-82"
    ):
        read_headers([], "json")


@pytest.mark.slow
@_fuzz
@given(
    st.sampled_from(ALL),
    st.lists(st.tuples(st.sampled_from([b"h", b"g"]) | st.binary(), st.none() | st.binary())),
)
def test_any_bytes_are_read_or_refused(
    convention: Convention, headers: list[tuple[bytes, bytes | None]]
) -> None:
    lenient = convention.read(headers, lenient=True)
    assert len(lenient) == len(headers)
    detect(headers)
    try:
        strict = convention.read(headers)
    except RecordHeaderError as error:
        assert error.convention == convention.name  # noqa: PT017 - some examples raise an error, some do not
    else:
        assert repr(strict) == repr(lenient)


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.characters()
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.uuids()
    | st.builds(Typed, st.just("string"), st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=5,
)


@pytest.mark.slow
@_fuzz
@given(st.sampled_from(ALL), _values)
def test_any_value_is_written_and_read_back_or_refused(convention: Convention, value: Any) -> None:
    try:
        written = convention.write([("h", value)])
    except RecordHeaderError:
        return
    ((key, read),) = convention.read(written)
    assert key == "h"
    assert (
        read == value
        or convention.name == "connect"
        or repr(read) == repr(value)
        or (isinstance(value, float) and convention.name == "kip-1308")
    )


class TestUtf8:
    def test_any_text_but_no_surrogates(self) -> None:
        values = [("h", ""), ("h", "käse \x00 🧀")]
        assert read_headers(write_headers(values, "utf-8"), "utf-8") == values
        with pytest.raises(
            RecordHeaderError, match="cannot be encoded as UTF-8: surrogates not allowed"
        ):
            write_headers([("h", "\ud800")], "utf-8")
        with pytest.raises(RecordHeaderError, match="expected a str, got 5"):
            write_headers([("h", 5)], "utf-8")

    def test_cut_characters(self) -> None:
        for end in (1, 2, 3):
            with pytest.raises(RecordHeaderError, match="not UTF-8"):
                read_headers([("h", "🧀".encode()[:end])], "utf-8")


class TestFixedWidth:
    def test_the_type_is_never_guessed(self) -> None:
        with pytest.raises(
            RecordHeaderError, match=r"specify it, as in FixedWidth\({'h': 'int'}\)"
        ):
            read_headers([("h", b"\0\0\0\3")], "kip-1308")
        with pytest.raises(RecordHeaderError, match="'int32' is not a type; the types are boolean"):
            FixedWidth({"h": "int32"})

    @pytest.mark.parametrize("type_", _TYPES[:-1])
    def test_every_other_width_is_refused(self, type_: str) -> None:
        sizes = []
        for size in range(10):
            try:
                FixedWidth({"h": type_}).read([("h", bytes(size))])
            except RecordHeaderError as error:
                assert error.reason.endswith(f"bytes for {type_}, got {size}")  # noqa: PT017
            else:
                sizes.append(size)
        widths = {"boolean": 1, "byte": 1, "short": 2, "int": 4, "float": 4}
        assert sizes == [widths.get(type_, 8)]

    @pytest.mark.parametrize(
        ("type_", "bits"), [("byte", 8), ("short", 16), ("int", 32), ("long", 64)]
    )
    def test_ranges(self, type_: str, bits: int) -> None:
        convention = FixedWidth({"h": type_})
        for value in (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1):
            assert convention.read(convention.write([("h", value)])) == [("h", value)]
        for wrong in (-(2 ** (bits - 1)) - 1, 2 ** (bits - 1), 1.0, True, "1", b"1"):
            with pytest.raises(RecordHeaderError, match=f"expected a {type_}, got"):
                convention.write([("h", wrong)])

    def test_a_boolean_is_0_or_1(self) -> None:
        convention = FixedWidth({"h": "boolean"})
        with pytest.raises(RecordHeaderError, match="expected 0 or 1 for boolean, got 2"):
            convention.read([("h", b"\2")])
        with pytest.raises(RecordHeaderError, match="expected a boolean, got 1"):
            convention.write([("h", 1)])

    def test_a_float_that_is_too_large(self) -> None:
        with pytest.raises(RecordHeaderError, match="expected a float, got 1e"):
            FixedWidth({"h": "float"}).write([("h", 1e39)])
        with pytest.raises(RecordHeaderError, match="expected a double, got 1000"):
            FixedWidth({"h": "double"}).write([("h", 10**400)])

    def test_only_floats_may_lose_digits(self) -> None:
        (raw,) = FixedWidth({"h": "float"}).write([("h", 0.1)])
        assert raw == (b"h", bytes.fromhex("3dcccccd"))
        double = FixedWidth({"h": "double"})
        assert double.read(double.write([("h", 2**53)])) == [("h", 2.0**53)]
        with pytest.raises(RecordHeaderError, match="expected a double, got 9007199254740993"):
            double.write([("h", 2**53 + 1)])


class TestTypedValues:
    def test_the_dialects_are_two_conventions(self) -> None:
        data = b"\x04\x00\x05"
        with pytest.raises(
            RecordHeaderError, match="'h' does not fit kip-82: type int requires 4 bytes"
        ):
            read_headers([("h", data)], "kip-82")
        assert read_headers([("h", data)], "kip-82-earlier") == [("h", Typed("char", "\5"))]

    def test_only_typed_values_are_written(self) -> None:
        with pytest.raises(RecordHeaderError, match="expected a Typed, got 5"):
            write_headers([("h", 5)], "kip-82")
        with pytest.raises(RecordHeaderError, match="does not contain null"):
            write_headers([("h", Typed("null"))], "kip-82")


def test_spring_with_classes_from_elsewhere() -> None:
    convention = SpringJson({"h": "java.lang.Long"})
    assert convention.read([("h", b"5"), ("g", b"5")]) == [("h", 5), ("g", b"5")]
