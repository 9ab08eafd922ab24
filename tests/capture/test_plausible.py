"""The plausibility check decides which bytes can be the beginning of a frame."""

from __future__ import annotations

import struct

import pytest

from flexwire.capture.reassembly.course import NOTED_FRAMES, PendingRequests
from flexwire.capture.reassembly.framing import (
    LIKELY_LENGTH,
    REQUEST_HEAD_BYTES,
    leads_to_a_response,
    looks_like_request,
    looks_like_response,
    looks_like_responses,
)
from tests.capture.traffic import framed, request, response

LIMIT = 1000


def head(
    *,
    api_key: int = 18,
    version: int = 0,
    correlation_id: int = 5,
    client_id: bytes = b"test",
    client_id_length: int | None = None,
    length: int | None = None,
) -> bytes:
    size = len(client_id) if client_id_length is None else client_id_length
    payload = struct.pack(">hhih", api_key, version, correlation_id, size) + client_id
    return struct.pack(">i", len(payload) if length is None else length) + payload


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (head(), True),
        (head(client_id=b"", client_id_length=-1), True),
        (head(client_id="é".encode()), True),
        # ControlledShutdown v0 has no client id.
        (head(api_key=7, client_id=b"", client_id_length=-9), True),
        (head(length=LIMIT), True),
        (head(length=LIMIT + 9), False),
        (head(length=7), False),
        (head(length=-1), False),
        (head(api_key=32000), False),
        (head(api_key=-1), False),
        (head(version=99), False),
        (head(version=-1), False),
        (head(correlation_id=-1), False),
        (head(client_id_length=5), False),
        (head(client_id_length=-2), False),
        (head(client_id=b"te\x00t"), False),
        (head(length=100, client_id_length=50), None),
    ],
)
def test_a_request_is_told_from_other_bytes(data: bytes, answer: bool | None) -> None:  # noqa: FBT001 - pytest names it
    assert looks_like_request(data, LIMIT) is answer


def test_some_bytes_always_suffice_for_a_request_and_fewer_may_not() -> None:
    long = request(1)[:12] + struct.pack(">h", 200) + b"c" * 200
    long = struct.pack(">i", len(long) - 4) + long[4:]
    for size in range(len(long)):
        assert looks_like_request(long[:size], LIMIT) is (
            None if size < REQUEST_HEAD_BYTES else True
        )


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (response(3), True),
        (response(3) + response(4, 9), True),
        (response(3) + response(4, 9)[:8], True),
        (response(3) + b"\x00\x00", True),
        (response(3)[:7], None),
        (b"", None),
        (framed(b"123"), None),
        (framed(b"\x00" * 3) + b"1", False),
        (response(3) + b"\xff" * 8, False),
        (response(-1), False),
        (struct.pack(">ii", LIMIT + 1, 3), False),
    ],
)
def test_lengths_lead_from_response_to_response(data: bytes, answer: bool | None) -> None:  # noqa: FBT001 - pytest names it
    assert looks_like_responses(data, LIMIT) is answer
    first = looks_like_response(data[:8], LIMIT)
    assert first is answer or (first is True and answer is False)


def leads(data: bytes) -> bool | None:
    return leads_to_a_response(lambda start, count: data[start : start + count], len(data))


@pytest.mark.parametrize(
    ("behind", "answer"),
    [
        (b"", True),
        (response(5)[:1], None),
        (response(5)[:7], None),
        (response(5)[:8], True),
        (response(104, 30), True),
        (response(105, 30), False),
        (response(4), False),
        (response(3), False),
        (response(-1), False),
        (framed(b"123") + b"1234", False),
        (struct.pack(">ii", LIKELY_LENGTH, 5), True),
        (struct.pack(">ii", LIKELY_LENGTH + 1, 5), False),
        (b"\xff" * 8, False),
    ],
)
def test_a_response_nobody_awaits_needs_what_follows_it(behind: bytes, answer: bool | None) -> None:  # noqa: FBT001 - pytest names it
    whole = response(4, 20)
    assert leads(whole + behind) is answer
    for size in range(8, len(whole)):
        assert leads(whole[:size]) is None


@pytest.mark.parametrize("length", [-1, 3, LIKELY_LENGTH + 1, 2**31 - 1])
def test_a_length_that_no_awaited_response_has_is_refused_at_once(length: int) -> None:
    assert leads(struct.pack(">ii", length, 5)) is False


def test_a_response_is_awaited_until_it_has_come() -> None:
    waiting = PendingRequests()
    assert not waiting.expects(response(5))
    for _ in range(2):
        waiting.note("request", request(5)[4:])
    for _ in range(2):
        assert waiting.expects(response(5))
        waiting.note("response", response(5)[4:])
    assert not waiting.expects(response(5))


def test_requests_that_are_never_answered_are_forgotten_in_the_end() -> None:
    waiting = PendingRequests()
    for n in range(NOTED_FRAMES + 1):
        waiting.note("request", request(n)[4:])
    assert not waiting.expects(response(0))
    assert waiting.expects(response(1))
    assert waiting.expects(response(NOTED_FRAMES))


def test_a_response_from_before_the_capture_has_an_id_a_little_lower() -> None:
    waiting = PendingRequests()
    assert waiting.follows(response(9))
    waiting.note("request", request(5000)[4:])
    assert [waiting.follows(response(n)) for n in (4999, 4000, 3999, 5001)] == [
        True,
        True,
        False,
        False,
    ]
    waiting.note("response", response(5000)[4:])
    assert not waiting.follows(response(4999))
