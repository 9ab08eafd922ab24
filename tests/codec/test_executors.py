"""The two executors agree on the bytes that they accept and refuse."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.codec import message
from flexwire.codec.definition import _OUT_OF_THE_ORDINARY
from flexwire.errors import DecodeError, EncodeError
from tests.codec.made_up import everything, made
from tests.codec.vectors import class_of, load
from tests.searching import times

MadeUp: Any = everything()
VECTORS = [vector for vectors in load().values() for vector in vectors]


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**bits - 1)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
LEADER = st.none() | st.builds(MadeUp.Leader, epoch=signed(32))
TOPIC = st.builds(MadeUp.Topic, name=TEXT, leader=LEADER)
UNKNOWN = st.dictionaries(st.integers(6, 2**31 - 1), st.binary(max_size=20), max_size=3)
INLINE = {
    "flag": st.booleans(),
    "tiny": signed(8),
    "short": signed(16),
    "port": unsigned(16),
    "count": signed(32),
    "crc": unsigned(32),
    "offset": signed(64),
    "ratio": st.floats(allow_nan=False),
    "id": st.uuids(),
    "text": TEXT,
    "note": st.none() | TEXT,
    "blob": st.binary(max_size=300),
    "maybe": st.none() | st.binary(max_size=20),
    "batch": st.none() | st.binary(max_size=20),
    "numbers": st.lists(signed(32), max_size=150),
    "flags": st.lists(st.booleans(), max_size=5),
    "ids": st.lists(st.uuids(), max_size=3),
    "names": st.none() | st.lists(TEXT, max_size=4),
    "topics": st.lists(TOPIC, max_size=4),
}
TAGGED = {
    "rack": TEXT,
    "cluster": st.none() | TEXT,
    "level": signed(32),
    "current": st.builds(MadeUp.Current, leader_id=signed(32)),
    "latest": st.none() | st.builds(MadeUp.Latest, at=signed(64)),
    "marks": st.lists(signed(64), max_size=3),
    "unknown_tagged_fields": UNKNOWN,
}
INFLEXIBLE = st.builds(MadeUp, **INLINE)
FLEXIBLE = st.builds(MadeUp, **INLINE, **TAGGED)
MESSAGES = st.tuples(INFLEXIBLE, st.just(0)) | st.tuples(FLEXIBLE, st.just(1))


@pytest.mark.slow
@given(MESSAGES)
def test_what_is_encoded_decodes_to_the_same_through_both(case: tuple[Any, int]) -> None:
    value, version = case
    raw = MadeUp.definition.encode_generated(value, version)
    assert raw == MadeUp.definition.encode_reference(value, version)
    assert MadeUp.definition.decode_exactly(raw, version) == value
    assert MadeUp.definition.decode_reference(raw, version) == (value, len(raw))
    assert MadeUp.from_json(value.to_json(version), version) == value


@pytest.mark.slow
@given(MESSAGES, st.data())
def test_every_cut_and_every_tail_is_refused(case: tuple[Any, int], data: st.DataObject) -> None:
    value, version = case
    raw = value.encode(version)
    cut = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(DecodeError):
        MadeUp.definition.decode_exactly(raw[:cut], version)
    with pytest.raises(DecodeError, match=r"ends here but 1 bytes follow"):
        MadeUp.definition.decode_exactly(raw + b"\x00", version)
    decoded, end = MadeUp.decode_prefix(b"##" + raw + b"tail", version, 2)
    assert (decoded, end) == (value, 2 + len(raw))


@pytest.mark.slow
@given(st.sampled_from(VECTORS), st.data())
@settings(max_examples=times(120))
def test_damaged_bytes_decode_alike_or_are_refused_alike(
    vector: dict[str, Any], data: st.DataObject
) -> None:
    raw = bytearray.fromhex(vector["hex"])
    for _ in range(data.draw(st.integers(1, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    definition, version = class_of(vector).definition, vector["version"]
    try:
        reference: Any = definition.decode_reference(damaged, version)
    except DecodeError as error:
        reference = str(error)
    try:
        # The call raises ExecutorsDisagreeError if only generated code refuses.
        generated: Any = definition.decode(damaged, version, 0, lenient=False)
    except DecodeError as error:
        generated = str(error)
    # These are compared as strings, because damage can produce NaN, which is not equal to itself.
    assert repr(generated) == repr(reference)


WRONG = [
    ("flag", 1),
    ("tiny", 128),
    ("short", -32769),
    ("port", -1),
    ("port", 65536),
    ("count", 2**31),
    ("count", "7"),
    ("count", 1.0),
    ("crc", 2**32),
    ("offset", -(2**63) - 1),
    ("ratio", "1.0"),
    ("id", b"0123456789abcdef"),
    ("text", None),
    ("text", b"bytes"),
    ("text", "\ud800"),
    ("text", "x" * 32768),
    ("blob", None),
    ("blob", "text"),
    ("numbers", None),
    ("numbers", [2**31]),
    ("numbers", "abc"),
    ("topics", [None]),
    ("topics", ["topic"]),
    ("flags", [2]),
    ("unknown_tagged_fields", {0: b""}),
    ("unknown_tagged_fields", {-1: b""}),
    ("unknown_tagged_fields", {2**31: b""}),
    ("unknown_tagged_fields", {9: "text"}),
]


@pytest.mark.parametrize(("attribute", "value"), WRONG)
def test_what_cannot_be_written_is_refused_by_both(attribute: str, value: Any) -> None:
    wrong = MadeUp(**{attribute: value})
    with pytest.raises(_OUT_OF_THE_ORDINARY):
        MadeUp.definition.encode_generated(wrong, 1)
    with pytest.raises(EncodeError) as caught:
        wrong.encode(1)
    assert caught.value.message == "MadeUp"
    assert caught.value.version == 1


def test_near_misses_are_written_through_the_reference() -> None:
    usual = MadeUp(numbers=[1, 2], blob=b"x", topics=[MadeUp.Topic(name="t")])
    near = MadeUp(numbers=(1, 2), blob=bytearray(b"x"), topics=({"name": "t"},))
    assert near.encode(1) == usual.encode(1)


LENGTHS = [0, 1, 125, 126, 127, 128, 129, 16382, 16383, 16384, 32766, 32767]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("version", [0, 1])
def test_every_length_at_the_edges_of_its_prefix(length: int, version: int) -> None:
    value = MadeUp(
        text="x" * length,
        blob=b"y" * length,
        numbers=[7] * length,
        flags=[True] * length,
        names=["n"] * length,
    )
    raw = MadeUp.definition.encode_generated(value, version)
    assert raw == MadeUp.definition.encode_reference(value, version)
    assert MadeUp.decode(raw, version) == value


HOSTILE = {
    "a count of 2**32-1": (b"\xff\xff\xff\xff\x0f", "above 2147483647"),
    "a count above what remains": (b"\xff\xff\xff\xff\x07", "bytes remain"),
    "a varint that never ends": (b"\xff\xff\xff\xff\xff\xff", "more than 5 bytes"),
    "a varint cut off": (b"\xff", "cut off"),
    "an overlong varint": (b"\x81\x00\x00\x00", "overlong"),
    "a null that may not be": (b"\x00\x00", "not nullable"),
    "a varint beyond 32 bits": (b"\xff\xff\xff\xff\x1f", "32 bits"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_counts_are_refused_before_anything_is_allocated(case: str) -> None:
    numbers = made([{"name": "Numbers", "type": "[]int32", "versions": "0+"}])
    raw, reason = HOSTILE[case]
    with pytest.raises(DecodeError, match=reason) as caught:
        numbers.decode(raw, 2)
    assert caught.value.path == "numbers"
    assert caught.value.offset == 0


def test_an_inflexible_length_is_minus_one_or_a_size() -> None:
    names = made([{"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "0+"}])
    assert names.decode(b"\xff\xff", 0) == names(name=None)
    with pytest.raises(DecodeError, match="expected a length of -1"):
        names.decode(b"\xff\xfe", 0)
    assert names.decode(b"\xff\xfe", 0, lenient=True) == names(name=None)


def tags(*fields: tuple[int, bytes]) -> bytes:
    """Return a tag section with true sizes, in the given order."""
    section = bytes([len(fields)])
    for tag, payload in fields:
        section += bytes([tag, len(payload)]) + payload
    return section


TAG_FAULTS = {
    "unordered": (tags((9, b""), (8, b"")), "tags must ascend"),
    "repeated": (tags((9, b""), (9, b"")), "tags must ascend"),
    "a known tag too long": (tags((0, b"\x00\x00\x00\x05!")), "its value is shorter"),
    "a known tag too short": (tags((0, b"\x00\x00")), "takes 4 bytes but 2 remain"),
    "more tags than bytes": (b"\x7f", "tagged fields declared"),
    "a size beyond the end": (b"\x01\x09\x05ab", "declares 5 bytes but 2 remain"),
}


@pytest.mark.parametrize("case", TAG_FAULTS)
def test_faulty_tag_sections_are_refused(case: str) -> None:
    one = {"name": "Level", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0}
    section, reason = TAG_FAULTS[case]
    with pytest.raises(DecodeError, match=reason):
        made([one]).decode(section, 2)


def test_a_tag_of_another_version_is_refused_as_kafka_refuses_it() -> None:
    one = {"name": "Level", "type": "int32", "versions": "3+", "taggedVersions": "3+", "tag": 0}
    raw = tags((0, struct.pack(">i", 7)))
    assert made([one]).decode(raw, 3).encode(3) == raw
    with pytest.raises(DecodeError, match="tag 0 is not valid for this version"):
        made([one]).decode(raw, 2)


def test_a_field_absent_in_a_version_must_be_at_its_default_unless_ignorable() -> None:
    field = {"name": "Rack", "type": "string", "versions": "1+"}
    strict, lax = made([field]), made([{**field, "ignorable": True}])
    assert strict().encode(0) == b""
    with pytest.raises(EncodeError, match="at rack: this version has no such field"):
        strict(rack="r1").encode(0)
    assert lax(rack="r1").encode(0) == b""


def test_a_field_may_be_inline_in_low_and_tagged_in_high_versions() -> None:
    moved = made(
        [{"name": "Rack", "type": "string", "versions": "0+", "taggedVersions": "3+", "tag": 0}]
    )
    assert moved(rack="r").encode(0) == b"\x00\x01r"
    assert moved(rack="r").encode(2) == b"\x02r\x00"
    assert moved(rack="r").encode(3) == tags((0, b"\x02r"))
    assert moved().encode(3) == b"\x00"
    for version in (0, 2, 3):
        assert moved.decode(moved(rack="r").encode(version), version) == moved(rack="r")


def test_null_is_written_against_a_default_that_is_not_null() -> None:
    one = made(
        [
            {
                "name": "Rack",
                "type": "string",
                "versions": "2+",
                "taggedVersions": "2+",
                "nullableVersions": "2+",
                "tag": 0,
                "default": "here",
            }
        ]
    )
    assert one().encode(2) == b"\x00"
    assert one(rack=None).encode(2) == bytes([1, 0, 1, 0])
    assert one.decode(bytes([1, 0, 1, 0]), 2) == one(rack=None)


def test_unknown_tagged_fields_survive_at_every_depth_and_stay_sorted() -> None:
    value = MadeUp(
        topics=[MadeUp.Topic(name="t", unknown_tagged_fields={300: b"deep", 7: b""})],
        unknown_tagged_fields={2**31 - 1: b"last", 6: b"first"},
    )
    again = MadeUp.decode(value.encode(1), 1)
    assert again == value
    assert list(again.unknown_tagged_fields) == [6, 2**31 - 1]
    assert again.encode(1) == value.encode(1)
    with pytest.raises(EncodeError, match="no tag section"):
        MadeUp(unknown_tagged_fields={6: b""}).encode(0)


def test_lenient_takes_what_java_takes() -> None:
    level = made([{"name": "Flag", "type": "bool", "versions": "0+"}])
    assert level.decode(b"\x07", 0, lenient=True) == level(flag=True)
    assert level.decode(b"\x01trailing", 0, lenient=True) == level(flag=True)
    text = made([{"name": "Text", "type": "string", "versions": "0+"}])
    assert text.decode(b"\x00\x01\xff", 0, lenient=True) == text(text="\ufffd")
    with pytest.raises(DecodeError, match="not UTF-8") as caught:
        text.decode(b"\x00\x01\xff", 0)
    assert caught.value.offset == 2


def test_ids_are_uuids() -> None:
    assert MadeUp().id == uuid.UUID(int=0)


@pytest.mark.parametrize("empty", ["", b"", [], (), None, 0, set()], ids=repr)
def test_what_is_empty_and_not_a_dict_is_judged_alike_in_every_structure(empty: Any) -> None:
    kind: Any = message("FetchRequest")
    definition = kind.definition
    for place in ("", "replica_state"):
        value = kind()
        given = getattr(value, place) if place else value
        given.unknown_tagged_fields = empty
        for version in (11, 17):
            outcomes = []
            for encode in (definition.encode_reference, definition.encode):
                try:
                    outcomes.append(encode(value, version))
                except EncodeError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1], (place, version)
