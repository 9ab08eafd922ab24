"""Produce and Fetch version 4 as KIP-82 describes them: requests from 2016 with its messages."""

from __future__ import annotations

from typing import Any

import pytest

import flexwire
from flexwire.protocol import parse_request, parse_response
from flexwire.records import kip82
from flexwire.schema.catalog import catalog
from flexwire.schema.resolve import resolve
from tests.records.kip82_values import user

SPECS = flexwire.load_specs(kip82.SPECS)
# The newest version of each message when the document was written, and the bytes that the released
# version 4 adds to a message without topics: a null transactional id and an isolation level.
BEFORE = {
    "ProduceRequest": (2, 2),
    "ProduceResponse": (2, 0),
    "FetchRequest": (3, 1),
    "FetchResponse": (3, 0),
}


def test_there_are_the_two_requests_and_their_responses() -> None:
    assert set(SPECS.names()) == set(BEFORE)


@pytest.mark.parametrize("name", BEFORE)
def test_version_4_is_the_newest_layout_of_the_document_s_time(name: str) -> None:
    version, _ = BEFORE[name]
    spec, entry = SPECS.spec(name), catalog().entry(name)
    assert (spec.api_key, spec.type) == (entry.api_key, entry.type)
    assert list(spec.valid_versions) == [4]
    assert resolve(spec, 4).layout() == resolve(entry.spec(version), version).layout()


@pytest.mark.parametrize("name", BEFORE)
def test_it_is_not_the_version_4_that_was_released(name: str) -> None:
    more = BEFORE[name][1]
    ours, released = SPECS.message(name)(), flexwire.message(name)()
    assert len(released.encode(4)) == len(ours.encode(4)) + more
    layouts = [
        resolve(spec, 4).layout() for spec in (SPECS.spec(name), catalog().entry(name).spec(4))
    ]
    assert (layouts[0] == layouts[1]) == (name == "ProduceResponse")


def test_a_message_set_travels_in_a_produce_request() -> None:
    request: Any = SPECS.message("ProduceRequest")
    records = kip82.encode_message_set(
        [kip82.Kip82Message(0, 1000, b"order-7", b"paid", user(7))], compression="gzip"
    )
    partition = request.PartitionProduceData(index=3, records=records)
    topic = request.TopicProduceData(name="orders", partition_data=[partition])
    body = request(acks=1, timeout_ms=500, topic_data=[topic]).encode(4)
    head = flexwire.message("RequestHeader")(
        request_api_key=0, request_api_version=4, correlation_id=9, client_id="c"
    )
    frame = parse_request(payload := head.encode(1) + body)
    assert (frame.message_name, frame.api_version) == ("ProduceRequest", 4)
    [got] = request.decode(payload[frame.body_offset :], frame.api_version).topic_data
    [message] = kip82.decode_message_set(got.partition_data[0].records)
    assert message.headers.get("user") == [7]
    assert request.from_json(request.decode(body, 4).to_json(4), 4).encode(4) == body


def test_a_message_set_travels_in_a_fetch_response() -> None:
    response: Any = SPECS.message("FetchResponse")
    data = kip82.encode_message_set(
        [kip82.Kip82Message(at, 1000, None, b"v", user(at)) for at in (5, 6)]
    )
    partition = response.PartitionData(high_watermark=7, records=data[:-1])
    topic = response.FetchableTopicResponse(topic="orders", partitions=[partition])
    body = response(responses=[topic]).encode(4)
    frame = parse_response(payload := (9).to_bytes(4, "big") + body, 1, 4)
    read = response.decode(payload[frame.body_offset :], 4)
    [topic] = read.responses
    found = kip82.decode_message_set(topic.partitions[0].records)
    consumed = [kip82.ConsumerRecord.from_message(topic.topic, 0, message) for message in found]
    assert [(one.topic, one.offset, one.headers.get("user")) for one in consumed] == [
        ("orders", 5, [5])
    ]
    assert found.partial is not None


def test_the_others_of_version_4() -> None:
    for name in ("ProduceResponse", "FetchRequest"):
        message = SPECS.message(name)
        data = message().encode(4)
        assert message.decode(data, 4).encode(4) == data
