"""Control records of every type are read, including future versions and invalid bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import DecodeError, UnknownMessageError
from flexwire.protocol.record_types import CONTROL_TYPES, decode_control_record
from flexwire.schema.catalog import catalog


def key(control_type: int, version: int = 0) -> bytes:
    return version.to_bytes(2, "big", signed=True) + control_type.to_bytes(2, "big", signed=True)


MARKER = bytes.fromhex("0000 00000007")


@pytest.mark.parametrize("control_type", CONTROL_TYPES)
def test_every_type_in_every_version(control_type: int) -> None:
    name, value_name = CONTROL_TYPES[control_type]
    for version in catalog().entry(value_name).versions:
        made: Any = message(value_name)()
        prefix = version.to_bytes(2, "big") if value_name == "EndTxnMarker" else b""
        if not prefix:
            made.version = version
        found = decode_control_record(key(control_type), prefix + made.encode(version))
        assert (found.type, found.name, found.version) == (control_type, name, version)
        assert found.message == made
        form = found.to_json()
        assert (form["message"], form["version"]) == (value_name, version)
        assert form["data"] == made.to_json(version)


def test_a_release_is_read_by_its_own_layout() -> None:
    entry = catalog().entry("LeaderChangeMessage")
    layouts = {release: entry.spec(0, release) for release in entry.releases}
    assert len(set(map(id, layouts.values()))) > 1
    for release in layouts:
        made = message(entry.name, release)()
        assert decode_control_record(key(2), made.encode(0), release).message == made


def test_a_message_that_a_release_does_not_have_is_unknown() -> None:
    value = message("VotersRecord")().encode(0)
    assert decode_control_record(key(6), value).name == "KRAFT_VOTERS"
    with pytest.raises(UnknownMessageError, match="VotersRecord is not in"):
        decode_control_record(key(6), value, "3.6.2")


@pytest.mark.parametrize("control_type", [-1, 7, 32767])
def test_a_type_that_is_not_known_is_no_error(control_type: int) -> None:
    found = decode_control_record(key(control_type), b"whatever")
    assert found.to_json() == {"type": control_type, "name": None}


def test_a_newer_key_or_marker_is_read_as_the_known_one() -> None:
    found = decode_control_record(key(1, version=3) + b"more", b"\0\x05" + MARKER[2:] + b"more")
    assert found.to_json()["data"] == {"coordinatorEpoch": 7}


def test_a_newer_version_of_another_value_is_unknown_rather_than_damaged() -> None:
    with pytest.raises(UnknownMessageError, match="VotersRecord has no version 9"):
        decode_control_record(key(6), b"\0\x09\0")


@pytest.mark.parametrize(
    ("record_key", "value", "error"),
    [
        (None, MARKER, "null"),
        (b"", MARKER, "0 bytes"),
        (b"\0", MARKER, "1 bytes"),
        (b"\0\0\0", MARKER, "bytes"),
        (key(0, version=-1), MARKER, "version -1"),
        (key(0) + b"x", MARKER, "1 bytes follow"),
        (key(0), None, "null"),
        (key(0), b"\0", "1 bytes"),
        (key(0), MARKER[:-1], "bytes"),
        (key(0), MARKER + b"x", "1 bytes follow"),
        (key(0), b"\xff\xff" + MARKER[2:], "version -1"),
        (key(2), None, "null"),
        (key(2), b"\0\0", "bytes"),
        (key(4), b"\0\0\0\0", "1 bytes follow"),
    ],
)
def test_bytes_that_are_no_control_record(
    record_key: bytes | None, value: bytes | None, error: str
) -> None:
    with pytest.raises(DecodeError, match=error):
        decode_control_record(record_key, value)


def test_any_bytes_are_a_control_record_or_an_error_of_ours() -> None:
    picked = random.Random(2)
    decoded = 0
    for _ in range(2000):
        value = bytes([0, picked.randrange(2)]) + picked.randbytes(picked.randrange(12))
        try:
            decode_control_record(key(picked.randrange(8)), value).to_json()
        except (DecodeError, UnknownMessageError):
            continue
        decoded += 1
    assert decoded
