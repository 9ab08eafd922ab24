"""Every encoding of every message holds the same object, in both executors."""

from __future__ import annotations

import json
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.codec import Encoding, explain, message, message_of
from flexwire.codec.samples import random_message
from flexwire.errors import DecodeError, EncodeError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer, String, Type
from flexwire.wire.varint import write_unsigned_varint
from tests.codec.made_up import EVERY_TYPE, TAGGED, everything, made
from tests.each import each
from tests.searching import times

NAMES = catalog().names()
MadeUp: Any = everything()
DRAFTS = (Encoding.INTERLEAVED, Encoding.OPTIONAL_BUFFERS)


def versions_of(name: str) -> list[int]:
    entry = catalog().entry(name)
    return list(entry.versions)


def through_both(made: Any, value: Any, version: int, encoding: Encoding) -> bytes:
    """Encode and decode with both executors; they agree and lose nothing."""
    definition = made.definition
    raw: bytes = definition.encode_generated(value, version, encoding)
    assert definition.encode_reference(value, version, encoding) == raw
    assert made.decode(raw, version, encoding=encoding) == value
    assert definition.decode_reference(raw, version, encoding=encoding) == (value, len(raw))
    assert made.decode(raw, version, lenient=True, encoding=encoding) == value
    return raw


def ends(name: str) -> set[int]:
    """Return the lowest version of a message, its first flexible version, and its highest."""
    versions, definition = versions_of(name), message(name).definition
    flexible = [one for one in versions if definition.schema(one).flexible]
    return {versions[0], versions[-1], *flexible[:1]}


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES, parts=3)
def test_what_is_encoded_decodes_to_the_same_through_both(name: str) -> None:
    made = message(name)
    whole = ends(name)
    for version in versions_of(name):
        # The other encodings change only what all versions have in common, so three versions
        # suffice.
        for encoding in Encoding if version in whole else (Encoding.KAFKA,):
            value = random_message(made, version, 1, encoding)
            through_both(made, value, version, encoding)
            # A cut at any byte is detected; the test tries one place.
            raw = value.encode(version, encoding=encoding)
            for damaged in (raw[: len(raw) // 2], raw[:-1], raw + b"\x00"):
                if len(raw):
                    with pytest.raises(DecodeError):
                        made.decode(damaged, version, encoding=encoding)


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES, parts=3)
def test_one_object_goes_through_every_encoding_that_has_tagged_fields(name: str) -> None:
    made = message(name)
    for version in ends(name):
        # The other encodings can hold every message that an optional field buffer can hold.
        value = random_message(made, version, 2, Encoding.OPTIONAL_BUFFERS)
        for encoding in set(Encoding) - {Encoding.FIXED}:
            through_both(made, value, version, encoding)


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES)
def test_an_encoding_without_tagged_fields_set_is_as_long_as_the_rules_say(name: str) -> None:
    made = message(name)
    for version in versions_of(name):
        value = random_message(made, version, 3, tagged=False)
        schema = made.definition.schema(version)
        found = Lengths()
        found.struct(value, schema)
        own = found.flexible if schema.flexible else found.fixed
        assert {
            encoding: len(value.encode(version, encoding=encoding)) for encoding in Encoding
        } == {
            Encoding.KAFKA: own,
            Encoding.INTERLEAVED: own,
            Encoding.OPTIONAL_BUFFERS: found.fixed + (found.structs if schema.flexible else 0),
            Encoding.FIXED: found.fixed,
            Encoding.FLEXIBLE: found.flexible,
        }


class Lengths:
    """Count a message's bytes from its values: structures, lengths of both kinds, other bytes."""

    def __init__(self) -> None:
        self.structs = 0
        self.rest = 0
        self.fixed_lengths = 0
        self.compact_lengths = 0

    @property
    def fixed(self) -> int:
        return self.rest + self.fixed_lengths

    @property
    def flexible(self) -> int:
        # A tag section adds one byte to each structure.
        return self.rest + self.compact_lengths + self.structs

    def struct(self, value: Any, schema: Schema) -> None:
        self.structs += 1
        for one in schema.fields:
            if one.presence is Presence.INLINE:
                fixed_for_ever = (schema.name, one.name) == ("RequestHeader", "ClientId")
                self.value(getattr(value, one.attribute), one.type, compact=not fixed_for_ever)

    def value(self, value: Any, kind: Type, *, compact: bool = True) -> None:
        if isinstance(kind, Schema):
            self.struct(value, kind)
        elif isinstance(kind, NullableStruct):
            self.rest += 1
            if value is not None:
                self.struct(value, kind.schema)
        elif isinstance(kind, String | Bytes | ArrayType):
            content = value.encode() if isinstance(value, str) else value
            prefix = 2 if isinstance(kind, String) else 4
            self.fixed_lengths += prefix
            length = 0 if content is None else len(content) + 1
            self.compact_lengths += len(write_unsigned_varint(length)) if compact else prefix
            if isinstance(kind, ArrayType):
                for item in value or ():
                    self.value(item, kind.element)
            else:
                self.rest += len(content or b"")
        elif isinstance(kind, Boolean):
            self.rest += 1
        elif isinstance(kind, Integer | Float64):
            self.rest += struct.calcsize(kind.code)
        else:
            self.rest += 16


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES)
def test_the_drafts_change_flexible_versions_only_and_flexible_the_others_only(name: str) -> None:
    made = message(name)
    for version in versions_of(name):
        value = random_message(made, version, 4, tagged=False)
        usual = value.encode(version)
        if made.definition.schema(version).flexible:
            assert value.encode(version, encoding=Encoding.FLEXIBLE) == usual
            assert value.encode(version, encoding=Encoding.FIXED) != usual
        else:
            for encoding in (*DRAFTS, Encoding.FIXED):
                assert value.encode(version, encoding=encoding) == usual
            assert value.encode(version, encoding=Encoding.FLEXIBLE) != usual


RACK: dict[str, Any] = {
    "name": "Rack",
    "type": "string",
    "versions": "1+",
    "taggedVersions": "1+",
    "nullableVersions": "1+",
    "tag": 5,
}
FOO: list[dict[str, Any]] = [
    {"name": "Name", "type": "string", "versions": "0+"},
    {
        "name": "Bars",
        "type": "[]Bar",
        "versions": "0+",
        "fields": [{"name": "Id", "type": "int8", "versions": "0+"}],
    },
    RACK,
    {
        "name": "Leader",
        "type": "Leader",
        "versions": "1+",
        "taggedVersions": "1+",
        "nullableVersions": "1+",
        "default": "null",
        "tag": 7,
        "fields": [{"name": "Epoch", "type": "int8", "versions": "1+"}],
    },
]
Foo: Any = made(FOO, valid="0-1", flexible="1+")
VALUE = Foo(
    name="n",
    bars=[Foo.Bar(id=1), Foo.Bar(id=2, unknown_tagged_fields={9: b"\xff"})],
    rack="abc",
    leader=Foo.Leader(epoch=3),
)
PLAIN = Foo(name="n", bars=[Foo.Bar(id=1)])
# These bytes were written by hand from the documents. The length 4 and the tag 5 exist only in the
# second draft.
BY_HAND = [
    (
        VALUE,
        1,
        Encoding.KAFKA,
        "02 6e  03 01 00 02 01 09 01 ff  02 05 04 04 61 62 63 07 03 01 03 00",
    ),
    (
        VALUE,
        1,
        Encoding.INTERLEAVED,
        # 9 is 1001, so tag 9 and length 1 are 10000011; 7 and 3 are 101111.
        "02 6e  03 01 00 02 01 83 01 ff  02 32 04 61 62 63 2f 01 03 00",
    ),
    (
        VALUE,
        1,
        Encoding.OPTIONAL_BUFFERS,
        "0a 00 05 00 03 61 62 63 06 00 07 01 00 03 00 00 01 6e 00 00 00 02 00 01 02 00 09 ff 00 02",
    ),
    (PLAIN, 1, Encoding.KAFKA, "02 6e 02 01 00 00"),
    (PLAIN, 1, Encoding.FLEXIBLE, "02 6e 02 01 00 00"),
    (PLAIN, 0, Encoding.FLEXIBLE, "02 6e 02 01 00 00"),
    (PLAIN, 1, Encoding.INTERLEAVED, "02 6e 02 01 00 00"),
    (PLAIN, 1, Encoding.OPTIONAL_BUFFERS, "00 00 01 6e 00 00 00 01 00 01"),
    (PLAIN, 1, Encoding.FIXED, "00 01 6e 00 00 00 01 01"),
    (PLAIN, 0, Encoding.INTERLEAVED, "00 01 6e 00 00 00 01 01"),
    (PLAIN, 0, Encoding.OPTIONAL_BUFFERS, "00 01 6e 00 00 00 01 01"),
    (Foo(rack=None), 1, Encoding.OPTIONAL_BUFFERS, "04 00 05 ff ff 00  00 00 00 00 00 00"),
]


@pytest.mark.parametrize(("value", "version", "encoding", "expected"), BY_HAND)
def test_bytes_written_out_by_hand(
    value: Any, version: int, encoding: Encoding, expected: str
) -> None:
    assert through_both(Foo, value, version, encoding) == bytes.fromhex(expected)
    found = explain(Foo, bytes.fromhex(expected), version, encoding=encoding)
    at = 0
    for one in found.annotations:
        assert one.offset == at
        at += one.length
    assert (at, found.error) == (len(bytes.fromhex(expected)), None)


def test_the_header_s_client_id_has_a_fixed_length_in_every_encoding() -> None:
    header: Any = message("RequestHeader")
    value = header(request_api_key=18, correlation_id=7, client_id="a")
    assert value.encode(1, encoding=Encoding.FLEXIBLE) == value.encode(2)
    assert value.encode(2, encoding=Encoding.FIXED) == value.encode(1)


def test_a_null_structure_has_a_varint_marker_only_where_there_are_compact_types() -> None:
    leader = {key: value for key, value in FOO[-1].items() if key != "default"}
    one: Any = made([leader], valid="0-1", flexible="1+")
    null = one(leader=None)
    assert through_both(one, null, 1, Encoding.KAFKA) == bytes.fromhex("01 07 01 00")
    assert through_both(one, null, 1, Encoding.OPTIONAL_BUFFERS) == bytes.fromhex("02 00 07 ff 00")


def test_a_field_s_own_compactness_holds_but_in_what_has_no_compact_types() -> None:
    name = {"name": "Name", "type": "string", "versions": "0+", "flexibleVersions": "0+"}
    one: Any = made([name], valid="0-1", flexible="1+")
    value = one(name="n")
    for encoding in Encoding:
        usual = through_both(one, value, 0, encoding)
        other = {Encoding.FIXED: "00 01 6e", Encoding.FLEXIBLE: "02 6e 00"}
        assert usual == bytes.fromhex(other.get(encoding, "02 6e"))
    assert value.encode(1, encoding=Encoding.OPTIONAL_BUFFERS) == bytes.fromhex("00 00 01 6e")


def test_an_encoding_that_changes_nothing_compiles_nothing() -> None:
    schema = Foo.definition.schema
    assert schema(1, Encoding.FLEXIBLE) is schema(1)
    assert all(schema(0, encoding) is schema(0) for encoding in DRAFTS)
    assert len({id(schema(1, encoding)) for encoding in Encoding}) == 4


def test_all_types_go_through_every_encoding_tagged_and_not() -> None:
    one_of_each = {
        "flag": True,
        "port": 65535,
        "id": uuid.UUID(int=7),
        "note": None,
        "topics": [
            MadeUp.Topic(name="t", leader=MadeUp.Leader(epoch=2)),
            MadeUp.Topic(leader=None),
        ],
    }
    tagged = {"rack": "r", "cluster": "", "level": 7, "latest": MadeUp.Latest(at=1), "marks": [1]}
    for encoding in Encoding:
        through_both(MadeUp, MadeUp(**one_of_each), 0, encoding)
        if encoding is not Encoding.FIXED:
            value = MadeUp(**one_of_each, **tagged, current=MadeUp.Current(leader_id=4))
            through_both(MadeUp, value, 1, encoding)


@pytest.mark.parametrize("ignorable", [False, True])
def test_fixed_cannot_write_a_tagged_field_that_is_not_at_its_default(ignorable: bool) -> None:  # noqa: FBT001 - a parameter
    strict = made(FOO, valid="0-1", flexible="1+", ignorable=ignorable)
    value: Any = strict(rack="r")
    refused = "rack: this encoding has no tagged fields, but 'r' is not the field's default"
    with pytest.raises(EncodeError, match=refused):
        value.encode(1, encoding=Encoding.FIXED)
    assert strict().encode(1, encoding=Encoding.FIXED) == b"\x00\x00\x00\x00\x00\x00"


@pytest.mark.parametrize("depth", [0, 1])
def test_fixed_cannot_write_an_unknown_tagged_field(depth: int) -> None:
    unknown = {"unknown_tagged_fields": {9: b"x"}}
    value = Foo(bars=[Foo.Bar(**unknown)]) if depth else Foo(**unknown)
    with pytest.raises(EncodeError, match="has no tag section in this encoding"):
        value.encode(1, encoding=Encoding.FIXED)
    with pytest.raises(EncodeError, match="has no tag section in this encoding"):
        value.encode(0, encoding=Encoding.OPTIONAL_BUFFERS)


NO_PLACE = [(32768, b"x", "tag 32768 is above 32767"), (9, b"", "tag 9 has an empty value")]


@pytest.mark.parametrize(("tag", "data", "reason"), NO_PLACE)
def test_a_buffer_has_no_place_for_high_tags_and_for_no_bytes(
    tag: int, data: bytes, reason: str
) -> None:
    value = Foo(bars=[Foo.Bar(unknown_tagged_fields={tag: data})])
    with pytest.raises(EncodeError, match=rf"at bars\[0\]: {reason}"):
        value.encode(1, encoding=Encoding.OPTIONAL_BUFFERS)
    through_both(Foo, value, 1, Encoding.INTERLEAVED)


def test_a_known_tag_above_int16_has_no_place_in_a_buffer_but_at_its_default() -> None:
    high = made([{**RACK, "tag": 40_000}], valid="0-1", flexible="1+")
    assert high().encode(1, encoding=Encoding.OPTIONAL_BUFFERS) == b"\x00"
    with pytest.raises(EncodeError, match="tag 40000 is above 32767"):
        high(rack="r").encode(1, encoding=Encoding.OPTIONAL_BUFFERS)


def test_a_tag_that_the_version_does_not_have_is_refused_in_every_form() -> None:
    spec = {**RACK, "versions": "3+", "taggedVersions": "3+", "nullableVersions": "3+"}
    later: Any = made([spec])
    for encoding in (Encoding.KAFKA, *DRAFTS):
        raw = later(rack="r").encode(3, encoding=encoding)
        with pytest.raises(DecodeError, match="tag 5 is not valid for this version"):
            later.decode(raw, 2, encoding=encoding)
    with pytest.raises(DecodeError, match="tag 5 is not valid for this version"):
        later.decode(later(rack="r").encode(3), 0, encoding=Encoding.FLEXIBLE)


HOSTILE = [
    (Encoding.INTERLEAVED, "7f", "127 tagged fields declared"),
    (Encoding.INTERLEAVED, "01 32 616263", "tag 5 declares 4 bytes but 3 remain"),
    (Encoding.INTERLEAVED, "02 83 01 ff 83 01 ff", "tag 9 follows tag 9"),
    (Encoding.INTERLEAVED, "02 83 01 ff 01 ff", "tag 0 follows tag 9"),
    (Encoding.INTERLEAVED, "01" + "ff" * 9 + "01", "tag 4294967295 is above 2147483647"),
    (Encoding.INTERLEAVED, "01" + "ff" * 10, "varint of more than 10 bytes"),
    (Encoding.INTERLEAVED, "01" + "ff" * 9 + "03", "does not fit in 64 bits"),
    (Encoding.INTERLEAVED, "01 b2 00", "overlong"),
    (Encoding.INTERLEAVED, "01 83", "cut off"),
    (Encoding.OPTIONAL_BUFFERS, "", "cut off"),
    (Encoding.OPTIONAL_BUFFERS, "80 00", "overlong"),
    (Encoding.OPTIONAL_BUFFERS, "01 00 09 00", "an optional field has a negative size, -1"),
    (Encoding.OPTIONAL_BUFFERS, "03 00 09 61 00", "an optional field has a negative size, -2"),
    (Encoding.OPTIONAL_BUFFERS, "02 ff ff 61 00", "tag -1 is negative"),
    (Encoding.OPTIONAL_BUFFERS, "02 00", "a tag takes 2 bytes but 1 remain"),
    (Encoding.OPTIONAL_BUFFERS, "06 00 09 61", "tag 9 declares 3 bytes but 1 remain"),
    (Encoding.OPTIONAL_BUFFERS, "fe ff ff ff 0f 00 09 61", "declares 2147483647 bytes but 1"),
    (Encoding.OPTIONAL_BUFFERS, "02 00 09 61 02 00 09 62 00", "tag 9 follows tag 9"),
    (Encoding.OPTIONAL_BUFFERS, "02 00 09 61", "cut off"),
    (Encoding.OPTIONAL_BUFFERS, "08 00 05 00 01 61 62 00", "its value is shorter"),
    (Encoding.OPTIONAL_BUFFERS, "04 00 05 00 01 61 00", "declared length 1 but 0 bytes remain"),
]


@pytest.mark.parametrize(("encoding", "raw", "reason"), HOSTILE)
def test_hostile_tagged_fields_are_refused(encoding: Encoding, raw: str, reason: str) -> None:
    rack: Any = made([RACK], valid="0-1", flexible="1+")
    with pytest.raises(DecodeError, match=reason):
        rack.decode(bytes.fromhex(raw), 1, encoding=encoding)


def test_lenient_takes_repeated_and_unordered_tags_in_the_drafts_too() -> None:
    unordered = {
        Encoding.INTERLEAVED: "02 6e 01  02 83 01 ff 26 02 61",
        Encoding.OPTIONAL_BUFFERS: "02 00 09 ff  06 00 05 00 01 61  00  00 01 6e 00 00 00 00",
    }
    for encoding, text in unordered.items():
        raw = bytes.fromhex(text)
        with pytest.raises(DecodeError, match="tags must ascend"):
            Foo.decode(raw, 1, encoding=encoding)
        found = Foo.decode(raw, 1, lenient=True, encoding=encoding)
        assert found == Foo(name="n", rack="a", unknown_tagged_fields={9: b"\xff"})


PAIRS = [
    (name, version)
    for name in NAMES
    for version in versions_of(name)[-1:]
    if message(name).definition.schema(version).flexible
]
ENCODINGS = st.sampled_from(list(Encoding))


@pytest.mark.slow
@given(st.sampled_from(PAIRS), ENCODINGS, st.integers(0, 20), st.data())
@settings(max_examples=times(150))
def test_damaged_bytes_decode_alike_or_are_refused_alike(
    pair: tuple[str, int], encoding: Encoding, seed: int, data: st.DataObject
) -> None:
    made, version = message(pair[0]), pair[1]
    raw = bytearray(
        random_message(made, version, seed, encoding).encode(version, encoding=encoding)
    )
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    same(made, bytes(raw[: data.draw(st.integers(0, len(raw)))]), version, encoding)


@pytest.mark.slow
@given(st.binary(max_size=60), ENCODINGS, st.sampled_from([0, 1]))
@settings(max_examples=times(150))
def test_any_bytes_decode_alike_or_are_refused_alike(
    raw: bytes, encoding: Encoding, version: int
) -> None:
    same(Foo, raw, version, encoding)


def same(made: Any, raw: bytes, version: int, encoding: Encoding) -> None:
    """Check that both executors return the same message with these bytes, or the same error."""
    definition = made.definition
    try:
        reference: Any = definition.decode_reference(raw, version, encoding=encoding)
    except DecodeError as error:
        reference = str(error)
    try:
        # The call raises ExecutorsDisagreeError if only generated code refuses.
        generated: Any = definition.decode(raw, version, 0, lenient=False, encoding=encoding)
    except DecodeError as error:
        generated = str(error)
    # These are compared as strings, because damage can produce NaN, which is not equal to itself.
    assert repr(generated) == repr(reference)
    try:
        made.decode(raw, version, lenient=True, encoding=encoding)
    except DecodeError:
        # Only the strict reader's errors may occur; any other exception fails the test.
        return


def test_users_own_specs_have_every_encoding() -> None:
    spec = {
        "type": "data",
        "name": "Everything",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [*EVERY_TYPE, *TAGGED],
    }
    own = message_of(parse_spec(json.dumps(spec)))
    for version in (0, 1):
        for encoding in Encoding:
            for seed in range(20):
                value = random_message(own, version, seed, encoding)
                through_both(own, value, version, encoding)
