"""Whatever the bytes are, records of internal topics in columns equal the reference's records."""

from __future__ import annotations

import base64
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.codec import message
from flexwire.columnar import reference as columnar_rows
from flexwire.columnar.objects import message_column
from flexwire.columnar.types import message_type
from flexwire.errors import ArgumentError, CodecError, UnknownMessageError
from flexwire.protocol.internal_topics import InternalTopic, TypedMessage, decode_key, decode_value
from flexwire.schema.message_schemas import schemas_of
from flexwire.tables.typed_records import (
    HEAD_COLUMNS,
    Records,
    TypedRecords,
    fields_there,
    record_names,
)
from flexwire.wire.encoding import Encoding
from tests.capture.log_vectors import BASE, vectors
from tests.columnar.chosen_fields import kept, paths
from tests.protocol.test_record_types import BY_MODULE, RECORDS, int16, keys_of, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = tuple[bytes | None, bytes | None]

OFFSETS, TRANSACTIONS, METADATA, REMOTE_LOG, SHARE_STATE = InternalTopic


def real_records(topic: InternalTopic) -> list[Row]:
    """Return the topics' records that brokers wrote for the vectors, and every
    release's vectors.
    """
    found = vectors().get(f"{topic.topic}-0/{BASE}.log", {"records": [], "batches": []})
    batches = [range(one[3], one[4] + 1) for one in found["batches"] if one[12]]
    control = {offset for batch in batches for offset in batch}
    rows = [
        (unpacked(one["key"]), unpacked(one["value"]))
        for one in found["records"]
        if one["offset"] not in control
    ]
    for release, vector in RECORDS:
        if BY_MODULE[vector.module] is not topic or vector.message.endswith("Key"):
            continue
        if topic.has_keys:
            key = keys_of(release)[vector.message]
            body = int16(vector.version) + vector.raw
            rows.append((int16(type_of(key)) + key.raw, body))
            rows.append((int16(type_of(key)) + key.raw, None))
        else:
            api_key = schemas_of(vector.message).entry.api_key  # type: ignore[attr-defined] # of a catalog
            rows.append((None, bytes([1, api_key, vector.version]) + vector.raw))
    return [*dict.fromkeys(rows)]


def unpacked(content: str | None) -> bytes | None:
    return None if content is None else base64.b64decode(content)


def damaged(row: Row, chance: random.Random) -> Row:
    """Draw a key or value that is cut, lengthened, changed or missing."""
    sides = [*row]
    at = chance.randrange(2)
    data = bytearray(sides[at] or b"")
    match chance.randrange(5):
        case 0:
            del data[chance.randint(0, len(data)) :]
        case 1:
            data += b"\0"
        case 2:
            sides[at] = None
            return sides[0], sides[1]
        case 3 if data:
            data[chance.randrange(min(4, len(data)))] = chance.randrange(256)
        case _ if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    sides[at] = bytes(data)
    return sides[0], sides[1]


def column_of(one: TypedMessage | None) -> Any:
    """Return a message as the objects convert it to a row of a column."""
    if one is None:
        return None
    schema = schemas_of(one.name, one.release).schema(one.version, Encoding.KAFKA)
    made = message_column(schema, message_type(one.name), [one.message])
    return made[0].as_py()


def expected(topic: InternalTopic, row: Row) -> dict[str, Any]:
    """Return the reference's value for a valid record, by the record's name; otherwise, its error.

    A field that an older release's layout lacks may be null or missing.
    """
    try:
        key = decode_key(topic, row[0])
        value = decode_value(topic, key, row[1])
    except (CodecError, UnknownMessageError) as error:
        return {"error": str(error)}
    told = value or key
    assert told is not None
    made = column_of(value)
    if key is not None:
        made = {"key": column_of(key), "value": made}
    name = told.name if key is None else key.name.removesuffix("Key")
    releases = [one.release for one in (value, key) if one is not None and one.release]
    return {
        "error": None,
        "type": told.type,
        "message": name,
        "version": None if value is None else value.version,
        "release": releases[0] if releases else None,
        "is_tombstone": value is None,
        name: made,
    }


def decoded(topic: InternalTopic, rows: Sequence[Row], records: Records) -> pa.RecordBatch:
    typed = TypedRecords(topic, records)
    keys, values = (pa.array([row[at] for row in rows], pa.binary()) for at in range(2))
    return pa.RecordBatch.from_arrays(typed.decode(keys, values, None), schema=typed.schema)


def without_nulls(value: Any) -> Any:
    """Return a value without null fields, because a wider type has more of them."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def check(topic: InternalTopic, rows: Sequence[Row]) -> int:
    """Compare columns with the reference. Return the number of errors."""
    names = sorted(record_names(topic))
    found = decoded(topic, rows, names)
    found.validate(full=True)
    errors = 0
    for row, one in zip(rows, found.to_pylist(), strict=True):
        want = expected(topic, row)
        errors += want["error"] is not None
        structs = {name: one.pop(name) for name in names}
        there = {name: made for name, made in structs.items() if made is not None}
        assert {name: one[name] for name in want if name in one} == {
            name: value for name, value in want.items() if name in one
        }
        assert without_nulls(there) == without_nulls(
            {name: value for name, value in want.items() if name in structs}
        )
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("topic", InternalTopic)
def test_records_of_every_release_are_what_the_reference_says(topic: InternalTopic) -> None:
    rows = real_records(topic)
    assert len(rows) >= 10
    assert check(topic, rows) == 0


@pytest.mark.slow
@pytest.mark.parametrize("topic", InternalTopic)
def test_damaged_bytes_are_errors_of_the_reference_or_what_it_says(topic: InternalTopic) -> None:
    chance, rows = random.Random(17), real_records(topic)
    hostile: list[Row] = [damaged(chance.choice(rows), chance) for _ in range(400)]
    hostile += [(None, None), (b"", b""), (b"\0", b"\0"), (b"\xff\xff", b"\1\xff"), (b"", None)]
    # Frames whose varints take more bytes than necessary, or encode an impossible value.
    hostile += [(None, b"\x81\0\2\0"), (None, b"\1\x82\0\0"), (None, b"\1\xff\1\0")]
    errors = check(topic, hostile)
    assert 100 < errors < len(hostile)


def test_without_kernels_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar_rows, "load_kernel", lambda _: None)
    assert check(OFFSETS, real_records(OFFSETS)[:60]) == 0


def test_what_is_ordinary_is_left_to_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("read by the reference")

    key = int16(1) + message("OffsetCommitKey")().encode(0)
    value = int16(3) + message("OffsetCommitValue")().encode(3)
    monkeypatch.setattr("flexwire.tables.typed_records.decode_key", fail)
    other = int16(2) + message("GroupMetadataKey")().encode(0)
    found = decoded(OFFSETS, [(key, value), (key, None), (other, None)], ["OffsetCommit"])
    assert found["error"].null_count == 3
    assert found["OffsetCommit"].is_valid().to_pylist() == [True, True, False]


def test_what_is_not_asked_for_is_only_told() -> None:
    rows = real_records(OFFSETS)
    found = decoded(OFFSETS, rows, ["OffsetCommit"])
    everything = decoded(OFFSETS, rows, sorted(record_names(OFFSETS)))
    assert found["message"] == everything["message"]
    assert found["version"] == everything["version"]
    asked = [one == "OffsetCommit" for one in found["message"].to_pylist()]
    assert found["OffsetCommit"].is_valid().to_pylist() == asked


@pytest.mark.slow
@pytest.mark.parametrize("topic", InternalTopic)
def test_fields_that_are_asked_for_are_those_of_the_whole_record(topic: InternalTopic) -> None:
    chance, names = random.Random(topic), sorted(record_names(topic))
    rows = real_records(topic)
    rows += [damaged(chance.choice(rows), chance) for _ in range(100)]
    whole = decoded(topic, rows, names)
    every = {name: [*paths(whole.schema.field(name).type)] for name in names}
    for _ in range(3):
        wanted = {name: chance.sample(every[name], chance.randint(0, 3)) for name in names}
        found = decoded(topic, rows, wanted)
        found.validate(full=True)
        assert found.select([*HEAD_COLUMNS]) == whole.select([*HEAD_COLUMNS])
        for name, fields in wanted.items():
            split = [one.split(".") for one in fields] or [[]]
            assert found[name].to_pylist() == [kept(one, split) for one in whole[name].to_pylist()]


def test_fields_that_there_are_not_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"fields: expected fields of key .*, got 'topc'"):
        TypedRecords(OFFSETS, {"OffsetCommit": ["key.topc"]})
    with pytest.raises(ArgumentError, match="fields: expected names of fields"):
        TypedRecords(OFFSETS, {"OffsetCommit": "key.topic"})
    assert fields_there(OFFSETS, ["OffsetCommit"], ["key.topc", "value", "key.topic"]) == {
        "OffsetCommit": ["value", "key.topic"]
    }


@pytest.mark.parametrize("topic", InternalTopic)
def test_what_surely_is_no_record_that_is_asked_for_is_none(topic: InternalTopic) -> None:
    chance, names = random.Random(topic), sorted(record_names(topic))
    rows = real_records(topic)
    rows += [damaged(chance.choice(rows), chance) for _ in range(200)]
    rows += [(None, None), (b"", b""), (None, b"\x81\0\2\0"), (None, b"\1\x82\0\0")]
    messages = decoded(topic, rows, [])["message"].to_pylist()
    for name in chance.sample(names, min(4, len(names))):
        keys, values = (pa.array([row[at] for row in rows], pa.binary()) for at in range(2))
        may = TypedRecords(topic, [name]).may_have(keys, values)
        of = [one == name for one in messages]
        assert not any(has and not told for has, told in zip(of, may.tolist(), strict=True))
        assert 0 < sum(of) <= may.sum() < len(rows)


def test_slices_and_wide_columns_and_no_rows() -> None:
    rows = real_records(OFFSETS)[:40]
    typed = TypedRecords(OFFSETS, ["OffsetCommit", "GroupMetadata"])
    keys, values = (pa.array([row[at] for row in rows], pa.large_binary()) for at in range(2))
    whole = typed.decode(keys, values, None)
    parts = typed.decode(keys.slice(7, 11), values.slice(7, 11), None)
    assert [one.slice(7, 11) for one in whole] == parts
    assert [len(one) for one in typed.decode(keys[:0], values[:0], None)] == [0] * len(whole)


def test_a_control_record_has_no_type() -> None:
    rows: list[Row] = [(b"\0\0\0\1", bytes(6)), (b"\0\0\0\1", bytes(6))]
    typed = TypedRecords(TRANSACTIONS, ["TransactionLog"])
    keys, values = (pa.array([row[at] for row in rows], pa.binary()) for at in range(2))
    made = typed.decode(keys, values, pa.array([True, False]))
    found = pa.RecordBatch.from_arrays(made, schema=typed.schema)
    assert found["type"].to_pylist() == [None, 0]
    assert found["error"].is_valid().to_pylist() == [False, True]


@pytest.mark.parametrize("records", [["TopicRecord"], ["OffsetCommit", "OffsetCommit"], "x", [3]])
def test_records_that_a_topic_does_not_have_are_refused(records: Any) -> None:
    with pytest.raises(ArgumentError):
        TypedRecords(OFFSETS, records)
