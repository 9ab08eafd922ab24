"""PySpark's own reader reads the original values from the Variants that flexwire writes."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from flexwire.errors import EncodeError
from flexwire.spark.functions import variant
from flexwire.spark.functions.variant import VARIANT, to_variant, variants

MOMENT = datetime(2026, 11, 22, 10, 30, 0, 123456, UTC)


def read(value: Any) -> Any:
    return VariantVal(*to_variant(value)).toPython()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        *(sign * (1 << bits) - off for bits in (7, 15, 31) for sign in (1, -1) for off in (0, 1)),
        2**63 - 1,
        -(2**63),
        2**63,
        -(10**37),
        0.5,
        -math.inf,
        "",
        "ä" * 31,
        "x" * 63,
        "x" * 64,
        b"",
        b"\x00" * 300,
        Decimal("-12.50"),
        Decimal("1E+5"),
        Decimal("0.00000000000000000000000000000000000001"),
        date(1969, 12, 31),
        date(9999, 12, 31),
        MOMENT,
        datetime(1, 1, 1, tzinfo=UTC),
        [],
        [[1, "a"], [None]],
        {},
        {"b": 1, "a": {"c": [b"x"]}, "ü": 2},
        {f"k{number}": number for number in range(300)},
        ["x" * 70_000, *range(256)],
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert read(value) == value
    is_long = not isinstance(value, int) or -(2**63) <= value < 2**63
    assert type(read(value)) is (type(value) if is_long else Decimal)


def test_what_has_no_type_there_is_text() -> None:
    assert read(UUID(int=1)) == "00000000-0000-0000-0000-000000000001"
    assert read(time(12, 30)) == "12:30:00"
    assert read(10**40) == str(10**40)
    assert read(Decimal("1E-50")) == "0." + "0" * 49 + "1"
    assert read(Decimal("1E+999999999")) == "1E+999999999"
    assert math.isnan(read(Decimal("NaN")))
    assert read({1: "a"}) == {"1": "a"}
    assert read({True: "a"}) == {"True": "a"}
    assert read(datetime(2026, 1, 1)) == datetime(2026, 1, 1, tzinfo=UTC)  # noqa: DTZ001 - without


def test_fields_are_in_the_order_of_their_names_which_readers_search() -> None:
    assert to_variant({"b": 1, "a": 2}) == to_variant({"a": 2, "b": 1})
    value, metadata = to_variant({"b": 1, "a": 2})
    assert (value[2:4], metadata[-2:]) == (b"\0\1", b"ab")


def test_what_cannot_be_one_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("\ud800", {"\ud800": 1}):
        with pytest.raises(EncodeError, match="cannot be encoded as UTF-8"):
            to_variant(value)
    with pytest.raises(EncodeError, match="the same string"):
        to_variant({1: "a", "1": "b"})
    monkeypatch.setattr(variant, "MOST", 10)
    with pytest.raises(EncodeError, match="a Variant can hold at most 10"):
        to_variant("x" * 11)


def test_a_column_of_them_has_spark_s_type() -> None:
    made = variants([1, None])
    assert made.type == VARIANT
    assert made.null_count == 0


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
    | st.binary(max_size=80),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=5)
    ),
    max_leaves=20,
)


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=40)
@given(VALUES)
def test_any_value_is_read_back(value: Any) -> None:
    assert read(value) == value
