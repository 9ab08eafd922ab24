"""Records of internal topics are read with the messages of the release that wrote them."""

from __future__ import annotations

from functools import cache

import pytest

from flexwire.codec import message
from flexwire.errors import DecodeError, UnknownMessageError
from flexwire.protocol.internal_topics import InternalTopic, TypedMessage, decode_key, decode_value
from flexwire.schema.catalog import catalog
from flexwire.wire.varint import write_unsigned_varint
from tests.codec.release_vectors import ReleaseVector, of_release, releases, without_unknown

BY_MODULE = {topic.module: topic for topic in InternalTopic}
RECORDS = [
    (release, vector)
    for release in releases()
    for vector in of_release(release)
    if vector.module in BY_MODULE and vector.message.endswith(("Key", "Value", "Record"))
]


def int16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def type_of(key: ReleaseVector) -> int:
    """Return a key's record type, from the spec in the release's own jar."""
    if key.type == "data":
        return key.version
    api_key = catalog().entry(key.message).api_key
    assert key.type == "coordinator-key"
    assert api_key is not None
    return api_key


@cache
def keys_of(release: str) -> dict[str, ReleaseVector]:
    """Return a key of the release, by the message of its value."""
    found = {}
    for one, vector in RECORDS:
        if one == release and vector.message.endswith("Key"):
            found[f"{vector.message.removesuffix('Key')}Value"] = vector
    return found


def decoded(vector: ReleaseVector, written_by: str, release: str | None) -> TypedMessage:
    """Decode a value from a log that ``written_by`` wrote."""
    topic = BY_MODULE[vector.module]
    if topic.has_keys:
        key = keys_of(written_by)[vector.message]
        typed_key = decode_key(topic, int16(type_of(key)) + key.raw, release)
        value = decode_value(topic, typed_key, int16(vector.version) + vector.raw, release)
    else:
        api_key = catalog().entry(vector.message).api_key
        assert api_key is not None
        frame = b"".join(map(write_unsigned_varint, (1, api_key, vector.version)))
        value = decode_value(topic, None, frame + vector.raw, release)
    assert value is not None
    return value


def test_every_key_of_a_release_is_the_message_that_its_type_has_there() -> None:
    for release, vector in RECORDS:
        if vector.message.endswith("Key"):
            topic, record_type = BY_MODULE[vector.module], type_of(vector)
            key = decode_key(topic, int16(record_type) + vector.raw, release)
            assert key is not None
            assert (key.type, key.name, key.version) == (
                record_type,
                vector.message,
                vector.version,
            )
            assert key.message.to_json(key.version) == vector.json


@pytest.mark.slow
def test_every_value_of_a_release_is_read_by_the_layout_of_the_release() -> None:
    values = [one for one in RECORDS if not one[1].message.endswith("Key")]
    assert {release for release, _ in values} == set(releases())
    for release, vector in values:
        found = decoded(vector, release, release)
        assert (found.name, found.version) == (vector.message, vector.version)
        plain = without_unknown(found.message.to_json(found.version), "", {})
        assert str(plain) == str(vector.json)
        assert found.release is None


def test_no_value_of_any_release_is_damaged_for_a_reader_that_does_not_know_the_release() -> None:
    older = set()
    for release, vector in RECORDS:
        if not vector.message.endswith("Key"):
            found = decoded(vector, release, None)
            assert found.message.encode(found.version) == vector.raw
            if found.release is not None:
                assert found.release in vector.releases
                assert found.to_json()["release"] == found.release
                older.add(vector.message)
    # During early access, this message changed without a new version.
    assert "ShareSnapshotValue" in older


def test_a_reader_that_knows_the_release_tries_no_other_layout() -> None:
    [(wrote, before), *_] = [
        one for one in RECORDS if one[1].message == "ShareSnapshotValue" and one[0] < "4.1"
    ]
    assert decoded(before, wrote, wrote).message.encode(0) == before.raw
    with pytest.raises(DecodeError):
        decoded(before, wrote, catalog().release("4.1"))


def test_what_a_release_does_not_have_is_unknown_there() -> None:
    offsets, metadata = InternalTopic.CONSUMER_OFFSETS, InternalTopic.METADATA
    with pytest.raises(UnknownMessageError, match=r"record type 17 is not in 4\.0\.2"):
        decode_key(offsets, int16(17) + b"\0\x01g", "4.0.2")
    with pytest.raises(UnknownMessageError, match=r"record type 0 is not in 3\.9\.2"):
        decode_key(InternalTopic.SHARE_STATE, int16(0), "3.9.2")
    api_key = catalog().entry("ClearElrRecord").api_key
    assert api_key is not None
    with pytest.raises(UnknownMessageError, match=r"of __cluster_metadata is not in 3\.9\.2"):
        decode_value(metadata, None, bytes([1, api_key, 0]), "3.9.2")
    old = decode_key(offsets, int16(0) + b"\0\x01g\0\x01t\0\0\0\0", "4.0.2")
    new = decode_key(offsets, int16(0) + b"\0\x01g\0\x01t\0\0\0\0", "4.1.2")
    assert old is not None
    assert new is not None
    assert (old.name, new.name) == ("OffsetCommitKey", "LegacyOffsetCommitKey")


@pytest.mark.parametrize("version", [1, 3])
def test_a_version_that_the_newest_message_of_a_type_lacks_is_of_an_older_one(version: int) -> None:
    # From 4.1, type 0 has its own message, which has only version 0.
    key = decode_key(InternalTopic.CONSUMER_OFFSETS, int16(0) + b"\0\x01g\0\x01t\0\0\0\0")
    made = message("OffsetCommitValue")()
    raw = int16(version) + made.encode(version)
    value = decode_value(InternalTopic.CONSUMER_OFFSETS, key, raw)
    assert value == (0, "OffsetCommitValue", version, made, None)
