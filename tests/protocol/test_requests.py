from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import DecodeError, FrameError
from flexwire.protocol import RequestFrame, parse_request
from flexwire.schema.catalog import catalog
from tests.each import each
from tests.protocol.payloads import make, request_payload


def test_a_request_header_of_each_version() -> None:
    plain = parse_request(bytes.fromhex("0007 0000 00000005 cafe"))
    assert (plain.message_name, plain.header_version, plain.body_offset) == (
        "ControlledShutdownRequest",
        0,
        8,
    )
    assert plain.client_id is None
    named = parse_request(bytes.fromhex("0003 0001 00000005 0002 6869 cafe"))
    assert (named.message_name, named.header_version, named.body_offset) == (
        "MetadataRequest",
        1,
        12,
    )
    assert (named.client_id, named.correlation_id, named.api_name) == ("hi", 5, "Metadata")
    tagged = parse_request(bytes.fromhex("0003 0009 00000005 ffff 01 63 02 abcd cafe"))
    assert (tagged.header_version, tagged.body_offset, tagged.client_id) == (2, 15, None)
    header: Any = tagged.header
    assert header.unknown_tagged_fields == {0x63: b"\xab\xcd"}


def test_a_request_has_the_newest_name_with_its_version() -> None:
    for api_key in catalog().api_keys():
        name = parse_request(request_payload(api_key, 1)).message_name
        assert catalog().entry(name).api_key == api_key
    assert parse_request(request_payload(2, 5)).message_name == "ListOffsetsRequest"
    assert parse_request(request_payload(56, 0)).message_name == "AlterPartitionRequest"
    # A version that is newer than the catalog is given the newest name.
    assert parse_request(request_payload(3, 1000)).message_name == "MetadataRequest"


@pytest.mark.parametrize("rest", [b"", b"\0", b"\xff" * 9, b"\1\0\x10" + bytes(16)])
def test_of_a_version_that_the_catalog_lacks_header_1_is_read_and_nothing_else(rest: bytes) -> None:
    # Source: KAFKA-21160, how a broker reads a version that it lacks.
    beginning = make(
        "RequestHeader", request_api_key=3, request_api_version=1000, client_id="later"
    ).encode(1)
    read = parse_request(beginning + rest)
    assert (read.header_version, read.client_id, read.body_offset) == (1, "later", len(beginning))


@each("api_key", catalog().api_keys())
def test_every_prefix_of_a_header_is_refused_and_every_tail_left(api_key: int) -> None:
    newest = catalog().entry(parse_request(request_payload(api_key, 0)).message_name).versions
    for version in (newest.lowest, newest.highest):
        payload = request_payload(api_key, version, unknown_tagged_fields=None)
        whole = parse_request(payload + b"body")
        assert whole.body_offset == len(payload)
        assert (whole.api_key, whole.api_version) == (api_key, version)
        for length in range(len(payload)):
            with pytest.raises((FrameError, DecodeError)):
                parse_request(payload[:length])


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "at least 8 bytes"),
        (bytes(7), "at least 8 bytes"),
        (bytes.fromhex("03e7 0000 00000001 ffff"), "api key 999"),
        (bytes.fromhex("ffff 0000 00000001 ffff"), "api key -1"),
        (bytes.fromhex("0003 ffff 00000001 ffff"), "version -1"),
        (b"GET / HTTP/1.1\r\n\r\n", "api key 18245"),
    ],
)
def test_what_is_not_a_request_is_refused_with_the_reason(payload: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        parse_request(payload)


@given(st.binary(max_size=64))
def test_any_bytes_parse_or_are_refused_with_our_errors(payload: bytes) -> None:
    try:
        frame = parse_request(payload)
    except (FrameError, DecodeError):
        return
    assert isinstance(frame, RequestFrame)
    assert 8 <= frame.body_offset <= len(payload)


@given(
    api_key=st.sampled_from(catalog().api_keys()),
    version=st.integers(0, 20),
    tail=st.binary(max_size=40),
)
def test_any_bytes_after_a_known_api_key(api_key: int, version: int, tail: bytes) -> None:
    head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big")
    try:
        frame = parse_request(head + tail)
    except (FrameError, DecodeError):
        return
    assert (frame.api_key, frame.api_version) == (api_key, version)
