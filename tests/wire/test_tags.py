"""Tagged fields in all three forms agree with the documents' examples, and work at their limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import DecodeError, EncodeError
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.limits import HIGHEST_TAG
from flexwire.wire.tags import (
    TagForm,
    interleave,
    join,
    objection,
    read_tagged_fields,
    separate,
    write_tagged_fields,
)
from flexwire.wire.varint import read_unsigned_varlong, write_unsigned_varint

FORMS = list(TagForm)


def test_the_draft_s_own_example_of_an_interleaved_header() -> None:
    # The bits of tag 0b101 and of length 0b100 alternate: T2 L2 T1 L1 T0 L0 = 110010.
    assert interleave(tag=0b101, length=0b100) == 0b110010
    assert separate(0b110010) == (0b101, 0b100)


@pytest.mark.parametrize(
    ("tag", "length", "header"),
    [
        (0, 0, "00"),
        (0, 1, "01"),
        (1, 0, "02"),
        (7, 7, "3f"),
        (0, 8, "40"),
        (7, 8, "6a"),
        (8, 0, "8001"),
        (2**31 - 1, 0, "aad5aad5aad5aad52a"),
        (0, 2**32 - 1, "d5aad5aad5aad5aa55"),
        (2**32 - 1, 2**32 - 1, "ffffffffffffffffff01"),
    ],
)
def test_interleaved_headers_at_the_edges(tag: int, length: int, header: str) -> None:
    assert write_unsigned_varint(interleave(tag, length)) == bytes.fromhex(header)
    assert separate(interleave(tag, length)) == (tag, length)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_header_holds_any_tag_and_any_length(tag: int, length: int) -> None:
    bits = "".join(t + s for t, s in zip(f"{tag:032b}", f"{length:032b}", strict=True))
    header = interleave(tag, length)
    assert f"{header:064b}" == bits
    assert separate(header) == (tag, length)
    raw = write_unsigned_varint(header)
    assert read_unsigned_varlong(raw, 0, len(raw)) == (header, len(raw))


@pytest.mark.parametrize("form", FORMS)
def test_no_tagged_fields_are_one_zero_byte(form: TagForm) -> None:
    assert join(form, {}) == b"\x00"


@pytest.mark.slow
@given(
    st.sampled_from(FORMS),
    st.dictionaries(st.integers(0, 2**15 - 1), st.binary(min_size=1, max_size=200), max_size=8),
)
def test_what_is_joined_is_read_back_in_ascending_order(
    form: TagForm, payloads: dict[int, bytes]
) -> None:
    raw = join(form, payloads)
    reader = Reader(raw + b"behind")
    known, unknown = read_tagged_fields(reader, form, {})
    assert known == {}
    assert list(unknown.items()) == sorted(payloads.items())
    assert reader.position == len(raw)
    for cut in range(len(raw)):
        with pytest.raises(DecodeError):
            read_tagged_fields(Reader(raw[:cut]), form, {})


@given(st.sampled_from(FORMS), st.binary(max_size=40), st.booleans())
def test_any_bytes_are_tagged_fields_or_refused(form: TagForm, raw: bytes, lenient: bool) -> None:  # noqa: FBT001 - drawn
    reader = Reader(raw, lenient=lenient)
    try:
        _, unknown = read_tagged_fields(reader, form, {})
    except DecodeError:
        return
    if not lenient:
        assert join(form, unknown) == raw[: reader.position]


@pytest.mark.parametrize("form", [TagForm.SECTION, TagForm.INTERLEAVED])
def test_the_last_tag_of_31_bits_is_one(form: TagForm) -> None:
    raw = join(form, {HIGHEST_TAG: b""})
    assert read_tagged_fields(Reader(raw), form, {}) == ({}, {HIGHEST_TAG: b""})
    assert objection(form, HIGHEST_TAG, b"") is None


def test_a_buffer_takes_int16_tags_with_values() -> None:
    assert objection(TagForm.BUFFER, 2**15 - 1, b"x") is None
    assert "32767" in str(objection(TagForm.BUFFER, 2**15, b"x"))
    assert "has an empty value" in str(objection(TagForm.BUFFER, 1, b""))


def test_lenient_counts_as_java_does_and_takes_overlong_ends() -> None:
    count = b"\xff\xff\xff\xff\x0f"
    for form in (TagForm.SECTION, TagForm.INTERLEAVED):
        assert read_tagged_fields(Reader(count, lenient=True), form, {}) == ({}, {})
    assert read_tagged_fields(Reader(b"\x80\x00", lenient=True), TagForm.BUFFER, {}) == ({}, {})


@pytest.mark.parametrize("form", [TagForm.SECTION, TagForm.INTERLEAVED])
def test_lenient_keeps_every_unknown_field_under_keys_that_nothing_writes(form: TagForm) -> None:
    fields = [(9, b"a"), (2**32 - 1, b"b"), (9, b"c"), (5, b"d"), (9, b""), (2**32 - 1, b"f")]
    raw = bytes([len(fields)]) + b"".join(join(form, dict([one]))[1:] for one in fields)
    _, unknown = read_tagged_fields(Reader(raw, lenient=True), form, {})
    places = [0, 0, 2, 0, 4, 5]
    assert list(unknown.items()) == [
        (tag + place * 2**32, data) for (tag, data), place in zip(fields, places, strict=True)
    ]
    for key in unknown.keys() - {5, 9}:
        with pytest.raises(EncodeError, match=f"got {key}"):
            write_tagged_fields(Writer(), form, {}, {key: b""}, ())
