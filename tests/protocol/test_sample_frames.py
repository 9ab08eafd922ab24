"""Generated frames are read as the messages that they were made from; damaged ones are refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from flexwire.codec import message, message_of
from flexwire.errors import ArgumentError
from flexwire.protocol import FrameSplitter, parse_response, read_request
from flexwire.protocol.sample_frames import hostile_frame, random_frame
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType

VERSIONS = [
    (message(entry.name), version)
    for entry in map(catalog().entry, catalog().names())
    if entry.type.is_api
    for version in entry.versions
]
DAMAGES = (
    "the frame's length is",
    "the frame ends within its header",
    "the header has version",
    "the header names version",
    "the header names api key",
)
VALID_AT_TIMES = ("has length", "a bit is flipped", "the message is one of version")


def test_every_version_of_a_request_or_response_is_read_from_its_frame() -> None:
    for seed, (kind, version) in enumerate(VERSIONS):
        frame = random_frame(kind, version, seed)
        [payload] = FrameSplitter().feed(frame.data)
        api_key = kind.entry.spec(version).api_key
        assert api_key is not None
        if kind.entry.type is MessageType.REQUEST:
            request = read_request(payload)
            assert (request.api_key, request.api_version) == (api_key, version)
            header: Any = request
        else:
            header = parse_response(payload, api_key, version)
        assert header.header_version == frame.header_version
        assert header.header == frame.header
        body = kind.decode(payload[header.body_offset :], version)
        assert body.encode(version) == frame.body.encode(version)
        assert random_frame(kind, version, seed).data == frame.data


def test_a_damaged_frame_is_refused_unless_its_body_may_be_valid() -> None:
    seen: Counter[str] = Counter()
    for seed, (kind, version) in enumerate(VERSIONS):
        hostile = hostile_frame(kind, version, seed)
        seen.update(damage for damage in DAMAGES if damage in hostile.damage)
        may_be_valid = any(words in hostile.damage for words in VALID_AT_TIMES)
        assert hostile.error or may_be_valid, f"{kind.__name__} v{version}: {hostile.damage}"
        assert hostile_frame(kind, version, seed) == hostile
    assert {*DAMAGES} == {*seen}


def test_a_message_without_a_header_or_an_api_key_has_no_frame() -> None:
    spec = catalog().entry("HeartbeatRequest").spec(4)
    for kind in (message("ConsumerProtocolSubscription"), message_of(replace(spec, api_key=None))):
        for make in (random_frame, hostile_frame):
            with pytest.raises(ArgumentError, match="expected a request or response with an api"):
                make(kind, 0, 1)


def test_a_spec_of_ones_own_has_frames() -> None:
    kind = message_of(replace(catalog().entry("HeartbeatRequest").spec(4), api_key=12_000))
    frame = random_frame(kind, 4, 1)
    assert frame.data[4:8] == bytes.fromhex("2ee00004")
    assert any(hostile_frame(kind, 4, seed).error is None for seed in range(50))
