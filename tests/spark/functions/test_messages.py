"""Messages in a column equal those that Kafka's Java code reads. All other bytes are refused."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from flexwire.codec import message
from flexwire.columnar import decode_messages, message_type
from flexwire.errors import ArgumentError, DecodeError, EncodeError, UnknownMessageError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.spark.functions.messages import column_type, decoded, encoded, portable
from tests.codec.vectors import has_changed, load
from tests.spark.functions.chosen import FAILFAST, PERMISSIVE, chosen

# These messages contain arrays, nested arrays, nullable structures, tagged fields, uuids and
# records.
SOME = (
    "FetchRequest",
    "MetadataResponse",
    "ApiVersionsResponse",
    "ProduceRequest",
    "FetchResponse",
)


def vectors(name: str) -> tuple[pa.Array, pa.Array]:
    some = [one for one in load()[name] if not has_changed(one)]
    return (
        pa.array([bytes.fromhex(one["hex"]) for one in some]),
        pa.array([one["version"] for one in some], pa.int16()),
    )


@pytest.mark.parametrize("name", SOME)
def test_what_kafka_wrote_comes_back_byte_for_byte(name: str) -> None:
    data, versions = vectors(name)
    assert len(data) > 5
    for options in (FAILFAST, PERMISSIVE):
        structs = decoded(name, options, data, versions)
        assert structs.type == column_type(name, options)
        assert encoded(name, options, structs, versions).equals(data)


@pytest.mark.parametrize("name", SOME)
def test_permissive_says_what_is_wrong_beside_what_is_right(name: str) -> None:
    data, versions = vectors(name)
    rows = [one if at % 3 else one[:-1] for at, one in enumerate(data.to_pylist())]
    rows[1] = None
    structs = decoded(name, PERMISSIVE, pa.array(rows, pa.binary()), versions)
    right = decode_messages(name, data, versions).to_pylist()
    for at, (row, found) in enumerate(zip(rows, structs.to_pylist(), strict=True)):
        if row is None:
            assert found is None
            continue
        told = found.pop("_corrupt_record")
        if at % 3:
            assert told is None
            assert found == right[at]
        else:
            with pytest.raises(DecodeError) as error:
                message(name).decode(row, versions[at].as_py())
            assert set(found.values()) == {None}
            assert told == {
                "reason": error.value.reason,
                "path": error.value.path,
                "offset": error.value.offset,
            }
    back = encoded(name, PERMISSIVE, structs, versions).to_pylist()
    assert back == [None if at % 3 == 0 else row for at, row in enumerate(rows)]


def test_what_did_not_decode_is_not_encoded_as_a_message_of_nulls() -> None:
    # For a message without fields, nulls could not be distinguished in the column.
    structs = decoded("ListGroupsRequest", PERMISSIVE, pa.array([b"x", b""]), 0)
    assert encoded("ListGroupsRequest", PERMISSIVE, structs, 0).to_pylist() == [None, b""]


def test_failfast_raises_what_the_reference_says() -> None:
    data, versions = vectors("FetchRequest")
    with pytest.raises(DecodeError, match=r"FetchRequest v\d+ at ") as error:
        decoded("FetchRequest", FAILFAST, pa.array([data[0].as_py()[:-1]]), versions[:1])
    assert error.value.__notes__ == ["in row 0"]


def test_a_version_is_a_number_that_the_message_has() -> None:
    data = pa.array([b"", None])
    for versions in (99, pa.array([None, 0], pa.int32())):
        with pytest.raises(UnknownMessageError):
            decoded("FetchRequest", FAILFAST, data, versions)
        first, second = decoded("FetchRequest", PERMISSIVE, data, versions).to_pylist()
        assert "version" in first["_corrupt_record"]["reason"]
        assert second is None


def test_the_field_for_errors_is_named_as_asked_for_and_no_other_has_its_name() -> None:
    kind = column_type("RequestHeader", chosen(mode="PERMISSIVE", columnNameOfCorruptRecord="Why"))
    assert [one.name for one in kind][-1] == "Why"
    with pytest.raises(ArgumentError, match="a name that no other field has, got 'client_id'"):
        column_type(
            "RequestHeader", chosen(mode="PERMISSIVE", columnNameOfCorruptRecord="client_id")
        )


def test_what_a_version_lacks_is_null_or_its_default() -> None:
    data = pa.array([message("MetadataRequest")(topics=[]).encode(1)])
    found = [
        decoded("MetadataRequest", chosen(absent=absent), data, 1).to_pylist()[0]
        for absent in ("null", "default")
    ]
    assert [one["allow_auto_topic_creation"] for one in found] == [None, True]


def test_in_failfast_the_field_for_errors_is_one_that_no_version_has() -> None:
    data, versions = vectors("FetchRequest")
    structs = decoded("FetchRequest", PERMISSIVE, data, versions)
    with pytest.raises(EncodeError, match="_corrupt_record: no version has this field"):
        encoded("FetchRequest", FAILFAST, structs, versions)


def test_spark_has_the_types_as_they_are_so_that_nothing_is_cast() -> None:
    for name in catalog().names()[::12]:
        kind = message_type(name)
        assert to_arrow_type(from_arrow_type(kind)).equals(kind), name


def test_a_message_travels_as_its_name_or_as_a_spec() -> None:
    assert portable("FetchRequest") == portable(message("FetchRequest")) == "FetchRequest"
    spec: Any = parse_spec(
        """{"type": "data", "name": "Mine", "validVersions": "0", "flexibleVersions": "0+",
        "fields": [{"name": "Text", "type": "string", "versions": "0+"}]}""",
        "Mine.json",
    )
    assert portable(spec) is spec
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301 - our own
    assert decoded(spec, FAILFAST, pa.array([b"\x03hi\x00"]), 0).to_pylist()[0]["text"] == "hi"
    with pytest.raises(UnknownMessageError, match="did you mean FetchRequest"):
        portable("FetchRequst")


@settings(max_examples=40)
@given(st.lists(st.none() | st.binary(max_size=60), max_size=20), st.integers(-2, 20))
def test_any_bytes_are_decoded_or_told_about(rows: list[bytes | None], version: int) -> None:
    found = decoded("FetchRequest", PERMISSIVE, pa.array(rows, pa.binary()), version)
    found.validate(full=True)
    for row, one in zip(rows, found.to_pylist(), strict=True):
        if row is None:
            assert one is None
        else:
            told = one.pop("_corrupt_record")
            assert (told is None) == (set(one.values()) != {None})
