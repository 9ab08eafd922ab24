"""Kafka's internal topics: the messages in the keys and values of their records.

In the coordinators' topics, a key begins with the int16 type of the record, and a value with the
int16 version of its message. The records of the other topics have no keys, and their values begin
with three unsigned varints: frame version 1, API key and version.

A log does not show which release wrote it. A type or version is therefore interpreted as in the
newest release that defines it. Bytes that do not fit this layout are read with the layout of an
older release, if one fits. If a caller specifies the release, no other layout is tried.
"""

from __future__ import annotations

import base64
import enum
from contextlib import suppress
from typing import Any, NamedTuple

from flexwire.codec import Message, message
from flexwire.errors import CodecError, DecodeError, UnknownMessageError
from flexwire.protocol.nested_messages import GROUP_MESSAGES
from flexwire.protocol.record_types import (
    framed_messages,
    other_layouts,
    record_keys,
    record_values,
    with_version,
)
from flexwire.wire.varint import read_unsigned_varint

_INT16_SIZE = 2
_FRAME_VERSION = 1


class InternalTopic(enum.StrEnum):
    """An internal topic, identified by the name of its decoder.

    >>> InternalTopic("transactions").topic
    '__transaction_state'
    """

    CONSUMER_OFFSETS = "consumer-offsets"
    TRANSACTIONS = "transactions"
    METADATA = "metadata"
    REMOTE_LOG = "remote-log"
    SHARE_STATE = "share-state"

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return _TOPICS[self][0]

    @property
    def module(self) -> str:
        """The Kafka module that defines the messages in the records."""
        return _TOPICS[self][1]

    @property
    def has_keys(self) -> bool:
        """True if the type of a record is in its key."""
        return self not in {InternalTopic.METADATA, InternalTopic.REMOTE_LOG}


_TOPICS = {
    InternalTopic.CONSUMER_OFFSETS: ("__consumer_offsets", "group-coordinator"),
    InternalTopic.TRANSACTIONS: ("__transaction_state", "transaction-coordinator"),
    InternalTopic.METADATA: ("__cluster_metadata", "metadata"),
    InternalTopic.REMOTE_LOG: ("__remote_log_metadata", "storage"),
    InternalTopic.SHARE_STATE: ("__share_group_state", "share-coordinator"),
}


class TypedMessage(NamedTuple):
    """The key or value of a record of an internal topic.

    ``type`` is the type of the record, or the API key of the message. ``release`` is None unless
    the bytes fit only the layout of this older release.
    """

    type: int
    name: str
    version: int
    message: Message
    release: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the message with its name and version, and with the messages inside it.

        If Kafka stores a state as a number, the name of the state is added next to ``data``.
        """
        data = self.message.to_json(self.version)
        form = {"type": self.type, "message": self.name, "version": self.version, "data": data}
        if self.release is not None:
            form["release"] = self.release
        if self.name in _STATES:
            field, names = _STATES[self.name]
            state = data[field]
            form["state"] = names[state] if 0 <= state < len(names) else str(state)
        if data.get("protocolType") == _CONSUMER_PROTOCOL:
            for member in data["members"]:
                _open_consumer_protocol(member)
        return form


_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
# These states have no names in the specs: they are enumerations in Kafka's Java code.
_STATES = {
    "TransactionLogValue": (
        "transactionStatus",
        (
            "Empty",
            "Ongoing",
            "PrepareCommit",
            "PrepareAbort",
            "CompleteCommit",
            "CompleteAbort",
            "Dead",
            "PrepareEpochFence",
        ),
    ),
    "RemoteLogSegmentMetadataRecord": ("remoteLogSegmentState", _SEGMENT_STATES),
    "RemoteLogSegmentMetadataUpdateRecord": ("remoteLogSegmentState", _SEGMENT_STATES),
    "RemotePartitionDeleteMetadataRecord": (
        "remotePartitionDeleteState",
        (
            "DELETE_PARTITION_MARKED",
            "DELETE_PARTITION_STARTED",
            "DELETE_PARTITION_FINISHED",
        ),
    ),
}


def state_names(message: str) -> tuple[str, ...]:
    """Return the names of the numbered states in a message, in the order of the numbers.

    >>> state_names("TransactionLogValue")[1]
    'Ongoing'
    """
    return _STATES[message][1]


_CONSUMER_PROTOCOL = "consumer"
_CONSUMER_PROTOCOL_MESSAGES = GROUP_MESSAGES[_CONSUMER_PROTOCOL]._asdict()


def decode_key(
    topic: InternalTopic, key: bytes | None, release: str | None = None
) -> TypedMessage | None:
    """Decode the key of a record, or return None in a topic whose records have no keys.

    Raises `DecodeError`, and `UnknownMessageError` for a type that is in no bundled release or not
    in the known ``release``.
    """
    if not topic.has_keys:
        return None
    if key is None:
        raise DecodeError("the record has no key, so its type is unknown")
    record_type = _read_int16(key, "record type")
    key_message = record_keys(topic.module, release).get(record_type)
    if key_message is None:
        raise UnknownMessageError(f"record type {record_type} is {_nowhere(release)}")
    name, version = key_message
    decoded, layout = _decode(name, version, key, _INT16_SIZE, release)
    return TypedMessage(record_type, name, version, decoded, layout)


def decode_value(
    topic: InternalTopic,
    key: TypedMessage | None,
    value: bytes | None,
    release: str | None = None,
) -> TypedMessage | None:
    """Decode the value of a record with the result of `decode_key`, or return None for a tombstone.

    Raises `DecodeError`, and `UnknownMessageError` for a version that is in no bundled release or
    not in the known ``release``.
    """
    if key is None:
        return _decode_framed(topic, value, release)
    if value is None:
        return None
    version = _read_int16(value, "version")
    name = with_version(record_values(topic.module, release)[key.type], version, release)
    decoded, layout = _decode(name, version, value, _INT16_SIZE, release)
    return TypedMessage(key.type, name, version, decoded, layout)


def _decode_framed(topic: InternalTopic, value: bytes | None, release: str | None) -> TypedMessage:
    if value is None:
        raise DecodeError("the value is null, but this topic has no tombstones")
    frame_version, position = read_unsigned_varint(value, 0, len(value))
    if frame_version != _FRAME_VERSION:
        raise DecodeError(f"expected frame version {_FRAME_VERSION}, got {frame_version}", offset=0)
    api_key, position = read_unsigned_varint(value, position, len(value))
    version, position = read_unsigned_varint(value, position, len(value))
    names = framed_messages(topic.module, release).get(api_key)
    if names is None:
        raise UnknownMessageError(f"api key {api_key} of {topic.topic} is {_nowhere(release)}")
    name = with_version(names, version, release)
    decoded, layout = _decode(name, version, value, position, release)
    return TypedMessage(api_key, name, version, decoded, layout)


def _nowhere(release: str | None) -> str:
    return "in no bundled release" if release is None else f"not in {release}"


def _decode(
    name: str, version: int, data: bytes, start: int, release: str | None
) -> tuple[Message, str | None]:
    """Decode the bytes after ``start``. Also return the older release whose layout fits, if any."""
    try:
        return _decode_whole(message(name, release), version, data, start), None
    except DecodeError:
        for other in other_layouts(name, version) if release is None else ():
            with suppress(DecodeError):
                return _decode_whole(message(name, other), version, data, start), other
        raise


def _decode_whole(message_class: type[Message], version: int, data: bytes, start: int) -> Message:
    decoded, end = message_class.decode_prefix(data, version, start)
    if end != len(data):
        raise DecodeError(
            f"the message ends here but {len(data) - end} bytes follow",
            offset=end,
            message=message_class.entry.name,
            version=version,
        )
    return decoded


def _read_int16(data: bytes, what: str) -> int:
    if len(data) < _INT16_SIZE:
        raise DecodeError(f"{len(data)} bytes are too few for the {what}", offset=0)
    return int.from_bytes(data[:_INT16_SIZE], "big", signed=True)


def _open_consumer_protocol(member: dict[str, Any]) -> None:
    """Replace the bytes that a consumer sent to its group with the messages in these bytes.

    A client can send any bytes here, so other bytes remain unchanged.
    """
    for field, name in _CONSUMER_PROTOCOL_MESSAGES.items():
        data = base64.b64decode(member[field])
        try:
            version = _read_int16(data, "version")
            decoded = _decode_whole(message(name), version, data, _INT16_SIZE).to_json(version)
        except (CodecError, UnknownMessageError):
            continue
        member[field] = {"message": name, "version": version, "data": decoded}
