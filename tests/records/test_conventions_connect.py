"""Kafka Connect's text form: what Java loses, how the form is written, and its limits."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import RecordHeaderError
from flexwire.records.conventions import read_headers, write_headers
from flexwire.records.conventions.connect import round_to_float32
from tests.searching import times
from tests.traced import traced


class _Wherever(tzinfo):
    """A time zone that, like most zones, has no offset unless a date is given."""

    def utcoffset(self, moment: datetime | None, /) -> None:
        """Return no offset."""

    dst = tzname = utcoffset

    def __repr__(self) -> str:
        """Return a name without a memory address, because tests are named after it."""
        return "wherever"


def read(text: str) -> Any:
    ((_, value),) = read_headers([("h", text.encode())], "connect")
    return value


def back(value: Any) -> Any:
    ((_, read_),) = read_headers(write_headers([("h", value)], "connect"), "connect")
    return read_


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("12:30", "would read 12 and drops ':30'"),
        ("1,2", "would read 1 and drops ',2'"),
        ("[1] x", "drops 'x'"),
        ("2024-02-30", "is not a valid date, but Connect would accept it"),
        ("2024-1-1 o", "is not a valid date"),
        ("24:00:00.000Z", "is not a valid time"),
        ("2024-01-01T12:34:60.000Z", "is not a valid timestamp"),
        ("[2024-01-01,7]", "would turn 7 into a date"),
        ("{16777216:1,16777217:2,1.5:3}", "would merge two keys of a map"),
        ("{1:1,true:2}", "are the same key in Python"),
        ("{[1]:2}", "cannot have arrays or maps as keys"),
        (" [1", "only the blanks before the bracket"),
    ],
)
def test_what_java_loses_or_makes_up_does_not_fit(text: str, reason: str) -> None:
    with pytest.raises(RecordHeaderError, match=reason.replace("[", r"\[")):
        read(text)


def test_only_ten_characters_are_a_date_to_java() -> None:
    assert read("2024-1-1 or") == "2024-1-1 or"


@pytest.mark.parametrize("opening", ["[", '{"a":', "[[", '[{"a":'])
def test_nesting_is_bounded(opening: str) -> None:
    with pytest.raises(RecordHeaderError, match="nested more than 100 levels deep"):
        read(opening * 100_000)


def test_nesting_up_to_the_bound() -> None:
    assert str(read("[" * 100 + "]" * 100)) == "[" * 100 + "]" * 100
    with pytest.raises(RecordHeaderError, match="nested more than 100 levels deep"):
        read("[" * 101 + "]" * 101)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "9" * 60_000,
        "1." + "0" * 60_000,
        "0." + "0" * 60_000 + "1",
        "1e" + "0" * 60_000 + "1",
        "-1e2147483647",
        "0e2147483647",
        "1e-2147483647",
        "[" + "1e400," * 10_000 + "1]",
        "[" + "1.5," * 15_000 + "1]",
        '["' + "a" * 60_000 + '"]',
        "\\" * 60_000,
        "[" + " ," * 30_000,
        "1:" * 30_000,
        "2024-01-01" * 6_000,
        "{" + "1:2," * 15_000 + "}",
    ],
    ids=lambda text: f"{text[:8]}… {len(text)}",
)
def test_memory_is_in_proportion(text: str) -> None:
    # Many short items take the most memory: each needs a token, a value and the value's type.
    with traced() as memory:
        read_headers([("h", text.encode())], "connect", lenient=True)
    assert memory.most < 64 * len(text) + 100_000


@pytest.mark.parametrize(
    "value",
    [
        True,
        -(2**63),
        2**63 - 1,
        0,
        1.5,
        -0.5,
        1.0,
        2**100 * 1.0,
        Decimal(10) ** 20,
        Decimal("1.5"),
        "text",
        "",
        "   ",
        "a, b",
        "käse 🧀",
        date(2024, 2, 29),
        time(12, 34, 56, 789000),
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 1, 2, 0, 0, 1000, tzinfo=timezone(timedelta(hours=2))),
        [],
        {},
        [1, 300, 70000],
        [1.5, 2],
        [None, None],
        ["a", 1, None],
        ["true", "5", "[1]"],
        {"a": [1, {"b": True}], "c": []},
        {1: "a", 2: "b"},
    ],
    ids=repr,
)
def test_written_values_come_back(value: Any) -> None:
    assert back(value) == value


def test_a_double_may_come_back_rounded() -> None:
    assert back(0.1) == struct.unpack(">f", struct.pack(">f", 0.1))[0] != 0.1
    assert back([0.1, 1e300]) == [struct.unpack(">f", struct.pack(">f", 0.1))[0], 1e300]


@pytest.mark.parametrize(
    "value",
    [
        "5",
        " 5",
        "true",
        "null",
        "[]",
        '{"a":1}',
        "2024-01-01",
        "12:30",
        ["2024-01-01"],
        ['say "a"'],
        ["back\\slash"],
        ["  "],
        ["a", None],
        {"a": None, "b": 1},
        {None: 1},
        {"a": 1, "b": "c", "d": None, None: 1},
        2**63,
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("1E+30"),
        b"bytes",
        (1, 2),
        {1},
        datetime(2024, 1, 1),  # noqa: DTZ001 - a local time must be refused
        datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        time(12, 0, 0, 1),
        time(12, tzinfo=UTC),
        time(12, tzinfo=_Wherever()),
        [True, "\ud800"],
    ],
    ids=repr,
)
def test_what_would_not_come_back_is_refused(value: Any) -> None:
    with pytest.raises(RecordHeaderError, match="'h' does not fit connect"):
        write_headers([("h", value)], "connect")


def test_nesting_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(RecordHeaderError, match="nested more than 100 levels deep"):
        write_headers([("h", endless)], "connect")


@pytest.mark.slow
@settings(max_examples=times(150))
@given(
    st.floats(
        width=32, allow_nan=False, allow_infinity=False, min_value=2.0**-100, max_value=2.0**100
    ),
    st.sampled_from([0, 1, -1]),
)
def test_a_number_beside_the_middle_of_two_floats_is_rounded_once(single: float, side: int) -> None:
    (bits,) = struct.unpack(">i", struct.pack(">f", single))
    (above,) = struct.unpack(">f", struct.pack(">i", bits + 1))
    with localcontext(prec=200):
        middle = (Decimal(single) + Decimal(above)) / 2
        exact = middle + side * Decimal("1e-50")
    even = single if bits % 2 == 0 else above
    assert float(exact) == float(middle)
    assert round_to_float32(exact, float(exact)) == {-1: single, 0: even, 1: above}[side]


_pieces = st.sampled_from(
    [*'[]{},:"\\ -+.', "null", "true", "1", "300", "1.5", "2024-01-01", "12:34:56.789Z", "a", "e5"]
)


@pytest.mark.slow
@settings(max_examples=times(300))
@given(st.lists(_pieces, max_size=12).map("".join))
def test_any_text_is_read_or_refused_and_what_is_read_can_be_written(text: str) -> None:
    try:
        value = read(text)
        written = write_headers([("h", value)], "connect")
    except RecordHeaderError:
        return
    assert read_headers(written, "connect") == [("h", value)]
