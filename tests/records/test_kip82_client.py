"""KIP-82's records of clients: accessors, serializers and interceptors, in Kafka's order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import FlexwireError
from flexwire.records.kip82 import (
    ConsumerRecord,
    ProducerRecord,
    decode_message_set,
    encode_message_set,
)

if TYPE_CHECKING:
    from flexwire.records.headers import Headers


def to_json(topic: str, headers: Headers, value: Any) -> bytes:
    headers.put_string("serialized-for", topic)
    return json.dumps(value).encode()


def from_json(_topic: str, headers: Headers, value: bytes | None) -> Any:
    assert headers.get("serialized-for") == ["orders"]
    return json.loads(value or b"null")


def test_interceptors_see_values_before_they_are_bytes_and_after() -> None:
    seen: list[Any] = []

    def on_send(record: ProducerRecord) -> ProducerRecord:
        seen.append(record.value)
        record.get_headers().put_long("sent", len(seen))
        return record

    def on_consume(record: ConsumerRecord) -> ConsumerRecord:
        seen.append(record.value)
        return record

    record = ProducerRecord("orders", {"paid": True}, key=b"7")
    sent = record.to_message(timestamp=5, interceptors=[on_send, on_send], value_serializer=to_json)
    [message] = decode_message_set(encode_message_set([sent]))
    assert message.value == b'{"paid": true}'
    consumed = ConsumerRecord.from_message(
        "orders", 0, message, value_deserializer=from_json, interceptors=[on_consume]
    )
    assert consumed.value == {"paid": True}
    assert consumed.get_headers().get("sent") == [1, 2]
    assert seen == [{"paid": True}] * 3


def test_an_interceptor_may_send_another_record() -> None:
    other = ProducerRecord("orders", b"other", timestamp=9)
    message = ProducerRecord("orders", b"paid").to_message(
        timestamp=5, interceptors=[lambda _: other]
    )
    assert (message.value, message.timestamp) == (b"other", 9)


def test_keys_have_a_serializer_of_their_own() -> None:
    message = ProducerRecord("orders", None, key=7).to_message(
        timestamp=5, key_serializer=lambda _topic, _headers, key: b"%d" % key
    )
    consumed = ConsumerRecord.from_message(
        "orders", 0, message, key_deserializer=lambda _topic, _headers, key: int(key or b"0")
    )
    assert (message.key, consumed.key, consumed.value) == (b"7", 7, None)


def test_without_a_serializer_only_bytes_are_sent() -> None:
    message = ProducerRecord("orders", "text").to_message(timestamp=5)
    with pytest.raises(FlexwireError):
        encode_message_set([message])
