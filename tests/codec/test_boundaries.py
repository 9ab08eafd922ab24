"""The reference, generated source and the JSON form pass every case of `boundaries`."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import Encoding
from flexwire.codec.definition import _OUT_OF_THE_ORDINARY
from flexwire.errors import DecodeError, EncodeError, JsonFormError
from tests.codec.boundaries import DECODED, ENCODED, REFUSED, Case
from tests.searching import in_make_long


def reference_bytes(case: Case) -> Any:
    try:
        return case.message.definition.encode_reference(case.holder, case.version)
    except EncodeError:
        return REFUSED


def generated_bytes(case: Case) -> Any:
    try:
        return case.message.definition.encode_generated(case.holder, case.version)
    except _OUT_OF_THE_ORDINARY:
        return REFUSED


def public_bytes(case: Case) -> Any:
    try:
        return case.holder.encode(case.version)
    except EncodeError:
        return REFUSED


def json_bytes(case: Case) -> Any:
    """Return a value's bytes after a conversion to the JSON form and back, or REFUSED."""
    try:
        sound = case.raw is not REFUSED
        form = case.holder.to_json(case.version) if sound else {"value": case.value}
        return case.message.from_json(form, case.version).encode(case.version)
    except (EncodeError, JsonFormError):
        return REFUSED


def reference_value(case: Case) -> Any:
    try:
        found, end = case.message.definition.decode_reference(case.raw, case.version)
    except DecodeError:
        return REFUSED
    return found if end == len(case.raw) else REFUSED


def generated_value(case: Case) -> Any:
    decode = case.message.definition._decoder(case.version, Encoding.KAFKA)
    try:
        found, end = decode(case.raw, 0, len(case.raw))
    except _OUT_OF_THE_ORDINARY:
        return REFUSED
    return found if end == len(case.raw) else REFUSED


def public_value(case: Case) -> Any:
    try:
        return case.message.decode(case.raw, case.version)
    except DecodeError:
        return REFUSED


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor", [reference_bytes, generated_bytes, public_bytes, *in_make_long(json_bytes)]
)
def test_what_is_written_at_every_boundary(executor: Any) -> None:
    wrong = [str(case) for case in ENCODED if executor(case) != case.raw]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor", [generated_value, *in_make_long(reference_value, public_value)]
)
def test_what_is_read_at_every_boundary(executor: Any) -> None:
    # These are compared as strings, because NaN is not equal to itself, and 0.0 is equal to -0.0.
    expected = [REFUSED if case.value is REFUSED else case.holder for case in DECODED]
    wrong = [
        (str(case), case.raw[:20].hex())
        for case, value in zip(DECODED, expected, strict=True)
        if repr(executor(case)) != repr(value)
    ]
    assert wrong == []


def test_the_list_has_every_type_on_both_sides_of_each_end() -> None:
    assert len(ENCODED) > 1000
    assert len(DECODED) > 2000
    for kind in ("int8", "int16", "uint16", "int32", "uint32", "int64", "string"):
        for version in (0, 2):
            found = [case for case in ENCODED if (case.kind, case.version) == (kind, version)]
            assert any(case.raw is REFUSED and case.value is not None for case in found)
            assert any(case.raw is not REFUSED for case in found)
