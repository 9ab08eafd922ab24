"""Both executors write the bytes and the JSON that Kafka's own Java wrote."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import DecodeError
from tests.codec.vectors import class_of, has_changed, load
from tests.each import each

BY_MESSAGE = load()


def test_all_the_vectors_are_here() -> None:
    assert sum(map(len, BY_MESSAGE.values())) == 1522


@pytest.mark.long
@pytest.mark.slow
@each("vectors", BY_MESSAGE)
def test_both_executors_decode_to_the_same_object(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        generated = made.definition.decode_exactly(raw, version)
        reference, end = made.definition.decode_reference(raw, version)
        assert generated == reference
        assert end == len(raw)


@pytest.mark.long
@pytest.mark.slow
@each("vectors", BY_MESSAGE)
def test_both_executors_encode_to_java_s_bytes(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        decoded = made.definition.decode_exactly(raw, version)
        assert made.definition.encode_generated(decoded, version) == raw
        assert made.definition.encode_reference(decoded, version) == raw


@pytest.mark.slow
@each("vectors", BY_MESSAGE)
def test_the_json_form_is_that_of_java_s_converters(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        # Later releases renamed fields, so these are the names of the release that made the
        # vectors.
        made = message(vector["message"], vector["release"])
        raw, version = bytes.fromhex(vector["hex"]), vector["version"]
        ours = made.decode(raw, version).to_json(version)
        unknown = ours.pop("_unknownTaggedFields", [])
        # These are compared as strings, so that the order of names counts and NaN can be compared.
        assert str(ours) == str(vector["json"])
        expected = [(one["tag"], one["hex"]) for one in vector["unknown_tagged_fields"]]
        assert [(one["tag"], b64decode(one["data"]).hex()) for one in unknown] == expected


@pytest.mark.long
@pytest.mark.slow
@each("vectors", BY_MESSAGE)
def test_the_json_form_reads_back_to_the_same_bytes(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        ours = made.decode(raw, version).to_json(version)
        assert made.from_json(ours, version).encode(version) == raw


@pytest.mark.long
@pytest.mark.slow
def test_a_layout_that_changed_is_reached_only_by_naming_its_release() -> None:
    changed = [one for vectors in BY_MESSAGE.values() for one in vectors if has_changed(one)]
    refused = 0
    for vector in changed:
        raw, version = bytes.fromhex(vector["hex"]), vector["version"]
        assert class_of(vector).decode(raw, version).encode(version) == raw
        try:
            # A field that received a tag later is unknown here, and is written again as an unknown
            # field.
            message(vector["message"]).decode(raw, version)
        except DecodeError:
            refused += 1
    assert refused
