"""Every public function, called with each invalid argument, raises flexwire's error or works.

These tests call a public function a door. Each invalid argument in the table is passed for each
parameter of each door, while the other arguments are valid. The call raises a `FlexwireError`,
unless the parameter accepts the argument. The call never raises another exception or returns an
unexpected result.
"""

from __future__ import annotations

import math
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import flexwire
from flexwire import columnar, records, wire
from flexwire.capture.messages import read_messages
from flexwire.codec import explain
from flexwire.errors import ArgumentError, EncodeError, FlexwireError
from flexwire.records import Headers, Record, Typed, TypedDialect, kip82
from flexwire.schema.catalog import use_catalog
from flexwire.schema.parse import parse_spec
from flexwire.wire import Encoding, TagForm
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER: Any = flexwire.message("RequestHeader")
GOOD = HEADER(request_api_key=3, correlation_id=7, client_id="ping")
DATA = GOOD.encode(1)
BATCH = records.encode_batch([Record(0, 0, b"k", b"v")])
COLUMN = pa.array([DATA, None])
STRUCTS = columnar.decode_messages("RequestHeader", COLUMN, 1)
ROWS = columnar.decode_records(BATCH)
SPEC_TEXT = """{"name": "Ping", "type": "data", "validVersions": "0", "flexibleVersions": "none",
  "fields": [{"name": "SentAt", "type": "int64", "versions": "0+"}]}"""
SPEC = parse_spec(SPEC_TEXT, "Ping.json")
SPECS = flexwire.SpecSet({"Ping": SPEC})


def _endless() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


class _Broken:
    """An object that no function can use, and that cannot be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


WRONG: dict[str, Any] = {
    "None": None,
    "True": True,
    "2.0": 2.0,
    "nan": math.nan,
    "-1": -1,
    "1": 1,
    "99": 99,
    "huge": 10**30,
    "-huge": -(10**5000),
    "int64": np.int64(1),
    "float64": np.float64(1),
    "text": "x",
    "digits": "12",
    "empty text": "",
    "surrogate": "\udc80",
    "nul": "\0",
    "bytes": b"x",
    "no bytes": b"",
    "bytearray": bytearray(b"x"),
    "strided": memoryview(b"abcd")[::2],
    "ints": array("i", [1]),
    "list": ["x"],
    "empty list": [],
    "bytes list": [b""],
    "endless": _endless(),
    "dict": {"a": 1},
    "empty dict": {},
    "tuple": (1, 2),
    "set": {1},
    "object": object(),
    "broken": _Broken(),
    "class": int,
    "function": len,
    "array": pa.array([1]),
    "Path": Path("no such file"),
}


# The invalid arguments that each kind of parameter accepts.
INTS = {"1", "99", "int64"}
BYTES = {"bytes", "no bytes", "bytearray", "strided", "ints"}
RAW = BYTES - {"ints"}
TEXTS = {"text", "digits", "empty text", "surrogate", "nul"}
IN_UTF8 = TEXTS - {"surrogate"}
NUMBERS = {"-1", "1", "99"}
FLOATS = {"2.0", "nan", "-1", "1", "99", "huge", "int64", "float64"}


class Door(NamedTuple):
    """A public callable: a valid argument for each parameter, and accepted invalid arguments."""

    call: Callable[..., Any]
    parameters: dict[str, tuple[Any, set[str]]]


VERSION = {"version": (1, {"1", "int64"})}
READING: dict[str, tuple[Any, set[str]]] = {
    "data": (DATA, set()),
    **VERSION,
    "lenient": (False, {"True"}),
    "encoding": (Encoding.KAFKA, set()),
}
COLUMNAR: dict[str, tuple[Any, set[str]]] = {
    "message": ("RequestHeader", set()),
    "versions": (1, {"1", "int64", "tuple"}),
    "encoding": (Encoding.KAFKA, set()),
    "mode": ("FAILFAST", set()),
}
BATCHES = {
    "data": (BATCH, BYTES),
    "check_crc": (True, {"True"}),
    "max_inflated": (1000, INTS),
}
RANGES = {"offsets": ((None, None), {"tuple"}), "timestamps": ((None, None), {"tuple"})}
RECORD = {
    "offset": (0, NUMBERS),
    "timestamp": (0, NUMBERS),
    "key": (b"k", {"None"} | RAW),
    "value": (b"v", {"None"} | RAW),
    "headers": ([], {"empty list"}),
}
FIELDS = [
    *("base_timestamp", "max_timestamp", "partition_leader_epoch", "producer_id"),
    *("producer_epoch", "base_sequence"),
]
FLAGS = ("is_transactional", "is_control", "has_delete_horizon")
PUTS: dict[str, tuple[Any, set[str]]] = {
    "boolean": (True, {"True"}),
    "byte": (1, NUMBERS | {"int64"}),
    "char": ("a", {"text", "surrogate", "nul"}),
    "short": (1, NUMBERS | {"int64"}),
    "integer": (1, NUMBERS | {"int64"}),
    "long": (1, NUMBERS | {"int64"}),
    "float": (1.0, FLOATS),
    "double": (1.0, FLOATS),
    "string": ("a", IN_UTF8),
    "bytes": (b"a", RAW),
}
COMMIT_KEY = bytes.fromhex("0001 000167 000174 00000007")
TYPED = Typed("long", 7).encode()
INT32_SCHEMA = wire.Schema(wire.Field("a", wire.INT32))


def _put(type_: str) -> Door:
    def put(key: Any, value: Any) -> None:
        getattr(Headers(), f"put_{type_}")(key, value)

    return Door(put, {"key": ("a", IN_UTF8), "value": PUTS[type_]})


def _encoded(**fields: Any) -> bytes:
    return records.encode_batch([Record(**fields)])


DOORS = {
    "message": Door(
        flexwire.message, {"name": ("RequestHeader", set()), "release": ("4.0", {"None"})}
    ),
    "load_specs": Door(
        flexwire.load_specs, {"paths": (kip82.SPECS, set()), "mode": ("kip", set())}
    ),
    "decode_key": Door(
        flexwire.decode_key,
        {
            "topic": ("__consumer_offsets", set()),
            "key": (COMMIT_KEY, set()),
            "release": (None, {"None"}),
        },
    ),
    "decode_value": Door(
        flexwire.decode_value,
        {
            "topic": ("__consumer_offsets", set()),
            "key": (COMMIT_KEY, set()),
            "value": (None, {"None"}),
            "release": (None, {"None"}),
        },
    ),
    "use_catalog": Door(use_catalog, {"root": (None, {"None"})}),
    "SpecSet": Door(flexwire.SpecSet, {"specs": ({"Ping": SPEC}, {"empty dict"})}),
    "SpecSet.spec": Door(SPECS.spec, {"name": ("Ping", set())}),
    "SpecSet.message": Door(SPECS.message, {"name": ("Ping", set())}),
    "decode": Door(HEADER.decode, READING),
    "decode_prefix": Door(HEADER.decode_prefix, {**READING, "offset": (0, set())}),
    "encode": Door(GOOD.encode, {**VERSION, "encoding": (Encoding.KAFKA, set())}),
    "decoder": Door(HEADER.decoder, VERSION),
    "decoder()": Door(HEADER.decoder(1), {"data": (DATA, set())}),
    "encoder": Door(HEADER.encoder, VERSION),
    # A mapping without fields stands for a message that contains only default values.
    "encoder()": Door(HEADER.encoder(1), {"value": (GOOD, {"empty dict"})}),
    "to_json": Door(GOOD.to_json, VERSION),
    "from_json": Door(HEADER.from_json, {"obj": (GOOD.to_json(1), set()), **VERSION}),
    "text": Door(
        lambda value: HEADER(client_id=value).encode(1), {"value": ("a", {"None"} | IN_UTF8)}
    ),
    "explain": Door(explain, {**READING, "data": (DATA, BYTES), "message": (HEADER, set())}),
    "decode_records": Door(records.decode_records, BATCHES),
    "decode_batches": Door(
        lambda **given: [one.records for one in records.decode_batches(**given)], BATCHES
    ),
    "encode_batch": Door(
        records.encode_batch,
        {
            "records": ([Record(0, 0, b"k", b"v")], {"empty list"}),
            "magic": (2, set()),
            "compression": ("none", set()),
            "level": (None, {"None"}),
            "timestamp_type": ("CreateTime", set()),
            "base_offset": (0, {"None", "-1"}),
            "last_offset": (0, {"None", "1", "99"}),
            **dict.fromkeys(FIELDS, (0, NUMBERS | {"None"})),
            **{name: (False, {"True"}) for name in FLAGS},
        },
    ),
    "compressed": Door(
        lambda level: records.encode_batch([], compression="gzip", level=level),
        {"level": (None, {"None", "1", "int64"})},
    ),
    "RecordBatch.encode": Door(
        lambda **given: next(records.decode_batches(BATCH)).encode(**given),
        {"records": (None, {"None", "empty list"}), "level": (None, {"None"})},
    ),
    "Record": Door(_encoded, RECORD),
    "Headers": Door(
        Headers, {"header_bytes": (b"", BYTES), "dialect": (TypedDialect.DOCUMENT, set())}
    ),
    "Headers.put": Door(
        lambda **given: Headers().put(**given),
        {"key": ("a", IN_UTF8), "value": (Typed("long", 7), set())},
    ),
    "Headers.get": Door(Headers().get, {"key": ("a", TEXTS)}),
    "Headers.get_objects": Door(
        Headers().get_objects, {"key": ("a", TEXTS), "deserializer": (bytes, {"class", "function"})}
    ),
    "Headers.get_typed": Door(Headers().get_typed, {"key": ("a", TEXTS)}),
    "in Headers": Door(lambda key: key in Headers(), {"key": ("a", TEXTS | {"tuple"})}),
    **{f"put_{type_}": _put(type_) for type_ in PUTS},
    "typed_headers": Door(
        records.typed_headers,
        {
            "pairs": ([("a", TYPED)], {"None", "empty list", "empty dict"}),
            "dialect": (TypedDialect.DOCUMENT, set()),
        },
    ),
    "pair": Door(
        lambda key, value: records.typed_headers([(key, value)]),
        {"key": ("a", IN_UTF8 | {"bytes", "no bytes", "bytearray"}), "value": (TYPED, set())},
    ),
    "pairs": Door(lambda pair: records.typed_headers([pair]), {"pair": (("a", TYPED), set())}),
    "Typed": Door(Typed, {"type": ("long", set()), "value": (7, NUMBERS | {"int64"})}),
    "Typed.encode": Door(Typed("long", 7).encode, {"dialect": (TypedDialect.EARLIER, set())}),
    "Typed.decode": Door(
        Typed.decode, {"data": (TYPED, set()), "dialect": (TypedDialect.DOCUMENT, set())}
    ),
    "kip82.decode_message_set": Door(
        lambda **given: list(kip82.decode_message_set(**given)),
        {**BATCHES, "data": (b"", BYTES), "dialect": (TypedDialect.DOCUMENT, set())},
    ),
    "kip82.encode_message_set": Door(
        kip82.encode_message_set,
        {
            "messages": ([], {"empty list"}),
            "compression": ("gzip", set()),
            "level": (None, {"None", "1", "int64"}),
        },
    ),
    "kip82.down_convert": Door(kip82.down_convert, {"data": (b"", {"no bytes"})}),
    "kip82.up_convert": Door(kip82.up_convert, {"data": (b"", {"no bytes"})}),
    "message_type": Door(columnar.message_type, {"message": ("RequestHeader", set())}),
    "columnar.decode_messages": Door(
        columnar.decode_messages, {**COLUMNAR, "data": (COLUMN, set()), "absent": ("null", set())}
    ),
    "columnar.encode_messages": Door(
        columnar.encode_messages, {**COLUMNAR, "structs": (STRUCTS, set())}
    ),
    "columnar.message_sizes": Door(
        columnar.message_sizes, {**COLUMNAR, "structs": (STRUCTS, set())}
    ),
    # Without `partial`, bytes that are too short for a batch count as damage.
    "columnar.decode_records": Door(
        lambda data, *, partial=True, **given: columnar.decode_records(
            data, partial=partial, **given
        ),
        {**BATCHES, **RANGES, "columns": (("key",), set()), "partial": (True, {"True"})},
    ),
    "an end": Door(
        lambda first: columnar.decode_records(BATCH, offsets=(first, None)),
        {"first": (None, NUMBERS | {"None", "int64"})},
    ),
    "columnar.RecordReader": Door(
        lambda *, partial=True, **given: list(columnar.RecordReader(partial=partial, **given)),
        {
            "data": (BATCH, BYTES),
            "wanted": (columnar.RecordSelection(), set()),
            "mode": ("FAILFAST", set()),
            "partial": (True, {"True"}),
        },
    ),
    "columnar.encode_records": Door(
        columnar.encode_records,
        {
            "rows": (ROWS, set()),
            "records_per_batch": (10, INTS),
            "compression": ("none", set()),
            "level": (None, {"None"}),
            "timestamp_type": ("CreateTime", set()),
        },
    ),
    "wire.Field": Door(wire.Field, {"name": ("a", TEXTS), "type": (wire.INT32, set())}),
    "wire.Schema": Door(
        wire.Schema,
        {
            "optional_fields": ({}, {"None", "empty dict"}),
            "form": (TagForm.SECTION, set()),
            "name": ("structure", TEXTS),
        },
    ),
    "a field": Door(
        lambda given: wire.Schema(given, name="s"), {"given": (wire.Field("a", wire.INT32), set())}
    ),
    "wire.Schema.encode": Door(INT32_SCHEMA.encode, {"value": ({"a": 1}, {"dict"})}),
    "wire.Schema.decode": Door(
        INT32_SCHEMA.decode, {"data": (bytes(4), {"ints"}), "lenient": (False, {"True"})}
    ),
    "wire.TaggedFields": Door(
        wire.TaggedFields,
        {"fields": ({}, {"None", "empty dict"}), "form": (TagForm.SECTION, set())},
    ),
    "wire.TagSection": Door(wire.TagSection, {"fields": ({}, {"None", "empty dict"})}),
    "wire.ArrayOf": Door(wire.ArrayOf, {"element": (wire.INT32, set())}),
    "wire.CompactArrayOf": Door(wire.CompactArrayOf, {"element": (wire.INT32, set())}),
    "wire.CompactArray": Door(
        wire.CompactArray, {"name": ("a", TEXTS), "element": (wire.INT32, set())}
    ),
    "read_messages": Door(
        lambda paths: list(read_messages(paths)), {"paths": ([], {"empty list"})}
    ),
}


def _open(name: str, given: dict[str, Any]) -> Any:
    # Kernel functions accept no keyword arguments.
    if name.endswith("()"):
        return DOORS[name].call(*given.values())
    return DOORS[name].call(**given)


@each("name", [*DOORS])
def test_a_door_opens_to_right_arguments(name: str) -> None:
    door = DOORS[name]
    _open(name, {one: good for one, (good, _) in door.parameters.items()})


@each("name", [*DOORS])
def test_a_door_gives_an_error_of_its_own_to_wrong_ones(name: str) -> None:
    door = DOORS[name]
    good = {one: right for one, (right, _) in door.parameters.items()}
    for parameter, (_, taken) in door.parameters.items():
        took, told = set(), list[str]()
        for wrong, value in WRONG.items():
            given = {**good, parameter: value}
            try:
                _open(name, given)
            except FlexwireError as error:
                told.append(str(error))
            else:
                took.add(wrong)
        assert took == taken, parameter
        assert all(told)


@pytest.mark.parametrize("version", [True, 2.0, np.float64(2), np.True_, "2", None, 1j])
def test_what_equals_a_version_is_none(version: Any) -> None:
    for one in (HEADER, SPECS.message("Ping")):
        calls = (one().encode, one().to_json, one.decoder, one.encoder)
        for call in (*calls, lambda version, one=one: one.decode(b"", version)):
            with pytest.raises(ArgumentError, match=r"^version: expected an int, got "):
                call(version)
    # Versions that were used before are tried too.
    assert HEADER.decode(GOOD.encode(2), np.int64(2)) == HEADER.decode(GOOD.encode(2), 2)


def test_a_wrong_argument_is_python_s_own_error_as_well() -> None:
    for kind in (FlexwireError, TypeError, ValueError):
        with pytest.raises(kind, match=r"^mode: expected 'FAILFAST' or 'PERMISSIVE', got 'x'$"):
            columnar.decode_messages("RequestHeader", COLUMN, 1, mode="x")  # type: ignore[call-overload]  # it is the wrong one


def test_columns_are_named_and_there_is_one_at_least() -> None:
    with pytest.raises(ArgumentError, match="columns: expected at least one, got "):
        columnar.decode_records(BATCH, columns=[])
    with pytest.raises(ArgumentError, match=r"columns: expected names of offset, .*, got 'keys'"):
        columnar.decode_records(BATCH, columns=["keys"])
    with pytest.raises(ArgumentError, match="columns: expected a list of column names, got 'key'"):
        columnar.decode_records(BATCH, columns="key")


@pytest.mark.parametrize(
    "versions",
    [["1", "1"], [True, 1], [1.0, 1], np.array([1.0, 1.0]), pa.array([True, False]), [1], [[1], 1]],
)
def test_the_versions_of_rows_are_integers_and_one_for_each(versions: Any) -> None:
    for call, given in ((columnar.decode_messages, COLUMN), (columnar.encode_messages, STRUCTS)):
        with pytest.raises(ArgumentError, match=r"^versions?: expected "):
            call("RequestHeader", given, versions)
    right = columnar.decode_messages("RequestHeader", COLUMN, np.array([1, 1], np.uint8))
    assert right == STRUCTS
    assert columnar.decode_messages("RequestHeader", COLUMN, [np.int16(1), 1]) == STRUCTS


@pytest.mark.parametrize("release", [None, "4.0"])
def test_an_attribute_that_was_deleted_is_named(release: str | None) -> None:
    fetch: Any = flexwire.message("FetchRequest", release)
    whole = fetch(topics=[fetch.FetchTopic(partitions=[fetch.FetchPartition()])])
    del whole.topics[0].partitions[0].fetch_offset
    encoder = fetch.encoder(12)
    where = r"FetchRequest v12 at topics\[0\].partitions\[0\].fetchOffset: .* deleted"
    for call, given in ((whole.encode, 12), (whole.to_json, 12), (encoder, whole)):
        with pytest.raises(EncodeError, match=where):
            call(given)
    assert "FetchTopic" in repr(whole)


def test_values_that_have_no_end_are_refused() -> None:
    fetch: Any = flexwire.message("FetchRequest")
    endless = _endless()
    for wrong in (endless, [endless], {"a": endless}):
        with pytest.raises(EncodeError):
            fetch(topics=wrong).encode(12)
        with pytest.raises(FlexwireError):
            fetch.from_json(wrong, 12)
        with pytest.raises(EncodeError):
            HEADER(client_id=wrong).encode(1)


def test_a_key_is_in_headers_and_a_pair_is() -> None:
    headers = Headers()
    headers.put("user", Typed("long", 7))
    assert "user" in headers
    assert ("user", Typed("long", 7)) in headers
    assert "other" not in headers
    assert ("user", Typed("int", 7)) not in headers
    with pytest.raises(ArgumentError):
        b"user" in headers  # noqa: B015 - asking for it raises


def test_a_record_needs_no_headers_and_shares_none() -> None:
    first, second = Record(0, 0, None, None), Record(1, 0, None, None)
    assert first.headers == []
    first.headers.append((b"a", b"b"))
    assert second.headers == []


def test_every_public_function_is_a_door() -> None:
    names = {f"columnar.{one}" for one in columnar.__all__ if callable(getattr(columnar, one))}
    names |= {one for one in flexwire.__all__ if callable(getattr(flexwire, one))}
    names |= {one for one in records.__all__ if callable(getattr(records, one))}
    names |= {f"kip82.{one}" for one in kip82.__all__ if callable(getattr(kip82, one))}
    # These classes have no parameters to test: enums, and classes that flexwire makes or executors
    # return.
    names -= {
        "kernel_status",
        "kernels",
        "load_kernels",
        "Compression",
        "TimestampType",
        "TypedDialect",
        "ValueType",
    }
    names -= {"BatchIterator", "PartialBatch", "RecordBatch", "kip82.Kip82Message"}
    names -= {"kip82.MessageIterator", "kip82.ConsumerRecord", "kip82.ProducerRecord"}
    names -= {"RecordHeader", "columnar.PermissiveResult", "columnar.RecordSelection"}
    # `encode_records` joins these pieces; `message_type` is listed without its package.
    names -= {"columnar.encode_record_pieces", "columnar.message_type"}
    assert names <= set(DOORS)
