"""An explanation covers every byte once, in order, and stops where decoding stops."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import explain, message
from flexwire.errors import DecodeError
from tests.codec.vectors import class_of, load
from tests.each import each

BY_MESSAGE = load()


@pytest.mark.long
@pytest.mark.slow
@each("name", sorted(BY_MESSAGE))
def test_annotations_tile_the_message(name: str) -> None:
    for vector in BY_MESSAGE[name]:
        raw = bytes.fromhex(vector["hex"])
        found = explain(class_of(vector), raw, vector["version"])
        at = 0
        for one in found.annotations:
            # The bytes of an array or null structure come directly before its content.
            assert one.offset == at
            at += one.length
        assert (at, found.rest, found.error) == (len(raw), len(raw), None)


def test_each_annotation_names_field_type_and_value() -> None:
    header: Any = message("RequestHeader")
    raw = bytes.fromhex("0012000300000007000161012a01ff")
    found = explain(header, raw, 2)
    assert [
        (one.offset, one.length, one.path, one.type, one.value) for one in found.annotations
    ] == [
        (0, 2, "requestApiKey", "INT16", 18),
        (2, 2, "requestApiVersion", "INT16", 3),
        (4, 4, "correlationId", "INT32", 7),
        (8, 3, "clientId", "NULLABLE_STRING", "a"),
        (11, 1, "_taggedFields", "tagged field count", 1),
        (12, 1, "_taggedFields", "tag", 42),
        (13, 1, "_taggedFields", "tagged field size", 1),
        (14, 1, "_taggedFields[42]", "unknown tagged field", b"\xff"),
    ]


def test_what_precedes_an_error_is_explained() -> None:
    header: Any = message("RequestHeader")
    raw = bytes.fromhex("001200030000000700ff61")
    found = explain(header, raw, 1)
    assert [one.path for one in found.annotations] == [
        "requestApiKey",
        "requestApiVersion",
        "correlationId",
    ]
    assert found.rest == 8
    assert str(found.error) == (
        "RequestHeader v1 at clientId, byte 10: declared length 255 but 1 bytes remain"
    )
    with pytest.raises(DecodeError) as caught:
        header.decode(raw, 1)
    assert str(caught.value) == str(found.error)
