"""The claims of KIP-482 and KIP-636 about bytes are compared with measurements."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.wire.encoding import Encoding
from tests.cost.made import Field, body, compare, spec, totals

FLEXIBLE = (Encoding.FIXED, Encoding.FLEXIBLE)
# A message also contains a count of its own tagged fields.
COUNT = 1


def saved(field: Field, value: Any) -> int:
    edition = spec(field, flexible="none")
    old, new = totals(compare(edition, edition, body(edition, it=value), encodings=FLEXIBLE))
    return old - new + COUNT


@pytest.mark.parametrize(
    ("kind", "one", "sizes"),
    [
        # "save three bytes per array": up to 126 elements.
        ("[]int8", [0], {0: 3, 126: 3, 127: 2, 16382: 2, 16383: 1}),
        # "three bytes per byte buffer": up to 126 bytes.
        ("bytes", b"b", {0: 3, 126: 3, 127: 2, 16382: 2, 16383: 1, 2097150: 1, 2097151: 0}),
        # "one byte per string": up to 126 bytes; from 16,383 bytes the length takes one byte more.
        ("string", "s", {0: 1, 126: 1, 127: 0, 16382: 0, 16383: -1, 32767: -1}),
    ],
)
def test_what_a_compact_type_saves_depends_on_the_length(
    kind: str, one: Any, sizes: dict[int, int]
) -> None:
    field = {"name": "It", "type": kind}
    assert {size: saved(field, one * size) for size in sizes} == sizes


def test_each_structure_pays_a_byte_for_its_tag_section() -> None:
    inner = [{"name": "Id", "type": "int32", "versions": "0+"}]
    field = {"name": "It", "type": "[]Item", "fields": inner}
    assert saved(field, []) == 3
    # Three elements use up the saving of the array, and each further element costs a byte.
    assert saved(field, [{}] * 3) == 0
    assert saved(field, [{}] * 10) == -7


def test_a_null_is_as_short_as_an_empty_value() -> None:
    for kind, expected in (("string", 1), ("bytes", 3), ("[]int8", 3)):
        assert saved({"name": "It", "type": kind, "nullableVersions": "0+"}, None) == expected


CODE = {"name": "It", "type": "int16"}
TEXT = {"name": "It", "type": "string", "nullableVersions": "0+", "default": "null"}


def change(field: Field, value: Any, tag: int = 0, *, flexible: str = "0+") -> int:
    old, new = spec(field, flexible=flexible), spec(field | {"taggedVersions": "0+", "tag": tag})
    before, after = totals(compare(old, new, body(old, it=value)))
    return before - after


def test_a_zero_code_saves_two_bytes_and_another_takes_four_rather_than_two() -> None:
    assert [change(CODE, code) for code in (0, 1, -1, 32767)] == [2, -2, -2, -2]


def test_a_null_message_saves_a_byte_and_another_takes_two_more() -> None:
    sizes = {0: -2, 126: -2, 127: -3, 16380: -3, 16381: -3, 16382: -4, 32767: -4}
    assert change(TEXT, None) == 1
    assert {size: change(TEXT, "m" * size) for size in sizes} == sizes


def test_a_tag_above_127_costs_a_third_byte() -> None:
    assert [change(CODE, 1, tag) for tag in (127, 128, 16383, 16384)] == [-2, -3, -3, -4]


def test_a_version_that_becomes_flexible_saves_a_null_s_second_byte_and_pays_for_the_section() -> (
    None
):
    assert change(TEXT, None, flexible="none") == 2 - COUNT
    assert change(CODE, 0, flexible="none") == 2 - COUNT
