"""Functions that read the message's name from a column return the same as for a fixed name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import VariantVal

from flexwire.errors import ArgumentError, EncodeError, UnknownMessageError
from flexwire.spark.functions import variant
from flexwire.spark.functions.messages import decoded
from flexwire.spark.functions.records import encoded_messages, header_lists, message_variants
from flexwire.spark.functions.variant import VARIANT, struct_variants
from tests.spark.functions.chosen import FAILFAST, PERMISSIVE
from tests.spark.functions.test_headers import TYPED, column, shown
from tests.spark.functions.test_messages import vectors

NAMES = ("FetchRequest", "MetadataResponse", "ProduceRequest")


def mixed() -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return a mixture of messages with different names."""
    each = [zip(*(one.to_pylist() for one in vectors(name)), strict=True) for name in NAMES]
    rows = [
        (data, name, version)
        for several in zip(*(list(one)[:9] for one in each), strict=True)
        for name, (data, version) in zip(NAMES, several, strict=True)
    ]
    data, names, versions = zip(*[*rows, (None, NAMES[0], 1)], strict=True)
    return pa.array(data, pa.binary()), pa.array(names), pa.array(versions, pa.int32())


def read(found: pa.StructArray) -> list[Any]:
    assert found.type == VARIANT
    return [
        None if one is None else VariantVal(one["value"], one["metadata"]).toPython()
        for one in found.to_pylist()
    ]


@pytest.mark.parametrize("options", [FAILFAST, PERMISSIVE], ids=["FAILFAST", "PERMISSIVE"])
def test_a_variant_holds_what_the_struct_holds_row_by_row(options: Any) -> None:
    data, names, versions = mixed()
    found = read(message_variants(options, data, names, versions))
    expected = [
        decoded(name.as_py(), options, data[at : at + 1], versions[at : at + 1]).to_pylist()[0]
        for at, name in enumerate(names)
    ]
    assert found == expected


def test_a_column_of_structs_is_what_each_is_by_itself() -> None:
    rows: list[Any] = [
        {"b": 1, "a": {"n": [], "s": ["x" * 300, None]}},
        {"b": None, "a": None},
        {"b": 2**40, "a": {"n": None, "s": []}},
        None,
        {"b": -1, "a": {"n": [{"z": True, "y": 0.5}] * 300, "s": ["x"]}},
    ]
    inner = pa.struct([("z", pa.bool_()), ("y", pa.float64())])
    nested = pa.struct([("n", pa.list_(inner)), ("s", pa.list_(pa.string()))])
    column = pa.array([rows[0], *rows], pa.struct([("b", pa.int64()), ("a", nested)])).slice(1)
    assert read(struct_variants(column)) == rows


def test_one_that_is_too_large_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant, "MOST", 10)
    with pytest.raises(EncodeError, match="14 bytes, but a Variant can hold at most 10"):
        struct_variants(pa.array([{"a": b"1234"}]))


def test_columns_of_no_rows_are_taken() -> None:
    nothing = (pa.array([], pa.binary()), pa.array([], pa.string()), pa.array([], pa.int32()))
    assert read(message_variants(FAILFAST, *nothing)) == []


def test_what_is_not_a_message_is_an_error_or_told_about() -> None:
    given = (pa.array([b"", None, b""]), pa.array(["Nothing", "Nothing", None]), pa.array([0] * 3))
    with pytest.raises(UnknownMessageError, match="no message 'Nothing'"):
        message_variants(FAILFAST, *given)
    first, second, third = read(message_variants(PERMISSIVE, *given))
    assert first["_corrupt_record"]["reason"].startswith("no message 'Nothing'")
    assert second is None
    assert third["_corrupt_record"]["reason"] == "expected the name of a message, got null"
    with pytest.raises(ArgumentError, match="expected a string column, got 'int64'"):
        message_variants(FAILFAST, given[0], given[2], given[2])


def test_structs_are_encoded_as_the_message_that_is_named() -> None:
    data, versions = vectors("FetchRequest")
    structs = decoded("FetchRequest", FAILFAST, data, versions)
    names = pa.array(["FetchRequest"] * len(data))
    assert encoded_messages(FAILFAST, structs, names, versions).equals(data)


def test_headers_are_read_by_the_convention_that_is_named() -> None:
    rows = column(TYPED[:1], [("user", b"x")], None)
    found = header_lists(FAILFAST, rows, pa.array(["kip-82", "utf-8", "utf-8"]))
    assert shown(found) == [[("user", 7)], [("user", "x")], None]
    with pytest.raises(ArgumentError, match="convention: expected one of"):
        header_lists(FAILFAST, rows, pa.array(["kip-82", None, "utf-8"]))
