"""Each key and value of an internal topic is read as its message; unknown ones are refused."""

from __future__ import annotations

import base64
import random
from collections import Counter
from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import DecodeError, UnknownMessageError
from flexwire.protocol.internal_topics import (
    InternalTopic,
    decode_key,
    decode_value,
)
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from tests.capture.log_vectors import BASE, vectors

OFFSETS, TRANSACTIONS, METADATA, REMOTE_LOG, SHARE_STATE = InternalTopic


def int16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def framed(frame: int, api_key: int, version: int, body: bytes) -> bytes:
    return bytes([frame, api_key, version]) + body


def keys_of(topic: InternalTopic) -> dict[int, tuple[str, int]]:
    """Return the message of a key and the key's version, by record type."""
    found: dict[int, tuple[str, int]] = {}
    for entry in map(catalog().entry, catalog().names()):
        if entry.module == topic.module and entry.name.endswith("Key"):
            if entry.api_key is None:
                found |= {version: (entry.name, version) for version in entry.versions}
            else:
                found[entry.api_key] = (entry.name, 0)
    return found


@pytest.mark.parametrize(("topic", "least"), [(OFFSETS, 16), (TRANSACTIONS, 1), (SHARE_STATE, 2)])
def test_every_key_and_every_version_of_its_value(topic: InternalTopic, least: int) -> None:
    keys = keys_of(topic)
    assert sorted(keys)[:least] == list(range(least))
    for record_type, (name, version) in keys.items():
        key = decode_key(topic, int16(record_type) + message(name)().encode(version))
        assert key is not None
        assert (key.type, key.name, key.version) == (record_type, name, version)
        value_name = name.removesuffix("Key") + "Value"
        for value_version in catalog().entry(value_name).versions:
            made = message(value_name)()
            value = decode_value(topic, key, int16(value_version) + made.encode(value_version))
            assert value is not None
            assert (value.name, value.version, value.message) == (value_name, value_version, made)
        assert decode_value(topic, key, None) is None


@pytest.mark.parametrize("topic", [METADATA, REMOTE_LOG])
def test_every_framed_message_in_every_version(topic: InternalTopic) -> None:
    entries = [
        entry
        for entry in map(catalog().entry, catalog().names())
        if entry.module == topic.module and entry.type is MessageType.METADATA
    ]
    order = catalog().releases.index
    # If two names share an api key, the newest name counts: ClientQuotaRecord, not 2.8's
    # QuotaRecord.
    by_age = sorted(entries, key=lambda entry: order(entry.last_release))
    newest = {entry.api_key: entry for entry in by_age}
    assert len(newest) >= 4
    for api_key, entry in newest.items():
        for version in entry.versions:
            assert api_key is not None
            made = message(entry.name)()
            found = decode_value(topic, None, framed(1, api_key, version, made.encode(version)))
            assert found == (api_key, entry.name, version, made, None)
    assert decode_key(topic, b"whatever") is None


@pytest.mark.parametrize(
    ("topic", "key", "error"),
    [
        (OFFSETS, None, "no key"),
        (OFFSETS, b"", "0 bytes are too few for the record type"),
        (OFFSETS, b"\0", "1 bytes are too few"),
        (OFFSETS, int16(1) + b"\0\x05ab", "length 5 but 2 bytes remain"),
        (OFFSETS, int16(2) + b"\0\x01gx", "the message ends here but 1 bytes follow"),
        (TRANSACTIONS, int16(0), "bytes"),
    ],
)
def test_keys_that_are_none(topic: InternalTopic, key: bytes | None, error: str) -> None:
    with pytest.raises(DecodeError, match=error):
        decode_key(topic, key)


@pytest.mark.parametrize("record_type", [-1, 99, 32767])
def test_a_type_of_a_newer_kafka_is_unknown_rather_than_damaged(record_type: int) -> None:
    with pytest.raises(UnknownMessageError, match=f"record type {record_type} "):
        decode_key(OFFSETS, int16(record_type) + b"whatever")


def test_a_version_of_a_newer_kafka_is_unknown_rather_than_damaged() -> None:
    key = decode_key(OFFSETS, int16(2) + b"\0\x01g")
    with pytest.raises(UnknownMessageError, match="no version 99"):
        decode_value(OFFSETS, key, int16(99))
    with pytest.raises(UnknownMessageError, match="api key 99 of __cluster_metadata"):
        decode_value(METADATA, None, framed(1, 99, 0, b""))
    with pytest.raises(UnknownMessageError, match="TopicRecord has no version 77"):
        decode_value(METADATA, None, framed(1, 2, 77, b""))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, "null"),
        (b"", "cut off"),
        (framed(0, 2, 0, b""), "frame version 1, got 0"),
        (framed(15, 2, 0, b""), "frame version 1, got 15"),
        (b"\x80" * 6, "varint"),
        (framed(1, 20, 0, b"\0 garbage"), "8 bytes follow"),
    ],
)
def test_values_that_have_no_frame(value: bytes | None, error: str) -> None:
    with pytest.raises(DecodeError, match=error):
        decode_value(METADATA, None, value)


@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS, METADATA, REMOTE_LOG])
def test_damaged_records_are_messages_or_errors_of_ours(topic: InternalTopic) -> None:
    picked = random.Random(8)
    outcomes: Counter[str] = Counter()
    for record in vectors()[f"{topic.topic}-0/{BASE}.log"]["records"] * 3:
        key, value = damaged(record["key"], picked), damaged(record["value"], picked)
        try:
            typed_key = decode_key(topic, key)
            typed_value = decode_value(topic, typed_key, value)
        except (DecodeError, UnknownMessageError) as error:
            outcomes[type(error).__name__] += 1
            continue
        for typed in (typed_key, typed_value):
            if typed is not None:
                typed.to_json()
        outcomes["decoded"] += 1
    assert outcomes["decoded"]
    assert outcomes["DecodeError"]


def damaged(content: str | None, picked: random.Random) -> bytes | None:
    if content is None:
        return None
    data = bytearray(base64.b64decode(content))
    if data and picked.random() < 0.7:
        data[picked.randrange(len(data))] ^= 1 << picked.randrange(8)
    return bytes(data)


# The content of a message.


def group_value(subscription: bytes, protocol_type: str = "consumer") -> Any:
    member = {
        "memberId": "m",
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": 1,
        "sessionTimeout": 2,
        "subscription": "",
        "assignment": "",
    }
    form = {
        "protocolType": protocol_type,
        "generation": 1,
        "protocol": "range",
        "leader": "m",
        "currentStateTimestamp": 5,
        "members": [member],
    }
    made: Any = message("GroupMetadataValue").from_json(form, 3)
    made.members[0].subscription = subscription
    key = decode_key(OFFSETS, int16(2) + b"\0\x01g")
    value = decode_value(OFFSETS, key, int16(3) + made.encode(3))
    assert value is not None
    return value.to_json()["data"]["members"][0]


SUBSCRIPTION = message("ConsumerProtocolSubscription").from_json(
    {"topics": ["orders"], "userData": None, "ownedPartitions": []}, 1
)


def test_what_a_consumer_subscribes_to_is_decoded_in_place() -> None:
    member = group_value(int16(1) + SUBSCRIPTION.encode(1))
    assert member["subscription"] == {
        "message": "ConsumerProtocolSubscription",
        "version": 1,
        "data": {"topics": ["orders"], "userData": None, "ownedPartitions": []},
    }
    assert member["assignment"] == ""


@pytest.mark.parametrize("other", [b"", b"\0", b"anything", int16(1) + b"\xff"])
def test_what_is_no_subscription_stays_as_it_is(other: bytes) -> None:
    member = group_value(other)
    assert isinstance(member["subscription"], str)


def test_only_consumers_subscribe() -> None:
    member = group_value(int16(1) + SUBSCRIPTION.encode(1), "connect")
    assert isinstance(member["subscription"], str)


def test_states_have_their_names() -> None:
    for status, name in ((0, "Empty"), (4, "CompleteCommit"), (7, "PrepareEpochFence"), (9, "9")):
        made: Any = message("TransactionLogValue")()
        made.transaction_status = status
        key = decode_key(TRANSACTIONS, int16(0) + b"\0\x01t")
        value = decode_value(TRANSACTIONS, key, int16(0) + made.encode(0))
        assert value is not None
        assert value.to_json()["state"] == name
