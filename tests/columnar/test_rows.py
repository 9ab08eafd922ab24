"""Rows written by people: nulls anywhere, numbers out of range, tags in any order,
extra columns.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import pyarrow as pa
import pytest

from flexwire.codec import Encoding, message
from flexwire.codec.samples import random_message
from flexwire.columnar import decode_messages, encode_messages, message_sizes, message_type
from flexwire.errors import CodecError, EncodeError
from flexwire.schema.catalog import catalog
from tests.codec.made_up import made as made_up
from tests.columnar.expected import decoded, same, written
from tests.columnar.test_encoding import check_written

ODD: dict[Any, list[Any]] = {
    pa.string(): [None, "", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAR", "x" * 32_768],
    pa.int32(): [None, 0, -1, 65_536, 2**31 - 1],
    pa.int64(): [None, 0, -1, 2**32, 2**63 - 1],
    pa.float64(): [None, 0.0, float("nan")],
}
TAGS: list[Any] = [
    [{"tag": 9, "data": b"x"}, {"tag": 7, "data": b""}],
    [{"tag": 7, "data": b"x"}, {"tag": 7, "data": b"y"}],
    [{"tag": -1, "data": b"x"}],
    [{"tag": 0, "data": b"x"}],
    [{"tag": 2**31, "data": b"x"}],
    [{"tag": None, "data": b"x"}],
    [{"tag": 9, "data": None}],
    [None],
    None,
]


def change(value: Any, kind: pa.DataType, source: random.Random) -> Any:
    """Replace a random part of a value with an odd value of that part's type."""
    if pa.types.is_struct(kind) and value is not None and source.random() < 0.95:
        name = source.choice([one.name for one in kind])
        if name == "unknown_tagged_fields":
            return value | {name: source.choice(TAGS)}
        return value | {name: change(value[name], kind.field(name).type, source)}
    if pa.types.is_list(kind) and value and source.random() < 0.9:
        at = source.randrange(len(value))
        return [*value[:at], change(value[at], kind.value_type, source), *value[at + 1 :]]
    return source.choice(ODD.get(kind, [None]))


@pytest.mark.long
@pytest.mark.slow
def test_odd_values_are_written_or_refused_as_by_the_reference(slow_path: None) -> None:
    del slow_path
    source = random.Random(0)
    refused = rows_seen = 0
    for name in catalog().names():
        made, entry, kind = message(name), catalog().entry(name), message_type(name)
        version = source.choice([*entry.versions])
        raws = [random_message(made, version, seed).encode(version) for seed in range(12)]
        sound = decode_messages(name, pa.array(raws), version).to_pylist()
        rows = [change(row, kind, source) for row in sound]
        structs = pa.array(rows, kind)
        # The rows are written twice: whole, and as a slice, which has other offsets in Arrow.
        rows = structs.to_pylist()
        refused += check_written(name, structs, rows, [version] * 12, source.choice(list(Encoding)))
        check_written(
            name, structs.slice(3, 7), rows[3:10], [version] * 7, source.choice(list(Encoding))
        )
        rows_seen += len(rows)
    assert 300 < refused < rows_seen


def headers(**changes: Any) -> dict[str, Any]:
    return {"request_api_key": 3, "request_api_version": 1, "correlation_id": 7} | changes


def test_other_types_of_column_are_taken_where_nothing_is_lost() -> None:
    rows = [headers(client_id="ping")]
    kind = pa.struct(
        [
            ("client_id", pa.dictionary(pa.int8(), pa.string())),
            ("correlation_id", pa.int64()),
            ("request_api_key", pa.uint8()),
            ("request_api_version", pa.int16()),
        ]
    )
    found = encode_messages("RequestHeader", pa.array(rows, kind), 2)
    made = message("RequestHeader")(**rows[0])
    assert found.to_pylist() == [made.encode(2)]
    assert message_sizes("RequestHeader", pa.array(rows, kind), 2).to_pylist() == [
        len(found[0].as_py())
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"correlation_id": 2**40}, "cannot convert int64 to int32"),
        ({"client": "ping"}, "at client: no version has this field"),
        ({"client_id": 5}, None),
        ({"client_id": [1]}, "to string"),
        ({"unknown_tagged_fields": 5}, "expected a list column, got int64"),
    ],
)
def test_other_columns_are_refused(changes: dict[str, Any], reason: str | None) -> None:
    structs = pa.array([{"client_id": "ping"} | headers(**changes)])
    if reason is None:
        assert encode_messages("RequestHeader", structs, 2).null_count == 0
        return
    with pytest.raises(EncodeError, match=reason):
        encode_messages("RequestHeader", structs, 2)


def test_a_column_may_be_missing_only_where_no_version_asked_for_has_it() -> None:
    structs = pa.array([headers()])
    assert encode_messages("RequestHeader", structs, 0)[0].as_py() == bytes.fromhex(
        "0003 0001 00000007"
    )
    with pytest.raises(EncodeError, match="at client_id: the column is missing"):
        encode_messages("RequestHeader", structs, 1)


def test_text_that_is_none_is_refused() -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    names = ["request_api_key", "request_api_version", "correlation_id", "client_id"]
    numbers = [pa.array([1], pa.int16()), pa.array([1], pa.int16()), pa.array([1], pa.int32())]
    structs = pa.StructArray.from_arrays([*numbers, text], names)
    with pytest.raises(CodecError, match=r"not a valid Arrow array: .*UTF8"):
        encode_messages("RequestHeader", structs, 2)


def test_threads_share_a_program() -> None:
    made = message("MetadataResponse")
    rows = [random_message(made, 12, seed).encode(12) for seed in range(200)]
    expected, _ = decoded("MetadataResponse", rows, [12] * 200)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(20):
            try:
                found = decode_messages("MetadataResponse", pa.array(rows), 12)
                same(found, expected)
                assert encode_messages("MetadataResponse", found, 12).to_pylist() == rows
            except BaseException as error:  # noqa: BLE001 - the test reports any error
                wrong.append(error)

    team = [threading.Thread(target=work) for _ in range(4)]
    for one in team:
        one.start()
    for one in team:
        one.join()
    assert wrong == []


@pytest.mark.parametrize("default", ["0", "-0.0", "NaN", "1.5"])
@pytest.mark.parametrize("version", [0, 2])
def test_a_double_is_its_default_as_numbers_compare(default: str, version: int) -> None:
    one = {"name": "Ratio", "type": "float64", "versions": "2+", "default": default}
    made: Any = made_up([one | {"tag": 0, "taggedVersions": "2+"}])
    values = [0.0, -0.0, float("nan"), 1.5]
    rows = [{"ratio": value, "unknown_tagged_fields": []} for value in values]
    structs = pa.array(rows, message_type(made))
    found = encode_messages(made, structs, version, mode="PERMISSIVE").values.to_pylist()
    expected, _ = written(made, rows, [version] * 4)
    assert found == expected
    left_out = sum(raw in {b"", b"\x00"} for raw in found)
    assert left_out == {"0": 2, "-0.0": 2, "NaN": 0, "1.5": 1}[default]


def test_the_tag_of_another_version_s_field_is_refused_both_ways() -> None:
    one = {"name": "Size", "type": "int8", "versions": "2+", "tag": 4, "taggedVersions": "3+"}
    made: Any = made_up([one])
    raws = [b"\x07\x01\x04\x01\x09", b"\x07\x01\x05\x01\x09", b"\x07\x00"]
    expected, errors = decoded(made, raws, [2] * 3)
    assert [error is None for error in errors] == [False, True, True]
    found = decode_messages(made, pa.array(raws), 2, mode="PERMISSIVE")
    assert found.errors.to_pylist() == errors
    same(found.values, expected)
    rows = [{"size": 7, "unknown_tagged_fields": [{"tag": tag, "data": b"x"}]} for tag in (4, 5)]
    assert (
        check_written(made, pa.array(rows, message_type(made)), rows, [2] * 2, Encoding.KAFKA) == 1
    )
