"""Schemas for plain mappings can be composed by hand from KIP-482's type classes."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire import wire
from flexwire.codec import message
from flexwire.errors import DecodeError, EncodeError
from flexwire.wire import (
    COMPACT_BYTES,
    COMPACT_NULLABLE_BYTES,
    COMPACT_NULLABLE_STRING,
    COMPACT_STRING,
    INT8,
    INT16,
    INT32,
    STRING,
    ArrayOf,
    CompactArray,
    CompactArrayOf,
    CompactBytes,
    CompactNullableBytes,
    CompactNullableString,
    CompactString,
    Field,
    Schema,
    TagForm,
    TaggedFields,
    TaggedFieldsSection,
    Type,
)
from flexwire.wire.cursor import Reader, Writer

# KIP-482, "Compact Arrays", "Compact Bytes", "Compact String": 0 is null, and n is length n - 1.
COMPACT: list[tuple[Type, Any, str]] = [
    (CompactArrayOf(INT8, nullable=True), None, "00"),
    (CompactArrayOf(INT8), [], "01"),
    (CompactArrayOf(INT8), [7], "02 07"),
    (CompactArrayOf(COMPACT_STRING), ["a", ""], "03 02 61 01"),
    (COMPACT_BYTES, b"", "01"),
    (COMPACT_BYTES, b"x", "02 78"),
    (COMPACT_NULLABLE_BYTES, None, "00"),
    (COMPACT_STRING, "", "01"),
    (COMPACT_STRING, "x", "02 78"),
    # 299 + 1 is 300, the KIP's example of a two-byte varint.
    (COMPACT_STRING, "x" * 299, "ac 02" + "78" * 299),
    (COMPACT_NULLABLE_STRING, None, "00"),
    (ArrayOf(INT8), [7], "00 00 00 01 07"),
    (STRING, "x", "00 01 78"),
    (TaggedFields(), {}, "00"),
    (TaggedFields({1: Field("a", INT8)}), {1: 0, 3: b"\xff"}, "02 01 01 00 03 01 ff"),
    (TaggedFields({1: Field("a", INT8)}, TagForm.INTERLEAVED), {1: 7}, "01 03 07"),
    (TaggedFields({1: Field("a", INT8)}, TagForm.BUFFER), {1: 7}, "02 00 01 07 00"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), COMPACT)
def test_each_type_class_is_written_as_the_document_says(
    kind: Type, value: Any, expected: str
) -> None:
    writer = Writer()
    kind.write(writer, value)
    assert bytes(writer.buffer) == bytes.fromhex(expected)
    reader = Reader(bytes(writer.buffer))
    assert kind.read(reader) == value
    assert reader.remaining == 0


@pytest.mark.parametrize("kind", [CompactArrayOf(INT8), COMPACT_BYTES, COMPACT_STRING])
def test_null_is_refused_where_the_type_is_not_nullable(kind: Type) -> None:
    with pytest.raises(EncodeError, match="not nullable"):
        kind.write(Writer(), None)
    with pytest.raises(DecodeError, match="not nullable"):
        kind.read(Reader(b"\x00"))


def test_the_field_classes_are_fields_of_the_type_classes() -> None:
    fields = {
        CompactArray("f", INT8): CompactArrayOf(INT8),
        CompactString("f"): COMPACT_STRING,
        CompactNullableString("f"): COMPACT_NULLABLE_STRING,
        CompactBytes("f"): COMPACT_BYTES,
        CompactNullableBytes("f"): COMPACT_NULLABLE_BYTES,
    }
    for one, kind in fields.items():
        assert (one.name, one.type) == ("f", kind)
    assert isinstance(TaggedFieldsSection().type, TaggedFields)


def test_every_public_name_is_there() -> None:
    assert sorted(wire.__all__) == sorted(set(wire.__all__))
    assert all(hasattr(wire, name) for name in wire.__all__)


# FooResponse is the example in the documents.
FOO = Schema(
    Field("baz", INT16),
    optional_fields={1: Field("bar", COMPACT_STRING, default="hello world")},
    name="Foo",
)
RESPONSE = Schema(
    Field("foos", CompactArrayOf(FOO)),
    optional_fields={1: Field("user_agent", COMPACT_NULLABLE_STRING)},
    name="FooResponse",
)


def test_a_schema_takes_mandatory_fields_and_optional_ones_by_tag() -> None:
    value = {"user_agent": None, "foos": [{"baz": 1, "bar": "hi"}, {"baz": 2}]}
    raw = RESPONSE.encode(value)
    assert raw.hex(" ") == "03 00 01 01 01 03 03 68 69 00 02 00 01 01 01 00"
    assert RESPONSE.decode(raw) == value
    writer = Writer()
    RESPONSE.write(writer, value)
    assert bytes(writer.buffer) == raw


def test_an_optional_field_at_its_default_or_missing_is_not_written() -> None:
    assert FOO.encode({"baz": 1, "bar": "hello world"}) == FOO.encode({"baz": 1}) == b"\x00\x01\x00"
    # A field without a default is always written.
    empty = Schema(optional_fields={0: Field("marks", CompactArrayOf(INT8))})
    assert empty.encode({"marks": []}).hex(" ") == "01 00 01 01"
    assert empty.decode(empty.encode({"marks": []})) == {"marks": []}
    assert empty.encode({}) == b"\x00"


def test_the_first_draft_s_schema_begins_with_its_optional_fields() -> None:
    foo = Schema(
        Field("baz", INT16), optional_fields={1: Field("bar", STRING)}, form=TagForm.BUFFER
    )
    response = Schema(
        Field("foos", ArrayOf(foo)),
        optional_fields={1: Field("agent", STRING)},
        form=TagForm.BUFFER,
    )
    value = {"agent": "a", "foos": [{"baz": 1}, {"bar": "b", "baz": 2}]}
    raw = bytes.fromhex("06 0001 000161 00  00000002  00 0001  06 0001 000162 00 0002")
    assert response.encode(value) == raw
    assert response.decode(raw) == value


def test_unknown_tags_are_kept_and_missing_mandatory_fields_named() -> None:
    unknown = {"baz": 1, "unknown_tagged_fields": {9: b"\xff"}}
    assert FOO.decode(FOO.encode(unknown)) == unknown
    with pytest.raises(EncodeError, match=r"Foo at baz: the field is missing and has no default"):
        FOO.encode({})
    with pytest.raises(EncodeError, match=r"FooResponse at foos\[0\].baz: the field is missing"):
        RESPONSE.encode({"foos": [{}]})
    with pytest.raises(EncodeError, match="Foo has no field 'bax'; did you mean 'ba"):
        FOO.encode({"bax": 1})


def test_without_optional_fields_there_is_no_place_for_any() -> None:
    bare = Schema(Field("id", INT32))
    assert bare.encode({"id": 1}) == b"\x00\x00\x00\x01"
    with pytest.raises(EncodeError, match="no tag section"):
        bare.encode({"id": 1, "unknown_tagged_fields": {1: b""}})
    assert Schema(Field("id", INT8), form=TagForm.BUFFER).encode({"id": 1}) == b"\x01"
    assert Schema(Field("id", INT8), optional_fields={}).encode({"id": 1}) == b"\x01\x00"


def test_bytes_left_over_or_cut_off_are_refused() -> None:
    raw = RESPONSE.encode({"foos": [{"baz": 1, "bar": "hi"}]})
    for cut in range(len(raw)):
        with pytest.raises(DecodeError, match="FooResponse at "):
            RESPONSE.decode(raw[:cut])
    with pytest.raises(DecodeError, match="FooResponse ends here but 1 bytes follow"):
        RESPONSE.decode(raw + b"\x00")
    assert RESPONSE.decode(raw + b"\x00", lenient=True) == RESPONSE.decode(raw)


def test_a_section_may_be_a_field_as_in_the_kip_s_table() -> None:
    header = Schema(CompactString("name"), TaggedFieldsSection({0: CompactString("rack")}))
    assert header.encode({"name": "n"}).hex(" ") == "02 6e 00"
    value = {"name": "n", "_tagged_fields": {0: "r", 7: b"?"}}
    assert header.decode(header.encode(value)) == value
    with pytest.raises(EncodeError, match="expected a mapping from tags to values"):
        header.encode({"name": "n", "_tagged_fields": [1]})
    with pytest.raises(EncodeError, match="unknown tagged field 7: expected bytes"):
        header.encode({"name": "n", "_tagged_fields": {7: "text"}})
    with pytest.raises(EncodeError, match=r"at _tagged_fields\.rack: expected a str"):
        header.encode({"name": "n", "_tagged_fields": {0: 5}})


def test_what_cannot_be_a_schema_is_refused_when_it_is_composed() -> None:
    with pytest.raises(ValueError, match="field 'a' appears twice in structure"):
        Schema(Field("a", INT8), optional_fields={0: Field("a", INT8)})
    for tag in (-1, 2**31, "0"):
        with pytest.raises(ValueError, match="expected a tag from 0 to"):
            Schema(optional_fields={tag: Field("a", INT8)})  # type: ignore[dict-item]  # on purpose
    for array_of in (ArrayOf, CompactArrayOf):
        with pytest.raises(
            ValueError, match="must take at least one byte, but structure takes none"
        ):
            array_of(Schema())


def test_what_is_composed_and_what_a_message_has_are_of_one_class() -> None:
    header = message("RequestHeader").definition.schema(2)
    assert type(header) is Schema
    assert {type(one) for one in header.fields} == {Field}
    raw = bytes.fromhex("0012 0003 00000007 0001 61 00")
    assert header.encode(header.decode(raw)) == raw
    composed = Schema(
        *(Field(one.name, one.type, one.default, one.attribute) for one in header.fields),
        optional_fields={},
        name="RequestHeader",
    )
    assert composed.layout() == header.layout()
    assert composed.decode(raw) == header.decode(raw)
