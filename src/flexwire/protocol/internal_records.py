"""Decode keys and values of internal topics by topic name: a short form of `internal_topics`."""

from __future__ import annotations

from flexwire.arguments import refuse, to_bytes, to_text
from flexwire.protocol import internal_topics
from flexwire.protocol.internal_topics import InternalTopic, TypedMessage
from flexwire.schema.catalog import catalog

_Given = bytes | bytearray | memoryview


def decode_key(
    topic: str, key: _Given | None, *, release: str | None = None
) -> TypedMessage | None:
    r"""Decode the key of an internal topic's record, or return None if records have no keys.

    ``topic`` is the topic's name, such as "__consumer_offsets", or the name of its decoder, such as
    "consumer-offsets". ``release`` is the release that wrote the record, if known. Raises
    `DecodeError`, and `UnknownMessageError` for a type that is in no release.

    >>> key = decode_key("__consumer_offsets", b"\0\1\0\1g\0\1t\0\0\0\7")
    >>> key.name, key.message.group, key.message.partition
    ('OffsetCommitKey', 'g', 7)
    """
    return internal_topics.decode_key(_topic(topic), _bytes(key, "key"), _release(release))


def decode_value(
    topic: str,
    key: _Given | TypedMessage | None,
    value: _Given | None,
    *,
    release: str | None = None,
) -> TypedMessage | None:
    r"""Decode the value of an internal topic's record, or return None for a tombstone.

    ``key`` is the record's key, as bytes or as the result of `decode_key`. The key determines the
    message in the value, except in topics whose records have no key. Raises the same errors as
    `decode_key`.

    >>> decode_value("__consumer_offsets", b"\0\1\0\1g\0\1t\0\0\0\7", None) is None
    True
    """
    internal_topic, known_release = _topic(topic), _release(release)
    if not isinstance(key, TypedMessage):
        key = internal_topics.decode_key(internal_topic, _bytes(key, "key"), known_release)
    elif not internal_topic.has_keys:
        raise refuse("key", f"no key for a record of {internal_topic.topic}", key)
    return internal_topics.decode_value(internal_topic, key, _bytes(value, "value"), known_release)


def _topic(value: object) -> InternalTopic:
    name = to_text(value, "topic")
    for internal_topic in InternalTopic:
        if name in {internal_topic.topic, internal_topic.value}:
            return internal_topic
    raise refuse(
        "topic", " or ".join(internal_topic.topic for internal_topic in InternalTopic), name
    )


def _bytes(value: object, name: str) -> bytes | None:
    return None if value is None else to_bytes(value, name)


def _release(value: object) -> str | None:
    return None if value is None else catalog().release(to_text(value, "release"))
