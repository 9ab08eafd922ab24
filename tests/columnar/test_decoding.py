"""The columnar decoder produces the same results and errors as the reference executor."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from flexwire.codec import Encoding, message
from flexwire.codec.samples import random_message
from flexwire.columnar import decode_messages, message_type
from flexwire.columnar.objects import message_column
from flexwire.errors import CodecError, DecodeError, UnknownMessageError
from flexwire.schema.catalog import catalog
from tests.codec.test_every_version import pairs
from tests.codec.test_random_specs import damage
from tests.codec.vectors import class_of, load
from tests.columnar.expected import decoded, same
from tests.each import each
from tests.searching import in_parts, times

BY_MESSAGE = load()
NAMES = catalog().names()
AROUND = [(b"", b""), (b"", b"x"), (b"seven..", b""), (b"", b"eight..."), (b"x" * 16, b"y" * 9)]


@pytest.mark.long
@pytest.mark.slow
@each("name", sorted(BY_MESSAGE), parts=3)
def test_every_vector_of_a_message_in_one_call(name: str) -> None:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for vector in BY_MESSAGE[name]:
        groups.setdefault(class_of(vector), []).append(vector)
    for made, vectors in groups.items():
        rows = [bytes.fromhex(one["hex"]) for one in vectors]
        versions = [one["version"] for one in vectors]
        for absent in ("null", "default"):
            expected, errors = decoded(made, rows, versions, absent=absent)
            assert not any(errors)
            same(decode_messages(made, pa.array(rows), versions, absent=absent), expected)


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES, parts=3)
def test_every_version_alone_and_together_with_all_others(name: str) -> None:
    by_class: dict[Any, list[tuple[Any, int]]] = {}
    for made, version in pairs(name):
        messages = [random_message(made, version, seed) for seed in range(times(1))]
        messages.append(made())
        rows = [one.encode(version) for one in messages]
        by_class.setdefault(made, []).extend((row, version) for row in rows)
        found = decode_messages(made, pa.array(rows), version)
        same(found, decoded(made, rows, [version] * len(rows))[0])
        if made is message(name):
            schema = made.definition.schema(version)
            same(found, message_column(schema, message_type(name), messages))
    for made, mixed in by_class.items():
        random.Random(name).shuffle(mixed)
        rows, versions = [row for row, _ in mixed], [version for _, version in mixed]
        for absent in ("null", "default"):
            expected, _ = decoded(made, rows, versions, absent=absent)
            same(decode_messages(made, pa.array(rows), versions, absent=absent), expected)


@pytest.mark.slow
@pytest.mark.parametrize("part", in_parts(3))
@pytest.mark.parametrize("encoding", Encoding)
def test_every_encoding(encoding: Encoding, part: int) -> None:
    for name in NAMES[part::3]:
        made = message(name)
        version = catalog().entry(name).versions.highest
        rows = [
            random_message(made, version, seed, encoding).encode(version, encoding=encoding)
            for seed in range(3)
        ]
        expected, _ = decoded(name, rows, [version] * 3, encoding)
        same(decode_messages(name, pa.array(rows), version, encoding=encoding), expected)


@pytest.mark.slow
@pytest.mark.parametrize("part", in_parts(3))
@pytest.mark.parametrize("encoding", Encoding)
def test_damage_is_refused_in_the_same_words_and_the_other_rows_are_read(
    encoding: Encoding, part: int
) -> None:
    source = random.Random(f"{encoding.value} {part}")
    refused = 0
    for name in NAMES[part::3]:
        made = message(name)
        version = catalog().entry(name).versions.highest
        rows = []
        for seed in range(4):
            value = random_message(made, version, seed, encoding)
            raw = value.encode(version, encoding=encoding)
            rows += [raw, *(damage(raw, source) for _ in range(6))]
        expected, errors = decoded(name, rows, [version] * len(rows), encoding)
        found = decode_messages(name, pa.array(rows), version, encoding=encoding, mode="PERMISSIVE")
        assert found.errors.to_pylist() == errors
        same(found.values, expected)
        refused += sum(error is not None for error in errors)
    assert refused > 300


def test_slices_nulls_large_offsets_and_chunks_are_all_alike() -> None:
    made = message("MetadataResponse")
    raws = [random_message(made, 12, seed).encode(12) for seed in range(20)]
    rows = [None if number % 3 == 1 else raw for number, raw in enumerate(raws)]
    expected, _ = decoded(made, rows, [12] * 20)
    whole = pa.array([b"before", None, *rows, b"after"])
    for data in (pa.array(rows), pa.array(rows, pa.large_binary()), whole.slice(2, 20)):
        same(decode_messages(made, data, 12), expected)
        same(decode_messages(made, data.slice(5, 7), 12), expected.slice(5, 7))
    chunked = pa.chunked_array([rows[:7], [], rows[7:]], pa.binary())
    found = decode_messages(made, chunked, pa.array([12] * 20, pa.int16()))
    assert isinstance(found, pa.ChunkedArray)
    same(found.combine_chunks(), expected)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_no_rows_give_no_rows(kind: pa.DataType) -> None:
    found = decode_messages("FetchRequest", pa.array([], kind), 13)
    assert found.type == message_type("FetchRequest")
    assert len(found) == 0
    chunked = decode_messages("FetchRequest", pa.chunked_array([], kind), 13)
    assert (chunked.type, len(chunked)) == (found.type, 0)


def test_the_type_is_that_of_all_versions_whichever_are_asked_for() -> None:
    entry = catalog().entry("MetadataResponse")
    raws = [message("MetadataResponse")().encode(version) for version in entry.versions]
    kinds = {
        decode_messages("MetadataResponse", pa.array([raw]), version).type
        for raw, version in zip(raws, entry.versions, strict=True)
    }
    assert kinds == {message_type("MetadataResponse")}


def test_fail_fast_raises_the_reference_s_error_and_names_the_row() -> None:
    raw = message("MetadataResponse")().encode(12)
    with pytest.raises(DecodeError) as caught:
        decode_messages("MetadataResponse", pa.array([raw, raw, raw[:-1]]), 12)
    with pytest.raises(DecodeError) as expected:
        message("MetadataResponse").decode(raw[:-1], 12)
    assert str(caught.value) == str(expected.value)
    assert caught.value.__notes__ == ["in row 2"]


def test_a_version_that_is_none_is_an_error_of_its_rows() -> None:
    raw = message("MetadataResponse")().encode(12)
    data = pa.array([raw, raw, raw, None])
    found = decode_messages("MetadataResponse", data, [12, 99, None, 99], mode="PERMISSIVE")
    assert [one is None for one in found.values.to_pylist()] == [False, True, True, True]
    reasons = [error and error["reason"] for error in found.errors.to_pylist()]
    assert reasons[0] is None
    assert reasons[1] == "MetadataResponse has no version 99; released are 0-13"
    assert reasons[2] == "no version was given"
    assert reasons[3] is None
    with pytest.raises(UnknownMessageError, match="no version 99"):
        decode_messages("MetadataResponse", data, 99)


def test_what_is_no_column_of_messages_is_refused() -> None:
    with pytest.raises(TypeError, match="binary or large_binary column, got 'string'"):
        decode_messages("FetchRequest", pa.array(["text"]), 13)
    with pytest.raises(ValueError, match="expected a version for each of 2 rows, got 1"):
        decode_messages("FetchRequest", pa.array([b"", b""]), [13])
    with pytest.raises(UnknownMessageError):
        decode_messages("FetchRequst", pa.array([b""]), 13)


def test_offsets_that_lie_are_refused_rows(slow_path: None) -> None:
    del slow_path
    raw = message("RequestHeader")().encode(2)
    offsets = pa.array([0, len(raw), 2**30, 4, len(raw)], pa.int32()).buffers()[1]
    data = pa.Array.from_buffers(pa.binary(), 4, [None, offsets, pa.py_buffer(raw)])
    with pytest.raises(CodecError, match="not a valid Arrow array"):
        decode_messages("RequestHeader", data, 2)


@pytest.mark.long
@pytest.mark.slow
def test_text_is_utf8_just_where_python_s_decoder_says_so() -> None:
    leads = [0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF]
    leads += [0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    edges = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0]
    texts = [bytes([lead, *more]) for lead in leads for more in product(edges, repeat=2)]
    texts += [bytes([lead, one, 0x80, last]) for lead in leads for one in edges for last in edges]
    # Text alone, cut off, and at the lengths at which text is checked in steps of 8 and 16 bytes.
    texts += [text[:-1] for text in texts]
    texts = [before + text + after for text in texts for before, after in AROUND]
    rows = [bytes(8) + len(text).to_bytes(2, "big") + text + b"\x00" for text in texts]
    expected, errors = decoded("RequestHeader", rows, [2] * len(rows))
    assert 1000 < sum(error is None for error in errors) < len(rows) - 1000
    found = decode_messages("RequestHeader", pa.array(rows), 2, mode="PERMISSIVE")
    assert found.errors.to_pylist() == errors
    same(found.values, expected)
