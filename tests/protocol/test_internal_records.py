"""The topic's name decides how keys and values of internal topics are decoded."""

from __future__ import annotations

import pytest

import flexwire
from flexwire.errors import ArgumentError, UnknownMessageError
from flexwire.messages import OffsetCommitKey, OffsetCommitValue, TopicRecord
from flexwire.protocol import internal_topics
from flexwire.protocol.internal_topics import InternalTopic
from tests.each import each

KEY = b"\0\1" + OffsetCommitKey(group="g", topic="t", partition=7).encode(0)
VALUE = b"\0\3" + OffsetCommitValue(offset=9).encode(3)
TOPIC = b"\1\2\0" + TopicRecord(name="orders").encode(0)


@each("topic", ["__consumer_offsets", "consumer-offsets"])
def test_a_topic_goes_by_its_name_and_by_its_decoder_s(topic: str) -> None:
    known = internal_topics.decode_key(InternalTopic.CONSUMER_OFFSETS, KEY)
    key = flexwire.decode_key(topic, KEY)
    assert key == known
    for given in (KEY, bytearray(KEY), key):
        value = flexwire.decode_value(topic, given, VALUE)
        assert value is not None
        assert (value.name, value.to_json()["data"]["offset"]) == ("OffsetCommitValue", 9)
    assert flexwire.decode_value(topic, KEY, None) is None
    with pytest.raises(UnknownMessageError):
        flexwire.decode_key(topic, b"\x7f\xff")


def test_records_without_keys_are_known_by_their_values() -> None:
    assert flexwire.decode_key("__cluster_metadata", None) is None
    value = flexwire.decode_value("__cluster_metadata", None, TOPIC, release="4.0")
    assert value is not None
    assert value.message.name == "orders"  # type: ignore[attr-defined]  # the message is a TopicRecord
    key = flexwire.decode_key("__consumer_offsets", KEY)
    with pytest.raises(ArgumentError, match="no key for a record of __cluster_metadata"):
        flexwire.decode_value("__cluster_metadata", key, TOPIC)


def test_a_topic_that_is_no_internal_one_is_refused() -> None:
    with pytest.raises(ArgumentError, match="topic: expected __consumer_offsets or "):
        flexwire.decode_key("orders", KEY)
