"""Invalid Arrow arrays, and values that are not records, are refused; valid rows are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.columnar import encode_messages, encode_records, record_encoding
from flexwire.columnar.types import message_type
from flexwire.errors import CodecError, EncodeError
from flexwire.kernels import load_kernel
from flexwire.records import decode_batches
from tests.codec.made_up import made
from tests.columnar.expected import written
from tests.columnar.odd_arrays import is_valid, lists, structs, texts
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec import Message

pytestmark = pytest.mark.slow

REFUSED = "not a valid Arrow array: "
PAIR = pa.struct([("key", pa.binary()), ("value", pa.binary())])
ROWS = 4
BLOB = {"name": "Blob", "type": "bytes", "versions": "0+", "nullableVersions": "0+"}
Odd = dict[str, pa.Array]


@pytest.fixture(params=["kernels", "no kernels"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "kernels":
        assert load_kernel("records_write") is not None
        return
    monkeypatch.setattr(record_encoding, "load_kernel", lambda _: None)


def headers(count: int) -> Any:
    """Draw the record headers in a column, with keys as strings or as bytes."""
    kinds = st.sampled_from([pa.binary(), pa.string()])
    return kinds.flatmap(
        lambda kind: structs(count, {"key": texts(count, kind), "value": texts(count, pa.binary())})
    )


ODD_RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "key": texts(ROWS, pa.binary()),
        "value": texts(ROWS, pa.string()),
        "headers": lists(ROWS, headers),
    },
)


def as_bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def asked_for(batch: pa.RecordBatch) -> list[tuple[Any, ...]] | None:
    """Return the records as pyarrow reads them; None if a header or its key is null."""
    found = []
    for row in batch.to_pylist():
        pairs = row.get("headers") or []
        if any(one is None or one["key"] is None for one in pairs):
            return None
        told = [(as_bytes(one["key"]), as_bytes(one["value"])) for one in pairs]
        found.append((as_bytes(row.get("key")), as_bytes(row.get("value")), told))
    return found


def check_records(columns: Odd, first: int, each: int) -> None:
    """Check the bytes that are written from some columns against pyarrow's values."""
    whole = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sound = all(map(is_valid, columns.values()))
    expected = asked_for(whole.slice(first)) if sound else None
    found = outcome(lambda: encode_records(whole.slice(first), records_per_batch=each))
    if isinstance(found, EncodeError):
        assert expected is None
        assert found.path
    elif isinstance(found, CodecError):
        assert not sound
        assert found.reason.startswith(REFUSED)
        assert found.path.split("[")[0] in columns
    else:
        records = [one for batch in decode_batches(found) for one in batch.records]
        told = [(one.key, one.value, one.headers) for one in records]
        # In a slice, the error may be in rows that were cut off.
        assert told == expected or (first and not sound)


def outcome(encode: Callable[[], Any]) -> Any:
    """Return the result, or the error."""
    try:
        return encode()
    except CodecError as error:
        return error


@pytest.mark.long
@pytest.mark.usefixtures("engine")
@given(ODD_RECORDS.filter(bool), st.integers(0, ROWS - 1), st.integers(1, ROWS))
@settings(max_examples=times(120))
def test_records_are_those_asked_for_or_refused(columns: Odd, first: int, each: int) -> None:
    check_records(columns, first, each)


@pytest.mark.usefixtures("engine")
@given(ODD_RECORDS.filter(bool), st.integers(1, ROWS))
@settings(max_examples=times(120))
def test_records_of_no_array_are_always_refused(columns: Odd, each: int) -> None:
    check_records(columns, 0, each)


def odd_message() -> type[Message]:
    return made(
        [
            BLOB,
            {"name": "Names", "type": "[]string", "versions": "0+", "nullableVersions": "0+"},
            {
                "name": "Topics",
                "type": "[]Topic",
                "versions": "0+",
                "nullableVersions": "0+",
                "fields": [{"name": "Name", "type": "string", "versions": "0+"}],
            },
        ]
    )


ODD_MESSAGES = st.fixed_dictionaries(
    {
        "blob": texts(ROWS, pa.binary()),
        "names": lists(ROWS, lambda count: texts(count, pa.string())),
        "topics": lists(ROWS, lambda n: structs(n, {"name": texts(n, pa.string())})),
    }
)


@pytest.mark.long
@given(ODD_MESSAGES, st.sampled_from([1, 3]))
@settings(max_examples=times(120))
def test_messages_are_those_asked_for_or_refused(columns: Odd, version: int) -> None:
    message = odd_message()
    structs_ = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    sound = is_valid(structs_)
    found = outcome(lambda: encode_messages(message, structs_, version, mode="PERMISSIVE"))
    try:
        asked = [value_of(structs_, row) for row in range(ROWS)]
    except IndexError:
        assert isinstance(found, CodecError)
    if isinstance(found, CodecError):
        # A null may hide the error.
        assert not sound
        assert found.reason.startswith(REFUSED)
        return
    given_ = pa.array(asked, message_type(message)).to_pylist()
    expected = written(message, given_, [version] * ROWS)
    assert (found.values.to_pylist(), found.errors.to_pylist()) == expected


def value_of(array: pa.Array, row: int) -> Any:
    """Read a value as Arrow's format defines; raise `IndexError` for offsets outside the data."""
    if not array[row : row + 1].is_valid()[0].as_py():
        return None
    if pa.types.is_struct(array.type):
        return {one.name: value_of(array.field(one.name), row) for one in array.type}
    is_list = pa.types.is_list(array.type)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset + row :]
    data = array.values if is_list else array.buffers()[2].to_pybytes()
    start, end = map(int, offsets[:2])
    if not 0 <= start <= end <= len(data):
        raise IndexError(f"{start} to {end} of {len(data)}")
    if is_list:
        return [value_of(data, one) for one in range(start, end)]
    return data[start:end].decode() if pa.types.is_string(array.type) else data[start:end]


GOES_DOWN = pa.py_buffer(np.array([0, 3, 1, 4], np.int32))
SECOND_NULL = pa.py_buffer(b"\x05")


@pytest.mark.parametrize("name", ["blob", "names", "topics"])
def test_what_overlaps_around_a_null_is_refused(name: str) -> None:
    kind = message_type(odd_message()).field(name).type
    text = [SECOND_NULL, GOES_DOWN, pa.py_buffer(b"abcd")]
    if name == "blob":
        array = pa.Array.from_buffers(kind, 3, text)
    else:
        items = pa.nulls(4, kind.value_type)
        array = pa.Array.from_buffers(kind, 3, text[:2], children=[items])
    columns = {one.name: pa.nulls(3, one.type) for one in message_type(odd_message())} | {
        name: array
    }
    given_ = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    with pytest.raises(CodecError, match=r"not a valid Arrow array: .*non-monotonic") as caught:
        encode_messages(odd_message(), given_, 1)
    assert caught.value.path == name
    pairs_ = pa.nulls(4, PAIR)
    record = {
        "blob": ("value", array),
        "names": ("key", pa.Array.from_buffers(pa.string(), 3, text)),
        "topics": (
            "headers",
            pa.Array.from_buffers(pa.list_(PAIR), 3, text[:2], children=[pairs_]),
        ),
    }
    path, column = record[name]
    with pytest.raises(CodecError, match=r"not a valid Arrow array: .*non-monotonic") as caught:
        encode_records(pa.RecordBatch.from_arrays([column], names=[path]))
    assert caught.value.path == path


def pairs(*items: Any) -> pa.Array:
    return pa.array([list(items)], pa.list_(PAIR))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("array", "path", "reason"),
    [
        (pairs(None), "records[0].headers[0]", "expected a key and a value, got None"),
        (pairs({"key": None}), "records[0].headers[0].key", "expected bytes, got None"),
        (pa.array([[None]]), "records[0].headers[0]", "expected a key and a value, got None"),
        (pa.array([[{"key": b"a"}]]), "headers[].value", "the column is missing"),
        (
            pa.array([[{"key": b"a", "value": b"b", "x": 1}]]),
            "headers[].x",
            "record headers do not have this field, or the field is repeated",
        ),
        (pa.array([[b"a"]]), "headers[]", "expected structs, got binary"),
        (pa.array([{"key": b"a"}]), "headers", "expected a list column, got struct<key: binary>"),
        (
            pa.array([[{"key": 1, "value": b"b"}]]),
            "headers",
            "cannot convert list<item: struct<key: int64, value: binary>> to list<item: ",
        ),
    ],
)
def test_headers_that_are_none_are_refused(array: pa.Array, path: str, reason: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_records(pa.RecordBatch.from_arrays([array], names=["headers"]))
    assert caught.value.path == path
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize(
    "array",
    [
        pa.DictionaryArray.from_arrays(pa.array([9], pa.int32()), pa.array([b"a"]), safe=False),
        # The view refers to 20 bytes of a buffer that does not exist.
        pa.Array.from_buffers(
            pa.binary_view(), 1, [None, pa.py_buffer(np.array([20, 0, 7, 0], np.int32))]
        ),
    ],
    ids=["dictionary", "view"],
)
def test_what_points_outside_is_refused_before_a_cast_follows_it(array: pa.Array) -> None:
    with pytest.raises(CodecError, match="at value: not a valid Arrow array: "):
        encode_records(pa.RecordBatch.from_arrays([array], names=["value"]))
    given_ = pa.StructArray.from_arrays([array], names=["blob"])
    with pytest.raises(CodecError, match="at blob: not a valid Arrow array: "):
        encode_messages(made([BLOB]), given_, 1)


def test_a_column_given_twice_is_not_left_out() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([b"a"])] * 2, names=["value"] * 2)
    with pytest.raises(EncodeError, match="at value: 2 columns have this name"):
        encode_records(twice)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "array",
    [
        pa.array([[(b"k", b"v")], None], pa.map_(pa.binary(), pa.binary())),
        pa.array([[{"key": b"k", "value": b"v"}], None], pa.large_list(PAIR)),
        pa.array([[{"key": b"k", "value": b"v"}], None], pa.list_(PAIR, 1)),
        pa.array([[{"value": "v", "key": "k"}], []]),
        pa.array([[{"value": b"v", "key": b"k"}], None]),
    ],
    ids=lambda array: str(array.type),
)
def test_headers_in_other_columns_are_the_same(array: pa.Array) -> None:
    batch = pa.RecordBatch.from_arrays([array], names=["headers"])
    [made_] = decode_batches(encode_records(batch))
    assert [one.headers for one in made_.records] == [[(b"k", b"v")], []]
    for empty in (batch.slice(0, 0), batch.slice(2)):
        assert encode_records(empty) == b""
    assert encode_records(pa.table({"headers": pa.chunked_array([array, array])})) != b""


@pytest.mark.usefixtures("engine")
def test_columns_without_rows_or_values_write_nothing_or_nulls() -> None:
    none = pa.nulls(2)
    names = ["key", "value", "headers", "timestamp"]
    batch = pa.RecordBatch.from_arrays([none] * 4, names=names)
    [made_] = decode_batches(encode_records(batch))
    found = [(one.key, one.value, one.headers, one.timestamp) for one in made_.records]
    assert found == [(None, None, [], -1)] * 2
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.list_(PAIR))], names=["headers"])
    assert encode_records(empty) == b""
