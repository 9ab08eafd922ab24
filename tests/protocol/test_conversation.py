"""Earlier frames on a connection determine the kind of each frame, and what it is paired with."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.codec import message
from flexwire.errors import FrameError
from flexwire.protocol import Conversation, expects_response, parse_request
from tests.protocol.payloads import make, request_payload, response_payload

PRODUCE, METADATA, SASL_HANDSHAKE = 0, 3, 17


def request(correlation_id: int) -> bytes:
    return request_payload(METADATA, 8, b"\xff\xff\xff\xff000", correlation_id=correlation_id)


def response(correlation_id: int) -> bytes:
    return response_payload(METADATA, 8, b"", correlation_id=correlation_id)


def produce(version: int, acks: int, correlation_id: int = 7) -> bytes:
    body = make("ProduceRequest", acks=acks, timeout_ms=1000)
    return request_payload(PRODUCE, version, body, correlation_id=correlation_id)


def handshake(version: int = 0, correlation_id: int = 1) -> bytes:
    body = make("SaslHandshakeRequest", mechanism="ANY")
    return request_payload(SASL_HANDSHAKE, version, body, correlation_id=correlation_id)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), unique=True), st.randoms())
def test_each_response_finds_its_request_in_any_order(ids: list[int], random: object) -> None:
    conversation = Conversation()
    asked = {one: conversation.request(request(one)) for one in ids}
    assert [one.correlation_id for one in conversation.unanswered()] == ids
    answers = list(ids)
    random.shuffle(answers)  # type: ignore[attr-defined]  # Hypothesis' Random has no public type
    for one in answers:
        expected = conversation.expected(response(one)[:4])
        found = conversation.response(response(one))
        assert found.request is asked[one].request is expected
        assert (found.correlation_id, found.pair) == (one, asked[one].pair)
    assert conversation.unanswered() == []
    assert (conversation.unpaired, conversation.forgotten) == (0, 0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=60), st.integers(1, 8))
def test_a_conversation_is_a_queue_for_each_correlation_id(
    steps: list[tuple[bool, int]], in_flight: int
) -> None:
    conversation = Conversation(in_flight)
    waiting: deque[tuple[int, int]] = deque()
    unpaired = forgotten = 0
    for serial, (is_request, correlation_id) in enumerate(steps):
        if is_request:
            # Requests with the same correlation id are told apart by their version.
            conversation.request(
                request_payload(METADATA, serial % 9, b"", correlation_id=correlation_id)
            )
            waiting.append((correlation_id, serial % 9))
            if len(waiting) > in_flight:
                waiting.popleft()
                forgotten += 1
            continue
        found = conversation.response(response(correlation_id)).request
        oldest = next((one for one in waiting if one[0] == correlation_id), None)
        if oldest is None:
            unpaired += 1
            assert found is None
        else:
            waiting.remove(oldest)
            assert found is not None
            assert (found.correlation_id, found.api_version) == oldest
        assert (conversation.unpaired, conversation.forgotten) == (unpaired, forgotten)
    left = [(one.correlation_id, one.api_version) for one in conversation.unanswered()]
    assert left == list(waiting)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 9)), max_size=60))
def test_a_pair_is_of_one_request_and_one_response_with_the_same_id(
    steps: list[tuple[bool, int, int]],
) -> None:
    conversation = Conversation()
    asked: dict[int | None, tuple[int, int]] = {}
    answered: dict[int | None, tuple[int, int]] = {}
    for is_request, correlation_id, seen in steps:
        give = conversation.request if is_request else conversation.response
        turn = give((request if is_request else response)(correlation_id), seen)
        pairs = asked if is_request else answered
        assert turn.pair not in pairs
        pairs[turn.pair] = correlation_id, seen
    for pair in asked.keys() & answered.keys():
        assert asked[pair][0] == answered[pair][0]


@pytest.mark.parametrize(
    ("seen_at", "is_pair"), [(4, True), (5, True), (6, False), (None, False)], ids=str
)
def test_a_response_known_before_its_request_is_its_own_if_it_was_seen_later(
    seen_at: int | None,
    is_pair: bool,  # noqa: FBT001 - pytest names it
) -> None:
    conversation = Conversation()
    answer = conversation.response(response(7), None if seen_at is None else 5)
    asked = conversation.request(request(7), seen_at)
    assert (asked.pair == answer.pair) is is_pair
    assert (conversation.unanswered() == []) is is_pair
    # A response to a request from before the capture therefore does not shift later pairs.
    if not is_pair:
        assert conversation.response(response(7), 9).pair == asked.pair


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_produce_with_acks_0_is_not_waited_for(version: int, acks: int) -> None:
    conversation = Conversation()
    payload = produce(version, acks)
    found = conversation.request(payload)
    assert found.request is not None
    assert expects_response(found.request, payload) is (acks != 0)
    assert (found.pair is not None) is (acks != 0)
    assert len(conversation.unanswered()) == (acks != 0)


def test_a_produce_that_does_not_decode_counts_as_answered() -> None:
    payload = produce(9, 0)[:-1]
    assert expects_response(parse_request(payload), payload)
    above = request_payload(PRODUCE, 1000, b"")
    assert expects_response(parse_request(above), above)


@pytest.mark.parametrize("version", range(3, 14))
def test_whether_a_produce_is_answered_is_known_without_its_records(version: int) -> None:
    payload = produce(version, -1)
    request = parse_request(payload)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(message("ProduceRequest"), "decode_prefix", None)
        assert expects_response(request, payload)
        with pytest.raises(TypeError):
            expects_response(request, produce(version, 0))


def test_what_is_not_a_request_is_unread_and_not_waited_for() -> None:
    conversation = Conversation()
    for payload in (b"GET / HTTP/1.1\r\n", request(7)[:9]):
        turn = conversation.request(payload)
        assert (turn.kind, turn.request, turn.pair) == ("unread", None, None)
        assert turn.error
    assert conversation.unanswered() == []
    assert conversation.response(b"abc").kind == "unread"
    with pytest.raises(FrameError):
        conversation.expected(b"abc")
    unpaired = conversation.response(response(7))
    assert (unpaired.kind, unpaired.request) == ("response", None)
    assert conversation.unpaired == 1


def test_a_damaged_request_says_whose_it_is_where_its_header_is_there() -> None:
    conversation = Conversation()
    cut = conversation.damaged_request(request(7)[:-1], "cut off", is_placed=True)
    assert (cut.kind, cut.correlation_id, cut.error) == ("unread", 7, "cut off")
    assert cut.request == parse_request(request(7))
    assert conversation.unanswered() == [cut.request]
    answer = conversation.damaged_response("cut off", response(7), is_placed=True)
    assert (answer.kind, answer.error, answer.request) == ("unread", "cut off", cut.request)
    assert answer.pair == cut.pair is not None
    unreleased = request_payload(METADATA, 99)
    for payload, is_placed in ((request(7), False), (unreleased, True), (b"?", True)):
        turn = conversation.damaged_request(payload, "cut off", is_placed=is_placed)
        assert turn.request is None
        assert turn.is_guarded
    assert conversation.unanswered() == []


@pytest.mark.parametrize("seen", [5, 9])
def test_of_damaged_frames_too_the_response_may_be_known_first(seen: int) -> None:
    conversation = Conversation()
    early = conversation.damaged_response("cut off", response(7), 5, is_placed=True)
    late = conversation.damaged_request(request(7)[:-1], "cut off", seen, is_placed=True)
    assert (late.pair == early.pair) == (seen <= 5)
    assert conversation.unanswered() == [late.request] * (seen > 5)


@pytest.mark.parametrize("payload", [b"", response(7)[:3], response(7)])
def test_a_response_without_its_header_answers_nothing(payload: bytes) -> None:
    conversation = Conversation()
    asked = conversation.request(request(7))
    is_placed = payload != response(7)
    turn = conversation.damaged_response("cut off", payload, is_placed=is_placed)
    assert (turn.kind, turn.pair, turn.correlation_id) == ("unread", None, None)
    assert conversation.unanswered() == [asked.request]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_cut_produce_says_whether_it_is_answered_once_its_acks_are_there(
    version: int, acks: int
) -> None:
    whole = produce(version, acks)
    header = parse_request(whole)
    for size in range(header.body_offset, len(whole)):
        conversation = Conversation()
        turn = conversation.damaged_request(whole[:size], "cut off", is_placed=True)
        # acks follows a null string, which takes one byte in flexible versions (from version 9).
        has_acks = size >= header.body_offset + (1 if version >= 9 else 2) + 2
        assert turn.request == header
        assert (turn.pair is None) == (acks == 0 and has_acks)
        assert len(conversation.unanswered()) == (turn.pair is not None)


def test_a_cut_token_is_answered_by_a_token() -> None:
    conversation = Conversation()
    conversation.damaged_request(handshake()[:-1], "cut off", is_placed=True)
    conversation.damaged_response("cut off", response(1), is_placed=True)
    token = conversation.damaged_request(b"\0alice\0sec", "cut off", is_placed=True)
    assert (token.kind, token.is_guarded, token.pair) == ("unread", True, None)
    assert conversation.response(b"").kind == "token"


@pytest.mark.parametrize(
    "guarding", [b"GET / HTTP/1.1\r\n", b"damaged", handshake(1)], ids=["unread", "cut", "sasl"]
)
def test_what_may_be_a_credential_guards_what_comes_after_in_both_directions(
    guarding: bytes,
) -> None:
    conversation = Conversation()
    assert conversation.response(response(1)).is_guarded
    opening = request_payload(METADATA, 8, make("MetadataRequest"), correlation_id=1)
    assert not conversation.request(opening).is_guarded
    assert not conversation.response(response(1)).is_guarded
    assert not conversation.damaged_response("cut off").is_guarded
    if guarding == b"damaged":
        assert conversation.damaged_request(b"?", "cut off", is_placed=True).is_guarded
    else:
        assert conversation.request(guarding).is_guarded
    assert conversation.request(request(2)).is_guarded
    assert conversation.response(response(2)).is_guarded


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
        # A complete request header in a version that no release has.
        [bytes.fromhex("0003 0070 00000001 0000 00")],
    ],
)
def test_tokens_after_a_sasl_handshake_of_version_0_are_not_requests(tokens: list[bytes]) -> None:
    conversation = Conversation()
    conversation.request(handshake())
    assert conversation.response(response(1)).request is not None
    for token in tokens:
        sent = conversation.request(token)
        assert (sent.kind, sent.request, sent.is_guarded) == ("token", None, True)
        assert conversation.expected(b"") is None
        # The broker's token is not a response, whatever its first bytes are.
        assert conversation.response(b"") == sent
    assert conversation.request(request(2)).request is not None
    assert conversation.response(response(2)).request is not None
    # After the first request, bytes that are not a request are an error again.
    assert conversation.request(PLAIN).kind == "unread"
    assert conversation.unpaired == 0


# Kafka's 0.9 client begins with this token, then sends an empty token and one more.
TICKET = bytes.fromhex("608202c006092a864886f71201020201006e8202af308202ab")


@pytest.mark.parametrize("length", ["05", "8105", "820005"])
def test_a_ticket_needs_no_handshake_before_it(length: str) -> None:
    conversation = Conversation()
    for token in (bytes.fromhex(f"60{length}") + TICKET[4:], b"", b"\x05\x04\x04\xff" + bytes(24)):
        sent = conversation.request(token)
        assert (sent.kind, sent.request, sent.is_guarded) == ("token", None, True)
        assert conversation.response(b"\x60\x6a\x06\x09") == sent
    assert conversation.request(request(2)).request is not None
    assert conversation.response(response(2)).request is not None
    assert conversation.request(PLAIN).kind == "unread"
    assert conversation.unpaired == 0


@pytest.mark.parametrize("place", [*range(15)])
def test_what_differs_from_a_ticket_in_one_byte_is_none(place: int) -> None:
    damaged = bytearray(TICKET)
    damaged[place] ^= 0x10
    # All bytes of the token except the two length bytes.
    assert (Conversation().request(bytes(damaged)).kind == "token") is (place in {2, 3})
    assert Conversation().request(TICKET[:place]).kind == "unread"


def test_a_request_that_waits_is_answered_before_a_token_and_after_one_that_was_lost() -> None:
    conversation = Conversation()
    conversation.request(handshake())
    conversation.request(PLAIN)
    assert conversation.response(response(1)).kind == "response"
    assert conversation.response(b"\0\0\0\x09fine").kind == "token"
    conversation.request(PLAIN)
    conversation.request(request(2))
    assert conversation.response(response(2)).kind == "response"
    # The answer to the second token was not captured, and none is expected any more.
    assert conversation.response(response(3)).kind == "response"


def test_a_sasl_handshake_of_version_1_is_followed_by_requests() -> None:
    conversation = Conversation()
    conversation.request(handshake(1))
    assert conversation.request(PLAIN).kind == "unread"


def test_a_second_handshake_may_follow_a_refused_one() -> None:
    conversation = Conversation()
    for correlation_id in range(2):
        asked = conversation.request(handshake(correlation_id=correlation_id))
        assert conversation.response(response(correlation_id)).pair == asked.pair
    assert conversation.request(PLAIN).kind == "token"


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=24)), max_size=20))
def test_any_bytes_have_a_place_or_are_refused(steps: list[tuple[bool, bytes]]) -> None:
    conversation = Conversation(in_flight=4)
    conversation.request(handshake())
    for is_request, payload in steps:
        turn = (conversation.request if is_request else conversation.response)(payload)
        assert (turn.kind == "unread") is (turn.error is not None)
    assert len(conversation.unanswered()) <= 4
