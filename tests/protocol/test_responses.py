from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.codec import message
from flexwire.errors import DecodeError, FrameError
from flexwire.protocol import parse_response
from flexwire.schema.catalog import catalog
from tests.each import each
from tests.protocol.payloads import make, response_payload

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35


def api_versions(error_code: int, *, keys: int) -> bytes:
    """Return a response to ApiVersions v0, as Kafka's protocol guide describes it."""
    entries = b"".join(key.to_bytes(2, "big") + bytes.fromhex("00000004") for key in range(keys))
    return error_code.to_bytes(2, "big") + keys.to_bytes(4, "big") + entries


def test_a_response_header_of_each_version() -> None:
    plain = parse_response(bytes.fromhex("00000005 cafe"), 3, 8)
    assert (plain.correlation_id, plain.header_version, plain.body_offset) == (5, 0, 4)
    assert (plain.message_name, plain.body_version) == ("MetadataResponse", 8)
    tagged = parse_response(bytes.fromhex("00000005 01 63 02 abcd cafe"), 3, 9)
    assert (tagged.header_version, tagged.body_offset) == (1, 9)
    header: Any = tagged.header
    assert header.unknown_tagged_fields == {0x63: b"\xab\xcd"}


@pytest.mark.parametrize("keys", [0, 1, 60])
@pytest.mark.parametrize("asked", [1, 2, 3, 4, 5, 99, 32767])
def test_a_broker_without_the_version_answers_in_version_0(asked: int, keys: int) -> None:
    payload = bytes.fromhex("00000005") + api_versions(UNSUPPORTED_VERSION, keys=keys)
    frame = parse_response(payload, API_VERSIONS, asked)
    assert (frame.body_version, frame.body_offset, frame.header_version) == (0, 4, 0)
    body: Any = message(frame.message_name).decode(payload[4:], 0)
    assert len(body.api_keys) == keys


@pytest.mark.parametrize("asked", [1, 2, 3, 4])
def test_a_broker_that_has_the_version_is_read_in_it_whatever_the_error(asked: int) -> None:
    for error_code in (0, UNSUPPORTED_VERSION):
        body = make("ApiVersionsResponse", error_code=error_code)
        payload = response_payload(API_VERSIONS, asked, body)
        assert parse_response(payload, API_VERSIONS, asked).body_version == asked


def test_version_0_with_another_error_is_no_fallback() -> None:
    payload = bytes.fromhex("00000005") + api_versions(0, keys=2)
    assert parse_response(payload, API_VERSIONS, 3).body_version == 3
    assert parse_response(payload, API_VERSIONS, 0).body_version == 0


def test_no_other_response_falls_back() -> None:
    payload = bytes.fromhex("00000005") + api_versions(UNSUPPORTED_VERSION, keys=2)
    assert parse_response(payload, 3, 8).body_version == 8


@each("api_key", catalog().api_keys())
def test_every_prefix_of_a_header_is_refused_and_every_tail_left(api_key: int) -> None:
    for version in (0, 1000):
        payload = response_payload(api_key, version)
        assert parse_response(payload + b"body", api_key, version).body_offset == len(payload)
        for length in range(len(payload)):
            with pytest.raises((FrameError, DecodeError)):
                parse_response(payload[:length], api_key, version)


@given(
    api_key=st.sampled_from([*catalog().api_keys(), API_VERSIONS, API_VERSIONS]),
    version=st.integers(0, 40),
    payload=st.binary(max_size=64),
)
def test_any_bytes_parse_or_are_refused_with_our_errors(
    api_key: int, version: int, payload: bytes
) -> None:
    try:
        frame = parse_response(payload, api_key, version)
    except (FrameError, DecodeError):
        return
    assert frame.body_version in (0, version)
    assert 4 <= frame.body_offset <= len(payload)
