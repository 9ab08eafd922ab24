"""Typed record headers in a column equal what the conventions return, row by row."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from flexwire.errors import ArgumentError, FlexwireError, RecordHeaderError
from flexwire.records.conventions import CONVENTIONS, FixedWidth, read_headers, write_headers
from flexwire.records.typed import Typed
from flexwire.spark.functions.headers import (
    HEADER_TYPES,
    convention_of,
    find_convention,
    header_lists,
    header_values,
    list_type,
    plain,
)
from tests.records.test_conventions_vectors import of
from tests.spark.functions.chosen import FAILFAST, PERMISSIVE

# The form of Spark's own Kafka source, and the form of records.
SPARK = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LARGE = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
RECORDS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
KIP = find_convention("kip-82")
TYPED = [
    ("user", Typed("long", 7).encode()),
    ("tag", Typed("string", "new").encode()),
    ("tag", Typed("string", "paid").encode()),
]


def column(*rows: Any, kind: pa.DataType = SPARK) -> pa.Array:
    return pa.array(
        [None if row is None else [{"key": k, "value": v} for k, v in row] for row in rows], kind
    )


def shown(lists: pa.ListArray) -> list[Any]:
    """Return the values as Spark would show them."""
    return [
        None if row is None else [(one["key"], spark_value(one["value"])) for one in row]
        for row in lists.to_pylist()
    ]


def spark_value(made: Any) -> Any:
    return VariantVal(made["value"], made["metadata"]).toPython()


def same(found: Any, expected: Any) -> bool:
    """Return whether a Variant can hold a value: string keys, and numbers and times in range."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == set(map(str, expected)) and all(
            same(found[str(key)], value) for key, value in expected.items()
        )
    return bool(found == expected) or str(found) == str(expected)


@pytest.mark.parametrize("kind", [SPARK, RECORDS])
def test_headers_are_read_by_their_convention_in_their_order(kind: pa.DataType) -> None:
    rows = [TYPED, None, [], [("none", None)] if kind == SPARK else TYPED[:1]]
    as_kind = [
        None if row is None else [(k.encode() if kind == RECORDS else k, v) for k, v in row]
        for row in rows
    ]
    found = header_lists(KIP, FAILFAST, column(*as_kind, kind=kind))
    assert found.type == list_type(FAILFAST)
    found.validate(full=True)
    last = [("none", None)] if kind == SPARK else [("user", 7)]
    assert shown(found) == [[("user", 7), ("tag", "new"), ("tag", "paid")], None, [], last]


@pytest.mark.parametrize("name", ["connect", "utf-8", "kip-1308"])
def test_what_java_wrote_is_read_as_the_convention_reads_it(name: str) -> None:
    data = [bytes.fromhex(one["hex"]) for one in of(name) if "hex" in one][:500]
    convention = FixedWidth({"k": "int"}) if name == "kip-1308" else CONVENTIONS[name]
    found = header_lists(convention, PERMISSIVE, column(*([("k", one)] for one in data)))
    for one, (row,) in zip(data, found.to_pylist(), strict=True):
        if row["_corrupt_record"] is None:
            ((_, expected),) = read_headers([("k", one)], convention)
            assert same(spark_value(row["value"]), expected)
        else:
            assert row["value"] is None
            with pytest.raises(RecordHeaderError) as error:
                read_headers([("k", one)], convention)
            assert row["_corrupt_record"]["reason"] == error.value.reason


def test_spring_s_header_of_classes_speaks_for_the_others_of_its_record() -> None:
    raw = write_headers([("n", 3), ("t", "x")], "spring-json")
    rows = [[(key.decode(), value) for key, value in raw], [("n", b"3")]]
    spring = find_convention("spring-json")
    for options in (FAILFAST, PERMISSIVE):
        found = header_lists(spring, options, column(*rows))
        assert shown(found) == [[("n", 3), ("t", "x")], [("n", b"3")]]
    assert header_values(spring, "n", "int", FAILFAST, column(rows[0])).to_pylist() == [3]
    assert header_values(spring, "n", "binary", FAILFAST, column(rows[1])).to_pylist() == [b"3"]
    broken = [("spring_json_header_types", b"{"), ("n", b"3")]
    first, second = header_lists(spring, PERMISSIVE, column(broken)).to_pylist()[0]
    assert first["_corrupt_record"]["reason"].startswith("not valid as Spring's JSON")
    assert spark_value(second["value"]) == b"3"
    assert header_values(spring, "n", "int", PERMISSIVE, column(broken)).to_pylist() == [None]


def test_failfast_raises_and_permissive_tells() -> None:
    given = column([("user", b"\x05\x00"), *TYPED])
    with pytest.raises(
        RecordHeaderError, match="'user' does not fit kip-82: type long requires 8 bytes"
    ):
        header_lists(KIP, FAILFAST, given)
    first, second, *_ = header_lists(KIP, PERMISSIVE, given).to_pylist()[0]
    assert (first["key"], first["value"]) == ("user", None)
    assert first["_corrupt_record"]["reason"].startswith("type long requires 8 bytes")
    assert spark_value(second["value"]) == 7
    assert second["_corrupt_record"] is None


def test_the_last_header_of_a_key_is_the_one_that_is_meant() -> None:
    rows = column(TYPED, None, [], [("tag", None)], [("other", b"\xff")], TYPED[:2])
    found = header_values(KIP, "tag", "string", FAILFAST, rows)
    assert found.to_pylist() == ["paid", None, None, None, None, "new"]
    assert header_values(KIP, "user", "long", FAILFAST, rows).to_pylist() == [7, *[None] * 4, 7]


@pytest.mark.parametrize("kind", [SPARK, LARGE], ids=str)
def test_a_part_of_a_column_is_read_as_a_column(kind: pa.DataType) -> None:
    rows = column(TYPED, [], TYPED[:1], TYPED, kind=kind).slice(1, 2)
    assert header_values(KIP, "user", "long", FAILFAST, rows).to_pylist() == [None, 7]
    assert shown(header_lists(KIP, FAILFAST, rows)) == [[], [("user", 7)]]


def wide(value: int, bits: int) -> dict[str, Any]:
    """Return a power of two in each type that, besides the sign, has enough bits for it."""
    ints = {"byte": 8, "short": 16, "int": 32, "long": 64}
    return {"float": float(value), "double": float(value)} | {
        name: value for name, size in ints.items() if bits < size - 1
    }


FITS = [
    (Typed("boolean", True), {"boolean": True}),
    (Typed("short", 5), {"byte": 5, "short": 5, "int": 5, "long": 5, "float": 5.0, "double": 5.0}),
    (Typed("int", 300), {"short": 300, "int": 300, "long": 300, "float": 300.0, "double": 300.0}),
    (Typed("long", 2**40 + 1), {"long": 2**40 + 1, "double": 2.0**40 + 1}),
    (Typed("long", 2**63 - 1), {"long": 2**63 - 1}),
    *((Typed("long", 1 << bits), wide(1 << bits, bits)) for bits in (7, 15, 31)),
    *((Typed("long", -1 << bits), wide(-1 << bits, bits - 1)) for bits in (7, 15, 31)),
    (Typed("int", 2**24 + 1), {"int": 2**24 + 1, "long": 2**24 + 1, "double": 2.0**24 + 1}),
    (Typed("double", 1e300), {"double": 1e300}),
    (Typed("double", -math.inf), {"float": -math.inf, "double": -math.inf}),
    (Typed("float", 0.5), {"float": 0.5, "double": 0.5}),
    (Typed("double", 0.1), {"double": 0.1}),
    (Typed("string", "ab"), {"string": "ab"}),
    (Typed("char", "a"), {"string": "a", "char": "a"}),
    (Typed("char", "\ud800"), {}),
    (Typed("byte[]", b"ab"), {"byte[]": b"ab", "binary": b"ab"}),
]


@pytest.mark.parametrize(("value", "expected"), FITS, ids=repr)
def test_a_value_is_read_as_a_type_that_takes_nothing_from_it(
    value: Typed, expected: dict[str, Any]
) -> None:
    rows = column([("k", value.encode())])
    for name, kind in HEADER_TYPES.items():
        found = header_values(KIP, "k", name, PERMISSIVE, rows)
        assert found.type == kind
        assert found.to_pylist() == [expected.get(name)]
        if name not in expected:
            with pytest.raises(RecordHeaderError, match=r"expected an? .*, got"):
                header_values(KIP, "k", name, FAILFAST, rows)


def test_a_convention_without_types_takes_that_of_the_key() -> None:
    found = convention_of("kip-1308", "n", "int")
    assert header_values(found, "n", "int", FAILFAST, column([("n", b"\0\0\0\5")])).to_pylist() == [
        5
    ]
    with pytest.raises(FlexwireError, match="'char' is not a type"):
        convention_of("kip-1308", "n", "char")


def test_conventions_travel_to_workers() -> None:
    for one in CONVENTIONS.values():
        assert type(pickle.loads(pickle.dumps(one))) is type(one)  # noqa: S301 - our own
    assert pickle.loads(pickle.dumps(FixedWidth({"a": "int"}))).types == {"a": "int"}  # noqa: S301


@pytest.mark.parametrize("given", ["kip82", None, 3])
def test_a_convention_that_there_is_not_is_refused(given: Any) -> None:
    with pytest.raises(ArgumentError, match="convention: expected one of spring-json, kip-82"):
        find_convention(given)


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.list_(pa.binary()),
        pa.list_(pa.struct([("k", pa.string()), ("v", pa.binary())])),
        pa.list_(pa.struct([("key", pa.int32()), ("value", pa.binary())])),
    ],
    ids=str,
)
def test_other_columns_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(ArgumentError, match="headers: expected a column of array<struct<key"):
        header_lists(KIP, FAILFAST, pa.nulls(1, kind))


PAIRS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.none() | st.binary(max_size=12)))


@settings(max_examples=40)
@given(st.lists(st.none() | PAIRS, max_size=5), st.sampled_from(list(CONVENTIONS.values())))
def test_any_bytes_are_values_or_told_about(rows: list[Any], convention: Any) -> None:
    given = column(*rows)
    found = header_lists(convention, PERMISSIVE, given)
    found.validate(full=True)
    for row, read in zip(rows, found.to_pylist(), strict=True):
        assert [one["key"] for one in read or []] == [key for key, _ in row or []]
        for (key, data), one in zip(row or [], read or [], strict=True):
            assert (one["value"] is None) == (one["_corrupt_record"] is not None)
            if one["value"] is not None and data is not None:
                ((_, expected),) = convention.read([(key, data)])
                assert same(spark_value(one["value"]), plain(expected))
    for name, kind in HEADER_TYPES.items():
        values = header_values(convention, "a", name, PERMISSIVE, given)
        assert (len(values), values.type) == (len(rows), kind)
