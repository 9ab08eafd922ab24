"""Kafka's own Java is the judge: its bytes and its JSON, through both executors."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import DecodeError
from tests.codec.vectors import MADE_BY, PREVIEW, class_of, load

BY_MESSAGE = load()


def test_all_the_vectors_are_here() -> None:
    assert sum(map(len, BY_MESSAGE.values())) == 1522


@pytest.fixture(params=sorted(BY_MESSAGE))
def vectors(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = BY_MESSAGE[request.param]
    return found


def test_both_executors_decode_to_the_same_object(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        generated = made.definition.decode_exactly(raw, version)
        reference, end = made.definition.decode_reference(raw, version)
        assert generated == reference
        assert end == len(raw)


def test_both_executors_encode_to_java_s_bytes(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        decoded = made.definition.decode_exactly(raw, version)
        assert made.definition.encode_generated(decoded, version) == raw
        assert made.definition.encode_reference(decoded, version) == raw


def test_the_json_form_is_that_of_java_s_converters(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        # Later releases renamed fields, so the names are those of the release that made them.
        made = message(vector["message"], MADE_BY)
        raw, version = bytes.fromhex(vector["hex"]), vector["version"]
        ours = made.decode(raw, version).to_json(version)
        unknown = ours.pop("_unknownTaggedFields", [])
        # As text, so that the order of the names and NaN count too.
        assert str(ours) == str(vector["json"])
        expected = [(one["tag"], one["hex"]) for one in vector["unknown_tagged_fields"]]
        assert [(one["tag"], b64decode(one["data"]).hex()) for one in unknown] == expected


def test_the_json_form_reads_back_to_the_same_bytes(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        ours = made.decode(raw, version).to_json(version)
        assert made.from_json(ours, version).encode(version) == raw


def test_the_preview_layout_is_reached_only_by_naming_its_release() -> None:
    name, version = PREVIEW
    raw = bytes.fromhex(BY_MESSAGE[name][0]["hex"])
    assert message(name, MADE_BY).decode(raw, version).encode(version) == raw
    with pytest.raises(DecodeError):
        message(name).decode(raw, version)
