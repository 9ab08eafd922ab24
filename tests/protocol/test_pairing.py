from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import DecodeError, FrameError
from flexwire.protocol import Pairing, RequestFrame, SaslToken, expects_response, parse_request
from tests.protocol.payloads import make, request_payload, response_payload

PRODUCE, METADATA, SASL_HANDSHAKE = 0, 3, 17


def request(correlation_id: int) -> bytes:
    return request_payload(METADATA, 8, b"\xff\xff\xff\xff000", correlation_id=correlation_id)


def response(correlation_id: int) -> bytes:
    return response_payload(METADATA, 8, b"", correlation_id=correlation_id)


def produce(version: int, acks: int, correlation_id: int = 7) -> bytes:
    body = make("ProduceRequest", acks=acks, timeout_ms=1000)
    return request_payload(PRODUCE, version, body, correlation_id=correlation_id)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), unique=True), st.randoms())
def test_each_response_finds_its_request_in_any_order(ids: list[int], random: object) -> None:
    pairing = Pairing()
    for one in ids:
        pairing.request(request(one))
    assert [one.correlation_id for one in pairing.unanswered()] == ids
    answers = list(ids)
    random.shuffle(answers)  # type: ignore[attr-defined]  # Hypothesis' Random has no public type
    for one in answers:
        expected = pairing.expected(response(one)[:4])
        found = pairing.response(response(one))
        assert isinstance(found, RequestFrame)
        assert found.correlation_id == one
        assert expected is found
    assert (pairing.unanswered(), pairing.unmatched, pairing.forgotten) == ([], 0, 0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=60), st.integers(1, 8))
def test_pairing_is_a_queue_for_each_correlation_id(
    steps: list[tuple[bool, int]], in_flight: int
) -> None:
    pairing = Pairing(in_flight)
    waiting: deque[tuple[int, int]] = deque()
    unmatched = forgotten = 0
    for serial, (is_request, correlation_id) in enumerate(steps):
        if is_request:
            # The version tells requests with the same correlation id apart.
            pairing.request(
                request_payload(METADATA, serial % 9, b"", correlation_id=correlation_id)
            )
            waiting.append((correlation_id, serial % 9))
            if len(waiting) > in_flight:
                waiting.popleft()
                forgotten += 1
            continue
        found = pairing.response(response(correlation_id))
        oldest = next((one for one in waiting if one[0] == correlation_id), None)
        if oldest is None:
            unmatched += 1
            assert found is None
        else:
            waiting.remove(oldest)
            assert isinstance(found, RequestFrame)
            assert (found.correlation_id, found.api_version) == oldest
        assert (pairing.unmatched, pairing.forgotten) == (unmatched, forgotten)
    assert [(one.correlation_id, one.api_version) for one in pairing.unanswered()] == list(waiting)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_produce_with_acks_0_is_not_waited_for(version: int, acks: int) -> None:
    pairing = Pairing()
    payload = produce(version, acks)
    found = pairing.request(payload)
    assert isinstance(found, RequestFrame)
    assert expects_response(found, payload) is (acks != 0)
    assert len(pairing.unanswered()) == (acks != 0)


def test_a_produce_that_does_not_decode_counts_as_answered() -> None:
    payload = produce(9, 0)[:-1]
    assert expects_response(parse_request(payload), payload)
    above = request_payload(PRODUCE, 1000, b"")
    assert expects_response(parse_request(above), above)


def test_what_is_not_a_request_is_refused_and_not_waited_for() -> None:
    pairing = Pairing()
    with pytest.raises(FrameError):
        pairing.request(b"GET / HTTP/1.1\r\n")
    with pytest.raises(DecodeError):
        pairing.request(request(7)[:9])
    assert pairing.unanswered() == []
    with pytest.raises(FrameError):
        pairing.response(b"abc")
    assert pairing.response(response(7)) is None
    assert pairing.unmatched == 1


PLAIN = b"\0alice\0secret"
SCRAM = (b"n,,n=alice,r=fyko", b"c=biws,r=fyko,p=v0X8")


@pytest.mark.parametrize(
    "tokens",
    [
        [PLAIN],
        [b"\0A\0\0"],
        [b"A\0\0"],
        SCRAM,
        [b"n,,\x01auth=Bearer x\x01\x01"],
        [b"\x60\x82\x02\x03", b"", b"\x05\x04\x04\xff" + bytes(12)],
        [b""],
        # A request header in form, of a version that no release has.
        [bytes.fromhex("0003 0070 00000001 0000 00")],
    ],
)
def test_tokens_after_a_sasl_handshake_of_version_0_are_not_requests(tokens: list[bytes]) -> None:
    pairing = Pairing()
    handshake = make("SaslHandshakeRequest", mechanism="ANY")
    pairing.request(request_payload(SASL_HANDSHAKE, 0, handshake, correlation_id=1))
    assert isinstance(pairing.response(response(1)), RequestFrame)
    for token in tokens:
        assert pairing.request(token) == SaslToken()
        assert pairing.expected(b"") == SaslToken()
        # The broker's token is no response either, whatever its first bytes are.
        assert pairing.response(b"") == SaslToken()
    first = pairing.request(request(2))
    assert isinstance(first, RequestFrame)
    assert isinstance(pairing.response(response(2)), RequestFrame)
    # From the first request on, what is not a request is an error again.
    with pytest.raises(FrameError):
        pairing.request(PLAIN)
    assert pairing.unmatched == 0


def test_a_sasl_handshake_of_version_1_is_followed_by_requests() -> None:
    pairing = Pairing()
    handshake = make("SaslHandshakeRequest", mechanism="PLAIN")
    pairing.request(request_payload(SASL_HANDSHAKE, 1, handshake))
    with pytest.raises(FrameError):
        pairing.request(PLAIN)


def test_a_second_handshake_may_follow_a_refused_one() -> None:
    pairing = Pairing()
    for correlation_id, mechanism in enumerate(("GSSAPI", "PLAIN")):
        body = make("SaslHandshakeRequest", mechanism=mechanism)
        payload = request_payload(SASL_HANDSHAKE, 0, body, correlation_id=correlation_id)
        assert isinstance(pairing.request(payload), RequestFrame)
        assert isinstance(pairing.response(response(correlation_id)), RequestFrame)
    assert pairing.request(PLAIN) == SaslToken()


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=24)), max_size=20))
def test_any_bytes_pair_or_are_refused(steps: list[tuple[bool, bytes]]) -> None:
    pairing = Pairing(in_flight=4)
    body = make("SaslHandshakeRequest", mechanism="PLAIN")
    pairing.request(request_payload(SASL_HANDSHAKE, 0, body))
    for is_request, payload in steps:
        try:
            (pairing.request if is_request else pairing.response)(payload)
        except (FrameError, DecodeError):
            continue
    assert len(pairing.unanswered()) <= 4
