"""Pasted bytes are recognized as frames, whether one or several, whole or cut off anywhere."""

from __future__ import annotations

import random
from functools import cache
from typing import NamedTuple

import pytest

from flexwire.codec import message
from flexwire.codec.partial_explanation import explain_cut
from flexwire.errors import FrameError
from flexwire.protocol.frame_input import (
    InputFrame,
    match_by_correlation_id,
    read_input_requests,
    read_input_responses,
)
from flexwire.protocol.headers import request_name, response_name
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from tests.codec.vectors import class_of, has_changed, load
from tests.each import each
from tests.protocol.payloads import frame, make, request_payload, response_payload

METADATA, HEARTBEAT = 3, 12
# All prefixes of all frames would take a minute. For longer frames, cuts near both ends and this
# many others are tried.
WHOLLY, OTHERS = 64, 5
# Up to this size, a response without its length prefix may also be the beginning of a response
# with a length prefix.
SHORT = 32


class Made(NamedTuple):
    """A frame of one of Kafka's own vectors."""

    is_request: bool
    key: int
    version: int
    name: str
    payload: bytes

    def given(self, data: bytes) -> list[InputFrame]:
        """Return the meaning of the bytes, for a reader who knows this frame."""
        if self.is_request:
            return read_input_requests(data)
        return read_input_responses(data, lambda _: (self.key, self.version))


@cache
def frames() -> tuple[Made, ...]:
    made = []
    for name, vectors in load().items():
        entry = catalog().entry(name)
        if entry.type not in {MessageType.REQUEST, MessageType.RESPONSE} or entry.api_key is None:
            continue
        is_request = entry.type is MessageType.REQUEST
        for one in vectors:
            if has_changed(one):
                # These bytes follow the layout of an older release, but frames do not name a
                # release.
                continue
            key, version, body = entry.api_key, one["version"], bytes.fromhex(one["hex"])
            payload = (request_payload if is_request else response_payload)(key, version, body)
            newest = (request_name if is_request else response_name)(key, version)
            made.append(Made(is_request, key, version, newest, payload))
    return tuple(made)


def _cuts(size: int, made: Made) -> list[int]:
    ends = {*range(1, min(size, 40)), *range(max(1, size - 6), size)}
    whole = range(1, size) if size <= WHOLLY else range(40, size, max(1, size // OTHERS))
    # For versions in the middle, each test tries another third of the cuts.
    at_ends = made.version in _ends(made.key)
    return sorted(ends | {*whole})[0 if at_ends else made.version % 3 :: 1 if at_ends else 3]


@cache
def _ends(api_key: int) -> tuple[int, int]:
    """Return the lowest and the highest version among an API's frames."""
    versions = [one.version for one in frames() if one.key == api_key]
    return min(versions), max(versions)


@pytest.mark.long
@pytest.mark.slow
@each("api_key", lambda: sorted({one.key for one in frames()}), parts=5)
def test_every_prefix_of_a_frame_is_said_to_be_cut_off_with_the_right_numbers(api_key: int) -> None:
    for made in frames():
        if made.key != api_key:
            continue
        data = frame(made.payload)
        for cut in _cuts(len(data), made):
            [found] = made.given(data[:cut])
            assert found.is_cut
            assert found.whole is None
            assert found.message_name in {None, made.name}
            if cut < 4:
                told = f"a frame must begin with a length field of 4 bytes, got {cut}"
            else:
                told = f"its first 4 bytes announce {len(made.payload)} bytes, but {cut - 4} follow"
                assert found.payload == made.payload[: cut - 4]
                assert found.announced == len(made.payload)
            assert told in str(found.error)


@pytest.mark.slow
@each("api_key", lambda: sorted({one.key for one in frames() if one.is_request}), parts=5)
def test_a_prefix_of_a_request_without_its_length_is_read_as_no_other_message(api_key: int) -> None:
    for made in frames():
        if made.key != api_key or not made.is_request or made.key == 0:
            continue
        # Unless later bytes are read, the key and version look like the length of another message.
        for cut in _cuts(len(made.payload), made):
            [found] = read_input_requests(made.payload[:cut], has_length=False)
            assert found.is_cut
            assert found.message_name in {None, made.name}
            if cut > 40:
                assert read_input_requests(made.payload[:cut])[0].message_name == made.name


@pytest.mark.slow
def test_every_frame_is_read_whole_with_its_length_and_without() -> None:
    for made in frames():
        found = made.given(frame(made.payload))
        if made.is_request or len(made.payload) > SHORT:
            found += made.given(made.payload)
        for one, had_length in zip(found, (True, False), strict=False):
            assert one.whole is not None
            assert one.whole.payload == made.payload
            assert one.whole.had_length == had_length


@each("seed", range(20))
def test_any_concatenation_of_frames_is_these_frames(seed: int) -> None:
    choice = random.Random(seed)
    chosen = choice.choices([one for one in frames() if one.is_request], k=choice.randint(2, 9))
    last = frame(chosen[-1].payload)
    for cut in (len(last), choice.randrange(1, len(last)), 2):
        data = b"".join(frame(one.payload) for one in chosen[:-1]) + last[:cut]
        found = read_input_requests(data)
        assert len(found) == len(chosen)
        for one, made in zip(found[:-1], chosen, strict=False):
            assert one.whole is not None
            assert one.whole.payload == made.payload
        assert found[-1].is_cut == (cut < len(last))
        assert sum(4 + len(one.payload) for one in found[:-1]) == found[-1].at


def test_responses_in_a_row_are_paired_by_their_correlation_ids() -> None:
    asked = [
        request_payload(METADATA, 12, make("MetadataRequest"), correlation_id=1),
        request_payload(HEARTBEAT, 4, make("HeartbeatRequest"), correlation_id=2),
    ]
    answers = [
        response_payload(HEARTBEAT, 4, make("HeartbeatResponse", error_code=16), correlation_id=2),
        response_payload(METADATA, 12, make("MetadataResponse"), correlation_id=1),
    ]
    requests = read_input_requests(b"".join(map(frame, asked)))
    found = read_input_responses(b"".join(map(frame, answers)), match_by_correlation_id(requests))
    assert [one.message_name for one in found] == ["HeartbeatResponse", "MetadataResponse"]
    other = response_payload(HEARTBEAT, 4, make("HeartbeatResponse"), correlation_id=3)
    [lost] = read_input_responses(frame(other), match_by_correlation_id(requests))
    assert "id 3 instead of 1 or 2, so it belongs to another request" in str(lost.error)


def test_a_short_response_that_could_be_two_things_says_both() -> None:
    """A heartbeat's response with a large correlation id begins like a long frame."""
    answer = response_payload(HEARTBEAT, 0, make("HeartbeatResponse"), correlation_id=1000)
    [found] = read_input_responses(answer, lambda _: (HEARTBEAT, 0))
    assert "announce 1000 bytes, but 2 follow" in str(found.error)
    assert "without a length, the bytes are a complete HeartbeatResponse" in str(found.error)
    [bare] = read_input_responses(answer, lambda _: (HEARTBEAT, 0), has_length=False)
    assert bare.whole is not None


@pytest.mark.long
@pytest.mark.slow
def test_what_is_read_of_a_whole_message_is_its_json_form() -> None:
    for name, vectors in load().items():
        for one in vectors:
            kind, version, data = class_of(one), one["version"], bytes.fromhex(one["hex"])
            found = explain_cut(kind, data, version, 0)
            assert found.explanation.error is None, name
            assert found.form == kind.decode(data, version).to_json(version)


def test_a_length_that_the_frame_has_no_room_for_is_wrong_and_not_cut_off() -> None:
    kind, body = message("HeartbeatRequest"), bytes.fromhex("0008 6162")
    cut, wrong = (explain_cut(kind, body, 0, missing) for missing in (6, 5))
    assert (cut.is_cut, wrong.is_cut) == (True, False)
    assert "declared length 8 but 7 bytes remain" in str(wrong.explanation.error)
    # If the end is unknown, a length cannot exceed it.
    assert explain_cut(kind, body, 0, None).is_cut


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3"])
def test_what_is_not_kafka_is_named(data: bytes) -> None:
    [found] = read_input_requests(data)
    assert isinstance(found.error, FrameError)
    assert "not Kafka's protocol: the first 4 bytes are" in str(found.error)
    assert found.payload == data
    after = read_input_requests(
        frame(request_payload(METADATA, 12, make("MetadataRequest"))) + data
    )
    assert [one.is_sound for one in after] == [True, False]


def test_a_request_of_a_version_that_nobody_has_says_so() -> None:
    payload = bytes.fromhex("0003 0063 00ff00ff 0001 61 00 00")
    for data in (frame(payload), payload):
        [found] = read_input_requests(data)
        assert str(found.error) == "MetadataRequest has no version 99; released are 0-13"
        assert found.header is not None
        assert found.header.form["clientId"] == "a"
