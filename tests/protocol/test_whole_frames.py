"""A frame is read with and without its length, and a response by its API or request."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import CodecError, FrameError
from flexwire.protocol import parse_request, read_request
from flexwire.protocol.frame_explanation import WholeFrame, explain_frame
from flexwire.protocol.frame_input import read_input_requests, read_input_responses
from flexwire.protocol.frames import begins_with_length
from tests.each import each
from tests.protocol.payloads import make, request_payload, response_payload

METADATA, FETCH = 3, 1


def _request(data: bytes) -> WholeFrame:
    [found] = read_input_requests(data)
    assert found.whole is not None
    return found.whole


def _response(data: bytes, key: int, version: int) -> WholeFrame:
    [found] = read_input_responses(data, lambda _: (key, version))
    assert found.whole is not None
    return found.whole


def _captured(payload: bytes) -> WholeFrame:
    """Return a frame from a capture, before it is known whether its body can be decoded."""
    header = read_request(payload)
    return WholeFrame(payload, True, header, header.api_version)


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@each("version", range(4, 14))
def test_a_request_is_read_with_its_length_and_without(version: int) -> None:
    body = make("MetadataRequest")
    payload = request_payload(METADATA, version, body, correlation_id=9)
    for data, had_length in ((payload, False), (_framed(payload), True)):
        found = _request(data)
        assert (found.payload, found.had_length, found.kind) == (payload, had_length, "request")
        assert (found.header.message_name, found.version) == ("MetadataRequest", version)
        assert message("MetadataRequest").decode(found.body, version) == body


@each("version", range(4, 14))
def test_a_response_is_read_with_its_length_and_without(version: int) -> None:
    body = make("MetadataResponse", cluster_id="c" if version > 1 else None)
    payload = response_payload(METADATA, version, body, correlation_id=9)
    for data, had_length in ((payload, False), (_framed(payload), True)):
        found = _response(data, METADATA, version)
        assert (found.payload, found.had_length, found.kind) == (payload, had_length, "response")
        assert found.header.correlation_id == 9
        assert message("MetadataResponse").decode(found.body, version) == body


def test_a_request_that_looks_like_its_own_length_is_a_request() -> None:
    """Fetch v12 begins with 00 01 00 0c, which could also be the length of a frame of
    65548 bytes.
    """
    body = make("FetchRequest", rack_id="r" * 32767)
    short = len(request_payload(FETCH, 12, body, client_id="c"))
    client_id = "c" * (1 + 0x0001_000C + 4 - short)
    payload = request_payload(FETCH, 12, body, client_id=client_id)
    assert begins_with_length(payload)
    found = _request(payload)
    assert (found.payload, found.had_length) == (payload, False)
    assert (found.header.message_name, found.version) == ("FetchRequest", 12)
    assert parse_request(payload).api_name == "Fetch"


def test_a_frame_with_its_length_is_not_taken_for_a_version_of_produce() -> None:
    body = make("MetadataRequest")
    payload = request_payload(METADATA, 12, body, client_id="x" * 100)
    framed = _framed(payload)
    with pytest.raises(FrameError, match="begin with their own length"):
        parse_request(framed)
    # Bytes that are known to be a payload are read as a payload even if they look like a frame
    # with its length, because a future release may have such a version.
    assert read_request(framed).api_version == len(payload)
    assert parse_request(payload).api_version == 12


def test_a_frame_is_explained_to_its_last_byte() -> None:
    payload = request_payload(METADATA, 12, make("MetadataRequest"))
    header, body = explain_frame(_request(_framed(payload)))
    assert header.data + body.data == payload
    assert header.title == f"request: a frame of {len(payload)} bytes; RequestHeader v2"
    assert body.title == "MetadataRequest v12"
    assert (header.explanation.error, body.explanation.error) == (None, None)


def test_what_does_not_decode_is_explained_as_far_as_it_does() -> None:
    payload = request_payload(METADATA, 12, make("MetadataRequest"))[:-1]
    _, body = explain_frame(_captured(payload))
    assert body.explanation.error is not None
    assert body.explanation.annotations


def test_credentials_are_withheld_where_asked() -> None:
    secret: Any = make("SaslAuthenticateRequest", auth_bytes=b"\0alice\0secret")
    frame = _request(request_payload(36, 2, secret))
    _, shown = explain_frame(frame)
    assert b"secret" in shown.data
    _, hidden = explain_frame(frame, withheld=True)
    assert (hidden.withheld, b"secret" in hidden.data) == (1, False)
    broken = _captured(request_payload(36, 2, secret)[:-1])
    _, nothing = explain_frame(broken, withheld=True)
    assert (nothing.withheld, nothing.data) == (1, b"")


@each("damage", [(at, value) for at in range(8, 38) for value in (0, 1, 18, 255)])
def test_no_byte_that_is_damaged_lays_a_credential_open(
    damage: tuple[int, int],
) -> None:
    secret: Any = make("SaslAuthenticateRequest", auth_bytes=b"\0alice\0secret-of-alice")
    damaged = bytearray(request_payload(36, 1, secret))
    at, value = damage
    damaged[at] = value
    with suppress(FrameError, CodecError):
        for part in explain_frame(_captured(bytes(damaged)), withheld=True):
            assert b"secret-" not in part.data
            assert "secret-" not in str(part.explanation)
            assert part.explanation.rest == len(part.data) or part.explanation.error
